//! `Options`: the arguments of an attribute, which are words and words with a number.

use proc_macro::{TokenStream, TokenTree};

use crate::{Attribute, Problem};

/// The options of `#[convoke::main]`, and whether each takes a number.
const MAIN_OPTIONS: &[(&str, bool)] = &[
    ("contexts", true),
    ("pool_threads", true),
    ("blocking_threads", true),
    ("spin_micros", true),
    ("grace_seconds", true),
];
/// The options of `#[convoke::test]`, and whether each takes a number.
const TEST_OPTIONS: &[(&str, bool)] =
    &[("virtual_time", false), ("sim", false), ("seed", true), ("seeds", true)];
/// The options that need a feature of `convoke`, and the macro of `convoke` that names it if it is off.
const NEEDS_FEATURE: &[(&str, &str)] = &[
    ("pool_threads", "with_feature_pool"),
    ("virtual_time", "with_feature_testing"),
    ("sim", "with_feature_sim"),
    ("seed", "with_feature_sim"),
    ("seeds", "with_feature_sim"),
];

pub(crate) struct Options(Vec<(String, Option<String>)>);

impl Options {
    pub(crate) fn parse(tokens: TokenStream, attribute: Attribute) -> Result<Self, Problem> {
        let known = if attribute == Attribute::Main { MAIN_OPTIONS } else { TEST_OPTIONS };
        let mut options = Vec::new();
        let mut tokens = tokens.into_iter().peekable();
        while let Some(token) = tokens.next() {
            let name = token.to_string();
            let Some((_, has_number)) = known.iter().find(|(known, _)| *known == name) else {
                let names: Vec<_> = known.iter().map(|(name, _)| *name).collect();
                let message = format!("there is no option `{name}`: the options are {}", names.join(", "));
                return Err(Problem::new(token.span(), message));
            };
            let number = if *has_number {
                let equals = tokens.next();
                let number = tokens.next();
                match (equals, number) {
                    (Some(TokenTree::Punct(equals)), Some(TokenTree::Literal(number)))
                        if equals.as_char() == '=' && number.to_string().parse::<u64>().is_ok() =>
                    {
                        Some(number.to_string())
                    }
                    _ => {
                        return Err(Problem::new(
                            token.span(),
                            format!("`{name}` needs a number: `{name} = 2`"),
                        ));
                    }
                }
            } else {
                None
            };
            options.push((name, number));
            match tokens.next() {
                None => break,
                Some(TokenTree::Punct(comma)) if comma.as_char() == ',' => {}
                Some(other) => return Err(Problem::new(other.span(), "expected a comma between options")),
            }
        }
        Ok(Self(options))
    }

    /// Wraps an expression so that it compiles only if the features that the options need are on. Without that, the user
    /// would be told of a missing method.
    pub(crate) fn with_features(&self, expression: String) -> String {
        let needed = |(option, _): &&(&str, &str)| self.0.iter().any(|(name, _)| name == option);
        let mut macros: Vec<_> = NEEDS_FEATURE.iter().filter(needed).map(|(_, wraps)| wraps).collect();
        macros.dedup();
        macros.into_iter().fold(expression, |inner, wraps| format!("::convoke::{wraps}! {{ {inner} }}"))
    }

    /// Formats the options as calls of a builder's methods.
    pub(crate) fn as_calls(&self) -> String {
        self.0
            .iter()
            .map(|(name, number)| format!(".{name}({})", number.as_deref().unwrap_or_default()))
            .collect()
    }
}
