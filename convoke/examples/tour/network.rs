//! Network: one client and one server function run over a real kernel, and over a simulated one with a cut network and jumping time.

use std::io;

use convoke::net::{TcpListener, TcpStream, ToAddress};
use convoke::prelude::*;
use convoke::task::map_concurrent;

/// Echoes what each of `clients` clients sends.
async fn server(listener: TcpListener, clients: usize) -> io::Result<()> {
    scope(async |s| {
        for _ in 0..clients {
            let (client, _) = listener.accept().await?;
            s.spawn(async move {
                let words = client.read_lease().await?;
                client.write_all(&words).await
            });
        }
        Ok(())
    })
    .await
}

/// Sends words, and returns the echo.
async fn client(server: impl ToAddress, words: &str) -> io::Result<String> {
    let stream = TcpStream::connect(server).await?;
    stream.write_all(words.as_bytes()).await?;
    let mut heard = vec![0; words.len()];
    stream.read_exact(&mut heard).await?;
    Ok(String::from_utf8_lossy(&heard).into_owned())
}

pub(crate) fn show() {
    let context = convoke::driver::io_context().expect("the kernel has sockets");
    let heard = context.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let clients =
            map_concurrent(0..3, 3, move |n| async move { client(address, &format!("word {n}")).await });
        let (_, heard) = try_join((server(listener, 3), clients.in_order().try_collect::<Vec<_>>())).await?;
        io::Result::Ok(heard)
    });
    println!("   over real sockets: {:?}", heard.unwrap().expect("loopback works"));
    simulated::show();
}

#[cfg(feature = "sim")]
mod simulated {
    //! A simulated network.

    use std::io;
    use std::time::Duration;

    use convoke::net::TcpListener;
    use convoke::prelude::*;
    use convoke::sim::Sim;

    pub(super) fn show() {
        let mut sim = Sim::new(7);
        sim.host("server").run(|| async {
            let listener = TcpListener::bind("0.0.0.0:80").await?;
            super::server(listener, 1).await
        });
        sim.host("client").run(|| async {
            sleep(Duration::from_secs(1)).await;
            assert_eq!(super::client("server:80", "hello").await?, "hello");
            io::Result::Ok(())
        });
        sim.at(Duration::from_millis(900), |sim| sim.partition("client", "server"));
        sim.at(Duration::from_secs(10), |sim| sim.heal("client", "server"));
        let report = sim.run();
        println!(
            "   simulated, the network cut for nine seconds: done after {:.1?} of its own time",
            report.elapsed()
        );
    }
}

#[cfg(not(feature = "sim"))]
mod simulated {
    //! Nothing: the feature is off.

    pub(super) fn show() {
        println!("   simulated: with `--features full`");
    }
}
