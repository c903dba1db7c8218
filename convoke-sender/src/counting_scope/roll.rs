//! Who is in a scope: the names of the work, found again by a key. Rooms that were left are used again, so that work
//! which comes and goes allocates nothing.

use super::name::Name;

/// The names of all that are here.
#[derive(Debug, Default)]
pub(super) struct Roll {
    rooms: Vec<Room>,
    /// The room that was left last; it knows the one before it.
    free: Option<usize>,
    here: usize,
}

#[derive(Debug)]
enum Room {
    Taken(Name),
    Free { next: Option<usize> },
}

/// Where in the roll a name stands. Whoever has one leaves once.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Key(usize);

impl Roll {
    /// Writes a name down.
    pub(super) fn enter(&mut self, name: Name) -> Key {
        self.here += 1;
        let Some(room) = self.free else {
            self.rooms.push(Room::Taken(name));
            return Key(self.rooms.len() - 1);
        };
        if let Room::Free { next } = core::mem::replace(&mut self.rooms[room], Room::Taken(name)) {
            self.free = next;
        }
        Key(room)
    }

    /// Strikes a name out.
    pub(super) fn leave(&mut self, key: Key) {
        self.rooms[key.0] = Room::Free { next: self.free.replace(key.0) };
        self.here -= 1;
    }

    /// The name behind a key.
    pub(super) fn name(&self, key: &Key) -> Option<Name> {
        match self.rooms.get(key.0) {
            Some(Room::Taken(name)) => Some(*name),
            _ => None,
        }
    }

    /// How many are here.
    pub(super) fn len(&self) -> usize {
        self.here
    }

    /// All that are here.
    pub(super) fn names(&self) -> Vec<Name> {
        let taken = |room: &Room| match room {
            Room::Taken(name) => Some(*name),
            Room::Free { .. } => None,
        };
        self.rooms.iter().filter_map(taken).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rooms_that_were_left_are_used_again() {
        let [a, b, c, d] = ["a", "b", "c", "d"].map(Name::Given);
        let mut roll = Roll::default();
        let (first, second, third) = (roll.enter(a), roll.enter(b), roll.enter(c));
        roll.leave(second);
        roll.leave(first);
        assert_eq!((roll.len(), roll.names()), (1, vec![c]));
        assert_eq!([roll.enter(a), roll.enter(d)], [Key(0), Key(1)]);
        assert_eq!((roll.len(), roll.rooms.len(), roll.name(&third)), (3, 3, Some(c)));
        assert_eq!(roll.names(), [a, d, c]);
    }
}
