//! HTTP/2: requests that are malformed (RFC 9113, 8.1 to 8.3).

use super::frames::*;

/// Sends a request with this block of fields, and checks that its stream is reset.
#[track_caller]
fn malformed(block: &[&[u8]]) {
    let request = frame(HEADERS, END_HEADERS | END_STREAM, 1, &block.concat());
    check(&[&request], &["reset 1 PROTOCOL_ERROR"]);
}

#[test]
fn names_are_in_lower_case() {
    // An error of the stream would do; hyper cannot decode the head, and ends the connection.
    let head = [GET, &field("Upper", "x")].concat();
    fails(&[&frame(HEADERS, END_HEADERS | END_STREAM, 1, &head)], "PROTOCOL_ERROR");
}

#[test]
fn pseudo_headers_are_those_of_a_request_come_first_and_once() {
    // An error of the stream would do; hyper cannot decode the head, and ends the connection.
    let head = [GET, &field(":unknown", "x")].concat();
    fails(&[&frame(HEADERS, END_HEADERS | END_STREAM, 1, &head)], "PROTOCOL_ERROR");
    malformed(&[GET, &field(":status", "200")]);
    malformed(&[&field("x", "y"), GET]);
    malformed(&[GET, &field(":method", "GET")]);
    malformed(&[GET, &field(":path", "/")]);
    malformed(&[b"\x86\x84\x41\x01s"]);
    malformed(&[b"\x82\x84\x41\x01s"]);
    malformed(&[b"\x82\x86\x41\x01s"]);
    malformed(&[b"\x82\x86\x41\x01s", &field(":path", "")]);
}

#[test]
fn fields_of_the_connection_do_not_belong_here() {
    for (name, value) in [
        ("connection", "close"),
        ("keep-alive", "5"),
        ("proxy-connection", "close"),
        ("transfer-encoding", "chunked"),
        ("upgrade", "x"),
        ("te", "gzip"),
    ] {
        malformed(&[GET, &field(name, value)]);
    }
    let allowed = [GET, &field("te", "trailers")].concat();
    check(&[&frame(HEADERS, END_HEADERS | END_STREAM, 1, &allowed)], &["200 1", "data 1 0"]);
}

#[test]
fn lengths_are_those_of_the_body() {
    let head = |length| frame(HEADERS, END_HEADERS, 1, &[POST, &field("content-length", length)].concat());
    check(&[&head("5"), &frame(DATA, END_STREAM, 1, b"hello")], &["200 1", "data 1 5"]);
    check(&[&head("4"), &frame(DATA, END_STREAM, 1, b"hello")], &["reset 1 PROTOCOL_ERROR"]);
    check(&[&head("6"), &frame(DATA, END_STREAM, 1, b"hello")], &["reset 1 PROTOCOL_ERROR"]);
}

#[test]
fn trailers_end_the_stream_and_have_no_pseudo_headers() {
    let start = [frame(HEADERS, END_HEADERS, 1, POST), frame(DATA, 0, 1, b"hello")].concat();
    let trailers = |flags, block: &[u8]| frame(HEADERS, END_HEADERS | flags, 1, block);
    check(&[&start, &trailers(END_STREAM, &field("x", "y"))], &["200 1", "data 1 5"]);
    check(&[&start, &trailers(0, &field("x", "y"))], &["reset 1 PROTOCOL_ERROR"]);
    // It would be malformed; hyper drops the pseudo-header, and nobody sees it.
    check(&[&start, &trailers(END_STREAM, &field(":path", "/"))], &["200 1", "data 1 5"]);
}
