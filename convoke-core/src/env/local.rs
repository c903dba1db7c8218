//! Typed keys and their values: what else a program wants to pass down to its work.

use core::any::Any;
use core::fmt;
use core::marker::PhantomData;
use core::ptr;

use crate::Panic;
use crate::frames::FrameAllocator;
use crate::frames::frame_arc::FrameArc;
use crate::frames::frame_box::FrameBox;
use crate::unsize_box;

/// A key for a value in the environment. It is a `static`; its address is its identity.
///
/// ```
/// use convoke::env::Local;
///
/// // Inherited: all work below sees it.
/// static TENANT: Local<String> = Local::inherited("tenant");
/// // Not inherited: only the work that it was set for sees it.
/// static RETRY: Local<u32> = Local::not_inherited("retry");
/// ```
#[doc(alias = "task_local")]
pub struct Local<T> {
    name: &'static str,
    inherited: bool,
    _value: PhantomData<fn() -> T>,
}

impl<T> Local<T> {
    /// Creates a key whose value is inherited by work that is started below.
    pub const fn inherited(name: &'static str) -> Self {
        Self { name, inherited: true, _value: PhantomData }
    }

    /// Creates a key whose value stays with the work it was set for, and is not seen by tasks that are
    /// started below.
    pub const fn not_inherited(name: &'static str) -> Self {
        Self { name, inherited: false, _value: PhantomData }
    }

    /// Returns the name, which is only shown.
    pub const fn name(&self) -> &'static str {
        self.name
    }
}

impl<T> fmt::Debug for Local<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Local").field("name", &self.name).field("inherited", &self.inherited).finish()
    }
}

/// The values of an environment: a list that shares its tail with the parent's.
#[derive(Clone)]
pub(super) struct Locals {
    newest: Option<FrameArc<Node>>,
    /// The address of the first node that belongs to the parent, or 0. From there on keys that are not
    /// inherited are skipped.
    border: usize,
}

struct Node {
    name: &'static str,
    /// The address of the key, which is its identity.
    key: usize,
    /// Set until the node is dropped.
    value: Option<AnyValue>,
    older: Option<FrameArc<Node>>,
}

type AnyValue = FrameBox<dyn Any + Send + Sync>;

/// Drops the value, and the older ones in a loop: there may be more of them than the stack is deep. A panic of a value is
/// contained: the last handle of an environment is dropped by a task that has ended, or by an operation that has
/// completed, and whatever waits for them must be told.
impl Drop for Node {
    fn drop(&mut self) {
        let (name, value) = (self.name, self.value.take());
        if let Err(panic) = Panic::catch(|| drop(value)) {
            // Standard error may be closed.
            let _ = Panic::catch(|| {
                eprintln!("convoke: the value of the local `{name}` {panic} when it was dropped");
            });
        }
        let mut next = self.older.take();
        while let Some(mut node) = next.and_then(FrameArc::into_inner) {
            next = node.older.take();
        }
    }
}

impl Locals {
    pub(super) const EMPTY: Self = Self { newest: None, border: 0 };

    pub(super) fn get<T: Send + Sync + 'static>(&self, key: &'static Local<T>) -> Option<&T> {
        let mut own = true;
        let mut next = &self.newest;
        while let Some(node) = next {
            own &= FrameArc::as_raw(node).addr().get() != self.border;
            if node.key == ptr::from_ref(key).addr() && (own || key.inherited) {
                return node.value.as_ref()?.downcast_ref();
            }
            next = &node.older;
        }
        None
    }

    /// Sets the value of a key, in memory of this allocator.
    pub(super) fn set<T: Send + Sync + 'static>(
        &mut self,
        allocator: &FrameAllocator,
        key: &'static Local<T>,
        value: T,
    ) {
        let value = FrameBox::new_in(allocator.clone(), value);
        let value: AnyValue = unsize_box!(value, dyn Any + Send + Sync);
        self.push(allocator, key.name, ptr::from_ref(key).addr(), value);
    }

    /// Adds a value. Not generic, so that it is compiled once.
    fn push(&mut self, allocator: &FrameAllocator, name: &'static str, key: usize, value: AnyValue) {
        let older = self.newest.take();
        self.newest = Some(FrameArc::new_in(allocator, Node { name, key, value: Some(value), older }));
    }

    /// Puts values that no other list shares before those of this one.
    pub(super) fn put_on_top(&mut self, mut values: Self) {
        let mut last = &mut values.newest;
        while let Some(node) = last {
            last = &mut FrameArc::get_mut(node).expect("a list of changes is not shared").older;
        }
        *last = self.newest.take();
        self.newest = values.newest;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.newest.is_none()
    }

    pub(super) fn child(&self) -> Self {
        let border = self.newest.as_ref().map_or(0, |node| FrameArc::as_raw(node).addr().get());
        Self { newest: self.newest.clone(), border }
    }
}

impl fmt::Debug for Locals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut list = f.debug_list();
        let mut next = &self.newest;
        while let Some(node) = next {
            list.entry(&node.name);
            next = &node.older;
        }
        list.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Env;
    use crate::env::Changes;

    static INHERITED: Local<u32> = Local::inherited("inherited");
    static OWN: Local<u32> = Local::not_inherited("own");

    #[test]
    fn the_nearest_value_wins_and_the_parent_keeps_its_own() {
        let parent = Env::new().with(Changes::new().local(&INHERITED, 1));
        let below = parent.with(Changes::new().local(&INHERITED, 2));
        assert_eq!((parent.local(&INHERITED), below.local(&INHERITED)), (Some(&1), Some(&2)));
        assert_eq!(Env::new().local(&INHERITED), None);
    }

    #[test]
    fn a_key_decides_whether_it_is_inherited() {
        let parent = Env::new().with(Changes::new().local(&INHERITED, 1).local(&OWN, 2));
        let child = parent.child();
        assert_eq!((child.local(&INHERITED), child.local(&OWN)), (Some(&1), None));
        let own = child.with(Changes::new().local(&OWN, 3));
        assert_eq!(own.local(&OWN), Some(&3));
        assert_eq!(own.child().child().local(&INHERITED), Some(&1));
        assert_eq!(own.child().local(&OWN), None);
    }
}
