//! Objects that there are leases of: the rare side, where something about them changes. And adapters that
//! threads keep leases of, whose objects count their requests as ever.

use std::sync::{Arc, Weak};

use super::lookup::Naming;
use super::object_map::{Ended, Entered};
use super::slots::Visit;
use super::upcall::Reached;
use super::{ObjectId, PoaInner, ThreadModel, Upcall};
use crate::lease::{Hold, InProgress, Lending, Token};
use crate::servant::Kept;

/// What there is a lease of.
pub(crate) struct Lent {
    /// A lease keeps no adapter.
    poa: Weak<PoaInner>,
    what: What,
    token: Token,
}

#[derive(Clone, Copy)]
enum What {
    Object(Visit),
    /// Of all its objects, each of which is to be looked for.
    Adapter,
}

/// A thread's lease of an adapter: it is there, and its manager lets requests through. So they need be counted with their
/// objects alone, which are asked each time.
pub(crate) struct AdapterLease {
    hold: Hold,
    poa: Weak<PoaInner>,
    names_slots: bool,
}

/// A request that is in an object by a lease of its adapter, until it is dropped.
pub(crate) struct Visiting<'l> {
    entered: Entered<'l>,
    in_progress: Option<InProgress<'l>>,
    poa: &'l Arc<PoaInner>,
}

impl AdapterLease {
    /// A lease of the adapter of an upcall, from an [epoch](Lending::begin) on, for requests that name their objects in the
    /// same way. `None` when it may not be lent, or the thread is going down.
    pub(crate) fn of(
        lending: &Arc<Lending>,
        epoch: u64,
        upcall: &Upcall,
        naming: Naming<'_>,
    ) -> Option<AdapterLease> {
        let poa = upcall.poa();
        if !upcall.may_lend() {
            return None;
        }
        let token = Token::new(poa.manager.number());
        let poa = Arc::downgrade(poa);
        let hold = lending.hold_of(epoch, Lent { poa: poa.clone(), what: What::Adapter, token })?;
        Some(AdapterLease { hold, poa, names_slots: matches!(naming, Naming::Slot(_)) })
    }

    /// Whose adapter it is.
    #[inline]
    pub(crate) fn lending(&self) -> &Arc<Lending> {
        self.hold.lending()
    }

    /// The adapter; `None` when it is no more.
    #[inline]
    pub(crate) fn poa(&self) -> Option<Arc<PoaInner>> {
        self.poa.upgrade()
    }

    /// Passes a request to an object of the adapter, as its key names it; `None` where it must go the ordinary way.
    #[inline(always)] // a step of many calls
    pub(crate) fn enter<'l>(&'l self, poa: &'l Arc<PoaInner>, object: &[u8]) -> Option<Visiting<'l>> {
        let naming = match self.names_slots {
            true => Naming::Slot(ObjectId::slot_in(object)?),
            false => Naming::Id(object),
        };
        let in_progress = self.hold.enter()?;
        let entered = poa.objects.enter(naming)?;
        in_progress.note(entered.visit);
        Some(Visiting { entered, in_progress: Some(in_progress), poa })
    }
}

impl Visiting<'_> {
    #[inline(always)]
    pub(crate) fn servant(&self) -> &Kept {
        &self.entered.servant
    }

    /// Its object has been taken out, and this was the last request of it. What is left to do is done outside of the call,
    /// but while the manager still counts it.
    #[cold]
    fn end(&mut self, ended: Ended) {
        let stripe = self.poa.manager.enter_again();
        self.in_progress = None;
        self.poa.say_farewell(ended);
        self.poa.manager.leave(stripe);
    }
}

impl Drop for Visiting<'_> {
    #[inline(always)] // a step of many calls
    fn drop(&mut self) {
        let Entered { place, visit, .. } = self.entered;
        if let Some(ended) = self.poa.objects.leave_place(place, visit) {
            self.end(ended);
        }
    }
}

impl Lent {
    pub(crate) fn token(&self) -> Token {
        self.token
    }

    /// A call by the lease is over, and something had changed meanwhile.
    #[cold]
    pub(crate) fn settle(&self) {
        let Some(poa) = self.poa.upgrade() else { return };
        if let Some(ended) = poa.objects.leave_lent(self.token) {
            poa.say_farewell(ended);
        }
        poa.manager.tell_waiters();
    }

    /// The call that this thread is in by the lease, counted as others are. If the lease is of an adapter, the thread has
    /// noted which object it is.
    #[cold]
    pub(super) fn upcall(&self, noted: Visit) -> Option<Upcall> {
        let poa = self.poa.upgrade()?;
        let visit = match self.what {
            What::Object(visit) => visit,
            What::Adapter => noted,
        };
        let servant = poa.objects.servant_in(visit)?;
        poa.objects.enter_again(visit);
        let stripe = poa.manager.enter_again();
        Some(Upcall::new(poa, servant, Reached::Slot(visit), stripe))
    }
}

impl Upcall {
    /// Notes that leases of its object are kept, if they may be.
    #[cold]
    pub(crate) fn lend(&self) -> Option<Lent> {
        let poa = self.poa();
        let Reached::Slot(visit) = *self.reached() else { return None };
        if !self.may_lend() {
            return None;
        }
        let token = poa.objects.lend(visit, poa.manager.number())?;
        Some(Lent { poa: Arc::downgrade(poa), what: What::Object(visit), token })
    }

    /// Whether nothing is in the way of requests to its adapter.
    fn may_lend(&self) -> bool {
        let poa = self.poa();
        poa.policies.thread == ThreadModel::OrbControl && poa.manager.is_serving()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generated::{Call, Operation, Replied};
    use crate::poa::current::{is_being, is_in_upcall_of_poa};
    use crate::poa::{ManagerState, PoaCurrent, PoaPolicies};
    use crate::{ObjectRef, Orb, Servant};

    struct Nothing;

    impl Servant for Nothing {
        fn repository_ids(&self) -> &[&'static str] {
            &["IDL:Nothing:1.0"]
        }

        fn dispatch(&self, call: Call<'_>) -> Replied {
            call.standard_operation(&[])
        }
    }

    /// How a thread enters an object.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    enum By {
        Request,
        ObjectLease,
        AdapterLease,
    }

    const WAYS: [By; 3] = [By::Request, By::ObjectLease, By::AdapterLease];
    const IDS: [&str; 3] = ["first", "second", "third"];

    /// An adapter with leases of all its objects and one of itself.
    struct Lenders {
        orb: Orb,
        poa: Arc<PoaInner>,
        objects: [ObjectRef; 3],
        holds: [Hold; 3],
        adapter: AdapterLease,
    }

    fn begin(object: &ObjectRef) -> Upcall {
        object.local(&Operation::twoway("nothing")).unwrap().expect("it is in this process")
    }

    impl Lenders {
        fn new() -> Lenders {
            let orb = Orb::builder().no_endpoint().build().unwrap();
            let poa = orb.root_poa().create_poa("lender", None, PoaPolicies::PERSISTENT).unwrap();
            poa.manager().activate().unwrap();
            let objects = IDS.map(|id| {
                poa.activate_object_with_id(&id.into(), Arc::new(Nothing)).unwrap();
                poa.id_to_reference(&id.into()).unwrap()
            });
            let lending = objects[0].core().adapter.lending();
            let epoch = lending.begin().or_else(|| lending.begin()).unwrap();
            let holds = [0, 1, 2].map(|n: usize| lending.hold(epoch, &begin(&objects[n])).unwrap());
            let naming = Naming::Id(IDS[0].as_bytes());
            let adapter = AdapterLease::of(lending, epoch, &begin(&objects[0]), naming).unwrap();
            Lenders { orb, poa: poa.0.clone(), objects, holds, adapter }
        }

        fn enter(&self, object: usize, by: By, run: &mut dyn FnMut()) {
            match by {
                By::Request => {
                    let _current = begin(&self.objects[object]).enter();
                    run();
                }
                By::ObjectLease => {
                    let _in_progress = self.holds[object].enter().unwrap();
                    run();
                }
                By::AdapterLease => {
                    let _visiting = self.adapter.enter(&self.poa, IDS[object].as_bytes()).unwrap();
                    run();
                }
            }
        }

        /// Enters each in turn, and runs something in the last. Before and after, each is what the thread is being.
        fn nest(&self, steps: &[(usize, By)], outside: &[(usize, By)], run: &mut dyn FnMut()) {
            let current = || PoaCurrent.object_id();
            let expected = || outside.last().map(|(object, _)| ObjectId::from(IDS[*object]));
            assert_eq!(current(), expected(), "{outside:?}");
            for (object, id) in IDS.iter().enumerate() {
                let is_being = is_being(&self.poa, &ObjectId::from(*id));
                assert_eq!(is_being, outside.iter().any(|(other, _)| *other == object), "{outside:?}");
            }
            assert_eq!(is_in_upcall_of_poa(&self.poa), !outside.is_empty(), "{outside:?}");
            match steps {
                [] => run(),
                [(object, by), further @ ..] => {
                    let outside = [outside, &[(*object, *by)]].concat();
                    self.enter(*object, *by, &mut || self.nest(further, &outside, run));
                }
            }
            assert_eq!(current(), expected(), "{outside:?}");
        }
    }

    #[test]
    fn the_current_object_is_the_innermost_however_it_was_entered() {
        let lenders = Lenders::new();
        for first in WAYS {
            for second in WAYS {
                for third in WAYS {
                    let steps = [(0, first), (1, second), (2, third), (0, second), (1, first)];
                    lenders.nest(&steps, &[], &mut || {});
                }
            }
        }
        lenders.orb.shutdown(true).unwrap();
    }

    #[test]
    fn whoever_waits_waits_for_all_of_them() {
        for inner in WAYS {
            for outer in WAYS {
                let lenders = Lenders::new();
                let manager = &lenders.poa.manager;
                std::thread::scope(|scope| {
                    let mut waiter = None;
                    lenders.nest(&[(0, outer), (1, inner)], &[], &mut || {
                        assert!(manager.hold_requests(true).is_err(), "it would wait for itself");
                        waiter = Some(scope.spawn(|| manager.hold_requests(true)));
                        while manager.state() != ManagerState::Holding {
                            std::thread::yield_now();
                        }
                        (0..100).for_each(|_| std::thread::yield_now());
                        assert!(
                            waiter.as_ref().is_some_and(|waiter| !waiter.is_finished()),
                            "{outer:?} {inner:?}"
                        );
                    });
                    waiter.unwrap().join().unwrap().unwrap();
                });
                lenders.orb.shutdown(true).unwrap();
            }
        }
    }
}
