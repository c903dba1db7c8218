//! The tasks that another crate spawns: children of a scope around a body, which end after it.
//!
//! A task is shielded from a stop, because the clean-up of the body may need it. It ends by itself; or it is *cut*, which drops
//! its future.

use core::fmt;
use core::future::{Future, poll_fn};
use core::pin::pin;
use core::task::Poll;
use std::sync::{Arc, PoisonError};

use convoke_core::BodyOutput;
use convoke_core::raw::sync::Mutex;
use convoke_sync::Event;
use convoke_task::cleanup::Exit;
use convoke_task::{Scope, ensure, scope, shield, timeout};

use crate::CLOSE_TIME;

/// Spawns tasks for another crate.
pub(crate) struct Background {
    scope: Scope<()>,
    name: Arc<str>,
    /// Held by each task, and here until the body has ended: then no task is started any more.
    member: Mutex<Option<Arc<Member>>>,
    /// Set when the last member is dropped.
    ended: Arc<Event>,
    cut: Event,
}

struct Member(Arc<Event>);

impl Drop for Member {
    fn drop(&mut self) {
        self.0.set();
    }
}

impl Background {
    /// Spawns a task. After the end of the body its future is dropped instead.
    pub(crate) fn spawn(self: &Arc<Self>, future: impl Future<Output = ()> + Send + 'static) {
        let member = self.member.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(member) = member else { return };
        let this = self.clone();
        let task = async move {
            let _member = member;
            shield(this.until_cut(future)).await;
        };
        // A scope that has ended refuses it: its future is dropped.
        drop(self.scope.named(self.name.clone()).try_spawn(task));
    }

    /// Polls the future to its end, or drops it when it is cut.
    async fn until_cut(&self, future: impl Future<Output = ()>) {
        let (mut cut, mut future) = (pin!(self.cut.wait()), pin!(future));
        poll_fn(|cx| match cut.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(()),
            Poll::Pending => future.as_mut().poll(cx),
        })
        .await;
    }

    /// Waits for the tasks, and cuts those that are left.
    async fn close(&self) {
        let member = self.member.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(member);
        // Those that are left are cut by the caller.
        let _ = timeout(CLOSE_TIME, self.ended.wait()).await;
    }
}

/// Cuts the tasks when it is dropped: also if the close did not end, or did not begin.
struct Cut(Arc<Background>);

impl Drop for Cut {
    fn drop(&mut self) {
        self.0.cut.set();
    }
}

/// Runs a body with tasks of this name, and ends them.
pub(crate) async fn run_with_background<B, F>(name: &'static str, body: B) -> F::Output
where
    B: FnOnce(Arc<Background>) -> F,
    F: Future<Output: BodyOutput>,
{
    let mut output = None;
    let returned = &mut output;
    scope(async move |s: Scope<()>| {
        let ended = Arc::new(Event::new());
        let member = Mutex::new(Some(Arc::new(Member(ended.clone()))));
        let background =
            Arc::new(Background { scope: s, name: name.into(), member, ended, cut: Event::new() });
        let cut = Cut(background.clone());
        let close = async move |_: Exit| cut.0.close().await;
        *returned = Some(ensure(close, body(background)).await);
    })
    .await;
    match output {
        Some(output) => output,
        None => unreachable!("a scope that returns has run its body to the end"),
    }
}

impl fmt::Debug for Background {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Background").field("name", &self.name).finish_non_exhaustive()
    }
}
