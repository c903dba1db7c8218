//! QUIC by quinn: a server that echoes, and a client with four streams on one connection. All tasks, those of quinn too, are
//! children of one scope, and have ended when `Quic::run` returns.
//!
//! ```text
//! cargo run --release -p convoke-runtimes --features quinn --example quic_echo
//! ```

use std::sync::Arc;

use convoke::prelude::*;
use convoke_runtimes::quic::{Quic, quinn};
use quinn::{ClientConfig, Endpoint, ServerConfig};
use rustls::pki_types::PrivateKeyDer;

type AnyError = Box<dyn std::error::Error + Send + Sync>;

const STREAMS: usize = 4;
/// Bytes that each stream sends, and receives.
const LENGTH: usize = 1 << 20;

/// Makes a certificate for `localhost`, and what each side needs of it.
fn configurations() -> Result<(ServerConfig, ClientConfig), AnyError> {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der())?;
    let mut roots = rustls::RootCertStore::empty();
    roots.add(made.cert.der().clone())?;
    let server = ServerConfig::with_single_cert(vec![made.cert.into()], key)?;
    Ok((server, ClientConfig::with_root_certificates(Arc::new(roots))?))
}

/// Answers the streams of each connection with what they send.
async fn serve(endpoint: Endpoint) {
    scope(async |connections| {
        while let Some(incoming) = endpoint.accept().await {
            connections.named("connection").spawn(async {
                // A client that has said what it wanted closes the connection, which ends the echo.
                match echo(incoming).await {
                    Ok(streams) => println!("server: {streams} streams"),
                    Err(error) => println!("server: {error}"),
                }
            });
        }
    })
    .await;
}

async fn echo(incoming: quinn::Incoming) -> Result<usize, AnyError> {
    let connection = incoming.await?;
    let mut streams = 0;
    while let Ok((mut send, mut receive)) = connection.accept_bi().await {
        while let Some(chunk) = receive.read_chunk(usize::MAX, true).await? {
            send.write_chunk(chunk.bytes).await?;
        }
        send.finish()?;
        streams += 1;
    }
    Ok(streams)
}

/// Sends bytes on a stream, and returns those that come back.
async fn ask(connection: quinn::Connection, byte: u8) -> Result<Vec<u8>, AnyError> {
    let (mut send, mut receive) = connection.open_bi().await?;
    let sends = async {
        send.write_all(&vec![byte; LENGTH]).await?;
        send.finish()?;
        Ok::<_, AnyError>(())
    };
    let receives = async { Ok(receive.read_to_end(LENGTH).await?) };
    Ok(try_join((sends, receives)).await?.1)
}

#[convoke::main]
async fn main() -> Result<(), AnyError> {
    let (server_config, client_config) = configurations()?;
    Quic::run(async |quic| {
        let server = quic.server(server_config, "127.0.0.1:0").await?;
        let address = server.local_addr()?;
        scope(async |s| {
            let serves = s.named("server").spawn_future(serve(server));
            let client = quic.client("127.0.0.1:0").await?;
            let connection = client.connect_with(client_config, address, "localhost")?.await?;
            let asked = (0..STREAMS).map(|n| s.spawn_future(ask(connection.clone(), n as u8)));
            for (n, echoed) in asked.collect::<Vec<_>>().into_iter().enumerate() {
                let echoed = echoed.await?;
                assert_eq!(echoed, vec![n as u8; LENGTH]);
                println!("client: stream {n} has its {} bytes back", echoed.len());
            }
            println!("{}", convoke::inspect::tree());
            // The server hears of it, and its connection ends.
            connection.close(0_u8.into(), b"done");
            client.wait_idle().await;
            serves.request_stop(StopReason::Named("the client is done"));
            Ok(())
        })
        .await
    })
    .await
}
