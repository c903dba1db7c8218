//! One connection of the server.

use std::collections::HashMap;
use std::future::IntoFuture;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use convoke::io::AnyStream;
use convoke::prelude::*;
use convoke::sync::Event;

use super::message::{Answer, Parts, read, read_startup, text};
use super::statement::{Known, Value};
use super::tables::{Failure, TransactionState};
use super::{Fake, Session};

const CANCEL: i32 = 80_877_102;
const TLS: i32 = 80_877_103;

/// The time that every statement takes.
const WORK: Duration = Duration::from_millis(1);

/// A portal: a statement with its parameters.
struct Portal {
    statement: Known,
    parameters: Vec<Vec<u8>>,
}

/// Statements and portals of a connection.
#[derive(Default)]
struct Memory {
    statements: HashMap<String, Known>,
    portals: HashMap<String, Portal>,
    /// After an error, messages are ignored until `Sync`.
    has_failed: bool,
}

impl Fake {
    pub(super) async fn connection(&self, mut stream: AnyStream) -> io::Result<()> {
        loop {
            let startup = read_startup(&mut stream).await?;
            let mut parts = Parts(&startup);
            match (parts.long(), &self.acceptor) {
                (CANCEL, _) => {
                    self.cancel(parts.long(), parts.long());
                    return Ok(());
                }
                (TLS, None) => stream.write_all(b"N").await?,
                (TLS, Some(acceptor)) => {
                    stream.write_all(b"S").await?;
                    stream = AnyStream::new(acceptor.accept(stream).await?);
                }
                _ => break,
            }
        }
        let cancelled = Arc::new(Event::new());
        let (id, key) = {
            let mut state = self.lock();
            state.last_session += 1;
            let (id, key) = (state.last_session, state.last_session * 7 + 1);
            state.sessions.insert(id, Session { key, is_busy: false, cancelled: cancelled.clone() });
            (id, key)
        };
        let _gone = Gone(self, id);
        let mut answer = Answer::default();
        answer.add(b'R', |body| body.extend(0_i32.to_be_bytes()));
        answer.add(b'K', |body| {
            body.extend(id.to_be_bytes());
            body.extend(key.to_be_bytes());
        });
        answer.ready(b'I').send(&mut stream).await?;
        let mut memory = Memory::default();
        loop {
            let (kind, body) = read(&mut stream).await?;
            if kind == b'X' {
                return Ok(());
            }
            self.message(id, kind, Parts(&body), &mut memory, &mut answer, &cancelled).await;
            if matches!(kind, b'Q' | b'S') {
                answer.send(&mut stream).await?;
            }
        }
    }

    async fn message(
        &self,
        id: i32,
        kind: u8,
        mut parts: Parts<'_>,
        memory: &mut Memory,
        answer: &mut Answer,
        cancelled: &Event,
    ) {
        match kind {
            b'Q' => {
                let all = parts.text();
                let statements: Vec<_> = all.split(';').map(Known::new).collect();
                let statements: Vec<_> =
                    statements.into_iter().filter(|known| !known.text().is_empty()).collect();
                if statements.is_empty() {
                    answer.empty(b'I');
                }
                for statement in statements {
                    match self.execute(id, &statement, &[], cancelled).await {
                        Ok(rows) => {
                            if let Some(kind) = statement.column() {
                                describe_column(answer, kind);
                            }
                            complete(answer, &rows);
                        }
                        Err((code, message)) => {
                            answer.error(code, &message);
                            break;
                        }
                    }
                }
                answer.ready(self.state_of(id));
            }
            b'S' => {
                memory.has_failed = false;
                answer.ready(self.state_of(id));
            }
            _ if memory.has_failed => {}
            b'P' => {
                let (name, statement) = (parts.text(), parts.text());
                memory.statements.insert(name, Known::new(&statement));
                self.lock().prepared += 1;
                answer.empty(b'1');
            }
            b'D' => {
                let what = parts.byte();
                assert_eq!(what, b'S', "a statement is described");
                let Some(statement) = memory.statements.get(&parts.text()) else {
                    memory.has_failed = true;
                    answer.error("26000", "no such statement");
                    return;
                };
                answer.add(b't', |body| {
                    body.extend(i16::try_from(statement.parameters().len()).unwrap().to_be_bytes());
                    statement.parameters().iter().for_each(|kind| body.extend(kind.to_be_bytes()));
                });
                match statement.column() {
                    None => _ = answer.empty(b'n'),
                    Some(kind) => describe_column(answer, kind),
                }
            }
            b'B' => {
                let (portal, statement) = (parts.text(), parts.text());
                let formats = parts.short();
                (0..formats).for_each(|_| _ = parts.short());
                let count = parts.short();
                let mut parameter = || {
                    let length = usize::try_from(parts.long()).unwrap();
                    parts.bytes(length)
                };
                let parameters = (0..count).map(|_| parameter()).collect();
                let statement = memory.statements[&statement].clone();
                memory.portals.insert(portal, Portal { statement, parameters });
                answer.empty(b'2');
            }
            b'E' => {
                let Portal { statement, parameters } = &memory.portals[&parts.text()];
                match self.execute(id, statement, parameters, cancelled).await {
                    Ok(rows) => complete(answer, &rows),
                    Err((code, message)) => {
                        memory.has_failed = true;
                        answer.error(code, &message);
                    }
                }
            }
            b'C' => {
                parts.byte();
                memory.statements.remove(&parts.text());
                answer.empty(b'3');
            }
            kind => self.violation(format!("a message of kind {kind}")),
        }
    }

    /// Executes a statement, which takes its time and can be cancelled meanwhile.
    async fn execute(
        &self,
        id: i32,
        statement: &Known,
        parameters: &[Vec<u8>],
        cancelled: &Event,
    ) -> Result<Vec<Value>, Failure> {
        cancelled.reset();
        self.set_busy(id, true);
        race((sleep(WORK + statement.takes()).into_future(), cancelled.wait())).await;
        self.set_busy(id, false);
        let mut state = self.lock();
        state.statements.push(statement.text().to_owned());
        if cancelled.is_set() {
            state.tables.fail(id);
            return Err(("57014", "canceling statement due to user request".to_owned()));
        }
        let (executed, violation) = statement.execute(id, parameters, &mut state.tables);
        state.violations.extend(violation);
        executed
    }

    fn set_busy(&self, id: i32, is_busy: bool) {
        if let Some(session) = self.lock().sessions.get_mut(&id) {
            session.is_busy = is_busy;
        }
    }

    fn state_of(&self, id: i32) -> u8 {
        match self.lock().tables.state(id) {
            TransactionState::Idle => b'I',
            TransactionState::Open => b'T',
            TransactionState::Failed => b'E',
        }
    }

    /// Cancels what a connection does, if it does something.
    fn cancel(&self, id: i32, key: i32) {
        let mut state = self.lock();
        state.cancels += 1;
        if let Some(session) = state.sessions.get(&id)
            && session.key == key
            && session.is_busy
        {
            session.cancelled.set();
        }
    }
}

fn describe_column(answer: &mut Answer, kind: i32) {
    answer.add(b'T', |body| {
        body.extend(1_i16.to_be_bytes());
        text(body, "column");
        body.extend([0; 6]);
        body.extend(kind.to_be_bytes());
        body.extend((-1_i16).to_be_bytes());
        body.extend((-1_i32).to_be_bytes());
        body.extend(1_i16.to_be_bytes());
    });
}

fn complete(answer: &mut Answer, rows: &[Value]) {
    for row in rows {
        answer.add(b'D', |body| {
            body.extend(1_i16.to_be_bytes());
            let bytes = row.bytes();
            body.extend(i32::try_from(bytes.len()).unwrap().to_be_bytes());
            body.extend(bytes);
        });
    }
    answer.add(b'C', |body| text(body, &format!("SELECT {}", rows.len())));
}

/// Rolls back what a connection leaves behind.
struct Gone<'a>(&'a Fake, i32);

impl Drop for Gone<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.sessions.remove(&self.1);
        state.tables.roll_back(self.1);
    }
}
