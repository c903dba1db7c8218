//! The client behind a proxy that answers `CONNECT` with anything. A tunnel that does not lead to the server is no tunnel.

use std::io;
use std::net::Shutdown;
use std::time::Duration;

use convoke::prelude::*;
use convoke::sim::simulate;
use convoke_http::Client;
use convoke_http::client::Proxy;

use super::tls::ends;
use super::{LONG, SERVER, head_of, listener, say};

pub(super) fn target(data: &[u8]) {
    let Some((&size, answer)) = data.split_first() else { return };
    let answer = answer.to_vec();
    simulate(1, async move {
        let listener = listener().await?;
        let proxy = async {
            loop {
                let (stream, _) = listener.accept().await?;
                if let Some(head) = head_of(&stream).await {
                    assert!(head.starts_with("CONNECT server:443 HTTP/1.1\r\n"), "{head}");
                    say(&stream, &answer, size).await;
                    _ = stream.shutdown(Shutdown::Write);
                    let mut rest = Vec::new();
                    while let Ok(1..) = stream.read_buf(&mut rest).await {}
                }
            }
        };
        let client =
            Client::builder().tls(&ends().0).proxy(Proxy::all(SERVER)?).total_time(Duration::from_secs(60));
        let body = client.run(async |client| {
            let ended =
                timeout(LONG, client.get("https://server/").send()).await.expect("the client waits for ever");
            assert!(ended.is_err(), "nobody has the key of the server");
            io::Result::Ok(())
        });
        race((proxy, body)).await
    })
    .unwrap();
}
