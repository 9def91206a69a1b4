//! Records which objects threads are in by a lease. Each thread writes its own activity slots. A thread that
//! ends objects reads those of all threads.
//!
//! The slots belong to the process and not to an ORB, as threads do. So a call finds its thread's slots in
//! one step.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

use super::activation::{Activation, AtomicActivation};
use super::{Binding, Token};
use crate::base::sync::lock;

/// The calls by lease that a thread is in, the outermost first. All slots behind the first free one are free.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct ActivitySlots([ActivitySlot; DEPTH_MAX]);

/// One call by lease that a thread is in.
#[derive(Debug, Default)]
pub(super) struct ActivitySlot {
    /// The token of the lease; 0 where the slot is free.
    token: AtomicU64,
    /// The object of the call, where the lease is of its adapter. It is stored here and not in the lease,
    /// because the thread may be in several objects by one lease.
    pub(super) activation: AtomicActivation,
}

/// The deepest nesting of calls by lease. Deeper calls take the general path.
const DEPTH_MAX: usize = 16;

thread_local! {
    static OWN: Cell<Option<&'static ActivitySlots>> = const { Cell::new(None) };
    /// Apart from `OWN`, because a thread-local value with a destructor must check its state at each use.
    static CLAIM: SlotClaim = const { SlotClaim };
}

/// Gives the thread's slots back for another thread when it ends.
struct SlotClaim;

static REGISTRY: Mutex<ActivityRegistry> = Mutex::new(ActivityRegistry { all: Vec::new(), free: Vec::new() });

/// All slots ever made: as many as the most threads that had slots at one time.
struct ActivityRegistry {
    all: Vec<&'static ActivitySlots>,
    free: Vec<&'static ActivitySlots>,
}

/// The bindings of tokens, for servants that ask which object they incarnate.
static BINDINGS: Mutex<BindingTable> =
    Mutex::new(BindingTable { known: BTreeMap::new(), sweep_at: SWEEP_AT_FIRST });

struct BindingTable {
    known: BTreeMap<u64, Weak<dyn Binding>>,
    /// The size at which bindings that no lease holds are removed.
    sweep_at: usize,
}

const SWEEP_AT_FIRST: usize = 64;

impl ActivitySlots {
    /// The slots of this thread, if it has any.
    #[inline(always)] // a step of every call
    pub(super) fn own() -> Option<&'static ActivitySlots> {
        OWN.with(Cell::get) // `LocalKey::get` is a call
    }

    /// The slot for the next object that the thread enters; `None` when it is in too many.
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

    /// Ensures that the thread has slots. False where it cannot have any, because it is ending.
    #[cold]
    pub(super) fn claim() -> bool {
        let claim = |_: &SlotClaim| {
            if ActivitySlots::own().is_none() {
                let mut registry = lock(&REGISTRY);
                let slots = registry.free.pop().unwrap_or_else(|| {
                    let slots: &'static ActivitySlots = Box::leak(Box::default());
                    registry.all.push(slots);
                    slots
                });
                OWN.with(|own| own.set(Some(slots)));
            }
        };
        CLAIM.try_with(claim).is_ok()
    }
}

impl ActivitySlot {
    /// Whether the slot is free. Only its own thread may ask. Of these methods, other threads may call only
    /// `token` and `binding`.
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

    /// The binding of the token, and the recorded activation.
    fn binding(&self) -> Option<(Arc<dyn Binding>, Activation)> {
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

/// Whether any thread is in an object for whose token `is_so` holds.
pub(super) fn any(is_so: impl Fn(Token) -> bool) -> bool {
    // The search covers all slots: a thread enters and leaves objects meanwhile, and an entry behind a slot
    // that was just freed must not be missed.
    let is_in = |place: &ActivitySlot| place.token().is_some_and(&is_so);
    lock(&REGISTRY).all.iter().any(|slots| slots.0.iter().any(is_in))
}

/// The number of objects that this thread is in by a lease.
#[inline(always)] // a step of every upcall
pub(crate) fn depth_by_lease() -> usize {
    match ActivitySlots::own() {
        Some(slots) if !slots.0[0].is_free() => slots.depth(),
        _ => 0,
    }
}

/// The innermost binding that this thread is in by a lease, and its recorded activation.
#[cold]
pub(crate) fn innermost_binding() -> Option<(Arc<dyn Binding>, Activation)> {
    ActivitySlots::own()?.taken().last()?.binding()
}

/// All bindings that this thread is in by a lease, and their recorded activations.
#[cold]
pub(crate) fn all_bindings() -> impl Iterator<Item = (Arc<dyn Binding>, Activation)> {
    ActivitySlots::own().into_iter().flat_map(ActivitySlots::taken).filter_map(ActivitySlot::binding)
}

/// The shared binding of all leases of an object.
#[cold]
pub(super) fn shared(binding: impl Binding) -> Arc<dyn Binding> {
    let mut table = lock(&BINDINGS);
    let token = binding.token().0;
    if let Some(known) = table.known.get(&token).and_then(Weak::upgrade) {
        return known;
    }
    if table.known.len() >= table.sweep_at {
        table.known.retain(|_, binding| binding.strong_count() > 0);
        table.sweep_at = SWEEP_AT_FIRST.max(2 * table.known.len());
    }
    let binding: Arc<dyn Binding> = Arc::new(binding);
    table.known.insert(token, Arc::downgrade(&binding));
    binding
}
