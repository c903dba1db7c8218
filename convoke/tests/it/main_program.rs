//! Programs that end: by themselves, by an error, by a signal, by a second signal, by a clean-up that takes
//! too long. Each is this test binary, started once more.
#![cfg(all(feature = "net", unix))]
#![allow(unsafe_code)]

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use convoke::Executor;
use convoke::alloc::{Bounded, FrameAllocator};
use convoke::driver::with_services;
use convoke::executor::Service;
use convoke::net::resolver::HostTable;
use convoke::prelude::*;
use convoke::runtime::{self, ENDED_HARD, Main};
use convoke::sender::prelude::*;
use convoke::signal::{Signal, signals};
use convoke::task::forever;

/// The variable that selects the program of this process.
const ROLE: &str = "CONVOKE_TEST_ROLE";

#[test]
fn the_program() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let main = Main::new().contexts(2).pool_threads(1);
    // For programs that a second signal ends hard: it need not come later than an interval.
    let at_once = || main.clone().second_signal_after(Duration::ZERO);
    match role.as_str() {
        "returns" => main.run(async || println!("\nready")),
        "cleans up" => main.run(async || waits_and_cleans_up(false).await),
        "hangs" => at_once().run(async || waits_and_cleans_up(true).await),
        "takes too long" => main.grace_seconds(0).run(async || waits_and_cleans_up(true).await),
        "has a service" => main.run(async || waits_with_a_service(false).await),
        "has a service that hangs" => at_once().run(async || waits_with_a_service(true).await),
        "panics" => at_once().run(async || panics_with_a_service().await),
        "blocks when it is asked to stop" => at_once().run(async || blocks_when_it_is_asked_to_stop().await),
        "reloads" => main.run(async || reloads().await),
        "has all options" => has_all_options(main),
        "starves others" => main.run(async || starves_others().await),
        "goes on after a stop" => main.run(async || goes_on_after_a_stop().await),
        other => panic!("there is no program `{other}`"),
    }
}

/// An interval of a millisecond with more work than that: it is always due, and never waits.
async fn starves_others() {
    let mut ticks = convoke::time::interval(Duration::from_millis(1));
    println!("\nready");
    loop {
        ticks.tick().await;
        let until = std::time::Instant::now() + Duration::from_micros(1500);
        while std::time::Instant::now() < until {
            std::hint::spin_loop();
        }
    }
}

/// Prints that it is ready, waits forever, and cleans up, which may take forever, too.
async fn waits_and_cleans_up(hangs: bool) {
    scope(async |s| {
        s.named("the child").spawn(ensure(
            async move |_| {
                println!("\ncleaning up");
                if hangs {
                    std::future::pending::<()>().await;
                }
                checkpoint().await;
                println!("cleaned up");
            },
            async {
                println!("\nready");
                never::<()>().await;
            },
        ));
    })
    .await;
}

/// A service that says goodbye when it closes, or hangs.
struct SaysGoodbye {
    hangs: bool,
}

impl Service for SaysGoodbye {
    type Interface = Self;

    fn into_interface(self: Arc<Self>) -> Arc<Self> {
        self
    }

    async fn close(&self) {
        println!("\nclosing");
        if self.hangs {
            std::future::pending::<()>().await;
        }
        checkpoint().await;
        println!("closed");
    }
}

async fn waits_with_a_service(hangs: bool) {
    with_services(|services| services.make_service(|_| SaysGoodbye { hangs }).is_ok()).unwrap();
    scope(async |s| {
        // Said when the first task waits.
        s.spawn(async { println!("\nready") });
        forever().await
    })
    .await;
}

async fn panics_with_a_service() {
    with_services(|services| services.make_service(|_| SaysGoodbye { hangs: true }).is_ok()).unwrap();
    println!("\nready");
    panic!("on purpose");
}

/// Blocks the thread that requests it to stop, forever.
async fn blocks_when_it_is_asked_to_stop() {
    let blocks = |_| {
        println!("\nblocking");
        loop {
            std::thread::park();
        }
    };
    let callback = std::pin::pin!(convoke::env::current::stop_token().on_stop(blocks));
    callback.as_ref().register();
    println!("\nready");
    forever().await;
}

/// Reloads on a signal, and ends when it is requested to stop.
async fn reloads() {
    let mut reloads = signals([Signal::HANGUP]).unwrap();
    println!("\nready");
    loop {
        println!("\nreloaded at {}", reloads.next().await);
    }
}

/// Has every option of the builder.
fn has_all_options(main: Main) {
    let hosts = HostTable::new().with("database", [10, 0, 0, 5]);
    let frames = FrameAllocator::new(Bounded::new(1 << 20));
    let main = main.contexts(1).pool_threads(3).blocking_threads(2).spin(Duration::ZERO).names(hosts);
    main.allocator(frames.clone()).grace(Duration::from_millis(1500)).run(async || {
        let runtime = runtime::current().unwrap();
        assert_eq!((runtime.contexts().len(), runtime.pool().parallelism()), (1, 3));
        assert!(runtime.contexts()[0].allocator() == frames && runtime.pool().allocator() == frames);
        let found = convoke::net::resolve("database:1").await.unwrap();
        assert_eq!(found, ["10.0.0.5:1".parse().unwrap()]);
        println!("\nready");
    });
}

/// Falls into the trap: after the stop it awaits once more, outside of any clean-up.
async fn goes_on_after_a_stop() {
    println!("\nready");
    if catch_stopped(forever()).await.is_err() {
        sleep(Duration::from_millis(1)).await;
        unreachable!("the task is still asked to stop");
    }
}

struct Program {
    process: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Program {
    fn start(role: &str) -> Self {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "main_program::the_program", "--nocapture"])
            .env(ROLE, role)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let mut this = Self { process, lines };
        this.wait_for("ready");
        this
    }

    fn wait_for(&mut self, line: &str) {
        let found = self.lines.by_ref().any(|found| found.unwrap() == line);
        assert!(found, "the program ended without `{line}`");
    }

    fn signal(&self, signal: i32) {
        // SAFETY: the process is our child and has not been waited for, so its id is still its own.
        assert_eq!(unsafe { libc::kill(self.process.id().try_into().unwrap(), signal) }, 0);
    }

    /// Returns its exit status and its error output.
    fn end(mut self) -> (Option<i32>, String) {
        let mut said = String::new();
        self.process.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        (self.process.wait().unwrap().code(), said)
    }
}

#[test]
fn a_program_that_returns_ends_well() {
    assert_eq!(Program::start("returns").end().0, Some(0));
}

#[test]
fn a_signal_has_it_clean_up_and_the_status_tells_which() {
    for (signal, status) in [(libc::SIGINT, 130), (libc::SIGTERM, 143)] {
        let mut program = Program::start("cleans up");
        program.signal(signal);
        program.wait_for("cleaned up");
        assert_eq!(program.end().0, Some(status));
    }
}

#[test]
fn a_signal_is_heard_beside_a_timer_that_is_always_due() {
    let program = Program::start("starves others");
    program.signal(libc::SIGTERM);
    assert_eq!(program.end().0, Some(143));
}

#[test]
fn a_program_that_was_stopped_says_by_what_and_where_it_waited() {
    let program = Program::start("has a service");
    program.signal(libc::SIGINT);
    let (status, said) = program.end();
    assert_eq!(status, Some(130), "{said}");
    let line =
        said.lines().find(|line| line.starts_with("convoke: the program was stopped by SIGINT")).unwrap();
    assert!(line.contains("; it waited at convoke/tests/it/main_program.rs:"), "{line}");
    let program = Program::start("cleans up");
    program.signal(libc::SIGTERM);
    let (_, said) = program.end();
    assert!(said.contains("stopped by SIGTERM") && said.contains("with 1 other task"), "{said}");
}

#[test]
fn several_signals_at_once_are_one_request() {
    // CONVOKE_ROUNDS=150 is what was tried when it did not hold.
    let rounds = std::env::var("CONVOKE_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(5);
    for _ in 0..rounds {
        let mut program = Program::start("cleans up");
        for signal in [libc::SIGTERM, libc::SIGTERM, libc::SIGINT, libc::SIGTERM] {
            program.signal(signal);
        }
        program.wait_for("cleaned up");
        let (status, said) = program.end();
        assert!(matches!(status, Some(143 | 130)), "{status:?}: {said}");
        assert!(!said.contains("ended hard"), "{said}");
    }
}

#[test]
fn a_signal_during_the_clean_up_that_belongs_to_the_first_one_cuts_nothing_short() {
    let mut program = Program::start("cleans up");
    program.signal(libc::SIGTERM);
    program.wait_for("cleaning up");
    // The process may have ended already: it is a zombie then, and the signal does nothing.
    program.signal(libc::SIGTERM);
    program.wait_for("cleaned up");
    assert_eq!(program.end().0, Some(143));
}

#[test]
fn a_hard_end_has_a_status_of_its_own() {
    const { assert!(ENDED_HARD < 124, "124 is that of `timeout`, and shells use those above") };
    assert!(![0, 1, 2, 101].contains(&ENDED_HARD));
}

#[test]
fn the_program_has_every_option_of_the_builder() {
    let (status, said) = Program::start("has all options").end();
    assert_eq!(status, Some(0), "{said}");
}

/// The test above sets what its author knew. This one knows what there is.
#[test]
fn main_has_a_setter_for_each_of_the_builder() {
    fn setters(source: &str) -> Vec<&str> {
        let functions = source.split("pub fn ").skip(1).filter_map(|rest| rest.split_once('('));
        let setters = functions.filter(|(_, rest)| rest.starts_with("mut self, "));
        setters.map(|(name, _)| name.split('<').next().unwrap()).collect()
    }
    let builder = setters(include_str!("../../src/runtime/builder.rs"));
    let main = setters(include_str!("../../src/runtime/main_entry.rs"));
    assert!(builder.len() >= 6, "{builder:?}");
    let missing: Vec<_> = builder.iter().filter(|name| !main.contains(name)).collect();
    assert!(missing.is_empty(), "`Main` has no {missing:?}");
}

#[test]
fn an_await_after_a_caught_stop_that_is_stopped_again_is_said() {
    let program = Program::start("goes on after a stop");
    program.signal(libc::SIGTERM);
    let (status, said) = program.end();
    assert_eq!(status, Some(143), "{said}");
    let hint = said.lines().find(|line| line.contains("`catch_stopped`")).expect("there is a hint");
    assert!(hint.contains("shield") && hint.contains("ensure"), "{hint}");
}

#[test]
fn a_second_signal_ends_it_hard_and_names_what_still_runs() {
    let mut program = Program::start("hangs");
    program.signal(libc::SIGTERM);
    program.wait_for("cleaning up");
    program.signal(libc::SIGINT);
    let (status, said) = program.end();
    assert_eq!(status, Some(i32::from(ENDED_HARD)), "{said}");
    assert!(said.contains("SIGINT came after SIGTERM") && said.contains("`the child`"), "{said}");
    assert!(
        said.contains("task (convoke/tests/it/main_program.rs"),
        "the first task is where the program is: {said}"
    );
}

#[test]
fn a_stop_callback_that_blocks_keeps_no_second_signal_from_ending_it_hard() {
    let mut program = Program::start("blocks when it is asked to stop");
    program.signal(libc::SIGTERM);
    program.wait_for("blocking");
    program.signal(libc::SIGINT);
    let (status, said) = program.end();
    assert_eq!(status, Some(i32::from(ENDED_HARD)), "{said}");
    assert!(said.contains("SIGINT came after SIGTERM"), "{said}");
}

#[test]
fn a_clean_up_that_takes_too_long_ends_it_hard() {
    let program = Program::start("takes too long");
    program.signal(libc::SIGTERM);
    let (status, said) = program.end();
    assert_eq!(status, Some(i32::from(ENDED_HARD)), "{said}");
    assert!(said.contains("not everything had ended") && said.contains("`the child`"), "{said}");
}

#[test]
fn services_close_after_a_signal_before_the_program_ends() {
    let mut program = Program::start("has a service");
    program.signal(libc::SIGTERM);
    program.wait_for("closed");
    assert_eq!(program.end().0, Some(143));
}

#[test]
fn a_service_that_does_not_close_is_named_when_a_second_signal_ends_the_program_hard() {
    let mut program = Program::start("has a service that hangs");
    program.signal(libc::SIGTERM);
    program.wait_for("closing");
    program.signal(libc::SIGTERM);
    let (status, said) = program.end();
    assert_eq!(status, Some(i32::from(ENDED_HARD)), "{said}");
    assert!(said.contains("SIGTERM came after SIGTERM") && said.contains("SaysGoodbye`"), "{said}");
}

#[test]
fn a_program_that_panics_is_ended_hard_by_signals_while_its_services_close() {
    let mut program = Program::start("panics");
    program.wait_for("closing");
    program.signal(libc::SIGTERM);
    program.signal(libc::SIGINT);
    let (status, said) = program.end();
    assert_eq!(status, Some(i32::from(ENDED_HARD)), "{said}");
    assert!(said.contains("on purpose") && said.contains("SaysGoodbye`"), "{said}");
}

#[test]
fn a_program_hears_of_its_own_signals_and_still_stops_by_the_usual_ones() {
    let mut program = Program::start("reloads");
    for _ in 0..2 {
        program.signal(libc::SIGHUP);
        program.wait_for("reloaded at SIGHUP");
    }
    program.signal(libc::SIGINT);
    assert_eq!(program.end().0, Some(130));
}
