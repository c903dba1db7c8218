//! Services of tower: a router of axum.

use axum::Router;
use axum::body::Bytes;
use axum::extract::Path;
use axum::routing::{get, post};
use convoke::prelude::*;
use convoke_http::{Limits, Server, tower};

use crate::harness::{Client, beside, listener, seconds, simulated};

fn router() -> Router {
    async fn greet(Path(name): Path<String>) -> String {
        sleep(seconds(1)).await;
        format!("hello {name}")
    }
    async fn length(body: Bytes) -> String {
        body.len().to_string()
    }
    Router::new().route("/hello/{name}", get(greet)).route("/length", post(length))
}

#[test]
fn a_router_of_axum_answers() {
    simulated(|| async {
        beside(Server::new(listener().await?, tower(router())), async {
            let mut client = Client::connect().await?;
            assert_eq!(client.get("/hello/ada").await?.body, "hello ada");
            assert_eq!(client.get("/nothing").await?.status, 404);
            assert_eq!(client.get("/length").await?.status, 405);
            Ok(())
        })
        .await
    });
}

#[test]
fn a_router_of_axum_knows_the_limit_of_bodies() {
    simulated(|| async {
        let server = Server::new(listener().await?, tower(router())).limits(Limits::new().body_bytes(10));
        beside(server, async {
            let mut client = Client::connect().await?;
            let head = "POST /length HTTP/1.1\r\nhost: s\r\ntransfer-encoding: chunked\r\n\r\n";
            client.send(&format!("{head}5\r\nhello\r\n0\r\n\r\n")).await?;
            assert_eq!(client.answer().await?.body, "5");
            client.send(&format!("{head}6\r\nhello \r\n5\r\nworld\r\n0\r\n\r\n")).await?;
            assert_eq!(client.answer().await?.status, 413);
            Ok(())
        })
        .await
    });
}
