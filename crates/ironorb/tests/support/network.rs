//! The network between the engines, and how its events are carried out.

use ironorb::engine::{
    Answer, ClientAction, ClientEvent, ConnectionId, Outcome, ServerAction, ServerEvent, Time, UpcallNumber,
};

use super::counter::{CounterError, Refused};
use super::{PORT, Pair, Seen, Side};

/// One connection. Its number names it to the server.
pub(super) struct Wire {
    client: usize,
    connection: ConnectionId,
    pub(super) server: usize,
    pub(super) accepted: bool,
    to_client: Direction,
    to_server: Direction,
}

#[derive(Default)]
pub(super) struct Direction {
    /// The receiving end takes no more bytes.
    pub(super) is_closed: bool,
    /// The sending end sends no more bytes.
    is_cut: bool,
    pub(super) sent: usize,
    received: usize,
    /// Bytes that the receiving end has not taken.
    under_way: usize,
    /// The sending end knows that the receiving end takes no more.
    is_blocked: bool,
    /// The receiving end takes nothing, and finds these segments later.
    not_read: Option<Vec<Vec<u8>>>,
    /// When the bytes that were sent last arrive: bytes keep their order within a connection.
    last_arrival: Time,
}

pub(super) enum Happening {
    ConnectArrives {
        wire: usize,
    },
    Connected {
        wire: usize,
        accepted: bool,
    },
    /// No host of the network has the address.
    Refused {
        client: usize,
        connection: ConnectionId,
    },
    Arrives {
        wire: usize,
        at: Side,
        bytes: Vec<u8>,
    },
    CloseSeen {
        wire: usize,
        at: Side,
    },
    Timer {
        client: usize,
        at: Time,
    },
    ServerTimer {
        server: usize,
        incarnation: u64,
        at: Time,
    },
    CarryOut {
        server: usize,
        incarnation: u64,
        upcall: UpcallNumber,
    },
    CallBack {
        client: usize,
        upcall: UpcallNumber,
    },
    Script(Box<dyn FnOnce(&mut Pair)>),
}

impl Pair {
    pub(super) fn schedule(&mut self, at: Time, happening: Happening) {
        self.agenda.insert((at, self.next_order), happening);
        self.next_order += 1;
    }

    pub(super) fn carry_out_actions(&mut self) {
        loop {
            let mut idle = true;
            for server in 0..self.servers.len() {
                while let Some(action) =
                    self.servers[server].running.as_mut().and_then(|running| running.engine.poll_action())
                {
                    idle = false;
                    self.server_action(server, action);
                }
            }
            let clients = 0..self.clients.len();
            for client in clients.filter(|&client| !self.clients[client].is_dead).collect::<Vec<_>>() {
                while let Some(action) = self.clients[client].engine.poll_action() {
                    idle = false;
                    self.client_action(client, action);
                }
            }
            if idle {
                return;
            }
        }
    }

    fn client_action(&mut self, client: usize, action: ClientAction) {
        match action {
            ClientAction::Connect { connection, host, port } => {
                let server = self.servers.iter().position(|server| server.host == host && port == PORT);
                let Some(server) = server else {
                    let at = self.now + self.random.micros(self.latency_us.clone());
                    return self.schedule(at, Happening::Refused { client, connection });
                };
                let wire = self.wires.len();
                self.wires.push(Wire::new(client, connection, server));
                self.clients[client].wires.insert(connection, wire);
                let at = self.now + self.random.micros(self.latency_us.clone());
                self.schedule(at, Happening::ConnectArrives { wire });
            }
            ClientAction::Transmit { connection, bytes } => {
                assert!(!bytes.is_empty(), "{self}: nothing is sent");
                let wire = self.clients[client].wires[&connection];
                self.send(wire, Side::Server, &bytes);
            }
            ClientAction::Close { connection } => {
                // There is none to an address that no host has.
                if let Some(&wire) = self.clients[client].wires.get(&connection) {
                    self.close_end(wire, Side::Client);
                }
            }
            ClientAction::Complete { call, outcome } => self.completed(call.0, outcome),
            ClientAction::Upcall { upcall, .. } => {
                let at = self.now + self.random.micros(self.service_us.clone());
                self.schedule(at, Happening::CallBack { client, upcall });
            }
            ClientAction::SetTimer { at } => {
                self.clients[client].timer = Some(at);
                let fires_at = at.max(self.now) + self.timer_lag;
                self.schedule(fires_at, Happening::Timer { client, at });
            }
        }
    }

    fn completed(&mut self, number: u64, outcome: Outcome) {
        let at = self.now;
        let context = self.to_string();
        let call = self.calls.get_mut(&number).unwrap_or_else(|| panic!("{context}: no call {number}"));
        let seen = match outcome {
            Ok(Answer::Reply(reply)) => match reply.read::<u64, CounterError>(|r| r.get()) {
                Ok(value) => Seen::Value(value),
                Err(CounterError::Refused(Refused(value))) => Seen::Refused(value),
                Err(CounterError::System(e)) => Seen::Failed(e),
            },
            Ok(Answer::Sent) => Seen::Sent,
            Ok(Answer::Located(known)) => Seen::Located(known),
            Err(e) => Seen::Failed(e),
        };
        assert_eq!(call.seen, None, "{context}: call {number} ends twice, now with {seen:?}");
        call.seen = Some(seen);
        call.ended_at = at;
    }

    fn server_action(&mut self, server: usize, action: ServerAction) {
        match action {
            ServerAction::Transmit { connection, bytes } => {
                assert!(!bytes.is_empty(), "{self}: nothing is sent");
                self.send(connection.0 as usize, Side::Client, &bytes);
            }
            ServerAction::Close { connection } => self.close_end(connection.0 as usize, Side::Server),
            ServerAction::SetTimer { at } => {
                self.servers[server].timer = Some(at);
                let fires_at = at.max(self.now) + self.timer_lag;
                let incarnation = self.servers[server].incarnation;
                self.schedule(fires_at, Happening::ServerTimer { server, incarnation, at });
            }
            ServerAction::Upcall { upcall, .. } => {
                self.servers[server].upcalls += 1;
                if self.servers[server].holds {
                    self.servers[server].held.push(upcall);
                } else {
                    self.schedule_upcall(server, upcall);
                }
            }
        }
    }

    pub(super) fn schedule_upcall(&mut self, server: usize, upcall: UpcallNumber) {
        let at = self.now + self.random.micros(self.service_us.clone());
        let incarnation = self.servers[server].incarnation;
        self.schedule(at, Happening::CarryOut { server, incarnation, upcall });
    }

    pub(super) fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::ConnectArrives { wire } => {
                let server = self.wires[wire].server;
                if self.servers[server].is_black_hole || self.wires[wire].to_client.is_closed {
                    return;
                }
                let accepted = self.servers[server].running.is_some();
                self.wires[wire].accepted = accepted;
                if accepted {
                    self.server_event(
                        server,
                        ServerEvent::Accepted { connection: ConnectionId(wire as u64) },
                    );
                }
                let at = self.arrival(wire, Side::Client);
                self.schedule(at, Happening::Connected { wire, accepted });
            }
            Happening::Connected { wire, accepted } => {
                let Wire { client, connection, .. } = self.wires[wire];
                if !accepted {
                    self.wires[wire].to_client.is_closed = true;
                    self.client_event(client, ClientEvent::ConnectFailed { connection, timed_out: false });
                } else if self.wires[wire].to_client.is_closed {
                    // The client no longer wants the connection.
                    self.close_end(wire, Side::Client);
                } else {
                    self.client_event(client, ClientEvent::Connected { connection });
                }
            }
            Happening::Arrives { wire, at, bytes } => self.arrives(wire, at, bytes),
            Happening::CloseSeen { wire, at } => {
                let Wire { client, connection, server, .. } = self.wires[wire];
                if std::mem::replace(&mut self.wires[wire].direction_mut(at).is_closed, true) {
                    return;
                }
                self.wires[wire].direction_mut(at.other()).is_cut = true;
                match at {
                    Side::Client => self.client_event(client, ClientEvent::Closed { connection }),
                    Side::Server => {
                        let connection = ConnectionId(wire as u64);
                        self.server_event(server, ServerEvent::Closed { connection });
                    }
                }
            }
            Happening::Timer { client, at } => {
                if self.clients[client].timer.is_some_and(|timer| timer <= at) {
                    self.clients[client].timer = None;
                    self.client_event(client, ClientEvent::Timer);
                }
            }
            Happening::ServerTimer { server, incarnation, at } => {
                let server_of = &mut self.servers[server];
                if server_of.incarnation == incarnation && server_of.timer.is_some_and(|timer| timer <= at) {
                    server_of.timer = None;
                    self.server_event(server, ServerEvent::Timer);
                }
            }
            Happening::CarryOut { server, incarnation, upcall } => {
                if self.servers[server].incarnation == incarnation {
                    self.server_event(server, ServerEvent::CarryOut { upcall });
                }
            }
            Happening::CallBack { client, upcall } => {
                self.client_event(client, ClientEvent::CarryOut { upcall });
            }
            Happening::Refused { client, connection } => {
                self.client_event(client, ClientEvent::ConnectFailed { connection, timed_out: false });
            }
            Happening::Script(script) => script(self),
        }
    }

    fn arrives(&mut self, wire: usize, at: Side, bytes: Vec<u8>) {
        let Wire { client, connection, server, .. } = self.wires[wire];
        if let Some(not_read) = &mut self.wires[wire].direction_mut(at).not_read {
            return not_read.push(bytes);
        }
        self.note_taken(wire, at, bytes.len());
        if self.wires[wire].direction(at).is_closed {
            return;
        }
        let before = self.wires[wire].direction(at).received;
        self.wires[wire].direction_mut(at).received += bytes.len();
        match at {
            Side::Client => {
                self.client_event(client, ClientEvent::Received { connection, bytes: &bytes });
            }
            Side::Server => {
                let connection = ConnectionId(wire as u64);
                let retire_now = self.retire_after.filter(|after| {
                    wire == 0 && (before..before + bytes.len() + 1).contains(after) && *after >= before
                });
                let whole = retire_now.map_or(bytes.len(), |after| after - before);
                if whole > 0 {
                    let bytes = &bytes[..whole];
                    self.server_event(server, ServerEvent::Received { connection, bytes });
                }
                if retire_now.is_some() {
                    self.retire_after = None;
                    self.server_event(server, ServerEvent::Retire { connection });
                }
            }
        }
    }

    /// Makes one end of a connection take nothing, or take what has come.
    pub(super) fn set_reading(&mut self, wire: usize, end: Side, reads: bool) {
        let direction = self.wires[wire].direction_mut(end);
        if !reads {
            direction.not_read.get_or_insert_default();
        } else if let Some(not_read) = direction.not_read.take() {
            not_read.into_iter().for_each(|bytes| self.arrives(wire, end, bytes));
        }
    }

    /// Tells the sending end that it must not send more.
    fn note_under_way(&mut self, wire: usize, toward: Side) {
        let Some(window) = self.window else { return };
        let direction = self.wires[wire].direction_mut(toward);
        if direction.under_way > window && !std::mem::replace(&mut direction.is_blocked, true) {
            self.tell_sender(wire, toward, false);
        }
    }

    /// Tells the sending end that it may send more.
    fn note_taken(&mut self, wire: usize, toward: Side, count: usize) {
        let Some(window) = self.window else { return };
        let direction = self.wires[wire].direction_mut(toward);
        direction.under_way -= count;
        if direction.under_way <= window / 2 && std::mem::take(&mut direction.is_blocked) {
            self.tell_sender(wire, toward, true);
        }
    }

    fn tell_sender(&mut self, wire: usize, toward: Side, is_writable: bool) {
        let Wire { client, connection, server, .. } = self.wires[wire];
        match (toward, is_writable) {
            (Side::Server, false) => self.client_event(client, ClientEvent::Blocked { connection }),
            (Side::Server, true) => self.client_event(client, ClientEvent::Writable { connection }),
            (Side::Client, is_writable) => {
                let connection = ConnectionId(wire as u64);
                let event = match is_writable {
                    true => ServerEvent::Writable { connection },
                    false => ServerEvent::Blocked { connection },
                };
                self.server_event(server, event);
            }
        }
    }

    /// When bytes that are sent now arrive.
    fn arrival(&mut self, wire: usize, toward: Side) -> Time {
        let at = self.now + self.random.micros(self.latency_us.clone());
        let direction = self.wires[wire].direction_mut(toward);
        direction.last_arrival = direction.last_arrival.max(at);
        direction.last_arrival
    }

    pub(super) fn send(&mut self, wire: usize, toward: Side, bytes: &[u8]) {
        let direction = self.wires[wire].direction(toward);
        if direction.is_cut || direction.is_closed {
            return;
        }
        let mut rest = bytes;
        let cut_at = match self.cut {
            Some(cut) if wire == 0 && cut.toward == toward => cut.after.checked_sub(direction.sent),
            _ => None,
        };
        if let Some(left) = cut_at.filter(|left| *left < bytes.len()) {
            rest = &bytes[..left];
        }
        let cuts = rest.len() < bytes.len();
        if let Some(lose_after) = self.lose_after.filter(|_| wire == 0 && toward == Side::Server) {
            rest = &rest[..rest.len().min(lose_after.saturating_sub(direction.sent))];
        }
        self.wires[wire].direction_mut(toward).sent += rest.len();
        while !rest.is_empty() {
            let length = self.random.within(self.segment_bytes.clone()).min(rest.len());
            let (segment, tail) = rest.split_at(length);
            if self.window.is_some() {
                self.wires[wire].direction_mut(toward).under_way += length;
            }
            let at = self.arrival(wire, toward);
            self.schedule(at, Happening::Arrives { wire, at: toward, bytes: segment.to_vec() });
            rest = tail;
        }
        self.note_under_way(wire, toward);
        if cuts {
            self.break_wire(wire);
        }
    }

    /// Breaks a connection. Both ends see the end after the bytes that are under way.
    pub(super) fn break_wire(&mut self, wire: usize) {
        for side in [Side::Client, Side::Server] {
            self.wires[wire].direction_mut(side).is_cut = true;
            let at = self.arrival(wire, side);
            self.schedule(at, Happening::CloseSeen { wire, at: side });
        }
    }

    /// Closes one end. The opposite end sees it after the bytes that are under way.
    pub(super) fn close_end(&mut self, wire: usize, end: Side) {
        let other = end.other();
        self.wires[wire].direction_mut(end).is_closed = true;
        self.wires[wire].direction_mut(other).is_cut = true;
        let at = self.arrival(wire, other);
        self.schedule(at, Happening::CloseSeen { wire, at: other });
    }
}

impl Side {
    fn other(self) -> Side {
        match self {
            Side::Client => Side::Server,
            Side::Server => Side::Client,
        }
    }
}

impl Wire {
    fn new(client: usize, connection: ConnectionId, server: usize) -> Wire {
        let (to_client, to_server) = (Direction::default(), Direction::default());
        Wire { client, connection, server, accepted: false, to_client, to_server }
    }

    pub(super) fn direction(&self, toward: Side) -> &Direction {
        match toward {
            Side::Client => &self.to_client,
            Side::Server => &self.to_server,
        }
    }

    fn direction_mut(&mut self, toward: Side) -> &mut Direction {
        match toward {
            Side::Client => &mut self.to_client,
            Side::Server => &mut self.to_server,
        }
    }
}
