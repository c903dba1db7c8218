//! The command line: a verb and a few switches. Small enough that a parsing crate would be the larger part.

/// Text of `cargo xtask help`.
pub(crate) const USAGE: &str = "\
usage: cargo xtask <command>

  tidy      check layering, modules, unsafe code, file sizes, words, formatting, lints, documentation
            --bless      first lower the numbers in the tables of xtask/ to what is there now
  test      run every test: unit, integration, doc, loom models, a few under Miri, examples, a bench smoke run,
            oldest Rust
  sanitize  run the tests under Miri, ThreadSanitizer, AddressSanitizer and valgrind; install what is missing
  fuzz      run each fuzz target with libFuzzer, for a minute or CONVOKE_FUZZ_SECONDS; install cargo-fuzz if it is missing
  ci        tidy, then test
  weigh     build README's server and its twin for tokio from clean; print CPU time, size and crates of both

  tidy, test, sanitize and fuzz also take
            --list       name the steps
            --only NAME  run this step and no other (may be repeated)";

/// Command to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Help,
    Tidy,
    Test,
    Sanitize,
    Fuzz,
    Ci,
    Weigh,
}

/// The command line, understood.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Arguments {
    pub(crate) verb: Verb,
    pub(crate) bless: bool,
    pub(crate) list: bool,
    /// Empty means all.
    pub(crate) only: Vec<String>,
}

impl Arguments {
    /// Reads the words after the program's name; the error names the word that was wrong.
    pub(crate) fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, String> {
        let verb = match words.next().as_deref() {
            None | Some("help" | "--help" | "-h") => Verb::Help,
            Some("tidy") => Verb::Tidy,
            Some("test") => Verb::Test,
            Some("sanitize") => Verb::Sanitize,
            Some("fuzz") => Verb::Fuzz,
            Some("ci") => Verb::Ci,
            Some("weigh") => Verb::Weigh,
            Some(other) => return Err(format!("there is no command `{other}`")),
        };
        let mut arguments = Self { verb, bless: false, list: false, only: Vec::new() };
        while let Some(word) = words.next() {
            match word.as_str() {
                "--bless" if verb == Verb::Tidy => arguments.bless = true,
                "--list" if verb.has_steps() => arguments.list = true,
                "--only" if verb.has_steps() => match words.next() {
                    Some(name) => arguments.only.push(name),
                    None => return Err("`--only` needs the name of a step; `--list` shows them".into()),
                },
                other => return Err(format!("this command does not take `{other}`")),
            }
        }
        Ok(arguments)
    }
}

impl Verb {
    /// `ci` runs two lists whole, so naming one of the steps would leave the other list empty.
    fn has_steps(self) -> bool {
        matches!(self, Verb::Tidy | Verb::Test | Verb::Sanitize | Verb::Fuzz)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Arguments, String> {
        Arguments::parse(line.split_whitespace().map(String::from))
    }

    #[test]
    fn switches_are_read() {
        let arguments = parse("test --only loom --only bench").unwrap();
        assert_eq!((arguments.verb, arguments.only), (Verb::Test, vec!["loom".into(), "bench".into()]));
        assert!(parse("tidy --bless").unwrap().bless);
    }

    #[test]
    fn a_wrong_word_is_named() {
        assert!(parse("tidi").unwrap_err().contains("`tidi`"));
        assert!(parse("test --bless").unwrap_err().contains("`--bless`"));
        assert!(parse("ci --only loom").unwrap_err().contains("`--only`"));
        assert!(parse("test --only").unwrap_err().contains("needs the name"));
    }
}
