//! The server, and a client that says anything. The first byte is the size of the pieces in which it says it.

use std::future::IntoFuture;

use convoke::prelude::*;
use convoke::sim::simulate;
use convoke_http::serve;

use super::{Reports, converse, is_served, length, listener};

pub(super) fn target(data: &[u8]) {
    let Some((&size, bytes)) = data.split_first() else { return };
    let (bytes, reports) = (bytes.to_vec(), Reports::default());
    let function = reports.function();
    let client = async move {
        let answers = converse(&bytes, size).await?;
        let text = String::from_utf8_lossy(&answers);
        assert!(!text.contains("HTTP/1.1 5"), "{text}");
        is_served().await
    };
    let server = async { serve(listener().await?, length).report(function).into_future().await };
    simulate(1, async { race((server, client)).await }).unwrap();
    reports.check();
}
