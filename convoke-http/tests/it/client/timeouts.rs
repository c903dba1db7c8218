//! The time limits, each with its phase. All of it is virtual time.

use std::io;

use convoke::prelude::*;
use convoke::time::now;
use convoke_http::Client;
use convoke_http::client::Phase;

use super::scripted::{Peer, scripted};
use crate::harness::{seconds, simulated};

#[test]
fn a_server_that_says_nothing_ends_the_wait_for_the_head() {
    simulated(|| {
        let silent = async |_, peer: Peer| peer.keep_silent().await;
        scripted(Client::builder().head_time(seconds(7)), silent, async |client, accepted| {
            let begun = now();
            let error = client.get("http://127.0.0.1/").send().await.unwrap_err();
            assert_eq!((error.phase(), error.is_timeout()), (Phase::Head, true));
            assert!(error.may_have_been_processed(), "it was sent");
            assert_eq!(now() - begun, seconds(7));
            assert_eq!(io::Error::from(error).kind(), io::ErrorKind::TimedOut);
            // The connection was closed, and another one is opened.
            sleep(seconds(1)).await;
            assert_eq!(client.connections(), 0);
            client.get("http://127.0.0.1/").send().await.unwrap_err();
            assert_eq!(accepted.get(), 2);
            Ok(())
        })
    });
}
