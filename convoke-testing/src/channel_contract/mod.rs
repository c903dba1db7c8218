//! A contract suite for channels that deliver each message from one of their senders to one of their
//! receivers.
//!
//! ```
//! use convoke::sync::mpsc;
//! use convoke::testing::channel_contract::{ChannelUnderTest, ChannelHarness, check};
//!
//! struct Mpsc;
//!
//! impl ChannelUnderTest for Mpsc {
//!     type Sender = mpsc::Sender<u32>;
//!     type Receiver = mpsc::Receiver<u32>;
//!
//!     fn open(capacity: usize) -> (mpsc::Sender<u32>, mpsc::Receiver<u32>) {
//!         mpsc::channel(capacity)
//!     }
//!
//!     async fn send(sender: &mpsc::Sender<u32>, message: u32) -> Result<(), u32> {
//!         sender.send(message).await.map_err(|error| error.0)
//!     }
//!
//!     async fn receive(receiver: &mut mpsc::Receiver<u32>) -> Option<u32> {
//!         receiver.recv().await
//!     }
//!
//!     fn close(receiver: &mut mpsc::Receiver<u32>) {
//!         receiver.close();
//!     }
//! }
//!
//! check(&ChannelHarness::<Mpsc>::new().hears_stops());
//! ```

mod closing;
mod delivery;
mod leaving;
mod ledger;
mod waiting;

use core::fmt;
use core::future::Future;
use core::marker::PhantomData;

use convoke_task::stoppable;

/// A channel under test.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a channel for the contract suite",
    note = "implement `ChannelUnderTest` for a type of your own that names the two ends of the channel"
)]
pub trait ChannelUnderTest: 'static {
    /// The sending end. Clones send into the same channel.
    type Sender: Clone + Send + Sync + 'static;
    /// The receiving end.
    type Receiver: Send + 'static;

    /// Opens a channel for at most `capacity` messages.
    fn open(capacity: usize) -> (Self::Sender, Self::Receiver);

    /// Sends a message, after waiting for capacity. Returns the message if the channel is closed.
    fn send(sender: &Self::Sender, message: u32) -> impl Future<Output = Result<(), u32>> + Send;

    /// Receives a message, after waiting for one. Returns `None` if the channel is closed and empty.
    fn receive(receiver: &mut Self::Receiver) -> impl Future<Output = Option<u32>> + Send;

    /// Closes the channel: every later send fails.
    fn close(receiver: &mut Self::Receiver);

    /// Returns another receiver of the same channel, if it can have several. Each message goes to one of
    /// them.
    fn another(receiver: &Self::Receiver) -> Option<Self::Receiver> {
        let _ = receiver;
        None
    }
}

/// A channel under test, and its promises beyond the contract.
pub struct ChannelHarness<C> {
    unbounded: bool,
    hears_stops: bool,
    _channel: PhantomData<fn() -> C>,
}

impl<C: ChannelUnderTest> ChannelHarness<C> {
    /// Creates a harness without promises.
    pub fn new() -> Self {
        Self { unbounded: false, hears_stops: false, _channel: PhantomData }
    }

    /// Declares that the channel has no limit and ignores the capacity that it is opened with.
    pub fn unbounded(mut self) -> Self {
        self.unbounded = true;
        self
    }

    /// Promises that `send` and `receive` are stopped when a stop is requested, also if they need not wait.
    /// Without this the suite wraps them in [`stoppable`].
    pub fn hears_stops(mut self) -> Self {
        self.hears_stops = true;
        self
    }

    fn calls(&self) -> Calls {
        Calls { hears_stops: self.hears_stops }
    }
}

impl<C: ChannelUnderTest> Default for ChannelHarness<C> {
    fn default() -> Self {
        Self::new()
    }
}

impl<C> fmt::Debug for ChannelHarness<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChannelHarness")
            .field("unbounded", &self.unbounded)
            .field("hears_stops", &self.hears_stops)
            .finish_non_exhaustive()
    }
}

/// Checks the channel against the whole contract.
///
/// # Panics
/// If it breaks the contract, or a promise.
pub fn check<C: ChannelUnderTest>(harness: &ChannelHarness<C>) {
    delivery::messages_of_one_sender_arrive_in_their_order(harness);
    delivery::each_message_arrives_once(harness);
    delivery::each_message_arrives_once_on_several_threads(harness);
    waiting::send_waits_for_capacity(harness);
    waiting::a_dropped_wait_takes_nothing(harness);
    closing::what_was_sent_is_received_after_the_end(harness);
    closing::the_last_sender_ends_it(harness);
    closing::the_end_wakes_all_receivers(harness);
    closing::the_end_wakes_all_senders(harness);
    closing::messages_are_returned_without_a_receiver(harness);
    leaving::a_stop_loses_no_message(harness);
    leaving::a_stop_is_heard(harness);
}

/// The calls of the two ends, wrapped in [`stoppable`] where needed.
#[derive(Clone, Copy)]
struct Calls {
    hears_stops: bool,
}

impl Calls {
    async fn send<C: ChannelUnderTest>(self, sender: &C::Sender, message: u32) -> Result<(), u32> {
        if self.hears_stops {
            C::send(sender, message).await
        } else {
            stoppable(C::send(sender, message)).await
        }
    }

    async fn receive<C: ChannelUnderTest>(self, receiver: &mut C::Receiver) -> Option<u32> {
        if self.hears_stops { C::receive(receiver).await } else { stoppable(C::receive(receiver)).await }
    }
}
