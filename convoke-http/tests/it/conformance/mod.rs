//! What the standards demand of a server, checked on what it says to clients that keep to them, and to those that do not: RFC 9112 for
//! HTTP/1.1, RFC 9113 for HTTP/2. Where hyper does something else, a comment says so.

mod drain;
mod frames;
mod http1;
mod http2;
mod messages;
