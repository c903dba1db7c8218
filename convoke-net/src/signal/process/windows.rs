//! Signals on Windows: Ctrl-C, which the system reports on a thread of its own, and signals that the program
//! raises. A thread of ours delivers them, so that no code of the program runs on the system's thread.

#![allow(unsafe_code)]

use std::io;
use std::sync::mpsc::{self, Sender};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use signal_hook::SigId;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::low_level::{register, unregister};

pub(super) struct SystemSignals {
    sender: Option<Sender<i32>>,
    registered: Mutex<Vec<(i32, SigId)>>,
    thread: Option<JoinHandle<()>>,
}

impl SystemSignals {
    /// Starts a thread that calls `deliver` for each signal that is listened for.
    pub(super) fn new(deliver: impl Fn(i32) + Send + 'static) -> io::Result<Self> {
        let (sender, signals) = mpsc::channel();
        let thread = thread::Builder::new().name("convoke-signals".into());
        let thread = thread.spawn(move || signals.into_iter().for_each(deliver))?;
        Ok(Self { sender: Some(sender), registered: Mutex::default(), thread: Some(thread) })
    }

    pub(super) fn can_handle(number: i32) -> bool {
        number == SIGINT || number == SIGTERM
    }

    pub(super) fn listen_for(&self, number: i32) -> io::Result<()> {
        let mut registered = self.registered.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(sender) =
            self.sender.clone().filter(|_| registered.iter().all(|(other, _)| *other != number))
        else {
            return Ok(());
        };
        // SAFETY: `register` requires an action that is safe wherever the handler runs. Windows runs it on a
        // thread of its own, or inside `raise` on the caller's thread, which is not inside the channel's code
        // then. So sending is allowed. The action does not unwind: `send` returns an error.
        let id = unsafe { register(number, move || _ = sender.send(number)) }?;
        registered.push((number, id));
        Ok(())
    }
}

impl Drop for SystemSignals {
    fn drop(&mut self) {
        for (_, id) in self.registered.get_mut().unwrap_or_else(PoisonError::into_inner).drain(..) {
            unregister(id);
        }
        // This drops the last sender, so the thread ends. It is not joined if it is the current thread.
        drop(self.sender.take());
        let other = self.thread.take().filter(|thread| thread.thread().id() != thread::current().id());
        if let Some(thread) = other {
            _ = thread.join();
        }
    }
}

pub(super) fn raise(number: i32) -> io::Result<()> {
    signal_hook::low_level::raise(number)
}
