//! P3149R1 §4.2: a window starts work for each message, and the program waits for
//! all of it before the window goes.
//!
//! The window has a handle of the scope, and not a reference. Messages are an
//! `enum`, and not overloads.

use std::sync::{Arc, Mutex};

use convoke::executor::PoolExecutor;
use convoke::prelude::*;
use convoke::sender::ScopeHandle;
use convoke::sender::prelude::*;

enum Message {
    Draw(u32),
    Close,
}

#[derive(Clone, Default)]
struct Screen(Arc<Mutex<Vec<String>>>);

fn some_work(message: Message, screen: &Screen) {
    screen.0.lock().unwrap().push(match message {
        Message::Draw(i) => format!("drew {i}"),
        Message::Close => "closed".to_owned(),
    });
}

struct MyWindow {
    executor: PoolExecutor,
    scope: ScopeHandle,
    screen: Screen,
}

impl MyWindow {
    fn on_message(&self, message: Message) {
        let screen = self.screen.clone();
        let work = just_from(move || some_work(message, &screen));
        let env = Env::from(self.executor);
        self.scope.spawn(work.starts_on(&self.executor), &env).unwrap();
    }
}

pub(crate) fn run() -> String {
    let pool = ThreadPool::new(1).unwrap();
    let scope = CountingScope::new();
    let screen = Screen::default();
    let (executor, handle) = (pool.executor(), scope.handle());
    let window = MyWindow { executor, scope: handle, screen: screen.clone() };
    for message in [Message::Draw(1), Message::Draw(2), Message::Close] {
        window.on_message(message);
    }
    sync_wait(scope.join()).unwrap();
    screen.0.lock().unwrap().join(", ")
}
