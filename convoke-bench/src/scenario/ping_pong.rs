//! Two tasks of one thread that wait for each other: the cost of a wake-up and the switch that follows.
//!
//! They exchange a value through a cell written for the purpose, the same for all: a slot for a value and one
//! for a waker. A channel would add its own cost.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::hint::black_box;
use std::rc::Rc;
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

use super::{CONVOKE, Scenario};
use crate::own::Convoke;
use crate::peer::{AsyncTask, Compio, Glommio, Monoio, OneThread, Smol, Spawner, Tokio, TokioLocalSet};

pub(super) fn scenarios() -> Vec<Scenario> {
    vec![
        Scenario::new(
            "ping_pong",
            "one round trip of a number between two tasks of a thread: 2 wake-ups, 2 switches",
        )
        .contestant(CONVOKE, ping_pong::<Convoke>)
        .contestant("tokio", ping_pong::<Tokio>)
        .contestant("tokio_local_set", ping_pong::<TokioLocalSet>)
        .contestant("smol", ping_pong::<Smol>)
        .contestant("async_task", ping_pong::<AsyncTask>)
        .contestant("compio", ping_pong::<Compio>)
        .contestant("monoio", ping_pong::<Monoio>)
        .contestant_if(Glommio::starts(), "glommio", ping_pong::<Glommio>),
    ]
}

/// A slot for one value, and one for the waker of the task that waits for it.
#[derive(Default)]
pub(super) struct OneSlot {
    value: Cell<Option<u64>>,
    waiting: RefCell<Option<Waker>>,
}

impl OneSlot {
    #[inline]
    pub(super) fn put(&self, value: u64) {
        self.value.set(Some(value));
        if let Some(waiting) = self.waiting.take() {
            waiting.wake();
        }
    }

    #[inline]
    pub(super) async fn take(&self) -> u64 {
        poll_fn(|context| match self.value.take() {
            Some(value) => Poll::Ready(value),
            None => {
                self.waiting.replace(Some(context.waker().clone()));
                Poll::Pending
            }
        })
        .await
    }
}

fn ping_pong<R: OneThread>() -> impl FnMut(u64) -> Duration {
    let mut runtime = R::start();
    move |ops| {
        runtime.run(|spawner| async move {
            let (ping, pong) = (Rc::new(OneSlot::default()), Rc::new(OneSlot::default()));
            let (pinged, ponged) = (Rc::clone(&ping), Rc::clone(&pong));
            let other = spawner.spawn(async move {
                for _ in 0..ops {
                    ponged.put(pinged.take().await);
                }
            });
            let start = Instant::now();
            for op in 0..ops {
                ping.put(black_box(op));
                black_box(pong.take().await);
            }
            let elapsed = start.elapsed();
            other.await;
            elapsed
        })
    }
}
