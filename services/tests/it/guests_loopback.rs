//! Servers and clients of other crates, both as guests, on loopback: these need no service.

use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::extract::ws::WebSocketUpgrade;
use axum::routing::any;
use convoke::prelude::*;
use convoke_tokio::tokio_guest;
use futures_util::{SinkExt, StreamExt};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio_tungstenite::tungstenite::Message;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Channel, Server};
use tonic_health::ServingStatus;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;
use tonic_health::server::health_reporter;

type Error = Box<dyn std::error::Error + Send + Sync>;

/// Says each message back, by axum's own WebSocket, which spawns a task.
async fn echo(upgrade: WebSocketUpgrade) -> axum::response::Response {
    upgrade.on_upgrade(|mut socket| async move {
        while let Some(Ok(message)) = socket.recv().await {
            if socket.send(message).await.is_err() {
                return;
            }
        }
    })
}

#[convoke::test]
async fn axum_with_its_web_socket_runs_as_a_guest() -> Result<(), Error> {
    let listener = tokio_guest(|| TcpListener::bind("127.0.0.1:0")).await?;
    let address = listener.local_addr()?;
    let serves = tokio_guest(|| async {
        axum::serve(listener, Router::new().route("/echo", any(echo))).await?;
        Ok(())
    });
    let asks = tokio_guest(|| async move {
        let (mut socket, _) = tokio_tungstenite::connect_async(format!("ws://{address}/echo")).await?;
        for word in ["one", "two"] {
            socket.send(Message::text(word)).await?;
            let heard = socket.next().await.ok_or("the server has gone")??;
            assert_eq!(heard, Message::text(word));
        }
        // The task of the server ends, so that the guest runtime need not wait for it.
        socket.close(None).await?;
        while socket.next().await.is_some() {}
        Ok(())
    });
    // The race is won by the client: the server is asked to stop, which drops it inside the guest runtime.
    race((serves, asks)).await
}

async fn connect(address: SocketAddr) -> Result<Channel, tonic::transport::Error> {
    Channel::from_shared(format!("http://{address}")).unwrap().connect().await
}

#[convoke::test]
async fn tonic_with_its_transport_runs_as_a_guest() -> Result<(), Error> {
    tokio_guest(|| async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let (reporter, service) = health_reporter();
        reporter.set_service_status("orders", ServingStatus::Serving).await;
        let (end, ended) = oneshot::channel::<()>();
        let server = Server::builder().add_service(service);
        let serves =
            server.serve_with_incoming_shutdown(TcpIncoming::from(listener), async { drop(ended.await) });
        let serves = tokio::spawn(serves);
        let mut client = HealthClient::new(connect(address).await?);
        let ask = |service: &str| HealthCheckRequest { service: service.to_owned() };
        let answer = client.check(ask("orders")).await?;
        assert_eq!(
            answer.get_ref().status,
            tonic_health::pb::health_check_response::ServingStatus::Serving as i32
        );
        let refused = client.check(ask("nobody")).await.unwrap_err();
        assert_eq!(refused.code(), tonic::Code::NotFound);
        // A stream of answers: the first at once, the next when the status changes.
        let mut watched = client.watch(ask("orders")).await?.into_inner();
        assert_eq!(watched.message().await?.ok_or("no status")?.status, 1);
        reporter.set_service_status("orders", ServingStatus::NotServing).await;
        assert_eq!(watched.message().await?.ok_or("no status")?.status, 2);
        drop((watched, client));
        let _ = end.send(());
        serves.await??;
        Ok(())
    })
    .await
}

/// A call that waits for an answer is dropped where it waits, inside the guest runtime.
#[convoke::test]
async fn a_stop_reaches_a_call_by_tonic() -> Result<(), Error> {
    let waits = tokio_guest(|| async {
        // Nobody accepts: the handshake of HTTP/2 waits.
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let mut client = HealthClient::new(connect(listener.local_addr()?).await?);
        client.check(HealthCheckRequest::default()).await?;
        Ok::<_, Error>(())
    });
    assert!(timeout(Duration::from_millis(50), waits).await.is_err());
    Ok(())
}
