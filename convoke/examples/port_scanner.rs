//! A port scanner with a bound and a time limit for each port; only for hosts of your own. Without arguments it opens a few
//! ports on this machine and finds them.
//!
//! ```text
//! cargo run --release --example port_scanner                            # finds its own ports
//! cargo run --release --example port_scanner -- 127.0.0.1 1 1024
//! ```

use std::io;
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::time::Duration;

use convoke::net::{TcpListener, TcpStream};
use convoke::prelude::*;
use convoke::task::map_concurrent;

/// How many ports are tried at a time.
const AT_ONCE: usize = 128;
/// How long a port may take to answer.
const PATIENCE: Duration = Duration::from_millis(300);

#[convoke::main(contexts = 1)]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.as_slice() {
        [] => {
            let (opened, found) = play().await?;
            println!("  opened {opened:?}\n  found  {found:?}");
        }
        [host, first, last] => {
            let found = scan(host.parse()?, first.parse()?..=last.parse()?).await;
            found.iter().for_each(|port| println!("  {port:>5} is open"));
            println!("  {} ports are open", found.len());
        }
        _ => return Err("usage: port_scanner [HOST FIRST LAST]".into()),
    }
    Ok(())
}

/// Returns the open ports of this range, in order.
pub async fn scan(host: IpAddr, ports: RangeInclusive<u16>) -> Vec<u16> {
    let tried = map_concurrent(ports, AT_ONCE, move |port| async move { (port, is_open(host, port).await) });
    let tried: Vec<(u16, bool)> = tried.in_order().collect().await;
    tried.into_iter().filter_map(|(port, open)| open.then_some(port)).collect()
}

async fn is_open(host: IpAddr, port: u16) -> bool {
    // An attempt that takes too long is asked to stop, and has stopped when the timeout returns: no socket is left behind.
    matches!(timeout(PATIENCE, TcpStream::connect((host, port))).await, Ok(Ok(_)))
}

/// Opens a few ports and scans the ports around them. Returns the opened ports, and the found ones.
pub async fn play() -> io::Result<(Vec<u16>, Vec<u16>)> {
    let mut listeners = Vec::new();
    for _ in 0..3 {
        listeners.push(TcpListener::bind("127.0.0.1:0").await?);
    }
    let mut opened =
        listeners.iter().map(|listener| Ok(listener.local_addr()?.port())).collect::<io::Result<Vec<_>>>()?;
    opened.sort_unstable();
    let mut found = Vec::new();
    for port in &opened {
        // Scans the ports around each. Other programs may have opened some of those.
        let around = scan([127, 0, 0, 1].into(), port.saturating_sub(20)..=port.saturating_add(20)).await;
        found.extend(around.into_iter().filter(|port| opened.contains(port)));
    }
    found.sort_unstable();
    found.dedup();
    Ok((opened, found))
}
