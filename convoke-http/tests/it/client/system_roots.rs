//! A client with the authorities of the operating system, which a variable replaces: in a process of its own.
#![cfg(feature = "tls-system-roots")]

use std::process::Command;

use convoke_http::{Client, serve};

use super::tls::{acceptor, certificate};
use crate::harness::{beside, listener, path, simulated};

/// The variables that make a child of this process: its certificate and its key, in PEM.
const CERTIFICATE: &str = "CONVOKE_TEST_CERTIFICATE";
const KEY: &str = "CONVOKE_TEST_KEY";

#[test]
fn the_child() {
    let (Ok(certificate), Ok(key)) = (std::env::var(CERTIFICATE), std::env::var(KEY)) else { return };
    let pair = (certificate, key);
    simulated(move || {
        let pair = pair.clone();
        async move {
            let client = Client::https()?.run(async |client| {
                let response = client.get("https://127.0.0.1:80/page").send().await?;
                assert_eq!(response.text().await?, "/page");
                Ok(())
            });
            beside(serve(listener().await?, path).tls(acceptor(&pair)), client).await
        }
    });
    println!("\nit was answered");
}

#[test]
fn a_client_trusts_what_the_operating_system_trusts() {
    let (certificate, key) = certificate();
    let file = std::env::temp_dir().join(format!("convoke-http-{}.pem", std::process::id()));
    std::fs::write(&file, &certificate).unwrap();
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "client::system_roots::the_child", "--nocapture"])
        .env(CERTIFICATE, certificate)
        .env(KEY, key)
        .env("SSL_CERT_FILE", &file)
        .env_remove("SSL_CERT_DIR")
        .output()
        .unwrap();
    std::fs::remove_file(&file).unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && printed.contains("it was answered"), "{printed}");
}
