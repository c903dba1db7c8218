//! The attributes `#[convoke::main]` and `#[convoke::test]`. They split an `async fn` by hand, just far
//! enough to wrap it: two attributes do not justify a full Rust parser as a build dependency of every user.
//!
//! `expand` parses the function (`function`) and the options (`options`), and generates a plain `fn` that
//! calls a builder in `convoke::runtime`. An error becomes a `compile_error!` at the token that caused it.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod function;
mod options;

use proc_macro::TokenStream;

use function::Function;
use options::Options;

/// Makes an `async fn main` the entry point of the program. It runs on a
/// [`Runtime`](../convoke/runtime/struct.Runtime.html), and reaches it with
/// [`runtime::current`](../convoke/runtime/fn.current.html). SIGINT and SIGTERM stop it, and its clean-up runs.
/// [`Main`](../convoke/runtime/struct.Main.html) is the same without the attribute, also with options that are
/// not numbers.
///
/// | option | meaning |
/// | --- | --- |
/// | `contexts = 2` | the number of I/O contexts, each with a thread; default: the number of cores |
/// | `pool_threads = 4` | the number of threads of the pool (feature `pool`); default: the number of cores |
/// | `blocking_threads = 64` | the maximum number of threads for blocking work; default: 512 |
/// | `spin_micros = 0` | how long a context polls for events before it sleeps; default: 50 |
/// | `grace_seconds = 10` | the time for clean-up after a signal, before the process is ended; default: 30 |
#[proc_macro_attribute]
pub fn main(options: TokenStream, item: TokenStream) -> TokenStream {
    expand(options, item, Attribute::Main)
}

/// Makes an `async fn` a test. It runs on an I/O context of its own, and everything that it starts must have
/// ended when it returns.
///
/// | option | meaning |
/// | --- | --- |
/// | `virtual_time` | time jumps to the next timer when everything is idle; there is no real I/O |
/// | `sim` | a simulated network and virtual time; the body runs on the host `test` |
/// | `seed = 7` | a simulation with this seed; default: the value of `CONVOKE_SEED`, or 0 |
/// | `seeds = 100` | one simulation for each seed below this; if `CONVOKE_SEED` is set, only that one |
#[proc_macro_attribute]
pub fn test(options: TokenStream, item: TokenStream) -> TokenStream {
    expand(options, item, Attribute::Test)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Attribute {
    Main,
    Test,
}

fn expand(options: TokenStream, item: TokenStream, attribute: Attribute) -> TokenStream {
    let expanded = Function::parse(item, attribute)
        .and_then(|function| Ok(function.wrap(&Options::parse(options, attribute)?, attribute)));
    expanded.unwrap_or_else(|problem| {
        let mut tokens = problem.into_tokens();
        // Without a `main` the compiler would report a second error.
        if attribute == Attribute::Main {
            tokens.extend("fn main() {}".parse::<TokenStream>().expect("an empty function is valid Rust"));
        }
        tokens
    })
}

/// An error message and its location.
struct Problem {
    message: String,
    span: proc_macro::Span,
}

impl Problem {
    fn new(span: proc_macro::Span, message: impl Into<String>) -> Self {
        Self { message: message.into(), span }
    }

    fn into_tokens(self) -> TokenStream {
        let text = format!("::core::compile_error!({:?});", self.message);
        let tokens: TokenStream = text.parse().expect("a macro call is valid Rust");
        tokens.into_iter().map(|token| with_span(token, self.span)).collect()
    }
}

/// Sets the span of a token and of all tokens in it.
fn with_span(mut token: proc_macro::TokenTree, span: proc_macro::Span) -> proc_macro::TokenTree {
    if let proc_macro::TokenTree::Group(group) = &token {
        let inner = group.stream().into_iter().map(|token| with_span(token, span)).collect();
        token = proc_macro::Group::new(group.delimiter(), inner).into();
    }
    token.set_span(span);
    token
}
