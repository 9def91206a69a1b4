//! How many requests a manager has let in: counted in several places, so that threads which serve at the same time do not
//! take one cache line from each other.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A count in parts.
#[derive(Debug, Default)]
pub(super) struct InFlight([Part; STRIPES]);

#[derive(Debug, Default)]
#[repr(align(64))]
struct Part(AtomicUsize);

/// The part in which a request has been counted. It is taken from the same one, whatever thread it has gone to, so none is
/// ever below what is really there.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stripe(u8);

/// Threads that take turns at one are as many as those that serve divided by this. Costs 64 bytes each.
pub(crate) const STRIPES: usize = 8;

thread_local! {
    static OWN: Cell<Option<Stripe>> = const { Cell::new(None) };
}

impl Stripe {
    /// The thread's own.
    #[inline]
    pub(crate) fn of_this_thread() -> Stripe {
        // A thread that is going down may take any.
        OWN.try_with(|own| own.get().unwrap_or_else(|| Stripe::assign(own))).unwrap_or(Stripe(0))
    }

    /// As an index below [`STRIPES`].
    #[inline]
    pub(crate) fn index(self) -> usize {
        usize::from(self.0) % STRIPES
    }

    #[cold]
    fn assign(own: &Cell<Option<Stripe>>) -> Stripe {
        // No two threads need be apart: what is counted is right anyway.
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let stripe = Stripe((NEXT.fetch_add(1, Ordering::Relaxed) % STRIPES) as u8);
        own.set(Some(stripe));
        stripe
    }
}

impl InFlight {
    #[inline]
    pub(super) fn come(&self) -> Stripe {
        let stripe = Stripe::of_this_thread();
        self.0[stripe.index()].0.fetch_add(1, Ordering::SeqCst);
        stripe
    }

    #[inline]
    pub(super) fn go(&self, stripe: Stripe) {
        self.0[stripe.index()].0.fetch_sub(1, Ordering::SeqCst);
    }

    pub(super) fn any(&self) -> bool {
        self.0.iter().any(|part| part.0.load(Ordering::SeqCst) > 0)
    }
}
