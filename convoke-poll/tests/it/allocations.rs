//! Reading and writing allocate nothing once they are warm, neither in the driver nor in sockets nor in the
//! loop. So twice as many rounds make as many allocations.

use core::future::Future;
use core::net::{Ipv4Addr, SocketAddr};
use std::io;
use std::sync::Arc;

use convoke_io::IoContext;
use convoke_net::net::{TcpListener, TcpStream, UdpSocket};
use convoke_poll::PollDriver;
use convoke_task::{local_scope, try_join};
use convoke_testing::workshop::counting::allocations;

const ROUNDS: usize = 300;

const FORMS: [fn() -> io::Result<PollDriver>; 3] =
    [PollDriver::new, PollDriver::portable, PollDriver::portable_without_edges];

/// Runs a program with fewer and with more rounds on a warm context, and compares the allocations.
#[track_caller]
fn allocates_nothing_per_round<F: Future<Output = io::Result<()>>>(program: impl Fn(usize) -> F) {
    for make in FORMS {
        let context = IoContext::new(Arc::new(make().expect("a driver can be created")));
        let run = |rounds| {
            allocations(|| context.block_on(program(rounds)).unwrap().expect("the program succeeds"))
        };
        run(ROUNDS);
        let (less, more) = (run(ROUNDS), run(2 * ROUNDS));
        assert_eq!(less, more, "allocations of {ROUNDS} rounds, and of twice as many");
    }
}

fn any_port() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, 0).into()
}

async fn connection() -> io::Result<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind(any_port()).await?;
    let address = listener.local_addr()?;
    let (near, (far, _)) = try_join((TcpStream::connect(address), listener.accept())).await?;
    Ok((near, far))
}

#[test]
fn reading_and_writing() {
    allocates_nothing_per_round(async |rounds| {
        let (near, far) = connection().await?;
        local_scope(async |s| {
            s.spawn(async {
                let mut buffer = [0; 64];
                while let read @ 1.. = far.read(&mut buffer).await? {
                    far.write_all(&buffer[..read]).await?;
                }
                Ok(())
            });
            let mut received = [0; 8];
            for _ in 0..rounds {
                near.write_all(b"question").await?;
                near.read_exact(&mut received).await?;
            }
            near.shutdown(std::net::Shutdown::Write)
        })
        .await
    });
}

#[test]
fn waiting_to_write() {
    allocates_nothing_per_round(async |rounds| {
        let (near, far) = connection().await?;
        let data = vec![0; 1 << 16];
        let mut buffer = vec![0; 1 << 16];
        local_scope(async |s| {
            s.spawn(async {
                for _ in 0..rounds {
                    near.write_all(&data).await?;
                }
                Ok(())
            });
            for _ in 0..rounds {
                far.read_exact(&mut buffer).await?;
            }
            Ok(())
        })
        .await
    });
}

#[test]
fn owned_buffers() {
    allocates_nothing_per_round(async |rounds| {
        let (near, far) = connection().await?;
        local_scope(async |s| {
            s.spawn(async {
                let mut buffer = vec![0; 64];
                loop {
                    let (read, bytes) = far.read_owned(buffer).await;
                    match read? {
                        0 => return Ok(()),
                        read => far.write_all(&bytes[..read]).await?,
                    }
                    buffer = bytes;
                }
            });
            let mut data = vec![7; 8];
            for _ in 0..rounds {
                let (written, back) = near.write_owned(data).await;
                assert_eq!(written?, 8);
                let (read, back) = near.read_owned(back).await;
                assert_eq!(read?, 8);
                data = back;
            }
            near.shutdown(std::net::Shutdown::Write)
        })
        .await
    });
}

#[test]
fn datagrams() {
    allocates_nothing_per_round(async |rounds| {
        let (near, far) = (UdpSocket::bind(any_port()).await?, UdpSocket::bind(any_port()).await?);
        let to = far.local_addr()?;
        let mut buffer = [0; 8];
        for _ in 0..rounds {
            let receive = async { far.recv_from(&mut buffer).await };
            let ((received, _), sent) = try_join((receive, near.send_to(b"datagram", to))).await?;
            assert_eq!((received, sent), (8, 8));
        }
        Ok(())
    });
}
