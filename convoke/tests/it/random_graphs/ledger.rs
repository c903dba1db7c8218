//! Counters of a graph: tokens, values, clean-ups and exits.

use std::panic::panic_any;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

/// The number of tokens of a graph that are watched one by one; more are only counted.
const WATCHED: usize = 4096;

/// The counters of one graph.
#[derive(Debug)]
pub(crate) struct Ledger {
    made: AtomicUsize,
    dropped: AtomicUsize,
    gone: Box<[AtomicBool]>,
    pairs: Mutex<Vec<Arc<Pair>>>,
    complaints: Mutex<Vec<String>>,
    pub(crate) completions: AtomicUsize,
}

/// Something that is begun and must then be ended, once.
#[derive(Debug)]
pub(crate) struct Pair {
    name: &'static str,
    begun: AtomicUsize,
    ended: AtomicUsize,
}

impl Pair {
    pub(crate) fn begin(&self) {
        self.begun.fetch_add(1, Ordering::AcqRel);
    }

    pub(crate) fn end(&self) {
        self.ended.fetch_add(1, Ordering::AcqRel);
    }
}

impl Ledger {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            made: AtomicUsize::new(0),
            dropped: AtomicUsize::new(0),
            gone: (0..WATCHED).map(|_| AtomicBool::new(false)).collect(),
            pairs: Mutex::default(),
            complaints: Mutex::default(),
            completions: AtomicUsize::new(0),
        })
    }

    /// Creates a token that must be dropped once.
    pub(crate) fn token(self: &Arc<Self>) -> Token {
        Token { id: self.made.fetch_add(1, Ordering::AcqRel), ledger: self.clone() }
    }

    /// Creates a pair that is to be begun and ended.
    pub(crate) fn pair(&self, name: &'static str) -> Arc<Pair> {
        let pair = Arc::new(Pair { name, begun: AtomicUsize::new(0), ended: AtomicUsize::new(0) });
        self.pairs.lock().unwrap().push(pair.clone());
        pair
    }

    pub(crate) fn counted<T>(self: &Arc<Self>, what: T) -> Counted<T> {
        Counted { what, token: self.token() }
    }

    pub(crate) fn complain(&self, text: impl Into<String>) {
        self.complaints.lock().unwrap().push(text.into());
    }

    /// Returns the number of tokens that were not dropped yet.
    pub(crate) fn outstanding(&self) -> usize {
        // Read in this order, so that a token created in between does not count as dropped.
        let dropped = self.dropped.load(Ordering::Acquire);
        self.made.load(Ordering::Acquire).saturating_sub(dropped)
    }

    /// Returns all that went wrong, once everything has ended.
    pub(crate) fn complaints(&self, completions: usize) -> Vec<String> {
        let mut all = self.complaints.lock().unwrap().clone();
        let (made, dropped) = (self.made.load(Ordering::Acquire), self.dropped.load(Ordering::Acquire));
        if made != dropped {
            all.push(format!("{made} tokens were made and {dropped} dropped"));
        }
        let completed = self.completions.load(Ordering::Acquire);
        if completed != completions {
            all.push(format!("the root completed {completed} times, and not {completions}"));
        }
        for pair in self.pairs.lock().unwrap().iter() {
            let counts = (pair.begun.load(Ordering::Acquire), pair.ended.load(Ordering::Acquire));
            if !matches!(counts, (0, 0) | (1, 1)) {
                all.push(format!("{}: begun {} times, ended {} times", pair.name, counts.0, counts.1));
            }
        }
        all
    }
}

/// A token that every closure and every value of a graph holds.
#[derive(Debug)]
pub(crate) struct Token {
    id: usize,
    ledger: Arc<Ledger>,
}

impl Token {
    /// Checks that the token is alive. Called where it is used.
    pub(crate) fn touch(&self) {
        // Lets another thread run first now and then.
        if self.id % 16 == 3 {
            thread::yield_now();
        }
        if self.ledger.gone.get(self.id).is_some_and(|gone| gone.load(Ordering::Acquire)) {
            self.ledger.complain(format!("token {} was used after its drop", self.id));
        }
    }

    /// Checks the token, and panics if `boom` is set.
    pub(crate) fn touch_or_panic(&self, boom: bool) {
        self.touch();
        if boom {
            match self.id % 2 {
                0 => panic!("{EXPECTED} by token {}", self.id),
                _ => panic_any(ExpectedPanic(self.ledger.token())),
            }
        }
    }

    pub(crate) fn ledger(&self) -> &Arc<Ledger> {
        &self.ledger
    }
}

impl Drop for Token {
    fn drop(&mut self) {
        if self.ledger.gone.get(self.id).is_some_and(|gone| gone.swap(true, Ordering::AcqRel)) {
            self.ledger.complain(format!("token {} was dropped twice", self.id));
        }
        self.ledger.dropped.fetch_add(1, Ordering::AcqRel);
    }
}

impl Clone for Token {
    fn clone(&self) -> Self {
        self.touch();
        self.ledger.token()
    }
}

/// The start of the message of a panic that is part of the graph.
pub(crate) const EXPECTED: &str = "expected panic";

/// A panic payload that is part of the graph, and counted.
#[derive(Debug)]
pub(crate) struct ExpectedPanic(Token);

impl ExpectedPanic {
    pub(crate) fn touch(&self) {
        self.0.touch();
    }
}

/// A value or an error that is counted.
#[derive(Clone, Debug)]
pub(crate) struct Counted<T> {
    pub(crate) what: T,
    pub(crate) token: Token,
}

pub(crate) type Word = Counted<u64>;
pub(crate) type Fault = Counted<u32>;

impl Word {
    /// Combines two values into one.
    pub(crate) fn and(mut self, other: Self) -> Self {
        self.token.touch();
        other.token.touch();
        self.what = self.what.wrapping_add(other.what);
        self
    }
}
