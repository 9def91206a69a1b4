//! TCP as programs see it: listening, connecting, two streams of octets a connection, ends in order and not.

mod giving_up;

use std::collections::VecDeque;
use std::net::Ipv4Addr;
use std::time::Duration;

use ironorb_model::record::pcapng::End;
use ironorb_model::{Stream, Time};
use libc::{
    EADDRINUSE, EAGAIN, ECONNREFUSED, ECONNRESET, EINPROGRESS, EINVAL, EISCONN, ENOTCONN, EPIPE, EPOLLERR,
    EPOLLHUP, EPOLLIN, EPOLLOUT, EPOLLRDHUP, ETIMEDOUT,
};

use super::descriptors::{FileId, Kind};
use super::messages::Messages;
use super::{Answer, Event, HostId, State};
pub(crate) use giving_up::TcpTimeouts;

/// An address and a port.
pub(crate) type Endpoint = (Ipv4Addr, u16);

pub(super) struct Listener {
    at: Endpoint,
    /// Connections that nobody has accepted yet.
    waiting: VecDeque<SideId>,
    backlog: usize,
}

impl Listener {
    pub(super) fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }
}

/// One end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SideId {
    pub(super) connection: usize,
    /// 0: the one that connected; 1: the one that accepted.
    side: usize,
}

impl SideId {
    fn other(self) -> SideId {
        SideId { side: 1 - self.side, ..self }
    }
}

pub(super) struct Connection {
    sides: [Side; 2],
    state: ConnectState,
    /// How often the client has asked for it in vain.
    tries: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ConnectState {
    Connecting,
    Connected,
    Failed,
}

struct Side {
    /// The host, whichever of its processes has the file.
    host: HostId,
    at: Endpoint,
    /// `None`: closed, or not accepted yet.
    file: Option<FileId>,
    received: VecDeque<u8>,
    /// Octets that are on their way to this side.
    under_way: usize,
    /// How far what was sent to this side has come: nothing later overtakes it.
    stream: Stream,
    /// The most octets that may be on their way or unread.
    window: usize,
    /// The other side sends no more.
    has_end: bool,
    /// This side sends no more.
    is_shut: bool,
    /// This side has been closed.
    is_closed: bool,
    /// Its host has lost its power since: nobody sends again what has not arrived.
    is_forgotten: bool,
    /// What the next call reports.
    error: Option<i32>,
    /// What was sent to this side while nothing passed, behind what was under way when that began.
    held: VecDeque<Segment>,
    /// How much of it was under way.
    held_late: usize,
    /// Since when something is held.
    held_since: Option<Time>,
    /// Since when this side has found no room for what it would send.
    full_since: Option<Time>,
    /// When something kept it from hearing the other side, which it has not heard since.
    silent_since: Option<Time>,
    /// The GIOP messages that it has sent.
    messages: Messages,
    /// It found no room, and is to hear of it.
    wants_room: bool,
}

/// Something that one side sends the other.
pub(crate) enum Segment {
    Octets(Vec<u8>),
    End,
    Reset,
}

/// Unread octets of a side, as Linux has them by default.
const WINDOW: usize = 212_992;

impl Side {
    fn new(host: HostId, at: Endpoint, file: Option<FileId>) -> Side {
        Side {
            host,
            at,
            file,
            received: VecDeque::new(),
            under_way: 0,
            stream: Stream::default(),
            window: WINDOW,
            has_end: false,
            is_shut: false,
            is_closed: false,
            is_forgotten: false,
            error: None,
            held: VecDeque::new(),
            held_late: 0,
            held_since: None,
            full_since: None,
            silent_since: None,
            messages: Messages::default(),
            wants_room: false,
        }
    }

    fn room(&self) -> usize {
        self.window.saturating_sub(self.received.len() + self.under_way)
    }

    /// Nothing is held any more.
    fn drop_held(&mut self) -> VecDeque<Segment> {
        self.held_late = 0;
        self.held_since = None;
        std::mem::take(&mut self.held)
    }
}

/// What programs do.
impl State {
    pub(crate) fn new_socket(&mut self, is_nonblocking: bool) -> i32 {
        self.open(Kind::Socket { bound: None }, is_nonblocking).0
    }

    pub(crate) fn bind(&mut self, descriptor: i32, at: Endpoint) -> Answer<()> {
        let here = self.this_machine();
        let port = match at.1 {
            0 => self.free_port(here),
            port if self.listener_at(here, (at.0, port)).is_some() => return Err(EADDRINUSE),
            port => port,
        };
        match self.kind(descriptor)?.1 {
            Kind::Socket { bound } if bound.is_none() => *bound = Some((at.0, port)),
            _ => return Err(EINVAL),
        }
        Ok(())
    }

    pub(crate) fn listen(&mut self, descriptor: i32, backlog: usize) -> Answer<()> {
        let here = self.this_machine();
        let port = self.free_port(here);
        let (file, kind) = self.kind(descriptor)?;
        let Kind::Socket { bound } = kind else { return Err(EINVAL) };
        let at = bound.unwrap_or((Ipv4Addr::UNSPECIFIED, port));
        *kind = Kind::Listener(Listener { at, waiting: VecDeque::new(), backlog: backlog.max(1) });
        self.listeners.push(file);
        Ok(())
    }

    /// Begins to connect. The answer is EINPROGRESS unless it fails at once.
    pub(crate) fn connect(&mut self, descriptor: i32, to: Endpoint) -> Answer<()> {
        let here = self.this_machine();
        let port = self.free_port(here);
        let own_address = self.hosts[here.0].address;
        let (file, kind) = self.kind(descriptor)?;
        match kind {
            Kind::Socket { .. } => {}
            Kind::Stream(side) => {
                let side = *side;
                return match self.connections[side.connection].state {
                    ConnectState::Connecting => Err(EINPROGRESS),
                    ConnectState::Connected => Err(EISCONN),
                    ConnectState::Failed => Err(self.side_mut(side).error.take().unwrap_or(ECONNREFUSED)),
                };
            }
            _ => return Err(EINVAL),
        }
        let server = self.host_at(to.0, here).ok_or(libc::EHOSTUNREACH)?;
        let own = if to.0.is_loopback() { to.0 } else { own_address };
        let connection = self.connections.len();
        let sides = [Side::new(here, (own, port), Some(file)), Side::new(server, to, None)];
        self.connections.push(Connection { sides, state: ConnectState::Connecting, tries: 0 });
        *self.kind(descriptor)?.1 = Kind::Stream(SideId { connection, side: 0 });
        self.note(6, u64::from(port), u64::from(to.1));
        self.send_syn(connection);
        Err(EINPROGRESS)
    }

    /// How an attempt to connect stands: `None` while it lasts.
    pub(crate) fn connect_outcome(&mut self, descriptor: i32) -> Answer<Option<i32>> {
        let (_, kind) = self.kind(descriptor)?;
        let Kind::Stream(side) = kind else { return Err(ENOTCONN) };
        let side = *side;
        Ok(match self.connections[side.connection].state {
            ConnectState::Connecting => None,
            ConnectState::Connected => Some(0),
            ConnectState::Failed => Some(self.side_mut(side).error.take().unwrap_or(ECONNREFUSED)),
        })
    }

    pub(crate) fn accept(&mut self, descriptor: i32, is_nonblocking: bool) -> Answer<(i32, Endpoint)> {
        let (_, kind) = self.kind(descriptor)?;
        let Kind::Listener(listener) = kind else { return Err(EINVAL) };
        let side = listener.waiting.pop_front().ok_or(EAGAIN)?;
        let tcp_timeouts = self.tcp_timeouts(descriptor)?;
        let (accepted, file) = self.open(Kind::Stream(side), is_nonblocking);
        *self.tcp_timeouts_mut(accepted)? = tcp_timeouts;
        self.side_mut(side).file = Some(file);
        Ok((accepted, self.side(side.other()).at))
    }

    /// Sends as much as there is room for. What goes on with a call that has sent something leaves an error to the next call.
    pub(crate) fn send(&mut self, descriptor: i32, pieces: &[&[u8]], goes_on: bool) -> Answer<usize> {
        let from = match self.kind(descriptor)? {
            (_, Kind::Stream(side)) => *side,
            (file, Kind::Counter { .. }) => {
                let number = pieces.first().and_then(|piece| piece.first_chunk()).ok_or(EINVAL)?;
                self.add_to_counter(file, u64::from_ne_bytes(*number))?;
                return Ok(8);
            }
            _ => return Err(ENOTCONN),
        };
        match self.connections[from.connection].state {
            ConnectState::Connecting => return Err(EAGAIN),
            ConnectState::Failed => return Err(self.side_mut(from).error.take().unwrap_or(EPIPE)),
            ConnectState::Connected => {}
        }
        let error = &mut self.side_mut(from).error;
        if let Some(error) = if goes_on { *error } else { error.take() } {
            return Err(error);
        }
        if self.side(from).is_shut {
            return Err(EPIPE);
        }
        let room = self.side(from.other()).room();
        let mut octets = Vec::with_capacity(room.min(pieces.iter().map(|piece| piece.len()).sum()));
        for piece in pieces {
            octets.extend_from_slice(&piece[..piece.len().min(room - octets.len())]);
        }
        let sent = octets.len();
        if sent == 0 && pieces.iter().any(|piece| !piece.is_empty()) {
            self.side_mut(from).wants_room = true;
            self.finds_no_room(from);
            return Err(EAGAIN);
        }
        self.counts.segments += 1;
        self.counts.octets += sent as u64;
        self.counts.messages += self.side_mut(from).messages.take(&octets);
        self.digest.take(self.now().as_ns());
        self.digest.take_octets(&octets);
        self.capture(from, &octets);
        if let Some(trace) = &mut self.trace {
            let _ = std::fmt::Write::write_fmt(trace, format_args!("send {octets:02x?}\n"));
        }
        // Who polls after having filled the window hears of room as well as who was told that there is none.
        self.side_mut(from).wants_room |= sent == room;
        self.side_mut(from.other()).under_way += sent;
        let arrives = self.transmit(from.other(), Segment::Octets(octets));
        self.note_arrival(arrives);
        Ok(sent)
    }

    /// Takes what has come, 0 octets at the end of the stream.
    pub(crate) fn receive(&mut self, descriptor: i32, into: &mut [&mut [u8]], peeks: bool) -> Answer<usize> {
        let to = match self.kind(descriptor)? {
            (_, Kind::Stream(side)) => *side,
            (file, Kind::Counter { .. }) => {
                let space = into.first_mut().and_then(|space| space.first_chunk_mut::<8>()).ok_or(EINVAL)?;
                *space = self.read_counter(file)?.to_ne_bytes();
                return Ok(8);
            }
            (_, Kind::Entropy) => {
                let octets = into.iter_mut().flat_map(|space| space.iter_mut());
                return Ok(octets.map(|octet| *octet = self.entropy.bits() as u8).count());
            }
            _ => return Err(ENOTCONN),
        };
        if self.connections[to.connection].state == ConnectState::Connecting {
            return Err(EAGAIN);
        }
        let side = self.side_mut(to);
        if side.received.is_empty() {
            if let Some(error) = side.error.take() {
                return Err(error);
            }
            return if side.has_end { Ok(0) } else { Err(EAGAIN) };
        }
        let mut taken = 0;
        for space in into {
            let (front, back) = side.received.as_slices();
            let (front, back) =
                (&front[taken.min(front.len())..], &back[taken.saturating_sub(front.len())..]);
            let first = front.len().min(space.len());
            space[..first].copy_from_slice(&front[..first]);
            let second = back.len().min(space.len() - first);
            space[first..first + second].copy_from_slice(&back[..second]);
            taken += first + second;
        }
        if !peeks {
            side.received.drain(..taken);
            self.make_room(to);
        }
        Ok(taken)
    }

    pub(crate) fn shut_down(&mut self, descriptor: i32, how: i32) -> Answer<()> {
        let (file, kind) = self.kind(descriptor)?;
        let Kind::Stream(side) = *kind else { return Err(ENOTCONN) };
        if how != libc::SHUT_RD {
            self.end(side);
        }
        if how != libc::SHUT_WR {
            self.side_mut(side).has_end = true;
        }
        self.changed(file);
        Ok(())
    }

    pub(crate) fn own_endpoint(&mut self, descriptor: i32) -> Answer<Endpoint> {
        match self.kind(descriptor)?.1 {
            Kind::Socket { bound } => Ok(bound.unwrap_or((Ipv4Addr::UNSPECIFIED, 0))),
            Kind::Listener(listener) => Ok(listener.at),
            Kind::Stream(side) => {
                let side = *side;
                Ok(self.side(side).at)
            }
            _ => Err(libc::ENOTSOCK),
        }
    }

    pub(crate) fn peer_endpoint(&mut self, descriptor: i32) -> Answer<Endpoint> {
        match self.kind(descriptor)?.1 {
            Kind::Stream(side) => {
                let side = *side;
                match self.connections[side.connection].state {
                    ConnectState::Connected => Ok(self.side(side.other()).at),
                    _ => Err(ENOTCONN),
                }
            }
            _ => Err(ENOTCONN),
        }
    }

    /// The error that `SO_ERROR` tells, once.
    pub(crate) fn take_error(&mut self, descriptor: i32) -> Answer<i32> {
        match self.kind(descriptor)?.1 {
            Kind::Stream(side) => {
                let side = *side;
                Ok(self.side_mut(side).error.take().unwrap_or(0))
            }
            _ => Ok(0),
        }
    }

    pub(crate) fn set_window(&mut self, descriptor: i32, octets: usize) -> Answer<()> {
        if let (_, Kind::Stream(side)) = self.kind(descriptor)? {
            let side = *side;
            // Linux doubles what it is asked for.
            self.side_mut(side).window = octets.saturating_mul(2).max(2_304);
        }
        Ok(())
    }

    pub(crate) fn unread(&mut self, descriptor: i32) -> Answer<usize> {
        match self.kind(descriptor)?.1 {
            Kind::Stream(side) => {
                let side = *side;
                Ok(self.side(side).received.len())
            }
            _ => Err(EINVAL),
        }
    }
}

/// What follows.
impl State {
    fn side(&self, side: SideId) -> &Side {
        &self.connections[side.connection].sides[side.side]
    }

    fn side_mut(&mut self, side: SideId) -> &mut Side {
        &mut self.connections[side.connection].sides[side.side]
    }

    fn free_port(&mut self, host: HostId) -> u16 {
        loop {
            let port = self.hosts[host.0].next_port;
            self.hosts[host.0].next_port = if port == 60_999 { 32_768 } else { port + 1 };
            if self.listener_at(host, (Ipv4Addr::UNSPECIFIED, port)).is_none() {
                return port;
            }
        }
    }

    /// The listener of a host that takes connections to an endpoint.
    fn listener_at(&self, host: HostId, at: Endpoint) -> Option<FileId> {
        self.listeners.iter().copied().find(|&file| {
            self.files.get(file).is_some_and(|open| match &open.kind {
                Kind::Listener(listener) => {
                    let any = listener.at.0.is_unspecified() || at.0.is_unspecified();
                    self.machine(open.host) == host && listener.at.1 == at.1 && (any || listener.at.0 == at.0)
                }
                _ => false,
            })
        })
    }

    /// A client asks for its connection.
    pub(super) fn send_syn(&mut self, connection: usize) {
        let [client, server] = &self.connections[connection].sides;
        let (from, to) = (client.host, server.host);
        if client.file.is_none() {
            return; // it has given up
        }
        if !self.passes(from, to) {
            return self.ask_again(connection);
        }
        let at = self.handshake_arrival(from, to);
        self.enter(at, Event::Reaches { connection });
    }

    /// Nobody answers a client. It waits, longer each time, and asks again, until it gives up.
    fn ask_again(&mut self, connection: usize) {
        let client = SideId { connection, side: 0 };
        let tries = self.connections[connection].tries;
        let (waited, wait) = (Duration::from_secs((1 << tries) - 1), Duration::from_secs(1 << tries));
        let most = self.tcp_timeouts_of(client).and_then(|tcp_timeouts| tcp_timeouts.user_timeout);
        let left = most.map_or(Duration::MAX, |most| most.saturating_sub(waited));
        self.connections[connection].tries += 1;
        let event = match tries == TRIES_MAX || left <= wait {
            true => Event::Answered { connection, is_accepted: false },
            false => Event::Asks { connection },
        };
        self.enter(self.now() + wait.min(left), event);
    }

    pub(super) fn reach_server(&mut self, connection: usize) {
        let (host, at) =
            (self.connections[connection].sides[1].host, self.connections[connection].sides[1].at);
        let client = self.connections[connection].sides[0].host;
        if !self.passes(client, host) {
            return self.ask_again(connection);
        }
        let listener = self.listener_at(host, at);
        let has_room = listener.and_then(|file| self.files.get(file)).is_some_and(|open| match &open.kind {
            Kind::Listener(listener) => listener.waiting.len() < listener.backlog,
            _ => false,
        });
        if listener.is_some() && !has_room {
            return self.ask_again(connection);
        }
        if has_room {
            self.counts.connections += 1;
        } else {
            self.connections[connection].sides[0].error = Some(ECONNREFUSED);
        }
        if let Some(file) = listener.filter(|_| has_room)
            && let Some(open) = self.files.get_mut(file)
            && let Kind::Listener(listener) = &mut open.kind
        {
            listener.waiting.push_back(SideId { connection, side: 1 });
            self.changed(file);
        }
        let answered = self.handshake_arrival(host, client);
        self.enter(answered, Event::Answered { connection, is_accepted: has_room });
    }

    pub(super) fn answer_client(&mut self, connection: usize, is_accepted: bool) {
        let made = &mut self.connections[connection];
        if made.state != ConnectState::Connecting {
            return;
        }
        made.state = if is_accepted { ConnectState::Connected } else { ConnectState::Failed };
        if !is_accepted {
            made.sides[0].error.get_or_insert(ETIMEDOUT);
        }
        self.note(7, connection as u64, u64::from(is_accepted));
        let [client, server] = [0, 1].map(|side| SideId { connection, side });
        match self.side(client).file {
            Some(file) => self.changed(file),
            // Its program has gone meanwhile: TCP answers the answer with a reset.
            None if is_accepted => {
                self.side_mut(client).is_shut = true;
                self.transmit(server, Segment::Reset);
            }
            None => {}
        }
        // A server that has accepted it already may send from now on.
        if let Some(file) = self.side(server).file {
            self.changed(file);
        }
    }

    /// Writes what a side sends into the capture, if there is one.
    fn capture(&mut self, from: SideId, octets: &[u8]) {
        let end = |state: &State, side: SideId| End {
            host: state.side(side).host.0 as u32,
            port: state.side(side).at.1,
        };
        let (from, to) = (end(self, from), end(self, from.other()));
        let now = self.now();
        if let Some(capture) = &mut self.capture {
            let written = capture.send(now, from, to, octets);
            debug_assert!(written.is_ok(), "memory takes all");
        }
    }

    /// When a segment without octets arrives that belongs to no stream yet.
    fn control_arrival(&mut self, from: HostId, to: HostId) -> Time {
        self.network.arrival((from, to), 0, self.agenda.now(), &mut Stream::default())
    }

    /// When a message of a connection that is being made arrives.
    fn handshake_arrival(&mut self, from: HostId, to: HostId) -> Time {
        match self.connects_at_once {
            true => self.now(),
            false => self.control_arrival(from, to),
        }
    }

    /// Sends a segment. Returns when it arrives; never, as long as nothing passes.
    fn transmit(&mut self, to: SideId, segment: Segment) -> Time {
        let (from_host, to_host) = (self.side(to.other()).host, self.side(to).host);
        if !self.hosts[from_host.0].is_up {
            return Time::NEVER;
        }
        if self.network.is_cut(from_host, to_host) || !self.side(to).held.is_empty() {
            self.hold(to, self.side(to).held.len(), segment);
            return Time::NEVER;
        }
        let octets = if let Segment::Octets(octets) = &segment { octets.len() } else { 0 };
        let stream = &mut self.connections[to.connection].sides[to.side].stream;
        let at = self.network.arrival((from_host, to_host), octets, self.agenda.now(), stream);
        self.enter(at, Event::Arrives { to, segment });
        at
    }

    pub(super) fn arrive(&mut self, to: SideId, segment: Segment) {
        let (from_host, to_host) = (self.side(to.other()).host, self.side(to).host);
        if !self.passes(from_host, to_host) {
            if self.side(to.other()).is_forgotten && !matches!(segment, Segment::Reset) {
                return; // who would send it again knows nothing of it
            }
            // What is under way when a link is cut or a host goes down comes later, as TCP sends it again.
            self.hold(to, self.side(to).held_late, segment);
            self.side_mut(to).held_late += 1;
            return;
        }
        self.note(8, self.now().as_ns(), to.connection as u64 * 2 + to.side as u64);
        self.hear(to);
        let side = self.side_mut(to);
        match segment {
            Segment::Octets(octets) => {
                side.under_way -= octets.len();
                if side.is_closed {
                    // Nobody reads it: the kernel answers with a reset.
                    self.transmit(to.other(), Segment::Reset);
                    return;
                }
                side.received.extend(octets);
            }
            _ if side.is_closed => {}
            Segment::End => side.has_end = true,
            Segment::Reset => {
                side.has_end = true;
                side.is_shut = true;
                side.received.clear();
                side.error = Some(ECONNRESET);
            }
        }
        if let Some(file) = self.side(to).file {
            self.changed(file);
        }
    }

    /// Tells the other side that there is room again.
    fn make_room(&mut self, at: SideId) {
        let other = at.other();
        if !std::mem::take(&mut self.side_mut(other).wants_room) {
            return;
        }
        let (from, to) = (self.side(at).host, self.side(other).host);
        let when = self.control_arrival(from, to);
        self.enter(when, Event::Room { to: other });
    }

    pub(super) fn tell_room(&mut self, to: SideId) {
        self.side_mut(to).full_since = None;
        if let Some(file) = self.side(to).file {
            self.changed(file);
        }
    }

    /// A side sends no more.
    fn end(&mut self, side: SideId) {
        let state = self.connections[side.connection].state;
        let may_send =
            state == ConnectState::Connected || state == ConnectState::Connecting && side.side == 1;
        if !may_send || self.side(side).is_shut {
            return;
        }
        self.side_mut(side).is_shut = true;
        self.transmit(side.other(), Segment::End);
    }

    pub(super) fn close_stream(&mut self, side: SideId) {
        let closed = self.side_mut(side);
        let was_closed = std::mem::replace(&mut closed.is_closed, true);
        closed.file = None;
        let has_unread = !std::mem::take(&mut closed.received).is_empty();
        if was_closed {
            return; // it has given up, or its host has lost its power
        }
        match (self.connections[side.connection].state, side.side) {
            (ConnectState::Failed, _) => return,
            // The server may have it already: it hears of the end when its answer comes.
            (ConnectState::Connecting, 0) => return,
            _ => {}
        }
        if has_unread {
            // As TCP does: unread octets are lost, which the other side must learn.
            self.side_mut(side).is_shut = true;
            self.transmit(side.other(), Segment::Reset);
        } else {
            self.end(side);
        }
    }

    pub(super) fn close_listener(&mut self, file: FileId, listener: Listener) {
        self.listeners.retain(|&it| it != file);
        for side in listener.waiting {
            self.side_mut(side).is_closed = true;
            self.transmit(side.other(), Segment::Reset);
        }
    }

    pub(super) fn stream_readiness(&self, side: SideId) -> u32 {
        let connection = &self.connections[side.connection];
        let this = self.side(side);
        let mut ready = 0;
        match connection.state {
            ConnectState::Connecting => return 0,
            ConnectState::Failed => return (EPOLLIN | EPOLLOUT | EPOLLERR | EPOLLHUP) as u32,
            ConnectState::Connected => {}
        }
        if !this.received.is_empty() || this.has_end || this.error.is_some() {
            ready |= EPOLLIN;
        }
        if this.has_end {
            ready |= EPOLLRDHUP;
        }
        if this.is_shut || self.side(side.other()).room() > 0 {
            ready |= EPOLLOUT;
        }
        if this.error.is_some() {
            ready |= EPOLLERR | EPOLLHUP;
        }
        if this.has_end && this.is_shut {
            ready |= EPOLLHUP;
        }
        ready as u32
    }

    /// What was held between two hosts is under way again, unless the link is still cut: what is late keeps its place before the
    /// rest.
    pub(super) fn release(&mut self, a: HostId, b: HostId) {
        if !self.passes(a, b) || !self.passes(b, a) {
            return;
        }
        for id in self.sides_between(a, b) {
            for segment in self.side_mut(id).drop_held() {
                self.transmit(id, segment);
            }
        }
    }

    /// Both sides of each connection between two hosts.
    fn sides_between(&self, a: HostId, b: HostId) -> Vec<SideId> {
        let all = 0..self.connections.len();
        let sides = all.flat_map(|connection| [0, 1].map(|side| SideId { connection, side }));
        let is_between = |id: &SideId| {
            let hosts = (self.side(*id).host, self.side(id.other()).host);
            hosts == (a, b) || hosts == (b, a)
        };
        sides.filter(is_between).collect()
    }

    /// A host has lost its power: its sides are gone, and nobody hears of it. What it has sent and what is held up is gone as
    /// well, since nobody sends it again. What others send it waits: it is answered with resets.
    pub(super) fn forget_sides_of(&mut self, host: HostId) {
        for connection in &mut self.connections {
            for side in 0..2 {
                let [own, other] = connection.sides.get_disjoint_mut([side, 1 - side]).expect("two sides");
                if own.host != host {
                    continue;
                }
                own.file = None;
                own.is_closed = true;
                own.is_forgotten = true;
                own.received.clear();
                other.drop_held();
            }
        }
    }
}

/// How often Linux asks a host that does not answer, the first time apart: it gives up after 127 s.
const TRIES_MAX: usize = 6;
