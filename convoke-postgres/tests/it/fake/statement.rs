//! The statements that the server knows.

use std::time::Duration;

use super::tables::{Change, Effect, Failure, Tables, TransactionState};

const INT4: i32 = 23;
const INT8: i32 = 20;
const TEXT: i32 = 25;
const VOID: i32 = 2278;

/// A statement, as it was sent.
#[derive(Clone)]
pub(super) struct Known(String);

/// A value of a row.
pub(super) enum Value {
    Int4(i32),
    Int8(i64),
    Void,
}

impl Value {
    pub(super) fn bytes(&self) -> Vec<u8> {
        match self {
            Self::Int4(number) => number.to_be_bytes().to_vec(),
            Self::Int8(number) => number.to_be_bytes().to_vec(),
            Self::Void => Vec::new(),
        }
    }
}

fn int4(bytes: &[u8]) -> i32 {
    i32::from_be_bytes(bytes.try_into().unwrap())
}

fn int8(bytes: &[u8]) -> i64 {
    i64::from_be_bytes(bytes.try_into().unwrap())
}

fn string(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

impl Known {
    pub(super) fn new(text: &str) -> Self {
        Self(text.split_whitespace().collect::<Vec<_>>().join(" "))
    }

    pub(super) fn text(&self) -> &str {
        &self.0
    }

    /// The kinds of its parameters.
    pub(super) fn parameters(&self) -> &'static [i32] {
        match self.0.split_once(" VALUES").map_or(self.0.as_str(), |(before, _)| before) {
            "INSERT INTO numbers" => &[INT4],
            "INSERT INTO effects (job, worker)" => &[INT8, TEXT],
            text if text.starts_with("UPDATE jobs") => &[INT8, TEXT],
            _ => &[],
        }
    }

    /// The kind of its one column, if it returns rows.
    pub(super) fn column(&self) -> Option<i32> {
        match self.0.as_str() {
            "SELECT 1" => Some(INT4),
            text if text.starts_with("SELECT pg_sleep") => Some(VOID),
            text if text.starts_with("SELECT") => Some(INT8),
            _ => None,
        }
    }

    /// The time that it takes beside the usual.
    pub(super) fn takes(&self) -> Duration {
        let seconds = self.0.strip_prefix("SELECT pg_sleep(").and_then(|rest| rest.strip_suffix(')'));
        seconds.map_or(Duration::ZERO, |seconds| Duration::from_secs_f64(seconds.parse().unwrap()))
    }

    /// Executes it. Also returns what a client must not do.
    pub(super) fn execute(
        &self,
        session: i32,
        parameters: &[Vec<u8>],
        tables: &mut Tables,
    ) -> (Result<Vec<Value>, Failure>, Option<String>) {
        let (text, state) = (self.0.as_str(), tables.state(session));
        let mut violation = None;
        if text.starts_with("BEGIN") && state != TransactionState::Idle {
            violation = Some(format!("session {session} begins a transaction inside another"));
        }
        let ends = matches!(text, "COMMIT" | "ROLLBACK");
        if state == TransactionState::Failed && !ends {
            let message = "current transaction is aborted, commands ignored until end of transaction block";
            return (Err(("25P02", message.to_owned())), violation);
        }
        if text.contains("FOR UPDATE") && state == TransactionState::Idle {
            violation = Some(format!("session {session} locks a row without a transaction"));
        }
        let executed = Self::change(text, session, parameters, tables);
        if executed.is_err() {
            tables.fail(session);
        }
        (executed, violation)
    }

    fn change(
        text: &str,
        session: i32,
        parameters: &[Vec<u8>],
        tables: &mut Tables,
    ) -> Result<Vec<Value>, Failure> {
        Ok(match text {
            _ if text.starts_with("BEGIN") => {
                tables.begin(session);
                vec![]
            }
            "COMMIT" => {
                tables.commit(session);
                vec![]
            }
            "ROLLBACK" => {
                tables.roll_back(session);
                vec![]
            }
            "SELECT 1" => vec![Value::Int4(1)],
            _ if text.starts_with("SELECT pg_sleep") => vec![Value::Void],
            "SELECT count(*) FROM numbers" => {
                vec![Value::Int8(tables.numbers.len().try_into().unwrap())]
            }
            "SELECT count(*) FROM jobs WHERE done_by IS NULL" => vec![Value::Int8(tables.jobs_left())],
            _ if text.starts_with("SELECT id FROM jobs") && text.contains("SKIP LOCKED") => {
                tables.lock_job(session).map(Value::Int8).into_iter().collect()
            }
            _ if text.starts_with("INSERT INTO numbers") => {
                tables.change(session, Change::Number(int4(&parameters[0])));
                vec![]
            }
            _ if text.starts_with("UPDATE jobs SET done_by = $2") => {
                tables.change(session, Change::Done(int8(&parameters[0]), string(&parameters[1])));
                vec![]
            }
            _ if text.starts_with("INSERT INTO effects") => {
                let effect = Effect { job: int8(&parameters[0]), worker: string(&parameters[1]) };
                tables.change(session, Change::Effect(effect));
                vec![]
            }
            _ => return Err(("42601", format!("syntax error: {text}"))),
        })
    }
}
