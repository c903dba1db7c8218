//! A lack of descriptors is an error only for calls that need one; when there are descriptors again these
//! calls work again.

use std::io;

use super::DriverHarness;
use crate::net::{TcpListener, TcpStream};
use convoke_io::current_driver;
use convoke_io::driver::{Address, ListenOptions};

pub(super) fn a_lack_of_descriptors_is_a_temporary_error(harness: &DriverHarness) {
    let Some(limit) = harness.descriptors else { return };
    harness.run(async {
        let listener = TcpListener::bind(harness.address()).await?;
        let waiting = TcpStream::connect(listener.local_addr()?).await?;
        let (near, far) = harness.connection().await?;
        let driver = current_driver()?;
        let at = Address::Internet(harness.address());
        let mut taken = Vec::new();
        let error = loop {
            assert!(taken.len() <= limit, "the limit of {limit} descriptors was not reached");
            match driver.datagrams(&at, &ListenOptions::default()) {
                Ok(source) => taken.push(source),
                Err(error) => break error,
            }
        };
        assert_ne!(error.kind(), io::ErrorKind::WouldBlock);
        // Each call that needs a descriptor fails, every time.
        for _ in 0..3 {
            assert_ne!(
                listener.accept().await.expect_err("there are no descriptors left").kind(),
                io::ErrorKind::WouldBlock
            );
            assert!(TcpStream::connect(listener.local_addr()?).await.is_err());
            assert!(TcpListener::bind(harness.address()).await.is_err());
        }
        // Others are not disturbed.
        near.write_all(b"here").await?;
        let mut received = [0; 4];
        far.read_exact(&mut received).await?;
        assert_eq!(driver.in_flight(), 0);
        taken.truncate(taken.len() / 2);
        let (accepted, peer) = listener.accept().await?;
        assert_eq!(peer, waiting.local_addr()?, "the connection has waited");
        waiting.write_all(b"late").await?;
        accepted.read_exact(&mut received).await?;
        assert_eq!(&received, b"late");
        Ok(())
    });
}
