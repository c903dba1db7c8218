//! P4003R1 appendix A.3 to A.7: a connection, read in a loop, as a task on a strand
//! over the I/O context that its socket belongs to.
//!
//! An error is passed on by `?`. A stop ends the `read`, and needs no line here.

use std::io;

use convoke::executor::Strand;
use convoke::net::{TcpListener, TcpStream};
use convoke::prelude::*;
use convoke::run_on;

async fn handle_connection(sock: TcpStream) -> io::Result<usize> {
    let (mut buf, mut total) = ([0; 1024], 0);
    while let n @ 1.. = sock.read(&mut buf).await? {
        total += n; // Process the data.
    }
    Ok(total)
}

async fn client(address: std::net::SocketAddr) -> io::Result<()> {
    let sock = TcpStream::connect(address).await?;
    for word in ["one", "two", "three"] {
        sock.write_all(word.as_bytes()).await?;
    }
    Ok(())
}

pub(crate) fn run() -> String {
    let ioc = convoke::driver::io_context().unwrap();
    let my_strand = Strand::new(ioc.executor());
    let total = ioc.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let serve = async {
            let (sock, _from) = listener.accept().await?;
            run_on(&my_strand, handle_connection(sock)).await
        };
        let (total, ()) = try_join((serve, client(listener.local_addr()?))).await?;
        io::Result::Ok(total)
    });
    format!("{} bytes", total.unwrap().unwrap())
}
