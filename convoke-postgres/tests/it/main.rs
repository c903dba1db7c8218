//! Tests of the pool: against a server that is part of the simulation, and, where `CONVOKE_TEST_POSTGRES` names one, against
//! PostgreSQL.

#![allow(missing_docs)]

mod fake;
mod harness;
mod limits;
mod statements;
mod stops;
mod tls;
mod transactions;
