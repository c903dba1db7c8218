//! Actions on the clocks of hosts: jumps while a program runs.

use core::time::Duration;

use super::Sim;
use super::host::nanoseconds;
use crate::clock::Clock;

impl Sim {
    /// Moves the clock of a host forward at once, as when a virtual machine was paused and goes on: both the
    /// monotonic time (`convoke::time::now`, sleeps, timeouts, deadlines) and the time of day
    /// (`convoke::time::time_of_day`). Timers that are due by the new time fire at once. The time of the
    /// simulation and of the other hosts stays, so that leases and timeouts of this host end early.
    ///
    /// The monotonic time of a host never goes back, in a simulation as on every real system, because
    /// `Instant` promises that. [`step_time_of_day_back`](Sim::step_time_of_day_back) moves only the time of
    /// day. The clock keeps its lead when the host restarts.
    ///
    /// ```
    /// use std::time::Duration;
    /// use convoke::prelude::*;
    /// use convoke::sim::Sim;
    ///
    /// let mut sim = Sim::new(1);
    /// sim.host("sleeper").run(|| async { sleep(Duration::from_secs(3600)).await });
    /// sim.at(Duration::from_secs(1), |sim| {
    ///     sim.jump_clock("sleeper", Duration::from_secs(3600));
    /// });
    /// assert_eq!(sim.run().elapsed(), Duration::from_secs(1));
    /// ```
    ///
    /// # Panics
    /// If there is no host of this name.
    #[track_caller]
    pub fn jump_clock(&mut self, name: &str, ahead: Duration) {
        self.change_clock(name, &format!("jumps ahead by {ahead:?}"), |clock| {
            clock.ahead = clock.ahead.saturating_add(nanoseconds(ahead));
        });
    }

    /// Moves the time of day of a host forward at once, as an administrator or a time server does. Sleeps,
    /// timeouts and `convoke::time::now` do not change.
    ///
    /// # Panics
    /// If there is no host of this name.
    #[track_caller]
    pub fn step_time_of_day_ahead(&mut self, name: &str, by: Duration) {
        self.change_clock(name, &format!("shows a time of day that is {by:?} later"), |clock| {
            clock.day_ahead = clock.day_ahead.saturating_add(nanoseconds(by));
        });
    }

    /// Moves the time of day of a host back at once, as an administrator or a time server does. Sleeps,
    /// timeouts and `convoke::time::now` do not change.
    ///
    /// ```
    /// use std::time::Duration;
    /// use convoke::prelude::*;
    /// use convoke::sim::Sim;
    /// use convoke::time::time_of_day;
    ///
    /// let mut sim = Sim::new(1);
    /// sim.host("logger").run(|| async {
    ///     let before = time_of_day();
    ///     sleep(Duration::from_secs(2)).await;
    ///     assert!(time_of_day() < before, "a program must not rely on the order of dates");
    /// });
    /// sim.at(Duration::from_secs(1), |sim| {
    ///     sim.step_time_of_day_back("logger", Duration::from_secs(10));
    /// });
    /// sim.run();
    /// ```
    ///
    /// # Panics
    /// If there is no host of this name.
    #[track_caller]
    pub fn step_time_of_day_back(&mut self, name: &str, by: Duration) {
        self.change_clock(name, &format!("shows a time of day that is {by:?} earlier"), |clock| {
            clock.day_ahead = clock.day_ahead.saturating_sub(nanoseconds(by));
        });
    }

    #[track_caller]
    fn change_clock(&mut self, name: &str, what: &str, change: impl FnOnce(&mut Clock)) {
        let host = self.find(name);
        self.world.with(|state| {
            change(&mut state.host(host).clock);
            state.note_break(format!("{name}: its clock {what}"));
            // Its loop finds out which timers are due, and when the next one is.
            state.mark_ready(host);
        });
    }
}
