//! Connections are made, refused and accepted.

use std::io;

use convoke_task::{local_scope, try_join};

use super::DriverHarness;
use super::fixture::in_flight;
use crate::net::{ConnectOptions, ListenOptions, SocketOption, TcpListener, TcpStream};

const CONNECTIONS: usize = 16;

pub(super) fn each_accept_gets_one_connection(harness: &DriverHarness) {
    harness.run(async {
        let listener = TcpListener::bind(harness.address()).await?;
        let address = listener.local_addr()?;
        local_scope(async |s| {
            let accepting: Vec<_> = (0..CONNECTIONS).map(|_| s.spawn_future(listener.accept())).collect();
            in_flight(CONNECTIONS).await;
            let mut near = Vec::new();
            for _ in 0..CONNECTIONS {
                near.push(TcpStream::connect(address).await?);
            }
            let mut peers = Vec::new();
            for one in accepting {
                peers.push(one.await?.1);
            }
            let mut ours = near.iter().map(TcpStream::local_addr).collect::<io::Result<Vec<_>>>()?;
            peers.sort_unstable();
            ours.sort_unstable();
            assert_eq!(peers, ours);
            io::Result::Ok(())
        })
        .await
    });
}

pub(super) fn connections_made_before_the_accept_are_accepted(harness: &DriverHarness) {
    harness.run(async {
        let listener = TcpListener::bind(harness.address()).await?;
        let address = listener.local_addr()?;
        let mut near = Vec::new();
        for _ in 0..CONNECTIONS {
            near.push(TcpStream::connect(address).await?);
        }
        for _ in 0..CONNECTIONS {
            drop(listener.accept().await?);
        }
        Ok(())
    });
}

pub(super) fn a_refused_connection_is_an_error(harness: &DriverHarness) {
    harness.run(async {
        let listener = TcpListener::bind(harness.address()).await?;
        let address = listener.local_addr()?;
        drop(listener);
        let error = TcpStream::connect(address).await.expect_err("there is no listener");
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
        Ok(())
    });
}

pub(super) fn an_address_in_use_is_an_error(harness: &DriverHarness) {
    harness.run(async {
        let listener = TcpListener::bind(harness.address()).await?;
        let address = listener.local_addr()?;
        let error =
            TcpListener::bind_with(address, ListenOptions::default()).await.expect_err("it is in use");
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
        Ok(())
    });
}

pub(super) fn both_ends_know_their_addresses(harness: &DriverHarness) {
    harness.run(async {
        let listener = TcpListener::bind(harness.address()).await?;
        let address = listener.local_addr()?;
        assert_ne!(address.port(), 0, "a free port was chosen");
        let (near, (far, peer)) = try_join((TcpStream::connect(address), listener.accept())).await?;
        assert_eq!((near.peer_addr()?, far.local_addr()?), (address, address));
        assert_eq!((near.local_addr()?, far.peer_addr()?), (peer, peer));
        Ok(())
    });
}

pub(super) fn a_stream_is_bound_and_configured_before_it_connects(harness: &DriverHarness) {
    harness.run(async {
        let listener = TcpListener::bind(harness.address()).await?;
        let options = ConnectOptions::new().bind(harness.address()).option(SocketOption::NoDelay(true));
        let connect = TcpStream::connect_with(listener.local_addr()?, options);
        let (near, (_far, peer)) = try_join((connect, listener.accept())).await?;
        assert_eq!((near.local_addr()?, near.local_addr()?.ip()), (peer, harness.address().ip()));
        assert!(near.nodelay()?);
        Ok(())
    });
}
