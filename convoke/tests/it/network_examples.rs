//! The examples that use sockets, in a simulated network: with many seeds, with a stop at every step and a
//! fault at every operation. In each case they end, and leave nothing behind.
#![cfg(feature = "sim")]

#[allow(dead_code, unreachable_pub, reason = "the program around what is tested")]
#[path = "../../examples/chat.rs"]
mod chat;
#[allow(dead_code, unreachable_pub, reason = "the program around what is tested")]
#[path = "../../examples/echo.rs"]
mod echo;
#[allow(dead_code, unreachable_pub, reason = "the program around what is tested")]
#[path = "../../examples/port_scanner.rs"]
mod port_scanner;
#[allow(dead_code, unreachable_pub, reason = "the program around what is tested")]
#[path = "../../examples/proxy.rs"]
mod proxy;
#[allow(dead_code, unreachable_pub, reason = "the program around what is tested")]
#[path = "../../examples/reload.rs"]
mod reload;

use std::io;

use convoke::net::TcpListener;
use convoke::sim::{Fault, Sim, explore_faults, explore_host_stops, explore_seeds};

const SEED: u64 = 1;

async fn echoes() -> io::Result<()> {
    let heard = echo::play(TcpListener::bind("127.0.0.1:0").await?, 3).await?;
    let said: Vec<String> = (0..3).map(|n| format!("hello from client {n}")).collect();
    assert_eq!(heard, said);
    Ok(())
}

async fn passes_on() -> io::Result<()> {
    let answers = proxy::play(2).await?;
    // The proxy passes a reset behind it on as a connection without an answer.
    let expected = ["you said 1 bytes", "you said 2 bytes"];
    assert!(answers.iter().zip(expected).all(|(answer, expected)| answer == expected || answer.is_empty()));
    Ok(())
}

async fn chats() -> io::Result<()> {
    let heard = chat::play(TcpListener::bind("127.0.0.1:0").await?).await?;
    assert!(heard[0].ends_with("is anybody here?"), "{heard:?}");
    assert_eq!(heard.len(), 3);
    Ok(())
}

async fn scans() -> io::Result<()> {
    let (opened, found) = port_scanner::play().await?;
    assert_eq!(opened, found);
    Ok(())
}

async fn reloads() -> io::Result<()> {
    assert_eq!(reload::play().await?, ["configuration 1", "configuration 2"]);
    Ok(())
}

/// Runs the program on a single host.
fn alone<P>(program: fn() -> P) -> impl Fn(&mut Sim)
where
    P: Future<Output = io::Result<()>> + Send + 'static,
{
    move |sim| {
        sim.host("host").run(program);
    }
}

fn explore<P>(program: fn() -> P)
where
    P: Future<Output = io::Result<()>> + Send + 'static,
{
    explore_seeds(0..10, alone(program));
    assert!(!explore_host_stops(SEED, "host", alone(program)).runs().is_empty());
    assert!(!explore_faults(SEED, "host", &[Fault::Reset], alone(program)).runs().is_empty());
}

#[test]
fn the_echo_server_ends_wherever_it_is_stopped_or_fails() {
    explore(echoes);
}

#[test]
fn the_proxy_ends_wherever_it_is_stopped_or_fails() {
    explore(passes_on);
}

#[test]
fn the_chat_ends_wherever_it_is_stopped_or_fails() {
    explore(chats);
}

#[test]
fn the_server_that_reloads_ends_wherever_it_is_stopped_or_fails() {
    explore(reloads);
}

#[test]
fn the_scanner_finds_what_was_opened() {
    explore_seeds(0..3, alone(scans));
}
