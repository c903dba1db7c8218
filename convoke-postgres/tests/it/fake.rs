//! The server of these tests: a table of numbers.

use std::collections::BTreeSet;

use convoke_postgres::testing::FakeServer;
use convoke_postgres::tokio_postgres::types::Type;

/// Stored rows of the server.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tables {
    pub(crate) numbers: BTreeSet<i32>,
}

pub(crate) type Fake = FakeServer<Tables>;

/// Creates a server.
pub(crate) fn numbers() -> Fake {
    FakeServer::new(Tables::default())
        .statement("INSERT INTO numbers VALUES ($1)", &[Type::INT4], &[], |call| {
            let number = call.parameter(0);
            call.change(move |tables| _ = tables.numbers.insert(number));
            Ok(())
        })
        .statement("SELECT count(*) FROM numbers", &[], &[("count", Type::INT8)], |call| {
            let count = call.tables().numbers.len();
            call.row(&[&i64::try_from(count).unwrap()]);
            Ok(())
        })
}
