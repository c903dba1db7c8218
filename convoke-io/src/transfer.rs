//! Reading and writing with a buffer that is given away and comes back: a sender, whose operation the driver has until it is
//! done. No copy is made on any driver; and a task does not end before its driver has let go of the buffer.

#![allow(unsafe_code)]

use core::fmt;
use core::future::IntoFuture;
use core::marker::{PhantomData, PhantomPinned};
use core::pin::Pin;
use core::ptr::NonNull;
use std::io;
use std::sync::Arc;

use convoke_core::raw::sync::UnsafeCell;
use convoke_core::raw::sync::atomic::{AtomicU8, Ordering};
use convoke_core::raw::{
    Adoptable, AdoptedFuture, AdoptedReceiver, OnComplete, OnStop, Operation, RawCallback,
};
use convoke_core::{Never, Outcome, Panic, StopReason};

use crate::driver::{Address, IoOperation, Request, Room, Source, Words};

/// A read or a write with a buffer of one's own. Await it, or use it as the sender it is.
///
/// - *Completes with* the result and the buffer; stopped only if nothing was transferred, and then the buffer is gone.
/// - *If dropped* before it was started, the buffer goes. If the future that awaits it is dropped in flight, it is cancelled, and
///   the task does not end before the driver has let go of the buffer.
/// - *Runs on* the executor of the task that awaits it.
#[must_use = "a transfer does nothing until it is awaited"]
pub struct Transfer<B, D> {
    source: Arc<dyn Source>,
    buffer: B,
    _direction: PhantomData<fn() -> D>,
}

/// Which way a transfer goes.
pub trait Direction<B>: 'static {
    /// What is asked for.
    ///
    /// # Safety
    /// The buffer stays where it is, and nobody touches it, until the request is gone.
    #[doc(hidden)]
    unsafe fn request(buffer: &mut B) -> Request;
}

/// Into the buffer.
#[derive(Debug)]
pub enum Inward {}

/// Out of the buffer.
#[derive(Debug)]
pub enum Outward {}

/// To an address, which is no transfer of bytes but goes the same way.
#[derive(Debug)]
pub enum Toward {}

impl Direction<Address> for Toward {
    unsafe fn request(address: &mut Address) -> Request {
        Request::Connect(Box::new(address.clone()))
    }
}

impl<B: AsMut<[u8]>> Direction<B> for Inward {
    unsafe fn request(buffer: &mut B) -> Request {
        // SAFETY: the caller's.
        Request::Read(unsafe { Room::new(buffer.as_mut()) })
    }
}

impl<B: AsRef<[u8]>> Direction<B> for Outward {
    unsafe fn request(buffer: &mut B) -> Request {
        // SAFETY: the caller's.
        Request::Write(unsafe { Words::new((*buffer).as_ref()) })
    }
}

impl<B, D> Transfer<B, D> {
    /// Over this source; for sockets of another make than ours, which have methods for it.
    pub fn new(source: Arc<dyn Source>, buffer: B) -> Self {
        Self { source, buffer, _direction: PhantomData }
    }
}

impl<B: Send, D: Direction<B>> Transfer<B, D> {
    /// Connects it to a receiver.
    #[doc(hidden)]
    pub fn connect<R: OnComplete<Transferred<B>>>(self, receiver: R) -> TransferOperation<B, D, R> {
        TransferOperation {
            operation: IoOperation::new(),
            source: self.source,
            race: AtomicU8::new(0),
            parts: UnsafeCell::new(Parts {
                buffer: Some(self.buffer),
                callback: None,
                receiver: Some(receiver),
            }),
            _direction: PhantomData,
            _pinned: PhantomPinned,
        }
    }
}

/// The outcome of a transfer: the result, and the buffer.
pub type Transferred<B> = Outcome<(io::Result<usize>, B)>;

// SAFETY: the receiver is completed once: by `start`, if it is done at once, or by the last of those that meet, as the last thing
// that is done; the driver has released the operation then.
unsafe impl<B: Send, D: Direction<B>> Adoptable for Transfer<B, D> {
    type Value = (io::Result<usize>, B);
    type Error = Never;
    type Operation = TransferOperation<B, D, AdoptedReceiver<Self::Value, Never>>;
    const NAME: &'static str = "a transfer";

    fn connect(self, receiver: AdoptedReceiver<Self::Value, Never>) -> Self::Operation {
        Transfer::connect(self, receiver)
    }
}

impl<B: Send + 'static, D: Direction<B>> IntoFuture for Transfer<B, D> {
    type Output = (io::Result<usize>, B);
    type IntoFuture = AdoptedFuture<Self>;

    #[track_caller]
    fn into_future(self) -> AdoptedFuture<Self> {
        AdoptedFuture::new(self)
    }
}

/// `start` is done with the operation.
const STARTED: u8 = 1;
/// The driver has finished it.
const FINISHED: u8 = 2;
/// It was stopped, and the driver has handed it back.
const STOPPED: u8 = 4;
/// The stop callback is asking the driver for it.
const ASKING: u8 = 8;

/// Whether all have come that are to meet: rule 2.
const fn is_over(race: u8) -> bool {
    race & STARTED != 0 && race & (FINISHED | STOPPED) != 0 && race & ASKING == 0
}

/// The operation of a [`Transfer`].
///
/// 1. The buffer is the driver's while the I/O operation is in flight. All other parts are `start`'s until it has set
///    `STARTED`, then the winner's.
/// 2. Either the driver finishes the I/O operation or the stop callback gets it back; that one and `start` meet, and so does the
///    callback while it asks the driver. Who makes it true that all have come has won. The callback does not begin to ask for
///    what has ended: then it leaves without touching anything.
/// 3. The winner takes back the callback, which waits for one that is running on another thread: so he is alone.
///
/// That a callback which asks is waited for too is for drivers that finish what they are asked for on the spot: rule 3 does not wait
/// for the thread it is on, and the source would go while it is being called.
#[repr(C)]
pub struct TransferOperation<B, D, R> {
    // First, so that a pointer to it is a pointer to all of it.
    operation: IoOperation,
    source: Arc<dyn Source>,
    race: AtomicU8,
    parts: UnsafeCell<Parts<B, D, R>>,
    _direction: PhantomData<fn() -> D>,
    _pinned: PhantomPinned,
}

struct Parts<B, D, R> {
    buffer: Option<B>,
    callback: Option<RawCallback<Stop<B, D, R>>>,
    receiver: Option<R>,
}

// SAFETY: rule 1: the parts have one user at a time.
unsafe impl<B: Send, D, R: Send> Send for TransferOperation<B, D, R> {}

/// The stop callback: it leads back to the operation.
struct Stop<B, D, R>(NonNull<TransferOperation<B, D, R>>);

// SAFETY: the operation is `Send`, and the callback is one of those who share it by its rules.
unsafe impl<B: Send, D, R: Send> Send for Stop<B, D, R> {}

impl<B, D, R> OnStop for Stop<B, D, R>
where
    B: Send,
    D: Direction<B>,
    R: OnComplete<Transferred<B>>,
{
    fn on_stop(self, _: StopReason) {
        // SAFETY: the operation is there: who wins before we ask waits for us, and nobody wins while we do.
        unsafe {
            let this = self.0.as_ref();
            if !TransferOperation::begin_to_ask(this) {
                return;
            }
            // What a driver throws has been reported by the panic hook; and `start`, where we may be, must not unwind.
            let taken = Panic::catch(|| this.operation.take_back(&*this.source));
            let stopped = if matches!(taken, Ok(true)) { STOPPED } else { 0 };
            TransferOperation::meet(self.0, ASKING, stopped);
        }
    }
}

/// How far `start` got.
enum Begun {
    /// To the end, without the driver.
    Refused(Option<Panic>),
    /// To the end.
    Done(io::Result<usize>),
    /// The driver has it.
    Kept,
}

impl<B, D, R> Operation for TransferOperation<B, D, R>
where
    B: Send,
    D: Direction<B>,
    R: OnComplete<Transferred<B>>,
{
    unsafe fn start(self: Pin<&mut Self>) {
        // SAFETY: nothing is moved out of its place but what is not structurally pinned.
        let this = NonNull::from(unsafe { self.get_unchecked_mut() });
        // SAFETY: we are pinned until the receiver was completed. Rule 1: the parts are ours until `meet`, and after that
        // nothing is touched.
        unsafe {
            match this.as_ref().parts.with_mut(|parts| Self::begin(this, &mut *parts)) {
                Begun::Refused(None) => Self::complete(this, Outcome::Stopped),
                Begun::Refused(Some(panic)) => Self::complete(this, Outcome::Panicked(panic)),
                Begun::Done(result) => Self::complete_with(this, result),
                Begun::Kept => Self::meet(this, 0, STARTED),
            }
        }
    }
}

impl<B, D, R> TransferOperation<B, D, R>
where
    B: Send,
    D: Direction<B>,
    R: OnComplete<Transferred<B>>,
{
    /// # Safety
    /// By `start`, with the parts of `this`, which stays until the receiver was completed.
    unsafe fn begin(this: NonNull<Self>, parts: &mut Parts<B, D, R>) -> Begun {
        let (Some(receiver), Some(buffer)) = (&parts.receiver, &mut parts.buffer) else {
            return Begun::Refused(None);
        };
        if receiver.env().stop().stop_requested() {
            return Begun::Refused(None);
        }
        // SAFETY: the buffer is not touched until the driver is done with it: rule 1. The environment of the receiver outlives us.
        unsafe {
            // The buffer's type may be the program's.
            let request = match Panic::catch(|| D::request(buffer)) {
                Ok(request) => request,
                Err(panic) => return Begun::Refused(Some(panic)),
            };
            let source = &*this.as_ref().source;
            if let Some(result) = IoOperation::submit(this.cast(), source, request, Self::finished) {
                return Begun::Done(result);
            }
            if receiver.env().stop().stop_possible() {
                let callback = parts.callback.insert(RawCallback::new(Stop(this)));
                callback.register(receiver.env().stop());
            }
        }
        Begun::Kept
    }

    /// # Safety
    /// Called once, by whoever has finished the I/O operation, with its address.
    unsafe fn finished(operation: NonNull<IoOperation>) {
        // SAFETY: it is the first field (`repr(C)`), and the address was made from one of all of it.
        unsafe { Self::meet(operation.cast(), 0, FINISHED) };
    }

    /// Whether the callback asks the driver: not for what has ended.
    fn begin_to_ask(&self) -> bool {
        let ask = |race| (race & (FINISHED | STOPPED) == 0).then_some(race | ASKING);
        self.race.fetch_update(Ordering::AcqRel, Ordering::Acquire, ask).is_ok()
    }

    /// One of those who meet has come.
    ///
    /// # Safety
    /// By the one whom the bits belong to, once: he clears what he has set before, and touches nothing afterwards.
    unsafe fn meet(this: NonNull<Self>, cleared: u8, set: u8) {
        // SAFETY: the caller is one of them, and the last has not left. Rules 1 to 3.
        unsafe {
            let before = this.as_ref().race.fetch_xor(cleared | set, Ordering::AcqRel);
            if !is_over(before ^ (cleared | set)) {
                return;
            }
            this.as_ref().parts.with_mut(|parts| (*parts).callback = None);
            match this.as_ref().operation.take_result() {
                Some(result) => Self::complete_with(this, result),
                None => Self::complete(this, Outcome::Stopped),
            }
        }
    }

    /// # Safety
    /// By the one whom all parts belong to, who touches nothing afterwards.
    unsafe fn complete_with(this: NonNull<Self>, result: io::Result<usize>) {
        // SAFETY: the caller's; the driver has given back the buffer.
        unsafe {
            let buffer = this.as_ref().parts.with_mut(|parts| (*parts).buffer.take());
            Self::complete(this, Outcome::Value((result, buffer.expect("it is taken once"))));
        }
    }

    /// # Safety
    /// By the one whom all parts belong to, who touches nothing afterwards.
    unsafe fn complete(this: NonNull<Self>, outcome: Outcome<(io::Result<usize>, B), Never>) {
        // SAFETY: the caller's.
        let receiver = unsafe { this.as_ref().parts.with_mut(|parts| (*parts).receiver.take()) };
        if let Some(receiver) = receiver {
            receiver.complete(outcome);
        }
    }
}

impl<B, D> fmt::Debug for Transfer<B, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transfer").field("source", &self.source).finish_non_exhaustive()
    }
}

impl<B, D, R> fmt::Debug for TransferOperation<B, D, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TransferOperation").field("operation", &self.operation).finish_non_exhaustive()
    }
}
