//! Many handshakes at once: those that wait for their client keep nobody waiting, and those that work take turns.

use std::cell::Cell;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use convoke::io::{duplex, write_all};
use convoke::prelude::*;
use convoke::time::now;
use convoke_tls::rustls::ServerConfig;
use convoke_tls::rustls::server::{ClientHello, ResolvesServerCert};
use convoke_tls::rustls::sign::CertifiedKey;
use convoke_tls::{TlsAcceptor, TlsConnector};
use futures_io::AsyncRead;

use crate::certificates::Authority;
use crate::configurations::config_of;
use crate::handshake::shake;

/// Returns the first bytes of a client.
async fn hello(connector: &TlsConnector) -> Vec<u8> {
    let (near, mut far) = duplex(1 << 16);
    let mut hello = vec![0; 1 << 14];
    let reading = std::future::poll_fn(|cx| std::pin::Pin::new(&mut far).poll_read(cx, &mut hello));
    let connecting = timeout(Duration::from_secs(1), connector.connect("a.test", near));
    let (_, read) = join((connecting, reading)).await;
    hello.truncate(read.unwrap());
    hello
}

#[convoke::test(virtual_time)]
async fn silent_clients_keep_nobody_from_a_handshake() {
    let authority = Authority::new();
    let connector = TlsConnector::new(authority.roots()).unwrap();
    let hello = hello(&connector).await;
    let time = Duration::from_secs(5);
    // Those that say nothing, that stop in the middle of their first record, or after it.
    for words in [0, 1, 4, 100, hello.len()] {
        for limit in [1, 256] {
            let identity = authority.identity("a.test");
            let acceptor =
                TlsAcceptor::builder(identity).handshakes(limit).handshake_time(time).build().unwrap();
            let begun = now();
            scope(async |s| {
                for _ in 0..=256 {
                    let (acceptor, words) = (acceptor.clone(), hello[..words].to_vec());
                    s.spawn(async move {
                        let (mut near, far) = duplex(1 << 16);
                        write_all(&mut near, &words).await.unwrap();
                        let error = acceptor.accept(far).await.unwrap_err();
                        assert_eq!((error.kind(), now() - begun), (io::ErrorKind::TimedOut, time));
                        drop(near);
                    });
                }
                sleep(Duration::from_millis(1)).await;
                let asked = now();
                let (client, server) = shake(&acceptor, &connector, "a.test").await;
                assert!(client.is_ok() && server.is_ok());
                assert_eq!(now() - asked, Duration::ZERO, "{words} bytes, {limit} handshakes");
            })
            .await;
            assert_eq!(now() - begun, time);
        }
    }
}

/// Notes the pass of the executor in which each client is answered.
#[derive(Debug)]
struct Watched {
    resolver: Arc<dyn ResolvesServerCert>,
    pass: Arc<AtomicUsize>,
    seen: Arc<Mutex<Vec<usize>>>,
}

impl ResolvesServerCert for Watched {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.seen.lock().unwrap().push(self.pass.load(Ordering::Relaxed));
        self.resolver.resolve(hello)
    }
}

/// Lets clients come at once, and returns the passes of the executor in which they were answered.
async fn passes(limit: usize, clients: usize) -> Vec<usize> {
    let authority = Authority::new();
    let connector = TlsConnector::new(authority.roots()).unwrap();
    let acceptor = TlsAcceptor::builder(authority.identity("a.test")).handshakes(limit).build().unwrap();
    let (pass, seen) = (Arc::<AtomicUsize>::default(), Arc::<Mutex<Vec<usize>>>::default());
    let mut config: ServerConfig = config_of(&authority.sign("a.test"), None);
    config.cert_resolver =
        Arc::new(Watched { resolver: config.cert_resolver, pass: pass.clone(), seen: seen.clone() });
    acceptor.set_config(Arc::new(config));
    let hello = hello(&connector).await;
    let left = Arc::new(AtomicUsize::new(clients));
    scope(async |s| {
        for _ in 0..clients {
            let (acceptor, hello, left) = (acceptor.clone(), hello.clone(), left.clone());
            s.spawn(async move {
                let (mut near, far) = duplex(1 << 16);
                write_all(&mut near, &hello).await.unwrap();
                _ = timeout(Duration::from_secs(1), acceptor.accept(far)).await;
                left.fetch_sub(1, Ordering::Relaxed);
            });
        }
        let waited = Cell::new(0);
        while seen.lock().unwrap().len() < clients {
            waited.set(waited.get() + 1);
            assert!(waited.get() < 1000, "they are not answered");
            pass.fetch_add(1, Ordering::Relaxed);
            checkpoint().await;
        }
    })
    .await;
    let seen = seen.lock().unwrap();
    seen.clone()
}

#[convoke::test(virtual_time)]
async fn others_run_between_two_turns_of_handshakes() {
    let count_of = |seen: &[usize], pass: usize| seen.iter().filter(|seen| **seen == pass).count();
    for (limit, most) in [(1, 1), (3, 3), (256, 12)] {
        let seen = passes(limit, 12).await;
        let counts: Vec<_> = seen.iter().map(|pass| count_of(&seen, *pass)).collect();
        assert_eq!(counts.iter().max(), Some(&most), "with a limit of {limit}: {seen:?}");
    }
}
