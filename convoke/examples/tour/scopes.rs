//! An `async fn` awaits senders as it awaits futures; its children live in a scope; a stop unwinds it, clean-up in order.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use convoke::prelude::*;
use convoke::sender::prelude::*;
use convoke::task::forever;

/// Log of events, in their order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Story(Arc<Mutex<Vec<String>>>);

impl Story {
    fn tell(&self, line: impl Into<String>) {
        self.0.lock().unwrap().push(line.into());
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

/// Senders, and other functions, awaited.
pub(crate) async fn price(count: u32) -> u32 {
    let (net, tax) = when_all((just(20), just_from(|| 4))).await;
    sleep(Duration::from_millis(1)).await;
    count * (net + tax)
}

/// Three children. The first that fails stops the others, and its error is returned when they have ended.
pub(crate) async fn pick(story: Story) -> Result<u32, String> {
    scope(async |s| {
        for (item, takes) in [("apples", 40), ("pears", 2), ("plums", 60)] {
            s.named(item).spawn(pick_one(item, Duration::from_millis(takes), story.clone()));
        }
        Ok(price(3).await)
    })
    .await
}

async fn pick_one(item: &'static str, takes: Duration, story: Story) -> Result<(), String> {
    let back_on_the_shelf = async |exit: Exit| story.tell(format!("{item}: {exit}"));
    ensure(back_on_the_shelf, async {
        sleep(takes).await;
        if item == "pears" { Err(format!("out of {item}")) } else { Ok(()) }
    })
    .await
}

/// Uses a resource inside a resource. If it is stopped, both are closed, the inner one first, before its caller goes on.
pub(crate) async fn session(story: Story) {
    let resource = |name| Resource { name, story: story.clone() };
    using(resource("connection"), async |_connection| {
        using(resource("transaction"), async |_transaction| forever().await).await
    })
    .await
}

struct Resource {
    name: &'static str,
    story: Story,
}

impl AsyncClose for Resource {
    type Error = Never;

    async fn close(self, exit: Exit) -> Result<(), Never> {
        self.story.tell(format!("{}: closing, for its user {exit}", self.name));
        sleep(Duration::from_millis(2)).await; // The stop does not keep it from that.
        self.story.tell(format!("{}: closed", self.name));
        Ok(())
    }
}

pub(crate) fn show() {
    println!("   three at a price of:  {}", block_on(price(3)).unwrap());

    let story = Story::default();
    let picked = block_on(pick(story.clone())).unwrap();
    story.tell(format!("the scope ends:  {picked:?}"));

    let limit = Duration::from_millis(5);
    let told = story.clone();
    let ended = block_on(async move { timeout(limit, session(told)).await }).unwrap();
    story.tell(format!("the timeout ends:  {}", ended.unwrap_err()));
    for line in story.lines() {
        println!("   {line}");
    }
}
