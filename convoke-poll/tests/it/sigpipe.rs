//! A write to a peer that is gone is an error, and no SIGPIPE, also in a process where that signal has its
//! default action: it would end the process. That process is this test binary, started once more.
#![cfg(unix)]
#![allow(unsafe_code)]

use std::future::poll_fn;
use std::io::{self, ErrorKind, IoSlice};
use std::os::unix::process::ExitStatusExt;
use std::pin::Pin;
use std::process::Command;
use std::sync::Arc;

use convoke_io::IoContext;
use convoke_net::net::{SocketStream, TcpListener, TcpStream, UnixStream};
use convoke_poll::PollDriver;
use convoke_task::try_join;
use futures_io::AsyncWrite;

/// The variable that selects the program of this process.
const ROLE: &str = "CONVOKE_TEST_ROLE";

#[test]
fn a_write_to_a_gone_peer_raises_no_signal() {
    let ended = Command::new(std::env::current_exe().expect("the test binary has a path"))
        .args(["--exact", "sigpipe::the_program", "--nocapture"])
        .env(ROLE, "writes")
        .output()
        .expect("the test binary starts");
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!((ended.status.signal(), ended.status.code()), (None, Some(0)), "{said}");
    assert!(String::from_utf8_lossy(&ended.stdout).contains("all writes failed"));
}

#[test]
fn the_program() {
    if std::env::var(ROLE).is_err() {
        return;
    }
    // SAFETY: `SIG_DFL` is a valid action, and this process has no handler that it could replace.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
    for make in [PollDriver::new, PollDriver::portable] {
        let make: fn() -> io::Result<PollDriver> = make;
        let context = IoContext::new(Arc::new(make().expect("a driver can be created")));
        let ended = context.block_on(async {
            let (near, far) = UnixStream::pair()?;
            drop(far);
            every_write_fails(near).await;
            let listener = TcpListener::bind("127.0.0.1:0").await?;
            let connect = TcpStream::connect(listener.local_addr()?);
            let (near, (far, _)) = try_join((connect, listener.accept())).await?;
            drop(far);
            near.shutdown(std::net::Shutdown::Write)?;
            every_write_fails(near).await;
            io::Result::Ok(())
        });
        ended.unwrap().expect("the program succeeds");
    }
    println!("all writes failed");
}

/// Writes in every way to a stream that cannot be written to any more.
async fn every_write_fails<K: convoke_net::net::Kind>(mut stream: SocketStream<K>) {
    let buffers = [IoSlice::new(b"two "), IoSlice::new(b"parts")];
    let results = [
        stream.write(b"word").await.map(drop),
        stream.write_all(b"word").await,
        stream.write_owned(b"word").await.0.map(drop),
        stream.write_vectored(&buffers).await.map(drop),
        poll_fn(|cx| Pin::new(&mut stream).poll_write(cx, b"word")).await.map(drop),
        poll_fn(|cx| Pin::new(&mut stream).poll_write_vectored(cx, &buffers)).await.map(drop),
    ];
    for result in results {
        assert_eq!(result.expect_err("the peer is gone").kind(), ErrorKind::BrokenPipe);
    }
}
