//! The command line, parsed without a crate: a handful of flags, and an error message that says what would be
//! right.

use std::time::Duration;

use crate::allocator::Backend;
use crate::measure::Plan;

pub(crate) const USAGE: &str = "\
usage: convoke-bench <scenario>...|all [flags]

  --list                        name the scenarios and their contestants, measure nothing
  --json                        one JSON object a line on standard output
  --repeat N                    timed samples per contestant (11)
  --allocator system|mimalloc   the allocator everyone uses (system)
  --instructions                instructions per op too, counted by callgrind
  --quick                       tiny samples: does it run, not how fast
  --help                        this text
";

/// The flags, for the message that follows an unknown one.
const FLAGS: &str =
    "--list, --json, --repeat N, --allocator system|mimalloc, --instructions, --quick, --help";

const REPEAT: u32 = 11;
const SAMPLE: Duration = Duration::from_millis(70);
const QUICK_REPEAT: u32 = 3;
const QUICK_SAMPLE: Duration = Duration::from_millis(1);

/// The action that the command line asks for.
#[derive(Debug, PartialEq)]
pub(crate) enum Action<'names> {
    Help,
    List,
    Measure(Options<'names>),
    /// Hidden, for callgrind: runs one contestant for a number of ops, without output.
    RunOps {
        scenario: String,
        peer: String,
        ops: u64,
    },
}

#[derive(Debug, PartialEq)]
pub(crate) struct Options<'names> {
    pub(crate) scenarios: Vec<&'names str>,
    pub(crate) json: bool,
    pub(crate) instructions: bool,
    /// `None` keeps the allocator that the process was started with.
    pub(crate) allocator: Option<Backend>,
    pub(crate) plan: Plan,
}

/// Parses the arguments (without the program's name); `names` are the existing scenarios.
pub(crate) fn parse<'names>(
    arguments: impl IntoIterator<Item = String>,
    names: &[&'names str],
) -> Result<Action<'names>, String> {
    let mut arguments = arguments.into_iter();
    let (mut scenarios, mut json, mut instructions, mut quick) = (Vec::new(), false, false, false);
    let (mut repeat, mut allocator, mut list) = (None, None, false);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--help" | "-h" => return Ok(Action::Help),
            "--list" => list = true,
            "--json" => json = true,
            "--instructions" => instructions = true,
            "--quick" => quick = true,
            "--repeat" => repeat = Some(count("--repeat", arguments.next())?),
            "--allocator" => allocator = Some(backend(arguments.next())?),
            "--run-ops" => return run_ops(&mut arguments),
            flag if flag.starts_with('-') => {
                return Err(format!("unknown flag {flag}; the flags are {FLAGS}"));
            }
            "all" => scenarios.extend_from_slice(names),
            name => match names.iter().find(|known| **known == name) {
                Some(known) => scenarios.push(known),
                None => {
                    return Err(format!(
                        "unknown scenario {name}; the scenarios are all, {}",
                        names.join(", ")
                    ));
                }
            },
        }
    }
    if list {
        return Ok(Action::List);
    }
    if scenarios.is_empty() {
        return Err(format!("name a scenario; the scenarios are all, {}", names.join(", ")));
    }
    let (default_repeat, sample) = if quick { (QUICK_REPEAT, QUICK_SAMPLE) } else { (REPEAT, SAMPLE) };
    let plan = Plan { repeat: repeat.unwrap_or(default_repeat), sample };
    Ok(Action::Measure(Options { scenarios, json, instructions, allocator, plan }))
}

fn run_ops<'names>(arguments: &mut impl Iterator<Item = String>) -> Result<Action<'names>, String> {
    let (Some(scenario), Some(peer)) = (arguments.next(), arguments.next()) else {
        return Err("--run-ops takes a scenario, a peer and a number".to_owned());
    };
    let ops = count("--run-ops", arguments.next())?;
    Ok(Action::RunOps { scenario, peer, ops: ops.into() })
}

fn count(flag: &str, value: Option<String>) -> Result<u32, String> {
    let value = value.ok_or_else(|| format!("{flag} takes a number of at least 1"))?;
    match value.parse() {
        Ok(number) if number >= 1 => Ok(number),
        _ => Err(format!("{flag} takes a number of at least 1, not {value}")),
    }
}

fn backend(value: Option<String>) -> Result<Backend, String> {
    match value.as_deref() {
        Some("system") => Ok(Backend::System),
        Some("mimalloc") => Ok(Backend::Mimalloc),
        Some(other) => Err(format!("--allocator takes system or mimalloc, not {other}")),
        None => Err("--allocator takes system or mimalloc".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 3] = ["bulk", "hop_typed", "hop_erased"];

    fn read(line: &str) -> Result<Action<'static>, String> {
        parse(line.split_whitespace().map(str::to_owned), &NAMES)
    }

    fn options(line: &str) -> Options<'static> {
        match read(line) {
            Ok(Action::Measure(options)) => options,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn defaults_are_eleven_long_samples_as_a_table() {
        let expected = Options {
            scenarios: vec!["bulk"],
            json: false,
            instructions: false,
            allocator: None,
            plan: Plan { repeat: 11, sample: SAMPLE },
        };
        assert_eq!(options("bulk"), expected);
    }

    #[test]
    fn all_means_every_scenario() {
        assert_eq!(options("all").scenarios, NAMES);
    }

    #[test]
    fn flags_may_stand_before_and_after_the_scenarios() {
        let read = options("--json hop_typed --repeat 5 bulk --allocator mimalloc --instructions");
        assert_eq!(read.scenarios, ["hop_typed", "bulk"]);
        assert!(read.json && read.instructions);
        assert_eq!(read.plan.repeat, 5);
        assert_eq!(read.allocator, Some(Backend::Mimalloc));
    }

    #[test]
    fn quick_lowers_the_repeats_unless_they_are_given() {
        assert_eq!(options("all --quick").plan, Plan { repeat: QUICK_REPEAT, sample: QUICK_SAMPLE });
        assert_eq!(options("all --repeat 9 --quick").plan, Plan { repeat: 9, sample: QUICK_SAMPLE });
    }

    #[test]
    fn an_unknown_scenario_is_answered_with_the_known_ones() {
        let problem = read("bulk nonsense").unwrap_err();
        assert_eq!(problem, "unknown scenario nonsense; the scenarios are all, bulk, hop_typed, hop_erased");
    }

    #[test]
    fn an_unknown_flag_is_answered_with_the_known_ones() {
        let problem = read("bulk --jsonn").unwrap_err();
        assert!(problem.starts_with("unknown flag --jsonn; the flags are --list, --json,"), "{problem}");
    }

    #[test]
    fn nothing_to_measure_is_an_error() {
        assert!(read("").unwrap_err().starts_with("name a scenario"));
        assert!(read("--json").unwrap_err().starts_with("name a scenario"));
    }

    #[test]
    fn numbers_must_be_numbers_of_at_least_one() {
        for line in ["bulk --repeat", "bulk --repeat 0", "bulk --repeat -3", "bulk --repeat many"] {
            assert!(read(line).unwrap_err().starts_with("--repeat takes a number of at least 1"), "{line}");
        }
    }

    #[test]
    fn an_unknown_allocator_is_answered_with_the_known_ones() {
        assert_eq!(
            read("bulk --allocator jemalloc").unwrap_err(),
            "--allocator takes system or mimalloc, not jemalloc"
        );
        assert_eq!(read("bulk --allocator").unwrap_err(), "--allocator takes system or mimalloc");
    }

    #[test]
    fn list_needs_no_scenario() {
        assert_eq!(read("--list"), Ok(Action::List));
        assert_eq!(read("bulk --help --whatever"), Ok(Action::Help));
    }

    #[test]
    fn run_ops_takes_what_callgrind_needs() {
        let expected = Action::RunOps { scenario: "bulk".to_owned(), peer: "rayon".to_owned(), ops: 7 };
        assert_eq!(read("--run-ops bulk rayon 7"), Ok(expected));
        assert!(read("--run-ops bulk").is_err());
        assert!(read("--run-ops bulk rayon").is_err());
    }
}
