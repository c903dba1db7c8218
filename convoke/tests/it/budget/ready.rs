//! Awaits that are ready at once, each in a loop beside a sibling: channels, locks, timers, limits, scopes, generators.

use super::*;
use convoke::env::{Local, with_local};
use convoke::run_on;
use convoke::scope::policy::WaitForAll;
use convoke::scope::{Bound, scope_with};
use convoke::sender::algorithm::schedule::schedule;
use convoke::task::{forever, run_until_stopped, stoppable};

static KEY: Local<u32> = Local::inherited("a number of the test");

/// A resource whose close is ready at once.
struct Nothing;

impl AsyncClose for Nothing {
    type Error = Never;

    async fn close(self, _: Exit) -> Result<(), Never> {
        Ok(())
    }
}

lets_a_sibling_run! {
    mpsc_send: |s| { let (sender, _receiver) = mpsc::unbounded(); } => sender.send(1).await;
    mpsc_recv: |s| {
        let (sender, mut receiver) = mpsc::unbounded();
        for n in 0..MANY { sender.try_send(n).unwrap(); }
    } => receiver.recv().await;
    mpsc_recv_closed: |s| { let (_, mut receiver) = mpsc::channel::<u32>(1); } => receiver.recv().await;
    mpmc_recv: |s| {
        let (sender, receiver) = mpmc::unbounded();
        for n in 0..MANY { sender.try_send(n).unwrap(); }
    } => receiver.recv().await;
    oneshot_recv: |s| {} => {
        let (sender, mut receiver) = oneshot::channel();
        sender.send(1).unwrap();
        receiver.recv().await
    };
    watch_changed: |s| { let (sender, mut receiver) = watch::channel(0); } => {
        sender.send(1).unwrap();
        receiver.changed().await
    };
    mpsc_reserve: |s| { let (sender, _receiver) = mpsc::unbounded::<u32>(); } => sender.reserve().await.map(drop);
    mpsc_stream: |s| {
        let (sender, mut receiver) = mpsc::unbounded();
        for n in 0..MANY { sender.try_send(n).unwrap(); }
    } => next(&mut receiver).await;
    oneshot_awaited: |s| {} => {
        let (sender, receiver) = oneshot::channel();
        sender.send(1).unwrap();
        receiver.await
    };
    notified: |s| { let notify = Notify::new(); } => {
        notify.notify_one();
        notify.notified().await
    };
    watch_wait_for: |s| { let (_sender, mut receiver) = watch::channel(0); } => receiver.wait_for(|n| *n == 0).await.map(drop);
    watch_stream: |s| { let (sender, mut receiver) = watch::channel(0); } => {
        sender.send(1).unwrap();
        next(&mut receiver).await
    };
    lagging_broadcast_recv: |s| { let (sender, mut receiver) = broadcast::channel(4); } => {
        sender.send(1).unwrap();
        receiver.recv().await
    };
    broadcast_send_recv: |s| { let (sender, mut receiver) = lossless_broadcast::channel(4); } => {
        sender.send(1).await.unwrap();
        receiver.recv().await
    };
    event: |s| { let event = Event::new(); event.set(); } => event.wait().await;
    mutex: |s| { let lock = Mutex::new(0); } => lock.lock().await;
    rw_lock_read: |s| { let lock = RwLock::new(0); } => lock.read().await;
    rw_lock_write: |s| { let lock = RwLock::new(0); } => lock.write().await;
    semaphore: |s| { let permits = Semaphore::new(3); } => permits.acquire().await;
    barrier: |s| { let barrier = Barrier::new(1); } => barrier.wait().await;
    once_cell: |s| { let cell = OnceCell::new(); cell.set(1).unwrap(); } => cell.get_or_init(async || 2).await;
    sleep_zero: |s| {} => sleep(Duration::ZERO).await;
    interval_that_is_late: |s| {
        let mut ticks = interval_at(Instant::now() - Duration::from_secs(60), Duration::from_millis(1));
    } => ticks.tick().await;
    stream_of_ticks_that_is_late: |s| {
        let mut ticks = interval_at(Instant::now() - Duration::from_secs(60), Duration::from_millis(1));
    } => next(&mut ticks).await;
    delay_queue_of_late_items: |s| {
        let mut queue = DelayQueue::new();
        for n in 0..MANY { queue.insert(n, Duration::ZERO); }
    } => queue.next().await;
    empty_delay_queue: |s| { let mut queue = DelayQueue::<u32>::new(); } => queue.next().await;
    moved_sleep: |s| { let mut sleeping = pin!(sleep(Duration::ZERO).into_future()); } => {
        sleeping.as_mut().reset_after(Duration::ZERO);
        sleeping.as_mut().await
    };
    timeout_of_ready: |s| {} => timeout(Duration::from_secs(1), async {}).await;
    deadline_of_ready: |s| { let at = Instant::now() + Duration::from_secs(60); } => timeout_at(at, async {}).await;
    stop_after_of_ready: |s| {} => stop_after(Duration::from_secs(1), async {}).await;
    join_tuple: |s| {} => join((async {}, async {})).await;
    join_vector: |s| {} => join(vec![async {}]).await;
    try_join_tuple: |s| {} => try_join((async { Ok::<(), ()>(()) },)).await;
    race_tuple: |s| {} => race((async {}, async {})).await;
    nested_scope: |s| {} => scope(async |_| {}).await;
    local_scope_with_child: |s| {} => local_scope(async |s| s.spawn(async {})).await;
    local_handle: |s| {} => local_scope(async |s| s.spawn_future(async {}).await).await;
    handle: |s| {
        let mut handles: Vec<_> = (0..MANY).map(|n| s.spawn_future(async move { n })).collect();
        checkpoint().await;
    } => handles.pop().unwrap().await;
    results: |s| {
        let mut results = s.results();
        for n in 0..MANY { results.spawn(async move { n }); }
        checkpoint().await;
    } => results.next().await;
    map_concurrent_next: |s| { let mut mapped = map_concurrent(0.., 3, async |n: u32| n); } => mapped.next().await;
    map_in_order: |s| { let mut mapped = map_concurrent(0.., 3, async |n: u32| n).in_order(); } => mapped.next().await;
    for_each: |s| {} => for_each_concurrent(0..3, 2, async |_: i32| {}).await;
    generator_next: |s| {
        let mut numbers = generator(async |y| for n in 0_u32.. { y.yield_value(n).await });
    } => numbers.next().await;
    ensure_of_ready: |s| {} => ensure(async |_| {}, async {}).await;
    inline_sender: |s| {} => just(1).await;
    task_awaited: |s| {} => task(async {}).await;
    reschedule_here: |s| { let here = convoke::env::current::executor(); } => reschedule(&here).await;
    memory_stream: |s| { let (mut near, mut far) = duplex(8); } => {
        convoke::io::write_all(&mut near, b"!").await.unwrap();
        convoke::io::read_exact(&mut far, &mut [0]).await
    };
    #[cfg_attr(miri, ignore = "needs a kernel: sockets")]
    datagrams: |s| {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let own = socket.local_addr().unwrap();
    } => socket.send_to(b"!", own).await;
    #[cfg_attr(miri, ignore = "needs a kernel: sockets")]
    stream_write: |s| { let (near, _far) = connected().await; } => near.write(b"!").await;
    mpmc_send: |s| { let (sender, _receiver) = mpmc::unbounded(); } => sender.send(1).await;
    mpsc_reserve_owned: |s| { let (sender, _receiver) = mpsc::unbounded::<u32>(); } => sender.reserve_owned().await.map(drop);
    mpsc_send_closed: |s| { let (sender, _) = mpsc::channel(1); } => sender.send(1).await;
    oneshot_closed: |s| { let (mut sender, _) = oneshot::channel::<u32>(); } => sender.closed().await;
    watch_closed: |s| { let (sender, _) = watch::channel(0); } => sender.closed().await;
    lagging_broadcast_closed: |s| { let (_, mut receiver) = broadcast::channel::<u32>(4); } => receiver.recv().await;
    mutex_owned: |s| { let lock = Arc::new(Mutex::new(0)); } => lock.lock_owned().await;
    permits_owned: |s| { let permits = Arc::new(Semaphore::new(3)); } => permits.acquire_many_owned(2).await;
    bound: |s| { let bound = Bound::new(3); } => bound.take(2).await;
    once_cell_wait: |s| { let cell = OnceCell::new(); cell.set(1).unwrap(); } => cell.wait().await;
    once_cell_fails: |s| { let cell = OnceCell::<u32>::new(); } => cell.get_or_try_init(async || Err(())).await.map(drop);
    token_that_is_stopped: |s| {
        let source = StopSource::new();
        source.request_stop(StopReason::Requested);
        let token = source.token();
    } => token.stopped().await;
    catch_stopped_of_ready: |s| {} => catch_stopped(async {}).await;
    catch_stopped_of_stopped: |s| {} => catch_stopped(convoke::task::stopped()).await;
    stoppable_of_ready: |s| {} => stoppable(async {}).await;
    shield_of_ready: |s| {} => shield(async {}).await;
    shield_with_grace: |s| {} => shield(async {}).grace(Duration::from_secs(1)).await;
    with_local_of_ready: |s| {} => with_local(&KEY, 1, async {}).await;
    with_environment_of_ready: |s| {} => convoke::env::with().local(&KEY, 1).run(async {}).await;
    run_until_stopped_of_ready: |s| { let source = StopSource::new(); } => run_until_stopped(source.token(), async {}).await;
    run_until_stopped_of_stopped: |s| {
        let source = StopSource::new();
        source.request_stop(StopReason::Requested);
    } => run_until_stopped(source.token(), forever()).await;
    select_macro: |s| { let lock = Mutex::new(0); } => convoke::select! {
        _ = lock.lock() => 1,
        _ = sleep(Duration::from_secs(60)) => 2,
    };
    select_loop: |s| {
        let (sender, mut receiver) = mpsc::unbounded();
        for n in 0..MANY { sender.try_send(n).unwrap(); }
    } => convoke::select! {
        received = receiver.recv() => received,
        _ = forever() => None,
    };
    race_vector: |s| {} => race(vec![async {}]).await;
    try_join_vector: |s| {} => try_join(vec![async { Ok::<(), ()>(()) }]).await;
    using_of_ready: |s| {} => using(Nothing, async |_| {}).await;
    cleanups_of_ready: |s| {} => convoke::cleanup::cleanups(async |_| Ok::<(), ()>(())).await;
    scope_with_policy: |s| {} => scope_with(WaitForAll, async |s| s.spawn(async { Ok::<(), ()>(()) })).await;
    run_on_here: |s| { let here = convoke::env::current::executor(); } => run_on(&here, async {}).await;
    launched: |s| {
        let here = convoke::env::current::executor();
        let mut launched: Vec<_> = (0..MANY).map(|n| launch(&here).start(async move { n })).collect();
        checkpoint().await;
    } => launched.pop().unwrap().await;
    outcome_of_handle: |s| {
        let mut handles: Vec<_> = (0..MANY).map(|n| s.spawn_future(async move { n })).collect();
        checkpoint().await;
    } => handles.pop().unwrap().outcome().await;
    until_ready: |s| {} => s.child().spawn_until_ready(async |ready| ready.report(())).await;
    blocking_results: |s| {
        let mut results: Vec<_> = (0..MANY).map(|_| Box::pin(blocking(|_| ()).into_future())).collect();
        // Polled once: they run.
        std::future::poll_fn(|cx| {
            for result in &mut results { _ = result.as_mut().poll(cx); }
            std::task::Poll::Ready(())
        })
        .await;
        // Later blocking work ends later, or the test shows less.
        for _ in 0..MANY { blocking(|_| ()).await; }
    } => results.pop().unwrap().await;
    generator_stream: |s| {
        let mut numbers = pin!(generator(async |y| for n in 0_u32.. { y.yield_value(n).await }));
    } => next(&mut numbers).await;
    generator_of_awaits: |s| {
        let lock = Mutex::new(0);
        let mut numbers = generator(async |y| loop {
            for _ in 0..3 { drop(lock.lock().await); }
            y.yield_value(0).await;
        });
    } => numbers.next().await;
    generator_that_has_ended: |s| { let mut numbers = generator(async |_: convoke::task::Yielder<u32>| {}); } => numbers.next().await;
    generator_closed: |s| {} => generator(async |y| y.yield_value(1).await).close().await;
    map_concurrent_collect: |s| {} => map_concurrent(0..3, 3, async |n: u32| n).collect::<Vec<_>>().await;
    senders_together: |s| {} => when_all((just(1), just(2))).await;
    scheduled: |s| { let here = convoke::env::current::executor(); } => schedule(&here).await;
    own_future: |s| {} => std::future::poll_fn(|cx| budget::poll_proceed(cx).map(budget::Permission::spend)).await;
}

async fn next<S: futures_core::Stream + Unpin>(stream: &mut S) -> Option<S::Item> {
    std::future::poll_fn(|cx| Pin::new(&mut *stream).poll_next(cx)).await
}

async fn connected() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (near, (far, _)) =
        try_join((TcpStream::connect(listener.local_addr().unwrap()), listener.accept())).await.unwrap();
    (near, far)
}
