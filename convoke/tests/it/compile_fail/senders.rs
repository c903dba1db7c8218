//! Programs that must not compile, and the compiler's messages.

/// The maximum length of the message for a wrong closure, an everyday mistake.
const LINES: usize = 15;

/// The words that each of these messages must contain.
const BRIEF: [(&str, &[&str]); 5] = [
    ("then_wrong_argument", &["then", "String", "{integer}"]),
    ("then_wrong_arity", &["then", "argument"]),
    ("let_value_plain_value", &["is not a sender", "just(value)"]),
    ("let_value_wrong_argument", &["let_value", "String"]),
    ("map_error_wrong_argument", &["map_error", "u32", "&str"]),
];

#[test]
fn what_must_not_compile_says_why() {
    super::refuses_them_all("sender");
}

#[test]
fn a_wrong_closure_is_explained_in_few_lines() {
    for (case, words) in BRIEF {
        let message = super::says("sender", case, words);
        let lines = message.trim_end().lines().count();
        assert!(lines <= LINES, "{case}: {lines} lines\n{message}");
    }
}

#[test]
fn a_future_in_place_of_a_sender_is_told_how_to_become_one() {
    super::says(
        "sender",
        "sync_wait_of_a_future",
        &["is not a sender", "`task(future)`", "`block_on(future)`"],
    );
}
