//! Objects and adapters that threads hold leases of. This file has the rare cases, in which something about
//! an object changes. Under a lease of an adapter, its objects still count their requests.

use std::any::Any;
use std::sync::{Arc, Weak};

use super::active_object_map::{AdmittedRequest, DeactivatedObject};
use super::lookup::ObjectSelector;
use super::upcall::UpcallTarget;
use super::{ObjectId, PoaInner, ThreadModel, Upcall};
use crate::base::lease::{Activation, Binding, BindingEpoch, BindingLease, LeasedUpcall, OrbBindings, Token};
use crate::poa::servant::ServantHandle;

/// The object or adapter that a lease is for.
pub(crate) struct CollocatedBinding {
    /// Weak, because a lease must not keep an adapter alive.
    poa: Weak<PoaInner>,
    what: BoundEntity,
    token: Token,
}

#[derive(Clone, Copy)]
enum BoundEntity {
    Object(Activation),
    /// All objects of the adapter. Each request looks for its object.
    Adapter,
}

/// A thread's lease of an adapter. While it is valid, the adapter exists and its manager admits requests. So
/// requests are counted only with their objects, which are looked up each time.
pub(crate) struct AdapterLease {
    hold: BindingLease,
    bindings: Arc<OrbBindings>,
    poa: Weak<PoaInner>,
    names_slots: bool,
}

/// A request that was admitted to an object by a lease of its adapter. Dropping it ends the request.
pub(crate) struct LeasedRequest<'l> {
    entered: AdmittedRequest<'l>,
    in_progress: Option<LeasedUpcall<'l>>,
    poa: &'l Arc<PoaInner>,
}

impl AdapterLease {
    /// Takes a lease of the adapter of an upcall, from an [epoch](BindingEpoch::begin) on, for requests that
    /// name their objects in the way of `naming`. `None` when the adapter cannot be leased.
    pub(crate) fn of(epoch: u64, upcall: &Upcall, naming: ObjectSelector<'_>) -> Option<AdapterLease> {
        if !upcall.may_bind() {
            return None;
        }
        let token = Token::new(upcall.poa().manager.number());
        let poa = Arc::downgrade(upcall.poa());
        let binding = CollocatedBinding { poa: poa.clone(), what: BoundEntity::Adapter, token };
        let hold = upcall.binding_epoch().lease_of(epoch, binding);
        let bindings = upcall.binding_epoch().orb().clone();
        Some(AdapterLease { hold, bindings, poa, names_slots: matches!(naming, ObjectSelector::Slot(_)) })
    }

    /// What tells the ORB that the adapter belongs to.
    #[inline]
    pub(crate) fn bindings(&self) -> &Arc<OrbBindings> {
        &self.bindings
    }

    /// The adapter; `None` when it no longer exists.
    #[inline]
    pub(crate) fn poa(&self) -> Option<Arc<PoaInner>> {
        self.poa.upgrade()
    }

    /// Passes a request to an object of the adapter, as its key names it. `None` where the request must take
    /// the general path.
    #[inline(always)] // a step of many calls
    pub(crate) fn enter<'l>(&'l self, poa: &'l Arc<PoaInner>, object: &[u8]) -> Option<LeasedRequest<'l>> {
        let naming = match self.names_slots {
            true => ObjectSelector::Slot(ObjectId::slot_in(object)?),
            false => ObjectSelector::Id(object),
        };
        let in_progress = self.hold.enter()?;
        let entered = poa.objects.enter(naming)?;
        in_progress.note(entered.activation);
        Some(LeasedRequest { entered, in_progress: Some(in_progress), poa })
    }
}

impl LeasedRequest<'_> {
    #[inline(always)]
    pub(crate) fn servant(&self) -> &ServantHandle {
        &self.entered.servant
    }

    /// Finishes the deactivation of the object: this was its last request. That happens outside of the leased
    /// call, but while the manager still counts the request.
    #[cold]
    fn end(&mut self, ended: DeactivatedObject) {
        let stripe = self.poa.manager.enter_again();
        self.in_progress = None;
        self.poa.finish_deactivation(ended);
        self.poa.manager.leave(stripe);
    }
}

impl Drop for LeasedRequest<'_> {
    #[inline(always)] // a step of many calls
    fn drop(&mut self) {
        let AdmittedRequest { place, activation, .. } = self.entered;
        if let Some(ended) = self.poa.objects.leave_place(place, activation) {
            self.end(ended);
        }
    }
}

impl Binding for CollocatedBinding {
    fn token(&self) -> Token {
        self.token
    }

    #[cold]
    fn settle(&self) {
        let Some(poa) = self.poa.upgrade() else { return };
        if let Some(ended) = poa.objects.leave_binding(self.token) {
            poa.finish_deactivation(ended);
        }
        poa.manager.notify_waiters();
    }
}

impl CollocatedBinding {
    /// The call that this thread makes by a lease, if the lease is of an object or adapter; see
    /// [`upcall`](Self::upcall).
    #[cold]
    pub(super) fn upcall_of(binding: &dyn Binding, noted: Activation) -> Option<Upcall> {
        (binding as &dyn Any).downcast_ref::<CollocatedBinding>()?.upcall(noted)
    }

    /// The call that this thread makes by the lease, as a counted upcall. For a lease of an adapter, `noted`
    /// says which object the call is to.
    #[cold]
    fn upcall(&self, noted: Activation) -> Option<Upcall> {
        let poa = self.poa.upgrade()?;
        let activation = match self.what {
            BoundEntity::Object(activation) => activation,
            BoundEntity::Adapter => noted,
        };
        let servant = poa.objects.servant_in(activation)?;
        poa.objects.enter_again(activation);
        let stripe = poa.manager.enter_again();
        Some(Upcall::new(poa, servant, UpcallTarget::Slot(activation), stripe))
    }
}

impl Upcall {
    /// The epoch of the bindings of its object.
    #[inline]
    pub(crate) fn binding_epoch(&self) -> &Arc<BindingEpoch> {
        self.poa().manager.binding_epoch()
    }

    /// Makes a lease of the object of this upcall, from an [epoch](BindingEpoch::begin) on. `None` when the
    /// object cannot be leased.
    pub(crate) fn lease(&self, epoch: u64) -> Option<BindingLease> {
        Some(self.binding_epoch().lease_of(epoch, self.bind()?))
    }

    /// Records that threads hold leases of the object, if they may.
    #[cold]
    pub(crate) fn bind(&self) -> Option<CollocatedBinding> {
        let poa = self.poa();
        let UpcallTarget::Slot(activation) = *self.target() else { return None };
        if !self.may_bind() {
            return None;
        }
        let token = poa.objects.bind(activation, poa.manager.number())?;
        Some(CollocatedBinding { poa: Arc::downgrade(poa), what: BoundEntity::Object(activation), token })
    }

    /// Whether the adapter admits requests at once, on any thread.
    fn may_bind(&self) -> bool {
        let poa = self.poa();
        poa.policies.thread == ThreadModel::OrbControl && poa.manager.is_serving()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::invocation::Next;
    use crate::object::lease::{LeaseCell, LeasedServant};
    use crate::object::operation::Operation;
    use crate::poa::current::{is_being, is_in_upcall_of_poa};
    use crate::poa::servant::{Call, Replied};
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

    const KINDS: [By; 3] = [By::Request, By::ObjectLease, By::AdapterLease];
    const IDS: [&str; 3] = ["first", "second", "third"];

    /// An adapter with leases of all its objects and one of itself.
    struct LeasedAdapter {
        orb: Orb,
        poa: Arc<PoaInner>,
        objects: [ObjectRef; 3],
        holds: [BindingLease; 3],
        adapter: AdapterLease,
    }

    fn begin(object: &ObjectRef) -> Upcall {
        object.local(&Operation::twoway("nothing")).unwrap().expect("it is in this process")
    }

    impl LeasedAdapter {
        fn new() -> LeasedAdapter {
            let orb = Orb::builder().no_endpoint().build().unwrap();
            let poa = orb.root_poa().create_poa("leased", None, PoaPolicies::PERSISTENT).unwrap();
            poa.manager().activate().unwrap();
            let objects = IDS.map(|id| {
                poa.activate_object_with_id(&id.into(), Arc::new(Nothing)).unwrap();
                poa.id_to_reference(&id.into()).unwrap()
            });
            let binding_epoch = poa.0.manager.binding_epoch();
            let epoch = binding_epoch.begin().or_else(|| binding_epoch.begin()).unwrap();
            let holds = [0, 1, 2].map(|n: usize| begin(&objects[n]).lease(epoch).unwrap());
            let naming = ObjectSelector::Id(IDS[0].as_bytes());
            let adapter = AdapterLease::of(epoch, &begin(&objects[0]), naming).unwrap();
            LeasedAdapter { orb, poa: poa.0.clone(), objects, holds, adapter }
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
                    let _request = self.adapter.enter(&self.poa, IDS[object].as_bytes()).unwrap();
                    run();
                }
            }
        }

        /// Enters the objects one inside the other and calls `run` in the last. Before and after each, checks
        /// which objects the thread's servants incarnate.
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
        let adapter = LeasedAdapter::new();
        for first in KINDS {
            for second in KINDS {
                for third in KINDS {
                    let steps = [(0, first), (1, second), (2, third), (0, second), (1, first)];
                    adapter.nest(&steps, &[], &mut || {});
                }
            }
        }
        adapter.orb.shutdown(true).unwrap();
    }

    #[test]
    fn a_wait_for_completion_waits_for_every_kind_of_call() {
        for inner in KINDS {
            for outer in KINDS {
                let adapter = LeasedAdapter::new();
                let manager = &adapter.poa.manager;
                std::thread::scope(|scope| {
                    let mut waiter = None;
                    adapter.nest(&[(0, outer), (1, inner)], &[], &mut || {
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
                adapter.orb.shutdown(true).unwrap();
            }
        }
    }

    #[test]
    fn a_forward_of_one_reference_leaves_the_leases_of_others_in_force() {
        let adapter = LeasedAdapter::new();
        let epoch = adapter.poa.manager.binding_epoch().begin().unwrap();
        let cells = [0, 1].map(|n: usize| {
            let cell: LeaseCell<dyn Servant> = LeaseCell::new();
            let hold = begin(&adapter.objects[n]).lease(epoch).unwrap();
            cell.put(hold, LeasedServant::Owned(Arc::new(Nothing)), &adapter.objects[n]);
            cell
        });
        let is_in_force = |n: usize| cells[n].enter_any().is_some();
        assert!(is_in_force(0) && is_in_force(1));
        let elsewhere = Box::new(adapter.objects[2].to_ior());
        adapter.objects[0].routes().take(Next::Follow { ior: elsewhere, permanent: false }).unwrap();
        assert!(!is_in_force(0), "calls follow the forward");
        assert!(is_in_force(1));
        adapter.orb.shutdown(true).unwrap();
    }
}
