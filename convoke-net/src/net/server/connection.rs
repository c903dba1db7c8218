//! A connection of a server: the task that calls the handler.

use core::cell::Cell;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;
use std::io;
use std::net::Shutdown;
use std::sync::Arc;

use convoke_core::Panic;
use convoke_core::raw::{DropOutOfLine, Frame, LastUse, OutOfLine, Polled, outside_a_task};
use convoke_exec::time::sleep;
use convoke_io::context::current_driver;
use convoke_io::driver::{Address, Source, StandardSocket};
use convoke_sync::OwnedPermit;
use convoke_task::{ensure, shield};
use pin_project_lite::pin_project;

use super::SharedServer;
use super::report::{AnyError, ConnectionOutput, ServerReport};
use crate::net::kind::Kind;
use crate::net::socket_stream::SocketStream;
use crate::stream::Linger;

/// Runs the handler for a connection of the current task's context.
pub(super) async fn converse<K, H, F>(
    server: Arc<SharedServer<H>>,
    stream: SocketStream<K>,
    from: K::Address,
    _permit: OwnedPermit,
) where
    K: Kind,
    H: Fn(SocketStream<K>, K::Address) -> F,
    F: Future<Output: ConnectionOutput>,
{
    let (peer, source) = (K::any(&from), stream.source.clone());
    // Called inside the task, so that a panic of the call itself is that of the connection.
    let handler = async { (server.handler)(stream, from).await.error() };
    let mut cut = OutOfLine::new(Cut { source: &source, grace: server.grace, timer: None, made: false });
    let draining =
        Draining { handler: OutOfLine::new(Some(handler)), cut: &mut cut, stopped: Cell::new(false) };
    let ended = ensure(async |_| close::<K>(&source).await, draining).await;
    server.report_end(peer, ended, cut.made);
}

/// Closes the connection so that what was written is delivered, also if the client has sent what was not read.
/// Does nothing if the handler has passed the stream on to other code that still has it.
async fn close<K: Kind>(source: &Arc<dyn Source>) {
    if Arc::strong_count(source) == 1 {
        // An error means that the connection is gone.
        _ = SocketStream::<K>::new(source.clone()).close_with(Linger::new()).await;
    }
}

/// Runs the handler for a connection that was accepted on another context: it joins the current one. Does not
/// fail: its output is that of an acceptor.
pub(super) async fn converse_there<K, H, F>(
    server: Arc<SharedServer<H>>,
    socket: StandardSocket,
    from: K::Address,
    permit: OwnedPermit,
) -> io::Result<()>
where
    K: Kind,
    H: Fn(SocketStream<K>, K::Address) -> F,
    F: Future<Output: ConnectionOutput>,
{
    match current_driver().and_then(|driver| driver.adopt(socket)) {
        Ok(source) => converse(server, SocketStream::new(source), from, permit).await,
        Err(error) => server.report(ServerReport::Failed { peer: K::any(&from), error: error.into() }),
    }
    Ok(())
}

impl<H> SharedServer<H> {
    fn report_end(&self, peer: Address, ended: Result<Option<AnyError>, Panic>, was_cut: bool) {
        match ended {
            Err(panic) => self.report(ServerReport::Panicked { peer, panic }),
            Ok(None) => {}
            // The cut is the cause, and a better explanation than "broken pipe".
            Ok(Some(_)) if was_cut => self.report(ServerReport::CutOff { peer, grace: self.grace }),
            Ok(Some(error)) => self.report(ServerReport::Failed { peer, error }),
        }
    }
}

/// Shuts down the socket of a connection that does not end in time after a stop request.
struct Cut<'a> {
    source: &'a Arc<dyn Source>,
    grace: Duration,
    /// Allocated when a stop is requested.
    timer: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    made: bool,
}

impl DropOutOfLine for Cut<'_> {
    #[inline(never)]
    fn drop_out_of_line(cut: LastUse<'_, Self>) {
        cut.drop_here();
    }

    #[inline]
    fn has_something_to_drop(&mut self) -> bool {
        self.timer.is_some()
    }
}

impl Cut<'_> {
    /// Starts or polls the timer. Shuts down the socket when it is over. Called after a stop request.
    fn poll(&mut self, cx: &mut Context<'_>) {
        if self.made {
            return;
        }
        let grace = self.grace;
        let timer = self.timer.get_or_insert_with(|| Box::pin(shield(sleep(grace))));
        if timer.as_mut().poll(cx).is_ready() {
            self.made = true;
            self.timer = None;
            // An error means that it is gone already.
            _ = self.source.shut_down(Shutdown::Both);
        }
    }
}

pin_project! {
    /// A handler that returns its panic as an error, and that is cut off after a stop request and a grace period.
    struct Draining<'a, 'b, F> {
        #[pin]
        handler: OutOfLine<Option<F>>,
        cut: &'a mut Cut<'b>,
        stopped: Cell<bool>,
    }
}

impl<F: Future> Future for Draining<'_, '_, F> {
    type Output = Result<F::Output, Panic>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let mut slot = this.handler.as_pin();
        let stopped = &*this.stopped;
        let polled = Frame::current(|frame| {
            let Some(around) = frame else { outside_a_task("a connection of a server") };
            // No handler: polled again after the stop.
            let Some(handler) = slot.as_mut().as_pin_mut() else { return Ok(Polled::Stopped) };
            let polled = Panic::catch(|| around.same(stopped).poll(handler, cx));
            if matches!(polled, Ok(Polled::Pending)) && around.is_asked_to_stop() && around.is_held() {
                this.cut.poll(cx);
            }
            polled
        });
        let result = match polled {
            Ok(Polled::Pending) => return Poll::Pending,
            Ok(Polled::Ready(output)) => Some(Ok(output)),
            Ok(Polled::Stopped) => None,
            Err(panic) => Some(Err(panic)),
        };
        let dropped = Panic::catch(|| slot.set(None));
        match (result, dropped) {
            (Some(Err(panic)), _) | (_, Err(panic)) => Poll::Ready(Err(panic)),
            (Some(Ok(output)), Ok(())) => Poll::Ready(Ok(output)),
            (None, Ok(())) => {
                Frame::current(|frame| frame.map(Frame::set_stopped));
                Poll::Pending
            }
        }
    }
}
