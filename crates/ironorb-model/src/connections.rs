//! Which connection a call takes: the rule of the ORB's client side, for the levels whose threads are modelled.

use crate::Table;

/// The connections that processes have made to servers.
///
/// The ORB numbers the threads of a process as they first call another process. The number, modulo
/// [`CONNECTIONS_PER_SERVER_MAX`], is the thread's place for connections: it has one of its own to each server, and shares it
/// with the threads that have the same place. A process with [`CONNECTIONS_MAX`] connections makes no second one to a server: a
/// thread without one uses that of the lowest place from then on. Where there is none to the server, the ORB closes the one
/// that has been idle for longest; a model keeps it, and has one more.
///
/// Not modelled: lanes have connections and limits of their own in the ORB.
#[derive(Debug, Default)]
pub struct Connections {
    /// The number of each thread among those of its process, counted from 1; 0 for one that has not called.
    numbers: Vec<u32>,
    /// By process.
    callers: Vec<Caller>,
    made: Table<Place, u32>,
}

/// A process that has called others.
#[derive(Debug, Default, Clone, Copy)]
struct Caller {
    threads: u32,
    connections: u32,
}

/// A place for a connection from one process to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Place {
    /// The process that calls.
    pub client: u32,
    /// Which of its connections to the server it is.
    pub number: u32,
    /// The process that is called.
    pub server: u32,
}

/// The most connections of a process to one server: `OrbConfig::connections_per_endpoint_max` as the ORB has it by itself.
pub const CONNECTIONS_PER_SERVER_MAX: u32 = 64;
/// The connections of a process from which on its threads share: `OrbConfig::client_connections_max` as the ORB has it by
/// itself.
pub const CONNECTIONS_MAX: u32 = 1_000;

impl Connections {
    /// The connection over which a thread of a process calls a server, or the place for one that is to be made.
    ///
    /// # Errors
    /// There is no connection for it yet.
    #[inline]
    pub fn of_thread(&mut self, client: u32, thread: u32, server: u32) -> Result<u32, Place> {
        let number = (self.number(client, thread) - 1) % CONNECTIONS_PER_SERVER_MAX;
        let place = Place { client, number, server };
        match self.made.get(&place) {
            Some(connection) => Ok(*connection),
            None => self.shared(place).ok_or(place),
        }
    }

    /// The connection in a place, or else the place.
    ///
    /// # Errors
    /// There is none yet.
    pub fn at(&self, place: Place) -> Result<u32, Place> {
        self.made.get(&place).copied().ok_or(place)
    }

    /// Adds a connection that has been made.
    pub fn add(&mut self, place: Place, connection: u32) {
        self.made.insert(place, connection);
        if let Some(caller) = self.callers.get_mut(place.client as usize) {
            caller.connections += 1;
        }
    }

    #[inline]
    fn number(&mut self, client: u32, thread: u32) -> u32 {
        match self.numbers.get(thread as usize) {
            Some(number) if *number != 0 => *number,
            _ => self.give_number(client, thread),
        }
    }

    #[cold]
    fn give_number(&mut self, client: u32, thread: u32) -> u32 {
        let (client, thread) = (client as usize, thread as usize);
        self.callers.resize(self.callers.len().max(client + 1), Caller::default());
        self.numbers.resize(self.numbers.len().max(thread + 1), 0);
        self.callers[client].threads += 1;
        self.numbers[thread] = self.callers[client].threads;
        self.numbers[thread]
    }

    /// The connection of another thread, for one that gets none of its own.
    #[cold]
    fn shared(&mut self, place: Place) -> Option<u32> {
        if self.callers[place.client as usize].connections < CONNECTIONS_MAX {
            return None;
        }
        let mut others = (0..CONNECTIONS_PER_SERVER_MAX).map(|number| Place { number, ..place });
        let shared = others.find_map(|other| self.made.get(&other).copied())?;
        self.made.insert(place, shared);
        Some(shared)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Has a thread call a server. A connection that is made is numbered by `next`.
    fn call(connections: &mut Connections, thread: u32, server: u32, next: &mut u32) -> u32 {
        let found = connections.of_thread(0, thread, server);
        found.unwrap_or_else(|place| {
            connections.add(place, *next);
            *next += 1;
            *next - 1
        })
    }

    #[test]
    fn a_thread_has_a_connection_of_its_own_until_there_are_many() {
        let (mut connections, mut next) = (Connections::default(), 0);
        // Threads are numbered as they call, whatever the simulator calls them.
        let first: Vec<u32> =
            (0..64).map(|number| call(&mut connections, 900 - number, 7, &mut next)).collect();
        assert_eq!(first, (0..64).collect::<Vec<u32>>());
        assert_eq!(call(&mut connections, 5, 7, &mut next), 0, "the 65th shares with the first");
        assert_eq!(call(&mut connections, 900, 7, &mut next), 0);
        assert_eq!(call(&mut connections, 900, 8, &mut next), 64, "another server");
        assert_eq!(connections.of_thread(1, 3, 7), Err(Place { client: 1, number: 0, server: 7 }));
    }

    #[test]
    fn a_process_with_many_connections_makes_no_second_one_to_a_server() {
        let (mut connections, mut next) = (Connections::default(), 0);
        for server in 0..CONNECTIONS_MAX - 1 {
            call(&mut connections, 0, server, &mut next);
        }
        let second = call(&mut connections, 1, 3, &mut next);
        assert_eq!(second, CONNECTIONS_MAX - 1, "the last one for which there is room");
        assert_eq!(call(&mut connections, 1, 4, &mut next), 4, "that of the first thread");
        assert_eq!(call(&mut connections, 2, 3, &mut next), 3, "the lowest place, not the newest");
        assert_eq!(call(&mut connections, 1, 3, &mut next), second, "what a thread has, it keeps");
        assert_eq!(call(&mut connections, 1, 5_000, &mut next), CONNECTIONS_MAX, "there is no other");
    }
}
