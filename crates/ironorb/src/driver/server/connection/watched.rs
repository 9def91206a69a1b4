//! Requests of watched lanes: when they came, when a thread took them, when their replies left.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use ironorb_giop::connection::ServerConnection;

use super::Connection;
use crate::base::lane::LaneId;
use crate::base::time::Time;
use crate::base::watch::{MeasuredRequest, UpcallMark, upcall_ends};
use crate::connection::{Flags, Work};
use crate::driver::clock;
use crate::lane::{Counters, LaneWatch, RequestTimes};
use crate::object::request_facts::RequestFacts;
use crate::poa::servant::{ReplySink, Results};

impl Connection {
    /// Notes that bytes have come, or that the connection was found to have some, if its requests are watched now.
    pub(in crate::driver::server) fn note_arrived(&self) {
        if self.session.is_on(Flags::WATCHED) && self.orb.counters.watch_of(self.lane).is_some() {
            self.arrived.store(clock::now().as_nanos(), Ordering::Relaxed);
        }
    }

    /// When the bytes came that have been received last, if requests are watched now.
    pub(super) fn arrived_now(&self) -> Option<Time> {
        if !self.session.is_on(Flags::WATCHED) {
            return None;
        }
        match self.arrived.load(Ordering::Relaxed) {
            0 => None,
            at => Some(Time::from_nanos(at)),
        }
    }

    /// Notes when a request came that a thread has taken; `None` unless it is to be measured.
    pub(super) fn note_coming(&self, arrived: Option<Time>, work: &Work) -> Option<Coming> {
        if !self.session.is_on(Flags::WATCHED) {
            return None;
        }
        self.orb.counters.watch_of(self.lane)?;
        // A request that came before the ORB began to watch, or by another way, has no arrival.
        Some(Coming { arrived: arrived.unwrap_or_else(clock::now), sent: self.sent(work) })
    }

    /// When the client sent a request, on the clock that this machine's clients tell it by.
    fn sent(&self, work: &Work) -> Option<Time> {
        let Work::Request(message) = work else { return None };
        let stamp = RequestFacts::of(&message.parse_request().ok()?).deadline()?;
        self.stream.is_from_this_machine().then(|| Time::from_nanos(stamp.sent_ns))
    }

    /// Carries out a request that a thread has taken, and measures it if it is to be measured.
    pub(super) fn watching(
        &self,
        came: Option<Coming>,
        sink: &dyn ReplySink,
        carry_out: impl FnOnce(&dyn ReplySink),
    ) {
        match came.zip(self.orb.counters.watch_of(self.lane)) {
            Some((came, watch)) => self.measure(watch, came, sink, carry_out),
            None => carry_out(sink),
        }
    }

    fn measure(
        &self,
        watch: &LaneWatch,
        came: Coming,
        sink: &dyn ReplySink,
        carry_out: impl FnOnce(&dyn ReplySink),
    ) {
        let taken = came.taken_now();
        let measured = MeasuredRequest::begin();
        let lane = WatchedLane { counters: &self.orb.counters, lane: self.lane, came };
        let sink = WatchedSink { sink, lane, replied: Cell::new(None) };
        carry_out(&sink);
        if self.session.must_send_after_upcall() {
            self.send_held();
            if sink.replied.get().is_some() {
                sink.note_replied();
            }
        }
        if let Some(upcall) = measured.end() {
            watch.add(&RequestTimes { replied: sink.replied.get(), ..taken }, &upcall);
        }
    }
}

/// When a request came.
#[derive(Clone, Copy)]
pub(super) struct Coming {
    arrived: Time,
    /// When a client on this machine sent it, on the clock [`clock::steady`].
    sent: Option<Time>,
}

impl Coming {
    /// The times of the request, which the calling thread takes now. Clocks that are not the same after all show as a sending
    /// that is to come, and count as unknown.
    fn taken_now(&self) -> RequestTimes {
        let now = clock::steady();
        let since_sending = self.sent.filter(|sent| *sent <= now).map(|sent| now.since(sent));
        RequestTimes { arrived: self.arrived, taken: clock::now(), since_sending, replied: None }
    }
}

/// Passes replies on, and notes when they are written. What is written first ends the upcall.
struct WatchedSink<'s> {
    sink: &'s dyn ReplySink,
    lane: WatchedLane<'s>,
    replied: Cell<Option<Time>>,
}

/// The lane of a measured request, and when that came.
#[derive(Clone, Copy)]
struct WatchedLane<'s> {
    counters: &'s Arc<Counters>,
    lane: LaneId,
    came: Coming,
}

impl WatchedSink<'_> {
    fn note_replied(&self) {
        self.replied.set(Some(clock::now()));
    }
}

impl ReplySink for WatchedSink<'_> {
    fn inner(&self) -> Option<&dyn ReplySink> {
        Some(self.sink)
    }

    fn with(&self, write: &mut dyn FnMut(&mut ServerConnection)) {
        upcall_ends();
        self.sink.with(write);
        self.note_replied();
    }

    fn reply(&self, results: &Results<'_>) {
        upcall_ends();
        self.sink.reply(results);
        self.note_replied();
    }

    fn later(&self) -> Option<Box<dyn ReplySink + Send>> {
        WatchedReply::boxed(self.sink.later()?, &self.lane)
    }
}

/// The sink of a measured request that is answered after its upcall, or that waits for its upcall without a thread.
struct WatchedReply {
    sink: Box<dyn ReplySink + Send>,
    counters: Arc<Counters>,
    lane: LaneId,
    came: Coming,
    /// The upcall that is to answer later; `None` where there was none yet.
    upcall: Option<UpcallMark>,
    waited: Cell<Waited>,
}

/// What has become of a request that waits for its upcall.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Waited {
    /// No thread carries it out.
    Waits,
    /// The thread that has the sink carries it out. When the reply was written, if it was.
    IsCarriedOut(Option<Time>),
}

impl WatchedReply {
    fn boxed(sink: Box<dyn ReplySink + Send>, of: &WatchedLane<'_>) -> Option<Box<dyn ReplySink + Send>> {
        Some(Box::new(WatchedReply {
            sink,
            counters: of.counters.clone(),
            lane: of.lane,
            came: of.came,
            upcall: UpcallMark::of_this_thread(),
            waited: Cell::new(Waited::Waits),
        }))
    }

    /// Adds a reply that was written from `begun` until now. That of a request that has waited counts with its upcall, if there
    /// is one.
    fn add(&self, begun: Time) {
        let now = clock::now();
        match (self.waited.get(), self.counters.watch_of(self.lane)) {
            (Waited::IsCarriedOut(_), _) => self.waited.set(Waited::IsCarriedOut(Some(now))),
            (Waited::Waits, Some(watch)) if self.upcall.is_some() => {
                watch.reply.add(now.since(begun).as_nanos() as u64);
            }
            _ => {}
        }
    }
}

impl ReplySink for WatchedReply {
    fn inner(&self) -> Option<&dyn ReplySink> {
        Some(&*self.sink)
    }

    fn with(&self, write: &mut dyn FnMut(&mut ServerConnection)) {
        let is_carried_out = self.waited.get() != Waited::Waits;
        if is_carried_out || self.upcall.is_some() && self.upcall == UpcallMark::of_this_thread() {
            upcall_ends();
        }
        let (begun, mut is_written) = (clock::now(), false);
        self.sink.with(&mut |connection| {
            write(connection);
            is_written = true;
        });
        if is_written {
            self.add(begun);
        }
    }

    fn carry_out_waited(&self, carry_out: &mut dyn FnMut()) {
        let Some(watch) = self.counters.watch_of(self.lane) else { return carry_out() };
        let taken = self.came.taken_now();
        let measured = MeasuredRequest::begin();
        self.waited.set(Waited::IsCarriedOut(None));
        carry_out();
        if let (Waited::IsCarriedOut(replied), Some(upcall)) =
            (self.waited.replace(Waited::Waits), measured.end())
        {
            watch.add(&RequestTimes { replied, ..taken }, &upcall);
        }
    }

    fn later(&self) -> Option<Box<dyn ReplySink + Send>> {
        let of = WatchedLane { counters: &self.counters, lane: self.lane, came: self.came };
        WatchedReply::boxed(self.sink.later()?, &of)
    }
}
