//! Calls of objects in this process by threads that call them again and again: without a lock, and without a count that
//! other processors see. Requests from elsewhere have leases as well (`adapter/remembered.rs`).
//!
//! A thread keeps a lease of an object: its servant, and the ORB's epoch when it was found that nothing is in the way. A call
//! writes into the thread's own [`Mark`] that it is in the object, and looks whether the epoch is still the same. Whoever
//! changes something that leases go by - deactivates an object that has been lent, destroys its adapter, changes its manager,
//! follows a forward - ends the epoch first, has every processor catch up (membarrier(2)), and then reads all marks. So
//! either he sees the call, and it sees the new epoch when it is over and tells; or the call sees the new epoch, and goes the
//! ordinary way. Where the system has no such barrier nothing is ever lent.
//!
//! A servant that does something when it is dropped must be dropped when its object has ended, so threads keep such ones
//! weakly.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::fmt;
use std::rc::{self, Rc};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, compiler_fence};
use std::sync::{Arc, Mutex, OnceLock, Weak};

use rustix::thread::{MembarrierCommand, membarrier, membarrier_query};

use crate::object::ObjectRef;
use crate::poa::{Lent, Upcall, call_depth};
use crate::sync::lock;

/// An interface whose objects may be called directly: a place for what each thread keeps of them. Generated types implement
/// it.
pub trait Leased: 'static {
    /// Runs something with the thread's leases; `None` in a thread that is going down.
    fn with_leases<T>(run: impl FnOnce(&Leases<Self>) -> T) -> Option<T>;
}

/// What a thread keeps of the objects of one interface that it calls.
#[allow(missing_debug_implementations)]
pub struct Leases<I: ?Sized>(OnceCell<Box<[Place<I>; PLACES]>>);

/// References find their place by their number; of two that share one, the one that is called more has it.
const PLACES: usize = 8;

struct Place<I: ?Sized>(RefCell<Option<Lease<I>>>);

/// Calls of others until one gets the place of a lease.
const MISSES_MAX: u8 = 16;

struct Lease<I: ?Sized> {
    /// The number of the reference that is called.
    reference: u64,
    hold: Hold,
    servant: Servant<I>,
    misses: u8,
}

/// What a lease is of: the object is there and nothing is in the way, as long as the epoch is the same.
pub(crate) struct Hold {
    epoch: u64,
    /// What the mark has while the thread is in the object.
    token: Token,
    mark: Arc<Mark>,
    lending: Arc<Lending>,
    lent: Rc<Lent>,
}

enum Servant<I: ?Sized> {
    Kept(Arc<I>),
    /// One that is to be dropped in time.
    Known(Weak<I>),
}

/// An object that has been lent, and its manager: never 0, and never another's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Token(u64);

/// Managers with the same number wait for each other's calls, which is all that comes of it.
const MANAGER_SHIFT: u32 = 40;

/// The objects that a thread is in by a lease, at the depths of its calls.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(crate) struct Mark([AtomicU64; DEPTH_MAX]);

/// Calls further in go the ordinary way.
pub(crate) const DEPTH_MAX: usize = 16;

/// What an ORB has lent.
#[derive(Debug, Default)]
pub(crate) struct Lending {
    /// Ends whenever something changes that leases go by.
    epoch: AtomicU64,
    /// Anything has been lent, ever.
    is_used: AtomicBool,
    marks: Mutex<Vec<Arc<Mark>>>,
}

thread_local! {
    static OWN: RefCell<Vec<Own>> = const { RefCell::new(Vec::new()) };
}

/// What a thread has of an ORB.
struct Own {
    lending: Arc<Lending>,
    mark: Arc<Mark>,
    lent: HashMap<u64, rc::Weak<Lent>>,
}

impl<I: ?Sized + 'static> Leases<I> {
    /// None.
    pub const fn new() -> Self {
        Leases(OnceCell::new())
    }

    /// Calls the servant, if there is a lease for the reference with this number.
    #[inline]
    pub(crate) fn call(&self, number: u64, call: impl FnOnce(&I)) {
        let Some(places) = self.0.get() else { return };
        let Ok(place) = places[number as usize % PLACES].0.try_borrow() else { return };
        let Some(lease) = place.as_ref().filter(|lease| lease.reference == number) else { return };
        let Some(_in_progress) = lease.hold.enter() else { return };
        match &lease.servant {
            Servant::Kept(servant) => call(servant),
            Servant::Known(servant) => {
                if let Some(servant) = servant.upgrade() {
                    call(&servant);
                }
            }
        }
    }

    #[cold]
    fn put(&self, lease: impl FnOnce() -> Option<Lease<I>>, reference: u64) {
        let places = self.0.get_or_init(|| Box::new([const { Place(RefCell::new(None)) }; PLACES]));
        // In a call of the object that has it, it stays.
        let Ok(mut place) = places[reference as usize % PLACES].0.try_borrow_mut() else { return };
        match &mut *place {
            Some(other) if other.reference != reference && other.misses < MISSES_MAX => other.misses += 1,
            place => {
                let before = std::mem::replace(place, lease());
                // Not a last one: its object has the servant, or it has been dropped.
                drop(before);
            }
        }
    }
}

impl<I: ?Sized + 'static> Default for Leases<I> {
    fn default() -> Self {
        Leases::new()
    }
}

/// Keeps a lease for the calls that follow. Not when a reference is called for the first time, for most are never called
/// again; nor of one that has been forwarded.
#[cold]
pub(crate) fn keep<I: Leased + ?Sized>(object: &ObjectRef, upcall: &Upcall, servant: &Arc<I>) {
    let lending = object.core().adapter.lending();
    let Some(reference) = object.give_number() else { return };
    let Some(epoch) = lending.begin() else { return };
    if object.routes().is_replaced() {
        return;
    }
    let lease = || {
        let hold = lending.hold(epoch, upcall)?;
        let servant = match upcall.servant().is_dropped_in_time() {
            true => Servant::Known(Arc::downgrade(servant)),
            false => Servant::Kept(servant.clone()),
        };
        Some(Lease { reference, hold, servant, misses: 0 })
    };
    I::with_leases(|leases| leases.put(lease, reference));
}

impl Hold {
    /// Whose objects they are.
    #[inline]
    pub(crate) fn lending(&self) -> &Arc<Lending> {
        &self.lending
    }

    /// Begins an upcall; `None` when something has changed, so that it must be begun in the ordinary way.
    #[inline(always)] // a step of every call
    pub(crate) fn enter(&self) -> Option<InProgress<'_>> {
        let depth = call_depth().get();
        let frame = self.mark.0.get(depth)?;
        frame.store(self.token.0, Ordering::Relaxed);
        call_depth().with(|current| current.set(depth + 1));
        let in_progress = InProgress { hold: self, depth };
        // sync: lent-or-ended. Before the mark no processor sees anything of what follows, once others have caught up.
        compiler_fence(Ordering::SeqCst);
        self.lending.is_in(self.epoch).then_some(in_progress)
    }
}

/// An upcall by a lease, until it is dropped.
pub(crate) struct InProgress<'l> {
    hold: &'l Hold,
    depth: usize,
}

impl InProgress<'_> {
    /// The depth of the call, below [`DEPTH_MAX`].
    #[inline(always)]
    pub(crate) fn depth(&self) -> usize {
        self.depth
    }
}

impl Drop for InProgress<'_> {
    #[inline(always)] // a step of every call
    fn drop(&mut self) {
        if let Some(frame) = self.hold.mark.0.get(self.depth) {
            frame.store(0, Ordering::Release);
        }
        call_depth().with(|current| current.set(self.depth));
        // sync: lent-or-ended
        compiler_fence(Ordering::SeqCst);
        if !self.hold.lending.is_in(self.hold.epoch) {
            self.hold.lent.settle();
        }
    }
}

impl Lending {
    /// The epoch for a new lease, to be asked before anything is looked at that leases go by: whatever changes afterwards
    /// ends it. `None` the first time: who has ended an epoch until then had nobody catch up.
    pub(crate) fn begin(&self) -> Option<u64> {
        if !self.is_used.load(Ordering::SeqCst) {
            self.is_used.store(barrier_is_there(), Ordering::SeqCst);
            return None;
        }
        Some(self.epoch.load(Ordering::SeqCst))
    }

    /// A lease of the object of an upcall, from an [epoch](Self::begin) on. `None` when it may not be lent, or the thread is
    /// going down.
    pub(crate) fn hold(self: &Arc<Self>, epoch: u64, upcall: &Upcall) -> Option<Hold> {
        self.hold_of(epoch, upcall.lend()?)
    }

    /// A lease of something that has been lent, from an [epoch](Self::begin) on; `None` when the thread is going down.
    pub(crate) fn hold_of(self: &Arc<Self>, epoch: u64, lent: Lent) -> Option<Hold> {
        let (mark, lent) = Own::of(self, |own| own.note(lent))?;
        Some(Hold { epoch, token: lent.token(), mark, lending: self.clone(), lent })
    }

    /// Whether a lease of this epoch still holds. To be asked when the thread has marked that it is in the object.
    #[inline(always)] // a step of every call
    fn is_in(&self, epoch: u64) -> bool {
        self.epoch.load(Ordering::Acquire) == epoch
    }

    /// Something has changed that leases go by. From now on, calls that others have begun are seen by [`any`](Self::any), and
    /// new ones see the change.
    pub(crate) fn end_epoch(&self) {
        self.epoch.fetch_add(1, Ordering::SeqCst);
        if self.is_used.load(Ordering::SeqCst) {
            // sync: lent-or-ended
            let caught_up = membarrier(MembarrierCommand::PrivateExpedited);
            debug_assert!(caught_up.is_ok(), "the process has been registered for it: {caught_up:?}");
        }
    }

    /// Whether a call by a lease is in progress of whose token something is so. Only what was so when the epoch ended is sure
    /// to be seen.
    pub(crate) fn any(&self, is_so: impl Fn(Token) -> bool) -> bool {
        let frame = |frame: &AtomicU64| match frame.load(Ordering::SeqCst) {
            0 => false,
            token => is_so(Token(token)),
        };
        self.is_used.load(Ordering::SeqCst) && lock(&self.marks).iter().any(|mark| mark.0.iter().any(frame))
    }
}

impl Token {
    /// For an object of a manager with this number.
    pub(crate) fn new(manager: u64) -> Token {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let object = NEXT.fetch_add(1, Ordering::Relaxed) & ((1 << MANAGER_SHIFT) - 1);
        Token(manager << MANAGER_SHIFT | object.max(1))
    }

    /// Whether the object has a manager of this number.
    pub(crate) fn is_of(self, manager: u64) -> bool {
        self.0 >> MANAGER_SHIFT == manager << MANAGER_SHIFT >> MANAGER_SHIFT
    }
}

impl Own {
    /// What this thread has of an ORB; `None` when the thread is going down.
    fn of<T>(lending: &Arc<Lending>, ask: impl FnOnce(&mut Own) -> T) -> Option<T> {
        OWN.try_with(|own| {
            let mut own = own.borrow_mut();
            let known = own.iter().position(|own| Arc::ptr_eq(&own.lending, lending));
            let index = known.unwrap_or_else(|| {
                // ORBs that are no more.
                own.retain(|own| Arc::strong_count(&own.lending) > 1 || !own.lent.is_empty());
                own.push(Own { lending: lending.clone(), mark: lending.new_mark(), lent: HashMap::new() });
                own.len() - 1
            });
            ask(&mut own[index])
        })
        .ok()
    }

    /// All leases that the thread has of an object share what it is to it, which is there as long as any of them.
    fn note(&mut self, lent: Lent) -> (Arc<Mark>, Rc<Lent>) {
        let token = lent.token().0;
        let known = self.lent.get(&token).and_then(rc::Weak::upgrade);
        let lent = known.unwrap_or_else(|| {
            if self.lent.len() == self.lent.capacity() {
                self.lent.retain(|_, lent| lent.strong_count() > 0);
            }
            let lent = Rc::new(lent);
            self.lent.insert(token, Rc::downgrade(&lent));
            lent
        });
        (self.mark.clone(), lent)
    }
}

impl Lending {
    #[cold]
    fn new_mark(&self) -> Arc<Mark> {
        let mark = Arc::<Mark>::default();
        let mut marks = lock(&self.marks);
        // Those of threads that are no more.
        marks.retain(|mark| Arc::strong_count(mark) > 1);
        marks.push(mark.clone());
        mark
    }
}

/// What this thread is in at a depth, if it is there by a lease.
#[cold]
pub(crate) fn lent_at(depth: usize) -> Option<Rc<Lent>> {
    OWN.try_with(|own| {
        own.borrow().iter().find_map(|own| match own.mark.0.get(depth)?.load(Ordering::Relaxed) {
            0 => None,
            token => own.lent.get(&token)?.upgrade(),
        })
    })
    .ok()
    .flatten()
}

/// Whether the system can have every processor of the process catch up. Asked once for the process, which is registered then.
fn barrier_is_there() -> bool {
    static IS_THERE: OnceLock<bool> = OnceLock::new();
    *IS_THERE.get_or_init(|| {
        membarrier_query().contains_command(MembarrierCommand::PrivateExpedited)
            && membarrier(MembarrierCommand::RegisterPrivateExpedited).is_ok()
    })
}

impl fmt::Debug for Lent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lent").finish_non_exhaustive()
    }
}
