//! nginx as the server of our client, and behind the reverse proxy of the example.

use std::collections::BTreeSet;
use std::io;
use std::time::Duration;

use convoke::net::TcpListener;
use convoke::prelude::*;
use convoke_http::Client;
use convoke_http::client::ClientError;
use convoke_services::service;

use crate::reverse_proxy::behind_proxy;

/// Returns a URL of nginx.
fn at(path: &str) -> String {
    format!("http://{}{path}", service("CONVOKE_TEST_NGINX"))
}

#[convoke::test]
async fn responses_of_nginx_are_read_to_their_end() -> Result<(), ClientError> {
    Client::run(async |client| {
        assert_eq!(client.get(at("/")).send().await?.text().await?, "hello\n");
        let large = client.get(at("/large")).send().await?;
        assert_eq!(large.headers()["content-length"], (1 << 20).to_string());
        assert_eq!(large.bytes().await?.len(), 1 << 20);
        assert_eq!(client.get(at("/missing")).send().await?.status(), 404);
        assert_eq!(client.head(at("/large")).send().await?.bytes().await?.len(), 0);
        let posted = client.post(at("/echo")).body("what nobody reads").send().await?;
        assert_eq!(posted.text().await?.trim(), "POST");
        Ok(())
    })
    .await
}

#[convoke::test]
async fn one_connection_serves_one_request_after_the_other() -> Result<(), ClientError> {
    Client::run(async |client| {
        let mut connections = BTreeSet::new();
        for request in 1..=10 {
            let told = client.get(at("/connection")).send().await?.text().await?;
            let (connection, requests) = told.split_once(' ').expect("two numbers");
            connections.insert(connection.to_owned());
            assert_eq!(requests, request.to_string());
        }
        assert_eq!(connections.len(), 1, "{connections:?}");
        Ok(())
    })
    .await
}

#[convoke::test]
async fn a_response_that_is_stopped_half_way_leaves_the_pool_usable() -> Result<(), ClientError> {
    Client::run(async |client| {
        // It takes four seconds, at the speed at which nginx sends it.
        let slow = async { client.get(at("/slow")).send().await?.bytes().await };
        assert!(timeout(Duration::from_millis(200), slow).await.is_err());
        assert_eq!(client.get(at("/")).send().await?.text().await?, "hello\n");
        // By a limit of the client: an error, and no stop.
        let slow = async {
            client.get(at("/slow")).total_time(Duration::from_millis(200)).send().await?.bytes().await
        };
        let failed = slow.await.unwrap_err();
        assert!(failed.is_timeout(), "{failed}");
        assert_eq!(client.get(at("/")).send().await?.text().await?, "hello\n");
        Ok(())
    })
    .await
}

#[convoke::test]
async fn the_reverse_proxy_passes_on_what_nginx_says() -> io::Result<()> {
    let front = TcpListener::bind("127.0.0.1:0").await?;
    let address = front.local_addr()?;
    let asks = Client::run(async |client| {
        let get = |path: &str| client.get(format!("http://{address}{path}")).send();
        assert_eq!(get("/").await?.text().await?, "hello\n");
        assert_eq!(get("/large").await?.bytes().await?.len(), 1 << 20);
        assert_eq!(get("/missing").await?.status(), 404);
        assert_eq!(get("/echo").await?.text().await?, format!("GET {}", address.ip()));
        // Who hangs up stops the request behind the proxy, too, and the next one is served.
        let slow = async { get("/slow").await?.bytes().await };
        assert!(timeout(Duration::from_millis(200), slow).await.is_err());
        assert_eq!(get("/").await?.text().await?, "hello\n");
        Ok::<_, ClientError>(())
    });
    let asks = async { asks.await.map_err(io::Error::other) };
    race((behind_proxy(front, &service("CONVOKE_TEST_NGINX")), asks)).await
}
