//! Counts the requests that a manager has admitted. The count is split, so that threads that serve at the
//! same time do not contend for one cache line.

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A count in [`STRIPES`] parts.
#[derive(Debug, Default)]
pub(super) struct InFlight([Part; STRIPES]);

#[derive(Debug, Default)]
#[repr(align(64))]
struct Part(AtomicUsize);

/// The part in which a request is counted. The request is counted out of the same part, even on a different
/// thread, so no part ever falls below the true number.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stripe(u8);

/// The number of parts. The serving threads are spread over them. Each part costs 64 bytes.
const STRIPES: usize = 8;

thread_local! {
    static OWN: Cell<Option<Stripe>> = const { Cell::new(None) };
}

impl Stripe {
    /// The stripe of the calling thread.
    #[inline]
    fn of_this_thread() -> Stripe {
        // A thread that is ending may take any stripe.
        OWN.try_with(|own| own.get().unwrap_or_else(|| Stripe::assign(own))).unwrap_or(Stripe(0))
    }

    /// The index of the stripe, below [`STRIPES`].
    #[inline]
    fn index(self) -> usize {
        usize::from(self.0) % STRIPES
    }

    #[cold]
    fn assign(own: &Cell<Option<Stripe>>) -> Stripe {
        // Threads may share a stripe: the count is right anyway.
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let stripe = Stripe((NEXT.fetch_add(1, Ordering::Relaxed) % STRIPES) as u8);
        own.set(Some(stripe));
        stripe
    }
}

impl InFlight {
    #[inline]
    pub(super) fn enter(&self) -> Stripe {
        let stripe = Stripe::of_this_thread();
        self.0[stripe.index()].0.fetch_add(1, Ordering::SeqCst);
        stripe
    }

    #[inline]
    pub(super) fn leave(&self, stripe: Stripe) {
        self.0[stripe.index()].0.fetch_sub(1, Ordering::SeqCst);
    }

    pub(super) fn any(&self) -> bool {
        self.0.iter().any(|part| part.0.load(Ordering::SeqCst) > 0)
    }
}
