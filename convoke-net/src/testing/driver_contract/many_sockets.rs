//! Many sockets at once: all wait, and all are woken.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use convoke_task::{scope, try_join};

use super::DriverHarness;
use super::fixture::in_flight;
use crate::net::{TcpListener, TcpStream};

pub(super) fn all_wait_and_all_are_woken(harness: &DriverHarness) {
    let connections = harness.sockets / 2;
    let woken = Arc::new(AtomicUsize::new(0));
    harness.run(async {
        let listener = TcpListener::bind(harness.address()).await?;
        let address = listener.local_addr()?;
        let mut near = Vec::with_capacity(connections);
        scope(async |s| {
            for _ in 0..connections {
                let (one, (other, _)) = try_join((TcpStream::connect(address), listener.accept())).await?;
                near.push(one);
                let woken = woken.clone();
                s.spawn(async move {
                    let mut byte = [0; 1];
                    assert_eq!(other.read(&mut byte).await?, 1);
                    woken.fetch_add(usize::from(byte[0]), Ordering::Relaxed);
                    assert_eq!(other.read(&mut byte).await?, 0);
                    io::Result::Ok(())
                });
            }
            in_flight(connections).await;
            for one in &near {
                one.write_all(&[1]).await?;
            }
            // After the first byte they wait again, for the end.
            while woken.load(Ordering::Relaxed) < connections {
                convoke_task::checkpoint().await;
            }
            near.clear();
            io::Result::Ok(())
        })
        .await
    });
    assert_eq!(woken.load(Ordering::Relaxed), connections);
}
