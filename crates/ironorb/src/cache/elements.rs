//! The cached states of an extent's elements, in their server. An element that no client holds is not here, and costs nothing.

use std::collections::BTreeMap;
use std::sync::Arc;

use ironorb_cache::{Due, Fill, Filled, Members, Moment, Opened, Position, Token};
use ironorb_extent::{Element, ElementError, ElementId, Elements, Watcher, WeakElements};

use super::cell::{AnyCell, CellHandle, StateDue, Waits, WriteMembers};
use super::log::{CellNumber, ServerCache};
use super::state::{CachedMode, CachedState};
use crate::base::locks::PiLock;

/// The cached states of elements, without the type of the elements.
pub(crate) trait ElementStates<S>: Send + Sync {
    /// The state of an element.
    fn state(&self, id: ElementId) -> Result<S, ElementError>;

    /// Hands out the state of an element for a client that will hold it, with the answer of the log.
    fn fill(
        &self,
        id: ElementId,
        cache: &Arc<ServerCache>,
        of: Opened,
        now: Moment,
        answer: &mut dyn FnMut(Filled<CellNumber>, WriteMembers<'_>),
    );
}

/// The elements that clients hold. The lock is taken with an element's held, and never the other way round; the log's is taken
/// after it.
pub(crate) struct HeldElements<T: Element, S> {
    elements: WeakElements<T>,
    held: PiLock<Held<S>>,
}

/// The elements by their indices, and in the order in which clients have asked for them.
struct Held<S> {
    by_index: BTreeMap<u64, Member<S>>,
    order: BTreeMap<CellNumber, u64>,
    /// The adapter is being destroyed: no client comes to hold anything.
    is_withdrawn: bool,
}

/// The most elements that are in the log. Beyond that those go that clients have asked for first, whoever holds them.
const HELD_MAX: usize = 1_000_000;

/// An element in the log, and what the log calls it.
struct Member<S> {
    number: CellNumber,
    element: Arc<HeldElement<S>>,
}

/// An element that clients hold.
struct HeldElement<S> {
    cache: Arc<ServerCache>,
    /// What clients hold, as of the last write; `None` if no client holds the state. Changes with the element's lock held.
    told: PiLock<Option<Told<S>>>,
}

/// A state, and the position of the write that made it.
struct Told<S> {
    version: Position,
    state: S,
}

impl<T, S> HeldElements<T, S>
where
    T: Element,
    S: CachedState + for<'t> From<&'t T>,
{
    /// Has clients told of all changes of these elements. `None` if somebody else watches them.
    pub(crate) fn of(elements: &Elements<T>) -> Option<Arc<HeldElements<T, S>>> {
        const {
            let waits = matches!(S::MODE, CachedMode::Missed(_));
            assert!(!waits, "writes of elements wait for no client: neither `linearizable` nor `updates`");
        }
        let none = Held { by_index: BTreeMap::new(), order: BTreeMap::new(), is_withdrawn: false };
        let held = Arc::new(HeldElements { elements: elements.downgrade(), held: PiLock::new(none) });
        elements.set_watcher(held.clone()).then_some(held)
    }

    /// Puts an element into the log whose lock the thread has, unless it is there. `None` once the adapter is being destroyed.
    fn join(&self, id: ElementId, cache: &Arc<ServerCache>) -> Option<(CellNumber, Arc<HeldElement<S>>)> {
        let mut held = self.held.lock();
        if held.is_withdrawn {
            return None;
        }
        let Held { by_index, order, .. } = &mut *held;
        let member = by_index.entry(id.index).or_insert_with(|| {
            let element = Arc::new(HeldElement { cache: cache.clone(), told: PiLock::new(None) });
            let number = cache.join(element.clone());
            order.insert(number, id.index);
            Member { number, element }
        });
        Some((member.number, member.element.clone()))
    }

    /// Whether the log has an element under this number. It may have been taken out while it was filled.
    fn has(&self, index: u64, number: CellNumber) -> bool {
        self.held.lock().by_index.get(&index).is_some_and(|member| member.number == number)
    }
}

impl<T: Element, S> HeldElements<T, S> {
    /// Takes an element out of the log: no client holds it any more.
    fn leave(&self, index: u64) {
        let mut held = self.held.lock();
        let left = held.by_index.remove(&index);
        if let Some(Member { number, element }) = left {
            held.order.remove(&number);
            drop(held);
            element.cache.leave(number);
        }
    }

    /// Takes the oldest elements out, until there are so many at most.
    fn leave_beyond(&self, most: usize) {
        let oldest = || {
            let held = self.held.lock();
            let (_, index) = held.order.first_key_value()?;
            (held.order.len() > most).then_some(*index)
        };
        while let Some(index) = oldest() {
            self.leave(index);
        }
    }
}

/// The elements that clients hold, for the adapter.
pub(crate) trait WithdrawElements: Send + Sync {
    /// Has no client hold any element, or come to hold one: the adapter is being destroyed.
    fn withdraw(&self);
}

impl<T: Element, S: Send + Sync + 'static> WithdrawElements for HeldElements<T, S> {
    fn withdraw(&self) {
        self.held.lock().is_withdrawn = true;
        self.leave_beyond(0);
    }
}

impl<T: Element, S> Drop for HeldElements<T, S> {
    fn drop(&mut self) {
        self.leave_beyond(0);
    }
}

impl<T, S> Watcher<T> for HeldElements<T, S>
where
    T: Element,
    S: CachedState + for<'t> From<&'t T>,
{
    fn changed(&self, index: u64, state: Option<&T>) -> bool {
        let member = self.held.lock().by_index.get(&index).map(|it| (it.number, it.element.clone()));
        let Some((number, element)) = member else { return false };
        if state.is_some_and(|state| element.commit(number, S::from(state))) {
            return true;
        }
        self.leave(index);
        false
    }
}

impl<T, S> ElementStates<S> for HeldElements<T, S>
where
    T: Element,
    S: CachedState + for<'t> From<&'t T>,
{
    fn state(&self, id: ElementId) -> Result<S, ElementError> {
        self.elements.upgrade().ok_or(ElementError::Absent)?.read(id, |state| S::from(state))
    }

    fn fill(
        &self,
        id: ElementId,
        cache: &Arc<ServerCache>,
        of: Opened,
        now: Moment,
        answer: &mut dyn FnMut(Filled<CellNumber>, WriteMembers<'_>),
    ) {
        let Some(elements) = self.elements.upgrade() else { return };
        let fill = Fill { of, token: Token(0) };
        let _gone = elements.watch(id, |state| {
            let refused = Filled::Refused { of, token: fill.token };
            let filled = match self.join(id, cache) {
                // An element is in the log of one ORB.
                Some((number, element)) if Arc::ptr_eq(&element.cache, cache) => {
                    let filled = cache.fill(&fill, number, element.version(), now);
                    if let Filled::State { version, .. } = filled {
                        *element.told.lock() = Some(Told { version, state: S::from(state) });
                    }
                    // Taken out meanwhile, it would change without anybody being told.
                    match self.has(id.index, number) {
                        true => filled,
                        false => {
                            cache.leave(number);
                            refused
                        }
                    }
                }
                _ => refused,
            };
            let state = S::from(state);
            answer(filled, &|members, w| state.write(members, w));
        });
        self.leave_beyond(HELD_MAX);
    }
}

impl<S: CachedState> HeldElement<S> {
    fn version(&self) -> Option<Position> {
        self.told.lock().as_ref().map(|told| told.version)
    }

    /// Commits a write of what has changed: an element does not tell what, so that its states are compared. A change of what
    /// clients do not see is none. False if no client holds the state.
    fn commit(&self, number: CellNumber, state: S) -> bool {
        let mut told = self.told.lock();
        let Some(before) = &mut *told else { return false };
        let changed = state.changed_since(&before.state);
        if changed == Members::NONE {
            return true;
        }
        let version = self.cache.commit(number, changed, S::MODE.is_told_at_once());
        *told = version.map(|version| Told { version, state });
        told.is_some()
    }
}

impl<S: CachedState> AnyCell for HeldElement<S> {
    fn due(
        &self,
        due: Due,
        waits: Waits,
        write: &mut dyn FnMut(Position, Members, WriteMembers<'_>),
    ) -> StateDue {
        // Without the element's lock: a change that is long holds up nobody.
        let Some(told) = waits.lock(&self.told) else { return StateDue::Busy };
        let Some(Told { version, state }) = &*told else { return StateDue::NotHeld };
        write(*version, due.of_version(*version), &|members, w| state.write(members, w));
        StateDue::Written
    }
}

/// One of the elements, as a servant's cell.
pub(super) struct ElementCell<'c, S> {
    pub(super) states: &'c dyn ElementStates<S>,
    pub(super) id: ElementId,
}

impl<S: CachedState> CellHandle for ElementCell<'_, S> {
    fn repository_id(&self) -> &'static str {
        S::REPOSITORY_ID
    }

    fn fill(
        &self,
        cache: &Arc<ServerCache>,
        of: Opened,
        now: Moment,
        answer: &mut dyn FnMut(Filled<CellNumber>, WriteMembers<'_>),
    ) {
        self.states.fill(self.id, cache, of, now, answer);
    }

    // Elements are not activated: their watcher is told of their ends.
    fn withdraw(&self) {}

    fn admit(&self, _: &Arc<ServerCache>) {}
}
