//! Connections that change their protocol.

use std::io;

use convoke::io::{read_exact, write_all};
use convoke_http::{Client, RequestBody, Upgraded, serve, upgrade};
use http::header::{CONNECTION, UPGRADE};
use http::{Request, Response, StatusCode};

use crate::harness::{beside, listener, simulated};

async fn shout(mut stream: Upgraded) -> io::Result<()> {
    let mut word = [0; 5];
    read_exact(&mut stream, &mut word).await?;
    word.make_ascii_uppercase();
    write_all(&mut stream, &word).await
}

/// Changes the protocol, if it is asked for.
async fn handler(mut request: Request<RequestBody>) -> io::Result<Response<String>> {
    if upgrade(&mut request, shout).is_err() {
        return Ok(Response::new("ordinary".to_owned()));
    }
    let answer = Response::builder().status(StatusCode::SWITCHING_PROTOCOLS);
    Ok(answer.header(CONNECTION, "upgrade").header(UPGRADE, "shout").body(String::new()).unwrap())
}

#[test]
fn an_upgraded_connection_is_handed_over_and_outlives_the_client() {
    simulated(|| async {
        let client = async {
            let mut stream = Client::run(async |client| {
                let request = client.get("http://127.0.0.1/").header(CONNECTION, "upgrade");
                let response = request.header(UPGRADE, "shout").send().await?;
                assert_eq!(response.status(), StatusCode::SWITCHING_PROTOCOLS);
                let stream = response.upgrade().await?;
                // Others have connections of their own.
                assert_eq!(client.get("http://127.0.0.1/").send().await?.text().await?, "ordinary");
                io::Result::Ok(stream)
            })
            .await?;
            write_all(&mut stream, b"hello").await?;
            let mut word = [0; 5];
            read_exact(&mut stream, &mut word).await?;
            assert_eq!(&word, b"HELLO");
            Ok(())
        };
        beside(serve(listener().await?, handler), client).await
    });
}

#[test]
fn an_ordinary_response_cannot_be_upgraded() {
    simulated(|| async {
        let client = Client::run(async |client| {
            let response = client.get("http://127.0.0.1/").send().await?;
            let error = response.upgrade().await.unwrap_err();
            assert!(error.is_body(), "{error}");
            Ok(())
        });
        beside(serve(listener().await?, handler), client).await
    });
}

#[cfg(feature = "tls")]
#[test]
fn an_upgrade_by_tls_asks_for_http1() {
    use super::tls::{acceptor, certificate, connector};
    let certificate = certificate();
    simulated(move || {
        let certificate = certificate.clone();
        async move {
            let client = Client::builder().tls(&connector(&certificate)).run(async |client| {
                let uri = "https://127.0.0.1:80/";
                let ordinary = client.get(uri).send().await?;
                assert_eq!(ordinary.version(), http::Version::HTTP_2);
                let request = client.get(uri).header(CONNECTION, "upgrade").header(UPGRADE, "shout");
                let mut stream = request.send().await?.upgrade().await?;
                write_all(&mut stream, b"hello").await?;
                let mut word = [0; 5];
                read_exact(&mut stream, &mut word).await?;
                assert_eq!(&word, b"HELLO");
                Ok(())
            });
            beside(serve(listener().await?, handler).tls(acceptor(&certificate)), client).await
        }
    });
}
