//! The maps of the ledger. They count visited entries, for the test that measures the cost of a record.

use std::collections::BTreeMap;

use convoke_core::raw::visit_step;

/// A map that is accessed by key. Only a diagnosis iterates over it.
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

    /// Returns the value of this key, after inserting `make()` if there is none.
    pub(crate) fn get_or_make(&mut self, key: K, make: impl FnOnce() -> V) -> &mut V {
        visit_step();
        self.0.entry(key).or_insert_with(make)
    }

    /// Returns the entry with the smallest key that is not less than `key`.
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

    /// Iterates over all entries. Its cost grows with the map, so it must not be called for each record.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.0.iter().inspect(|_| visit_step())
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}
