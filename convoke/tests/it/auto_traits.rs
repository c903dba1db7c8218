//! Auto traits of public types: which may be sent, shared, or moved while polled. Users rely on them, and
//! only a test notices when a new field removes one. Types that must stay on one thread are checked, too.
#![cfg(all(feature = "net", feature = "testing"))]

use std::io;
use std::rc::Rc;

use convoke::alloc::FrameAllocator;
use convoke::driver::{IoContext, IoExecutor};
use convoke::executor::{BlockingPool, Context, ExecutorRef, PoolExecutor, RunLoopExecutor};
use convoke::executor::{Limited, RunLoop, Strand};
use convoke::net::{OwnedReadHalf, OwnedWriteHalf, TcpListener, TcpStream, UdpSocket};
use convoke::prelude::*;
use convoke::raw::{InPlaceStop, Links, RawCallback, Slot};
use convoke::runtime::Runtime;
use convoke::scope::{Bound, Handle, LocalHandle, LocalScopeNotSend, policy};
use convoke::sender::prelude::*;
use convoke::sync::{
    Barrier, Event, Mutex, Notified, Notify, OnceCell, RwLock, Semaphore, broadcast, lossless_broadcast,
    mpmc, mpsc, oneshot, watch,
};
use convoke::task::{Failure, Generator, Launched, Task};
use convoke::testing::{Latch, Trace};
use convoke::time::{DelayQueue, Interval, NextExpired, Sleeping, Tick};
use convoke::{Scope, ThreadPool, net};

/// Tells whether a type is `Send` and `Sync`: an inherent constant takes precedence over that of a trait.
struct Is<T: ?Sized>(std::marker::PhantomData<T>);

trait IsNot {
    const SEND: bool = false;
    const SYNC: bool = false;
    const UNPIN: bool = false;
}

impl<T: ?Sized> IsNot for Is<T> {}

impl<T: ?Sized + Send> Is<T> {
    const SEND: bool = true;
}

impl<T: ?Sized + Sync> Is<T> {
    const SYNC: bool = true;
}

impl<T: ?Sized + Unpin> Is<T> {
    const UNPIN: bool = true;
}

/// Fails to compile, with the type's name, if the type lacks one of the traits.
macro_rules! assert_is {
    ($($bound:ident)+: $($type:ty),+ $(,)?) => {
        const _: () = {
            const fn is<T: ?Sized $(+ $bound)+>() {}
            $(is::<$type>();)+
        };
    };
}

/// A node of an intrusive list.
#[allow(dead_code, reason = "only its type counts")]
struct Linked(Links<Self>);

// Others point to them: a `&mut` of one must not claim to be the only way to it.
const _: () = {
    assert!(!Is::<InPlaceStop>::UNPIN && !Is::<Links<Linked>>::UNPIN && !Is::<Linked>::UNPIN);
    assert!(!Is::<Slot<u32>>::UNPIN && !Is::<RawCallback<fn(StopReason)>>::UNPIN);
    assert!(Is::<u32>::UNPIN);
};

// Handles, which programs store anywhere.
assert_is!(Send Sync Unpin: StopSource, StopToken, Env, ExecutorRef, FrameAllocator);
assert_is!(Send Sync Unpin: ThreadPool, PoolExecutor, RunLoopExecutor, IoExecutor, BlockingPool, Context);
assert_is!(Send Sync Unpin: Strand<PoolExecutor>, Limited<PoolExecutor>, CountingScope, Bound, Trace, Latch);
assert_is!(Send Sync Unpin: Scope<u32>, Handle<u32>, Launched<u32>);

// Errors, which go into a `Box<dyn Error + Send + Sync>`.
assert_is!(Send Sync Unpin: Panic, Outcome<u32, io::Error>, Failure<io::Error>, policy::Failures<io::Error>);

// Types that tasks share.
assert_is!(Send Sync Unpin: Event, Barrier, Semaphore, Mutex<u32>, RwLock<u32>, OnceCell<u32>);
assert_is!(Send Sync Unpin: mpsc::Sender<u32>, mpsc::Receiver<u32>, mpmc::Sender<u32>, mpmc::Receiver<u32>);
assert_is!(Send Sync Unpin: oneshot::Sender<u32>, oneshot::Receiver<u32>, watch::Sender<u32>, watch::Receiver<u32>);
assert_is!(Send Sync Unpin: broadcast::Sender<u32>, broadcast::Receiver<u32>, Notify);
assert_is!(Send Sync Unpin: lossless_broadcast::Sender<u32>, lossless_broadcast::Receiver<u32>);
assert_is!(Send Sync Unpin: mpsc::SendPermit<'static, u32>, mpsc::OwnedSendPermit<u32>);

// Futures that are stored beside others, and shared.
assert_is!(Send Sync: mpsc::Receive<'static, u32>, mpsc::SendMessage<'static, u32>, mpsc::Reserve<'static, u32>, Notified<'static>);

// Time: a sleep may lie in a type that is shared.
assert_is!(Send Sync: Sleeping, Tick<'static>);
assert_is!(Send Sync Unpin: Interval, DelayQueue<u32>, NextExpired<'static, u32>);

// Types that are polled through a plain reference, as the traits of `futures-io` require.
assert_is!(Send Sync Unpin: TcpStream, TcpListener, UdpSocket, OwnedReadHalf<net::Internet>, OwnedWriteHalf<net::Internet>);
assert_is!(Send Unpin: net::ReadHalf<'static, net::Internet>, net::WriteHalf<'static, net::Internet>);
assert_is!(Send Unpin: convoke::io::Duplex, Generator<u32>);
#[cfg(unix)]
assert_is!(Send Sync Unpin: net::UnixStream, net::UnixListener, net::UnixDatagram);

// Work: a task may be started on another thread.
assert_is!(Send: Task<std::future::Ready<u32>>);

// Types that belong to one thread.
const _: () = {
    assert!(Is::<RunLoopExecutor>::SEND && Is::<RunLoopExecutor>::SYNC, "else the rest says nothing");
    assert!(!Is::<IoContext>::SYNC && !Is::<Runtime>::SYNC, "one thread runs it");
    assert!(!Is::<RunLoop>::SYNC, "one thread runs it");
    assert!(
        !Is::<LocalScopeNotSend<'static, u32>>::SEND && !Is::<LocalHandle<Rc<u32>>>::SEND,
        "inside of one task"
    );
    assert!(!Is::<Mutex<Rc<u32>>>::SEND && !Is::<mpsc::Sender<Rc<u32>>>::SEND, "what is in it is not");
};

fn is_send<T: Send>(value: T) -> T {
    value
}

#[test]
fn futures_of_tasks_may_change_their_thread() {
    let (sender, mut receiver) = mpsc::channel(1);
    let outcome = sync_wait(task(is_send(async move {
        is_send(scope(async |s| s.spawn(is_send(async move { sender.send(7).await.unwrap() })))).await;
        is_send(receiver.recv()).await
    })));
    assert_eq!(outcome, Outcome::Value(Some(7)));
}
