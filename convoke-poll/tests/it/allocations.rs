//! Reading and writing allocate nothing once they are under way: neither the driver nor the sockets nor the loop. So twice as
//! many rounds allocate no more than half of them.

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

/// The same program for more and for less rounds, on a context that is warm.
#[track_caller]
fn allocates_nothing_by_round<F: Future<Output = io::Result<()>>>(program: impl Fn(usize) -> F) {
    for make in FORMS {
        let context = IoContext::new(Arc::new(make().expect("a driver can be made")));
        let run =
            |rounds| allocations(|| context.run_until(program(rounds)).unwrap().expect("nothing goes wrong"));
        run(ROUNDS);
        let (less, more) = (run(ROUNDS), run(2 * ROUNDS));
        assert_eq!(less, more, "allocations of {ROUNDS} rounds, and of twice as many");
    }
}

fn anywhere() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, 0).into()
}

async fn connection() -> io::Result<(TcpStream, TcpStream)> {
    let listener = TcpListener::bind(anywhere()).await?;
    let address = listener.local_addr()?;
    let (near, (far, _)) = try_join((TcpStream::connect(address), listener.accept())).await?;
    Ok((near, far))
}

#[test]
fn reading_and_writing() {
    allocates_nothing_by_round(async |rounds| {
        let (near, far) = connection().await?;
        local_scope(async |s| {
            s.spawn(async {
                let mut room = [0; 64];
                while let read @ 1.. = far.read(&mut room).await? {
                    far.write_all(&room[..read]).await?;
                }
                Ok(())
            });
            let mut heard = [0; 8];
            for _ in 0..rounds {
                near.write_all(b"question").await?;
                near.read_exact(&mut heard).await?;
            }
            near.shutdown(std::net::Shutdown::Write)
        })
        .await
    });
}

#[test]
fn waiting_for_room() {
    allocates_nothing_by_round(async |rounds| {
        let (near, far) = connection().await?;
        let words = vec![0; 1 << 16];
        let mut room = vec![0; 1 << 16];
        local_scope(async |s| {
            s.spawn(async {
                for _ in 0..rounds {
                    near.write_all(&words).await?;
                }
                Ok(())
            });
            for _ in 0..rounds {
                far.read_exact(&mut room).await?;
            }
            Ok(())
        })
        .await
    });
}

#[test]
fn buffers_that_are_given_away() {
    allocates_nothing_by_round(async |rounds| {
        let (near, far) = connection().await?;
        local_scope(async |s| {
            s.spawn(async {
                let mut room = vec![0; 64];
                loop {
                    let (read, bytes) = far.read_owned(room).await;
                    match read? {
                        0 => return Ok(()),
                        read => far.write_all(&bytes[..read]).await?,
                    }
                    room = bytes;
                }
            });
            let mut words = vec![7; 8];
            for _ in 0..rounds {
                let (written, back) = near.write_owned(words).await;
                assert_eq!(written?, 8);
                let (read, back) = near.read_owned(back).await;
                assert_eq!(read?, 8);
                words = back;
            }
            near.shutdown(std::net::Shutdown::Write)
        })
        .await
    });
}

#[test]
fn datagrams() {
    allocates_nothing_by_round(async |rounds| {
        let (near, far) = (UdpSocket::bind(anywhere()).await?, UdpSocket::bind(anywhere()).await?);
        let to = far.local_addr()?;
        let mut room = [0; 8];
        for _ in 0..rounds {
            let receive = async { far.recv_from(&mut room).await };
            let ((received, _), sent) = try_join((receive, near.send_to(b"datagram", to))).await?;
            assert_eq!((received, sent), (8, 8));
        }
        Ok(())
    });
}
