//! Datagrams keep their boundaries, and name their sender.

use std::io;

use convoke_task::local_scope;

use super::DriverHarness;
use super::fixture::in_flight;
use crate::net::UdpSocket;

pub(super) fn each_has_its_boundaries_and_its_sender(harness: &DriverHarness) {
    harness.run(async {
        let (near, far) = sockets(harness).await?;
        let to = far.local_addr()?;
        let mut buffer = [0; 64];
        local_scope(async |s| {
            let waits = s.spawn_future(async {
                let mut buffer = [0; 64];
                let (length, from) = far.recv_from(&mut buffer).await?;
                io::Result::Ok((buffer[..length].to_vec(), from))
            });
            in_flight(1).await;
            near.send_to(b"first", to).await?;
            assert_eq!(waits.await?, (b"first".to_vec(), near.local_addr()?));
            io::Result::Ok(())
        })
        .await?;
        near.send_to(b"second", to).await?;
        near.send_to(b"third", to).await?;
        let (length, from) = far.peek_from(&mut buffer).await?;
        assert_eq!((&buffer[..length], from), (&b"second"[..], near.local_addr()?));
        assert_eq!(far.recv_from(&mut buffer).await?.0, 6);
        let (length, _) = far.recv_from(&mut buffer).await?;
        assert_eq!(&buffer[..length], b"third");
        Ok(())
    });
}

pub(super) fn bytes_that_do_not_fit_are_lost(harness: &DriverHarness) {
    harness.run(async {
        let (near, far) = sockets(harness).await?;
        near.send_to(b"0123456789", far.local_addr()?).await?;
        near.send_to(b"next", far.local_addr()?).await?;
        let mut buffer = [0; 4];
        assert_eq!(far.recv_from(&mut buffer).await?.0, 4);
        assert_eq!(&buffer, b"0123");
        assert_eq!(far.recv_from(&mut buffer).await?.0, 4);
        assert_eq!(&buffer, b"next");
        Ok(())
    });
}

pub(super) fn an_empty_datagram_arrives(harness: &DriverHarness) {
    harness.run(async {
        let (near, far) = sockets(harness).await?;
        near.send_to(b"", far.local_addr()?).await?;
        near.send_to(b"x", far.local_addr()?).await?;
        assert_eq!(far.recv_from(&mut [0; 4]).await?.0, 0);
        assert_eq!(far.recv_from(&mut [0; 4]).await?.0, 1);
        Ok(())
    });
}

pub(super) fn a_socket_can_be_connected_to_one_peer(harness: &DriverHarness) {
    harness.run(async {
        let (near, far) = sockets(harness).await?;
        near.connect(far.local_addr()?).await?;
        far.connect(near.local_addr()?).await?;
        assert_eq!(near.peer_addr()?, far.local_addr()?);
        near.send(b"to you").await?;
        let mut buffer = [0; 16];
        assert_eq!(far.recv(&mut buffer).await?, 6);
        assert_eq!(&buffer[..6], b"to you");
        Ok(())
    });
}

async fn sockets(harness: &DriverHarness) -> io::Result<(UdpSocket, UdpSocket)> {
    Ok((UdpSocket::bind(harness.address()).await?, UdpSocket::bind(harness.address()).await?))
}
