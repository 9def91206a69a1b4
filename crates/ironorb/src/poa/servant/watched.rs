//! Upcalls that the ORB ends when they run too long: their callers get TIMEOUT while the servants still run.
//!
//! The obligation to answer is taken out of the upcall before it begins, as for a servant that answers later. The servant's
//! thread takes it back when the servant returns, and the lane's watch takes it when the time is over. Whichever comes
//! second finds none, so there is one answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ironorb_giop::exception::{CompletionStatus, SystemException, SystemExceptionKind};
use ironorb_giop::minor::MinorCode;
use ironorb_giop::{Malformed, Misuse, Reader, Writer};

use super::timed::{TimedUpcall, WatchedTiming};
use super::{Call, Later, Replied, servant_panicked};
use crate::base::locks::LaneLock;
use crate::base::scheduling::Demotable;
use crate::base::sync::is_panicking;
use crate::base::time::Time;
use crate::object::operation::{OperationError, Raised};
use crate::object::priority::native_priority_given;
use crate::object::timing::TimingFaultKind;
use crate::poa::AdapterHost;

/// An upcall that is ended when it runs too long.
pub(crate) struct WatchedUpcall {
    host: Arc<dyn AdapterHost>,
    upcall: WatchedTiming,
    begun: Time,
    /// The obligation to answer, until one of two threads takes it.
    answer: LaneLock<Option<Later>>,
    thread: Demotable,
    has_ended: AtomicBool,
}

impl WatchedUpcall {
    /// Answers with TIMEOUT, takes the servant's thread out of its priority, and tells the program. For the thread that watches
    /// the lane. Does nothing if the servant has returned. Runs application code.
    pub(crate) fn end(&self) {
        let Some(answer) = self.answer.lock().take() else { return };
        self.has_ended.store(true, Ordering::SeqCst);
        self.thread.demote();
        answer.answer(|responder| {
            responder.raise(Raised::System(&overrun()));
        });
        let ran = self.host.adapter().driver().time_of_requests().since(self.begun);
        self.upcall.tell(&*self.host, TimingFaultKind::Overrun, ran);
    }
}

#[cold]
fn overrun() -> SystemException {
    SystemException::new(SystemExceptionKind::Timeout, MinorCode::UPCALL_OVERRUN, CompletionStatus::Maybe)
}

impl<'c> Call<'c> {
    /// Carries out a twoway operation as [`twoway`](Self::twoway) does, but answers with TIMEOUT when the servant runs longer
    /// than its `wcet`. `host` is the ORB of the upcall. Allocates the obligation to answer.
    pub(crate) fn twoway_watched<A, T, E: OperationError>(
        mut self,
        host: Arc<dyn AdapterHost>,
        timed: &TimedUpcall,
        read: impl FnOnce(&mut Reader<'c>) -> Result<A, Malformed>,
        servant: impl FnOnce(A) -> Result<T, E>,
        results: impl Fn(&mut Writer<'_>, &T) -> Result<(), Misuse>,
    ) -> Replied {
        let arguments = match read(&mut self.arguments) {
            Ok(arguments) => arguments,
            Err(e) => return self.unread(e),
        };
        let Some(answer) = self.later() else { return self.too_many() };
        let watched = Watched::begin(host, timed, answer);
        let outcome = timed.run(|| servant(arguments));
        let answer = watched.take_back(timed);
        if let Some(answer) = answer {
            answer.answer(|responder| {
                match &outcome {
                    Ok(value) => responder.results(results, value),
                    Err(e) => responder.raise(e.raised()),
                };
            });
        }
        Replied::given()
    }
}

/// The servant's side of a watched upcall. Dropping it ends the watch.
struct Watched(Arc<WatchedUpcall>);

impl Watched {
    fn begin(host: Arc<dyn AdapterHost>, timed: &TimedUpcall, answer: Later) -> Watched {
        let begun = host.adapter().driver().time_of_requests();
        let watched = Arc::new(WatchedUpcall {
            upcall: timed.for_watch(),
            begun,
            answer: LaneLock::new(Some(answer)),
            thread: Demotable::own(native_priority_given()),
            has_ended: AtomicBool::new(false),
            host,
        });
        let ends = begun + timed.wcet().unwrap_or_default();
        watched.host.adapter().driver().watch(ends, &watched);
        Watched(watched)
    }

    /// The obligation to answer, unless the watch has answered.
    fn take_back(self, timed: &TimedUpcall) -> Option<Later> {
        self.unwatch();
        if self.0.has_ended.load(Ordering::SeqCst) {
            timed.note_told_of_overrun();
        }
        self.0.answer.lock().take()
    }

    fn unwatch(&self) {
        self.0.host.adapter().driver().unwatch(&self.0);
        self.0.thread.end();
    }
}

impl Drop for Watched {
    /// After a panic of the servant its caller still gets an answer.
    fn drop(&mut self) {
        if is_panicking() {
            self.unwatch();
            if let Some(answer) = self.0.answer.lock().take() {
                answer.answer(|responder| {
                    responder.raise(Raised::System(&servant_panicked()));
                });
            }
        }
    }
}
