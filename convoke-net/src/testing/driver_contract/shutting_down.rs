//! Nothing waits for ever after a shutdown.

use std::io;
use std::sync::Arc;

use convoke_task::{launch, local_scope};

use super::DriverHarness;
use super::fixture::{fill, in_flight};
use crate::net::TcpListener;
use convoke_io::driver::{Address, ListenOptions};
use convoke_io::transfer::{Toward, Transfer};
use convoke_io::{IoContext, current_driver};

pub(super) fn operations_in_flight_fail(harness: &DriverHarness) {
    harness.run(async {
        let (near, far) = harness.connection().await?;
        let listener = TcpListener::bind(harness.address()).await?;
        fill(&near)?;
        local_scope(async |s| {
            let owned = s.spawn_future(async { near.read_owned(vec![0; 4]).await.0.map(drop) });
            let borrowed = s.spawn_future(async { near.read(&mut [0; 4]).await.map(drop) });
            let written = s.spawn_future(async { near.write_all(b"blocked").await });
            let accepted = s.spawn_future(async { listener.accept().await.map(drop) });
            in_flight(4).await;
            let driver = current_driver()?;
            driver.shut_down();
            assert_eq!(driver.in_flight(), 0);
            for ended in [owned.await, borrowed.await, written.await, accepted.await] {
                assert_ne!(ended.expect_err("the driver has shut down").kind(), io::ErrorKind::WouldBlock);
            }
            io::Result::Ok(())
        })
        .await?;
        drop(far);
        Ok(())
    });
}

pub(super) fn operations_submitted_later_fail(harness: &DriverHarness) {
    harness.run(async {
        let (near, far) = harness.connection().await?;
        let (driver, listener) = (current_driver()?, TcpListener::bind(harness.address()).await?);
        let to = Address::Internet(listener.local_addr()?);
        let unconnected = driver.stream(&to)?;
        driver.shut_down();
        driver.shut_down();
        assert!(Transfer::<_, Toward>::new(unconnected, to).await.0.is_err());
        assert!(near.read(&mut [0; 4]).await.is_err());
        assert!(near.read_owned([0; 4]).await.0.is_err());
        assert!(far.write_all(&vec![0; 1 << 24]).await.is_err());
        let at = Address::Internet(harness.address());
        assert!(driver.listen(&at, &ListenOptions::default()).is_err());
        assert!(driver.stream(&at).is_err());
        Ok(())
    });
}

pub(super) fn dropping_a_context_ends_its_waiters(harness: &DriverHarness) {
    let context = IoContext::new(harness.driver());
    let driver = Arc::clone(context.driver());
    let (near, far) = context.block_on(harness.connection()).unwrap().expect("a connection");
    let reader = launch(&context.executor()).start(async move { near.read_owned(vec![0; 4]).await.0 });
    context.block_on(in_flight(1)).unwrap();
    drop(context);
    assert_eq!(driver.in_flight(), 0);
    assert!(!matches!(reader.wait().value(), Some(Ok(_))), "there is nothing to read");
    drop(far);
}

pub(super) fn sockets_may_outlive_their_driver(harness: &DriverHarness) {
    let context = IoContext::new(harness.driver());
    let (near, far) = context.block_on(harness.connection()).unwrap().expect("a connection");
    drop(context);
    assert!(near.source.try_read(&mut [0; 4]).is_err());
    drop((near, far));
}
