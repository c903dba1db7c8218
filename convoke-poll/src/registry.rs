//! Which source an event is for: the kernel is given a number when a source is registered, and says it with each event.
//!
//! A number is used again when its source has gone. An event that was under way then reaches the next one with that
//! number, which does no harm: it merely tries once in vain.

use std::sync::Arc;

use crate::state::State;

/// All sources of a driver.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    places: Vec<Place>,
    free: Option<usize>,
}

#[derive(Debug)]
enum Place {
    Taken(Arc<State>),
    /// With the next one that is free.
    Free(Option<usize>),
}

impl Registry {
    /// Takes in the source that is made with this key.
    pub(crate) fn insert(&mut self, make: impl FnOnce(usize) -> Arc<State>) -> Arc<State> {
        let key = self.free.unwrap_or(self.places.len());
        let state = make(key);
        let place = Place::Taken(state.clone());
        match self.places.get_mut(key) {
            Some(free) => {
                if let Place::Free(next) = *free {
                    self.free = next;
                }
                *free = place;
            }
            None => self.places.push(place),
        }
        state
    }

    /// The source with this key, if it is still there.
    #[inline]
    pub(crate) fn get(&self, key: usize) -> Option<&Arc<State>> {
        match self.places.get(key)? {
            Place::Taken(state) => Some(state),
            Place::Free(_) => None,
        }
    }

    /// Takes it out. It is handed back, to be dropped without a lock held.
    pub(crate) fn remove(&mut self, key: usize) -> Option<Arc<State>> {
        let place = self.places.get_mut(key)?;
        if matches!(place, Place::Free(_)) {
            return None;
        }
        let taken = core::mem::replace(place, Place::Free(self.free));
        self.free = Some(key);
        match taken {
            Place::Taken(state) => Some(state),
            Place::Free(_) => None,
        }
    }

    /// All that are there.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<State>> {
        self.places.iter().filter_map(|place| match place {
            Place::Taken(state) => Some(state),
            Place::Free(_) => None,
        })
    }
}
