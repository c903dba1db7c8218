//! Servers of one call: connections on all contexts, their failures, their bound, and the end.
#![cfg(feature = "net")]

use std::collections::BTreeSet;
use std::future::IntoFuture;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use convoke::net::{Accepting, ServerReport, TcpListener, TcpStream, serve};
use convoke::prelude::*;
use convoke::runtime::Runtime;
use convoke::sync::{Event, oneshot};

fn two_contexts() -> Runtime {
    Runtime::builder().contexts(2).pool_threads(1).build().unwrap()
}

/// Writes the name of the thread that it runs on.
async fn name_thread(client: TcpStream, _: SocketAddr) -> io::Result<()> {
    let name = thread::current().name().unwrap_or("main").to_owned();
    client.write_all(name.as_bytes()).await
}

async fn read_all(address: SocketAddr) -> io::Result<String> {
    let stream = TcpStream::connect(address).await?;
    let (mut heard, mut buffer) = (Vec::new(), [0; 256]);
    while let length @ 1.. = stream.read(&mut buffer).await? {
        heard.extend_from_slice(&buffer[..length]);
    }
    String::from_utf8(heard).map_err(io::Error::other)
}

/// Runs `client` beside the server, which is stopped when the client has ended.
async fn beside<T, F>(
    server: impl Future<Output = io::Result<()>> + Send + 'static,
    client: F,
) -> io::Result<T>
where
    F: Future<Output = io::Result<T>> + Send,
{
    scope(async |s| {
        let _serving = s.named("server").spawn_future(server);
        client.await
    })
    .await
}

#[test]
fn connections_are_spread_over_all_contexts_in_either_way() {
    for (accepting, clients) in [(Accepting::HandOver, 4), (Accepting::PerContext, 64)] {
        if accepting == Accepting::PerContext && !cfg!(target_os = "linux") {
            continue;
        }
        let heard = two_contexts().block_on(async move {
            let (tell, address) = oneshot::channel();
            let server = serve("127.0.0.1:0", name_thread).accepting(accepting);
            let server = server.on_listening(|address| _ = tell.send(address));
            beside(server.into_future(), async move {
                let mut address = address;
                let address = address.recv().await.unwrap();
                let mut heard = BTreeSet::new();
                for _ in 0..clients {
                    heard.insert(read_all(address).await?);
                }
                Ok(heard)
            })
            .await
        });
        let heard = heard.unwrap().unwrap();
        assert_eq!(heard.len(), 2, "{accepting:?}: {heard:?}");
        assert!(heard.contains("convoke-io-1"), "{heard:?}");
    }
}

#[test]
fn a_listener_that_exists_is_served_on_all_contexts_too() {
    let heard = two_contexts().block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        beside(serve(listener, name_thread).into_future(), async move {
            Ok(BTreeSet::from([read_all(address).await?, read_all(address).await?]))
        })
        .await
    });
    assert_eq!(heard.unwrap().unwrap().len(), 2);
    let refused = two_contexts().block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        serve(listener, name_thread).accepting(Accepting::PerContext).await
    });
    assert!(refused.unwrap().unwrap_err().to_string().contains("Accepting::HandOver"));
}

#[cfg(unix)]
#[test]
fn unix_listeners_are_served() {
    use convoke::net::{UnixListener, UnixStream};

    let path = std::env::temp_dir().join(format!("convoke-serve-{}", std::process::id()));
    let at = path.clone();
    let heard = two_contexts().block_on(async move {
        let listener = UnixListener::bind(&at)?;
        let greet = async |client: UnixStream, _| client.write_all(b"hello").await;
        beside(serve(listener, greet).into_future(), async move {
            let mut heard = [0; 5];
            for _ in 0..2 {
                UnixStream::connect(&at).await?.read_exact(&mut heard).await?;
            }
            Ok(heard)
        })
        .await
    });
    std::fs::remove_file(path).unwrap();
    assert_eq!(&heard.unwrap().unwrap(), b"hello");
}

#[test]
fn a_connection_that_fails_or_panics_is_reported_and_the_others_go_on() {
    let reports = Arc::new(Mutex::new(Vec::new()));
    let reported = reports.clone();
    let heard = two_contexts().block_on(async move {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let turn = AtomicUsize::new(0);
        let handler = move |client: TcpStream, _| {
            let turn = turn.fetch_add(1, Ordering::Relaxed);
            async move {
                match turn {
                    0 => Err("it fails".to_owned()),
                    1 => panic!("a mistake"),
                    _ => client.write_all(b"fine").await.map_err(|error| error.to_string()),
                }
            }
        };
        let server = serve(listener, handler).report(move |report| {
            let kind = match &report {
                ServerReport::Failed { .. } => "failed",
                ServerReport::Panicked { .. } => "panicked",
                _ => "other",
            };
            reported.lock().unwrap().push((kind, report.to_string()));
        });
        beside(server.into_future(), async move {
            assert_eq!(read_all(address).await?, "");
            assert_eq!(read_all(address).await?, "");
            read_all(address).await
        })
        .await
    });
    assert_eq!(heard.unwrap().unwrap(), "fine");
    let reports = reports.lock().unwrap();
    assert_eq!(reports.len(), 2, "{reports:?}");
    assert!(reports[0].0 == "failed" && reports[0].1.starts_with("connection from 127.0.0.1:"));
    assert!(reports[0].1.ends_with(": it fails"), "{reports:?}");
    assert!(reports[1].0 == "panicked" && reports[1].1.contains("a mistake"), "{reports:?}");
}

#[test]
fn the_bound_of_connections_holds_for_all_contexts_together() {
    const BOUND: usize = 3;
    let (running, most) = <(Arc<AtomicUsize>, Arc<AtomicUsize>)>::default();
    let most_seen = most.clone();
    let outcome = two_contexts().block_on(async move {
        let (tell, mut address) = oneshot::channel();
        let handler = move |client: TcpStream, _| {
            let (running, most) = (running.clone(), most.clone());
            async move {
                most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                // Until the client has written: all clients that are accepted are here at the same time.
                let read = client.read(&mut [0; 1]).await;
                running.fetch_sub(1, Ordering::SeqCst);
                client.write_all(b"!").await?;
                read.map(drop)
            }
        };
        let server = serve("127.0.0.1:0", handler).connections(BOUND);
        let server = server.on_listening(|address| _ = tell.send(address));
        beside(server.into_future(), async move {
            let address = address.recv().await.unwrap();
            let mut clients = Vec::new();
            for _ in 0..4 * BOUND {
                clients.push(TcpStream::connect(address).await?);
            }
            for client in &clients {
                client.write_all(b"?").await?;
            }
            // Each is answered, although most had to wait for a place.
            for client in &clients {
                client.read_exact(&mut [0; 1]).await?;
            }
            Ok(())
        })
        .await
    });
    outcome.unwrap().unwrap();
    assert!((1..=BOUND).contains(&most_seen.load(Ordering::SeqCst)), "{most_seen:?}");
}

#[test]
fn acceptors_and_connections_show_in_the_tree_by_name() {
    let tree = two_contexts().block_on(async {
        let (tell, mut address) = oneshot::channel();
        let server = serve("127.0.0.1:0", async |client: TcpStream, _| {
            client.write_all(b"!").await?;
            client.read(&mut [0; 1]).await.map(drop)
        });
        let server = server.accepting(Accepting::PerContext).on_listening(|address| _ = tell.send(address));
        beside(server.into_future(), async move {
            let address = address.recv().await.unwrap();
            let client = TcpStream::connect(address).await?;
            client.read_exact(&mut [0; 1]).await?;
            Ok((convoke::inspect::tree().find("server").unwrap().to_string(), address))
        })
        .await
    });
    let (tree, address) = tree.unwrap().unwrap();
    for name in ["`acceptor 0`".to_owned(), "`acceptor 1`".to_owned(), format!("`connection at {address}`")] {
        assert!(tree.contains(&name), "{name} in\n{tree}");
    }
    let server = tree.lines().next().unwrap();
    assert!(server.contains("waits at convoke/tests/it/server.rs:"), "{server}");
}

#[test]
fn an_address_that_is_in_use_is_an_error_also_with_several_listeners() {
    let error = two_contexts().block_on(async {
        let (tell, mut address) = oneshot::channel();
        let first = serve("127.0.0.1:0", name_thread).on_listening(|address| _ = tell.send(address));
        beside(first.into_future(), async move {
            let address = address.recv().await.unwrap();
            Ok(serve(address, name_thread).await.unwrap_err().kind())
        })
        .await
    });
    assert_eq!(error.unwrap().unwrap(), io::ErrorKind::AddrInUse);
}

#[test]
fn the_listener_closes_at_once_while_connections_finish_their_answers() {
    let heard = two_contexts().block_on(async {
        let (tell, mut address) = oneshot::channel();
        let (begun, go_on) = (Arc::new(Event::new()), Arc::new(Event::new()));
        let (began, goes_on) = (begun.clone(), go_on.clone());
        let handler = move |client: TcpStream, _| {
            let (began, goes_on) = (began.clone(), goes_on.clone());
            async move {
                shield(async {
                    began.set();
                    goes_on.wait().await;
                    client.write_all(b"the answer").await
                })
                .await
            }
        };
        let server = serve("127.0.0.1:0", handler).on_listening(|address| _ = tell.send(address));
        scope(async |s| {
            let serving = s.spawn_future(server.into_future());
            let address = address.recv().await.unwrap();
            let asks = s.spawn_future(read_all(address));
            begun.wait().await;
            serving.request_stop(StopReason::Requested);
            // The listeners are closed although a connection is open.
            while TcpStream::connect(address).await.is_ok() {}
            go_on.set();
            let heard = asks.await?;
            assert!(catch_stopped(serving).await.is_err());
            io::Result::Ok(heard)
        })
        .await
    });
    assert_eq!(heard.unwrap().unwrap(), "the answer");
}

#[test]
fn a_connection_that_does_not_end_in_time_is_cut_off() {
    let reports = Arc::new(Mutex::new(Vec::new()));
    let reported = reports.clone();
    let ended = two_contexts().block_on(async move {
        let (tell, mut address) = oneshot::channel();
        let begun = Arc::new(Event::new());
        let began = begun.clone();
        let handler = move |client: TcpStream, _| {
            let began = began.clone();
            async move {
                began.set();
                // Nobody reads that, and it does not fit into any buffer.
                shield(client.write_all(&vec![0; 64 << 20])).await
            }
        };
        let server = serve("127.0.0.1:0", handler).grace(Duration::from_millis(20));
        let server = server.report(move |report| reported.lock().unwrap().push(report.to_string()));
        let server = server.on_listening(|address| _ = tell.send(address));
        scope(async |s| {
            let serving = s.spawn_future(server.into_future());
            let client = TcpStream::connect(address.recv().await.unwrap()).await?;
            begun.wait().await;
            serving.request_stop(StopReason::Requested);
            let ended = catch_stopped(serving).await.is_err();
            drop(client);
            io::Result::Ok(ended)
        })
        .await
    });
    assert!(ended.unwrap().unwrap());
    let reports = reports.lock().unwrap();
    assert!(reports.len() == 1 && reports[0].contains("20ms after the stop request"), "{reports:?}");
}

#[cfg(feature = "sim")]
mod simulated {
    use super::*;
    use convoke::sim::{Sim, explore_host_stops};

    async fn echo(client: TcpStream, _: SocketAddr) -> io::Result<()> {
        let mut buffer = [0; 64];
        while let length @ 1.. = client.read(&mut buffer).await? {
            shield(client.write_all(&buffer[..length])).await?;
        }
        Ok(())
    }

    fn server_and_client(sim: &mut Sim) {
        sim.host("server").daemon().run(|| async { serve("0.0.0.0:80", echo).await });
        sim.host("client").run(|| async {
            sleep(Duration::from_secs(1)).await;
            let stream = match TcpStream::connect("server:80").await {
                Ok(stream) => stream,
                // It was stopped before.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => return Ok(()),
                Err(error) => return Err(error),
            };
            stream.write_all(b"hello").await?;
            let mut heard = [0; 5];
            let (mut length, mut read) = (0, usize::MAX);
            while read > 0 && length < heard.len() {
                read = stream.read(&mut heard[length..]).await.unwrap_or(0);
                length += read;
            }
            assert!(length == 0 || &heard == b"hello", "all of an answer or nothing: {length}");
            io::Result::Ok(())
        });
    }

    #[test]
    fn a_server_runs_on_a_simulated_host_and_ends_wherever_it_is_stopped() {
        let mut sim = Sim::new(1);
        server_and_client(&mut sim);
        sim.run();
        assert!(!explore_host_stops(1, "server", server_and_client).runs().is_empty());
    }
}

/// A server that awaits forever is stopped like any other future.
#[test]
fn a_server_loses_a_race() {
    let winner = two_contexts().block_on(async {
        let server = serve("127.0.0.1:0", name_thread).into_future();
        race((async { server.await.map(|()| "the server") }, async { Ok("the other") })).await
    });
    assert_eq!(winner.unwrap().unwrap(), "the other");
}
