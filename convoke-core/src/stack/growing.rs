//! Calls that continue on a new stack when a part of the old one is used.

use core::cell::Cell;

use corosensei::on_stack;
use corosensei::stack::{DefaultStack, Stack};

/// The bytes of a stack that are used before the next call goes to a new one. A quarter of what a thread usually has:
/// the rest is for what the innermost future calls.
const USED: usize = 512 * 1024;

/// The bytes of a new stack. Only those that are touched take memory.
const SIZE: usize = 4 * USED;

/// A distance that no call bridges: further down is another stack.
const FAR: usize = 64 * 1024 * 1024;

thread_local! {
    /// The address below which calls on this thread go to a new stack. The first one determines it: it is below the highest
    /// address.
    static FLOOR: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// Sets a floor again when the call has returned or panicked.
struct Restore(usize);

impl Drop for Restore {
    fn drop(&mut self) {
        FLOOR.set(self.0);
    }
}

/// Calls `f`: on this stack, or on a new one if a part of this one is used (feature `deep`). For destructors and polls that
/// may contain others like themselves.
#[inline(always)]
pub fn with_room<R>(f: impl FnOnce() -> R) -> R {
    if has_room() { f() } else { on_new_stack(f) }
}

/// Calls `f` as [`with_room`] does, without type parameters: see [`Panic::catch_call`](crate::Panic::catch_call).
#[inline(always)]
pub(crate) fn call_with_room(f: &mut dyn FnMut()) {
    if has_room() { f() } else { call_on_new_stack(f) }
}

#[inline(always)]
fn has_room() -> bool {
    address() >= FLOOR.get()
}

/// Returns an address in the caller's frame.
#[inline(always)]
fn address() -> usize {
    let here = 0_u8;
    (&raw const here).addr()
}

#[cold]
#[inline(never)]
fn on_new_stack<R>(f: impl FnOnce() -> R) -> R {
    let (mut f, mut result) = (Some(f), None);
    call_on_new_stack(&mut || result = f.take().map(|f| f()));
    let Some(result) = result else { unreachable!("it is called once, or has panicked") };
    result
}

#[cold]
#[inline(never)]
fn call_on_new_stack(f: &mut dyn FnMut()) {
    let (here, floor) = (address(), FLOOR.get());
    if floor.abs_diff(here) > FAR {
        // The first call on this thread, or on this stack: a program may switch stacks, too.
        FLOOR.set(here.saturating_sub(USED));
        return f();
    }
    match DefaultStack::new(SIZE) {
        Ok(stack) => {
            let _restore = Restore(floor);
            FLOOR.set(stack.base().get() - USED);
            on_stack(stack, f);
        }
        // There is no memory left. Most of this stack still is.
        Err(_) => f(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Calls itself that many times, with a frame of some kilobytes, and then `deepest`.
    fn nested(levels: usize, deepest: fn() -> usize) -> usize {
        let frame = core::hint::black_box([levels; 512]);
        match levels {
            0 => deepest(),
            _ => with_room(|| nested(levels - 1, deepest)) + frame[511] - levels + 1,
        }
    }

    fn on_a_small_stack<R: Send + 'static>(
        test: impl FnOnce() -> R + Send + 'static,
    ) -> std::thread::Result<R> {
        std::thread::Builder::new().stack_size(2 << 20).spawn(test).unwrap().join()
    }

    #[test]
    fn calls_of_any_depth_end() {
        // Forty megabytes of frames.
        assert_eq!(on_a_small_stack(|| nested(10_000, || 0)).unwrap(), 10_000);
    }

    #[test]
    fn a_panic_comes_up_through_all_stacks_and_the_first_one_is_used_again() {
        on_a_small_stack(|| {
            with_room(|| ());
            let before = FLOOR.get();
            let panic =
                std::panic::catch_unwind(|| nested(10_000, || std::panic::panic_any("deep"))).unwrap_err();
            assert_eq!(panic.downcast_ref(), Some(&"deep"));
            assert_eq!(FLOOR.get(), before);
            assert!(has_room());
        })
        .unwrap();
    }
}
