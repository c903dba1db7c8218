//! The statements that the server knows, and what the execution of one may do.

use core::fmt;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{FromSqlOwned, IsNull, ToSql, Type};

use super::state::Change;

/// Error that a statement fails with.
#[derive(Clone, Debug)]
pub struct FakeError {
    pub(super) code: SqlState,
    pub(super) message: String,
}

impl FakeError {
    /// Creates an error with a code and a message. Clients see both.
    pub fn new(code: SqlState, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }
}

/// A value as the protocol has it: binary, or none for `NULL`.
pub(super) type Value = Option<Vec<u8>>;

/// The result of a statement.
#[derive(Default)]
pub(super) struct Executed {
    pub(super) rows: Vec<Vec<Value>>,
    /// The number of rows, or of those that were changed.
    pub(super) count: usize,
}

type Function<T> = dyn Fn(&mut Execution<'_, T>) -> Result<(), FakeError> + Send + Sync;

/// Effect of a statement.
pub(super) enum Work<T> {
    Begin,
    Commit,
    RollBack,
    /// It returns no rows, and changes nothing.
    Nothing,
    Call(Box<Function<T>>),
}

/// A statement.
pub(super) struct Known<T> {
    pub(super) text: String,
    pub(super) parameters: Vec<Type>,
    pub(super) columns: Vec<(String, Type)>,
    /// Time that it takes beside the usual.
    pub(super) takes: Duration,
    pub(super) work: Work<T>,
}

/// The statements of a server, by their texts.
pub(super) struct Statements<T>(BTreeMap<String, Arc<Known<T>>>);

/// Returns a text whose white space does not count.
fn normalized(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

impl<T: 'static> Statements<T> {
    pub(super) fn add(
        &mut self,
        text: &str,
        parameters: &[Type],
        columns: &[(&str, Type)],
        function: Box<Function<T>>,
    ) {
        let text = normalized(text);
        let columns = columns.iter().map(|(name, kind)| ((*name).to_owned(), kind.clone())).collect();
        let (parameters, work) = (parameters.to_vec(), Work::Call(function));
        let known = Known { text: text.clone(), parameters, columns, takes: Duration::ZERO, work };
        self.0.insert(text, Arc::new(known));
    }

    /// Returns the error of a statement, or a portal, that a client names without having made it.
    pub(super) fn unknown(name: &str) -> FakeError {
        FakeError::new(SqlState::INVALID_SQL_STATEMENT_NAME, format!("there is no `{name}`"))
    }

    /// Finds a statement.
    ///
    /// # Errors
    /// A syntax error, if it is not known.
    pub(super) fn find(&self, text: &str) -> Result<Arc<Known<T>>, FakeError> {
        let text = normalized(text);
        if let Some(known) = self.0.get(&text) {
            return Ok(known.clone());
        }
        let sleep = text.strip_prefix("SELECT pg_sleep(").and_then(|rest| rest.strip_suffix(')'));
        let sleep = sleep.and_then(|time| Duration::try_from_secs_f64(time.parse().ok()?).ok());
        let first = text.split(' ').next().unwrap_or_default();
        let (columns, work): (Vec<_>, Work<T>) = match first {
            "BEGIN" | "START" => (vec![], Work::Begin),
            "COMMIT" | "END" => (vec![], Work::Commit),
            "ROLLBACK" if text == first => (vec![], Work::RollBack),
            "SELECT" if sleep.is_some() => {
                (vec![("pg_sleep".to_owned(), Type::VOID)], Work::Call(Box::new(void_row)))
            }
            "SELECT" if text == "SELECT 1" => {
                (vec![("?column?".to_owned(), Type::INT4)], Work::Call(Box::new(row_of_one)))
            }
            "" | "SET" | "RESET" => (vec![], Work::Nothing),
            _ => return Err(FakeError::new(SqlState::SYNTAX_ERROR, format!("unknown statement: {text}"))),
        };
        let takes = sleep.unwrap_or_default();
        Ok(Arc::new(Known { text, parameters: Vec::new(), columns, takes, work }))
    }
}

/// Executes `SELECT pg_sleep(n)`, when the time is over.
fn void_row<T>(call: &mut Execution<'_, T>) -> Result<(), FakeError> {
    call.rows.push(vec![Some(Vec::new())]);
    Ok(())
}

/// Executes `SELECT 1`.
fn row_of_one<T>(call: &mut Execution<'_, T>) -> Result<(), FakeError> {
    call.row(&[&1_i32]);
    Ok(())
}

impl<T> Clone for Statements<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> Default for Statements<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<T> fmt::Debug for Statements<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.keys()).finish()
    }
}

/// Execution of a [statement](super::FakeServer::statement) of a test.
pub struct Execution<'a, T> {
    known: &'a Known<T>,
    session: i32,
    is_in_transaction: bool,
    parameters: &'a [Value],
    tables: &'a T,
    locks: &'a mut BTreeMap<String, i32>,
    changes: Vec<Change<T>>,
    rows: Vec<Vec<Value>>,
    violations: Vec<String>,
}

impl<'a, T> Execution<'a, T> {
    pub(super) fn new(
        known: &'a Known<T>,
        session: i32,
        is_in_transaction: bool,
        parameters: &'a [Value],
        tables: &'a T,
        locks: &'a mut BTreeMap<String, i32>,
    ) -> Self {
        let (changes, rows, violations) = Default::default();
        Self { known, session, is_in_transaction, parameters, tables, locks, changes, rows, violations }
    }

    pub(super) fn end(self) -> (Executed, Vec<Change<T>>, Vec<String>) {
        let count = if self.known.columns.is_empty() { self.changes.len() } else { self.rows.len() };
        (Executed { rows: self.rows, count }, self.changes, self.violations)
    }

    /// Returns a parameter: the first one has the index 0. `Option<V>` may be `NULL`.
    ///
    /// # Panics
    /// If there is none, or if it has another type.
    #[track_caller]
    pub fn parameter<V: FromSqlOwned>(&self, index: usize) -> V {
        let text = &self.known.text;
        let (Some(value), Some(kind)) = (self.parameters.get(index), self.known.parameters.get(index)) else {
            panic!("`{text}` has no parameter {index}")
        };
        assert!(V::accepts(kind), "parameter {index} of `{text}` has the type {kind}");
        V::from_sql_nullable(kind, value.as_deref())
            .unwrap_or_else(|error| panic!("parameter {index} of `{text}`: {error}"))
    }

    /// Returns the tables: what is committed, with the changes of earlier statements of this transaction.
    pub fn tables(&self) -> &'a T {
        self.tables
    }

    /// Changes the tables: by the commit, or at once if there is no transaction. Each call counts as a row that the statement
    /// has changed.
    pub fn change(&mut self, change: impl Fn(&mut T) + Send + 'static) {
        self.changes.push(Box::new(change));
    }

    /// Adds a row to the result.
    ///
    /// # Panics
    /// If the values are not those of the statement's columns, in number and type.
    #[track_caller]
    pub fn row(&mut self, values: &[&(dyn ToSql + Sync)]) {
        let Known { text, columns, .. } = self.known;
        assert_eq!(values.len(), columns.len(), "the values of a row of `{text}`, and its columns");
        let row = values.iter().zip(columns).map(|(value, (name, kind))| {
            let mut bytes = BytesMut::new();
            match value.to_sql_checked(kind, &mut bytes) {
                Ok(IsNull::Yes) => None,
                Ok(IsNull::No) => Some(bytes.to_vec()),
                Err(error) => panic!("the column {name} of `{text}`: {error}"),
            }
        });
        let row = row.collect();
        self.rows.push(row);
    }

    /// Locks a row, by any name, until the transaction ends. Returns false if another transaction has locked it: skip the row,
    /// or fail with [`SqlState::LOCK_NOT_AVAILABLE`]. Without a transaction the lock is not kept.
    pub fn try_lock(&mut self, row: impl Into<String>) -> bool {
        let row = row.into();
        match self.locks.get(&row) {
            Some(holder) => *holder == self.session,
            None => {
                if self.is_in_transaction {
                    self.locks.insert(row, self.session);
                }
                true
            }
        }
    }

    /// Returns true if a transaction is open.
    pub fn is_in_transaction(&self) -> bool {
        self.is_in_transaction
    }

    /// Notes a mistake of the client, which [`assert_no_violation`](super::FakeServer::assert_no_violation) finds.
    pub fn violation(&mut self, mistake: impl Into<String>) {
        self.violations.push(format!("session {}: {}", self.session, mistake.into()));
    }
}

impl<T> fmt::Debug for Execution<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Execution").field("statement", &self.known.text).finish_non_exhaustive()
    }
}
