//! Runs a fuzz target for a moment, without libFuzzer: stored inputs, and changes of them by chance. The same ones every time. Other
//! crates with a target include this file.

use std::env;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;

use convoke::raw::Random;

/// A function that a fuzzer feeds.
type Target = fn(&[u8]);

/// Words that are inserted by chance: those that parsers look for.
const WORDS: [&str; 22] = [
    "\r\n",
    "\n",
    "\r\n\r\n",
    "\0",
    " ",
    "\t",
    ":",
    "/",
    "//",
    "..",
    "?",
    "#",
    "@",
    "%",
    "[",
    "]",
    ",",
    "0",
    "65536",
    "chunked",
    "content-length: 5\r\n",
    "ffffffffffffffff",
];

/// Runs a target with its seeds, and with changes of them.
pub(crate) fn run(name: &str, target: Target, cases: u64) {
    let seeds = seeds(name);
    let number = |name| env::var(name).ok().map(|value| value.parse::<u64>().expect("a number"));
    if let Some(seed) = number("CONVOKE_SEED") {
        return check(name, target, seed, &changed(&seeds, seed));
    }
    seeds.iter().enumerate().for_each(|(index, seed)| check(name, target, index as u64, seed));
    for seed in 0..number("CONVOKE_ROUNDS").unwrap_or(cases) {
        check(name, target, seed, &changed(&seeds, seed));
    }
}

/// Runs one input. If that panics, prints which one it was.
fn check(name: &str, target: Target, seed: u64, input: &[u8]) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| target(input))) {
        println!("the target `{name}` fails with seed {seed}, input b\"{}\"", input.escape_ascii());
        resume_unwind(panic);
    }
}

/// Returns the stored inputs of a target.
fn seeds(name: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/seeds").join(name);
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(!paths.is_empty(), "{name} has no seeds");
    paths.iter().map(|path| fs::read(path).unwrap()).collect()
}

/// Returns a stored input with some bytes changed, inserted, removed or repeated, or with a part of another one.
fn changed(seeds: &[Vec<u8>], seed: u64) -> Vec<u8> {
    let mut random = Random::new(seed);
    let mut bytes = seeds[random.below(seeds.len())].clone();
    for _ in 0..1 + random.below(5) {
        let at = random.below(bytes.len() + 1);
        let end = bytes.len().min(at + 1 + random.below(16));
        match random.below(7) {
            0 => bytes[at..end].iter_mut().take(1).for_each(|byte| *byte = random.below(256) as u8),
            1 => bytes[at..end].iter_mut().take(1).for_each(|byte| *byte ^= 1 << random.below(8)),
            2 => drop(bytes.drain(at..end)),
            3 => drop(bytes.splice(at..at, WORDS[random.below(WORDS.len())].bytes())),
            4 => {
                let copy = bytes[at..end].to_vec();
                drop(bytes.splice(at..at, copy));
            }
            5 => bytes.truncate(at),
            _ => {
                let other = &seeds[random.below(seeds.len())];
                let start = random.below(other.len() + 1);
                drop(bytes.splice(at.., other[start..].iter().copied()));
            }
        }
    }
    bytes
}
