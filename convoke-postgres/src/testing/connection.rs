//! One connection of the server.

use core::future::IntoFuture;
use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use convoke_exec::time::sleep;
use convoke_net::stream::AnyStream;
use convoke_sync::Event;
use convoke_task::race;
use tokio_postgres::types::Type;

use super::FakeServer;
use super::encryption::encrypt;
use super::message::{Answer, Parts, count, read, read_startup, text};
use super::statement::{Executed, FakeError, Known, Statements, Value};

/// The codes that stand where the version of the protocol does.
const CANCEL: i32 = 80_877_102;
const TLS: i32 = 80_877_103;

/// A portal: a statement with its parameters.
struct Portal<T> {
    statement: Arc<Known<T>>,
    parameters: Vec<Value>,
}

/// Statements and portals of a connection.
struct Memory<T> {
    statements: HashMap<String, Arc<Known<T>>>,
    portals: HashMap<String, Portal<T>>,
    /// After an error, messages are ignored until `Sync`.
    has_failed: bool,
}

/// The form of the values in rows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// In answers to a simple query.
    Text,
    Binary,
}

impl<T: Clone + Send + Sync + 'static> FakeServer<T> {
    pub(super) async fn connection(&self, mut stream: AnyStream) -> io::Result<()> {
        loop {
            let startup = read_startup(&mut stream).await?;
            let mut parts = Parts(&startup);
            match (parts.long()?, &self.acceptor) {
                (CANCEL, _) => {
                    self.cancel(parts.long()?, parts.long()?);
                    return Ok(());
                }
                (TLS, None) => stream.write_all(b"N").await?,
                (TLS, Some(acceptor)) => {
                    stream.write_all(b"S").await?;
                    stream = encrypt(acceptor, stream).await?;
                }
                _ => break,
            }
        }
        let cancelled = Arc::new(Event::new());
        let (id, key) = self.lock().begin_session(cancelled.clone());
        let _gone = Gone(self, id);
        let mut answer = Answer::default();
        answer.add(b'R', |body| body.extend(0_i32.to_be_bytes()));
        answer.add(b'K', |body| {
            body.extend(id.to_be_bytes());
            body.extend(key.to_be_bytes());
        });
        answer.ready(b'I').send(&mut stream).await?;
        let mut memory = Memory { statements: HashMap::new(), portals: HashMap::new(), has_failed: false };
        loop {
            let (kind, body) = read(&mut stream).await?;
            if kind == b'X' {
                return Ok(());
            }
            let mut parts = Parts(&body);
            match kind {
                b'Q' => {
                    self.simple_query(id, &parts.text()?, &mut answer, &cancelled).await;
                    answer.ready(self.status(id)).send(&mut stream).await?;
                }
                b'S' => {
                    memory.has_failed = false;
                    answer.ready(self.status(id)).send(&mut stream).await?;
                }
                _ if memory.has_failed => {}
                _ => {
                    let handled = self.message(id, kind, parts, &mut memory, &mut answer, &cancelled).await?;
                    if let Err(error) = handled {
                        memory.has_failed = true;
                        self.lock().fail(id);
                        answer.error(error.code.code(), &error.message);
                    }
                }
            }
        }
    }

    /// Executes the statements of one message, up to the first that fails.
    async fn simple_query(&self, id: i32, all: &str, answer: &mut Answer, cancelled: &Event) {
        let texts: Vec<&str> = all.split(';').filter(|text| !text.trim().is_empty()).collect();
        if texts.is_empty() {
            answer.empty(b'I');
        }
        for text in texts {
            let executed = match self.statements.find(text) {
                Ok(known) => {
                    let executed = self.execute(id, &known, &[], cancelled).await;
                    executed.map(|executed| (known, executed))
                }
                Err(error) => Err(error),
            };
            match executed {
                Ok((known, executed)) => {
                    if !known.columns.is_empty() {
                        describe_columns(answer, &known, Form::Text);
                    }
                    complete(answer, &known, &executed, Form::Text);
                }
                Err(error) => {
                    self.lock().fail(id);
                    answer.error(error.code.code(), &error.message);
                    return;
                }
            }
        }
    }

    /// Handles a message of an extended query. What is malformed ends the connection.
    async fn message(
        &self,
        id: i32,
        kind: u8,
        mut parts: Parts<'_>,
        memory: &mut Memory<T>,
        answer: &mut Answer,
        cancelled: &Event,
    ) -> io::Result<Result<(), FakeError>> {
        match kind {
            b'P' => {
                let (name, text) = (parts.text()?, parts.text()?);
                let known = match self.statements.find(&text) {
                    Ok(known) => known,
                    Err(error) => return Ok(Err(error)),
                };
                memory.statements.insert(name, known);
                self.lock().prepared += 1;
                answer.empty(b'1');
            }
            b'D' => {
                let (what, name) = (parts.byte()?, parts.text()?);
                let known = match what {
                    b'S' => memory.statements.get(&name),
                    _ => memory.portals.get(&name).map(|portal| &portal.statement),
                };
                let Some(known) = known else { return Ok(Err(Statements::<T>::unknown(&name))) };
                if what == b'S' {
                    answer.add(b't', |body| {
                        body.extend(count(known.parameters.len()).to_be_bytes());
                        known.parameters.iter().for_each(|kind| body.extend(kind.oid().to_be_bytes()));
                    });
                }
                if known.columns.is_empty() {
                    answer.empty(b'n');
                } else {
                    describe_columns(answer, known, Form::Binary);
                }
            }
            b'B' => {
                let (portal, name) = (parts.text()?, parts.text()?);
                for _ in 0..parts.short()? {
                    parts.short()?;
                }
                let parameters = (0..parts.short()?).map(|_| parts.value()).collect::<io::Result<_>>()?;
                let Some(known) = memory.statements.get(&name) else {
                    return Ok(Err(Statements::<T>::unknown(&name)));
                };
                memory.portals.insert(portal, Portal { statement: known.clone(), parameters });
                answer.empty(b'2');
            }
            b'E' => {
                let name = parts.text()?;
                let Some(Portal { statement, parameters }) = memory.portals.get(&name) else {
                    return Ok(Err(Statements::<T>::unknown(&name)));
                };
                match self.execute(id, statement, parameters, cancelled).await {
                    Ok(executed) => complete(answer, statement, &executed, Form::Binary),
                    Err(error) => return Ok(Err(error)),
                }
            }
            b'C' => {
                let (what, name) = (parts.byte()?, parts.text()?);
                if what == b'S' {
                    memory.statements.remove(&name);
                } else {
                    memory.portals.remove(&name);
                }
                answer.empty(b'3');
            }
            kind => {
                let mistake = format!("session {id}: a message of kind `{}`", kind.escape_ascii());
                self.lock().violations.push(mistake);
            }
        }
        Ok(Ok(()))
    }

    /// Executes a statement, which takes its time and can be cancelled meanwhile.
    async fn execute(
        &self,
        id: i32,
        known: &Known<T>,
        parameters: &[Value],
        cancelled: &Event,
    ) -> Result<Executed, FakeError> {
        cancelled.reset();
        self.set_busy(id, true);
        race((sleep(self.work_time + known.takes).into_future(), cancelled.wait())).await;
        self.set_busy(id, false);
        let mut state = self.lock();
        if cancelled.is_set() {
            return Err(state.cancelled(id, known));
        }
        state.execute(id, known, parameters)
    }

    /// Returns the byte by which `ReadyForQuery` tells the state of a session.
    fn status(&self, id: i32) -> u8 {
        self.lock().status(id)
    }

    fn set_busy(&self, id: i32, is_busy: bool) {
        if let Some(session) = self.lock().sessions.get_mut(&id) {
            session.is_busy = is_busy;
        }
    }

    /// Cancels what a connection does, if it does something.
    fn cancel(&self, id: i32, key: i32) {
        let mut state = self.lock();
        state.cancels += 1;
        let session = state.sessions.get(&id).filter(|session| session.key == key && session.is_busy);
        let cancelled = session.map(|session| session.cancelled.clone());
        drop(state);
        if let Some(cancelled) = cancelled {
            cancelled.set();
        }
    }
}

fn describe_columns<T>(answer: &mut Answer, known: &Known<T>, form: Form) {
    answer.add(b'T', |body| {
        body.extend(count(known.columns.len()).to_be_bytes());
        for (name, kind) in &known.columns {
            text(body, name);
            // No table, and no column of one.
            body.extend([0; 6]);
            body.extend(kind.oid().to_be_bytes());
            body.extend((-1_i16).to_be_bytes());
            body.extend((-1_i32).to_be_bytes());
            body.extend(i16::from(form == Form::Binary).to_be_bytes());
        }
    });
}

fn complete<T>(answer: &mut Answer, known: &Known<T>, executed: &Executed, form: Form) {
    for row in &executed.rows {
        answer.add(b'D', |body| {
            body.extend(count(row.len()).to_be_bytes());
            for (value, (_, kind)) in row.iter().zip(&known.columns) {
                let value = value.as_deref().map(|bytes| match form {
                    Form::Binary => bytes.to_vec(),
                    Form::Text => in_words(kind, bytes).into_bytes(),
                });
                let length =
                    value.as_ref().map_or(-1, |bytes| i32::try_from(bytes.len()).unwrap_or(i32::MAX));
                body.extend(length.to_be_bytes());
                body.extend(value.unwrap_or_default());
            }
        });
    }
    let word = known.text.split(' ').next().unwrap_or_default();
    let tag = match word {
        "INSERT" => format!("INSERT 0 {}", executed.count),
        "SELECT" | "UPDATE" | "DELETE" => format!("{word} {}", executed.count),
        _ => word.to_owned(),
    };
    answer.add(b'C', |body| text(body, &tag));
}

/// Returns a value as a simple query has it: numbers and texts as they are read, others as bytes.
fn in_words(kind: &Type, bytes: &[u8]) -> String {
    let number = |size: usize| {
        let negative = bytes.first().is_some_and(|first| first & 0x80 != 0);
        let sign = if negative { -1_i64 } else { 0 };
        bytes.iter().take(size).fold(sign, |number, byte| (number << 8) | i64::from(*byte))
    };
    match *kind {
        Type::INT2 | Type::INT4 | Type::INT8 => number(8).to_string(),
        Type::BOOL => if bytes == [1] { "t" } else { "f" }.to_owned(),
        Type::BYTEA => bytes.iter().fold("\\x".to_owned(), |text, byte| text + &format!("{byte:02x}")),
        _ => String::from_utf8_lossy(bytes).into_owned(),
    }
}

/// Ends a session, and rolls back what it leaves behind.
struct Gone<'a, T: Clone + Send + Sync + 'static>(&'a FakeServer<T>, i32);

impl<T: Clone + Send + Sync + 'static> Drop for Gone<'_, T> {
    fn drop(&mut self) {
        self.0.lock().end_session(self.1);
    }
}
