//! TLS between simulated hosts.

use std::io;
use std::time::Duration;

use convoke::net::{TcpListener, TcpStream};
use convoke::prelude::*;
use convoke::sim::explore_seeds;
use convoke_tls::{TlsAcceptor, TlsConnector};

use crate::certificates::Authority;
use crate::exchange::read_to_end;

#[test]
fn hosts_talk_by_tls_with_every_seed() {
    let authority = Authority::new();
    let acceptor = TlsAcceptor::new(authority.identity("server")).unwrap();
    let connector = TlsConnector::new(authority.roots()).unwrap();
    explore_seeds(0..20, |sim| {
        let (acceptor, connector) = (acceptor.clone(), connector.clone());
        sim.host("server").run(move || {
            let acceptor = acceptor.clone();
            async move {
                let listener = TcpListener::bind("0.0.0.0:443").await?;
                let (client, _) = listener.accept().await?;
                let client = acceptor.accept(client).await?;
                using(client, async |mut client| {
                    let mut question = [0; 8];
                    client.read_exact(&mut question).await?;
                    assert_eq!(&question, b"question");
                    client.write_all(b"answer").await
                })
                .await
            }
        });
        sim.host("client").run(move || {
            let connector = connector.clone();
            async move {
                let stream = loop {
                    match TcpStream::connect("server:443").await {
                        Ok(stream) => break stream,
                        Err(_) => sleep(Duration::from_millis(10)).await,
                    }
                };
                let stream = connector.connect("server", stream).await?;
                using(stream, async |mut stream| {
                    stream.write_all(b"question").await?;
                    let mut first = [0; 1];
                    assert_eq!((stream.read(&mut first).await?, &first), (1, b"a"));
                    assert_eq!(read_to_end(&mut *stream).await?, b"nswer");
                    io::Result::Ok(())
                })
                .await
            }
        });
    });
}
