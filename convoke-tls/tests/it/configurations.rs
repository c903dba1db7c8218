//! Configurations of the engine that the builders do not make, and what a reload keeps of any.

use std::sync::Arc;

use convoke::io::{read_exact, write_all};
use convoke_tls::rustls::crypto::ring;
use convoke_tls::rustls::pki_types::pem::PemObject;
use convoke_tls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use convoke_tls::rustls::server::WebPkiClientVerifier;
use convoke_tls::rustls::version::TLS12;
use convoke_tls::rustls::{ProtocolVersion, RootCertStore, ServerConfig};
use convoke_tls::{TlsAcceptor, TlsConnector};

use crate::certificates::{Authority, Signed};
use crate::handshake::{Stream, shake, tls_error};

/// Returns a configuration for TLS 1.2, with client certificates of an authority if there is one.
pub(crate) fn config_of(signed: &Signed, clients: Option<&Authority>) -> ServerConfig {
    let provider = Arc::new(ring::default_provider());
    let builder =
        ServerConfig::builder_with_provider(provider.clone()).with_protocol_versions(&[&TLS12]).unwrap();
    let builder = match clients {
        None => builder.with_no_client_auth(),
        Some(authority) => {
            let mut roots = RootCertStore::empty();
            roots.add(CertificateDer::from_pem_slice(authority.pem().as_bytes()).unwrap()).unwrap();
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
            builder.with_client_cert_verifier(verifier.build().unwrap())
        }
    };
    let chain = vec![CertificateDer::from_pem_slice(signed.certificate.as_bytes()).unwrap()];
    let key = PrivateKeyDer::from_pem_slice(signed.key.as_bytes()).unwrap();
    let mut config = builder.with_single_cert(chain, key).unwrap();
    config.alpn_protocols = vec![b"own".to_vec()];
    config
}

/// Asserts that a client is refused without a certificate, and returns the streams of one that has it.
async fn with_certificate_only(
    acceptor: &TlsAcceptor,
    servers: &Authority,
    clients: &Authority,
    alpn: &str,
) -> (Stream, Stream) {
    let without = TlsConnector::builder(servers.roots()).alpn([alpn]).build().unwrap();
    let (_, server) = shake(acceptor, &without, "a.test").await;
    assert!(tls_error(&server.expect_err("it has shown no certificate")).is_about_certificate());
    let me = clients.identity("me.test");
    let with = TlsConnector::builder(servers.roots()).identity(me).alpn([alpn]).build().unwrap();
    let (client, server) = shake(acceptor, &with, "a.test").await;
    let (client, server) = (client.unwrap(), server.unwrap());
    assert_eq!((server.peer_certificates().len(), server.alpn()), (1, Some(alpn.as_bytes())));
    (client, server)
}

#[convoke::test(virtual_time)]
async fn a_reload_still_requires_certificates_of_clients_and_offers_the_same_protocols() {
    let (before, after, clients) = (Authority::new(), Authority::new(), Authority::new());
    let builder = TlsAcceptor::builder(before.identity("a.test"));
    let acceptor = builder.require_clients_of(clients.roots()).alpn(["h2", "http/1.1"]).build().unwrap();
    with_certificate_only(&acceptor, &before, &clients, "h2").await;
    acceptor.reload(after.identity("a.test")).unwrap();
    with_certificate_only(&acceptor, &after, &clients, "h2").await;
}

#[convoke::test(virtual_time)]
async fn a_reload_keeps_a_configuration_of_the_engine() {
    let (before, after, clients) = (Authority::new(), Authority::new(), Authority::new());
    let config = config_of(&before.sign("a.test"), Some(&clients));
    let acceptor = TlsAcceptor::from_config(Arc::new(config));
    acceptor.reload(after.identity("a.test")).unwrap();
    let (_, server) = with_certificate_only(&acceptor, &after, &clients, "own").await;
    assert_eq!(server.version(), Some(ProtocolVersion::TLSv1_2));
}

#[convoke::test(virtual_time)]
async fn a_reload_keeps_a_configuration_that_was_set_later() {
    let (before, after, clients) = (Authority::new(), Authority::new(), Authority::new());
    let acceptor = TlsAcceptor::builder(before.identity("a.test")).alpn(["h2"]).build().unwrap();
    acceptor.set_config(Arc::new(config_of(&before.sign("a.test"), Some(&clients))));
    acceptor.reload(after.identity("a.test")).unwrap();
    let (_, server) = with_certificate_only(&acceptor, &after, &clients, "own").await;
    assert_eq!(server.version(), Some(ProtocolVersion::TLSv1_2));
}

#[convoke::test(virtual_time)]
async fn a_reload_serves_the_new_certificate_and_keeps_open_connections() {
    let (before, after) = (Authority::new(), Authority::new());
    let acceptor = TlsAcceptor::new(before.identity("a.test")).unwrap();
    let old = TlsConnector::builder(before.roots()).remember_sessions(false).build().unwrap();
    let new = TlsConnector::builder(after.roots()).remember_sessions(false).build().unwrap();
    let (client, server) = shake(&acceptor, &old, "a.test").await;
    let (mut client, mut server) = (client.unwrap(), server.unwrap());
    assert!(shake(&acceptor, &new, "a.test").await.0.is_err());

    acceptor.reload(after.identity("a.test")).unwrap();
    assert!(shake(&acceptor, &new, "a.test").await.0.is_ok());
    assert!(shake(&acceptor, &old, "a.test").await.0.is_err());
    write_all(&mut client, b"still here").await.unwrap();
    let mut heard = [0; 10];
    read_exact(&mut server, &mut heard).await.unwrap();
    assert_eq!(&heard, b"still here");

    // Not with a key of another certificate.
    let (one, other) = (after.sign("a.test"), after.sign("a.test"));
    let mixed = Signed { certificate: one.certificate, key: other.key };
    assert!(acceptor.reload(mixed.identity()).unwrap_err().to_string().contains("keys"));
    assert!(shake(&acceptor, &new, "a.test").await.0.is_ok());
}
