//! No descriptor left is an error to who asks for one, and to nobody else; and when there are some again, it goes on.

use std::io;

use super::Harness;
use crate::net::{TcpListener, TcpStream};
use convoke_io::current_driver;
use convoke_io::driver::{Address, ListenOptions};

pub(super) fn no_descriptor_is_an_error_and_then_it_goes_on(harness: &Harness) {
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
        // To whoever asks, each time.
        for _ in 0..3 {
            assert_ne!(
                listener.accept().await.expect_err("there is none left").kind(),
                io::ErrorKind::WouldBlock
            );
            assert!(TcpStream::connect(listener.local_addr()?).await.is_err());
            assert!(TcpListener::bind(harness.address()).await.is_err());
        }
        // Nobody else is disturbed.
        near.write_all(b"here").await?;
        let mut heard = [0; 4];
        far.read_exact(&mut heard).await?;
        assert_eq!(driver.in_flight(), 0);
        taken.truncate(taken.len() / 2);
        let (accepted, peer) = listener.accept().await?;
        assert_eq!(peer, waiting.local_addr()?, "it has waited");
        waiting.write_all(b"late").await?;
        accepted.read_exact(&mut heard).await?;
        assert_eq!(&heard, b"late");
        Ok(())
    });
}
