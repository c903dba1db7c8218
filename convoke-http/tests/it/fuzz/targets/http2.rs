//! The server, and a client that sends any frames of HTTP/2. Of each frame, four bytes are its kind, its flags, its stream and the
//! length of its payload.

use std::future::IntoFuture;

use convoke::prelude::*;
use convoke::sim::simulate;
use convoke_http::serve;

use super::{Reports, converse, is_served, length, listener};

/// The number of kinds of frames, and one that nobody knows.
const KINDS: u8 = 11;

pub(super) fn target(data: &[u8]) {
    let Some((&size, described)) = data.split_first() else { return };
    let (bytes, reports) = (frames(described), Reports::default());
    let function = reports.function();
    let client = async move {
        check(&converse(&bytes, size).await?);
        is_served().await
    };
    let server = async { serve(listener().await?, length).report(function).into_future().await };
    simulate(1, async { race((server, client)).await }).unwrap();
    reports.check();
}

/// Makes frames of what the fuzzer says.
fn frames(mut described: &[u8]) -> Vec<u8> {
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0".to_vec();
    while let Some((&[kind, flags, stream, length], rest)) = described.split_first_chunk() {
        let (payload, rest) = rest.split_at(rest.len().min(length.into()));
        bytes.extend_from_slice(&[0, 0, payload.len() as u8, kind % KINDS, flags]);
        // Mostly the first few streams of a client.
        let stream = if stream >= 0xf0 { u32::MAX << (stream & 0xf) } else { u32::from(stream % 16) };
        bytes.extend_from_slice(&stream.to_be_bytes());
        bytes.extend_from_slice(payload);
        described = rest;
    }
    bytes
}

/// Checks that the server has sent whole frames, and that the first are its settings.
fn check(mut answers: &[u8]) {
    let mut number = 0;
    while let Some((head, rest)) = answers.split_first_chunk::<9>() {
        assert!(number > 0 || head[3..5] == [4, 0], "the first frame are the settings: {head:?}");
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        assert!(head[3] < 10 && length <= 16_384, "{head:?}");
        // The last one may be cut off by a reset.
        answers = rest.get(length..).unwrap_or_default();
        number += 1;
    }
}
