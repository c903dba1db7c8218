//! TLS: convoke-tls and tokio-rustls, with the same rustls and the same configurations, over loopback.
//!
//! Both ends are on one thread. The time is the processor time of the process, in which most of a handshake and
//! all of the bulk is cryptography. Sessions are not resumed.

use std::future::Future;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use convoke::driver::io_context;
use convoke::io::{read_exact, write_all};
use convoke::net::{TcpListener, TcpStream};
use convoke::{join, try_join};
use convoke_tls::rustls::client::Resumption;
use convoke_tls::rustls::pki_types::{PrivateKeyDer, ServerName};
use convoke_tls::rustls::{ClientConfig, RootCertStore, ServerConfig};
use convoke_tls::{TlsAcceptor, TlsConnector, TlsStream};
use rcgen::{CertifiedKey, generate_simple_self_signed};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{Bytes, CONVOKE, Scenario, Unit};
use crate::allocator::Weighing;
use crate::measure::ProcessorTime;

/// The name in the certificate.
const NAME: &str = "localhost";

/// The number of pairs that are idle.
const PAIRS: u64 = 200;

/// The number of bytes that one write of the bulk has, and that one op has.
const CHUNK: usize = 64 * 1024;
const OP_BYTES: usize = 1024 * 1024;

pub(super) fn scenarios() -> Vec<Scenario> {
    let handshake = Scenario::new("tls_handshake", "processor time of a handshake of TLS 1.3, both ends")
        .contestant(CONVOKE, || convoke(|ends, ops| Box::pin(handshakes_on_convoke(ends, ops))))
        .contestant("tokio_rustls", || tokio(|ends, ops| Box::pin(handshakes_on_tokio(ends, ops))));
    let bulk = Scenario::new("tls_bulk", "processor time of 1 MiB by TLS 1.3, both ends")
        .contestant(CONVOKE, || convoke(|ends, ops| Box::pin(bulk_on_convoke(ends, ops))))
        .contestant("tokio_rustls", || tokio(|ends, ops| Box::pin(bulk_on_tokio(ends, ops))));
    let about = "the memory of an idle connection of TLS 1.3, both ends, one of 200";
    let idle = Scenario::new("tls_idle_pair_bytes", about)
        .batch(PAIRS)
        .unit(Unit::Bytes)
        .contestant(CONVOKE, || convoke(|ends, ops| Box::pin(idle_on_convoke(ends, ops))))
        .contestant("tokio_rustls", || tokio(|ends, ops| Box::pin(idle_on_tokio(ends, ops))));
    vec![handshake, bulk, idle]
}

/// The configurations of both ends.
#[derive(Clone)]
struct Ends {
    server: Arc<ServerConfig>,
    client: Arc<ClientConfig>,
}

impl Ends {
    fn new() -> Self {
        let CertifiedKey { cert, signing_key } =
            generate_simple_self_signed([NAME.to_owned()]).expect("a certificate is made");
        let key = PrivateKeyDer::try_from(signing_key.serialize_der()).expect("a key of rcgen");
        let server = ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(vec![cert.der().clone()], key)
            .expect("a key of this certificate");
        let mut roots = RootCertStore::empty();
        roots.add(cert.der().clone()).expect("a certificate of rcgen");
        let mut client = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
        client.resumption = Resumption::disabled();
        Self { server: Arc::new(server), client: Arc::new(client) }
    }
}

type Running<C> = Pin<Box<dyn Future<Output = io::Result<C>>>>;

fn convoke<C: 'static>(work: fn(Ends, u64) -> Running<C>) -> impl FnMut(u64) -> C {
    let ends = Ends::new();
    move |ops| {
        let ended = io_context().expect("an I/O context starts").block_on(work(ends.clone(), ops));
        ended.unwrap().expect("loopback does not fail")
    }
}

fn tokio<C: 'static>(work: fn(Ends, u64) -> Running<C>) -> impl FnMut(u64) -> C {
    let ends = Ends::new();
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_io().build().expect("a tokio run loop starts");
    move |ops| runtime.block_on(work(ends.clone(), ops)).expect("loopback does not fail")
}

async fn handshakes_on_convoke(ends: Ends, ops: u64) -> io::Result<Duration> {
    let pairs = Convoke::listen(ends).await?;
    let time = ProcessorTime::begin();
    for _ in 0..ops {
        pairs.pair().await?;
    }
    Ok(time.end())
}

async fn handshakes_on_tokio(ends: Ends, ops: u64) -> io::Result<Duration> {
    let pairs = Tokio::listen(ends).await?;
    let time = ProcessorTime::begin();
    for _ in 0..ops {
        pairs.pair().await?;
    }
    Ok(time.end())
}

async fn bulk_on_convoke(ends: Ends, ops: u64) -> io::Result<Duration> {
    let (mut client, mut server) = Convoke::listen(ends).await?.pair().await?;
    let time = ProcessorTime::begin();
    let chunks = ops as usize * OP_BYTES / CHUNK;
    let send = async {
        let bytes = vec![7; CHUNK];
        for _ in 0..chunks {
            write_all(&mut client, &bytes).await?;
        }
        io::Result::Ok(())
    };
    let receive = async {
        let mut bytes = vec![0; CHUNK];
        for _ in 0..chunks {
            read_exact(&mut server, &mut bytes).await?;
        }
        io::Result::Ok(())
    };
    try_join((send, receive)).await?;
    Ok(time.end())
}

async fn bulk_on_tokio(ends: Ends, ops: u64) -> io::Result<Duration> {
    let (mut client, mut server) = Tokio::listen(ends).await?.pair().await?;
    let time = ProcessorTime::begin();
    let chunks = ops as usize * OP_BYTES / CHUNK;
    let send = async {
        let bytes = vec![7; CHUNK];
        for _ in 0..chunks {
            client.write_all(&bytes).await?;
        }
        client.flush().await
    };
    let receive = async {
        let mut bytes = vec![0; CHUNK];
        for _ in 0..chunks {
            server.read_exact(&mut bytes).await?;
        }
        io::Result::Ok(())
    };
    tokio::try_join!(send, receive)?;
    Ok(time.end())
}

async fn idle_on_convoke(ends: Ends, ops: u64) -> io::Result<Bytes> {
    let pairs = Convoke::listen(ends).await?;
    // One before, so that what is made once is made.
    pairs.talk().await?;
    let mut idle = Vec::with_capacity(ops as usize);
    let weighing = Weighing::begin();
    for _ in 0..ops {
        idle.push(pairs.talk().await?);
    }
    Ok(Bytes(weighing.end()))
}

async fn idle_on_tokio(ends: Ends, ops: u64) -> io::Result<Bytes> {
    let pairs = Tokio::listen(ends).await?;
    pairs.talk().await?;
    let mut idle = Vec::with_capacity(ops as usize);
    let weighing = Weighing::begin();
    for _ in 0..ops {
        idle.push(pairs.talk().await?);
    }
    Ok(Bytes(weighing.end()))
}

struct Convoke {
    acceptor: TlsAcceptor,
    connector: TlsConnector,
    listener: TcpListener,
    address: SocketAddr,
}

type OnConvoke = TlsStream<TcpStream>;

impl Convoke {
    async fn listen(ends: Ends) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let (acceptor, connector) =
            (TlsAcceptor::from_config(ends.server), TlsConnector::from_config(ends.client));
        Ok(Self { acceptor, connector, listener, address })
    }

    /// Connects. Returns the client's end and the server's.
    async fn pair(&self) -> io::Result<(OnConvoke, OnConvoke)> {
        let client = async {
            let stream = TcpStream::connect(self.address).await?;
            self.connector.connect(NAME, stream).await
        };
        let server = async {
            let (stream, _) = self.listener.accept().await?;
            self.acceptor.accept(stream).await
        };
        let (client, server) = join((client, server)).await;
        Ok((client?, server?))
    }

    /// Connects, and sends a message each way: the client has then received all that follows a handshake.
    async fn talk(&self) -> io::Result<(OnConvoke, OnConvoke)> {
        let (mut client, mut server) = self.pair().await?;
        let mut byte = [0];
        write_all(&mut client, b"x").await?;
        read_exact(&mut server, &mut byte).await?;
        write_all(&mut server, b"y").await?;
        read_exact(&mut client, &mut byte).await?;
        Ok((client, server))
    }
}

struct Tokio {
    acceptor: tokio_rustls::TlsAcceptor,
    connector: tokio_rustls::TlsConnector,
    listener: tokio::net::TcpListener,
    address: SocketAddr,
}

type ClientOnTokio = tokio_rustls::client::TlsStream<tokio::net::TcpStream>;
type ServerOnTokio = tokio_rustls::server::TlsStream<tokio::net::TcpStream>;

impl Tokio {
    async fn listen(ends: Ends) -> io::Result<Self> {
        let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let (acceptor, connector) = (ends.server.into(), ends.client.into());
        Ok(Self { acceptor, connector, listener, address })
    }

    async fn pair(&self) -> io::Result<(ClientOnTokio, ServerOnTokio)> {
        let client = async {
            let stream = tokio::net::TcpStream::connect(self.address).await?;
            self.connector.connect(ServerName::try_from(NAME).expect("a name"), stream).await
        };
        let server = async {
            let (stream, _) = self.listener.accept().await?;
            self.acceptor.accept(stream).await
        };
        tokio::try_join!(client, server)
    }

    async fn talk(&self) -> io::Result<(ClientOnTokio, ServerOnTokio)> {
        let (mut client, mut server) = self.pair().await?;
        let mut byte = [0];
        client.write_all(b"x").await?;
        client.flush().await?;
        server.read_exact(&mut byte).await?;
        server.write_all(b"y").await?;
        server.flush().await?;
        client.read_exact(&mut byte).await?;
        Ok((client, server))
    }
}
