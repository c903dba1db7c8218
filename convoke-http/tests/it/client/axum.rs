//! A client in the state of a router of axum.

use std::io;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::get;
use convoke::prelude::*;
use convoke::sim::Sim;
use convoke_http::{Client, ClientError, Server, serve, tower};

use crate::harness::{Log, Transaction, path, seconds};

/// A failure of the server behind.
struct BadGateway(ClientError);

impl From<ClientError> for BadGateway {
    fn from(error: ClientError) -> Self {
        Self(error)
    }
}

impl axum::response::IntoResponse for BadGateway {
    fn into_response(self) -> axum::response::Response {
        (StatusCode::BAD_GATEWAY, self.0.to_string()).into_response()
    }
}

async fn page(
    State(client): State<Client>,
    Path((host, page)): Path<(String, String)>,
) -> Result<String, BadGateway> {
    let text = client.get(format!("http://{host}/{page}")).send().await?.text().await?;
    Ok(format!("passed on: {text}"))
}

/// The program of the server in front: all of its connections are closed when it returns.
async fn front(log: Log) -> io::Result<()> {
    Client::run(async |client| {
        let router = Router::new().route("/{host}/{page}", get(page)).with_state(client);
        using(Transaction(log), async |_| Server::new("0.0.0.0:80", tower(router)).await).await
    })
    .await
}

#[test]
fn handlers_share_a_client_and_a_drain_of_the_server_closes_it() {
    let mut sim = Sim::new(1);
    let log = Log::default();
    sim.host("back").daemon().run(async || serve("0.0.0.0:80", path).await);
    sim.host("front").daemon().run_with(log.clone(), front);
    sim.host("visitor").run(async || {
        sleep(seconds(1)).await;
        Client::run(async |client| {
            for name in ["one", "two"] {
                let response = client.get(format!("http://front/back/{name}")).send().await?;
                assert_eq!(response.text().await?, format!("passed on: /{name}"));
            }
            let response = client.get("http://front/nowhere/page").send().await?;
            assert_eq!(response.status(), StatusCode::BAD_GATEWAY);
            let text = response.text().await?;
            assert!(text.starts_with("http://nowhere: connecting failed"), "{text}");
            io::Result::Ok(())
        })
        .await?;
        sleep(seconds(10)).await;
        io::Result::Ok(())
    });
    sim.at(seconds(5), |sim| sim.stop("front"));
    sim.run();
    assert_eq!(log.lines().len(), 1);
}
