//! The maps of the ledger. They count what is visited in them, for the test of what a note costs.

use std::collections::BTreeMap;

use convoke_core::raw::visit_step;

/// A map that is asked for keys, and is gone through only by who diagnoses.
#[derive(Debug)]
pub(crate) struct Table<K, V>(BTreeMap<K, V>);

impl<K: Ord, V> Table<K, V> {
    pub(crate) const fn new() -> Self {
        Self(BTreeMap::new())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn get(&self, key: &K) -> Option<&V> {
        visit_step();
        self.0.get(key)
    }

    pub(crate) fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        visit_step();
        self.0.get_mut(key)
    }

    /// The value of this key, made by `make` if there is none.
    pub(crate) fn get_or_make(&mut self, key: K, make: impl FnOnce() -> V) -> &mut V {
        visit_step();
        self.0.entry(key).or_insert_with(make)
    }

    /// The first with a key that is not before this one.
    pub(crate) fn first_from(&self, key: K) -> Option<(&K, &V)> {
        visit_step();
        self.0.range(key..).next()
    }

    pub(crate) fn insert(&mut self, key: K, value: V) -> Option<V> {
        visit_step();
        self.0.insert(key, value)
    }

    pub(crate) fn remove(&mut self, key: &K) -> Option<V> {
        visit_step();
        self.0.remove(key)
    }

    /// All of them: not for each note.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.0.iter().inspect(|_| visit_step())
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}
