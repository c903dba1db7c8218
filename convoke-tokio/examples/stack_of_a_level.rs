//! Measures how many bytes of stack one level of a recursion takes, where each level awaits the next one through
//! a combinator, in one task: futures are polled inside each other. Run it with and without `--release`.
use std::cell::Cell;
use std::hint::black_box;
use std::pin::Pin;
use std::time::Duration;

use convoke::Never;
use convoke::cleanup::Exit;
use convoke::prelude::*;

type Boxed = Pin<Box<dyn Future<Output = usize>>>;

/// A recursion of a number of levels.
type Nested = fn(usize) -> Boxed;

const LEVELS: usize = 100;
const LONG: Duration = Duration::from_secs(3600);

thread_local! {
    /// The addresses of a variable in the outermost and in the innermost level.
    static ENDS: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
}

/// Notes where the stack is at this level.
#[inline(never)]
fn note(level: usize) {
    let variable = 0_u8;
    let address = black_box(&raw const variable).addr();
    match level {
        LEVELS => ENDS.set((address, 0)),
        0 => ENDS.set((ENDS.get().0, address)),
        _ => {}
    }
}

/// Prints the bytes that a level took in the run before.
fn print(name: &str) {
    let (first, last) = ENDS.get();
    println!("{name:>20} {:>6}", (first - last) / LEVELS);
}

/// Defines a function whose future counts the levels below it: `$level` awaits the next one, with `$below` levels.
macro_rules! nested {
    ($name:ident, $below:ident => $level:expr) => {
        fn $name(level: usize) -> Boxed {
            Box::pin(async move {
                note(level);
                if level == 0 {
                    return 0;
                }
                let $below = level - 1;
                $level
            })
        }
    };
}

nested!(plain, below => plain(below).await + 1);
nested!(tokio_timeout, below => tokio::time::timeout(LONG, tokio_timeout(below)).await.unwrap() + 1);
nested!(timeouts, below => timeout(LONG, timeouts(below)).await.unwrap() + 1);
nested!(joins, below => join((joins(below), async {})).await.0 + 1);
nested!(usings, below => using(Resource, async |_| usings(below).await + 1).await);
nested!(scopes, below => scope(async |_| scopes(below).await + 1).await);
nested!(local_scopes, below => local_scope(async |_| local_scopes(below).await + 1).await);

/// A resource that closes at once.
struct Resource;

impl AsyncClose for Resource {
    type Error = Never;

    async fn close(self, _: Exit) -> Result<(), Never> {
        Ok(())
    }
}

fn main() {
    println!("bytes of stack for a level");
    let tokio = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("it starts");
    tokio.block_on(plain(LEVELS));
    print("Box::pin");
    tokio.block_on(tokio_timeout(LEVELS));
    print("tokio's timeout");
    let ours: [(&str, Nested); 5] = [
        ("timeout", timeouts),
        ("join of two", joins),
        ("using", usings),
        ("scope", scopes),
        ("local_scope", local_scopes),
    ];
    for (name, nested) in ours {
        assert_eq!(block_on(nested(LEVELS)), Outcome::Value(LEVELS));
        print(name);
    }
}
