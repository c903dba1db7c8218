//! The programs of the papers: each returns what its paper says, and the table of contents names it.
#![cfg(all(feature = "net", feature = "testing"))]

#[allow(dead_code, unreachable_pub, reason = "the program around what is tested")]
#[path = "../../examples/papers/main.rs"]
mod programs;

use std::fs;
use std::path::Path;

/// Asserts what the program of this name returns.
#[track_caller]
fn returns(name: &str, expected: &str) {
    let program = programs::examples().find(|one| one.name == name).expect("there is a program of this name");
    assert_eq!((program.run)(), expected);
}

/// One test for each program: its name, and what it returns.
macro_rules! programs {
    ($($paper:ident { $($name:ident: $expected:literal,)* })*) => {
        $(mod $paper {
            $(#[test]
            fn $name() {
                super::returns(concat!(stringify!($paper), "::", stringify!($name)), $expected);
            })*
        })*

        const TESTED: &[&str] = &[$($(concat!(stringify!($paper), "::", stringify!($name)),)*)*];
    };
}

programs! {
    p3552 {
        hello: "Hello, world! 0",
        nested: "the answer is 42",
        results: "Stopped",
        pop: "[1, 2]",
        spawn: "ran on \"worker-0\"",
        reschedule: "first-0, second-0, first-0",
        allocator: "17 by default, 17 in 2048 bytes",
        environment: "value=42",
        errors: "42; invalid digit found in string",
        a_million: "499999500000",
    }
    p4003 {
        awaitable: "42, resumed here: true",
        environment: "Value(3) chunks",
        run_async: "Ok(\"Got: 42\"), Err(\"invalid digit found in string\")",
        run: "worker-0, then main-0; stopped: no longer needed",
        launcher: "this is request 7",
        executor: "posted 4 times",
        service: "resolver closed, resolver shut down",
        context_allocator: "true, and 0 frames left",
        handlers: "302 https://example.org/a, 200 OK; 0 frames",
        window: "1 frame of ours, 1 of theirs",
        compiled_once: "/echo: hello, /length: 5",
        connection: "11 bytes",
        any_read_stream: "2 lines and 3 lines",
    }
    p3149 {
        pairs: "10 functions were called",
        work_items: "5050 and 5050",
        within_a_task: "printed 13, result 13",
        window: "drew 1, drew 2, closed",
        parallel: "twice 0 + … + 99 is 9900",
        listener: "2 connections, 10 bytes",
        spawn_future: "key work: 42, others: 10",
        deadlock: "joining: true, waits for 1; joined: true",
    }
    p1662 {
        count_matches: "2 matches, file [\"closed\"]",
        async_scope: "Err(\"7 failed\") after [0, 1, 2, 3, 4, 5, 6]",
        generators: "[48, 67, 38]; tick 100 after 10s",
        get_records:
            "bob@example.org; page 0, disconnected: the body was stopped (its result is not wanted any more)",
        flat_scopes: "key and value, value closed, key closed",
        done: "Value(42), Stopped; clean-up: returned a value, stopped by itself",
        transform: "42, cleaned up",
        short_circuit: "42, divided by zero, not a number",
    }
}

#[test]
fn every_program_is_tested_and_in_the_table_of_contents() {
    let names: Vec<&str> = programs::examples().map(|one| one.name).collect();
    for name in &names {
        assert!(TESTED.contains(name), "{name} has no test");
    }
    let contents = include_str!("../../examples/papers/README.md");
    let linked = contents.lines().filter_map(|line| line.split_once("](")?.1.split_once(".rs)"));
    let linked: Vec<String> = linked.map(|(file, _)| file.replace('/', "::")).collect();
    assert_eq!(linked, names);
}

#[test]
fn the_programs_fit_into_84_columns() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/papers");
    for name in programs::examples().map(|one| one.name.replace("::", "/")) {
        let text = fs::read_to_string(folder.join(format!("{name}.rs"))).unwrap();
        let wide = text.lines().find(|line| line.chars().count() > 84);
        assert_eq!(wide, None, "{name}.rs is too wide");
    }
}
