//! Generators: values in order, early exits that clean up, errors and panics that reach the consumer.
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use convoke::prelude::*;
use convoke::sender::prelude::*;
use convoke::task::{Generator, Yielder};
use convoke::task::{generator, stopped};
use convoke::testing::{Ended, Probe, explore_stops_with};
use futures_core::Stream;

/// Runs a program, and returns its output.
fn run<T: Send + 'static>(program: impl Future<Output = T> + Send + 'static) -> T {
    sync_wait(task(program)).unwrap()
}

/// Runs a program that panics, and returns the message.
fn panic_of<T: Send + 'static>(program: impl Future<Output = T> + Send + 'static) -> String {
    Panic::catch(|| sync_wait(task(program))).err().expect("it should panic").message().to_owned()
}

async fn all<T>(mut numbers: Generator<T>) -> Vec<T> {
    let mut all = Vec::new();
    while let Some(n) = numbers.next().await {
        all.push(n);
    }
    assert!(numbers.next().await.is_none(), "the end stays the end");
    all
}

#[test]
fn values_come_in_order_between_waits_and_from_functions_that_the_body_calls() {
    async fn twice(y: Yielder<u32>, n: u32) {
        y.yield_value(n).await;
        checkpoint().await;
        y.yield_value(n + 1).await;
    }
    let values = run(async {
        let numbers = generator(async |y| {
            y.yield_value(1).await;
            sleep(Duration::from_millis(1)).await;
            twice(y, 2).await;
        });
        all(numbers.erased()).await
    });
    assert_eq!(values, [1, 2, 3]);
}

#[test]
fn a_generator_feeds_on_another_and_yields_from_within_it() {
    let values = run(async {
        let outer = generator(async |y| {
            let mut inner = generator(async |inner| {
                for n in 0..3 {
                    y.yield_value(n * 10).await;
                    inner.yield_value(n).await;
                }
            });
            while let Some(n) = inner.next().await {
                y.yield_value(n).await;
            }
        });
        all(outer.erased()).await
    });
    assert_eq!(values, [0, 0, 10, 1, 20, 2]);
}

#[test]
fn parts_of_a_body_that_run_together_yield_in_turn() {
    let values = run(async {
        let both = generator(async |y| {
            let count = async |from: u32| {
                for n in from..from + 3 {
                    y.yield_value(n).await;
                }
            };
            join((count(0), count(10))).await;
            join(vec![count(20), count(30)]).await;
        });
        let mut values = all(both.erased()).await;
        values.sort_unstable();
        values
    });
    assert_eq!(values, [0, 1, 2, 10, 11, 12, 20, 21, 22, 30, 31, 32]);
}

#[test]
fn a_value_whose_yield_is_dropped_after_it_was_given_comes_before_the_end() {
    let values = run(async {
        let once = generator(async |y| {
            let mut given = y.yield_value(7);
            std::future::poll_fn(|cx| {
                assert!(Pin::new(&mut given).poll(cx).is_pending());
                Poll::Ready(())
            })
            .await;
        });
        all(once.erased()).await
    });
    assert_eq!(values, [7]);
}

#[test]
fn an_error_is_the_last_item_and_a_panic_goes_on_at_the_consumer() {
    let (items, after) = run(async {
        let mut fails = generator(async |y| {
            y.yield_value(1).await;
            Err::<(), _>("no more")
        });
        let items = [fails.next().await, fails.next().await];
        (items, fails.next().await)
    });
    assert_eq!(items, [Some(Ok(1)), Some(Err("no more"))]);
    assert_eq!(after, None);

    let panic = panic_of(async {
        let mut panics = generator(async |y| {
            y.yield_value(1).await;
            panic!("out of numbers")
        });
        panics.next().await;
        let ended = Panic::catch(|| {
            let _ = Pin::new(&mut panics).poll_next(&mut Context::from_waker(Waker::noop()));
        });
        assert!(ended.is_err());
        assert_eq!(panics.next().await, None);
        panics.close().await;
        let mut again = generator(async |y| {
            y.yield_value(1).await;
            panic!("out of numbers");
        });
        while again.next().await.is_some() {}
    });
    assert_eq!(panic, "out of numbers");
}

/// Yields forever, and owns something with awaited clean-up.
fn endless(probe: Probe) -> Generator<u32> {
    let body = async move |y: Yielder<u32>| {
        probe.acquired("source");
        let clean_up = async |_| {
            checkpoint().await;
            probe.cleaned_up("source");
        };
        let _held = probe.must_drop("body");
        ensure(clean_up, async {
            for n in 0.. {
                if n % 2 == 1 {
                    checkpoint().await;
                }
                y.yield_value(n).await;
            }
        })
        .await;
    };
    generator(body).erased()
}

#[test]
fn an_early_exit_cleans_up_wherever_the_consumer_is_stopped() {
    let exploration = explore_stops_with(|probe| {
        let probe = probe.clone();
        async move {
            using(endless(probe), async |mut numbers| {
                let mut sum = 0;
                while let Some(n) = numbers.next().await {
                    checkpoint().await;
                    sum += n;
                    if n == 3 {
                        break;
                    }
                }
                sum
            })
            .await
        }
    });
    assert!(exploration.points() > 5, "{exploration}");
    assert!(exploration.runs().iter().any(|run| run.ended() == Ended::Stopped), "{exploration}");
}

#[test]
fn a_close_is_not_cut_short_by_a_stop() {
    let exploration = explore_stops_with(|probe| {
        let probe = probe.clone();
        async move {
            let mut numbers = endless(probe);
            // The body sees a stop request when it is polled for a value, or by the close.
            let first = numbers.next().await;
            numbers.close().await;
            first
        }
    });
    assert!(exploration.points() > 1, "{exploration}");
}

#[test]
fn every_way_out_of_the_consumer_closes_the_body() {
    let ways: [fn() -> u32; 3] = [|| 0, || 1, || 2];
    for way in ways {
        let story = Arc::new(Mutex::new(Vec::new()));
        let told = story.clone();
        let program = task(async move {
            let source = generator(async |y| {
                let clean_up = async |exit: Exit| {
                    checkpoint().await;
                    told.lock().unwrap().push(exit.is_stopped());
                };
                ensure(clean_up, async {
                    loop {
                        y.yield_value(1).await;
                    }
                })
                .await
            });
            using(source, async |mut source| {
                source.next().await;
                match way() {
                    0 => Err::<(), _>("an error"),
                    1 => panic!("a panic"),
                    _ => stopped().await,
                }
            })
            .await
        });
        let outcome = Panic::catch(|| sync_wait(program));
        assert_eq!(*story.lock().unwrap(), [true], "{outcome:?}");
    }
}

#[test]
fn a_body_that_never_began_is_dropped_and_an_error_on_the_way_out_is_told() {
    let probe = run(async {
        let held = Arc::new(());
        let kept = held.clone();
        let new = generator(async move |y| {
            y.yield_value(1).await;
            drop(kept);
        });
        new.close().await;
        Arc::strong_count(&held)
    });
    assert_eq!(probe, 1);

    let closed = run(async {
        let mut fails = generator(async |y| {
            if catch_stopped(y.yield_value(1)).await.is_err() {
                return Err("not flushed");
            }
            Ok(())
        });
        fails.next().await.transpose().unwrap();
        fails.close().await
    });
    assert_eq!(closed, Err("not flushed"));
}

#[test]
fn a_body_behind_a_shield_is_closed_when_it_comes_out() {
    let yielded = run(async {
        let mut stubborn = generator(async |y| {
            shield(async {
                for n in 0..3 {
                    y.yield_value(n).await;
                }
            })
            .await;
            checkpoint().await;
            unreachable!("asked to stop");
        });
        let first = stubborn.next().await;
        stubborn.close().await;
        first
    });
    assert_eq!(yielded, Some(0));
}

#[test]
fn a_generator_that_has_stopped_stays_stopped_and_can_be_closed() {
    let first = run(async {
        let mut stops = generator(async |y| {
            y.yield_value(1).await;
            stopped().await
        });
        let first = stops.next().await;
        assert!(catch_stopped(stops.next()).await.is_err());
        assert!(catch_stopped(stops.next()).await.is_err());
        stops.close().await;
        first
    });
    assert_eq!(first, Some(1));
}

#[test]
fn outside_its_generator_a_yield_says_so() {
    let panic = panic_of(async {
        let mut leaks = generator(async |y| {
            scope(async |s| s.spawn(async move { y.yield_value(1).await })).await;
        });
        leaks.next().await;
    });
    assert!(panic.contains("has no consumer"), "{panic}");
}

#[test]
fn a_generator_is_a_stream_outside_of_all_tasks_too() {
    let mut numbers = generator(async |y| {
        for n in 1..=2 {
            y.yield_value(n).await;
        }
    });
    let mut cx = Context::from_waker(Waker::noop());
    let mut next = || Pin::new(&mut numbers).poll_next(&mut cx);
    assert_eq!([next(), next(), next()], [1, 2, 0].map(|n| Poll::Ready((n > 0).then_some(n))));
}

#[test]
fn outside_of_all_tasks_a_generator_in_another_yields_to_both_consumers() {
    let mut outer = generator(async |y| {
        let mut inner = generator(async |inner| {
            for n in [1, 2] {
                y.yield_value(n * 10).await;
                inner.yield_value(n).await;
            }
        });
        while let Some(n) = inner.next().await {
            y.yield_value(n).await;
        }
    });
    let mut cx = Context::from_waker(Waker::noop());
    let mut next = || Pin::new(&mut outer).poll_next(&mut cx);
    assert_eq!([next(), next(), next(), next()], [10, 1, 20, 2].map(|n| Poll::Ready(Some(n))));
    assert_eq!(next(), Poll::Ready(None));
}

#[test]
fn a_value_is_found_from_behind_everything_that_a_body_puts_around_it() {
    let values = run(async {
        let deep = generator(async |y| {
            let inner = async |n| {
                let clean_up = async |_| y.yield_value(n + 1).await;
                ensure(clean_up, shield(async { catch_stopped(y.yield_value(n)).await.unwrap() })).await;
            };
            join((inner(0), inner(10))).await;
            timeout(Duration::from_secs(60), inner(20)).await.unwrap();
        });
        let mut values = all(deep.erased()).await;
        values.sort_unstable();
        values
    });
    assert_eq!(values, [0, 1, 10, 11, 20, 21]);
}

#[test]
fn a_generator_is_moved_from_task_to_task_and_from_thread_to_thread_between_values() {
    let mut numbers = generator(async |y| {
        for n in 0.. {
            y.yield_value(n).await;
            checkpoint().await;
        }
    })
    .erased();
    for expected in 0..6 {
        let program = move || {
            run(async move {
                let mut here = Box::new(numbers);
                let n = here.next().await;
                (*here, n)
            })
        };
        let (back, n) =
            if expected % 2 == 0 { program() } else { std::thread::spawn(program).join().unwrap() };
        assert_eq!(n, Some(expected));
        numbers = back;
    }
}

#[test]
fn a_value_that_was_given_before_the_body_panicked_is_dropped_with_the_panic() {
    let given = Arc::new(());
    let value = given.clone();
    let mut panics = generator(async move |y| {
        let mut given = y.yield_value(value);
        std::future::poll_fn(|cx| -> Poll<()> {
            assert!(Pin::new(&mut given).poll(cx).is_pending());
            panic!("after it was given")
        })
        .await
    });
    let left = run(async move {
        let ended = Panic::catch(|| {
            let _ = Pin::new(&mut panics).poll_next(&mut Context::from_waker(Waker::noop()));
        });
        assert!(ended.is_err());
        let left = Arc::strong_count(&given);
        assert!(panics.next().await.is_none());
        left
    });
    assert_eq!(left, 1);
}

#[test]
fn a_token_of_the_body_is_asked_by_a_close_and_not_by_a_value() {
    let asked = run(async {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let told = asked.clone();
        let mut numbers = generator(async move |y| {
            let token = convoke::env::current::stop_token();
            let clean_up = async |_| told.lock().unwrap().push(token.stop_requested());
            let body = async {
                for n in 0..3 {
                    told.lock().unwrap().push(token.stop_requested());
                    y.yield_value(n).await;
                }
            };
            ensure(clean_up, body).await;
        });
        numbers.next().await;
        numbers.next().await;
        numbers.close().await;
        assert!(!convoke::env::current::stop_token().stop_requested());
        Arc::into_inner(asked).unwrap().into_inner().unwrap()
    });
    assert_eq!(asked, [false, false, true]);
}
