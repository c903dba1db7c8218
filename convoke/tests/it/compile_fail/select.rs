//! Programs with a `select!` that must not compile, and the compiler's messages.

/// The words that each message must contain.
const WORDS: [(&str, &[&str]); 8] = [
    ("no_branch", &["`select!` needs a branch"]),
    ("biased", &["leave out `biased;`"]),
    ("else_branch", &["`select!` has no `else` branch"]),
    ("guard", &["`select!` has no guards", "forever().await"]),
    ("no_arrow", &["expected a branch of `select!`: `value = future => expression`"]),
    ("refutable_pattern", &["refutable pattern", "`None` not covered"]),
    ("not_a_future", &["`{integer}` is not a future"]),
    ("expressions_of_two_types", &["incompatible types", "expected integer, found `&str`"]),
];

#[test]
fn what_must_not_compile_says_why() {
    super::refuses_them_all("select");
}

#[test]
fn the_messages_say_what_to_do() {
    for (case, words) in WORDS {
        super::says("select", case, words);
    }
}
