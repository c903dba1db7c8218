//! The other implementation: `openssl s_client` and `openssl s_server`, where the machine has them.

use std::io::{self, Read, Write};
use std::net::TcpListener as StdListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use convoke::io::{read_exact, write_all};
use convoke::net::{TcpListener, TcpStream};
use convoke::prelude::*;
use convoke_tls::{TlsAcceptor, TlsConnector};

use crate::certificates::{Authority, Signed};
use crate::exchange::read_to_end;

/// Files for openssl, removed with this.
struct Files(PathBuf);

impl Files {
    fn new(test: &str, authority: &Authority, signed: &Signed) -> Self {
        let folder = std::env::temp_dir().join(format!("convoke-tls-{test}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("ca.pem"), authority.pem()).unwrap();
        std::fs::write(folder.join("cert.pem"), &signed.certificate).unwrap();
        std::fs::write(folder.join("key.pem"), &signed.key).unwrap();
        Self(folder)
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A process that ends with its test.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        _ = self.0.kill();
        _ = self.0.wait();
    }
}

fn openssl(files: &Files) -> Option<Command> {
    let is_there = Command::new("openssl").arg("version").output().is_ok_and(|run| run.status.success());
    if !is_there {
        println!("left out: openssl is not installed");
        return None;
    }
    let mut command = Command::new("openssl");
    command.current_dir(&files.0).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    Some(command)
}

/// Our server and their client: versions 1.2 and 1.3, a protocol, and close_notify at the end.
#[convoke::test]
async fn openssl_s_client_talks_to_our_server() -> io::Result<()> {
    let authority = Authority::new();
    let signed = authority.sign("localhost");
    let files = Files::new("client", &authority, &signed);
    let acceptor = TlsAcceptor::builder(signed.identity()).alpn(["echo"]).build()?;
    for version in ["-tls1_2", "-tls1_3"] {
        let Some(mut command) = openssl(&files) else { return Ok(()) };
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?.to_string();
        command.args(["s_client", "-connect", &address, "-CAfile", "ca.pem", "-verify_return_error"]);
        command.args(["-servername", "localhost", "-alpn", "echo", "-quiet", version]);
        let mut client = Process(command.spawn()?);
        client.0.stdin.as_mut().unwrap().write_all(b"question")?;
        let (stream, _) = listener.accept().await?;
        let stream = acceptor.accept(stream).await?;
        assert_eq!((stream.alpn(), stream.server_name()), (Some(&b"echo"[..]), Some("localhost")));
        using(stream, async |mut stream| {
            let mut question = [0; 8];
            read_exact(&mut *stream, &mut question).await?;
            assert_eq!(&question, b"question");
            write_all(&mut *stream, b"answer").await
        })
        .await?;
        let mut answer = String::new();
        client.0.stdout.take().unwrap().read_to_string(&mut answer)?;
        assert_eq!(answer, "answer", "{version}");
        let mut said = String::new();
        client.0.stderr.take().unwrap().read_to_string(&mut said)?;
        assert!(!said.contains("unexpected eof"), "{version}: close_notify came: {said}");
    }
    Ok(())
}

/// Their server and our client.
#[convoke::test]
async fn our_client_talks_to_openssl_s_server() -> io::Result<()> {
    let authority = Authority::new();
    let signed = authority.sign("localhost");
    let files = Files::new("server", &authority, &signed);
    let connector = TlsConnector::builder(authority.roots()).build()?;
    for version in ["-tls1_2", "-tls1_3"] {
        let Some(mut command) = openssl(&files) else { return Ok(()) };
        let port = StdListener::bind("127.0.0.1:0")?.local_addr()?.port();
        command.args(["s_server", "-accept", &format!("127.0.0.1:{port}"), "-cert", "cert.pem"]);
        // It answers each line with the line reversed.
        command.args(["-key", "key.pem", "-rev", "-naccept", "1", version]);
        let _server = Process(command.spawn()?);
        let mut attempts = 0;
        let stream = loop {
            match TcpStream::connect(("127.0.0.1", port)).await {
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused && attempts < 500 => {
                    attempts += 1;
                    sleep(std::time::Duration::from_millis(20)).await;
                }
                connected => break connected?,
            }
        };
        let stream = connector.connect("localhost", stream).await?;
        let answer = using(stream, async |mut stream| {
            write_all(&mut *stream, b"drawer\nCLOSE\n").await?;
            read_to_end(&mut *stream).await
        });
        assert_eq!(String::from_utf8_lossy(&answer.await?), "reward\n", "{version}");
    }
    Ok(())
}
