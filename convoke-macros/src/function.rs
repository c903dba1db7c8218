//! `Function`: the function below an attribute, split into the tokens before `async`, the signature and the
//! body.

use proc_macro::{Delimiter, Group, Span, TokenStream, TokenTree};

use crate::options::Options;
use crate::{Attribute, Problem};

pub(crate) struct Function {
    /// Attributes and visibility.
    before: TokenStream,
    /// `fn name() -> Type`.
    signature: TokenStream,
    name: String,
    body: Group,
}

impl Function {
    pub(crate) fn parse(item: TokenStream, attribute: Attribute) -> Result<Self, Problem> {
        let tokens: Vec<TokenTree> = item.into_iter().collect();
        let Some(at_fn) = tokens.iter().position(|token| is_keyword(token, "fn")) else {
            return Err(Problem::new(Span::call_site(), "this attribute is for an `async fn`"));
        };
        let Some(at_async) = tokens[..at_fn].iter().position(|token| is_keyword(token, "async")) else {
            let message = "the function must be `async`: write `async fn`";
            return Err(Problem::new(tokens[at_fn].span(), message));
        };
        let name = tokens.get(at_fn + 1).map(ToString::to_string).unwrap_or_default();
        match tokens.get(at_fn + 2) {
            Some(TokenTree::Group(arguments)) if arguments.delimiter() == Delimiter::Parenthesis => {
                if !arguments.stream().is_empty() {
                    let what = if attribute == Attribute::Main { "the program" } else { "a test" };
                    let message = format!("{what} takes no arguments");
                    return Err(Problem::new(arguments.span(), message));
                }
            }
            Some(other) => return Err(Problem::new(other.span(), "the function must not be generic")),
            None => return Err(Problem::new(tokens[at_fn].span(), "the function has no name")),
        }
        let Some((TokenTree::Group(body), signature)) = tokens[at_async + 1..].split_last() else {
            return Err(Problem::new(tokens[at_fn].span(), "the function has no body"));
        };
        Ok(Self {
            before: tokens[..at_async].iter().cloned().collect(),
            signature: signature.iter().cloned().collect(),
            name,
            body: body.clone(),
        })
    }

    /// Creates a function without `async` that runs this one.
    pub(crate) fn wrap(&self, options: &Options, attribute: Attribute) -> TokenStream {
        let name = &self.name;
        let (mark, entry) = match attribute {
            Attribute::Main => ("", "Main::new()".to_owned()),
            Attribute::Test => {
                let path = format!("::core::concat!(::core::module_path!(), \"::{name}\")");
                ("#[::core::prelude::v1::test]", format!("Test::new({path})"))
            }
        };
        let call = format!("::convoke::runtime::{entry}{}.run({name})", options.as_calls());
        let call = options.with_features(call);
        let mut inner = tokens_of("async");
        inner.extend(self.signature.clone());
        inner.extend([TokenTree::Group(self.body.clone())]);
        inner.extend(tokens_of(&call));
        let mut outer = tokens_of(mark);
        outer.extend(self.before.clone());
        outer.extend(self.signature.clone());
        outer.extend([TokenTree::Group(Group::new(Delimiter::Brace, inner))]);
        outer
    }
}

fn is_keyword(token: &TokenTree, word: &str) -> bool {
    matches!(token, TokenTree::Ident(ident) if ident.to_string() == word)
}

fn tokens_of(text: &str) -> TokenStream {
    text.parse().expect("generated code is valid Rust")
}
