//! What a connection does whose other side does not answer: it is asked for again, and ends at last, as with Linux.

use std::ffi::c_int;
use std::time::Duration;

use ironorb_model::Time;
use libc::{
    EINVAL, ETIMEDOUT, IPPROTO_TCP, SO_KEEPALIVE, SOL_SOCKET, TCP_KEEPCNT, TCP_KEEPIDLE, TCP_KEEPINTVL,
    TCP_USER_TIMEOUT,
};

use super::{Segment, SideId};
use crate::world::descriptors::FileId;
use crate::world::{Answer, Event, HostId, State};

/// What a program says of it. Streams that are accepted have the options of their listener.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TcpTimeouts {
    /// `TCP_USER_TIMEOUT`; `None`: the system's times.
    pub(crate) user_timeout: Option<Duration>,
    /// `SO_KEEPALIVE`: whether a side asks for an answer when nothing was sent for long.
    pub(crate) keeps_alive: bool,
    /// `TCP_KEEPIDLE`: how long that is.
    pub(crate) idle: Duration,
    /// `TCP_KEEPINTVL`: how long after that it asks again.
    pub(crate) interval: Duration,
    /// `TCP_KEEPCNT`: how often it asks in vain.
    pub(crate) probes: u32,
}

impl Default for TcpTimeouts {
    fn default() -> TcpTimeouts {
        TcpTimeouts {
            user_timeout: None,
            keeps_alive: false,
            idle: Duration::from_secs(7_200),
            interval: Duration::from_secs(75),
            probes: 9,
        }
    }
}

impl TcpTimeouts {
    /// Sets an option of the system; `None` if it is none of these.
    pub(crate) fn set(&mut self, level: c_int, name: c_int, value: c_int) -> Option<Answer<()>> {
        let within = |most: c_int| if (1..=most).contains(&value) { Ok(value as u32) } else { Err(EINVAL) };
        let seconds = || within(32_767).map(|seconds| Duration::from_secs(seconds.into()));
        Some(match (level, name) {
            (SOL_SOCKET, SO_KEEPALIVE) => {
                self.keeps_alive = value != 0;
                Ok(())
            }
            (IPPROTO_TCP, TCP_USER_TIMEOUT) if value < 0 => Err(EINVAL),
            (IPPROTO_TCP, TCP_USER_TIMEOUT) => {
                let time = Duration::from_millis(value as u64);
                self.user_timeout = Some(time).filter(|time| !time.is_zero());
                Ok(())
            }
            (IPPROTO_TCP, TCP_KEEPIDLE) => seconds().map(|time| self.idle = time),
            (IPPROTO_TCP, TCP_KEEPINTVL) => seconds().map(|time| self.interval = time),
            (IPPROTO_TCP, TCP_KEEPCNT) => within(127).map(|count| self.probes = count),
            _ => return None,
        })
    }

    /// The value of an option of the system; `None` if it is none of these.
    pub(crate) fn get(&self, level: c_int, name: c_int) -> Option<c_int> {
        Some(match (level, name) {
            (SOL_SOCKET, SO_KEEPALIVE) => self.keeps_alive.into(),
            (IPPROTO_TCP, TCP_USER_TIMEOUT) => self.user_timeout.map_or(0, |time| time.as_millis() as c_int),
            (IPPROTO_TCP, TCP_KEEPIDLE) => self.idle.as_secs() as c_int,
            (IPPROTO_TCP, TCP_KEEPINTVL) => self.interval.as_secs() as c_int,
            (IPPROTO_TCP, TCP_KEEPCNT) => self.probes as c_int,
            _ => return None,
        })
    }
}

/// How long Linux sends again what is not answered, unless the program says otherwise: `tcp_retries2`, which is 15.
const SENDING_MAX: Duration = Duration::from_millis(924_600);

impl State {
    /// Whether what one host sends another comes there.
    pub(super) fn passes(&self, from: HostId, to: HostId) -> bool {
        self.hosts[to.0].is_up && !self.network.is_cut(from, to)
    }

    /// What a side's program has said; `None` if that has closed it.
    pub(super) fn tcp_timeouts_of(&self, side: SideId) -> Option<TcpTimeouts> {
        Some(self.files.get(self.side(side).file?)?.tcp_timeouts)
    }

    /// What was sent to a side stays without an answer until something passes again. Its sender gives up after a time.
    pub(super) fn hold(&mut self, to: SideId, place: usize, segment: Segment) {
        let (now, from) = (self.now(), to.other());
        self.side_mut(to).held.insert(place, segment);
        if self.side(to).held_since.is_none()
            && let Some(tcp_timeouts) = self.tcp_timeouts_of(from)
        {
            self.side_mut(to).held_since = Some(now);
            let most = tcp_timeouts.user_timeout.unwrap_or(SENDING_MAX);
            self.enter(now + most, Event::GivesUp { from, since: now });
        }
    }

    /// The other side answers and takes nothing, which Linux bears for as long as the program allows it.
    pub(super) fn finds_no_room(&mut self, from: SideId) {
        let now = self.now();
        if self.side(from).full_since.is_none()
            && let Some(most) = self.tcp_timeouts_of(from).and_then(|tcp_timeouts| tcp_timeouts.user_timeout)
        {
            self.side_mut(from).full_since = Some(now);
            self.enter(now + most, Event::GivesUp { from, since: now });
        }
    }

    /// If a side has had no answer since then, its connection ends.
    pub(in crate::world) fn give_up(&mut self, from: SideId, since: Time) {
        let waits =
            self.side(from.other()).held_since == Some(since) || self.side(from).full_since == Some(since);
        if let Some(file) = self.side(from).file.filter(|_| waits) {
            self.time_out(from, file);
        }
    }

    /// Something has passed: both sides know that the other one is there.
    pub(super) fn hear(&mut self, side: SideId) {
        self.side_mut(side).silent_since = None;
        self.side_mut(side.other()).silent_since = None;
    }

    /// Nothing passes between two hosts from now on. Sides that keep their connections alive notice it although they send nothing.
    /// Before that they ask as well, are answered, and nothing comes of it.
    pub(in crate::world) fn lose_touch(&mut self, a: HostId, b: HostId) {
        let now = self.now();
        for from in self.sides_between(a, b) {
            if let Some(timeouts) = self.tcp_timeouts_of(from)
                && timeouts.keeps_alive
                && self.side(from).silent_since.is_none()
            {
                self.side_mut(from).silent_since = Some(now);
                self.enter(now + timeouts.idle, Event::Probes { from, since: now, unanswered: 0 });
            }
        }
    }

    /// A side that has heard nothing since then asks whether the other one is there.
    pub(in crate::world) fn probe(&mut self, from: SideId, since: Time, unanswered: u32) {
        let (to, now) = (from.other(), self.now());
        let Some((file, tcp_timeouts)) = self.side(from).file.zip(self.tcp_timeouts_of(from)) else { return };
        // What is held is sent again and again, and needs no other question.
        if self.side(from).silent_since != Some(since) || self.side(to).held_since.is_some() {
            return;
        }
        if self.passes(self.side(from).host, self.side(to).host) {
            self.side_mut(from).silent_since = None;
            if self.side(to).is_forgotten {
                self.transmit(from, Segment::Reset); // the host is there, and knows no such connection
            }
            return;
        }
        let is_enough = match tcp_timeouts.user_timeout {
            Some(most) => unanswered > 0 && now.since(since) >= most,
            None => unanswered >= tcp_timeouts.probes,
        };
        if is_enough {
            return self.time_out(from, file);
        }
        self.enter(now + tcp_timeouts.interval, Event::Probes { from, since, unanswered: unanswered + 1 });
    }

    /// The connection of a side ends, without a word to the other one: that hears of it when it sends.
    fn time_out(&mut self, side: SideId, file: FileId) {
        self.note(16, self.now().as_ns(), side.connection as u64 * 2 + side.side as u64);
        let ended = self.side_mut(side);
        ended.error = Some(ETIMEDOUT);
        ended.has_end = true;
        ended.is_shut = true;
        ended.is_closed = true;
        ended.is_forgotten = true;
        ended.silent_since = None;
        self.side_mut(side.other()).drop_held();
        self.changed(file);
    }
}
