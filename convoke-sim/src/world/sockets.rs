//! The table of all sockets of a simulation.

use core::ops::Index;

use super::socket::Socket;

/// The id of a socket. No id is used twice: 2⁶⁴ sockets do not fit into a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct SocketId {
    place: u32,
    /// Number of sockets that had the same place before.
    generation: u64,
}

/// Sockets by id. The order of iteration is that of their places, and follows from what has happened.
#[derive(Debug, Default)]
pub(super) struct Sockets {
    places: Vec<Place>,
    free: Vec<u32>,
}

#[derive(Debug)]
struct Place {
    generation: u64,
    socket: Option<Box<Socket>>,
}

impl Sockets {
    pub(super) fn insert(&mut self, socket: Socket) -> SocketId {
        let place = self.free.pop().unwrap_or_else(|| {
            self.places.push(Place { generation: 0, socket: None });
            self.places.len() as u32 - 1
        });
        let free = &mut self.places[place as usize];
        free.socket = Some(Box::new(socket));
        SocketId { place, generation: free.generation }
    }

    #[inline]
    pub(super) fn get(&self, id: SocketId) -> Option<&Socket> {
        let place = self.places.get(id.place as usize)?;
        place.socket.as_deref().filter(|_| place.generation == id.generation)
    }

    #[inline]
    pub(super) fn get_mut(&mut self, id: SocketId) -> Option<&mut Socket> {
        let place = self.places.get_mut(id.place as usize)?;
        place.socket.as_deref_mut().filter(|_| place.generation == id.generation)
    }

    pub(super) fn remove(&mut self, id: SocketId) -> Option<Socket> {
        let place =
            self.places.get_mut(id.place as usize).filter(|place| place.generation == id.generation)?;
        let socket = place.socket.take()?;
        place.generation += 1;
        self.free.push(id.place);
        Some(*socket)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (SocketId, &Socket)> {
        self.places.iter().enumerate().filter_map(|(index, place)| {
            let id = SocketId { place: index as u32, generation: place.generation };
            place.socket.as_deref().map(|socket| (id, socket))
        })
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (SocketId, &mut Socket)> {
        self.places.iter_mut().enumerate().filter_map(|(index, place)| {
            let id = SocketId { place: index as u32, generation: place.generation };
            place.socket.as_deref_mut().map(|socket| (id, socket))
        })
    }
}

impl Index<SocketId> for Sockets {
    type Output = Socket;

    fn index(&self, id: SocketId) -> &Socket {
        self.get(id).expect("the ids of bound and listening sockets are those of open ones")
    }
}
