//! A generator over the pages of a catalogue, fetched over one connection on demand. A consumer that has found
//! its page stops early; the connection is closed, with its goodbye message, before the consumer goes on.
//!
//! ```text
//! cargo run --release --example pages
//! ```

use std::sync::{Arc, Mutex};

use convoke::prelude::*;
use convoke::task::generator;

fn main() {
    for word in ["lantern", "unicorn"] {
        let server = Server::new(&["anvil, bellows", "candle, lantern", "rope, sail", "tar, twine"]);
        let found = block_on(find(server.clone(), word)).unwrap();
        match found {
            Some(number) => println!("{word}: on page {number}"),
            None => println!("{word}: on no page"),
        }
        for line in server.log() {
            println!("    {line}");
        }
        assert_eq!(server.open_connections(), 0);
    }
}

/// Finds the first page with this word. The pages after it are never fetched.
pub async fn find(server: Server, word: &str) -> Option<usize> {
    using(pages(server), async |mut pages| {
        while let Some(page) = pages.next().await {
            if page.text.contains(word) {
                return Some(page.number); // The generator stops where it yields, and closes its connection.
            }
        }
        None
    })
    .await
}

/// Generates all pages, in order. Opens the connection for the first page, and closes it after the last, or when the generator is closed.
pub fn pages(server: Server) -> convoke::task::Generator<Page, impl Future<Output = ()> + Send> {
    generator(async move |y| {
        using(server.connect(), async |connection| {
            let mut number = 1;
            while let Some(page) = connection.fetch(number).await {
                y.yield_value(page).await;
                number += 1;
            }
        })
        .await;
    })
}

/// One page.
#[derive(Clone, Debug)]
pub struct Page {
    /// Its number, from one.
    pub number: usize,
    /// Text of the page.
    pub text: &'static str,
}

/// Server of the pages, with a log.
#[derive(Clone, Debug)]
pub struct Server(Arc<Inside>);

#[derive(Debug)]
struct Inside {
    pages: Vec<&'static str>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    open: usize,
    log: Vec<String>,
}

impl Server {
    /// Creates a server with these pages.
    pub fn new(pages: &[&'static str]) -> Self {
        Self(Arc::new(Inside { pages: pages.to_vec(), state: Mutex::default() }))
    }

    /// Returns the number of open connections.
    pub fn open_connections(&self) -> usize {
        self.0.state.lock().unwrap().open
    }

    /// Returns the log.
    pub fn log(&self) -> Vec<String> {
        self.0.state.lock().unwrap().log.clone()
    }

    fn connect(&self) -> Connection {
        let mut state = self.0.state.lock().unwrap();
        state.open += 1;
        state.log.push("connection opened".to_owned());
        drop(state);
        Connection(self.clone())
    }

    fn note(&self, line: String) {
        self.0.state.lock().unwrap().log.push(line);
    }
}

/// Connection to a [`Server`]. Its close sends a goodbye message.
#[derive(Debug)]
pub struct Connection(Server);

impl Connection {
    /// Fetches the page of this number, if there is one. That takes a moment.
    pub async fn fetch(&self, number: usize) -> Option<Page> {
        checkpoint().await;
        let text = *self.0.0.pages.get(number - 1)?;
        self.0.note(format!("page {number} fetched"));
        Some(Page { number, text })
    }
}

impl AsyncClose for Connection {
    type Error = Never;

    async fn close(self, exit: Exit) -> Result<(), Never> {
        checkpoint().await;
        self.0.note(format!("connection closed: its user {exit}"));
        self.0.0.state.lock().unwrap().open -= 1;
        Ok(())
    }
}
