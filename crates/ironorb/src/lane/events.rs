//! The table of events that are counted where they happen, all of them rare.

use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! events {
    ($($(#[$doc:meta])* $name:ident $metric:literal $(($label:literal $value:literal))? $help:literal;)*) => {
        /// What is counted when it happens. A line of the table is all that a new counter needs, beside the place that
        /// [counts](super::Counters::count) it.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Event {
            $(#[doc = $help] $name,)*
        }

        impl Event {
            /// All events, in the order of the table.
            pub(crate) const ALL: &[Event] = &[$(Event::$name),*];

            /// The counter's name.
            pub(crate) const fn metric(self) -> &'static str {
                match self { $(Event::$name => $metric,)* }
            }

            /// What tells the event from others with the same counter.
            pub(crate) const fn label(self) -> Option<(&'static str, &'static str)> {
                match self { $(Event::$name => events!(@ $($label $value)?),)* }
            }

            /// What is counted, in a sentence.
            pub(crate) const fn help(self) -> &'static str {
                match self { $(Event::$name => $help,)* }
            }
        }
    };
    (@) => { None };
    (@ $label:literal $value:literal) => { Some(($label, $value)) };
}

events! {
    Reconnected "reconnects_total" "Connections made to servers that had been connected before.";
    ConnectFailed "connects_failed_total" ("reason" "refused") "Attempts to connect that have failed.";
    ConnectTimedOut "connects_failed_total" ("reason" "timeout") "Attempts to connect that have failed.";
    NoPlaceToConnect "connects_failed_total" ("reason" "limit") "Attempts to connect that have failed.";
    CallTimedOut "calls_failed_total" ("exception" "TIMEOUT") "Calls that have ended in a system exception.";
    CallTransient "calls_failed_total" ("exception" "TRANSIENT") "Calls that have ended in a system exception.";
    CallLost "calls_failed_total" ("exception" "COMM_FAILURE") "Calls that have ended in a system exception.";
    CallFailed "calls_failed_total" ("exception" "other") "Calls that have ended in a system exception.";
    CallResent "calls_resent_total" "Times that a call was sent again.";
    CallForwarded "calls_forwarded_total" "Forwards that calls have followed.";
    OnewayLost "oneways_lost_total" "Oneways that were lost, or may have been lost, with their connections.";
    ConnectionRefused "connections_refused_total" "Accepted connections closed at once: serverConnectionsMax.";
    ConnectionHandedDown "connections_handed_down_total" "Connections to a lane above their peer's limit.";
    AcceptFailed "accepts_failed_total" "Accepts that have failed, as for lack of descriptors.";
    RequestBeyondLimit "requests_refused_total" ("reason" "requests") "Requests refused for lack of room.";
    RequestBeyondThreads "requests_refused_total" ("reason" "threads") "Requests refused for lack of room.";
    RequestDisplaced "requests_refused_total" ("reason" "displaced") "Requests refused for lack of room.";
    RequestNotInTime "requests_refused_total" ("reason" "deadline") "Requests refused for lack of room.";
    RequestTooLarge "requests_refused_total" ("reason" "size") "Requests refused for lack of room.";
    RequestCancelled "cancel_requests_total" "CancelRequest messages that have come.";
    RequestUnanswerable "requests_dropped_total" "Requests not carried out, because their client had gone.";
    ThreadBorrowed "threads_borrowed_total" "Times that a request was served by a thread of a less urgent lane.";
    ServantHelped "helpers_total" "Times that a further thread served a connection whose servant blocked.";
    ReaderCutOff "readers_cut_off_total" ("reason" "memory") "Connections closed because their client read no replies.";
    ReaderGivenUp "readers_cut_off_total" ("reason" "time") "Connections closed because their client read no replies.";
    AcceptedIdle "connections_idle_closed_total" ("direction" "in") "Connections closed because they were idle.";
    ConnectedIdle "connections_idle_closed_total" ("direction" "out") "Connections closed because they were idle.";
    MessageUnfinished "messages_unfinished_total" "Connections closed because a message did not end in time.";
    UpcallOverran "upcalls_overrun_total" "Upcalls that ran longer than the wcet of their operation.";
    DeadlineMissed "deadlines_missed_total" "Upcalls that ended after the deadline of their operation.";
    PromiseBroken "promises_broken_total" "Windows of calls in which a statistical operation missed too many deadlines.";
    CachedReadMissed "cache_misses_total" "Cached reads that found nothing fresh enough, and asked.";
    CacheFilled "cache_fills_total" ("side" "client") "States of objects that were given to clients to hold.";
    CacheProbed "cache_probes_total" ("side" "client") "Answered questions of clients what has changed.";
    CacheProbeCarried "cache_probes_carried_total" ("side" "client") "Questions what has changed that calls carried, and their replies answered.";
    CacheUpdated "cache_updates_total" ("side" "client") "Changed states in answers to probes.";
    StreamMalformed "streams_malformed_total" "Connections ended because their bytes made no sense.";
}

/// A count for each event.
#[derive(Debug)]
pub(crate) struct Events([AtomicU64; Event::ALL.len()]);

impl Default for Events {
    fn default() -> Events {
        Events([const { AtomicU64::new(0) }; Event::ALL.len()])
    }
}

impl Events {
    pub(super) fn add(&self, event: Event, count: u64) {
        self.0[event as usize].fetch_add(count, Ordering::Relaxed);
    }

    /// How often an event has happened.
    pub(crate) fn get(&self, event: Event) -> u64 {
        self.0[event as usize].load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    #[test]
    fn counters_with_one_name_have_one_help_and_different_labels() {
        let mut helps = BTreeMap::new();
        let mut seen = BTreeSet::new();
        for &event in Event::ALL {
            assert!(event.metric().ends_with("_total"), "{event:?}");
            assert_eq!(*helps.entry(event.metric()).or_insert(event.help()), event.help(), "{event:?}");
            assert!(seen.insert((event.metric(), event.label())), "{event:?}");
            let labels = Event::ALL.iter().filter(|other| other.metric() == event.metric());
            let names: BTreeSet<_> = labels.map(|other| other.label().map(|(name, _)| name)).collect();
            assert_eq!(names.len(), 1, "{event:?} has the label that its siblings have");
        }
    }

    #[test]
    fn each_event_has_a_count_of_its_own() {
        let events = Events::default();
        events.add(Event::OnewayLost, 3);
        events.add(Event::OnewayLost, 1);
        let sum: u64 = Event::ALL.iter().map(|&event| events.get(event)).sum();
        assert_eq!((events.get(Event::OnewayLost), sum), (4, 4));
    }
}
