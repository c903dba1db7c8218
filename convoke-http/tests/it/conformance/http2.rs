//! HTTP/2: frames, streams, settings, windows (RFC 9113, 3 to 7).

use std::io;

use super::frames::*;

/// The start of a request that is not complete.
fn open() -> Vec<u8> {
    frame(HEADERS, END_HEADERS, 1, WAIT)
}

/// A whole request.
fn whole(stream: u32) -> Vec<u8> {
    frame(HEADERS, END_HEADERS | END_STREAM, stream, GET)
}

#[test]
fn a_request_is_answered() {
    check(&[&whole(1)], &["200 1", "data 1 0"]);
    let body = [frame(DATA, 0, 1, b"hel"), frame(DATA, PADDED | END_STREAM, 1, b"\x02lo\0\0")].concat();
    check(&[&frame(HEADERS, END_HEADERS, 1, POST), &body], &["200 1", "data 1 5"]);
}

#[test]
fn a_client_that_begins_without_settings_is_served() {
    // RFC 9113 section 3.4 requires them, but allows a server to accept less, as hyper does.
    with_server(async || {
        let mut peer = Peer::silent().await?;
        peer.send(&[PREFACE, &whole(1)].concat()).await;
        assert_eq!(peer.says().await, ["200 1", "data 1 0"]);
        io::Result::Ok(())
    });
}

#[test]
fn frames_of_a_wrong_size_are_an_error() {
    // 4.2: 16,384 bytes are the most, as long as the server has not said otherwise.
    fails(&[&open(), &frame(DATA, 0, 1, &[0; 16_385])], "FRAME_SIZE_ERROR");
    fails(&[&frame(HEADERS, END_HEADERS, 1, &[0; 16_385])], "FRAME_SIZE_ERROR");
    // 6.3 to 6.9
    let size = |frames: &[&[u8]]| fails_without("FRAME_SIZE_ERROR", frames);
    size(&[&frame(PRIORITY, 0, 1, b"1234")]);
    size(&[&open(), &frame(RST_STREAM, 0, 1, b"123")]);
    size(&[&frame(SETTINGS, 0, 0, b"12345")]);
    size(&[&frame(SETTINGS, ACK, 0, &setting(3, 1))]);
    size(&[&frame(PING, 0, 0, b"1234567")]);
    size(&[&frame(WINDOW_UPDATE, 0, 0, b"123")]);
}

#[test]
fn heads_that_cannot_be_decompressed_are_an_error() {
    // 4.3: an index that is zero, or of nothing; a table larger than allowed; a string that is longer than the block.
    for block in [&b"\x80"[..], b"\xff\x80\x01", b"\x3f\xe1\xff\x03", b"\x82\x86\x84\x41\x0as"] {
        fails_without("COMPRESSION_ERROR", &[&frame(HEADERS, END_HEADERS | END_STREAM, 1, block)]);
    }
}

#[test]
fn frames_of_streams_that_are_idle_are_an_error() {
    // 5.1
    fails(&[&frame(DATA, END_STREAM, 1, b"x")], "PROTOCOL_ERROR");
    fails(&[&frame(RST_STREAM, 0, 1, &[0, 0, 0, 8])], "PROTOCOL_ERROR");
    fails(&[&frame(WINDOW_UPDATE, 0, 1, &[0, 0, 0, 1])], "PROTOCOL_ERROR");
    fails(&[&frame(CONTINUATION, END_HEADERS, 1, GET)], "PROTOCOL_ERROR");
}

#[test]
fn frames_of_streams_that_are_closed_are_an_error() {
    // 5.1: half-closed by the client. An error of the stream would do; hyper ends the connection.
    let waiting = frame(HEADERS, END_HEADERS | END_STREAM, 1, WAIT);
    fails_without("STREAM_CLOSED", &[&waiting, &frame(DATA, 0, 1, b"x")]);
    fails_without("STREAM_CLOSED", &[&waiting, &whole(1)]);
    // A window may still be opened.
    check(&[&waiting, &frame(WINDOW_UPDATE, 0, 1, &[0, 0, 0, 1])], &[]);
    // Reset by the client.
    let reset = [open(), frame(RST_STREAM, 0, 1, &[0, 0, 0, 8])].concat();
    check(&[&reset, &frame(DATA, 0, 1, b"x")], &["reset 1 STREAM_CLOSED"]);
    check(&[&reset, &frame(WINDOW_UPDATE, 0, 1, &[0, 0, 0, 1])], &[]);
    fails_without("STREAM_CLOSED", &[&reset, &whole(1)]);
}

#[test]
fn streams_have_odd_numbers_that_grow() {
    // 5.1.1
    fails(&[&whole(2)], "PROTOCOL_ERROR");
    check(&[&frame(HEADERS, END_HEADERS, 5, WAIT), &whole(3)], &["goaway PROTOCOL_ERROR", "closed"]);
}

#[test]
fn streams_beyond_the_bound_are_refused() {
    // 5.1.2
    let three: Vec<_> =
        [1, 3, 5].iter().flat_map(|&stream| frame(HEADERS, END_HEADERS, stream, WAIT)).collect();
    check(&[&three, &whole(7)], &["reset 7 REFUSED_STREAM"]);
}

#[test]
fn what_is_unknown_is_ignored_but_in_the_middle_of_a_head() {
    // 5.5, 4.1
    check(
        &[&frame(0xfa, 0xff, 0, b"?"), &frame(PING, 0x80, 0, b"12345678"), &whole(1)],
        &["200 1", "data 1 0"],
    );
    check(&[&frame(SETTINGS, 0, 0, &setting(0xfafa, 1)), &whole(1)], &["200 1", "data 1 0"]);
    fails(&[&frame(HEADERS, END_STREAM, 1, GET), &frame(0xfa, 0, 1, b"?")], "PROTOCOL_ERROR");
}

#[test]
fn frames_are_of_a_stream_or_of_the_connection() {
    // 6.1 to 6.10
    fails(&[&frame(DATA, 0, 0, b"x")], "PROTOCOL_ERROR");
    fails(&[&frame(HEADERS, END_HEADERS, 0, GET)], "PROTOCOL_ERROR");
    fails(&[&frame(PRIORITY, 0, 0, b"12345")], "PROTOCOL_ERROR");
    fails(&[&frame(RST_STREAM, 0, 0, &[0, 0, 0, 8])], "PROTOCOL_ERROR");
    fails(&[&frame(SETTINGS, 0, 1, &[])], "PROTOCOL_ERROR");
    fails(&[&frame(PING, 0, 1, b"12345678")], "PROTOCOL_ERROR");
    fails(&[&frame(GOAWAY, 0, 1, &[0; 8])], "PROTOCOL_ERROR");
    fails(&[&frame(CONTINUATION, END_HEADERS, 0, GET)], "PROTOCOL_ERROR");
}

#[test]
fn padding_is_shorter_than_its_frame() {
    // 6.1, 6.2
    fails(&[&open(), &frame(DATA, PADDED, 1, b"\x05x")], "PROTOCOL_ERROR");
    fails(&[&frame(HEADERS, END_HEADERS | PADDED, 1, b"\xff\x82")], "PROTOCOL_ERROR");
}

#[test]
fn a_head_is_continued_by_nothing_else() {
    // 6.2, 6.10
    let start = frame(HEADERS, END_STREAM, 1, &GET[..2]);
    let (more, last) =
        (frame(CONTINUATION, 0, 1, &GET[2..3]), frame(CONTINUATION, END_HEADERS, 1, &GET[3..]));
    check(&[&start, &more, &last], &["200 1", "data 1 0"]);
    fails(&[&start, &whole(3)], "PROTOCOL_ERROR");
    fails(&[&start, &frame(PING, 0, 0, b"12345678")], "PROTOCOL_ERROR");
    fails(&[&start, &frame(CONTINUATION, END_HEADERS, 3, &GET[2..])], "PROTOCOL_ERROR");
    fails(&[&open(), &frame(CONTINUATION, END_HEADERS, 1, GET)], "PROTOCOL_ERROR");
}

#[test]
fn settings_have_bounds() {
    // 6.5.2
    fails(&[&frame(SETTINGS, 0, 0, &setting(2, 2))], "PROTOCOL_ERROR");
    fails_without("FLOW_CONTROL_ERROR", &[&frame(SETTINGS, 0, 0, &setting(4, 1 << 31))]);
    fails(&[&frame(SETTINGS, 0, 0, &setting(5, 16_383))], "PROTOCOL_ERROR");
    fails(&[&frame(SETTINGS, 0, 0, &setting(5, 1 << 24))], "PROTOCOL_ERROR");
}

#[test]
fn clients_promise_nothing() {
    // 8.4
    fails(&[&open(), &frame(PUSH_PROMISE, END_HEADERS, 1, &[&[0, 0, 0, 2], GET].concat())], "PROTOCOL_ERROR");
}

#[test]
fn windows_grow_by_something_and_up_to_a_bound() {
    // 6.9
    fails(&[&frame(WINDOW_UPDATE, 0, 0, &[0; 4])], "PROTOCOL_ERROR");
    // An error of the stream would do; hyper ends the connection.
    fails(&[&open(), &frame(WINDOW_UPDATE, 0, 1, &[0; 4])], "PROTOCOL_ERROR");
    let most = &0x7fff_ffff_u32.to_be_bytes();
    fails(&[&frame(WINDOW_UPDATE, 0, 0, most)], "FLOW_CONTROL_ERROR");
    check(&[&open(), &frame(WINDOW_UPDATE, 0, 1, most)], &["reset 1 FLOW_CONTROL_ERROR"]);
    // 6.9.2: by a setting.
    let by_one = frame(WINDOW_UPDATE, 0, 1, &[0, 0, 0, 1]);
    fails(&[&open(), &by_one, &frame(SETTINGS, 0, 0, &setting(4, 0x7fff_ffff))], "FLOW_CONTROL_ERROR");
}

#[test]
fn the_server_keeps_to_the_window_of_the_client() {
    // 6.9.1, 6.9.2: the answer has two bytes.
    with_server(async || {
        let mut peer = Peer::connect(&setting(4, 1)).await?;
        let body = frame(DATA, END_STREAM, 1, b"0123456789");
        peer.send(&[frame(HEADERS, END_HEADERS, 1, POST), body].concat()).await;
        assert_eq!(peer.says().await, ["200 1", "data 1 1"]);
        peer.send(&frame(WINDOW_UPDATE, 0, 1, &[0, 0, 0, 1])).await;
        assert_eq!(peer.says().await, ["data 1 0"]);
        io::Result::Ok(())
    });
}

#[test]
fn a_client_that_exceeds_the_window_is_disconnected() {
    // 5.2: the server has given more than the first 65,535 bytes, and less than these.
    let much: Vec<_> = (0..200).flat_map(|_| frame(DATA, 0, 1, &[0; 16_384])).collect();
    with_server(move || {
        let much = much.clone();
        async move {
            let mut peer = Peer::connect(&[]).await?;
            peer.send(&[open(), much].concat()).await;
            let said = peer.says().await;
            assert!(
                said.contains(&"reset 1 FLOW_CONTROL_ERROR".to_owned())
                    || said == ["goaway FLOW_CONTROL_ERROR", "closed"],
                "{said:?}"
            );
            io::Result::Ok(())
        }
    });
}

#[test]
fn pings_are_answered_with_the_same_bytes() {
    // 6.7: and answers are not answered.
    with_server(async || {
        let mut peer = Peer::connect(&[]).await?;
        peer.send(&[frame(PING, ACK, 0, b"answered"), frame(PING, 0, 0, b"question")].concat()).await;
        let mut answer = peer.frame().await.unwrap();
        while answer.kind == WINDOW_UPDATE {
            answer = peer.frame().await.unwrap();
        }
        assert_eq!((answer.kind, answer.flags, &answer.payload[..]), (PING, ACK, &b"question"[..]));
        io::Result::Ok(())
    });
}
