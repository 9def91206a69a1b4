//! The state of an object, in its server.

use std::cell::Cell as StdCell;
use std::fmt;
use std::sync::Arc;

use ironorb_cache::{Due, Fill, Filled, Members, Moment, Opened, Position, Token, WriteId};
use ironorb_extent::{ElementError, ElementId};
use ironorb_giop::{Misuse, Writer};

use super::elements::{ElementCell, ElementStates};
use super::log::{CellNumber, ServerCache};
use super::state::{CachedMode, CachedState};
use crate::base::locks::{Circle, LockGuard, PiLock};
use crate::object::deadline::NoCalls;

/// The cached attributes of an object, in its server: the only source of their values. A servant has it, its skeleton answers
/// from it, and clients are told of what changes in it. Clones are the same cell.
///
/// A cell has a lock of its own. A thread that holds it runs at the priority of the most urgent thread that waits for it.
pub struct Cell<S: CachedState>(Arc<Shared<S>>);

struct Shared<S>(PiLock<Inner<S>>);

struct Inner<S> {
    state: S,
    /// The position of the last write, if a client has asked for the state since.
    version: Option<Position>,
    /// The log, once a client has asked for the state.
    joined: Option<Joined>,
    /// The object has been deactivated: no client holds its state any more.
    is_withdrawn: bool,
}

#[derive(Clone)]
struct Joined {
    cache: Arc<ServerCache>,
    number: CellNumber,
}

/// Changes of cells use other cells that are being changed, so that their threads would wait for one another.
#[cold]
fn leave_circle(_: Circle) -> ! {
    panic!("a change of a cell uses another one that is being changed by a thread that waits for the first")
}

impl<S: CachedState> Cell<S> {
    /// A cell with this state.
    pub fn new(state: S) -> Cell<S> {
        let inner = Inner { state, version: None, joined: None, is_withdrawn: false };
        Cell(Arc::new(Shared(PiLock::new(inner))))
    }

    /// Looks at the state. Blocks while another thread is at the cell; `look` must not use the cell itself.
    pub fn read<T>(&self, look: impl FnOnce(&S) -> T) -> T {
        look(&self.0.0.lock_outside_circles(leave_circle).state)
    }

    /// Changes the state, and has clients told of the members that are changed through the accessor. All of them change
    /// at once: no reader sees some of them without the others.
    ///
    /// Blocks while another thread is at the cell; `change` must not use the cell itself, and makes no calls: a remote one fails with
    /// BAD_INV_ORDER, minor code `CALL_IN_UPDATE`, because there is no time for it ([`remaining_time`](crate::remaining_time)). Where `change` panics, what it has changed until then stays changed, and
    /// clients are told of it.
    ///
    /// Where the declaration is `linearizable`, or bounds the writes that a client may miss (`updates`), this also blocks before
    /// `change` runs: until the clients that would miss too many have said that they know, or until their terms are over. That takes a
    /// round trip, and 1.001 s at most for each write of the cell that has begun before. Meanwhile the cell can be read.
    ///
    /// # Panics
    ///
    /// If `change` updates its own cell, or one whose writes may wait. And if it uses another cell or element while a thread that is
    /// changing that waits for this one: one of the threads panics, where the system shows such circles, and the others go on. Linux
    /// does. Threads that use several cells in one order never wait so.
    pub fn update<T>(&self, change: impl FnOnce(S::Update<'_>) -> T) -> T {
        match S::MODE {
            CachedMode::Missed(missed_max) => self.update_in_turn(missed_max, change),
            CachedMode::Asked | CachedMode::Pushed => {
                let updating = Updating::begin(self.address(), false);
                self.0.0.lock_outside_circles(leave_circle).change(change, Inner::commit, updating)
            }
        }
    }

    /// Updates when no client would miss too many writes.
    fn update_in_turn<T>(&self, missed_max: u32, change: impl FnOnce(S::Update<'_>) -> T) -> T {
        // Whoever waits here must hold nothing that another thread needs in order to answer.
        let updating = Updating::begin(self.address(), true);
        let (write, mut inner) = loop {
            let joined = self.0.0.lock_outside_circles(leave_circle).joined.clone();
            let write = joined.map(|joined| BegunWrite::begin(&joined, missed_max));
            let inner = self.0.0.lock_outside_circles(leave_circle);
            // Else the object has become active meanwhile, and clients may hold the state.
            if write.is_some() || inner.joined.is_none() {
                break (write, inner);
            }
        };
        let note = |_: &mut Inner<S>, changed| write.and_then(|write| write.finish(changed));
        inner.change(change, note, updating)
    }

    /// Takes part in a log, unless it does already.
    fn join(&self, inner: &mut Inner<S>, cache: &Arc<ServerCache>) {
        let join = || Joined { cache: cache.clone(), number: cache.join(self.0.clone()) };
        inner.joined.get_or_insert_with(join);
    }

    fn address(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }
}

impl<S: CachedState> Inner<S> {
    /// Commits a write. Without a version no client holds the state, as of the last write.
    fn commit(&mut self, changed: Members) -> Option<Position> {
        let (Some(_), Some(joined)) = (self.version, &self.joined) else { return None };
        match changed {
            Members::NONE => self.version,
            changed => joined.cache.commit(joined.number, changed, S::MODE.is_told_at_once()),
        }
    }

    /// Changes the state. `note` is told what has changed, also if that is nothing, and gives the version of the state.
    fn change<T>(
        &mut self,
        change: impl FnOnce(S::Update<'_>) -> T,
        note: impl FnOnce(&mut Inner<S>, Members) -> Option<Position>,
        _updating: Updating,
    ) -> T {
        /// Notes the members that have changed, also when the change ends by a panic.
        struct Change<'c, S, N: FnOnce(&mut Inner<S>, Members) -> Option<Position>> {
            inner: &'c mut Inner<S>,
            changed: Members,
            note: Option<N>,
        }
        impl<S, N: FnOnce(&mut Inner<S>, Members) -> Option<Position>> Drop for Change<'_, S, N> {
            fn drop(&mut self) {
                let version = self.note.take().and_then(|note| note(self.inner, self.changed));
                if self.changed != Members::NONE {
                    self.inner.version = version;
                }
            }
        }
        let mut update = Change { inner: self, changed: Members::NONE, note: Some(note) };
        let Change { inner, changed, .. } = &mut update;
        change(inner.state.update(changed))
    }
}

/// A write that may be made now. Where it is not, it is given up, so that others of the cell can follow.
struct BegunWrite {
    cache: Arc<ServerCache>,
    id: Option<WriteId>,
}

impl BegunWrite {
    fn begin(joined: &Joined, missed_max: u32) -> BegunWrite {
        let id = Some(joined.cache.begin_write(joined.number, missed_max));
        BegunWrite { cache: joined.cache.clone(), id }
    }

    /// Notes what has changed, and gives the version of the state.
    fn finish(mut self, changed: Members) -> Option<Position> {
        self.id.take().and_then(|id| self.cache.finish_write(id, changed))
    }
}

impl Drop for BegunWrite {
    fn drop(&mut self) {
        if let Some(id) = self.id.take() {
            self.cache.finish_write(id, Members::NONE);
        }
    }
}

thread_local! {
    /// The cell that this thread changes; 0 for none.
    static UPDATED: StdCell<usize> = const { StdCell::new(0) };
}

/// This thread changes a cell, until this is dropped.
struct Updating {
    before: usize,
    _no_calls: NoCalls,
}

impl Updating {
    /// Panics where the thread would wait for itself, or have others wait for what it holds.
    fn begin(cell: usize, may_wait: bool) -> Updating {
        let before = UPDATED.get();
        assert!(before != cell, "a change of a cell must not update the cell");
        assert!(before == 0 || !may_wait, "a change of a cell must not update one whose writes may wait");
        UPDATED.set(cell);
        Updating { before, _no_calls: NoCalls::enter() }
    }
}

impl Drop for Updating {
    fn drop(&mut self) {
        UPDATED.set(self.before);
    }
}

/// A cell without its type, for its adapter.
pub(crate) trait CellHandle {
    /// The repository id of the interface whose state it has.
    fn repository_id(&self) -> &'static str;

    /// Hands out the state for a client that will hold it, with the answer of the log.
    fn fill(
        &self,
        cache: &Arc<ServerCache>,
        of: Opened,
        now: Moment,
        answer: &mut dyn FnMut(Filled<CellNumber>, WriteMembers<'_>),
    );

    /// Whether writes may wait for clients.
    fn writes_wait(&self) -> bool {
        false
    }

    /// Has no client hold the state any more, or come to hold it: the object is no longer active.
    fn withdraw(&self);

    /// The object is active, in the ORB with this log.
    fn admit(&self, cache: &Arc<ServerCache>);
}

impl<S: CachedState> CellHandle for Cell<S> {
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
        let fill = Fill { of, token: Token(0) };
        let mut inner = self.0.0.lock();
        self.join(&mut inner, cache);
        let Inner { state, version, joined: Some(joined), is_withdrawn } = &mut *inner else { return };
        // A cell is in the log of one ORB.
        let filled = match Arc::ptr_eq(&joined.cache, cache) && !*is_withdrawn {
            true => cache.fill(&fill, joined.number, *version, now),
            false => Filled::Refused { of, token: fill.token },
        };
        if let Filled::State { version: told, .. } = filled {
            *version = Some(told);
        }
        answer(filled, &|members, w| state.write(members, w));
    }

    fn writes_wait(&self) -> bool {
        matches!(S::MODE, CachedMode::Missed(_))
    }

    fn withdraw(&self) {
        let mut inner = self.0.0.lock();
        inner.is_withdrawn = true;
        inner.version = None;
        if let Some(joined) = &inner.joined {
            joined.cache.remove(joined.number);
        }
    }

    fn admit(&self, cache: &Arc<ServerCache>) {
        let mut inner = self.0.0.lock();
        inner.is_withdrawn = false;
        if matches!(S::MODE, CachedMode::Missed(_)) {
            cache.begin();
            self.join(&mut inner, cache);
        }
    }
}

/// What a skeleton shows its cells to.
#[allow(missing_debug_implementations)]
pub struct CellVisitor<'v>(&'v mut dyn FnMut(&dyn CellHandle));

impl<'v> CellVisitor<'v> {
    pub(crate) fn new(visit: &'v mut dyn FnMut(&dyn CellHandle)) -> Self {
        CellVisitor(visit)
    }

    /// Shows a servant's cell.
    pub fn visit<S: CachedState>(&mut self, cell: CellRef<'_, S>) {
        match &cell.0 {
            Place::Elsewhere => {}
            Place::Cell(cell) => (self.0)(*cell),
            Place::Element(element) => (self.0)(element),
        }
    }
}

impl<S> Drop for Shared<S> {
    fn drop(&mut self) {
        if let Some(joined) = self.0.lock().joined.take() {
            joined.cache.leave(joined.number);
        }
    }
}

impl<S: CachedState> Clone for Cell<S> {
    fn clone(&self) -> Self {
        Cell(self.0.clone())
    }
}

impl<S: CachedState> fmt::Debug for Cell<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cell").field("state", &S::REPOSITORY_ID).finish_non_exhaustive()
    }
}

/// A cell without its type, for the log.
pub(crate) trait AnyCell: Send + Sync {
    /// Writes what is due of the state: `write` gets the position of the last write and the members that are due, and writes
    /// them by the function that it is given.
    fn due(
        &self,
        due: Due,
        waits: Waits,
        write: &mut dyn FnMut(Position, Members, WriteMembers<'_>),
    ) -> StateDue;
}

/// Whether who asks for what is due waits for the lock of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waits {
    ForCells,
    ForNothing,
}

impl Waits {
    pub(super) fn lock<T>(self, lock: &PiLock<T>) -> Option<LockGuard<'_, T>> {
        match self {
            Waits::ForCells => Some(lock.lock()),
            Waits::ForNothing => lock.try_lock(),
        }
    }
}

/// What has become of a state that is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StateDue {
    Written,
    /// No client holds it.
    NotHeld,
    /// Its lock is not free.
    Busy,
}

/// Writes some members of a state.
pub(crate) type WriteMembers<'w> = &'w dyn Fn(Members, &mut Writer<'_>) -> Result<(), Misuse>;

impl<S: CachedState> AnyCell for Shared<S> {
    fn due(
        &self,
        due: Due,
        waits: Waits,
        write: &mut dyn FnMut(Position, Members, WriteMembers<'_>),
    ) -> StateDue {
        let Some(inner) = waits.lock(&self.0) else { return StateDue::Busy };
        let Some(version) = inner.version else { return StateDue::NotHeld };
        write(version, due.of_version(version), &|members, w| inner.state.write(members, w));
        StateDue::Written
    }
}

/// Where the cached state of an object is: in its servant's [`Cell`], in an element of an extent, or, for a reference, elsewhere. A
/// servant makes it of its cell: `(&self.cell).into()`; or of the element that it serves:
/// [`ElementCells::current`](crate::ElementCells::current).
pub struct CellRef<'c, S: CachedState>(Place<'c, S>);

enum Place<'c, S: CachedState> {
    Elsewhere,
    Cell(&'c Cell<S>),
    Element(ElementCell<'c, S>),
}

impl<'c, S: CachedState> CellRef<'c, S> {
    /// What a reference has.
    pub const ELSEWHERE: CellRef<'static, S> = CellRef(Place::Elsewhere);

    /// The cell, if there is one here.
    pub fn get(self) -> Option<&'c Cell<S>> {
        match self.0 {
            Place::Cell(cell) => Some(cell),
            Place::Elsewhere | Place::Element(_) => None,
        }
    }

    pub(crate) fn of_element(states: &'c dyn ElementStates<S>, id: ElementId) -> CellRef<'c, S> {
        CellRef(Place::Element(ElementCell { states, id }))
    }

    /// Looks at the state, if it is here.
    pub(crate) fn read<T>(self, look: impl FnOnce(&S) -> T) -> Option<Result<T, ElementError>> {
        match self.0 {
            Place::Elsewhere => None,
            Place::Cell(cell) => Some(Ok(cell.read(look))),
            Place::Element(ElementCell { states, id }) => Some(states.state(id).map(|state| look(&state))),
        }
    }
}

impl<'c, S: CachedState> From<&'c Cell<S>> for CellRef<'c, S> {
    fn from(cell: &'c Cell<S>) -> Self {
        CellRef(Place::Cell(cell))
    }
}

impl<S: CachedState> fmt::Debug for CellRef<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = match &self.0 {
            Place::Elsewhere => "elsewhere",
            Place::Cell(_) => "cell",
            Place::Element(_) => "element",
        };
        f.debug_tuple("CellRef").field(&place).finish()
    }
}
