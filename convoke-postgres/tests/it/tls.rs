//! Encrypted connections: statements, requests to cancel, and servers that cannot.

use convoke::prelude::*;
use convoke::sim::Sim;
use convoke::tls::{Identity, Roots, TlsAcceptor, TlsConnector};
use convoke_postgres::tokio_postgres::config::SslMode;
use convoke_postgres::{Error, PoolOptions};
use rcgen::{CertificateParams, KeyPair};

use crate::fake::{Fake, numbers};
use crate::harness::{hosts, seconds};

/// A certificate for `database`, which is its own authority, and its key.
fn certificate() -> (String, String) {
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(vec!["database".to_owned()]).unwrap().self_signed(&key).unwrap();
    (certificate.pem(), key.serialize_pem())
}

fn server(certificate: &str, key: &str) -> Fake {
    let identity = Identity::from_pem(certificate.as_bytes(), key.as_bytes()).unwrap();
    numbers().tls(TlsAcceptor::new(identity).unwrap())
}

/// A server with a certificate for `database`, and a way to connect to it.
fn encrypted() -> (Fake, TlsConnector) {
    let (certificate, key) = certificate();
    let mut roots = Roots::new();
    roots.add_pem(certificate.as_bytes()).unwrap();
    (server(&certificate, &key), TlsConnector::new(roots).unwrap())
}

fn with_mode(mode: SslMode) -> PoolOptions {
    let mut config = convoke_postgres::tokio_postgres::Config::new();
    config.host("database").user("test").ssl_mode(mode);
    PoolOptions::new(config).connections(1)
}

#[test]
fn an_encrypted_connection_knows_its_state_and_can_be_cancelled() {
    let (fake, connector) = encrypted();
    let mut sim = Sim::new(1);
    hosts(&mut sim, &fake, with_mode(SslMode::Require).tls(connector), async |pool| {
        let waits = pool.transaction(async |tx| {
            tx.execute("INSERT INTO numbers VALUES ($1)", &[&1_i32]).await?;
            tx.query("SELECT pg_sleep(3600)", &[]).await
        });
        assert!(timeout(seconds(1), waits).await.is_err());
        pool.transaction(async |tx| tx.batch_execute("SELECT 1").await).await
    });
    let report = sim.run();
    assert!(report.elapsed() < seconds(30), "{:?}", report.elapsed());
    fake.assert_no_violation();
    assert_eq!((fake.cancels(), fake.connections()), (1, 1));
    assert!(fake.tables(|tables| tables.numbers.is_empty()));
}

#[test]
fn a_server_without_tls_is_used_if_tls_is_only_preferred() {
    let (_, connector) = encrypted();
    let fake = numbers();
    let mut sim = Sim::new(1);
    hosts(&mut sim, &fake, with_mode(SslMode::Prefer).tls(connector.clone()), async |pool| {
        // The connection returns to the pool without a rollback: its state is known.
        for _ in 0..2 {
            using(pool.get().await?, async |connection| connection.batch_execute("SELECT 1").await).await?;
        }
        Ok(())
    });
    sim.run();
    assert_eq!(fake.statements(), ["SELECT 1", "SELECT 1"]);

    let mut sim = Sim::new(1);
    hosts(&mut sim, &numbers(), with_mode(SslMode::Require).tls(connector), async |pool| {
        assert!(matches!(pool.get().await, Err(Error::Postgres(_))), "it does not encrypt");
        Ok(())
    });
    sim.run();
}

#[test]
fn tls_that_is_required_and_not_there_is_an_error() {
    let mut sim = Sim::new(1);
    hosts(&mut sim, &numbers(), with_mode(SslMode::Require), async |pool| {
        let failed = pool.get().await.map(drop).unwrap_err();
        assert!(failed.to_string().contains("`PoolOptions::tls`"), "{failed}");
        Ok(())
    });
    sim.run();
}

/// Names the folder with the certificate in the process that the test below starts.
#[cfg(feature = "tls-system-roots")]
const FOLDER: &str = "CONVOKE_TEST_SYSTEM_ROOTS";

/// The authorities of the system are those of a file, where OpenSSL's variable names one. It is read once, so the test is a process of its
/// own.
#[cfg(feature = "tls-system-roots")]
#[test]
fn the_authorities_of_the_system_are_trusted() {
    use std::{env, fs, process};

    if let Some(folder) = env::var_os(FOLDER).map(std::path::PathBuf::from) {
        let read = |name| fs::read_to_string(folder.join(name)).unwrap();
        let connector = TlsConnector::new(convoke_postgres::convoke_tls::Roots::system().unwrap()).unwrap();
        let mut sim = Sim::new(1);
        let server = server(&read("certificate"), &read("key"));
        hosts(&mut sim, &server, with_mode(SslMode::Require).tls(connector), async |pool| {
            pool.transaction(async |tx| tx.batch_execute("SELECT 1").await).await
        });
        sim.run();
        return;
    }
    let folder = env::temp_dir().join(format!("convoke-system-roots-{}", process::id()));
    fs::create_dir_all(&folder).unwrap();
    let (certificate, key) = certificate();
    fs::write(folder.join("certificate"), certificate).unwrap();
    fs::write(folder.join("key"), key).unwrap();
    let output = process::Command::new(env::current_exe().unwrap())
        .args(["--exact", "tls::the_authorities_of_the_system_are_trusted"])
        .env(FOLDER, &folder)
        .env("SSL_CERT_FILE", folder.join("certificate"))
        .env_remove("SSL_CERT_DIR")
        .output()
        .unwrap();
    fs::remove_dir_all(folder).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}
