//! The sender algebra: one file per algorithm, each with its sender, its receiver or operation, and its
//! tests.
//!
//! The operation of an algorithm contains the operations of its children. `start` connects and starts the
//! children. Each child completes a receiver that points back to the operation, on any thread. The receiver
//! stores the outcome, and the operation continues with it when it is the only user of its state: after the
//! child has ended, or, with several children, in the one that arrives last. The last act of an operation is
//! to complete its own receiver. Every file numbers the rules of who may touch which field at its operation.
//!
//! One sender type makes a family of adaptors. An adaptor is a type alias of it, with a parameter that says
//! what differs, in safe code:
//!
//! | family | sender, and its parameter |
//! | --- | --- |
//! | `then` `map_error` `upon_error` `upon_stopped` `into_result` `transpose` `stopped_as_option` `stopped_as_error` `materialize` `dematerialize` | [`Transformed`](transform::Transformed): a function of [`Outcome`](convoke_core::Outcome) |
//! | `let_value` `let_error` `let_stopped` `defer` `sequence` `fork_join` `starts_on` `finally` `within` `let_with` | [`Sequenced`](continuation::Sequenced): one sender, and the decision what follows |
//! | `repeat_until` `repeat_n` `retry_sender` | [`InRounds`](rounds::InRounds): a maker and judge of rounds |
//! | `continues_on` `on` `affine_on` | [`Hopped`](hop::Hopped): a destination |
//! | `with_env` `write_env` `unstoppable` `let_with_stop_source` `deadline_at` `deadline_after` | [`InScope`](scoped::InScope): work, and changes of its environment |
//! | `when_all` `when_any` `stop_when` | [`gather`]: several children at once |
//! | `just` `just_error` `just_stopped` `just_from` `read_env` | [`raw::Leaf`](crate::raw::Leaf) |
//! | `schedule` `from_callback` `never` `split` `bulk` `boxed` `either` | operations of their own |
//!
//! Sequenced, rounds, hops and scopes are [`raw::Serial`](crate::raw::Serial) operations: one user at a time.

pub mod affine_on;
pub mod boxed;
pub mod bulk;
mod bulk_share;
pub mod continuation;
pub mod continues_on;
pub mod defer;
pub mod dematerialize;
pub mod either;
pub mod finally;
pub mod fork_join;
pub mod from_callback;
pub mod gather;
pub mod hop;
pub mod into_result;
pub mod just;
pub mod just_error;
pub mod just_from;
pub mod just_stopped;
pub mod let_error;
pub mod let_stopped;
pub mod let_value;
pub mod let_with;
pub mod let_with_stop_source;
pub mod map_error;
pub mod materialize;
pub mod never;
pub mod on;
pub mod read_env;
pub mod repeat_n;
pub mod repeat_until;
pub mod retry_sender;
pub mod rounds;
pub mod schedule;
pub mod scoped;
pub mod sequence;
pub mod split;
mod split_list;
mod split_state;
pub mod starts_on;
pub mod stop_when;
pub mod stopped_as_error;
pub mod stopped_as_option;
pub mod then;
pub mod transform;
pub mod transpose;
pub mod unstoppable;
pub mod upon_error;
pub mod upon_stopped;
pub mod when_all;
mod when_all_vec;
pub mod when_any;
pub mod with_env;
pub mod within;
pub mod write_env;

#[cfg(test)]
mod tests {
    use crate::Completes::{Anywhere, Here, Inline};
    use crate::prelude::*;
    use crate::testing::{ByHand, completes_of};
    use convoke_core::env::Changes;

    #[test]
    fn combined_work_knows_where_it_completes_as_well_as_its_least_known_part() {
        let inline = || just(1);
        let elsewhere = || schedule(&ByHand::new()).then(|()| 1);
        let here = || inline().on(&ByHand::new());
        assert_eq!(
            [completes_of(&inline()), completes_of(&here()), completes_of(&elsewhere())],
            [Inline, Here, Anywhere]
        );

        assert_eq!(completes_of(&here().materialize().dematerialize().into_result().transpose()), Here);
        assert_eq!(
            completes_of(&here().may_fail().stopped_as_error(0).upon_error(|_| 0).upon_stopped(|| 0)),
            Here
        );
        assert_eq!(completes_of(&here().stopped_as_option().unstoppable()), Here);
        assert_eq!(completes_of(&defer(here)), Here);
        assert_eq!(completes_of(&let_with_stop_source(|_| here())), Here);
        assert_eq!(completes_of(&let_with(|| 0, |_| here())), Here);

        assert_eq!(completes_of(&inline().finally(just(()))), Inline);
        assert_eq!(completes_of(&inline().finally(here().then(drop))), Here);
        assert_eq!(completes_of(&within(inline(), |_| inline(), |_| just(()))), Inline);
        assert_eq!(completes_of(&within(here(), |_| inline(), |_| just(()))), Here);
        assert_eq!(completes_of(&within(inline(), |_| here(), |_| just(()))), Here);
        assert_eq!(completes_of(&within(inline(), |_| inline(), |_| here().then(drop))), Here);

        assert_eq!(completes_of(&inline().with_env(|_| Changes::new())), Inline);
        assert_eq!(completes_of(&here().with_env(|_| Changes::new())), Anywhere);
        assert_eq!(completes_of(&inline().starts_on(&ByHand::new())), Anywhere);
        assert_eq!(completes_of(&inline().continues_on(&ByHand::new())), Anywhere);
        assert_eq!(completes_of(&inline().affine_on(&ByHand::new())), Anywhere);
        assert_eq!(completes_of(&from_callback(|_: Completion<i32>| ())), Anywhere);
    }
}
