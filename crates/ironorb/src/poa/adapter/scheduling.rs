//! What a request tells of its urgency before its upcall. Runs no code of the program: a priority is what the request asks for,
//! before the program's transform, and operations are looked up in tables.

use std::sync::Arc;

use ironorb_giop::message::{Message, MessageType};

use super::priorities::asked_for;
use super::{Adapter, Session, object_key_of};
use crate::base::time::Time;
use crate::object::deadline::Deadline;
use crate::object::priority::Priority;
use crate::object::request_facts::RequestFacts;
use crate::object::scheduling_context::SchedulingParameter;
use crate::object::scheduling_facts::SchedulingFacts;
use crate::object::timing::Timing;
use crate::object::wire_numbers::SCHEDULING_CONTEXT;
use crate::poa::key::{self, ParsedKey};
use crate::poa::servant::Servant;
use crate::poa::{ObjectSelector, PoaInner};

impl Adapter {
    /// The urgency of a request that has come now, as far as the request and its operation tell. The request may bind its
    /// connection to a band.
    #[cold]
    pub(crate) fn scheduling_facts(
        &self,
        message: &Message,
        session: &Session,
        now: Time,
    ) -> SchedulingFacts {
        let Some((poa, naming, own)) = object_key_of(message).and_then(|key| self.object_named(key)) else {
            return SchedulingFacts::NOTHING;
        };
        let request = match message.header().kind {
            MessageType::Request => message.parse_request().ok(),
            _ => None,
        };
        let facts = request.as_ref().map(RequestFacts::of);
        let told = facts.as_ref().map_or(session.told_priority(None), |it| self.told_priority(it, session));
        let timing = facts.as_ref().and_then(|it| poa.servant_now(naming)?.timing_of(it.operation()));
        let thread = facts.as_ref().and_then(|it| self.thread_of(it)).unwrap_or_default();
        let due = facts.as_ref().map_or(Deadline::NEVER, |it| deadline(it, timing, session, now));
        let deadline = due.min(Deadline::after(now, thread.deadline.into()));
        let precedence = poa.precedence(own).zip(self.real_time.as_ref());
        let priority = precedence.map(|(precedence, real_time)| asked_for(precedence, told, real_time));
        SchedulingFacts { priority, deadline, ..SchedulingFacts::of_operation(timing).in_thread(&thread) }
    }

    /// How urgent the distributable thread of a request is, in an ORB that has a scheduler of such threads.
    fn thread_of(&self, facts: &RequestFacts<'_>) -> Option<SchedulingParameter> {
        if !self.server_contexts.has(SCHEDULING_CONTEXT) {
            return None;
        }
        facts.distributable_thread().map(|(_, parameter)| parameter)
    }

    /// The adapter of an object, how the key names the object in it, and the priority that the key tells, if the adapter
    /// admits it.
    fn object_named<'k>(
        &self,
        key: &'k [u8],
    ) -> Option<(Arc<PoaInner>, ObjectSelector<'k>, Option<Priority>)> {
        let (number, key) = key::split_priority(key).map_or((None, key), |(number, key)| (Some(number), key));
        let (poa, naming) = match key::parse_without_priority(key) {
            ParsedKey::Slot { nonce, poa, object } if nonce == self.nonce => {
                (self.directory.in_slot(poa)?, ObjectSelector::Slot(object))
            }
            ParsedKey::Path { nonce, instance, path, id, .. } => {
                let found = self.directory.at_path(path).filter(|found| found.accepts(nonce, instance))?;
                (found, ObjectSelector::Id(id))
            }
            _ => return None,
        };
        let is_admitted = |own: &Priority| self.check_own_priority(&poa.policies, *own).is_ok();
        let own = number.and_then(Priority::new).filter(is_admitted);
        Some((poa, naming, own))
    }
}

impl PoaInner {
    /// The servant of an object that is active now, or the default servant. Counts no request.
    fn servant_now(&self, naming: ObjectSelector<'_>) -> Option<Arc<dyn Servant>> {
        let active = match naming {
            ObjectSelector::Slot(slot) => self.objects.servant_in_slot(slot),
            ObjectSelector::Id(id) => self.objects.servant_of(id),
        };
        active.map(|servant| servant.whole()).or_else(|| self.default_servant.cloned())
    }
}

/// The deadline that the request carries, or else that of its operation from now on.
fn deadline(facts: &RequestFacts<'_>, timing: Option<&Timing>, session: &Session, now: Time) -> Deadline {
    match facts.deadline() {
        Some(stamp) => session.deadline(&stamp, now),
        None => Deadline::after(now, timing.and_then(|timing| timing.deadline).into()),
    }
}
