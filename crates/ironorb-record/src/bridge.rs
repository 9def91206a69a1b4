//! Calls that a bridge passes on.

use std::sync::Arc;

use ironorb_dynamic::bridge::{self, Observer, Passed};
use ironorb_model::record::{Outcome, hash_of_object};

use crate::Recorder;
use crate::calls::EndedCall;
use crate::clock;
use crate::threads::ThreadTag;

/// Octets of a body that are recorded at most.
pub const BODY_OCTETS_MAX: usize = 64 << 10;

impl Recorder {
    /// The observer of a bridge whose calls are recorded: for
    /// [`BridgeOptions::observer`](ironorb_dynamic::bridge::BridgeOptions::observer). Each client's connection counts as a thread.
    /// The time of a call is that of the bridge, which lies before the server. With `bodies` those of requests and replies are
    /// recorded, up to [`BODY_OCTETS_MAX`] octets of each.
    pub fn observer(&self, bodies: bool) -> Observer {
        let queue = self.queue.clone();
        Arc::new(move |passed: &Passed<'_>| {
            let now = clock::now_ns();
            let time_ns = u64::try_from(passed.time.as_nanos()).unwrap_or(u64::MAX);
            let client = passed.client.unwrap_or(0);
            let origin = ThreadTag { number: client as u32, name: format!("client {client}").into() };
            let cut = |body: Option<&[u8]>| {
                let body = body.unwrap_or_default();
                body[..body.len().min(BODY_OCTETS_MAX)].to_vec()
            };
            queue.call(EndedCall {
                number: queue.number().number,
                within: None,
                origin,
                server: format!("{}:{}", passed.target.0, passed.target.1).into(),
                object: hash_of_object(passed.key),
                operation: passed.operation.into(),
                interface: passed.interface.into(),
                is_oneway: passed.is_oneway,
                begin_ns: queue.since_begin(now.saturating_sub(time_ns)),
                time_ns,
                request_octets: passed.request_bytes,
                reply_octets: passed.reply_bytes,
                outcome: outcome(&passed.outcome),
                bodies: bodies.then(|| (cut(passed.request_body), cut(passed.reply_body))),
            });
        })
    }
}

fn outcome(outcome: &bridge::Outcome<'_>) -> Outcome {
    match outcome {
        bridge::Outcome::Results => Outcome::Results,
        bridge::Outcome::UserException(id) => Outcome::UserException((*id).to_owned()),
        bridge::Outcome::SystemException(e) => Outcome::SystemException(e.kind.repository_id().to_owned()),
        bridge::Outcome::GivenUp => Outcome::Abandoned,
        bridge::Outcome::Sent => Outcome::Oneway,
    }
}
