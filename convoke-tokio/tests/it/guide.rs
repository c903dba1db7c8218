//! Code that pages show without compiling it, because it needs crates that they do not depend on: here it is, word for word, and runs.

use std::time::Duration;

use convoke::prelude::*;
use convoke::runtime::Runtime;
use convoke_http::Client;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::log::Log;

/// Returns the blocks of a page that are marked as not compiled.
fn ignored_blocks(page: &str) -> Vec<String> {
    let lines = page.lines().map(|line| line.trim_start_matches("//!").trim());
    let (mut blocks, mut block) = (Vec::new(), None);
    for line in lines {
        match (line, &mut block) {
            ("```ignore", None) => block = Some(String::new()),
            ("```", Some(_)) => blocks.extend(block.take()),
            (line, Some(block)) => *block += &(line.to_owned() + "\n"),
            (_, None) => {}
        }
    }
    blocks
}

/// Returns code without its comments, and without the white space that rustfmt decides about.
fn bare(code: &str) -> String {
    let lines = code.lines().map(str::trim).filter(|line| !line.starts_with("//"));
    lines.flat_map(|line| line.chars()).filter(|char| !char.is_whitespace()).collect()
}

#[test]
fn what_the_pages_show_is_compiled_here() {
    let here = bare(include_str!("guide.rs"));
    let pages = [
        (include_str!("../../../convoke/src/guide/adopting.rs"), 1),
        (include_str!("../../../convoke/src/guide/servers.rs"), 1),
        (include_str!("../../../convoke-http/src/lib.rs"), 1),
    ];
    for (page, blocks) in pages {
        // The block with sqlx is compiled in `services`.
        let found: Vec<_> = ignored_blocks(page).into_iter().filter(|it| !it.contains("sqlx::")).collect();
        assert_eq!(found.len(), blocks, "{found:?}");
        for item in found.iter().flat_map(|block| block.split("\n\n")) {
            assert!(here.contains(&bare(item)), "not compiled anywhere:\n{item}");
        }
    }
}

/// The guide, *Adopt it one handler at a time*: a handler of axum in a tokio program.
mod adopting {
    use axum::extract::State;
    use axum::http::StatusCode;
    use convoke::prelude::*;
    use convoke_tokio::run;

    use crate::log::Log;

    /// The database: a record of what happens.
    pub(super) type Pool = Log;

    struct Transaction(Log);

    impl Transaction {
        async fn begin(database: &Pool) -> Result<Self, StatusCode> {
            checkpoint().await;
            database.note("begin");
            Ok(Self(database.clone()))
        }
    }

    impl AsyncClose for Transaction {
        type Error = Never;

        async fn close(self, exit: Exit) -> Result<(), Never> {
            checkpoint().await;
            self.0.note(if exit.is_clean() { "commit" } else { "rollback" });
            Ok(())
        }
    }

    async fn place_order(tx: &Transaction) -> Result<String, StatusCode> {
        tx.0.note("order");
        Ok("ordered".to_owned())
    }

    pub(super) async fn order(State(database): State<Pool>) -> Result<String, StatusCode> {
        run(async move {
            // If the client hangs up, tokio drops this handler. The transaction is
            // rolled back all the same, and awaited.
            let transaction = Transaction::begin(&database).await?;
            using(transaction, async |tx| place_order(&tx).await).await
        })
        .named("order")
        .await
        .map_err(|_stopped| StatusCode::SERVICE_UNAVAILABLE)?
    }
}

#[tokio::test]
async fn the_handler_of_the_guide_commits() {
    let log = Log::default();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = axum::Router::new().route("/", axum::routing::get(adopting::order)).with_state(log.clone());
    let server = tokio::spawn(async move { axum::serve(listener, router).await });
    let mut client = tokio::net::TcpStream::connect(address).await.unwrap();
    client.write_all(b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).await.unwrap();
    assert!(answer.ends_with("ordered"), "{answer}");
    assert_eq!(log.lines(), ["begin", "order", "commit"]);
    server.abort();
}

/// The guide, *Servers*: one client for all handlers.
mod servers {
    use std::io;

    use axum::Router;
    use axum::extract::State;
    use axum::http::StatusCode;
    use axum::response::{IntoResponse, Response};
    use axum::routing::get;
    use convoke_http::{Client, ClientError, Server, tower};

    pub(super) struct Failure(ClientError);

    impl From<ClientError> for Failure {
        fn from(error: ClientError) -> Self {
            Self(error)
        }
    }

    impl IntoResponse for Failure {
        fn into_response(self) -> Response {
            (StatusCode::BAD_GATEWAY, self.0.to_string()).into_response()
        }
    }

    pub(super) async fn page(State(client): State<Client>) -> Result<String, Failure> {
        // If the visitor hangs up here, the request is stopped, and its connection
        // is not used again.
        Ok(client.get("http://backend/page").send().await?.text().await?)
    }

    #[allow(dead_code, reason = "its port may be taken: what it does, the test below does in the simulator")]
    #[convoke::main]
    async fn main() -> io::Result<()> {
        Client::run(async |client| {
            let router = Router::new().route("/", get(page)).with_state(client);
            Server::new("127.0.0.1:7000", tower(router)).await
        })
        .await
    }
}

#[test]
fn handlers_share_the_client_of_the_guide() {
    use axum::Router;
    use axum::routing::get;
    use convoke_http::{Server, tower};

    let mut sim = convoke::sim::Sim::new(1);
    sim.host("backend").daemon().run(async || {
        Server::new("0.0.0.0:80", tower(Router::new().route("/page", get(async || "the page")))).await
    });
    sim.host("front").daemon().run(async || {
        Client::run(async |client| {
            let router = Router::new().route("/", get(servers::page)).with_state(client);
            Server::new("0.0.0.0:80", tower(router)).await
        })
        .await
    });
    sim.host("visitor").run(async || {
        let visit = Client::run(async |client| client.get("http://front/").send().await?.text().await);
        assert_eq!(visit.await.map_err(std::io::Error::other)?, "the page");
        Ok::<_, std::io::Error>(())
    });
    sim.run();
}

/// The documentation of `convoke-http`: a runtime of tokio around all handlers.
mod on_tokio {
    use axum::Router;
    use axum::extract::Request;
    use axum::middleware::Next;
    use axum::response::Response;
    use convoke_tokio::tokio_guest;

    #[expect(clippy::let_and_return, reason = "the page shows the `let`")]
    pub(super) fn with_tokio(router: Router) -> Router {
        async fn on_tokio(request: Request, next: Next) -> Response {
            tokio_guest(move || next.run(request)).await
        }
        let router = router.layer(axum::middleware::from_fn(on_tokio));
        router
    }
}

#[test]
fn the_middleware_gives_all_handlers_a_tokio_runtime() {
    use axum::Router;
    use axum::routing::get;
    use convoke_http::{Server, tower};

    async fn needs_tokio() -> &'static str {
        tokio::time::sleep(Duration::from_millis(1)).await;
        tokio::spawn(async { "from a task of tokio" }).await.unwrap()
    }

    let runtime = Runtime::builder().contexts(2).pool_threads(1).build().unwrap();
    let answer = runtime.block_on(async {
        let listener = convoke::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let router = on_tokio::with_tokio(Router::new().route("/", get(needs_tokio)));
        let serves = async {
            Server::new(listener, tower(router)).await.unwrap();
            unreachable!("it serves until it is stopped")
        };
        let asks = Client::run(async |client| client.get(url).send().await.unwrap().text().await.unwrap());
        race((serves, asks)).await
    });
    assert_eq!(answer.unwrap(), "from a task of tokio");
}
