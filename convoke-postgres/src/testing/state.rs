//! Stored rows of the server, the transactions that are open, and the locks that they hold.

use std::collections::BTreeMap;
use std::sync::Arc;

use convoke_sync::Event;

use super::statement::{Executed, Execution, FakeError, Known, Work};
use tokio_postgres::error::SqlState;

/// A change of the tables that a commit makes.
pub(super) type Change<T> = Box<dyn Fn(&mut T) + Send>;

/// State of a server.
pub(super) struct State<T> {
    pub(super) tables: T,
    transactions: BTreeMap<i32, Transaction<T>>,
    /// Sessions that hold a row, by the name of the row.
    locks: BTreeMap<String, i32>,
    pub(super) sessions: BTreeMap<i32, Session>,
    pub(super) accepted: usize,
    pub(super) cancels: usize,
    pub(super) violations: Vec<String>,
    pub(super) statements: Vec<String>,
    pub(super) prepared: usize,
}

/// A connection, as other connections see it.
pub(super) struct Session {
    pub(super) key: i32,
    pub(super) is_busy: bool,
    pub(super) cancelled: Arc<Event>,
}

struct Transaction<T> {
    has_failed: bool,
    changes: Vec<Change<T>>,
}

impl<T: Clone> State<T> {
    pub(super) fn new(tables: T) -> Self {
        Self {
            tables,
            transactions: BTreeMap::new(),
            locks: BTreeMap::new(),
            sessions: BTreeMap::new(),
            accepted: 0,
            cancels: 0,
            violations: Vec::new(),
            statements: Vec::new(),
            prepared: 0,
        }
    }

    /// Ends all sessions and their transactions, as a server does that starts after a crash.
    pub(super) fn restart(&mut self) {
        self.sessions.clear();
        self.transactions.clear();
        self.locks.clear();
    }

    /// Adds a session. Returns its number, and the key that a request to cancel must have.
    pub(super) fn begin_session(&mut self, cancelled: Arc<Event>) -> (i32, i32) {
        self.accepted += 1;
        let id = i32::try_from(self.accepted).unwrap_or(i32::MAX);
        let key = id.wrapping_mul(7).wrapping_add(1);
        self.sessions.insert(id, Session { key, is_busy: false, cancelled });
        (id, key)
    }

    /// Removes a session, and rolls back what it leaves behind.
    pub(super) fn end_session(&mut self, session: i32) {
        self.sessions.remove(&session);
        self.roll_back(session);
    }

    /// Returns the byte by which `ReadyForQuery` tells the state of a session.
    pub(super) fn status(&self, session: i32) -> u8 {
        match self.transactions.get(&session) {
            None => b'I',
            Some(Transaction { has_failed: true, .. }) => b'E',
            Some(_) => b'T',
        }
    }

    pub(super) fn open_transactions(&self) -> usize {
        self.transactions.len()
    }

    /// Marks the transaction of a session as failed, if one is open.
    pub(super) fn fail(&mut self, session: i32) {
        if let Some(transaction) = self.transactions.get_mut(&session) {
            transaction.has_failed = true;
        }
    }

    /// Notes a statement that was cancelled, and returns the error that says so.
    pub(super) fn cancelled(&mut self, session: i32, known: &Known<T>) -> FakeError {
        self.statements.push(known.text.clone());
        self.fail(session);
        FakeError::new(SqlState::QUERY_CANCELED, "canceling statement due to user request")
    }

    /// Executes a statement.
    pub(super) fn execute(
        &mut self,
        session: i32,
        known: &Known<T>,
        parameters: &[Option<Vec<u8>>],
    ) -> Result<Executed, FakeError> {
        self.statements.push(known.text.clone());
        let is_open = self.transactions.contains_key(&session);
        let has_failed = self.status(session) == b'E';
        match &known.work {
            Work::Commit => self.commit(session),
            Work::RollBack => self.roll_back(session),
            _ if has_failed => {
                let message = "current transaction is aborted, commands ignored until its end";
                return Err(FakeError::new(SqlState::IN_FAILED_SQL_TRANSACTION, message));
            }
            Work::Begin if is_open => {
                self.violations.push(format!("session {session} begins a transaction inside another"));
            }
            Work::Begin => {
                self.transactions.insert(session, Transaction { has_failed: false, changes: Vec::new() });
            }
            Work::Nothing => {}
            Work::Call(function) => {
                let changes =
                    self.transactions.get(&session).map_or(&[][..], |transaction| &transaction.changes);
                let mut tables = std::borrow::Cow::Borrowed(&self.tables);
                changes.iter().for_each(|change| change(tables.to_mut()));
                let mut execution =
                    Execution::new(known, session, is_open, parameters, &tables, &mut self.locks);
                let ended = function(&mut execution);
                let (executed, changes, violations) = execution.end();
                self.violations.extend(violations);
                if let Err(error) = ended {
                    self.fail(session);
                    return Err(error);
                }
                match self.transactions.get_mut(&session) {
                    Some(transaction) => transaction.changes.extend(changes),
                    None => changes.iter().for_each(|change| change(&mut self.tables)),
                }
                return Ok(executed);
            }
        }
        Ok(Executed::default())
    }

    fn commit(&mut self, session: i32) {
        if let Some(Transaction { has_failed: false, changes }) = self.transactions.remove(&session) {
            changes.iter().for_each(|change| change(&mut self.tables));
        }
        self.unlock(session);
    }

    fn roll_back(&mut self, session: i32) {
        self.transactions.remove(&session);
        self.unlock(session);
    }

    fn unlock(&mut self, session: i32) {
        self.locks.retain(|_, holder| *holder != session);
    }
}
