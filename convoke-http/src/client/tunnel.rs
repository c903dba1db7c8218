//! A tunnel through a proxy: `CONNECT host:port`.

use std::io;

use convoke_net::net::TcpStream;

use super::origin::Origin;
use super::proxy::ProxyServer;

/// The maximum size of the answer of a proxy.
const ANSWER_BYTES: usize = 16 * 1024;

/// Asks a proxy for a tunnel to an origin, over a connection to that proxy.
pub(super) async fn tunnel(stream: &TcpStream, origin: &Origin, proxy: &ProxyServer) -> io::Result<()> {
    let target = origin.host_and_port();
    let mut request = format!("CONNECT {target} HTTP/1.1\r\nhost: {target}\r\n").into_bytes();
    if let Some(authorization) = &proxy.authorization {
        request.extend_from_slice(b"proxy-authorization: ");
        request.extend_from_slice(authorization.as_bytes());
        request.extend_from_slice(b"\r\n");
    }
    request.extend_from_slice(b"\r\n");
    stream.write_all(&request).await?;
    let mut answer = Vec::with_capacity(1024);
    loop {
        if let Some(end) = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
            check(&answer)?;
            // The other end waits for the client to begin.
            return if end + 4 == answer.len() { Ok(()) } else { Err(broken("it says more than was asked")) };
        }
        if answer.len() >= ANSWER_BYTES {
            return Err(broken("the answer is too long"));
        }
        if stream.read_buf(&mut answer).await? == 0 {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it has closed the connection"));
        }
    }
}

/// Checks that the status is a success.
fn check(answer: &[u8]) -> io::Result<()> {
    let line = answer.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let line = String::from_utf8_lossy(line);
    let status = line.strip_prefix("HTTP/1.").and_then(|rest| rest.split(' ').nth(1));
    match status {
        Some(status) if status.len() == 3 && status.starts_with('2') => Ok(()),
        Some(_) => Err(io::Error::new(io::ErrorKind::ConnectionRefused, format!("it has answered `{line}`"))),
        None => Err(broken("it does not speak HTTP")),
    }
}

fn broken(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}
