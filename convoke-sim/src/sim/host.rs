//! What a host is like: its program, its clock, and how much it may have.

use core::fmt;
use core::future::Future;
use core::panic::Location;
use core::time::Duration;

use super::{Sim, Verdict};
use crate::world::HostId;

/// Says what a host is like, and what runs there: see [`Sim::host`].
pub struct HostBuilder<'a> {
    sim: &'a mut Sim,
    host: HostId,
}

impl<'a> HostBuilder<'a> {
    pub(super) fn new(sim: &'a mut Sim, host: HostId) -> Self {
        Self { sim, host }
    }

    /// Its program: called when the simulation begins, and each time that the host is started again. The run has failed if it
    /// returns an error or panics. A host that is given another one while it runs has that from its next start.
    ///
    /// Sockets, timers and tasks in it are the host's own.
    #[track_caller]
    pub fn run<F, P>(self, program: F) -> Self
    where
        F: FnMut() -> P + 'static,
        P: Future<Output: Verdict> + Send + 'static,
    {
        self.sim.programs[self.host.0].set(Location::caller(), program);
        if self.sim.running {
            self.sim.start_if_idle(self.host);
        }
        self
    }

    /// The same for a program that shares something with the test or with its next lives: each start has a clone of it.
    ///
    /// ```
    /// use convoke::sim::{Disk, Sim};
    ///
    /// async fn server(starts: Disk<u32>) -> std::io::Result<()> {
    ///     starts.write(|starts| *starts += 1);
    ///     starts.sync().await
    /// }
    ///
    /// let mut sim = Sim::new(1);
    /// let disk = sim.disk("server", 0);
    /// sim.host("server").run_with(disk.clone(), server);
    /// sim.run();
    /// disk.read(|starts| assert_eq!(*starts, 1));
    /// ```
    #[track_caller]
    pub fn run_with<S, F, P>(self, shared: S, mut program: F) -> Self
    where
        S: Clone + 'static,
        F: FnMut(S) -> P + 'static,
        P: Future<Output: Verdict> + Send + 'static,
    {
        self.run(move || program(shared.clone()))
    }

    /// It serves the others: it is asked to stop when the programs of all hosts that are no daemons have ended.
    pub fn daemon(self) -> Self {
        self.sim.programs[self.host.0].daemon = true;
        self
    }

    /// Its clock shows a later time than the world's. Said before it starts, as is all about clocks and memory.
    pub fn clock_ahead(self, by: Duration) -> Self {
        self.sim.programs[self.host.0].clock.ahead = nanoseconds(by);
        self
    }

    /// Its clock shows an earlier time than the world's.
    pub fn clock_behind(self, by: Duration) -> Self {
        self.sim.programs[self.host.0].clock.ahead = -nanoseconds(by);
        self
    }

    /// How fast its clock runs: 1.0 is right; by one that runs at 1.5, a sleep of three seconds is over after two.
    ///
    /// # Panics
    /// If it is not more than zero.
    pub fn clock_rate(self, rate: f64) -> Self {
        assert!(rate > 0.0, "a clock that does not run reaches no time");
        let millionths = ((rate - 1.0) * 1e6).round() as i64;
        self.sim.programs[self.host.0].clock.too_fast = millionths.max(-999_999);
        self
    }

    /// How many sockets it may have open at a time. To open or accept one more is an error.
    pub fn descriptors(self, most: usize) -> Self {
        self.sim.world.with(|state| state.host(self.host).limits.descriptors = most);
        self
    }

    /// How many bytes its sockets take in before they are read: a small one makes a slow reader felt. 64 KiB if nothing is
    /// said.
    pub fn receive_window(self, bytes: usize) -> Self {
        self.sim.world.with(|state| state.host(self.host).limits.window = bytes);
        self
    }

    /// How many bytes there are for the frames of its tasks. To spawn a task that does not fit fails as it does with any frame
    /// allocator that has no memory left.
    pub fn memory(self, bytes: usize) -> Self {
        self.sim.programs[self.host.0].memory = Some(bytes);
        self
    }
}

fn nanoseconds(duration: Duration) -> i64 {
    duration.as_nanos().try_into().unwrap_or(i64::MAX)
}

impl fmt::Debug for HostBuilder<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostBuilder").field("name", &self.sim.programs[self.host.0].name).finish()
    }
}
