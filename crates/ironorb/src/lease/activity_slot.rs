//! What threads are in by a lease: each thread writes it down for itself, and who ends objects reads what all have
//! written.
//!
//! Kept for the process and not for an ORB, as threads are: so a call finds its thread's mark in one step.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

use super::Token;
use crate::poa::{Activation, AtomicActivation, CollocatedBinding};
use crate::sync::lock;

/// What a thread is in by a lease, the outermost first: behind the first free place all are free.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct ActivitySlots([ActivitySlot; DEPTH_MAX]);

/// One thing that a thread is in by a lease.
#[derive(Debug, Default)]
pub(super) struct ActivitySlot {
    /// 0 where the place is free.
    token: AtomicU64,
    /// Which object it is, where the lease is of its adapter: with the mark and not the lease, by which the thread may be in
    /// several.
    pub(super) activation: AtomicActivation,
}

/// Calls further in go the ordinary way.
const DEPTH_MAX: usize = 16;

thread_local! {
    static OWN: Cell<Option<&'static ActivitySlots>> = const { Cell::new(None) };
    /// Apart from it: what is dropped with its thread must be asked for its state at each use.
    static CLAIM: SlotClaim = const { SlotClaim };
}

/// Gives the thread's mark to another one when it ends.
struct SlotClaim;

static REGISTRY: Mutex<ActivityRegistry> = Mutex::new(ActivityRegistry { all: Vec::new(), free: Vec::new() });

/// As many as there have been threads at a time that had one.
struct ActivityRegistry {
    all: Vec<&'static ActivitySlots>,
    free: Vec<&'static ActivitySlots>,
}

/// What tokens stand for, for servants that ask which object they are.
static BINDINGS: Mutex<BindingTable> =
    Mutex::new(BindingTable { known: BTreeMap::new(), sweep_at: SWEEP_AT_FIRST });

struct BindingTable {
    known: BTreeMap<u64, Weak<CollocatedBinding>>,
    /// How many there may be until those that nobody has any more are looked for.
    sweep_at: usize,
}

const SWEEP_AT_FIRST: usize = 64;

impl ActivitySlots {
    /// This thread's, if it has one.
    #[inline(always)] // a step of every call
    pub(super) fn own() -> Option<&'static ActivitySlots> {
        OWN.with(Cell::get) // `LocalKey::get` is a call
    }

    /// Where the thread writes down the next object that it enters; `None` in too many.
    #[inline(always)] // a step of every call
    pub(super) fn next(&self) -> Option<&ActivitySlot> {
        if self.0[0].is_free() { Some(&self.0[0]) } else { self.further_in() }
    }

    #[cold]
    #[inline(never)]
    fn further_in(&self) -> Option<&ActivitySlot> {
        self.0.iter().find(|place| place.is_free())
    }

    #[cold]
    #[inline(never)]
    fn depth(&self) -> usize {
        self.taken().count()
    }

    fn taken(&self) -> impl Iterator<Item = &ActivitySlot> {
        self.0.iter().take_while(|place| !place.is_free())
    }

    /// Sees to it that the thread has one; false where it cannot, because it is going down.
    #[cold]
    pub(super) fn claim() -> bool {
        let claim = |_: &SlotClaim| {
            if ActivitySlots::own().is_none() {
                let mut marks = lock(&REGISTRY);
                let slots = marks.free.pop().unwrap_or_else(|| {
                    let slots: &'static ActivitySlots = Box::leak(Box::default());
                    marks.all.push(slots);
                    slots
                });
                OWN.with(|own| own.set(Some(slots)));
            }
        };
        CLAIM.try_with(claim).is_ok()
    }
}

impl ActivitySlot {
    /// For its thread alone, as all that follows but for the token.
    #[inline(always)]
    fn is_free(&self) -> bool {
        self.token.load(Ordering::Relaxed) == 0
    }

    #[inline(always)]
    pub(super) fn take(&self, token: Token) {
        self.token.store(token.0, Ordering::Relaxed);
    }

    #[inline(always)]
    pub(super) fn leave(&self) {
        self.token.store(0, Ordering::Release);
    }

    fn token(&self) -> Option<Token> {
        match self.token.load(Ordering::SeqCst) {
            0 => None,
            token => Some(Token(token)),
        }
    }

    /// What it says, and the visit that has been noted.
    fn binding(&self) -> Option<(Arc<CollocatedBinding>, Activation)> {
        let binding = lock(&BINDINGS).known.get(&self.token()?.0)?.upgrade()?;
        Some((binding, self.activation.get()))
    }
}

impl Drop for SlotClaim {
    fn drop(&mut self) {
        if let Some(slots) = OWN.with(Cell::take) {
            lock(&REGISTRY).free.push(slots);
        }
    }
}

/// Whether any thread is in an object whose token is such.
pub(super) fn any(is_so: impl Fn(Token) -> bool) -> bool {
    // All places: a thread goes in and out meanwhile, and one behind a place that was left is not to be missed.
    let is_in = |place: &ActivitySlot| place.token().is_some_and(&is_so);
    lock(&REGISTRY).all.iter().any(|slots| slots.0.iter().any(is_in))
}

/// In how many objects this thread is by a lease.
#[inline(always)] // a step of every upcall
pub(crate) fn depth_by_lease() -> usize {
    match ActivitySlots::own() {
        Some(slots) if !slots.0[0].is_free() => slots.depth(),
        _ => 0,
    }
}

/// What this thread entered last of all that it is in by a lease, and the visit that it has noted.
#[cold]
pub(crate) fn innermost_binding() -> Option<(Arc<CollocatedBinding>, Activation)> {
    ActivitySlots::own()?.taken().last()?.binding()
}

/// All that this thread is in by a lease, and the visits that it has noted.
#[cold]
pub(crate) fn all_bindings() -> impl Iterator<Item = (Arc<CollocatedBinding>, Activation)> {
    ActivitySlots::own().into_iter().flat_map(ActivitySlots::taken).filter_map(ActivitySlot::binding)
}

/// All leases of an object share what it is.
#[cold]
pub(super) fn shared(binding: CollocatedBinding) -> Arc<CollocatedBinding> {
    let mut table = lock(&BINDINGS);
    let token = binding.token().0;
    if let Some(known) = table.known.get(&token).and_then(Weak::upgrade) {
        return known;
    }
    if table.known.len() >= table.sweep_at {
        table.known.retain(|_, binding| binding.strong_count() > 0);
        table.sweep_at = SWEEP_AT_FIRST.max(2 * table.known.len());
    }
    let binding = Arc::new(binding);
    table.known.insert(token, Arc::downgrade(&binding));
    binding
}
