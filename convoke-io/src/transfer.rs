//! Transfers: reads and writes that move their buffer to the driver and get it back with the result. No
//! driver copies bytes for them. A task does not end before the driver has released its buffer.

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

use crate::driver::{Address, IoOperation, Request, RequestMut, Source};

/// A read or a write that owns its buffer. Await it, or use it as a sender.
///
/// - *Completes with* the result and the buffer. It is stopped only if nothing was transferred; the buffer is
///   dropped then.
/// - *If dropped* before it was started, the buffer is dropped. If the future that awaits it is dropped in
///   flight, the operation is cancelled, and the task does not end before the driver has released the buffer.
/// - *Runs on* the executor of the task that awaits it.
/// - *Panics* if it is awaited outside a task, or if `AsRef` or `AsMut` of the buffer panics.
///
/// ```
/// # #[cfg(unix)] {
/// use convoke::net::UnixStream;
///
/// let context = convoke::driver::io_context()?;
/// let read = context.block_on(async {
///     let (near, far) = UnixStream::pair()?;
///     let (written, buffer) = near.write_owned(b"hello".to_vec()).await;
///     let (read, buffer) = far.read_owned(buffer).await;
///     assert_eq!(buffer, b"hello");
///     std::io::Result::Ok((written?, read?))
/// });
/// assert_eq!(read.unwrap()?, (5, 5));
/// # }
/// # std::io::Result::Ok(())
/// ```
#[must_use = "a transfer does nothing until it is awaited"]
pub struct Transfer<B, D> {
    source: Arc<dyn Source>,
    buffer: B,
    _direction: PhantomData<fn() -> D>,
}

/// The direction of a transfer.
pub trait Direction<B>: 'static {
    /// Borrows the buffer for a request.
    #[doc(hidden)]
    fn request(buffer: &mut B) -> RequestMut<'_>;
}

/// A read into the buffer.
#[derive(Debug)]
pub enum Inward {}

/// A write out of the buffer.
#[derive(Debug)]
pub enum Outward {}

/// A connection to an address. It transfers no bytes but uses the same operation.
#[derive(Debug)]
pub enum Toward {}

impl Direction<Address> for Toward {
    fn request(address: &mut Address) -> RequestMut<'_> {
        RequestMut::Connect(address)
    }
}

impl<B: AsMut<[u8]>> Direction<B> for Inward {
    fn request(buffer: &mut B) -> RequestMut<'_> {
        RequestMut::Read(buffer.as_mut())
    }
}

impl<B: AsRef<[u8]>> Direction<B> for Outward {
    fn request(buffer: &mut B) -> RequestMut<'_> {
        RequestMut::Write((*buffer).as_ref())
    }
}

impl<B, D> Transfer<B, D> {
    /// Creates a transfer on `source`. For sockets outside this library; ours have methods for it.
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

/// The outcome of a transfer: the result and the buffer.
pub type Transferred<B> = Outcome<(io::Result<usize>, B)>;

// SAFETY: the receiver is completed once, as the last step: by `start` if the operation is done at once,
// otherwise by the last party of the rendezvous (rule 2 of `TransferOperation`). The driver has released the
// operation then.
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

/// `start` has returned from the driver.
const STARTED: u8 = 1;
/// The driver has finished the operation.
const FINISHED: u8 = 2;
/// The operation was stopped: the driver returned it to the stop callback.
const STOPPED: u8 = 4;
/// The stop callback is calling the driver to cancel.
const CANCELLING: u8 = 8;

/// Returns true if every party of the rendezvous has arrived: rule 2.
const fn all_arrived(race: u8) -> bool {
    race & STARTED != 0 && race & (FINISHED | STOPPED) != 0 && race & CANCELLING == 0
}

/// The operation state of a [`Transfer`].
///
/// 1. The buffer belongs to the driver while the I/O operation is in flight. All other parts belong to
///    `start` until it has set `STARTED`, then to the winner.
/// 2. Either the driver finishes the I/O operation or the stop callback gets it back. That party and `start`
///    have a rendezvous in `race`; so does the callback while it cancels. The party whose arrival makes
///    `all_arrived` true is the winner. The callback does not begin to cancel an operation that has ended,
///    and touches nothing then.
/// 3. The winner removes the callback. That waits for a callback that is running on another thread, so the
///    winner is alone afterwards.
///
/// It is not the race of a sleeping sender (`convoke-sender/src/sleep.rs`), which one participant wins and whose losers are
/// removed: here a callback that cancels takes part for as long as it runs, and takes its bit back.
///
/// Rule 2 includes the running callback because a driver may finish an operation inside `cancel`. Rule 3 does
/// not wait for a callback on its own thread, and the source would be dropped while it is being called.
#[repr(C)]
pub struct TransferOperation<B, D, R> {
    // First (`repr(C)`), so that a pointer to it is a pointer to the whole struct.
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

// SAFETY: rule 1: the parts have one user at a time, and they are `Send`.
unsafe impl<B: Send, D, R: Send> Send for TransferOperation<B, D, R> {}

/// The stop callback, with a pointer to the operation.
struct Stop<B, D, R>(NonNull<TransferOperation<B, D, R>>);

// SAFETY: `TransferOperation` is `Send`, and the callback follows its rules 2 and 3.
unsafe impl<B: Send, D, R: Send> Send for Stop<B, D, R> {}

impl<B, D, R> OnStop for Stop<B, D, R>
where
    B: Send,
    D: Direction<B>,
    R: OnComplete<Transferred<B>>,
{
    fn on_stop(self, _: StopReason) {
        // SAFETY: the operation is alive. Before `begin_cancel` succeeds the winner waits for this callback
        // (rule 3). Afterwards there is no winner until `arrive` clears CANCELLING (rule 2).
        unsafe {
            let this = self.0.as_ref();
            if !TransferOperation::begin_cancel(this) {
                return;
            }
            // The panic hook has reported a panic of the driver. `start`, which may be below us on the stack,
            // must not unwind.
            let taken = Panic::catch(|| this.operation.take_back(&*this.source));
            let stopped = if matches!(taken, Ok(true)) { STOPPED } else { 0 };
            TransferOperation::arrive(self.0, CANCELLING, stopped);
        }
    }
}

/// The result of `begin`.
enum Begun {
    /// Not submitted: stopped before, or the buffer's type panicked.
    Refused(Option<Panic>),
    /// Done at once.
    Done(io::Result<usize>),
    /// The driver keeps the operation.
    Kept,
}

impl<B, D, R> Operation for TransferOperation<B, D, R>
where
    B: Send,
    D: Direction<B>,
    R: OnComplete<Transferred<B>>,
{
    unsafe fn start(self: Pin<&mut Self>) {
        // SAFETY: only `parts`, which are not structurally pinned, are moved out of.
        let this = NonNull::from(unsafe { self.get_unchecked_mut() });
        // SAFETY: `this` is pinned until the receiver is completed. Rule 1: the parts belong to `start` until
        // `arrive` sets STARTED, and nothing is touched after `arrive` or `complete`.
        unsafe {
            match this.as_ref().parts.with_mut(|parts| Self::begin(this, &mut *parts)) {
                Begun::Refused(None) => Self::complete(this, Outcome::Stopped),
                Begun::Refused(Some(panic)) => Self::complete(this, Outcome::Panicked(panic)),
                Begun::Done(result) => Self::complete_with(this, result),
                Begun::Kept => Self::arrive(this, 0, STARTED),
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
    /// Submits the I/O operation and registers the stop callback.
    ///
    /// # Safety
    /// Called by `start`, with the parts of `this`. `this` stays in place until the receiver is completed.
    unsafe fn begin(this: NonNull<Self>, parts: &mut Parts<B, D, R>) -> Begun {
        let (Some(receiver), Some(buffer)) = (&parts.receiver, &mut parts.buffer) else {
            return Begun::Refused(None);
        };
        if receiver.env().stop().stop_requested() {
            return Begun::Refused(None);
        }
        // SAFETY: rule 1: the buffer is not accessed until the driver releases it, and `this` stays in place.
        // The receiver's environment outlives the operation, and with it the stop token that the callback is
        // registered with.
        unsafe {
            // `as_ref` and `as_mut` of the buffer may be code of the program.
            let request = match Panic::catch(|| Request::of(D::request(buffer))) {
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

    /// Notes that the driver has finished the I/O operation.
    ///
    /// # Safety
    /// Called once, with the address of the I/O operation inside a live `TransferOperation`.
    unsafe fn finished(operation: NonNull<IoOperation>) {
        // SAFETY: `operation` is the first field (`repr(C)`), and its address was cast from a pointer to the
        // whole struct.
        unsafe { Self::arrive(operation.cast(), 0, FINISHED) };
    }

    /// Sets CANCELLING, unless the operation has ended. Returns true if it did: the callback calls the
    /// driver.
    fn begin_cancel(&self) -> bool {
        let set = |race| (race & (FINISHED | STOPPED) == 0).then_some(race | CANCELLING);
        self.race.fetch_update(Ordering::AcqRel, Ordering::Acquire, set).is_ok()
    }

    /// Notes that one party has arrived; the last one completes the receiver.
    ///
    /// # Safety
    /// Called once by each party of rule 2, with the bits that it set before and sets now. The party touches
    /// nothing afterwards.
    unsafe fn arrive(this: NonNull<Self>, cleared: u8, set: u8) {
        // SAFETY: rule 2: the caller has not arrived before, so there was no winner, and `this` is alive.
        // After `all_arrived` the caller is the winner: rules 1 to 3 give it the parts and the operation.
        unsafe {
            let before = this.as_ref().race.fetch_xor(cleared | set, Ordering::AcqRel);
            if !all_arrived(before ^ (cleared | set)) {
                return;
            }
            this.as_ref().parts.with_mut(|parts| (*parts).callback = None);
            match this.as_ref().operation.take_result() {
                Some(result) => Self::complete_with(this, result),
                None => Self::complete(this, Outcome::Stopped),
            }
        }
    }

    /// Completes the receiver with the result and the buffer.
    ///
    /// # Safety
    /// Called by the owner of all parts (rule 1), which touches nothing afterwards. The driver has released
    /// the buffer.
    unsafe fn complete_with(this: NonNull<Self>, result: io::Result<usize>) {
        // SAFETY: rule 1: the caller owns all parts, the buffer included.
        unsafe {
            let buffer = this.as_ref().parts.with_mut(|parts| (*parts).buffer.take());
            Self::complete(this, Outcome::Value((result, buffer.expect("the buffer is taken once"))));
        }
    }

    /// Completes the receiver.
    ///
    /// # Safety
    /// Called by the owner of all parts (rule 1), which touches nothing afterwards.
    unsafe fn complete(this: NonNull<Self>, outcome: Outcome<(io::Result<usize>, B), Never>) {
        // SAFETY: rule 1: the caller owns all parts.
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
