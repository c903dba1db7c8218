//! Which errors of `accept` end a server, and which a connection or a lack of resources explains.

use std::io::{self, ErrorKind};

use convoke_net::raw::AcceptFailure;

#[cfg(unix)]
#[test]
fn lack_of_descriptors_and_broken_connections_do_not_end_a_server() {
    // EMFILE, ENFILE and ENOMEM have these numbers on every Unix.
    for number in [24, 23, 12] {
        assert_eq!(
            AcceptFailure::of(&io::Error::from_raw_os_error(number)),
            AcceptFailure::Resources,
            "{number}"
        );
    }
    let no_buffers = if cfg!(any(target_os = "linux", target_os = "android")) { 105 } else { 55 };
    assert_eq!(AcceptFailure::of(&io::Error::from_raw_os_error(no_buffers)), AcceptFailure::Resources);
    assert_eq!(AcceptFailure::of(&ErrorKind::ConnectionAborted.into()), AcceptFailure::Connection);
    assert_eq!(AcceptFailure::of(&ErrorKind::ConnectionReset.into()), AcceptFailure::Connection);
}

#[test]
fn a_listener_that_is_broken_ends_a_server() {
    assert_eq!(AcceptFailure::of(&ErrorKind::InvalidInput.into()), AcceptFailure::Listener);
    assert_eq!(AcceptFailure::of(&io::Error::other("the driver has ended")), AcceptFailure::Listener);
}
