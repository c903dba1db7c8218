//! The demands of the standards on a server, checked by its answers to clients that obey them, and to those that do not: RFC 9112 for
//! HTTP/1.1, RFC 9113 for HTTP/2. Where hyper does something else, a comment says so.

mod drain;
mod frames;
mod http1;
mod http2;
mod messages;
