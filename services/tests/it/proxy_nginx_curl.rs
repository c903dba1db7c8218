//! The reverse proxy of the example between curl and nginx.

use std::io;
use std::process::Command;

use convoke::net::TcpListener;
use convoke::prelude::*;
use convoke_services::service;

use crate::reverse_proxy::behind_proxy;

#[convoke::test]
async fn curl_reaches_nginx_through_the_reverse_proxy() -> io::Result<()> {
    let front = TcpListener::bind("127.0.0.1:0").await?;
    let address = front.local_addr()?;
    let asks = async {
        let paths = ["/", "/large", "/echo", "/"].map(|path| format!("http://{address}{path}"));
        // All by one connection to the proxy.
        let run = blocking(move |_| {
            let mut curl = Command::new(service("CONVOKE_TEST_CURL"));
            curl.args(["-sS", "--fail", "-w", "%{num_connects}\n"]).args(paths).output()
        });
        let output = run.await?;
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let expected =
            [b"hello\n1\n".to_vec(), vec![b'x'; 1 << 20], b"0\nGET 127.0.0.10\nhello\n0\n".to_vec()].concat();
        assert!(output.stdout == expected, "{} bytes", output.stdout.len());
        Ok(())
    };
    race((behind_proxy(front, &service("CONVOKE_TEST_NGINX")), asks)).await
}
