//! Consequences of a change of the pool that cannot be had under its lock: they call and drop code of others.

use core::task::Waker;
use std::sync::Arc;

use convoke_sync::oneshot;

use super::super::error::ClientError;
use super::super::places::Place;
use super::super::route::Route;
use super::Pool;
use super::checkout::{Checkout, Sender, Taken};

/// A line for a request that waits, or why it gets none.
pub(super) type Delivery = Result<Checkout, ClientError>;
/// The request that waits.
pub(super) type Recipient = oneshot::Sender<Delivery>;

pub(super) struct Later {
    pool: Arc<Pool>,
    wakers: Vec<Waker>,
    dropped: Vec<Sender>,
    delivered: Vec<(Recipient, Delivery)>,
    openings: Vec<(Arc<Route>, Place)>,
}

impl Later {
    pub(super) fn new(pool: Arc<Pool>) -> Self {
        Self { pool, wakers: Vec::new(), dropped: Vec::new(), delivered: Vec::new(), openings: Vec::new() }
    }

    pub(super) fn wake(&mut self, waker: Option<Waker>) {
        self.wakers.extend(waker);
    }

    pub(super) fn drop(&mut self, sender: Option<Sender>) {
        self.dropped.extend(sender);
    }

    /// Delivers a line to a request that waits. If the request has gone, the line returns to the pool.
    pub(super) fn deliver(&mut self, to: Recipient, route: &Arc<Route>, taken: Taken) {
        let checkout = Checkout::new(self.pool.clone(), route.clone(), taken);
        self.delivered.push((to, Ok(checkout)));
    }

    pub(super) fn fail(&mut self, to: Recipient, error: ClientError) {
        self.delivered.push((to, Err(error)));
    }

    pub(super) fn open(&mut self, route: &Arc<Route>, place: Place) {
        self.openings.push((route.clone(), place));
    }

    pub(super) fn has_openings(&self) -> bool {
        !self.openings.is_empty()
    }

    /// Does it all, and returns the connections to open.
    pub(super) fn run(self) -> Vec<(Arc<Route>, Place)> {
        self.wakers.into_iter().for_each(Waker::wake);
        drop(self.dropped);
        for (to, result) in self.delivered {
            // Nobody waits any more: a line is returned by the destructor of its checkout.
            drop(to.send(result));
        }
        self.openings
    }
}
