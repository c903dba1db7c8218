//! A lookup that is under way, and those who wait for it. The first to ask for a name starts it, others join, and when the last
//! has left it is asked to stop. It belongs to none of them: whoever started it may leave before the others.

use core::net::SocketAddr;
use std::collections::HashMap;
use std::io;
use std::sync::{Arc, OnceLock, PoisonError};

use convoke_core::raw::sync::{Mutex, MutexGuard};
use convoke_core::{Panic, StopReason, StopSource, StopToken};
use convoke_sync::Event;

use super::LookupError;
use convoke_io::driver::shut_down;

/// All lookups that are under way, by name.
#[derive(Debug)]
pub struct Lookups {
    under_way: Mutex<HashMap<Arc<str>, Seats>>,
}

#[derive(Debug)]
struct Seats {
    flight: Arc<Lookup>,
    /// How many wait for it. At zero it is not here any more.
    askers: usize,
}

/// What a lookup and those who wait for it share.
#[derive(Debug)]
struct Lookup {
    host: Arc<str>,
    found: OnceLock<Result<Arc<[SocketAddr]>, Arc<io::Error>>>,
    /// When something was found.
    landed: Event,
    source: StopSource,
}

/// One who waits. When it is dropped, it does not any more.
#[derive(Debug)]
pub struct LookupWaiter {
    flights: Arc<Lookups>,
    flight: Arc<Lookup>,
}

/// The side of the lookup itself, which owes an answer: if it is dropped without one, those who wait are told so.
#[derive(Debug)]
pub struct LookupRun {
    flights: Arc<Lookups>,
    flight: Arc<Lookup>,
}

impl Default for Lookups {
    /// None is under way.
    fn default() -> Self {
        Self { under_way: Mutex::new(HashMap::new()) }
    }
}

impl Lookups {
    fn lock(&self) -> MutexGuard<'_, HashMap<Arc<str>, Seats>> {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the lookup of this host with others; the first is to start it.
    pub fn join(self: &Arc<Self>, host: &str) -> (LookupWaiter, Option<LookupRun>) {
        let mut under_way = self.lock();
        if let Some(seats) = under_way.get_mut(host) {
            seats.askers += 1;
            return (LookupWaiter { flights: self.clone(), flight: seats.flight.clone() }, None);
        }
        let flight = Arc::new(Lookup {
            host: host.into(),
            found: OnceLock::new(),
            landed: Event::new(),
            source: StopSource::new(),
        });
        under_way.insert(flight.host.clone(), Seats { flight: flight.clone(), askers: 1 });
        let pilot = LookupRun { flights: self.clone(), flight: flight.clone() };
        (LookupWaiter { flights: self.clone(), flight }, Some(pilot))
    }

    /// Whoever asks for its name from now on starts another.
    fn remove(under_way: &mut HashMap<Arc<str>, Seats>, flight: &Arc<Lookup>) {
        if under_way.get(&flight.host).is_some_and(|seats| Arc::ptr_eq(&seats.flight, flight)) {
            under_way.remove(&flight.host);
        }
    }
}

impl LookupWaiter {
    /// Waits for what is found. Stopped, if a stop is asked for.
    pub async fn found(&self) -> io::Result<Vec<SocketAddr>> {
        self.flight.landed.wait().await;
        match self.flight.found.get().expect("it has landed") {
            Ok(addresses) => Ok(addresses.to_vec()),
            Err(error) => Err(LookupError::new(self.flight.host.clone(), error.clone()).into()),
        }
    }
}

impl Drop for LookupWaiter {
    fn drop(&mut self) {
        let mut under_way = self.flights.lock();
        let Some(seats) = under_way.get_mut(&self.flight.host) else { return };
        if !Arc::ptr_eq(&seats.flight, &self.flight) {
            return;
        }
        seats.askers -= 1;
        if seats.askers == 0 {
            Lookups::remove(&mut under_way, &self.flight);
            drop(under_way);
            // What a callback of the lookup throws has been reported by the panic hook, and is no business of who leaves.
            let _ = Panic::catch(|| self.flight.source.request_stop(StopReason::Abandoned));
        }
    }
}

impl LookupRun {
    /// What is to be looked up.
    pub fn host(&self) -> Arc<str> {
        self.flight.host.clone()
    }

    /// Asked to stop when nobody waits any more.
    pub fn stop_token(&self) -> StopToken {
        self.flight.source.token()
    }

    /// This was found.
    pub fn land(self, found: io::Result<Vec<SocketAddr>>) {
        self.tell(found);
    }

    fn tell(&self, found: io::Result<Vec<SocketAddr>>) {
        // The first counts: after `land` there is nothing left to say.
        if self.flight.found.set(found.map(Arc::from).map_err(Arc::new)).is_ok() {
            Lookups::remove(&mut self.flights.lock(), &self.flight);
            // A waker of those who wait may throw, and we may be here because the lookup did.
            let _ = Panic::catch(|| self.flight.landed.set());
        }
    }
}

impl Drop for LookupRun {
    fn drop(&mut self) {
        if self.flight.found.get().is_none() {
            let has_panicked = std::thread::panicking();
            self.tell(Err(if has_panicked {
                io::Error::other("whoever was asked panicked")
            } else {
                shut_down()
            }));
        }
    }
}

#[cfg(all(test, not(feature = "loom")))]
mod tests {
    use core::future::Future;
    use core::pin::pin;
    use core::task::{Context, Poll, Waker};
    use std::task::Wake;

    use super::*;

    struct Throws;

    impl Wake for Throws {
        fn wake(self: Arc<Self>) {
            panic!("thrown by a waker");
        }
    }

    fn begun() -> (LookupWaiter, LookupRun) {
        let (asker, pilot) = Arc::new(Lookups::default()).join("host");
        (asker, pilot.expect("it is the first"))
    }

    #[test]
    fn a_stop_callback_of_a_lookup_that_panics_does_not_reach_who_leaves() {
        let (asker, pilot) = begun();
        let callback = Box::pin(pilot.stop_token().on_stop(|_| panic!("thrown by a callback")));
        callback.as_ref().register();
        // He leaves because of a panic of his own: a second one would end the process.
        let left = Panic::catch(move || {
            let _asker = asker;
            panic!("one panic");
        });
        assert_eq!(left.unwrap_err().message(), "one panic");
        assert!(pilot.stop_token().stop_requested());
    }

    #[test]
    fn a_waker_that_panics_does_not_reach_a_lookup_that_has_panicked() {
        let (asker, pilot) = begun();
        let mut found = pin!(asker.found());
        let waker = Waker::from(Arc::new(Throws));
        assert!(found.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        let flown = Panic::catch(move || {
            let _pilot = pilot;
            panic!("one panic");
        });
        assert_eq!(flown.unwrap_err().message(), "one panic");
        let Poll::Ready(Err(error)) = found.poll(&mut Context::from_waker(Waker::noop())) else {
            panic!("who waits is told");
        };
        assert!(error.to_string().contains("panicked"));
    }
}
