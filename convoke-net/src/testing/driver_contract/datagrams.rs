//! Datagrams keep their borders, and say who sent them.

use std::io;

use convoke_task::local_scope;

use super::Harness;
use super::stage::in_flight;
use crate::net::UdpSocket;

pub(super) fn each_has_its_borders_and_its_sender(harness: &Harness) {
    harness.run(async {
        let (near, far) = sockets(harness).await?;
        let to = far.local_addr()?;
        let mut room = [0; 64];
        local_scope(async |s| {
            let waits = s.spawn_future(async {
                let mut room = [0; 64];
                let (length, from) = far.recv_from(&mut room).await?;
                io::Result::Ok((room[..length].to_vec(), from))
            });
            in_flight(1).await;
            near.send_to(b"first", to).await?;
            assert_eq!(waits.await?, (b"first".to_vec(), near.local_addr()?));
            io::Result::Ok(())
        })
        .await?;
        near.send_to(b"second", to).await?;
        near.send_to(b"third", to).await?;
        let (length, from) = far.peek_from(&mut room).await?;
        assert_eq!((&room[..length], from), (&b"second"[..], near.local_addr()?));
        assert_eq!(far.recv_from(&mut room).await?.0, 6);
        let (length, _) = far.recv_from(&mut room).await?;
        assert_eq!(&room[..length], b"third");
        Ok(())
    });
}

pub(super) fn what_does_not_fit_is_lost(harness: &Harness) {
    harness.run(async {
        let (near, far) = sockets(harness).await?;
        near.send_to(b"0123456789", far.local_addr()?).await?;
        near.send_to(b"next", far.local_addr()?).await?;
        let mut room = [0; 4];
        assert_eq!(far.recv_from(&mut room).await?.0, 4);
        assert_eq!(&room, b"0123");
        assert_eq!(far.recv_from(&mut room).await?.0, 4);
        assert_eq!(&room, b"next");
        Ok(())
    });
}

pub(super) fn one_of_no_length_is_one(harness: &Harness) {
    harness.run(async {
        let (near, far) = sockets(harness).await?;
        near.send_to(b"", far.local_addr()?).await?;
        near.send_to(b"x", far.local_addr()?).await?;
        assert_eq!(far.recv_from(&mut [0; 4]).await?.0, 0);
        assert_eq!(far.recv_from(&mut [0; 4]).await?.0, 1);
        Ok(())
    });
}

pub(super) fn a_socket_can_be_bound_to_one_peer(harness: &Harness) {
    harness.run(async {
        let (near, far) = sockets(harness).await?;
        near.connect(far.local_addr()?).await?;
        far.connect(near.local_addr()?).await?;
        assert_eq!(near.peer_addr()?, far.local_addr()?);
        near.send(b"to you").await?;
        let mut room = [0; 16];
        assert_eq!(far.recv(&mut room).await?, 6);
        assert_eq!(&room[..6], b"to you");
        Ok(())
    });
}

async fn sockets(harness: &Harness) -> io::Result<(UdpSocket, UdpSocket)> {
    Ok((UdpSocket::bind(harness.address()).await?, UdpSocket::bind(harness.address()).await?))
}
