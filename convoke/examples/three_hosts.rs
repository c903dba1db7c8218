//! A register that is replicated on three hosts: it survives partitions and crashes, as long as two of the three can communicate.
//!
//! Each host has a replica on its disk. A writer asks a majority for the newest entry and has a majority store the next one. A reader
//! has a majority store what it has read, so that no later read returns an older entry. The three hosts are simulated: the seed decides
//! when they are cut off from each other, and when they crash. `QUORUM = 1` is a bug that the first seeds find.
//!
//! ```text
//! cargo run --release --features sim --example three_hosts -- 100
//! ```

use std::io;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use convoke::net::{TcpListener, TcpStream};
use convoke::prelude::*;
use convoke::scope::policy::Quorum;
use convoke::scope::scope_with;
use convoke::sim::{Disk, Link, Sim, SimReport, explore_seeds};
use convoke::time::now;
use convoke::time::sleep_until;

const HOSTS: [&str; 3] = ["ada", "bob", "cyn"];
/// Number of replicas that must store an entry before it counts.
const QUORUM: usize = 2;
/// Number of writes and reads of each host.
const OPERATIONS: u64 = 8;
/// Time in which there is a fault every few seconds; after it, all faults are repaired.
const TROUBLE: u64 = 60;

fn main() {
    let seeds = std::env::args().nth(1).map_or(40, |seeds| seeds.parse().expect("a number of seeds"));
    let histories = Mutex::new(Vec::new());
    let reports = explore_seeds(0..seeds, |sim| histories.lock().unwrap().push(set_up(sim)));
    let histories = histories.into_inner().unwrap();
    println!("seed   simulated   steps   cuts   crashes   attempts   operations");
    for (report, history) in reports.iter().zip(&histories).take(10) {
        println!("{}", row(report, &history.lock().unwrap()));
    }
    let all: usize = histories.iter().map(|history| history.lock().unwrap().operations).sum();
    println!("…      {seeds} seeds, {all} operations: nobody has read anything old\n");
    if let (Some(report), Some(history)) = (reports.last(), histories.last()) {
        print!("{}", picture(report, &history.lock().unwrap()));
    }
}

/// One write of the register. Later ones are greater.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    round: u64,
    writer: u64,
    value: u64,
}

/// Contents of a host's disk.
#[derive(Clone, Debug, Default)]
pub struct Stored {
    entry: Entry,
    operations_done: u64,
}

/// Facts that the test records, and that no host sees.
#[derive(Debug, Default)]
pub struct History {
    /// Newest entry whose write or read has ended: no later read may return an older one.
    newest: Entry,
    operations: usize,
    attempts: usize,
    cuts: usize,
    crashes: usize,
    /// When the first host was started.
    start: Option<Instant>,
    /// Events: the host, the time, and the sign that is printed.
    marks: Vec<(usize, Duration, char)>,
}

type Shared<T> = Arc<Mutex<T>>;

// The program of a host.

/// Keeps a replica, and uses the register; when its own operations are done it still serves the others for some time.
pub async fn host(number: usize, disk: Disk<Stored>, history: Shared<History>) -> io::Result<()> {
    let start = now();
    history.lock().unwrap().start.get_or_insert(start);
    scope(async |s| {
        let replica = s.spawn_future(replica(disk.clone()));
        while disk.read(|stored| stored.operations_done) < OPERATIONS {
            work(number, &disk, &history).await?;
        }
        sleep_until(start + Duration::from_secs(10 * TROUBLE)).await;
        drop(replica);
        Ok(())
    })
    .await
}

/// One write or read, and the check that it has seen nothing old.
async fn work(number: usize, disk: &Disk<Stored>, history: &Shared<History>) -> io::Result<()> {
    let (before, so_far) = (history.lock().unwrap().newest, disk.read(|stored| stored.operations_done));
    sleep(Duration::from_millis(700 * (number as u64 + 1))).await;
    let writes = (so_far + number as u64).is_multiple_of(2);
    let entry = if writes { write(number as u64, so_far, history).await } else { read(history).await };
    assert!(entry >= before, "{} has seen {entry:?}, which is older than {before:?}", HOSTS[number]);
    disk.write(|stored| stored.operations_done += 1);
    disk.sync().await?;
    let mut history = history.lock().unwrap();
    history.newest = history.newest.max(entry);
    history.operations += 1;
    let at = history.start.map_or(Duration::ZERO, |start| now() - start);
    history.marks.push((number, at, if writes { 'w' } else { 'r' }));
    Ok(())
}

async fn write(writer: u64, value: u64, history: &Shared<History>) -> Entry {
    let newest = ask_majority(None, history).await;
    let entry = Entry { round: newest.round + 1, writer, value };
    ask_majority(Some(entry), history).await;
    entry
}

async fn read(history: &Shared<History>) -> Entry {
    let newest = ask_majority(None, history).await;
    ask_majority(Some(newest), history).await;
    newest
}

/// Has a majority store this entry, and returns the newest that it knows. Asks until a majority has answered.
async fn ask_majority(store: Option<Entry>, history: &Shared<History>) -> Entry {
    loop {
        history.lock().unwrap().attempts += 1;
        let answers = scope_with(Quorum(QUORUM), async |s| {
            for name in HOSTS {
                s.named(name).spawn(ask(name, store));
            }
        });
        if let Ok(answers) = answers.await {
            return answers.into_iter().max().unwrap_or_default();
        }
        sleep(Duration::from_millis(300)).await;
    }
}

async fn ask(name: &str, store: Option<Entry>) -> io::Result<Entry> {
    let answer = timeout(Duration::from_secs(1), async {
        let stream = TcpStream::connect((name, 7000)).await?;
        stream.write_all(&to_bytes(store.is_some(), store.unwrap_or_default())).await?;
        let mut answer = [0; MESSAGE];
        stream.read_exact(&mut answer).await?;
        Ok(from_bytes(&answer).1)
    });
    answer.await.unwrap_or(Err(io::ErrorKind::TimedOut.into()))
}

/// Answers with what is on the disk, and stores there what is newer.
async fn replica(disk: Disk<Stored>) -> io::Result<()> {
    let listener = TcpListener::bind("0.0.0.0:7000").await?;
    scope(async |s| {
        loop {
            let (stream, _) = listener.accept().await?;
            let disk = disk.clone();
            // A client whose connection breaks asks again.
            s.spawn(async move { drop(answer(&stream, &disk).await) });
        }
    })
    .await
}

async fn answer(stream: &TcpStream, disk: &Disk<Stored>) -> io::Result<()> {
    let mut question = [0; MESSAGE];
    // A client that is cut off does not keep the server waiting.
    match timeout(Duration::from_secs(5), stream.read_exact(&mut question)).await {
        Ok(read) => read?,
        Err(_) => return Err(io::ErrorKind::TimedOut.into()),
    }
    let (stores, entry) = from_bytes(&question);
    if stores {
        disk.write(|stored| stored.entry = stored.entry.max(entry));
    }
    let known = disk.read(|stored| stored.entry);
    // Without this a crash loses an entry that was acknowledged: one of the first dozens of seeds finds that.
    disk.sync().await?;
    stream.write_all(&to_bytes(stores, known)).await
}

const MESSAGE: usize = 25;

fn to_bytes(stores: bool, entry: Entry) -> [u8; MESSAGE] {
    let mut bytes = [u8::from(stores); MESSAGE];
    for (room, number) in bytes[1..].chunks_mut(8).zip([entry.round, entry.writer, entry.value]) {
        room.copy_from_slice(&number.to_le_bytes());
    }
    bytes
}

fn from_bytes(bytes: &[u8; MESSAGE]) -> (bool, Entry) {
    let number = |at: usize| u64::from_le_bytes(bytes[1 + 8 * at..9 + 8 * at].try_into().unwrap());
    (bytes[0] == 1, Entry { round: number(0), writer: number(1), value: number(2) })
}

// The simulation.

/// Runs three hosts, with faults that depend on the seed.
pub fn set_up(sim: &mut Sim) -> Shared<History> {
    let history = Shared::<History>::default();
    sim.links(Link::usual().loss(0.02));
    for (number, name) in HOSTS.into_iter().enumerate() {
        let (disk, history) = (sim.disk(name, Stored::default()), history.clone());
        sim.host(name).run(move || host(number, disk.clone(), history.clone()));
    }
    let mut at = 0;
    while at < TROUBLE {
        let (what, who, rest) = (sim.random(4), sim.random(HOSTS.len()), 1 + sim.random(6) as u64);
        trouble(sim, &history, at, what, who);
        at += rest;
    }
    sim.at(Duration::from_secs(TROUBLE), |sim| sim.heal_all());
    history
}

fn trouble(sim: &mut Sim, history: &Shared<History>, at: u64, what: usize, who: usize) {
    let history = history.clone();
    let (one, other) = (HOSTS[who], HOSTS[(who + 1) % HOSTS.len()]);
    sim.at(Duration::from_secs(at), move |sim| {
        let mut history = history.lock().unwrap();
        let now = sim.now();
        match what {
            0 => {
                sim.isolate(one);
                history.cuts += 1;
                history.marks.push((who, now, '/'));
            }
            1 => {
                sim.partition_one_way(one, other);
                history.cuts += 1;
                history.marks.push((who, now, '\\'));
            }
            2 => {
                sim.restart(one);
                history.crashes += 1;
                history.marks.push((who, now, '#'));
            }
            _ => {
                sim.heal_all();
                history.marks.extend((0..HOSTS.len()).map(|who| (who, now, '+')));
            }
        }
    });
}

// What is printed.

fn row(report: &SimReport, history: &History) -> String {
    format!(
        "{:>4} {:>9.1} s {:>7} {:>6} {:>9} {:>10} {:>12}",
        report.seed(),
        report.elapsed().as_secs_f64(),
        report.steps(),
        history.cuts,
        history.crashes,
        history.attempts,
        history.operations
    )
}

/// A line for each host, a column for each second.
fn picture(report: &SimReport, history: &History) -> String {
    let seconds = TROUBLE as usize + 20;
    let mut text =
        format!("seed {}: / isolated  \\ cut one way  # crashed  + healed  w wrote  r read\n", report.seed());
    for (number, name) in HOSTS.into_iter().enumerate() {
        let mut line = vec!['·'; seconds];
        for (_, at, mark) in history.marks.iter().filter(|(who, ..)| *who == number) {
            let place = &mut line[(at.as_secs() as usize).min(seconds - 1)];
            if matches!(*place, '·' | '+') {
                *place = *mark;
            }
        }
        text.extend(["  ", name, "  "].into_iter().chain([&*line.iter().collect::<String>(), "\n"]));
    }
    text
}
