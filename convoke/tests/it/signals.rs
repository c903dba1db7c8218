//! Signals that tasks wait for: of this process, which raises them itself, and of simulated hosts.
#![cfg(all(feature = "net", unix))]

use std::io;
use std::sync::mpsc;
use std::thread;

use convoke::driver::IO;
use convoke::driver::io_context;
use convoke::executor::InlineExecutor;
use convoke::prelude::*;
use convoke::sender::prelude::*;
use convoke::signal::{Signal, SignalService, ctrl_c, raise, signals};

#[test]
fn all_who_subscribed_hear_of_a_signal() {
    let context = io_context().unwrap();
    let heard = context.block_on(async {
        let (mut one, mut other) = (signals([Signal::USER_1])?, signals([Signal::USER_2, Signal::USER_1])?);
        raise(Signal::USER_1)?;
        io::Result::Ok(join((one.next(), other.next())).await)
    });
    assert_eq!(heard.unwrap().unwrap(), (Signal::USER_1, Signal::USER_1));
}

#[test]
fn what_comes_between_two_calls_is_heard_by_the_second() {
    let context = io_context().unwrap();
    let heard = context.block_on(async {
        let (mut these, mut both) = (signals([Signal::HANGUP])?, signals([Signal::HANGUP, Signal::USER_1])?);
        let mut heard = Vec::new();
        for signal in [Signal::HANGUP, Signal::USER_1, Signal::HANGUP] {
            raise(signal)?;
            heard.push(both.next().await);
        }
        // This subscription was not polled meanwhile.
        heard.push(these.next().await);
        io::Result::Ok((heard, these.try_next()))
    });
    let heard = heard.unwrap().unwrap();
    assert_eq!(heard.0, [Signal::HANGUP, Signal::USER_1, Signal::HANGUP, Signal::HANGUP]);
    assert_eq!(heard.1, None, "the same signal twice is one if nobody has asked meanwhile");
}

#[test]
fn a_task_that_waits_for_ctrl_c_can_be_stopped_and_the_next_one_hears_of_it() {
    let context = io_context().unwrap();
    let outcome = context.block_on(async {
        let winner = race((async { ctrl_c().await.map(|()| "pressed") }, async { Ok("stopped") })).await?;
        assert_eq!(winner, "stopped");
        let pressed = ctrl_c();
        raise(Signal::INTERRUPT)?;
        pressed.await
    });
    outcome.unwrap().unwrap();
}

#[test]
fn a_task_on_the_pool_hears_by_the_context_that_it_names() {
    let (context, pool) = (io_context().unwrap(), ThreadPool::new(1).unwrap());
    let launched = launch(&pool.executor()).local(&IO, context.executor()).start(async {
        let mut these = signals([Signal::USER_2])?;
        raise(Signal::USER_2)?;
        io::Result::Ok(these.next().await)
    });
    // The context does not run: signals do not come through its driver.
    assert_eq!(launched.wait().unwrap().unwrap(), Signal::USER_2);
}

#[test]
fn signals_that_cannot_be_heard_of_are_errors_that_name_them() {
    let context = io_context().unwrap();
    let service = context.services().use_service::<SignalService>();
    for (wanted, named) in [
        (vec![9], "signal 9"),
        (vec![Signal::HANGUP.number(), 0], "signal 0"),
        (vec![4000], "4000"),
        (vec![], "no signal"),
    ] {
        let error = service.subscribe(wanted.into_iter().map(Signal::new)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        assert!(error.to_string().contains(named), "{error}");
    }
}

#[test]
fn a_subscription_outlives_its_context_and_a_new_context_hears_as_the_first_did() {
    let first = io_context().unwrap();
    let service = first.services().use_service::<SignalService>();
    let mut these = service.subscribe([Signal::USER_1]).unwrap();
    drop(first);
    assert_eq!(service.subscribe([Signal::USER_1]).unwrap_err().kind(), io::ErrorKind::NotConnected);
    service.raise(Signal::USER_1).unwrap();
    assert_eq!(sync_wait(task(async move { these.next().await })), Outcome::Value(Signal::USER_1));
    // The signal thread has ended with the last subscription; another one is started.
    let second = io_context().unwrap();
    let heard = second.block_on(async {
        let mut these = signals([Signal::USER_1])?;
        raise(Signal::USER_1)?;
        io::Result::Ok(these.next().await)
    });
    assert_eq!(heard.unwrap().unwrap(), Signal::USER_1);
}

/// Without its own executor a task continues on the signal thread, which the service joins at its end.
#[test]
fn one_who_has_heard_may_ask_the_service_for_more_while_it_ends() {
    let context = io_context().unwrap();
    let service = context.services().use_service::<SignalService>();
    let mut these = service.subscribe([Signal::USER_1]).unwrap();
    let (hears, heard) = mpsc::channel();
    let asks = service.clone();
    let launched = launch(&InlineExecutor).start(async move {
        these.next().await;
        drop(these);
        hears.send(()).unwrap();
        while asks.subscribe([Signal::USER_1]).is_ok() {
            thread::yield_now();
        }
    });
    service.raise(Signal::USER_1).unwrap();
    heard.recv().unwrap();
    drop(context);
    assert_eq!(launched.wait(), Outcome::Value(()));
}

#[test]
fn a_signal_that_nobody_hears_of_any_more_does_nothing() {
    let context = io_context().unwrap();
    let service = context.services().use_service::<SignalService>();
    // Without a subscription this signal would end the process.
    drop(service.subscribe([Signal::ALARM]).unwrap());
    service.raise(Signal::ALARM).unwrap();
    drop(service);
    drop(context);
    // The same holds when there is no subscription left and the signal thread has ended.
    let context = io_context().unwrap();
    let heard = context.block_on(async {
        raise(Signal::ALARM)?;
        let mut next = signals([Signal::USER_1])?;
        raise(Signal::USER_1)?;
        io::Result::Ok(next.next().await)
    });
    assert_eq!(heard.unwrap().unwrap(), Signal::USER_1);
}

#[test]
fn a_program_that_is_started_takes_its_signals_as_it_always_does() {
    use std::os::unix::process::ExitStatusExt;

    let context = io_context().unwrap();
    let _hears = context.services().use_service::<SignalService>().subscribe([Signal::ALARM]).unwrap();
    let ended = std::process::Command::new("sh").args(["-c", "kill -ALRM $$"]).status().unwrap();
    assert_eq!(ended.signal(), Some(Signal::ALARM.number()));
}

#[test]
fn without_a_context_there_are_no_signals_and_the_error_says_so() {
    let error = sync_wait(task(async { signals([Signal::USER_1]).map(drop) })).unwrap().unwrap_err();
    assert!(error.to_string().contains("there is no I/O context here"), "{error}");
}

#[cfg(feature = "sim")]
mod simulated {
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    use convoke::sim::{Ending, Sim, explore_host_stops, simulate};

    use super::*;

    #[test]
    fn a_signal_comes_once_until_it_is_asked_for_and_in_order() {
        let heard = simulate(1, async {
            let mut these = signals([Signal::USER_1, Signal::USER_2, Signal::HANGUP])?;
            for signal in [Signal::USER_2, Signal::USER_1, Signal::USER_2, Signal::QUIT] {
                raise(signal)?;
            }
            let first = [these.next().await, these.next().await];
            assert_eq!((first, these.try_next()), ([Signal::USER_2, Signal::USER_1], None));
            // A stopped wait takes no signal, also if it would not have to wait.
            raise(Signal::HANGUP)?;
            race((async {}, async { panic!("it has heard of {}", these.next().await) })).await;
            assert_eq!(these.next().await, Signal::HANGUP);
            io::Result::Ok(())
        });
        heard.unwrap();
    }

    /// Counts its reload signals until it is requested to stop.
    async fn server(reloads: Arc<Mutex<Vec<Signal>>>) -> io::Result<()> {
        let mut these = signals([Signal::HANGUP, Signal::TERMINATE])?;
        loop {
            let heard = these.next().await;
            reloads.lock().unwrap().push(heard);
        }
    }

    #[test]
    fn the_signals_of_a_simulated_host_are_its_own_and_sigterm_stops_its_program() {
        let (one, other) = <(Arc<Mutex<Vec<_>>>, Arc<Mutex<Vec<_>>>)>::default();
        let mut sim = Sim::new(1);
        let (for_one, for_other) = (one.clone(), other.clone());
        sim.host("one").run(move || server(for_one.clone()));
        sim.host("other").daemon().run(move || server(for_other.clone()));
        for second in 1..=3 {
            sim.at(Duration::from_secs(second), |sim| sim.raise("one", Signal::HANGUP));
        }
        sim.at(Duration::from_secs(4), |sim| sim.raise("one", Signal::TERMINATE));
        let report = sim.run();
        assert_eq!(report.elapsed(), Duration::from_secs(4));
        assert_eq!(report.host("one").unwrap().ending(), &Ending::Stopped);
        assert_eq!(*one.lock().unwrap(), [Signal::HANGUP; 3], "the stop was first");
        assert!(other.lock().unwrap().is_empty());
    }

    #[test]
    fn a_program_that_waits_for_signals_ends_wherever_it_is_stopped() {
        let exploration = explore_host_stops(1, "one", |sim| {
            sim.host("one").run(|| async {
                let (mut these, mut those) = (signals([Signal::HANGUP])?, signals([Signal::HANGUP])?);
                join((these.next(), those.next())).await;
                io::Result::Ok(())
            });
            sim.at(Duration::from_secs(1), |sim| sim.raise("one", Signal::HANGUP));
        });
        assert!(!exploration.runs().is_empty());
    }
}
