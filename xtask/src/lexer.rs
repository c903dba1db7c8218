//! Tells code from comments from literals in Rust source, so that a rule about code is not tripped by prose.
//!
//! Not a parser and not even a full lexer: it knows exactly the places where a quote, a slash or a `#` changes what
//! the following letters are. Written out because the alternative is a dependency larger than the workshop.

use std::ops::Range;

/// Kind of a stretch of source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Code,
    /// Line and block comments, documentation among them.
    Comment,
    /// A string, raw string, byte string or character, with its quotes.
    Literal,
}

/// The source with everything but `kinds` turned into blanks. Lines stay where they are.
pub(crate) fn keep(source: &str, kinds: &[Kind]) -> String {
    let mut kept = String::with_capacity(source.len());
    for (kind, range) in spans(source) {
        let text = &source[range];
        if kinds.contains(&kind) {
            kept.push_str(text);
        } else {
            kept.extend(text.chars().map(|letter| if letter == '\n' { '\n' } else { ' ' }));
        }
    }
    kept
}

/// The words of a text with their line numbers, from 1. `r#unsafe` is one word, and it is not `unsafe`.
pub(crate) fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().flat_map(|(index, line)| words_of_line(line).map(move |word| (index + 1, word)))
}

fn words_of_line(line: &str) -> impl Iterator<Item = &str> {
    let mut rest = line;
    std::iter::from_fn(move || {
        rest = &rest[rest.find(in_word)?..];
        let mut end = word_end(rest, 0);
        if &rest[..end] == "r" && rest[end..].starts_with('#') && word_end(rest, end + 1) > end + 1 {
            end = word_end(rest, end + 1);
        }
        let (word, after) = rest.split_at(end);
        rest = after;
        Some(word)
    })
}

/// Cuts the source into stretches of one kind; together they are the whole of it.
fn spans(source: &str) -> Vec<(Kind, Range<usize>)> {
    let mut spans: Vec<(Kind, Range<usize>)> = Vec::new();
    let mut at = 0;
    while at < source.len() {
        let (kind, end) = next(source, at);
        match spans.last_mut() {
            Some((last, range)) if *last == kind && kind == Kind::Code => range.end = end,
            _ => spans.push((kind, at..end)),
        }
        at = end;
    }
    spans
}

/// Returns the kind of the stretch that begins at `at`, and its end.
fn next(source: &str, at: usize) -> (Kind, usize) {
    let rest = &source[at..];
    let first = rest.chars().next().unwrap_or(' ');
    if rest.starts_with("//") {
        return (Kind::Comment, at + rest.find('\n').unwrap_or(rest.len()));
    }
    if rest.starts_with("/*") {
        return (Kind::Comment, at + block_comment_end(rest));
    }
    match first {
        '"' => (Kind::Literal, at + quoted_end(rest, '"')),
        '\'' => match character_end(rest) {
            Some(end) => (Kind::Literal, at + end),
            // A lifetime or a label: its name is read as the next word.
            None => (Kind::Code, at + 1),
        },
        _ if in_word(first) => {
            let end = word_end(rest, 0);
            // A raw string is told from a raw identifier by the quote after its hashes; other prefixes (`b`, `c`)
            // are words before an ordinary quote.
            let raw = matches!(&rest[..end], "r" | "br" | "cr").then(|| raw_string_end(rest, end)).flatten();
            match raw {
                Some(end) => (Kind::Literal, at + end),
                None => (Kind::Code, at + end),
            }
        }
        _ => (Kind::Code, at + first.len_utf8()),
    }
}

/// Block comments nest.
fn block_comment_end(rest: &str) -> usize {
    let mut depth = 0;
    let mut at = 0;
    let bytes = rest.as_bytes();
    while at + 1 < bytes.len() {
        match &bytes[at..at + 2] {
            b"/*" => depth += 1,
            b"*/" => depth -= 1,
            _ => {
                at += 1;
                continue;
            }
        }
        at += 2;
        if depth == 0 {
            return at;
        }
    }
    rest.len()
}

/// The end of a literal that begins with `quote` and knows backslashes.
fn quoted_end(rest: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, letter) in rest.char_indices().skip(1) {
        match letter {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if letter == quote => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

/// `'a'` and `'\n'` are characters, `'a` is a lifetime: the difference is a closing quote after one letter.
fn character_end(rest: &str) -> Option<usize> {
    let inner = rest[1..].chars().next()?;
    if inner == '\\' {
        return Some(quoted_end(rest, '\''));
    }
    let close = 1 + inner.len_utf8();
    (inner != '\'' && rest[close..].starts_with('\'')).then_some(close + 1)
}

/// The end of a raw string whose prefix ends at `prefix`, or `None` if no quote follows the hashes.
fn raw_string_end(rest: &str, prefix: usize) -> Option<usize> {
    let after = &rest[prefix..];
    let hashes = after.len() - after.trim_start_matches('#').len();
    let body = after[hashes..].strip_prefix('"')?;
    let close = format!("\"{}", "#".repeat(hashes));
    let begin = rest.len() - body.len();
    Some(body.find(&close).map_or(rest.len(), |end| begin + end + close.len()))
}

fn in_word(letter: char) -> bool {
    letter == '_' || letter.is_alphanumeric()
}

fn word_end(text: &str, from: usize) -> usize {
    text[from..].find(|letter| !in_word(letter)).map_or(text.len(), |length| from + length)
}

/// The code before the module of unit tests.
pub(crate) fn before_tests(code: &str) -> &str {
    let tests = code.match_indices("#[cfg(").find(|(at, _)| {
        let mut lines = code[*at..].lines();
        let is_test = lines.next().is_some_and(|line| words(line).any(|(_, word)| word == "test"));
        is_test && lines.next().is_some_and(|line| line.starts_with("mod "))
    });
    tests.map_or(code, |(at, _)| &code[..at])
}

/// The first word of each element of a list that ends with its closing brace.
pub(crate) fn first_words(list: &str) -> Vec<&str> {
    let (mut depth, mut begin, mut elements) = (0, 0, Vec::new());
    for (at, letter) in list.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' if depth == 0 => {
                elements.push(&list[begin..at]);
                break;
            }
            '}' => depth -= 1,
            ',' if depth == 0 => {
                elements.push(&list[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    elements.into_iter().filter_map(|element| words(element).next().map(|(_, word)| word)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code_words(source: &str) -> Vec<&str> {
        let mut found = Vec::new();
        for (kind, range) in spans(source) {
            if kind == Kind::Code {
                found.extend(words(&source[range]).map(|(_, word)| word));
            }
        }
        found
    }

    #[test]
    fn nothing_is_lost_and_lines_stay() {
        let source = "fn a() {} // é\n/* b\nc */ \"d\ne\" 'f' r#\"g\n\"# 'h: loop {}\n";
        let joined: String = spans(source).into_iter().map(|(_, range)| &source[range]).collect();
        assert_eq!(joined, source);
        let kept = keep(source, &[Kind::Code]);
        assert_eq!(kept.lines().count(), source.lines().count());
        assert_eq!(kept.split_whitespace().collect::<String>(), "fna(){}'h:loop{}");
    }

    #[test]
    fn the_keyword_is_seen_in_code() {
        for source in
            ["unsafe { f() }", "pub unsafe fn f()", "#[unsafe(no_mangle)]", "unsafe impl Send for A {}"]
        {
            assert!(code_words(source).contains(&"unsafe"), "{source}");
        }
    }

    #[test]
    fn the_keyword_is_not_seen_elsewhere() {
        let sources = [
            "// unsafe",
            "/// unsafe { f() }",
            "/* /* unsafe */ unsafe */",
            r#""unsafe""#,
            r#""\" unsafe""#,
            r#"b"unsafe""#,
            r##"r"unsafe""##,
            r###"r#"unsafe " unsafe"#"###,
            r###"br#"unsafe"#"###,
            r###"cr#"unsafe"#"###,
            "#![forbid(unsafe_code)]",
            "#![deny(unsafe_op_in_unsafe_fn, clippy::undocumented_unsafe_blocks)]",
            "let r#unsafe = 1;",
        ];
        for source in sources {
            assert!(!code_words(source).contains(&"unsafe"), "{source}");
        }
    }

    #[test]
    fn code_after_a_tricky_literal_is_code_again() {
        let sources = [
            r#"'"' unsafe"#,
            r"'\'' unsafe",
            r"'\\' unsafe",
            r"b'\'' unsafe",
            r#"'\u{22}' unsafe"#,
            r#"'é' unsafe"#,
            r#""\\" unsafe"#,
            r###"r#"\"# unsafe"###,
            r##"r"\" unsafe"##,
            "fn f<'a>(x: &'a str) { unsafe",
            "fn f<'r>(x: &'r str, y: &'b u8) { unsafe",
            "'outer: loop { unsafe",
            "/* */ unsafe",
            "/**/ unsafe",
            "// one line\nunsafe",
            "1 / 2; unsafe",
            r#"let bar = 1; "x"; unsafe"#,
        ];
        for source in sources {
            assert!(code_words(source).contains(&"unsafe"), "{source}");
        }
    }

    #[test]
    fn source_that_ends_in_the_middle_is_no_panic() {
        for source in ["\"abc", "/* abc", "'", "'\\", "r#\"abc", "r#", "//", "/"] {
            let length: usize = spans(source).iter().map(|(_, range)| range.len()).sum();
            assert_eq!(length, source.len(), "{source}");
        }
    }

    #[test]
    fn words_know_their_lines() {
        let found: Vec<_> = words("mod a;\nlet r#mod = b1;").collect();
        assert_eq!(found, [(1, "mod"), (1, "a"), (2, "let"), (2, "r#mod"), (2, "b1")]);
    }
}
