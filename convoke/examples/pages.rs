//! A generator over the pages of a catalogue, fetched over one connection when they are asked for. Whoever has found what he
//! looks for leaves early, and the connection is closed, with its goodbye, before he goes on.
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

/// The first page with this word. The pages behind it are never fetched.
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

/// All pages, in order. The connection is opened for the first, and closed after the last, or when nobody wants more.
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
    /// What is on it.
    pub text: &'static str,
}

/// Where the pages are, and what happened there.
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
    /// A server with these pages.
    pub fn new(pages: &[&'static str]) -> Self {
        Self(Arc::new(Inside { pages: pages.to_vec(), state: Mutex::default() }))
    }

    /// How many connections were opened and not closed.
    pub fn open_connections(&self) -> usize {
        self.0.state.lock().unwrap().open
    }

    /// What happened.
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

/// A connection to a [`Server`]. It says goodbye.
#[derive(Debug)]
pub struct Connection(Server);

impl Connection {
    /// The page of this number, if there is one. It takes a moment.
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
