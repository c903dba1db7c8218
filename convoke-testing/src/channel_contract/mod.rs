//! What one expects of a channel, as a suite that any type can be put through which brings each message from one of its senders
//! to one of its receivers.
//!
//! ```
//! use convoke::sync::mpsc;
//! use convoke::testing::channel_contract::{ChannelUnderTest, Harness, check};
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
//! check(&Harness::<Mpsc>::new().hears_stops());
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
    message = "`{Self}` cannot be put through the suite for channels",
    note = "implement `ChannelUnderTest` for a type of your own that names the two sides of the channel"
)]
pub trait ChannelUnderTest: 'static {
    /// The side that sends. Clones send into the same channel.
    type Sender: Clone + Send + Sync + 'static;
    /// The side that receives.
    type Receiver: Send + 'static;

    /// A channel with room for so many messages.
    fn open(capacity: usize) -> (Self::Sender, Self::Receiver);

    /// Sends a message, and waits for room. It comes back if the channel is closed.
    fn send(sender: &Self::Sender, message: u32) -> impl Future<Output = Result<(), u32>> + Send;

    /// Receives a message, and waits for one. `None` if the channel is closed and empty.
    fn receive(receiver: &mut Self::Receiver) -> impl Future<Output = Option<u32>> + Send;

    /// Closes the channel: nothing is sent from now on.
    fn close(receiver: &mut Self::Receiver);

    /// Another receiver of the same channel: each message goes to one of them. `None` if there can only be one.
    fn another(receiver: &Self::Receiver) -> Option<Self::Receiver> {
        let _ = receiver;
        None
    }
}

/// What a channel promises beyond the contract.
pub struct Harness<C> {
    unbounded: bool,
    hears_stops: bool,
    _channel: PhantomData<fn() -> C>,
}

impl<C: ChannelUnderTest> Harness<C> {
    /// Nothing.
    pub fn new() -> Self {
        Self { unbounded: false, hears_stops: false, _channel: PhantomData }
    }

    /// There is always room: the capacity that it is opened with is of no importance.
    pub fn unbounded(mut self) -> Self {
        self.unbounded = true;
        self
    }

    /// Who sends or receives ends by the stopped door when a stop is asked for, also if he need not wait. Without this the suite
    /// wraps [`stoppable`] around it.
    pub fn hears_stops(mut self) -> Self {
        self.hears_stops = true;
        self
    }

    fn calls(&self) -> Calls {
        Calls { hears_stops: self.hears_stops }
    }
}

impl<C: ChannelUnderTest> Default for Harness<C> {
    fn default() -> Self {
        Self::new()
    }
}

impl<C> fmt::Debug for Harness<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Harness")
            .field("unbounded", &self.unbounded)
            .field("hears_stops", &self.hears_stops)
            .finish_non_exhaustive()
    }
}

/// Puts the channel through all of it.
///
/// # Panics
/// If it breaks the contract, or a promise.
pub fn check<C: ChannelUnderTest>(harness: &Harness<C>) {
    delivery::messages_of_one_sender_arrive_in_their_order(harness);
    delivery::each_message_arrives_once(harness);
    delivery::each_message_arrives_once_on_several_threads(harness);
    waiting::who_sends_waits_for_room(harness);
    waiting::one_who_waited_and_goes_takes_nothing_along(harness);
    closing::what_was_sent_is_received_after_the_end(harness);
    closing::the_last_sender_ends_it(harness);
    closing::the_end_wakes_all_who_receive(harness);
    closing::the_end_wakes_all_who_send(harness);
    closing::messages_come_back_when_nobody_receives(harness);
    leaving::a_stop_loses_no_message(harness);
    leaving::a_stop_is_heard(harness);
}

/// How the two sides are called.
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
