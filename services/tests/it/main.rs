//! Tests against real services. The name of a module says which of them it needs: without `redis-server`, modules with `redis` in
//! their names are left out.

mod fleet_nats_postgres;
mod fleet_postgres;
mod guests_loopback;
mod guests_nginx;
mod guests_postgres;
mod http_chromium;
mod http_curl;
mod http_h2load;
mod http_nginx;
mod http_server;
mod http_wrk;
mod nats;
mod postgres;
mod proxy_nginx_curl;
mod redis;
mod reverse_proxy;
mod workers;
