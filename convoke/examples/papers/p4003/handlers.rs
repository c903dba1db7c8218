//! P4003R1 §5.2 and §6.4: handlers of an HTTP server. Their signatures describe
//! what they do, and no executor, stop token or allocator passes through them.
//!
//! A chain of `async fn`s is one frame, however long it is: the allocator is asked
//! for the task, and not at every call. Here four calls need no frame.

use convoke::alloc::{Counting, FrameAllocator};
use convoke::env::Changes;
use convoke::executor::block_on_with;
use convoke::prelude::*;

#[derive(Default)]
struct RouteParams {
    host: &'static str,
    path: &'static str,
    status: u16,
    sent: Vec<String>,
}

impl RouteParams {
    async fn send(&mut self, body: &str) -> std::io::Result<()> {
        checkpoint().await;
        self.sent.push(format!("{} {body}", self.status));
        Ok(())
    }
}

async fn https_redirect(rp: &mut RouteParams) -> std::io::Result<()> {
    let url = format!("https://{}{}", rp.host, rp.path);
    rp.status = 302;
    rp.send(&url).await
}

async fn parse_metadata(rp: &RouteParams) -> usize {
    checkpoint().await;
    rp.path.len()
}

async fn store_file(_length: usize) {
    checkpoint().await;
}

async fn handle_upload(rp: &mut RouteParams) -> std::io::Result<()> {
    let meta = parse_metadata(rp).await;
    store_file(meta).await;
    rp.status = 200;
    rp.send("OK").await
}

pub(crate) fn run() -> String {
    let counting = Counting::new(FrameAllocator::default());
    let changes = Changes::new().allocator(FrameAllocator::new(counting.clone()));
    let outcome = block_on_with(changes, async {
        let (host, path) = ("example.org", "/a");
        let mut rp = RouteParams { host, path, ..RouteParams::default() };
        https_redirect(&mut rp).await?;
        let before = counting.total();
        handle_upload(&mut rp).await?;
        let frames = counting.total() - before;
        std::io::Result::Ok(format!("{}; {frames} frames", rp.sent.join(", ")))
    });
    outcome.unwrap().unwrap()
}
