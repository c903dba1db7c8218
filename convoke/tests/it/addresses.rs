//! Addresses: their text, the order in which those of one name are tried, and the messages of their errors.

use std::io;
use std::net::SocketAddr;

use convoke::net::{Address, AddressQuery, ToAddress};
use convoke_net::raw::{bind_error, connect_error, interleave};

#[test]
fn addresses_and_names_are_distinguished() {
    let known = |text: &str| AddressQuery::Known(vec![text.parse().unwrap()]);
    assert_eq!("127.0.0.1:80".to_address(), known("127.0.0.1:80"));
    assert_eq!("[::1]:80".to_address(), known("[::1]:80"));
    assert_eq!(("::1", 80).to_address(), known("[::1]:80"));
    assert_eq!("example:80".to_address(), AddressQuery::Name("example".into(), 80));
    for malformed in ["example", "example:", ":80", "example:99999", "::1:80", ""] {
        assert_eq!(malformed.to_address(), AddressQuery::Malformed(malformed.into()));
    }
}

#[test]
fn families_alternate_and_keep_their_order() {
    let address = |text: &str| text.parse::<SocketAddr>().unwrap();
    let [a, b, c] = ["10.0.0.1:1", "10.0.0.2:1", "10.0.0.3:1"].map(address);
    let [x, y] = ["[fd00::1]:1", "[fd00::2]:1"].map(address);
    assert_eq!(interleave(vec![a, b, c, x, y]), [a, x, b, y, c]);
    assert_eq!(interleave(vec![x, a, b, c, y]), [x, a, y, b, c]);
    assert_eq!(interleave(vec![a, b]), [a, b]);
    assert!(interleave(Vec::new()).is_empty());
}

#[test]
fn an_error_without_a_kind_of_its_own_keeps_its_number() {
    let address = Address::Path("/run/server".into());
    // Linux: too many open files.
    let full = bind_error(&address, io::Error::from_raw_os_error(24));
    assert_eq!(full.raw_os_error(), Some(24));
    let said = connect_error(&address, io::Error::new(io::ErrorKind::NotFound, "in words"));
    assert_eq!(said.to_string(), "in words");
    let bare = connect_error(&address, io::ErrorKind::ConnectionRefused.into());
    assert_eq!(bare.to_string(), "cannot connect to /run/server: connection refused");
    assert_eq!(bare.kind(), io::ErrorKind::ConnectionRefused);
}
