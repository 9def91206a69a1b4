//! Records which objects threads are in by a lease. Each thread writes its own activity slots. A thread that
//! ends objects reads those of all threads.
//!
//! The slots belong to the process and not to an ORB, as threads do. So a call finds its thread's slots in
//! one step.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::iter;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use once_cell::race::OnceBox;

use super::activation::{Activation, AtomicActivation};
use super::{Binding, Token};
use crate::base::locks::PiLock;
use crate::base::spawner;

/// The calls by lease that a thread is in, the outermost first. All slots behind the first free one are free.
#[derive(Debug)]
#[repr(align(128))]
pub(super) struct ActivitySlots([ActivitySlot; DEPTH_MAX]);

/// One call by lease that a thread is in.
#[derive(Debug)]
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
    /// Nothing on threads with a real-time priority, whose calls within the process are counted.
    static FOR_COLLOCATED: Cell<Option<&'static ActivitySlots>> = const { Cell::new(None) };
    /// Apart from `OWN`, because a thread-local value with a destructor must check its state at each use.
    static CLAIM: SlotClaim = const { SlotClaim { claimed: Cell::new(None) } };
    /// The last bindings of this thread's questions, so that further questions take no lock.
    static ASKED: RefCell<VecDeque<(u64, Weak<dyn Binding>)>> = const { RefCell::new(VecDeque::new()) };
}

/// How many bindings a thread keeps in mind. Each may keep some 100 bytes of a binding that has ended.
const ASKED_MAX: usize = 8;

/// Gives the thread's slots back for another thread when it ends.
struct SlotClaim {
    claimed: Cell<Option<&'static ClaimedSlots>>,
}

/// The slots of one thread, of another one later, and all slots that were made after them. There are as many as the most
/// threads that had slots at one time. No thread ever waits here for another.
struct ClaimedSlots {
    is_claimed: AtomicBool,
    slots: ActivitySlots,
    next: OnceBox<ClaimedSlots>,
}

static FIRST: ClaimedSlots = ClaimedSlots::new(false);

/// The bindings of tokens, for servants that ask which object they incarnate.
static BINDINGS: PiLock<BindingTable> = PiLock::new(BindingTable { known: BTreeMap::new(), swept_to: 0 });

struct BindingTable {
    known: BTreeMap<u64, Weak<dyn Binding>>,
    /// Entries from this token on come next to be looked at.
    swept_to: u64,
}

/// So many entries are looked at whenever one is added, so that those go that no lease holds, and no thread holds the lock
/// for long.
const SWEPT_EACH_TIME: usize = 4;

impl ClaimedSlots {
    const fn new(is_claimed: bool) -> ClaimedSlots {
        ClaimedSlots {
            is_claimed: AtomicBool::new(is_claimed),
            slots: ActivitySlots([const { ActivitySlot::new() }; DEPTH_MAX]),
            next: OnceBox::new(),
        }
    }

    fn all() -> impl Iterator<Item = &'static ClaimedSlots> {
        iter::successors(Some(&FIRST), |slots| slots.next.get())
    }

    /// Slots that no other thread has.
    #[cold]
    fn claim() -> &'static ClaimedSlots {
        let mut last = &FIRST;
        for slots in ClaimedSlots::all() {
            if !slots.is_claimed.swap(true, Ordering::SeqCst) {
                return slots;
            }
            last = slots;
        }
        let mut made = Box::new(ClaimedSlots::new(true));
        // Threads that make slots at the same time go on to the end of the list.
        while let Err(back) = last.next.set(made) {
            made = back;
            last = last.next.get().unwrap_or(last);
        }
        last.next.get().unwrap_or(last)
    }
}

impl ActivitySlots {
    /// The slots of this thread, if it has any.
    #[inline(always)] // a step of every call
    pub(super) fn own() -> Option<&'static ActivitySlots> {
        OWN.with(Cell::get) // `LocalKey::get` is a call
    }

    /// The slots of this thread, if its calls within the process use leases and it has any.
    #[inline(always)] // a step of every call
    pub(super) fn own_for_collocated_calls() -> Option<&'static ActivitySlots> {
        FOR_COLLOCATED.with(Cell::get)
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
        let claim = |claim: &SlotClaim| {
            if ActivitySlots::own().is_none() {
                let claimed = ClaimedSlots::claim();
                claim.claimed.set(Some(claimed));
                OWN.with(|own| own.set(Some(&claimed.slots)));
                if !spawner::is_real_time() {
                    FOR_COLLOCATED.with(|own| own.set(Some(&claimed.slots)));
                }
            }
        };
        CLAIM.try_with(claim).is_ok()
    }
}

impl ActivitySlot {
    const fn new() -> ActivitySlot {
        ActivitySlot { token: AtomicU64::new(0), activation: AtomicActivation::new() }
    }

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
        let token = self.token()?.0;
        let binding = asked_before(token).or_else(|| asked_now(token))?;
        Some((binding, self.activation.get()))
    }
}

impl Drop for SlotClaim {
    fn drop(&mut self) {
        OWN.with(Cell::take);
        FOR_COLLOCATED.with(Cell::take);
        if let Some(slots) = self.claimed.take() {
            slots.is_claimed.store(false, Ordering::SeqCst);
        }
    }
}

/// Whether any thread is in an object for whose token `is_so` holds.
pub(super) fn any(is_so: impl Fn(Token) -> bool) -> bool {
    // The search covers all slots: a thread enters and leaves objects meanwhile, and an entry behind a slot
    // that was just freed must not be missed.
    let is_in = |place: &ActivitySlot| place.token().is_some_and(&is_so);
    ClaimedSlots::all().any(|claimed| claimed.slots.0.iter().any(is_in))
}

/// The binding of a token, if this thread has asked for it lately.
fn asked_before(token: u64) -> Option<Arc<dyn Binding>> {
    ASKED.try_with(|asked| asked.borrow().iter().find(|(other, _)| *other == token)?.1.upgrade()).ok()?
}

fn asked_now(token: u64) -> Option<Arc<dyn Binding>> {
    let binding = BINDINGS.lock().known.get(&token)?.upgrade()?;
    let _thread_is_ending = ASKED.try_with(|asked| {
        let mut asked = asked.borrow_mut();
        asked.truncate(ASKED_MAX - 1);
        asked.push_front((token, Arc::downgrade(&binding)));
    });
    Some(binding)
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
    let token = binding.token().0;
    if let Some(known) = BINDINGS.lock().known.get(&token).and_then(Weak::upgrade) {
        return known;
    }
    let binding: Arc<dyn Binding> = Arc::new(binding);
    BINDINGS.lock().enter(token, binding)
}

impl BindingTable {
    /// Enters a binding, unless another thread has been quicker: then that thread's binding is the shared one.
    fn enter(&mut self, token: u64, binding: Arc<dyn Binding>) -> Arc<dyn Binding> {
        self.sweep();
        if let Some(known) = self.known.get(&token).and_then(Weak::upgrade) {
            return known;
        }
        self.known.insert(token, Arc::downgrade(&binding));
        binding
    }

    fn sweep(&mut self) {
        let next = self.known.range(self.swept_to..).take(SWEPT_EACH_TIME);
        let looked_at: Vec<(u64, bool)> =
            next.map(|(token, binding)| (*token, binding.strong_count() == 0)).collect();
        self.swept_to = match looked_at.last() {
            Some((last, _)) if looked_at.len() == SWEPT_EACH_TIME => last + 1,
            _ => 0,
        };
        for (token, _) in looked_at.into_iter().filter(|(_, is_ended)| *is_ended) {
            self.known.remove(&token);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;
    use std::time::Duration;

    use super::*;

    struct Bound(Token);

    impl Binding for Bound {
        fn token(&self) -> Token {
            self.0
        }

        fn settle(&self) {}
    }

    #[test]
    fn a_thread_that_asks_again_which_object_it_is_in_waits_for_none_that_makes_a_lease() {
        assert!(ActivitySlots::claim());
        let binding = shared(Bound(Token::new(7)));
        let place = ActivitySlots::own().unwrap().next().unwrap();
        place.take(binding.token());
        let is_known = || innermost_binding().is_some_and(|(found, _)| Arc::ptr_eq(&found, &binding));
        assert!(is_known());
        let (held, is_held) = mpsc::channel();
        let (let_go, is_let_go) = mpsc::channel::<()>();
        thread::scope(|scope| {
            let makes = scope.spawn(move || {
                let _making = BINDINGS.lock();
                held.send(()).unwrap();
                // Bounds a hang.
                is_let_go.recv_timeout(Duration::from_secs(20))
            });
            is_held.recv().unwrap();
            assert!(is_known());
            let _ = let_go.send(());
            makes.join().unwrap().expect("this thread asks while the other one holds the table");
        });
        place.leave();
    }

    #[test]
    fn threads_have_slots_of_their_own_and_give_them_back() {
        let slots_of = |threads: usize| {
            let all_have = std::sync::Barrier::new(threads);
            thread::scope(|scope| {
                let own = || {
                    assert!(ActivitySlots::claim());
                    all_have.wait();
                    std::ptr::from_ref(ActivitySlots::own().unwrap()).addr()
                };
                let threads: Vec<_> = (0..threads).map(|_| scope.spawn(own)).collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
            })
        };
        let mut first = slots_of(8);
        first.sort_unstable();
        first.dedup();
        assert_eq!(first.len(), 8);
        let before = ClaimedSlots::all().count();
        (0..100).for_each(|_| drop(slots_of(2)));
        // Threads of other tests may make some.
        assert!(ClaimedSlots::all().count() < before + 100);
    }

    #[test]
    fn bindings_without_leases_are_forgotten() {
        let mut table = BindingTable { known: BTreeMap::new(), swept_to: 0 };
        for token in 0..10_000 {
            let binding: Arc<dyn Binding> = Arc::new(Bound(Token(token)));
            drop(table.enter(token, binding));
        }
        assert!(table.known.len() < 100, "{}", table.known.len());
    }
}
