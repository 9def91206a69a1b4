//! Fills of several places at once.

use std::sync::Arc;

use ironorb_cache::Fill;
use ironorb_giop::exception::{SystemException, SystemExceptionKind};

use super::{FILL_OPERATION, take_fill};
use crate::cache::wire::{self, FillResults};
use crate::cache::{CachedState, Place};
use crate::driver::invoke::or_call_in_update;
use crate::driver::pending::{Pending, begin};

/// The most fills that are out at once.
pub(super) const AT_ONCE_MAX: usize = 256;

/// Fills that have been asked for.
pub(super) struct Fills<S: CachedState>(Vec<OneFill<S>>);

struct OneFill<S: CachedState> {
    place: Arc<Place<S>>,
    fill: Fill,
    results: Pending<FillResults, SystemException>,
}

impl<S: CachedState> Fills<S> {
    /// None.
    pub(super) const NONE: Fills<S> = Fills(Vec::new());

    /// Asks for what these places hold, if they hold nothing and their servers have sessions. They are at most [`AT_ONCE_MAX`].
    pub(super) fn begin(places: impl IntoIterator<Item = Arc<Place<S>>>) -> Fills<S> {
        let begin_one = |place: Arc<Place<S>>| {
            let place = place.newest();
            if place.has_none() {
                return None;
            }
            let fill = place.peer.begin_fill(place.entry, super::moment)?;
            let arguments =
                move |w: &mut ironorb_giop::Writer<'_>| wire::write_fill(S::REPOSITORY_ID, fill.of, w);
            let results = begin(&place.object, &FILL_OPERATION, &arguments, wire::read_filled);
            Some(OneFill { place, fill, results })
        };
        Fills(places.into_iter().take(AT_ONCE_MAX).filter_map(begin_one).collect())
    }

    /// Waits for the answers, and takes them. A place whose answer does not come holds nothing.
    pub(super) fn take(self) {
        for OneFill { place, fill, results } in self.0 {
            match results.wait().map_err(or_call_in_update) {
                // What cannot be read is not held.
                Ok(results) => drop(take_fill(&place, &fill, results.of(&fill))),
                Err(e) => not_filled(&place, &fill, &e),
            }
        }
    }
}

/// Notes that a fill has come to nothing.
pub(super) fn not_filled<S: CachedState>(place: &Place<S>, fill: &Fill, e: &SystemException) {
    place.peer.fill_failed(place.entry, fill.token);
    if e.kind == SystemExceptionKind::BadOperation {
        place.note_none();
    }
}
