//! The attributes as users write them: every form of test, and every return type.

use std::io;
use std::rc::Rc;
use std::time::Duration;

use convoke::net::{TcpListener, TcpStream};
use convoke::prelude::*;

async fn greeting() -> io::Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let (client, (server, _)) = try_join((TcpStream::connect(address), listener.accept())).await?;
    client.write_all(b"hello").await?;
    let mut heard = vec![0; 5];
    server.read_exact(&mut heard).await?;
    Ok(String::from_utf8_lossy(&heard).into_owned())
}

#[convoke::test]
async fn a_test_has_real_sockets() -> io::Result<()> {
    assert_eq!(greeting().await?, "hello");
    Ok(())
}

#[convoke::test]
async fn a_test_need_not_be_send() {
    let shared = Rc::new(7);
    checkpoint().await;
    assert_eq!(*shared, 7);
}

#[convoke::test(virtual_time)]
async fn hours_pass_at_once() {
    let begin = std::time::Instant::now();
    sleep(Duration::from_secs(3600)).await;
    assert!(begin.elapsed() < Duration::from_secs(3000));
}

#[convoke::test(sim)]
async fn the_same_program_has_simulated_sockets() -> io::Result<()> {
    sleep(Duration::from_secs(3600)).await;
    assert_eq!(greeting().await?, "hello");
    Ok(())
}

#[convoke::test(sim, seed = 7)]
async fn a_seed_may_be_given() -> Result<(), String> {
    greeting().await.map(drop).map_err(|error| error.to_string())
}

#[convoke::test(seeds = 20)]
async fn and_many_of_them() -> io::Result<()> {
    greeting().await.map(drop)
}

#[convoke::test]
#[should_panic(expected = "as it should")]
async fn other_attributes_stay() {
    panic!("as it should");
}

/// With the attribute a program is an ordinary function.
#[convoke::main(contexts = 1, pool_threads = 1, grace_seconds = 5)]
async fn program() -> Result<(), io::Error> {
    greeting().await.map(drop)
}

#[test]
fn a_program_runs_and_returns() {
    program().unwrap();
}

#[test]
fn what_must_not_compile_says_why() {
    crate::compile_fail::refuses_them_all("macros");
}
