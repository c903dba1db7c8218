//! Programs that must not compile, and the compiler's messages.

/// Words that the message of each program contains.
const WORDS: [(&str, &[&str]); 18] = [
    ("using_what_cannot_be_closed", &["`Plain` cannot be closed by awaiting", "ensure(async |exit|"]),
    ("close_error_has_nowhere_to_go", &["does not fit a body that returns `Count`", "Ok(value)", "From<"]),
    (
        "body_that_may_or_may_not_fail",
        &["the body returns `Summary`", "`impl BodyOutput for Summary {}`", "add the bound `BodyOutput`"],
    ),
    ("close_not_send", &["cannot be sent between threads safely"]),
    ("blocking_handle_leaves", &["lifetime may not live long enough"]),
    ("blocking_scope_borrows_the_body", &["may outlive borrowed value `inside`"]),
    ("spawn_a_value", &["cannot complete with a `u32`", ".then(drop)", "spawn_future"]),
    ("spawn_an_error", &["cannot fail with an error of type `ParseIntError`", "upon_error", "spawn_future"]),
    ("spawn_a_borrow", &["may outlive the current function", "`move` keyword"]),
    ("shared_guard_of_a_cell", &["`Cell<i32>` cannot be shared between threads safely"]),
    ("spawn_future_not_send", &["cannot be sent between threads safely"]),
    ("built_child_that_is_not_send", &["future created by async block is not `Send`", "Rc<i32>"]),
    ("built_child_that_returns_a_value", &["does not fit a scope that returns", "spawn_future"]),
    (
        "restarted_child_without_a_closure",
        &["expected a `FnMut()` closure", "in a closure with no arguments"],
    ),
    ("child_that_borrows", &["`local_scope` has children that borrow", "use the `move` keyword"]),
    (
        "race_of_two_types",
        &["all have the same type of value", "`select!` takes branches of different types"],
    ),
    ("forgotten_await", &["a sleep does nothing until it is awaited"]),
    ("unused_handle", &["dropping the handle stops the child, and so does `let _ =`", "no child is started"]),
];

#[test]
fn what_must_not_compile_says_why() {
    super::refuses_them_all("task");
}

#[test]
fn the_messages_say_what_to_do() {
    for (case, words) in WORDS {
        super::says("task", case, words);
    }
}
