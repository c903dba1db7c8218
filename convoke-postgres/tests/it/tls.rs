//! Encrypted connections: statements, requests to cancel, and servers that cannot.

use convoke::prelude::*;
use convoke::sim::Sim;
use convoke::tls::{Identity, Roots, TlsAcceptor, TlsConnector};
use convoke_postgres::tokio_postgres::config::SslMode;
use convoke_postgres::{Error, PoolOptions};
use rcgen::{CertificateParams, KeyPair};

use crate::fake::{Fake, numbers};
use crate::harness::{hosts, seconds};

/// A server with a certificate for `database`, and a way to connect to it.
fn encrypted() -> (Fake, TlsConnector) {
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(vec!["database".to_owned()]).unwrap().self_signed(&key).unwrap();
    let identity = Identity::from_pem(certificate.pem().as_bytes(), key.serialize_pem().as_bytes()).unwrap();
    let mut roots = Roots::new();
    roots.add_pem(certificate.pem().as_bytes()).unwrap();
    (numbers().tls(TlsAcceptor::new(identity).unwrap()), TlsConnector::new(roots).unwrap())
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
