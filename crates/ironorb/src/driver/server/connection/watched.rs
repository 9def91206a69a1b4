//! Requests of watched lanes: when they came, when a thread took them, when their replies left.

use std::cell::Cell;
use std::sync::atomic::Ordering;

use ironorb_giop::connection::ServerConnection;
use ironorb_giop::message::RequestId;
use ironorb_giop::service_context::ListenPoint;

use super::Connection;
use crate::base::time::Time;
use crate::base::watch::{MeasuredRequest, upcall_ends};
use crate::connection::{Flags, OnCancel};
use crate::driver::clock;
use crate::lane::{LaneWatch, RequestTimes};
use crate::poa::servant::{ReplySink, Results};
use crate::transport::CodePoint;

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

    /// Carries out a request that a thread has taken, and measures it if the ORB watches now.
    pub(super) fn watching(
        &self,
        arrived: Option<Time>,
        sink: &dyn ReplySink,
        carry_out: impl FnOnce(&dyn ReplySink),
    ) {
        match self.orb.counters.watch_of(self.lane) {
            Some(watch) if self.session.is_on(Flags::WATCHED) => {
                self.measure(watch, arrived, sink, carry_out)
            }
            _ => carry_out(sink),
        }
    }

    fn measure(
        &self,
        watch: &LaneWatch,
        arrived: Option<Time>,
        sink: &dyn ReplySink,
        carry_out: impl FnOnce(&dyn ReplySink),
    ) {
        let taken = clock::now();
        let measured = MeasuredRequest::begin();
        let sink = WatchedSink { sink, replied: Cell::new(None) };
        carry_out(&sink);
        if self.session.must_send_after_upcall() {
            self.send_held();
            sink.note_replied();
        }
        if let Some(upcall) = measured.end() {
            // A request that came before the ORB began to watch, or by another way, has no arrival.
            let arrived = arrived.unwrap_or(taken);
            watch.add(&RequestTimes { arrived, taken, replied: sink.replied.get() }, &upcall);
        }
    }
}

/// Passes replies on, and notes when they are written. What is written first ends the upcall.
struct WatchedSink<'s> {
    sink: &'s dyn ReplySink,
    replied: Cell<Option<Time>>,
}

impl WatchedSink<'_> {
    fn note_replied(&self) {
        self.replied.set(Some(clock::now()));
    }
}

impl ReplySink for WatchedSink<'_> {
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

    fn send_pieces(&self, pieces: &[&[u8]]) -> usize {
        self.sink.send_pieces(pieces)
    }

    fn break_off(&self) {
        self.sink.break_off();
    }

    fn cut_off(&self) {
        self.sink.cut_off();
    }

    fn later(&self) -> Option<Box<dyn ReplySink + Send>> {
        self.sink.later()
    }

    fn is_cancelled(&self, id: RequestId) -> bool {
        self.sink.is_cancelled(id)
    }

    fn on_cancel(&self, id: RequestId, then: OnCancel) {
        self.sink.on_cancel(id, then);
    }

    fn is_client_gone(&self) -> bool {
        self.sink.is_client_gone()
    }

    fn client(&self) -> Option<u64> {
        self.sink.client()
    }

    fn is_from_this_machine(&self) -> bool {
        self.sink.is_from_this_machine()
    }

    fn mark_packets(&self, code_point: CodePoint) {
        self.sink.mark_packets(code_point);
    }

    fn use_bidirectional(&self, listen_points: &[ListenPoint]) {
        self.sink.use_bidirectional(listen_points);
    }
}
