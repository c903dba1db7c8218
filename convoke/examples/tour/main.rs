//! A guided run through Convoke, with real output: `cargo run --release --example tour`.

mod doors;
mod environment;
mod loops;
mod network;
mod picture;
mod places;
mod scopes;
mod stopping;
mod tasks;
mod together;

use std::time::Instant;

fn main() {
    println!("\nConvoke: structured async in which nothing is ever detached.");
    let chapters: [(&str, fn()); 10] = [
        ("An outcome has four doors", doors::show),
        ("Work together, and the first error", together::show),
        ("Stop is a request, and it is awaited", stopping::show),
        ("The environment travels down, invisibly", environment::show),
        ("Where work runs is said at the launch site", places::show),
        ("All cores, one call", picture::show),
        ("Tasks and scopes: a scope ends after its children", scopes::show),
        ("Every task is in the tree", tasks::show),
        ("The same functions over real sockets and simulated ones", network::show),
        ("A million times in place: flat stack, flat memory", loops::show),
    ];
    for (number, (title, show)) in chapters.iter().enumerate() {
        println!("\n{}. {title}\n{}", number + 1, "─".repeat(title.chars().count() + 3));
        let begin = Instant::now();
        show();
        println!("   ({:.1?})", begin.elapsed());
    }
    println!("\nThat was all: every piece of work has ended.\n");
}
