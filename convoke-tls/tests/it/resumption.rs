//! Sessions that are resumed, and how many a server remembers.

use convoke::io::{read_exact, write_all};
use convoke_tls::{TlsAcceptor, TlsConnector};

use crate::certificates::Authority;
use crate::handshake::shake;

/// Returns true if a handshake has resumed a session.
async fn resumes(acceptor: &TlsAcceptor, connector: &TlsConnector) -> bool {
    let (client, server) = shake(acceptor, connector, "a.test").await;
    let (mut client, mut server) = (client.unwrap(), server.unwrap());
    // The ticket comes with the first bytes.
    write_all(&mut server, b"!").await.unwrap();
    read_exact(&mut client, &mut [0]).await.unwrap();
    assert_eq!(client.is_resumed(), server.is_resumed());
    client.is_resumed()
}

#[convoke::test(virtual_time)]
async fn a_second_handshake_resumes_the_session() {
    let authority = Authority::new();
    let acceptor = TlsAcceptor::new(authority.identity("a.test")).unwrap();
    let connector = TlsConnector::new(authority.roots()).unwrap();
    assert!(!resumes(&acceptor, &connector).await);
    assert!(resumes(&acceptor, &connector).await);
    // A new certificate does not end sessions.
    acceptor.reload(authority.identity("a.test")).unwrap();
    assert!(resumes(&acceptor, &connector).await);
}

/// Lets a first client come, then others, and returns true if the first one resumes its session.
async fn resumes_after(acceptor: &TlsAcceptor, authority: &Authority, others: usize) -> bool {
    let first = TlsConnector::new(authority.roots()).unwrap();
    assert!(!resumes(acceptor, &first).await);
    for _ in 0..others {
        assert!(!resumes(acceptor, &TlsConnector::new(authority.roots()).unwrap()).await);
    }
    resumes(acceptor, &first).await
}

#[convoke::test(virtual_time)]
async fn a_session_is_resumed_after_many_other_clients() {
    let authority = Authority::new();
    let acceptor = TlsAcceptor::new(authority.identity("a.test")).unwrap();
    assert!(resumes_after(&acceptor, &authority, 300).await);
}

#[convoke::test(virtual_time)]
async fn the_oldest_sessions_are_forgotten() {
    let authority = Authority::new();
    let acceptor = TlsAcceptor::builder(authority.identity("a.test")).sessions(8).build().unwrap();
    // Two for each handshake.
    assert!(resumes_after(&acceptor, &authority, 3).await);
    assert!(!resumes_after(&acceptor, &authority, 4).await);
    // One client that resumes again and again takes no place from others.
    let (one, other) = (TlsConnector::new(authority.roots()), TlsConnector::new(authority.roots()));
    let (one, other) = (one.unwrap(), other.unwrap());
    assert!(!resumes(&acceptor, &one).await && !resumes(&acceptor, &other).await);
    for _ in 0..50 {
        assert!(resumes(&acceptor, &one).await && resumes(&acceptor, &other).await);
    }
}

#[convoke::test(virtual_time)]
async fn no_session_is_resumed_where_none_is_remembered() {
    let authority = Authority::new();
    let acceptor = TlsAcceptor::builder(authority.identity("a.test")).sessions(0).build().unwrap();
    assert!(!resumes_after(&acceptor, &authority, 0).await);
}
