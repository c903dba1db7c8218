//! TLS through a line that changes what it carries. Every three bytes are a place, and what happens there: bits are turned, a byte
//! is lost, one is inserted, or the line is cut. What arrives is a beginning of what was sent, and an end that was not sent is no end.

use std::future::poll_fn;
use std::io;
use std::net::Shutdown;
use std::pin::Pin;
use std::sync::OnceLock;

use convoke::io::write_all;
use convoke::net::{TcpListener, TcpStream};
use convoke::prelude::*;
use convoke::sim::simulate;
use convoke_tls::{Identity, Roots, TlsAcceptor, TlsConnector};
use futures_io::{AsyncRead, AsyncWrite};
use rcgen::{CertifiedKey, generate_simple_self_signed};

use super::{LONG, OTHER, SERVER, listener};

/// The bytes that are sent.
const SENT: usize = 40_000;

/// Both ends of TLS. They are made once.
pub(super) fn ends() -> &'static (TlsConnector, TlsAcceptor) {
    static ENDS: OnceLock<(TlsConnector, TlsAcceptor)> = OnceLock::new();
    ENDS.get_or_init(|| {
        let CertifiedKey { cert, signing_key } = generate_simple_self_signed(["server".to_owned()]).unwrap();
        let (certificate, key) = (cert.pem(), signing_key.serialize_pem());
        let mut roots = Roots::new();
        roots.add_pem(certificate.as_bytes()).unwrap();
        let identity = Identity::from_pem(certificate.as_bytes(), key.as_bytes()).unwrap();
        (TlsConnector::new(roots).unwrap(), TlsAcceptor::new(identity).unwrap())
    })
}

pub(super) fn target(data: &[u8]) {
    let Some((&size, changes)) = data.split_first() else { return };
    let (changes, _) = changes.as_chunks::<3>();
    let changes: Vec<_> =
        changes.iter().map(|&[high, low, what]| (u16::from_be_bytes([high, low]).into(), what)).collect();
    simulate(1, async move {
        let (connector, acceptor) = ends();
        let sent: Vec<u8> = (0..SENT).map(|index| (index * 7 % 251) as u8).collect();
        let mut received = Vec::new();
        let (line, server) = (listener().await?, TcpListener::bind(OTHER).await?);
        let send = async {
            let mut stream = connector.connect("server", TcpStream::connect(SERVER).await?).await?;
            write_all(&mut stream, &sent).await?;
            poll_fn(|cx| Pin::new(&mut stream).poll_close(cx)).await
        };
        let receive = async {
            let mut stream = acceptor.accept(server.accept().await?.0).await?;
            let mut piece = [0; 1000];
            while let count @ 1.. = poll_fn(|cx| Pin::new(&mut stream).poll_read(cx, &mut piece)).await? {
                received.extend_from_slice(&piece[..count]);
            }
            io::Result::Ok(())
        };
        let carried = async {
            let (near, far) = (line.accept().await?.0, TcpStream::connect(OTHER).await?);
            join((carry(&near, &far, size, &changes), carry(&far, &near, size, &[]))).await;
            io::Result::Ok(())
        };
        let ended = timeout(LONG, join((send, receive, carried))).await;
        let end = ended.expect("both sides end").1;
        assert!(sent.starts_with(&received), "what was not sent has arrived");
        assert!(end.is_err() || received.len() == SENT, "a line that was cut is no end");
        assert!(end.is_ok() || !changes.is_empty(), "{end:?}");
        io::Result::Ok(())
    })
    .unwrap();
}

/// Carries bytes in one direction, in pieces of a size, and changes those at some places.
async fn carry(from: &TcpStream, to: &TcpStream, size: u8, changes: &[(usize, u8)]) {
    let mut piece = vec![0; if size == 0 { 20_000 } else { size.into() }];
    let mut at = 0;
    while let Ok(count @ 1..) = from.read(&mut piece).await {
        let mut changed = piece[..count].to_vec();
        let mut is_cut = false;
        // From the last to the first, so that places stay what they are.
        let here = changes.iter().filter(|(place, _)| (at..at + count).contains(place));
        let mut here: Vec<_> = here.map(|(place, what)| (place - at, *what)).collect();
        here.sort_unstable_by(|a, b| b.cmp(a));
        for (place, what) in here {
            let place = place.min(changed.len().saturating_sub(1));
            match what {
                0 => {
                    changed.truncate(place);
                    is_cut = true;
                }
                1 if !changed.is_empty() => drop(changed.remove(place)),
                2 => changed.insert(place, 0),
                what => changed.get_mut(place).into_iter().for_each(|byte| *byte ^= what),
            }
        }
        at += count;
        if to.write_all(&changed).await.is_err() || is_cut {
            break;
        }
    }
    _ = to.shutdown(Shutdown::Write);
}
