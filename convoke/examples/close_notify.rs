//! close_notify on every exit: a TLS stream that is used is closed, whatever ends its body. One that is merely dropped is not, and its
//! peer cannot tell the end of the message from an attack.
//!
//! ```text
//! cargo run --features tls --example close_notify
//! ```

use std::io;
use std::time::Duration;

use convoke::io::write_all;
use convoke::net::{TcpListener, TcpStream};
use convoke::prelude::*;
use convoke::tls::{Identity, Roots, TlsAcceptor, TlsConnector, TlsStream};

/// How the server's body ends.
#[derive(Clone, Copy, Debug)]
enum Exit {
    Return,
    Error,
    Panic,
    Timeout,
    /// No `using`: the stream is dropped, as everywhere else.
    Dropped,
}

#[convoke::main]
async fn main() -> io::Result<()> {
    let certificate =
        rcgen::generate_simple_self_signed(["localhost".to_owned()]).map_err(io::Error::other)?;
    let (pem, key) = (certificate.cert.pem(), certificate.signing_key.serialize_pem());
    let acceptor = TlsAcceptor::new(Identity::from_pem(pem.as_bytes(), key.as_bytes())?)?;
    let mut roots = Roots::new();
    roots.add_pem(pem.as_bytes())?;
    let connector = TlsConnector::new(roots)?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;

    // The panic below is part of the show: it is printed with the others.
    std::panic::set_hook(Box::new(|_| {}));
    println!("{:10} the client heard", "the body");
    for exit in [Exit::Return, Exit::Error, Exit::Panic, Exit::Timeout, Exit::Dropped] {
        let server = async {
            let (client, _) = listener.accept().await?;
            let client = acceptor.accept(client).await?;
            _ = catch_panic(serve(client, exit)).await;
            io::Result::Ok(())
        };
        let client = async {
            let stream = TcpStream::connect(address).await?;
            let mut stream = connector.connect("localhost", stream).await?;
            io::Result::Ok(read_to_end(&mut stream).await)
        };
        let ((), heard) = try_join((server, client)).await?;
        let is_clean = heard.is_ok();
        println!(
            "{:10} {}",
            format!("{exit:?}"),
            heard.map_or_else(|error| error.to_string(), |text| text + ", close_notify")
        );
        assert_eq!(is_clean, !matches!(exit, Exit::Dropped));
    }
    Ok(())
}

async fn serve(client: TlsStream<TcpStream>, exit: Exit) -> io::Result<()> {
    if let Exit::Dropped = exit {
        let mut client = client;
        return write_all(&mut client, b"balance: 100").await;
    }
    let answer = using(client, async move |mut client| {
        write_all(&mut *client, b"balance: 100").await?;
        match exit {
            Exit::Error => Err(io::Error::other("the account is closed")),
            Exit::Panic => panic!("no such account"),
            Exit::Timeout => std::future::pending().await,
            _ => Ok(()),
        }
    });
    timeout(Duration::from_millis(50), answer).await?
}

/// Runs a child of its own, so that its panic is a value.
async fn catch_panic(body: impl Future<Output = io::Result<()>> + Send + 'static) {
    scope(async |s| _ = s.child().spawn_future(body).outcome().await).await;
}

async fn read_to_end(stream: &mut TlsStream<TcpStream>) -> io::Result<String> {
    let (mut text, mut piece) = (Vec::new(), [0; 256]);
    loop {
        let read = stream.read(&mut piece).await?;
        if read == 0 {
            return String::from_utf8(text).map_err(io::Error::other);
        }
        text.extend_from_slice(&piece[..read]);
    }
}
