//! Random traffic over real sockets: tasks on two I/O contexts and a pool read and write both ends of
//! connections, by calls of all kinds that are stopped and dropped at any time. Whole tasks are stopped, too.
//!
//! After each round the test checks that every byte was read once and in order, unless an end was dropped and
//! the kernel may have reset the connection; that no task is left; and that no driver has an operation in
//! flight.
//!
//! `CONVOKE_ROUNDS=n` sets the number of rounds. `CONVOKE_SEED=n` runs only that round, `CONVOKE_ROUNDS`
//! times.
#![cfg(feature = "net")]

mod calls;
mod ledger;

use std::io::{self};
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread;

use convoke::catch_stopped;
use convoke::driver::Driver;
use convoke::driver::current_driver;
use convoke::executor::ExecutorRef;
use convoke::inspect::tree;
use convoke::net::{SocketOption, TcpListener, TcpStream};
use convoke::prelude::*;
use convoke::raw::Random;
use convoke::run_on;
use convoke::runtime::Runtime;

use crate::random_rounds::Rounds;
use calls::{connect_in_vain, listen, speak};
use ledger::{Judged, Ledger, Listener, Speaker};

/// The default number of rounds.
const ROUNDS: u64 = 120;
/// The maximum number of connections at the same time.
const CONNECTIONS: usize = 4;

#[test]
fn every_byte_arrives_once_and_in_order_and_nothing_is_left_behind() {
    let runtime = Runtime::builder().contexts(2).pool_threads(2).build().unwrap();
    let world = Arc::new(World::new(&runtime));
    let (mut whole, mut reset) = (0, 0);
    let were_usual = Rounds::of("random_sockets", ROUNDS).run(|seed| {
        let judged = runtime
            .block_on(run_round(world.clone(), Random::new(seed)))
            .unwrap()
            .expect("the kernel has sockets");
        world.is_at_rest();
        whole += judged.iter().filter(|&&judged| judged == Judged::Whole).count();
        reset += judged.iter().filter(|&&judged| judged == Judged::Reset).count();
    });
    println!("{whole} connections were whole, {reset} may have been reset");
    assert!(!were_usual || (whole > 20 && reset > 20), "they are not as various as they should be");
}

/// The executors and drivers of the test.
struct World {
    executors: Vec<ExecutorRef>,
    drivers: Vec<Arc<dyn Driver>>,
}

impl World {
    fn new(runtime: &Runtime) -> Self {
        let contexts = runtime.contexts().to_vec();
        let mut executors: Vec<_> = contexts.iter().cloned().map(ExecutorRef::new).collect();
        executors.push(ExecutorRef::new(runtime.pool()));
        let drivers = runtime.block_on(async move {
            let mut drivers = Vec::new();
            for context in contexts {
                drivers.push(run_on(&context, async { current_driver() }).await?);
            }
            io::Result::Ok(drivers)
        });
        Self { executors, drivers: drivers.unwrap().expect("contexts have drivers") }
    }

    fn executor(&self, random: &mut Random) -> &ExecutorRef {
        &self.executors[random.below(self.executors.len())]
    }

    /// Waits until nothing is left: other threads may still be dropping what has ended.
    fn is_at_rest(&self) {
        while !tree().is_empty() || self.drivers.iter().any(|driver| driver.in_flight() > 0) {
            thread::yield_now();
        }
    }
}

/// Runs one round, with several connections at once.
async fn run_round(world: Arc<World>, mut random: Random) -> io::Result<Vec<Judged>> {
    let listener = Arc::new(run_on(world.executor(&mut random), TcpListener::bind("127.0.0.1:0")).await?);
    let nobody = TcpListener::bind("127.0.0.1:0").await?;
    let mut ledgers = Vec::new();
    scope(async |s| {
        for _ in 0..1 + random.below(CONNECTIONS) {
            if random.one_in(4) {
                let address = nobody.local_addr()?;
                s.child().on(world.executor(&mut random)).spawn(connect_in_vain(address));
            }
            let ends = connection(&world, &listener, &mut random).await?;
            let ledger = Arc::new(Ledger::default());
            ledgers.push(ledger.clone());
            s.spawn(converse(world.clone(), ends, ledger, random.split()));
        }
        io::Result::Ok(())
    })
    .await?;
    Ok(ledgers.iter().map(|ledger| ledger.judge()).collect())
}

/// Opens a connection. Each end uses the driver of a random executor.
async fn connection(
    world: &World,
    listener: &Arc<TcpListener>,
    random: &mut Random,
) -> io::Result<[TcpStream; 2]> {
    let address: SocketAddr = listener.local_addr()?;
    let (here, there, accepting) = (world.executor(random), world.executor(random), listener.clone());
    let near = run_on(here, TcpStream::connect(address));
    let far = run_on(there, async move { accepting.accept().await });
    let (near, (far, _)) = try_join((near, far)).await?;
    for end in [&near, &far] {
        if random.one_in(2) {
            end.set_option(SocketOption::SendBuffer(1 << 12))?;
        }
    }
    Ok([near, far])
}

/// Reads and writes both ends, each on a random executor; some of the tasks are stopped.
async fn converse(world: Arc<World>, ends: [TcpStream; 2], ledger: Arc<Ledger>, mut random: Random) {
    scope(async |s| {
        let leaves = random.one_in(3);
        let mut all = Vec::new();
        for (end, stream) in ends.into_iter().enumerate() {
            let (stream, ledger) = (Arc::new(stream), ledger.clone());
            let listener = Listener { stream: stream.clone(), ledger: ledger.clone(), way: 1 - end };
            let speaker = Speaker { stream, ledger, way: end };
            let leaves = leaves && random.one_in(2);
            let (speaks, listens) =
                (speak(speaker, random.split()), listen(listener, random.split(), leaves));
            all.push(s.spawn_future(run_on(world.executor(&mut random), speaks)));
            all.push(s.spawn_future(run_on(world.executor(&mut random), listens)));
        }
        for handle in all {
            if random.one_in(8) {
                for _ in 0..random.below(40) {
                    checkpoint().await;
                }
                handle.request_stop(StopReason::Requested);
            }
            _ = catch_stopped(handle).await;
        }
    })
    .await;
}
