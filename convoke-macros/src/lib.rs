//! The attributes `#[convoke::main]` and `#[convoke::test]`. They take an `async fn` apart just far enough to wrap it, by hand:
//! two attributes are not worth a parser of all Rust to everybody who builds this.

mod function;
mod options;

use proc_macro::TokenStream;

use function::Function;
use options::Options;

/// Makes an `async fn main` the program: it runs on a [`Runtime`](../convoke/runtime/struct.Runtime.html), and SIGINT and SIGTERM ask
/// it to stop, with all its clean-up.
///
/// | option | meaning |
/// | --- | --- |
/// | `contexts = 2` | how many I/O contexts, each with a thread; as many as there are cores, if nothing is said |
/// | `pool = 4` | how many threads the pool has; as many as there are cores |
/// | `grace_seconds = 10` | how long clean-up may take after a signal, before the program ends hard; 30 |
#[proc_macro_attribute]
pub fn main(options: TokenStream, item: TokenStream) -> TokenStream {
    expand(options, item, Attribute::Main)
}

/// Makes an `async fn` a test. It runs on an I/O context of its own, and all that it has started must have ended.
///
/// | option | meaning |
/// | --- | --- |
/// | `virtual_time` | time jumps to the next timer when all is idle, and there is no real I/O |
/// | `sim` | a simulated network and virtual time: the body runs on the host `test` |
/// | `seed = 7` | the same with this seed; without it the seed is the one in `CONVOKE_SEED`, or 0 |
/// | `seeds = 100` | the same once for each seed below this; only for that in `CONVOKE_SEED`, if there is one |
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
        // A program without a `main` would be a second complaint.
        if attribute == Attribute::Main {
            tokens.extend("fn main() {}".parse::<TokenStream>().expect("a function is Rust"));
        }
        tokens
    })
}

/// What is wrong, and where.
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
        let tokens: TokenStream = text.parse().expect("a macro call is Rust");
        tokens.into_iter().map(|token| at(token, self.span)).collect()
    }
}

/// The token at another place, with all that is in it.
fn at(mut token: proc_macro::TokenTree, span: proc_macro::Span) -> proc_macro::TokenTree {
    if let proc_macro::TokenTree::Group(group) = &token {
        let inner = group.stream().into_iter().map(|token| at(token, span)).collect();
        token = proc_macro::Group::new(group.delimiter(), inner).into();
    }
    token.set_span(span);
    token
}
