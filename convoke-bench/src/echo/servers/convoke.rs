//! Convoke's echo server: the place for it. There are no sockets yet for it to serve on.

use super::Server;

/// `Some` with the functions of its siblings, once there are sockets; until then it does not take part.
pub(super) const SERVER: Option<Server> = None;
