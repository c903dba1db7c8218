//! HTTP/1.1 (RFC 9112, and of RFC 9110 what a server must do).

use convoke_http::serve;

use crate::harness::{Client, beside, echo, listener, simulated};

/// Sends bytes, and checks all that the server says until it closes the idle connection, but for dates.
#[track_caller]
fn check(bytes: &'static str, expected: &'static [&'static str]) {
    simulated(move || async move {
        beside(serve(listener().await?, echo).report(|_| ()), async move {
            let mut client = Client::connect().await?;
            client.send(bytes).await?;
            let said = client.rest().await;
            let lines: Vec<_> =
                said.lines().filter(|line| !line.starts_with("date: ") && !line.is_empty()).collect();
            assert_eq!(lines, expected, "after {bytes:?}");
            Ok(())
        })
        .await
    });
}

const REFUSED: &[&str] = &["HTTP/1.1 400 Bad Request", "connection: close", "content-length: 0"];

#[test]
fn a_request_names_its_host_once() {
    // RFC 9112, 3.2. Hyper takes any number; the server does not.
    const BAD: &[&str] = &["HTTP/1.1 400 Bad Request", "content-length: 0"];
    check("GET / HTTP/1.1\r\n\r\n", BAD);
    check("GET / HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n", BAD);
    check("GET http://a/ HTTP/1.1\r\n\r\n", BAD);
    check("GET http://a/ HTTP/1.1\r\nhost: a\r\n\r\n", &["HTTP/1.1 200 OK", "content-length: 0"]);
    check("GET / HTTP/1.0\r\n\r\n", &["HTTP/1.0 200 OK", "content-length: 0"]);
}

#[test]
fn a_line_before_a_request_is_ignored() {
    // RFC 9112, 2.2
    check("\r\nGET / HTTP/1.1\r\nhost: s\r\n\r\n", &["HTTP/1.1 200 OK", "content-length: 0"]);
}

#[test]
fn request_lines_have_three_parts_and_a_version() {
    // RFC 9112, 2.3 and 3. Hyper answers with 400 where 505 was possible.
    for bytes in [
        "GET /\r\nhost: s\r\n\r\n",
        "GET / HTTP/3.0\r\nhost: s\r\n\r\n",
        "GET / HTTP/1.1 x\r\nhost: s\r\n\r\n",
        " GET / HTTP/1.1\r\nhost: s\r\n\r\n",
        "G[]T / HTTP/1.1\r\nhost: s\r\n\r\n",
    ] {
        check(bytes, REFUSED);
    }
}

#[test]
fn names_and_values_have_no_control_characters() {
    // RFC 9110, 5.5 and 5.6.2
    for bytes in [
        "GET / HTTP/1.1\r\nhost: s\r\nx: a\0b\r\n\r\n",
        "GET / HTTP/1.1\r\nhost: s\r\n: a\r\n\r\n",
        "GET / HTTP/1.1\r\nhost: s\r\na b: c\r\n\r\n",
        "GET / HTTP/1.1\r\nhost: s\r\nno colon\r\n\r\n",
    ] {
        check(bytes, REFUSED);
    }
}

#[test]
fn an_answer_to_head_has_no_body() {
    // RFC 9110, 9.3.2
    check(
        "HEAD / HTTP/1.1\r\nhost: s\r\ncontent-length: 5\r\n\r\nhello",
        &["HTTP/1.1 200 OK", "content-length: 5"],
    );
}

#[test]
fn a_client_that_waits_for_100_hears_it() {
    // RFC 9110, 10.1.1
    check(
        "POST / HTTP/1.1\r\nhost: s\r\nexpect: 100-continue\r\ncontent-length: 5\r\n\r\nhello",
        &["HTTP/1.1 100 Continue", "HTTP/1.1 200 OK", "content-length: 5", "hello"],
    );
}

#[test]
fn chunks_have_sizes_in_hexadecimal_extensions_and_trailers() {
    // RFC 9112, 7.1
    check(
        "POST / HTTP/1.1\r\nhost: s\r\ntransfer-encoding: chunked\r\n\r\n0000A;x=y\r\n0123456789\r\n0\r\nx: y\r\n\r\n",
        &["HTTP/1.1 200 OK", "content-length: 10", "0123456789"],
    );
    for bytes in [
        "POST / HTTP/1.1\r\nhost: s\r\ntransfer-encoding: chunked\r\n\r\n0x5\r\nhello\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nhost: s\r\ntransfer-encoding: chunked\r\n\r\n+5\r\nhello\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nhost: s\r\ntransfer-encoding: chunked\r\n\r\n-5\r\nhello\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nhost: s\r\ntransfer-encoding: chunked\r\n\r\n5\nhello\r\n0\r\n\r\n",
    ] {
        // The connection is closed, although the answer does not say so: the handler had begun.
        check(bytes, &["HTTP/1.1 400 Bad Request", "content-length: 0"]);
    }
}

#[test]
fn requests_that_follow_each_other_are_answered_in_order_until_one_is_the_last() {
    // RFC 9112, 9.3.2 and 9.6
    check(
        "POST /a HTTP/1.1\r\nhost: s\r\ncontent-length: 1\r\n\r\n1POST /b HTTP/1.1\r\nhost: s\r\nconnection: close\r\ncontent-length: 1\r\n\r\n2GET /c HTTP/1.1\r\nhost: s\r\n\r\n",
        &[
            "HTTP/1.1 200 OK",
            "content-length: 1",
            "1HTTP/1.1 200 OK",
            "connection: close",
            "content-length: 1",
            "2",
        ],
    );
}
