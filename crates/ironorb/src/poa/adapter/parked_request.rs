//! Requests that wait without a thread: for a manager that holds requests, or for the main thread. Nothing
//! here blocks.

use std::sync::Arc;

use ironorb_giop::TransmissionCodeSets;
use ironorb_giop::message::Message;

use super::ToldPriority;
use super::serving::{ParsedRequest, WaitCause, answer_locate, cannot_wait};
use crate::interceptor::{FreshSlots, SlotValue};
use crate::object::deadline::Deadline;
use crate::object::operation::Raised;
use crate::poa::servant::ReplySink;
use crate::poa::servant::{Later, Responder};
use crate::poa::{AdapterHost, HoldMode, MainThreadRequest, PoaManager, Refusal};

/// A request that waits. Dropping it answers it with TRANSIENT.
pub(crate) struct ParkedRequest {
    message: Message,
    client: Option<u64>,
    /// `None` once it has been answered.
    place: Option<ReplyDestination>,
    orb: Arc<dyn AdapterHost>,
}

/// Where the reply goes.
enum ReplyDestination {
    Request {
        later: Box<Later>,
        code_sets: TransmissionCodeSets,
        deadline: Deadline,
        told: ToldPriority,
        /// The values that interceptors have put into the slots.
        slots: Option<Vec<SlotValue>>,
    },
    Locate(Box<dyn ReplySink + Send>),
}

impl ParkedRequest {
    /// Parks a Request with a copy of its message, so that the connection can go on. `None` when the
    /// connection owes too many replies.
    pub(super) fn request(
        message: &Message,
        (code_sets, deadline, told): (TransmissionCodeSets, Deadline, ToldPriority),
        responder: &Responder<'_>,
        orb: &Arc<dyn AdapterHost>,
    ) -> Option<ParkedRequest> {
        let later = Box::new(responder.later_outside_upcall()?);
        let slots = responder.interception().map(|_| FreshSlots::of_this_thread());
        Some(ParkedRequest {
            message: message.clone(),
            client: responder.client(),
            place: Some(ReplyDestination::Request { later, code_sets, deadline, told, slots }),
            orb: orb.clone(),
        })
    }

    /// Parks a LocateRequest. `None` when the connection owes too many replies.
    pub(super) fn locate(
        message: &Message,
        sink: &dyn ReplySink,
        orb: &Arc<dyn AdapterHost>,
    ) -> Option<ParkedRequest> {
        Some(ParkedRequest {
            message: message.clone(),
            client: sink.client(),
            place: Some(ReplyDestination::Locate(sink.later()?)),
            orb: orb.clone(),
        })
    }

    /// The number of the client. Requests of one client keep their order.
    pub(crate) fn client(&self) -> Option<u64> {
        self.client
    }

    /// Whether the client has closed the connection and so cannot read the reply. A oneway is carried out all
    /// the same.
    fn is_client_gone(&self) -> bool {
        match &self.place {
            Some(ReplyDestination::Request { later, .. }) => later.is_client_gone(),
            Some(ReplyDestination::Locate(sink)) => sink.is_client_gone(),
            None => false,
        }
    }

    /// The size of its message in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.message.bytes().len()
    }

    /// Whether the adapter of its object exists. Never waits, and asks no activator.
    pub(crate) fn has_adapter(&self) -> bool {
        self.place.is_some() && self.orb.adapter().adapter_status_of(&self.message).has_adapter
    }

    /// The most bytes of requests that one manager may hold.
    pub(crate) fn bytes_max(&self) -> usize {
        self.orb.adapter().config.connection.framer.message_bytes_max
    }

    /// Carries out the request, or makes it wait again. `passed` is the manager that it has waited for.
    pub(crate) fn carry_out(mut self, passed: Option<&PoaManager>) {
        if self.is_client_gone() {
            return;
        }
        while let Err(cause) = self.try_carry_out(passed) {
            match self.wait_for(cause, passed) {
                Some(ready) => self = ready,
                None => return,
            }
        }
    }

    /// Makes the request wait for a cause. Gives it back when the cause is over already.
    pub(super) fn wait_for(self, cause: WaitCause, passed: Option<&PoaManager>) -> Option<ParkedRequest> {
        match cause {
            WaitCause::Held(manager) => {
                let is_first = passed == Some(&manager);
                manager.park(self, is_first)
            }
            WaitCause::OtherThread(poa) => {
                let orb = self.orb.clone();
                let request = MainThreadRequest {
                    manager: poa.manager().clone(),
                    carry_out: Box::new(move || self.carry_out(Some(poa.manager()))),
                };
                // A request that is given back is answered when it is dropped.
                let _refused =
                    orb.adapter().main_thread.push(request, orb.adapter().config.held_requests_max);
                None
            }
        }
    }

    fn try_carry_out(&mut self, passed: Option<&PoaManager>) -> Result<(), WaitCause> {
        let (adapter, orb) = (self.orb.adapter(), &self.orb);
        match self.place.take() {
            None => Ok(()),
            Some(ReplyDestination::Locate(sink)) => {
                let Ok(request) = self.message.parse_locate_request() else { return Ok(()) };
                let on_hold = HoldMode::of(self.client, passed);
                match adapter.locate(request.object_key, on_hold) {
                    Err(Refusal::Held(manager)) => {
                        self.place = Some(ReplyDestination::Locate(sink));
                        Err(WaitCause::Held(manager))
                    }
                    found => {
                        answer_locate(&*sink, &request, &found);
                        Ok(())
                    }
                }
            }
            Some(ReplyDestination::Request { later, code_sets, deadline, told, slots }) => {
                let has_slots = slots.is_some();
                let _slots = slots.map(FreshSlots::enter_with);
                let Ok(request) = self.message.parse_request() else { return Ok(()) };
                let terms = (code_sets, deadline, told);
                let request = ParsedRequest::of_parked(&request, &self.message, terms, adapter);
                let message = &mut self.message;
                let mut carried_out = Ok(());
                let later = later.carry_out_waited(|responder| {
                    carried_out = adapter.carry_out_parked(&request, message, responder, &**orb, passed);
                    carried_out.is_ok()
                });
                if let Some(later) = later {
                    let later = Box::new(later);
                    let slots = has_slots.then(FreshSlots::of_this_thread);
                    self.place = Some(ReplyDestination::Request { later, code_sets, deadline, told, slots });
                }
                carried_out
            }
        }
    }
}

impl Drop for ParkedRequest {
    fn drop(&mut self) {
        match self.place.take() {
            None => {}
            Some(ReplyDestination::Request { later, .. }) => later.answer(|responder| {
                responder.raise(Raised::System(&cannot_wait()));
            }),
            Some(ReplyDestination::Locate(sink)) => {
                if let Ok(request) = self.message.parse_locate_request() {
                    answer_locate(&*sink, &request, &Err(cannot_wait().into()));
                }
            }
        }
    }
}
