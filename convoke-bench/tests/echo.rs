//! The scenarios of sockets, run by the program itself: their servers and their load are processes of it, which a unit
//! test has none of.

use std::collections::BTreeMap;
use std::process::Command;

/// Runs scenarios with tiny samples and gives the peers of each, with the medians of their costs.
fn run(scenarios: &[&str]) -> BTreeMap<String, Vec<(String, f64)>> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_convoke-bench"));
    let output = command.args(scenarios).args(["--json", "--quick", "--repeat", "1"]).output().unwrap();
    let (lines, errors) =
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{errors}");
    let mut medians: BTreeMap<String, Vec<(String, f64)>> = BTreeMap::new();
    for line in lines.lines() {
        let median = field(line, "median").parse().unwrap();
        medians
            .entry(field(line, "scenario").to_owned())
            .or_default()
            .push((field(line, "peer").to_owned(), median));
    }
    medians
}

/// The value of a field in a line of JSON as the bench writes it, without quotes.
fn field<'line>(line: &'line str, name: &str) -> &'line str {
    let (_, rest) = line.split_once(&format!("\"{name}\":")).unwrap_or_else(|| panic!("no {name} in {line}"));
    rest.split([',', '}']).next().unwrap().trim_matches('"')
}

fn assert_that_all_answer(scenarios: &[&str]) {
    let medians = run(scenarios);
    assert_eq!(medians.len(), scenarios.len(), "{medians:?}");
    for (scenario, peers) in medians {
        for expected in ["convoke", "tokio", "smol", "monoio", "compio", "raw_epoll"] {
            let answered = peers.iter().any(|(peer, median)| peer == expected && *median > 0.0);
            assert!(answered, "{expected} in {scenario}: {peers:?}");
        }
    }
}

#[test]
fn every_server_answers_one_connection_and_many() {
    assert_that_all_answer(&["tcp_echo_64_1", "tcp_echo_64_50", "tcp_echo_64_1000"]);
}

#[test]
fn every_server_answers_messages_that_do_not_fit_into_a_packet() {
    assert_that_all_answer(&["tcp_echo_16384_50"]);
}

#[test]
fn every_server_answers_datagrams() {
    assert_that_all_answer(&["udp_echo"]);
}

#[test]
fn every_server_keeps_idle_connections() {
    assert_that_all_answer(&["idle_connection_bytes"]);
}
