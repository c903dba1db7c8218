//! Handshakes: what both sides agree on, and how one fails.

use std::io;
use std::time::Duration;

use convoke::io::{Duplex, duplex, read_exact, write_all};
use convoke::prelude::*;
use convoke_tls::{Identity, Roots, TlsAcceptor, TlsConnector, TlsError, TlsStream};

use crate::certificates::Authority;

pub(crate) type Stream = TlsStream<Duplex>;

/// Does a handshake over a pipe; both results.
pub(crate) async fn shake(
    acceptor: &TlsAcceptor,
    connector: &TlsConnector,
    name: &str,
) -> (io::Result<Stream>, io::Result<Stream>) {
    let (near, far) = duplex(1 << 16);
    join((connector.connect(name, near), acceptor.accept(far))).await
}

pub(crate) fn tls_error(error: &io::Error) -> &TlsError {
    error.get_ref().and_then(|inner| inner.downcast_ref()).unwrap_or_else(|| panic!("no TlsError: {error:?}"))
}

#[convoke::test(virtual_time)]
async fn both_sides_agree_on_a_protocol_and_know_the_name() {
    let authority = Authority::new();
    let acceptor =
        TlsAcceptor::builder(authority.identity("a.test")).alpn(["h2", "http/1.1"]).build().unwrap();
    let connector = TlsConnector::builder(authority.roots()).alpn(["http/1.1"]).build().unwrap();
    let (client, server) = shake(&acceptor, &connector, "a.test").await;
    let (client, server) = (client.unwrap(), server.unwrap());
    assert_eq!((client.alpn(), server.alpn()), (Some(&b"http/1.1"[..]), Some(&b"http/1.1"[..])));
    assert_eq!((client.server_name(), server.server_name()), (None, Some("a.test")));
    assert_eq!(client.version(), server.version());
    assert_eq!((client.peer_certificates().len(), server.peer_certificates().len()), (1, 0));
    assert!(!client.is_resumed() && !server.is_resumed());
}

#[convoke::test(virtual_time)]
async fn a_server_that_is_not_trusted_is_refused_and_learns_why() {
    let (authority, other) = (Authority::new(), Authority::new());
    let acceptor = TlsAcceptor::new(authority.identity("a.test")).unwrap();
    let connector = TlsConnector::new(other.roots()).unwrap();
    let (client, server) = shake(&acceptor, &connector, "a.test").await;
    let (client, server) = (client.unwrap_err(), server.unwrap_err());
    assert!(tls_error(&client).is_about_certificate(), "{client}");
    assert!(tls_error(&server).is_about_certificate(), "an alert tells the server: {server}");
    assert_eq!(client.to_string(), "TLS failed: invalid peer certificate: UnknownIssuer");
}

#[convoke::test(virtual_time)]
async fn a_certificate_for_another_name_is_refused() {
    let authority = Authority::new();
    let acceptor = TlsAcceptor::new(authority.identity("a.test")).unwrap();
    let connector = TlsConnector::new(authority.roots()).unwrap();
    let (client, _) = shake(&acceptor, &connector, "b.test").await;
    assert!(tls_error(&client.unwrap_err()).is_about_certificate());
}

#[convoke::test(virtual_time)]
async fn a_server_can_require_certificates_of_its_clients() {
    let (servers, clients) = (Authority::new(), Authority::new());
    let acceptor =
        TlsAcceptor::builder(servers.identity("a.test")).require_clients_of(clients.roots()).build().unwrap();
    let with = TlsConnector::builder(servers.roots()).identity(clients.identity("me.test")).build().unwrap();
    let (client, server) = shake(&acceptor, &with, "a.test").await;
    assert!(client.is_ok());
    assert_eq!(server.unwrap().peer_certificates().len(), 1);

    let without = TlsConnector::new(servers.roots()).unwrap();
    let (_, server) = shake(&acceptor, &without, "a.test").await;
    assert!(tls_error(&server.unwrap_err()).is_about_certificate());
}

#[convoke::test(virtual_time)]
async fn a_client_that_speaks_no_tls_is_refused() {
    let acceptor = TlsAcceptor::new(Authority::new().identity("a.test")).unwrap();
    let (mut near, far) = duplex(1 << 16);
    let client = async {
        write_all(&mut near, b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n").await.unwrap();
        let mut alert = [0; 2];
        read_exact(&mut near, &mut alert).await.unwrap();
        drop(near);
        alert
    };
    let (alert, server) = join((client, acceptor.accept(far))).await;
    assert_eq!(alert, [21, 3], "a record of the kind alert");
    assert_eq!(server.unwrap_err().kind(), io::ErrorKind::InvalidData);
}

#[convoke::test(virtual_time)]
async fn a_silent_client_is_given_up_in_time() {
    let acceptor = TlsAcceptor::builder(Authority::new().identity("a.test"))
        .handshake_time(Duration::from_secs(3))
        .build()
        .unwrap();
    let (near, far) = duplex(64);
    let begun = convoke::time::now();
    let error = acceptor.accept(far).await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    assert_eq!(error.to_string(), "the client has not finished the TLS handshake within 3s");
    assert_eq!(convoke::time::now() - begun, Duration::from_secs(3));
    drop(near);
}

#[test]
fn bad_input_is_an_error_that_says_what_to_do() {
    let authority = Authority::new();
    let (one, other) = (authority.sign("a.test"), authority.sign("a.test"));
    let message = |result: io::Result<_>| match result {
        Ok(()) => panic!("accepted"),
        Err(error) => error.to_string(),
    };
    let empty = message(Identity::from_pem(b"", b"").map(drop));
    assert!(empty.contains("-----BEGIN CERTIFICATE-----"), "{empty}");
    let keyless = message(Identity::from_pem(one.certificate.as_bytes(), b"").map(drop));
    assert!(keyless.contains("no private key can be read"), "{keyless}");
    let mixed = Identity::from_pem(one.certificate.as_bytes(), other.key.as_bytes()).unwrap();
    assert!(message(TlsAcceptor::new(mixed).map(drop)).contains("keys"));
    let nobody = message(TlsConnector::new(Roots::new()).map(drop));
    assert!(nobody.contains("add some to its roots"), "{nobody}");
    let none = message(TlsAcceptor::builder(one.identity()).handshakes(0).build().map(drop));
    assert!(none.contains("at least 1"), "{none}");
    let missing = message(Identity::from_pem_files("/no/such/file", "/no/such/key").map(drop));
    assert!(missing.contains("/no/such/file"), "{missing}");
}

#[convoke::test(virtual_time)]
async fn a_name_that_is_none_is_refused_before_anything_is_sent() {
    let connector = TlsConnector::new(Authority::new().roots()).unwrap();
    let (near, _far) = duplex(64);
    let error = connector.connect("not a name", near).await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    assert!(error.to_string().contains("\"not a name\""), "{error}");
}
