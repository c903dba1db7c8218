//! Signals on Windows: Ctrl-C, which the system tells on a thread of its own, and what the program raises itself. A thread of
//! ours passes them on, so that nobody's code runs where the system called.

#![allow(unsafe_code)]

use std::io;
use std::sync::mpsc::{self, Sender};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use signal_hook::SigId;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::low_level::{register, unregister};

pub(super) struct SystemSignals {
    came: Option<Sender<i32>>,
    registered: Mutex<Vec<(i32, SigId)>>,
    thread: Option<JoinHandle<()>>,
}

impl SystemSignals {
    /// Calls `tell` on a thread, for each that it listens for.
    pub(super) fn new(tell: impl Fn(i32) + Send + 'static) -> io::Result<Self> {
        let (came, signals) = mpsc::channel();
        let thread = thread::Builder::new().name("convoke-signals".into());
        let thread = thread.spawn(move || signals.into_iter().for_each(tell))?;
        Ok(Self { came: Some(came), registered: Mutex::default(), thread: Some(thread) })
    }

    pub(super) fn can_hear(number: i32) -> bool {
        number == SIGINT || number == SIGTERM
    }

    pub(super) fn listen_for(&self, number: i32) -> io::Result<()> {
        let mut registered = self.registered.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(came) = self.came.clone().filter(|_| registered.iter().all(|(other, _)| *other != number))
        else {
            return Ok(());
        };
        // SAFETY: the system calls it on a thread of its own, and `raise` on the caller's, which is not in the midst of a
        // channel's code then: so it may do whatever a thread may. It does not unwind.
        let id = unsafe { register(number, move || _ = came.send(number)) }?;
        registered.push((number, id));
        Ok(())
    }
}

impl Drop for SystemSignals {
    fn drop(&mut self) {
        for (_, id) in self.registered.get_mut().unwrap_or_else(PoisonError::into_inner).drain(..) {
            unregister(id);
        }
        // The last end of the channel, so the thread ends; unless it is the thread itself that drops us.
        drop(self.came.take());
        let other = self.thread.take().filter(|thread| thread.thread().id() != thread::current().id());
        if let Some(thread) = other {
            _ = thread.join();
        }
    }
}

pub(super) fn raise(number: i32) -> io::Result<()> {
    signal_hook::low_level::raise(number)
}
