//! Requests that no honest client sends.

use convoke_http::serve;

use crate::harness::{Client, Log, beside, echo, listener, simulated};

/// Sends bytes on a connection of their own, and returns the statuses of all answers, and the paths that the service has
/// seen.
fn check(bytes: impl Into<String>, statuses: &'static [u16], paths: &'static [&'static str]) {
    let bytes = bytes.into();
    simulated(move || {
        let bytes = bytes.clone();
        async move {
            let log = Log::default();
            let seen = log.clone();
            let service = move |request: http::Request<convoke_http::RequestBody>| {
                seen.add(request.uri().path());
                echo(request)
            };
            beside(serve(listener().await?, service), async {
                let mut client = Client::connect().await?;
                client.send(&bytes).await?;
                let mut answers = Vec::new();
                while let Ok(answer) = client.answer().await {
                    answers.push(answer.status);
                }
                assert_eq!(answers, statuses, "{bytes:?}");
                Ok(())
            })
            .await?;
            assert_eq!(log.lines(), paths, "{bytes:?}");
            Ok(())
        }
    });
}

#[test]
fn chunks_that_are_broken_are_answered_with_400_and_end_the_connection() {
    check(
        "POST /a HTTP/1.1\r\nhost: s\r\ntransfer-encoding: chunked\r\n\r\nzz\r\nhello\r\n0\r\n\r\nGET /b HTTP/1.1\r\nhost: s\r\n\r\n",
        &[400],
        &["/a"],
    );
    check(
        "POST /a HTTP/1.1\r\nhost: s\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhelloXX0\r\n\r\nGET /b HTTP/1.1\r\nhost: s\r\n\r\n",
        &[400],
        &["/a"],
    );
    // Longer than any number.
    check(
        "POST /a HTTP/1.1\r\nhost: s\r\ntransfer-encoding: chunked\r\n\r\nfffffffffffffffff\r\nhello\r\n0\r\n\r\n",
        &[400],
        &["/a"],
    );
}

#[test]
fn a_request_with_length_and_chunks_smuggles_nothing() {
    // The chunks count, and the connection ends: what follows may have been meant as a body by someone on the way.
    check(
        "POST /a HTTP/1.1\r\nhost: s\r\ncontent-length: 4\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nhost: s\r\n\r\n",
        &[200],
        &["/a"],
    );
    check(
        "POST /a HTTP/1.1\r\nhost: s\r\ntransfer-encoding: chunked\r\ncontent-length: 4\r\n\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nhost: s\r\n\r\n",
        &[200],
        &["/a"],
    );
}

#[test]
fn lengths_and_encodings_that_contradict_each_other_are_answered_with_400() {
    for head in [
        "content-length: 5\r\ncontent-length: 6",
        "content-length: 5, 6",
        "content-length: +5",
        "content-length: 5x",
        "content-length: -1",
        "transfer-encoding: identity",
        "transfer-encoding: chunked, identity",
        "transfer-encoding: xchunked",
        "transfer-encoding : chunked",
        "content-length\r\n : 5",
        "host: s\r\n folded: 5",
    ] {
        let bytes = format!(
            "POST /a HTTP/1.1\r\nhost: s\r\n{head}\r\n\r\nhelloGET /smuggled HTTP/1.1\r\nhost: s\r\n\r\n"
        );
        check(bytes, &[400], &[]);
    }
}

#[test]
fn chunks_by_http_1_0_are_refused() {
    check("POST /a HTTP/1.0\r\nhost: s\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n", &[400], &[]);
}

#[test]
fn what_is_no_http_is_answered_with_400_or_not_at_all() {
    check("\x16\x03\x01\x02\x00\x01\x00\x01\r\n\r\n", &[400], &[]);
    check("SSH-2.0-OpenSSH_9.6\r\n\r\n", &[400], &[]);
    // The preface of HTTP/2, and then something else.
    check("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nGET / HTTP/1.1\r\n\r\n", &[], &[]);
    check("PRI * HTTP/2.0\r\n\r\n", &[], &[]);
}
