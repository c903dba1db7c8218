//! Words that do not belong: names that say nothing, metaphors that the trade has a word for, leftovers of unfinished work,
//! paths of somebody's machine; and a word that does: every source file opens by saying what it is.

use crate::lexer::{self, Kind};
use crate::step::{Verdict, counted};
use crate::workspace::Workspace;

/// Names for files and modules that hold "the rest". A thing has a name of its own.
const EMPTY_NAMES: [&str; 4] = ["utils", "helpers", "common", "misc"];

/// A metaphor that was given up for the word of the trade.
struct OldWord {
    words: &'static [&'static str],
    instead: &'static str,
    /// Where the word means something else.
    except_in: &'static [&'static str],
}

const OLD_WORDS: [OldWord; 6] = [
    // In the workshop letters are those of a text.
    OldWord { words: &["letter", "letters"], instead: "remote wake", except_in: &["xtask/"] },
    OldWord { words: &["bell", "bells"], instead: "wake flag", except_in: &[WORDS] },
    OldWord { words: &["home", "homes", "homeless"], instead: "owner thread", except_in: &[WORDS] },
    // Futures of tokio are guests in `convoke-tokio`; chats and examples have some, too.
    OldWord {
        words: &["guest", "guests"],
        instead: "adopted operation, nested loop, member",
        except_in: &[
            WORDS,
            "convoke-tokio/",
            "convoke-runtimes/",
            "convoke-http/src/lib.rs",
            "convoke/src/guide/",
            "convoke/examples/",
            "convoke/tests/it/examples/",
            "services/",
        ],
    },
    OldWord { words: &["dismiss", "dismissed", "dismisses"], instead: "free", except_in: &[WORDS] },
    // TLS and PostgreSQL have handshakes.
    OldWord {
        words: &["handshake", "handshakes"],
        instead: "rendezvous",
        except_in: &[
            WORDS,
            "convoke-tls/",
            "convoke-http/",
            "convoke-postgres/",
            "convoke-bench/",
            "convoke/src/guide/",
            "services/",
        ],
    },
];

/// This file, which has all of them.
const WORDS: &str = "xtask/src/tidy/words.rs";

/// Macros that stand for code not written yet or not removed yet.
const UNFINISHED_MACROS: [&str; 3] = ["todo", "unimplemented", "dbg"];

/// Marks that people leave for later.
const UNFINISHED_MARKS: [&str; 2] = ["FIXME", "XXX"];

/// Where the files of one machine live. Put together here so that this file does not find itself.
const MACHINE_PATHS: [&str; 4] =
    [concat!("/ho", "me/"), concat!("/ro", "ot/"), concat!("/wo", "rk/"), concat!("/tm", "p/wt")];

/// A front page is read in one sitting.
const README_LINES: usize = 150;

pub(super) fn check(workspace: &Workspace) -> Verdict {
    let mut findings = Vec::new();
    for path in &workspace.files {
        let Some(text) = workspace.read(path) else { continue };
        findings.extend(machine_paths(path, &text));
        if path.ends_with(".rs") {
            findings.extend(empty_file_name(path));
            findings.extend(empty_module_names(path, &text));
            findings.extend(old_words(path, &text));
            findings.extend(leftovers(path, &text));
            findings.extend(missing_opening(path, &text));
        }
        if path == "README.md" && text.lines().count() > README_LINES {
            findings.push(format!("README.md has {} lines, over {README_LINES}", text.lines().count()));
        }
    }
    Verdict::from_findings(findings, counted(workspace.files.len(), "file"))
}

fn empty_file_name(path: &str) -> Option<String> {
    let mut parts = path.split('/').map(|part| part.strip_suffix(".rs").unwrap_or(part));
    let name = parts.find(|part| EMPTY_NAMES.contains(part))?;
    Some(format!("{path}: `{name}` says nothing, name the idea"))
}

fn empty_module_names(path: &str, source: &str) -> Vec<String> {
    let code = lexer::keep(source, &[Kind::Code]);
    let mut findings = Vec::new();
    let mut last = "";
    for (line, word) in lexer::words(&code) {
        if last == "mod" && EMPTY_NAMES.contains(&word) {
            findings.push(format!("{path}:{line}: module `{word}` says nothing, name the idea"));
        }
        last = word;
    }
    findings
}

/// Looks at names, comments and literals: messages are read, too.
fn old_words(path: &str, source: &str) -> Vec<String> {
    let mut findings = Vec::new();
    let lower = source.to_ascii_lowercase();
    for OldWord { words, instead, except_in } in &OLD_WORDS {
        // Most files have none of the letters of a word in this order.
        if except_in.iter().any(|folder| path.starts_with(folder))
            || !words.iter().any(|word| lower.contains(word))
        {
            continue;
        }
        for (line, word) in lexer::words(source) {
            if parts(word).any(|part| words.iter().any(|word| part.eq_ignore_ascii_case(word))) {
                findings.push(format!("{path}:{line}: `{word}`: the trade says {instead}"));
            }
        }
    }
    findings
}

/// Returns the words that a name consists of: `run_loop`, `RunLoop` and `RUN_LOOP` are two each.
fn parts(name: &str) -> impl Iterator<Item = &str> {
    name.split('_').flat_map(|part| {
        let begins_word = |at: usize| {
            part[at..].starts_with(char::is_uppercase) && part[..at].ends_with(char::is_lowercase)
        };
        let mut begins: Vec<usize> = (0..part.len()).filter(|at| part.is_char_boundary(*at)).collect();
        begins.retain(|at| begins_word(*at));
        begins.insert(0, 0);
        let ends: Vec<usize> = begins.iter().skip(1).copied().chain([part.len()]).collect();
        begins.into_iter().zip(ends).map(move |(begin, end)| &part[begin..end])
    })
}

/// Looks at code and comments. In a literal these words are data.
fn leftovers(path: &str, source: &str) -> Vec<String> {
    let text = lexer::keep(source, &[Kind::Code, Kind::Comment]);
    let mut findings = Vec::new();
    for (line, word) in lexer::words(&text) {
        if UNFINISHED_MARKS.contains(&word) {
            findings.push(format!("{path}:{line}: {word} left behind"));
        }
    }
    for (index, line) in text.lines().enumerate() {
        for name in UNFINISHED_MACROS {
            let call = format!("{name}!(");
            let called = line.match_indices(&call).any(|(at, _)| {
                !line[..at].ends_with(|letter: char| letter == '_' || letter.is_alphanumeric())
            });
            if called {
                findings.push(format!("{path}:{}: {call}…) left behind", index + 1));
            }
        }
    }
    findings
}

/// Only absolute paths count: `docs/work/plan` and the path of a web address belong to no machine.
fn machine_paths(path: &str, text: &str) -> Vec<String> {
    let mut findings = Vec::new();
    for (index, line) in text.lines().enumerate() {
        for needle in MACHINE_PATHS {
            let absolute = line.match_indices(needle).any(|(at, _)| {
                !line[..at].ends_with(|letter: char| letter.is_alphanumeric() || "._-~*}>)".contains(letter))
            });
            if absolute {
                findings.push(format!("{path}:{}: `{needle}` is a path of one machine", index + 1));
            }
        }
    }
    findings
}

fn missing_opening(path: &str, source: &str) -> Option<String> {
    let in_source = path.split('/').rev().skip(1).any(|part| part == "src");
    (in_source && !source.starts_with("//!"))
        .then(|| format!("{path}: opens without a `//!` line saying what it is"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_names_are_found_in_paths_and_modules() {
        assert!(empty_file_name("convoke/src/utils.rs").is_some());
        assert!(empty_file_name("convoke/tests/common/mod.rs").is_some());
        assert!(empty_file_name("convoke/src/commonwealth.rs").is_none());
        let source = "mod queue;\nmod\n  misc;\n// mod utils\nlet helpers = 1;";
        assert_eq!(empty_module_names("a.rs", source).len(), 1);
    }

    #[test]
    fn old_words_are_found_in_names_and_prose_but_not_inside_of_others() {
        let old = OLD_WORDS[1].words[0];
        let source = format!("// The {old}.\nlet {old}_rings = Ring{}::new(\"{old}y\");", "Bell");
        assert_eq!(old_words("convoke/a.rs", &source).len(), 3);
        assert!(old_words(WORDS, &source).is_empty());
        assert_eq!(parts("RunLoop_a").collect::<Vec<_>>(), ["Run", "Loop", "a"]);
    }

    #[test]
    fn leftovers_are_found_in_code_and_comments_but_not_in_literals() {
        let marks = UNFINISHED_MARKS;
        let source = format!(
            "fn a() {{ {}!() }}\n// {}: later\n/// {}\nlet text = \"{} {}!()\";\nfn my_{}!() // {}X\n",
            UNFINISHED_MACROS[0],
            marks[0],
            marks[1],
            marks[0],
            UNFINISHED_MACROS[2],
            UNFINISHED_MACROS[2],
            marks[1]
        );
        let lines: Vec<_> =
            leftovers("a.rs", &source).iter().map(|finding| finding[..6].to_owned()).collect();
        assert_eq!(lines, ["a.rs:2", "a.rs:3", "a.rs:1"]);
    }

    #[test]
    fn only_absolute_paths_belong_to_a_machine() {
        for path in MACHINE_PATHS {
            assert_eq!(machine_paths("a", &format!("cd {path}x")).len(), 1, "{path}");
            assert_eq!(machine_paths("a", &format!("path=\"{path}x\"")).len(), 1, "{path}");
            assert!(machine_paths("a", &format!("https://example.org{path}x")).is_empty(), "{path}");
            assert!(machine_paths("a", &format!("docs{path}x")).is_empty(), "{path}");
        }
    }

    #[test]
    fn source_files_open_with_what_they_are() {
        assert!(missing_opening("convoke/src/a.rs", "//! This.\n").is_none());
        assert!(missing_opening("convoke/src/deep/a.rs", "use std;\n").is_some());
        assert!(missing_opening("convoke/tests/a.rs", "use std;\n").is_none());
    }
}
