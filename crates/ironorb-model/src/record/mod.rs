//! What calls of programs look like, in files: recordings of running programs ([`RecordWriter`], [`Recording`]), the workload
//! that one is ([`workload`]), and what simulated programs do for other tools, as packets ([`pcapng`]) and as spans of time
//! ([`chrome`]; of a run of a scenario: [`Timeline`]).
//!
//! A recording is a file of lines, each a JSON object. Lines can be read while the program runs, by any tool; a program that
//! is killed loses the last one at most; and they are compressed to a ninth by whatever compresses. What repeats has a line and a
//! number of its own: threads, servers, operations. A call then takes some 150 octets.
//!
//! | line | says |
//! |---|---|
//! | `{"recording":{…}}` | that a program begins to record: [`Head`]. A file may have several |
//! | `{"thread":{"n":1,"name":"main"}}` | a thread, or a client's connection |
//! | `{"server":{"n":1,"address":"10.0.0.2:2810"}}` | a server that is called |
//! | `{"operation":{"n":1,"name":"ping","interface":"IDL:Bank:1.0"}}` | an operation; `"oneway":true` if it is one |
//! | `{"call":{…}}` | a call, as its client saw it: [`Call`](CallSeen) |
//! | `{"served":{…}}` | a request, as its server saw it: [`Served`](RequestSeen) |
//! | `{"dropped":3}` | so many calls in all were not written so far: the disk did not keep up |
//! | `{"end":{"calls":7,"served":0,"dropped":3}}` | that the program ended the recording in order |
//!
//! Times are nanoseconds since the recording's begin, by the clock that no setting of the time changes. Octets are those of
//! bodies: arguments, results or exceptions, without headers and service contexts.

pub mod chrome;
mod format;
mod hosts;
pub mod pcapng;
mod recording;
mod timeline;
mod workload;

use crate::Time;

pub use format::{
    CALL_CONTEXT, CallId, CallSeen, EncodedCallId, Head, Origin, Outcome, RecordWriter, RequestSeen,
    hash_of_object,
};
pub use recording::{
    BadRecording, Call, Client, OperationName, Reading, Recording, Section, ServedBy, Service,
};
pub use timeline::{NewCall, Pause, Timeline, What};
pub use workload::{ArrivalsOf, Workload, WorkloadOptions, workload};

/// How much of a run is in a file that must not grow beyond a bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// All that happened before is there.
    pub until: Time,
    /// Whether that is the whole run.
    pub is_whole: bool,
}
