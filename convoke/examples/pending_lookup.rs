//! A name lookup that does not return delays nothing: neither the timeout around it, nor the end of the program. The thread that the
//! system's function blocks is left alone.
//!
//! ```text
//! cargo run --release --example pending_lookup
//! ```

use std::io;
use std::time::{Duration, Instant};

use convoke::driver::with_services;
use convoke::net::TcpStream;
use convoke::net::resolver::{BlockingNames, install};
use convoke::prelude::*;

/// Time for which the lookup blocks its thread: as `getaddrinfo` does while no name server answers, and longer.
const SILENCE: Duration = Duration::from_secs(3600);

async fn connect() -> io::Result<()> {
    let silent = BlockingNames::new(|host: &str| {
        println!("looks up `{host}` …");
        std::thread::sleep(SILENCE);
        Ok(Vec::new())
    });
    with_services(|services| install(services, silent))?.map_err(io::Error::other)?;
    let connected = timeout(Duration::from_millis(50), TcpStream::connect("silent.example:80")).await;
    println!("connect: {}", connected.map(drop).unwrap_err());
    Ok(())
}

fn main() -> io::Result<()> {
    let begun = Instant::now();
    let runtime = convoke::Runtime::builder().contexts(1).pool_threads(1).build()?;
    runtime.block_on(connect()).unwrap()?;
    drop(runtime);
    let took = begun.elapsed();
    println!("the runtime has ended after {took:.0?}, and the lookup has not");
    assert!(took < SILENCE, "{took:?}");
    Ok(())
}
