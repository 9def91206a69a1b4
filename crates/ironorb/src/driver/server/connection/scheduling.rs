//! How urgent the requests of a connection are, for a lane that serves them in an order of its own.

use super::Connection;
use crate::base::time::Time;
use crate::connection::{CurrentRequest, Work};
use crate::object::scheduling_facts::SchedulingFacts;

impl Connection {
    /// The urgency of a request that has come now.
    pub(in crate::driver::server) fn scheduling_facts(
        &self,
        request: &CurrentRequest,
        now: Time,
    ) -> SchedulingFacts {
        match &request.work {
            Work::Request(message) | Work::Locate(message) => {
                self.orb.adapter.scheduling_facts(message, &self.agreements, now)
            }
            Work::TooLarge(_) => SchedulingFacts::NOTHING,
        }
    }
}
