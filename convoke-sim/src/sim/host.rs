//! The settings of a host: its program, its clock and its limits.

use core::fmt;
use core::future::Future;
use core::panic::Location;
use core::time::Duration;

use super::{Sim, Verdict};
use crate::clock::Clock;
use crate::world::HostId;

/// A builder that sets the program, clock and limits of a host, returned by [`Sim::host`].
pub struct HostBuilder<'a> {
    sim: &'a mut Sim,
    host: HostId,
}

impl<'a> HostBuilder<'a> {
    pub(super) fn new(sim: &'a mut Sim, host: HostId) -> Self {
        Self { sim, host }
    }

    /// Sets its program. It is called at the start of the simulation and at each restart of the host. The run
    /// fails if the program returns an error or panics. If the host is running already, the new program is
    /// used from its next start.
    ///
    /// The program's sockets, timers and tasks belong to this host.
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

    /// Sets a program that gets a clone of `shared` at each start, such as a disk or state of the test.
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

    /// Makes the host a daemon: it is requested to stop when the programs of all other hosts have ended.
    pub fn daemon(self) -> Self {
        self.sim.programs[self.host.0].daemon = true;
        self
    }

    /// Sets its clock ahead of the simulated time. Clocks and memory must be set before the host starts;
    /// [`Sim::jump_clock`] changes the clock of a running host.
    pub fn clock_ahead(self, by: Duration) -> Self {
        self.set_clock(|clock| clock.ahead = nanoseconds(by))
    }

    /// Sets its clock behind the simulated time. Must be set before the host starts.
    pub fn clock_behind(self, by: Duration) -> Self {
        self.set_clock(|clock| clock.ahead = -nanoseconds(by))
    }

    /// Sets the speed of its clock. 1.0 is exact; at 1.5, a sleep of three seconds takes two. Must be set
    /// before the host starts.
    ///
    /// # Panics
    /// If `rate` is not greater than zero.
    pub fn clock_rate(self, rate: f64) -> Self {
        assert!(rate > 0.0, "the rate of a clock must be greater than zero");
        let millionths = ((rate - 1.0) * 1e6).round() as i64;
        self.set_clock(|clock| clock.too_fast = millionths.max(-999_999))
    }

    fn set_clock(self, set: impl FnOnce(&mut Clock)) -> Self {
        self.sim.world.with(|state| set(&mut state.host(self.host).clock));
        self
    }

    /// Sets the maximum number of open sockets. Opening or accepting another one fails.
    pub fn descriptors(self, most: usize) -> Self {
        self.sim.world.with(|state| state.host(self.host).limits.descriptors = most);
        self
    }

    /// Sets the number of unread bytes that its sockets buffer. A small window makes a slow reader block its
    /// sender. The default is 64 KiB.
    pub fn receive_window(self, bytes: usize) -> Self {
        self.sim.world.with(|state| state.host(self.host).limits.window = bytes);
        self
    }

    /// Sets the number of bytes for the frames of its tasks. Spawning a task that does not fit fails as with
    /// any frame allocator without memory. Must be set before the host starts.
    pub fn memory(self, bytes: usize) -> Self {
        self.sim.programs[self.host.0].memory = Some(bytes);
        self
    }
}

pub(super) fn nanoseconds(duration: Duration) -> i64 {
    duration.as_nanos().try_into().unwrap_or(i64::MAX)
}

impl fmt::Debug for HostBuilder<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostBuilder").field("name", &self.sim.programs[self.host.0].name).finish()
    }
}
