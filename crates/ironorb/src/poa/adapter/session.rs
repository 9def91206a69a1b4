//! What the requests of one connection share.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use ironorb_giop::cdr::Environment;
use ironorb_giop::service_context::CodeSetContext;
use ironorb_giop::typecode::TypeCode;
use ironorb_giop::value::ValueFactory;
use ironorb_giop::{TransmissionCodeSets, Version};

use super::{Adapter, ToldPriority};
use crate::base::config::BareExceptions;
use crate::base::locks::LaneLock;
use crate::base::time::Time;
use crate::object::band_cell::{BandCell, PackedBand};
use crate::object::deadline::Deadline;
use crate::object::deadline_context::{ClockBound, DeadlineStamp};
use crate::object::priority::Priority;
use crate::object::request_facts::RequestFacts;
use crate::poa::AdapterHost;

/// What the server keeps about one connection: its code sets, and how the client writes exceptions in an
/// `any`. The code sets start as ISO 8859-1 without wide characters, and hold until the client sends its
/// choice (CORBA 3.3 part 2, 7.10.2.5). Requests are read with the session, so that it can learn both.
pub(crate) struct Session {
    code_sets: AtomicU8,
    bare_exceptions: AtomicBool,
    /// What is known of the client's clock. Set by the first request that tells how long its caller waits.
    clock: OnceLock<Box<LaneLock<ClockBound>>>,
    /// The band that the connection is bound to.
    band: BandCell,
    /// The highest priority that the peer may ask for.
    priority_limit: Priority,
    orb: Weak<dyn AdapterHost>,
}

impl Environment for Session {
    fn value_factory(&self, repository_id: &str) -> Option<Arc<dyn ValueFactory>> {
        self.orb.upgrade()?.value_factory(repository_id)
    }

    fn value_type(&self, repository_id: &str) -> Option<&'static TypeCode> {
        self.orb.upgrade()?.value_type(repository_id)
    }

    fn share(&self) -> Option<Arc<dyn Environment>> {
        self.orb.upgrade().map(|orb| -> Arc<dyn Environment> { orb })
    }

    fn note_exception_form(&self, bare: bool) {
        let learns = |orb: Arc<dyn AdapterHost>| orb.adapter().config.bare_exceptions == BareExceptions::Auto;
        if self.orb.upgrade().is_some_and(learns) {
            self.bare_exceptions.store(bare, Ordering::Relaxed);
        }
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("code_sets", &self.agreed_before()).finish_non_exhaustive()
    }
}

impl Session {
    /// Makes the session of a new connection. A client is taken to write exceptions as the standard says
    /// until one has come, because nothing else tells how it writes them.
    pub(crate) fn new(adapter: &Adapter) -> Session {
        Session {
            code_sets: AtomicU8::new(TransmissionCodeSets::UNNEGOTIATED.to_octet()),
            bare_exceptions: AtomicBool::new(adapter.config.bare_exceptions == BareExceptions::Yes),
            clock: OnceLock::new(),
            band: BandCell::new(PackedBand::NONE),
            priority_limit: Priority::MAX,
            orb: adapter.host.clone(),
        }
    }

    /// Bounds what the peer may ask for.
    pub(crate) fn with_priority_limit(self, priority_limit: Priority) -> Session {
        Session { priority_limit, ..self }
    }

    /// What the connection tells of the priority of a request that has this number.
    pub(super) fn told_priority(&self, number: Option<i16>) -> ToldPriority {
        ToldPriority { number, band: self.band(), limit: self.priority_limit }
    }

    /// Whether the server sends exceptions in an `any` without their ids.
    #[inline]
    pub(super) fn bare_exceptions(&self) -> bool {
        self.bare_exceptions.load(Ordering::Relaxed)
    }

    /// The code sets of a request: its own, or those of an earlier request; `None` when the ORB does not
    /// support them.
    #[inline]
    pub(super) fn code_sets(
        &self,
        facts: &RequestFacts<'_>,
        version: Version,
    ) -> Option<TransmissionCodeSets> {
        match facts.code_sets() {
            None => Some(self.code_sets_before(version)),
            Some(data) => self.agree(data),
        }
    }

    /// The code sets of a request of this version that names none.
    #[inline]
    pub(super) fn code_sets_before(&self, version: Version) -> TransmissionCodeSets {
        match version {
            Version::V1_0 => TransmissionCodeSets::UNNEGOTIATED,
            _ => self.agreed_before(),
        }
    }

    /// Binds the connection to the band that a request tells, if it does. A band without priorities counts as none.
    #[cold]
    pub(super) fn note_band(&self, facts: &RequestFacts<'_>) {
        let band = PackedBand::new(facts.band());
        if band != PackedBand::NONE {
            self.band.set(band);
        }
    }

    /// The band that the client has bound the connection to (RTCORBA 1.2, 5.12). Requests over it have its priorities.
    #[inline]
    pub(crate) fn band(&self) -> PackedBand {
        self.band.get()
    }

    /// The deadline of a request that has come now.
    #[inline(always)] // a step of every call with a deadline
    pub(super) fn deadline(&self, stamp: &DeadlineStamp, now: Time) -> Deadline {
        self.clock.get_or_init(Box::default).lock().deadline(stamp, now)
    }

    /// The code sets that a request has named before.
    #[inline]
    pub(super) fn agreed_before(&self) -> TransmissionCodeSets {
        TransmissionCodeSets::from_octet(self.code_sets.load(Ordering::Relaxed))
    }

    #[cold]
    fn agree(&self, data: &[u8]) -> Option<TransmissionCodeSets> {
        let sets = CodeSetContext::decode(data).ok()?.transmission()?;
        self.code_sets.store(sets.to_octet(), Ordering::Relaxed);
        Some(sets)
    }
}
