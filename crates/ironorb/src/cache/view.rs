//! What all places of a session are proved by, as readers see it without a lock.

use std::sync::atomic::{AtomicU64, Ordering};

use ironorb_cache::{Epoch, Moment, Opened, Position, Proof};

/// The [`Proof`] of a session. One thread publishes at a time.
#[derive(Debug, Default)]
pub(crate) struct View {
    /// When the newest answered probe left, in nanoseconds; 0 for none.
    proved: AtomicU64,
    taken: AtomicU64,
    floor: AtomicU64,
    /// The server's life; 0 without a session.
    epoch: AtomicU64,
}

impl View {
    /// Publishes a proof. What it proves has been put into its places before.
    pub(super) fn publish(&self, proof: Proof, session: Option<Opened>) {
        self.epoch.store(session.map_or(0, |session| session.epoch.0), Ordering::Relaxed);
        self.floor.store(proof.floor.0, Ordering::Relaxed);
        self.taken.store(proof.taken.0, Ordering::Release);
        self.proved.store(proof.proved.map_or(0, Moment::as_nanos), Ordering::Release);
    }

    /// The proof for a read that begins. A place that is read after this has all that is proved.
    #[inline]
    pub(crate) fn proof(&self) -> Proof {
        let proved = self.proved.load(Ordering::Acquire);
        Proof {
            proved: (proved != 0).then(|| Moment::from_nanos(proved)),
            taken: Position(self.taken.load(Ordering::Acquire)),
            floor: Position(self.floor.load(Ordering::Relaxed)),
        }
    }

    /// Has nothing proved: no position is as late as reads must have. Takes no lock.
    pub(crate) fn end(&self) {
        self.floor.store(u64::MAX, Ordering::Relaxed);
    }

    /// Whether there is a session of this epoch.
    pub(crate) fn is_of(&self, epoch: Epoch) -> bool {
        self.epoch.load(Ordering::Relaxed) == epoch.0
    }

    /// Whether reads go behind a position neither now nor later.
    pub(crate) fn is_beyond(&self, position: Position) -> bool {
        self.floor.load(Ordering::Relaxed) >= position.0
    }
}
