//! Redis: over a stream of Convoke's, without a tokio runtime; and as a guest.

use convoke::net::TcpStream;
use convoke::prelude::*;
use convoke_services::service;
use convoke_tokio::{CompatExt, tokio_guest};
use redis::aio::MultiplexedConnection;
use redis::{AsyncCommands, AsyncConnectionConfig, RedisError};

#[convoke::test]
async fn the_client_runs_over_a_stream_of_convoke() -> Result<(), RedisError> {
    let stream = TcpStream::connect(service("CONVOKE_TEST_REDIS")).await?;
    // Its own timeouts would need a runtime; ours work around every call.
    let config = AsyncConnectionConfig::new().set_response_timeout(None);
    let (connection, driver) =
        MultiplexedConnection::new_with_config(&Default::default(), stream.compat(), config).await?;
    scope(async |s| {
        // A child that ends when the last clone of the connection is dropped.
        s.named("redis driver").spawn(async move {
            shield(driver).await;
            Ok(())
        });
        let children: Vec<_> = (0..20_i64)
            .map(|number| {
                let mut connection = connection.clone();
                s.spawn_future(async move {
                    let _: () = connection.set(format!("over-stream-{number}"), number).await?;
                    connection.get::<_, i64>(format!("over-stream-{number}")).await
                })
            })
            .collect();
        let mut sum = 0;
        for child in children {
            sum += child.await?;
        }
        assert_eq!(sum, 190);
        // A command that is stopped: its answer is ignored, and the next one gets its own.
        let mut blocked = connection.clone();
        let mut wait = redis::cmd("WAIT");
        let waits = wait.arg(1).arg(300).query_async::<i64>(&mut blocked);
        assert!(timeout(std::time::Duration::from_millis(20), waits).await.is_err());
        let mut connection = connection;
        assert_eq!(connection.get::<_, i64>("over-stream-7").await?, 7);
        Ok(())
    })
    .await
}

#[convoke::test]
async fn the_client_runs_as_a_guest() -> Result<(), RedisError> {
    let address = service("CONVOKE_TEST_REDIS");
    tokio_guest(|| async move {
        let client = redis::Client::open(format!("redis://{address}/"))?;
        let mut connection = client.get_multiplexed_async_connection().await?;
        let _: () = connection.set("guest", 42).await?;
        assert_eq!(connection.incr::<_, _, i64>("guest", 1).await?, 43);
        Ok(())
    })
    .await
}
