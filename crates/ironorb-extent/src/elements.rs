//! The elements of an extent.

use std::fmt;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use bytemuck::Pod;
use ironorb_locks::PiTurn;

use crate::durability::Durability;
use crate::error::{ElementError, ExtentError};
use crate::file::{FileOptions, OpenFile};
use crate::lanes::{CHANGES_MAX, Lanes};
use crate::log::{DiskLog, Log};
use crate::memory::{Held, LockedRow, Memory, NotHeld, Pages, Row};

/// A state: plain data without padding, for which every bit pattern is valid. `#[derive(bytemuck::Pod, bytemuck::Zeroable)]`
/// checks that.
pub trait Element: Pod + Send + Sync {}

impl<T: Pod + Send + Sync> Element for T {}

/// How often an element has been made: 0 for the first time. It is below 2^24 - 1, and begins anew after that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Generation(pub u32);

/// Which element: its index and, where only one of a certain generation is meant, that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ElementId {
    /// The index.
    pub index: u64,
    /// The generation; `None` for the element that has the index at the time.
    pub generation: Option<Generation>,
}

impl From<u64> for ElementId {
    fn from(index: u64) -> ElementId {
        ElementId { index, generation: None }
    }
}

/// Is told what becomes of the elements that are [watched](Elements::watch).
pub trait Watcher<T>: Send + Sync {
    /// An element has changed, or has been destroyed, if `state` is `None`. Its lock is held: the watcher must not use this
    /// element, nor wait for a thread that does. False ends the watch.
    fn changed(&self, index: u64, state: Option<&T>) -> bool;
}

/// States of one type, each with a lock of its own. Clones are the same elements.
pub struct Elements<T: Element>(Arc<Inner<T>>);

struct Inner<T: Element> {
    states: LockedRow<T>,
    /// For each element a [`Mark`]. It changes with the element's turn held.
    marks: Row<AtomicU32>,
    /// `None` where an update needs nothing.
    journal: Option<Journal<T>>,
    watcher: OnceLock<Arc<dyn Watcher<T>>>,
    file: Option<OpenFile>,
    /// Whether the elements are as the file and its log say: it has been opened, and no write to the disk has failed. Otherwise the
    /// log is left for whoever opens the file next.
    is_sound: AtomicBool,
}

/// What makes updates survive.
enum Journal<T> {
    Lanes(Lanes<T>),
    Log(Log<DiskLog>),
}

/// A change of an element that is about to be made.
pub(crate) struct Change<'r, T> {
    held: Held<'r, T>,
    pub(crate) index: u64,
    pub(crate) mark: u32,
    pub(crate) state: T,
}

impl<'r, T> Change<'r, T> {
    pub(crate) fn new(held: Held<'r, T>, index: u64, mark: u32, state: T) -> Change<'r, T> {
        Change { held, index, mark, state }
    }
}

/// Whether an element exists, whether it is watched, and its generation. Zero is an element of the first generation that
/// nobody watches.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Mark(u32);

impl Mark {
    const ABSENT: u32 = 1;
    const WATCHED: u32 = 2;
    const GENERATION_AT: u32 = 8;

    fn exists(self) -> bool {
        self.0 & Mark::ABSENT == 0
    }

    fn generation(self) -> Generation {
        Generation(self.0 >> Mark::GENERATION_AT)
    }

    /// Whether the element exists, and is of the generation that is meant.
    #[inline]
    fn check(self, id: ElementId) -> Result<(), ElementError> {
        let is_meant = self.exists() && id.generation.is_none_or(|it| it == self.generation());
        if is_meant { Ok(()) } else { Err(ElementError::Absent) }
    }

    fn is_watched(self) -> bool {
        self.0 & Mark::WATCHED != 0
    }

    fn watched(self, is_watched: bool) -> Mark {
        Mark(if is_watched { self.0 | Mark::WATCHED } else { self.0 & !Mark::WATCHED })
    }

    fn absent(self) -> Mark {
        Mark(self.0 | Mark::ABSENT)
    }

    /// The mark of the element that is made in the place of an absent one.
    fn next(self) -> Mark {
        Mark(((self.generation().0 + 1) % GENERATIONS) << Mark::GENERATION_AT)
    }
}

/// How many generations there are. One number of 24 bits is left for whoever writes generations beside another mark.
const GENERATIONS: u32 = (1 << 24) - 1;

/// The most bytes of a state.
const STATE_BYTES_MAX: usize = 4096;

impl<T: Element> Elements<T> {
    /// Elements in memory, which the system gives at once. `state` gives the state of each.
    pub fn in_memory(count: u64, state: impl FnMut(u64) -> T) -> Result<Elements<T>, ExtentError> {
        check_state::<T>()?;
        let layout = usize::try_from(count).ok().and_then(|count| {
            let marks = count.checked_mul(size_of::<PiTurn>())?;
            let states =
                count.checked_mul(size_of::<u32>())?.checked_add(marks)?.checked_next_multiple_of(64)?;
            let end = count.checked_mul(size_of::<T>())?.checked_add(states)?;
            (end < isize::MAX as usize).then_some((count, marks, states, end))
        });
        let max = isize::MAX as u64 / (BESIDE_STATE + size_of::<T>()) as u64;
        let (count, marks, states, end) = layout.ok_or(ExtentError::TooManyElements { max })?;
        let memory = memory_of_zeros(end)?;
        let mut states = LockedRow::new(Row::at(&memory, 0, count), Row::at(&memory, states, count));
        states.fill(state);
        Ok(Elements(Arc::new(Inner {
            marks: Row::at(&memory, marks, count),
            states,
            journal: None,
            watcher: OnceLock::new(),
            file: None,
            is_sound: AtomicBool::new(true),
        })))
    }

    /// Elements in a file, as it has them. Where there is no file yet, it is made, with all its room on the disk taken, and
    /// `state` gives the state of each.
    pub fn in_file(
        options: &FileOptions,
        count: u64,
        state: impl FnMut(u64) -> T,
    ) -> Result<Elements<T>, ExtentError> {
        check_state::<T>()?;
        let file = OpenFile::open(options, count, size_of::<T>())?;
        let count_here = usize::try_from(count).unwrap_or(usize::MAX);
        let (memory, layout) = (&file.memory, file.layout);
        let turns = memory_of_zeros((count_here + Lanes::<T>::TURNS).saturating_mul(size_of::<PiTurn>()))?;
        let mut states =
            LockedRow::new(Row::at(&turns, 0, count_here), Row::at(memory, layout.states, count_here));
        let lane_turns = Row::at(&turns, count_here * size_of::<PiTurn>(), Lanes::<T>::TURNS);
        let lanes = Lanes::new(memory, layout.lanes, lane_turns);
        let is_new = file.is_new;
        if is_new {
            states.fill(state);
        }
        let inner = Inner {
            states,
            marks: Row::at(memory, layout.marks, count_here),
            journal: Inner::journal(options, &file, lanes)?,
            watcher: OnceLock::new(),
            file: Some(file),
            is_sound: AtomicBool::new(false),
        };
        let elements = Elements(Arc::new(inner));
        elements.begin(options, is_new, count)?;
        Ok(elements)
    }

    fn begin(&self, options: &FileOptions, is_new: bool, count: u64) -> Result<(), ExtentError> {
        let at = |error: io::Error| ExtentError::Io { path: options.path.clone(), error };
        let Some(file) = &self.0.file else { return Ok(()) };
        if is_new {
            self.0.forget_what_was_under_way().map_err(at)?;
            file.finish(count, size_of::<T>(), options.durability)?;
        } else {
            self.finish_what_was_under_way().map_err(at)?;
        }
        file.mark_open(true).map_err(at)?;
        self.0.is_sound.store(true, Ordering::Relaxed);
        Ok(())
    }

    fn finish_what_was_under_way(&self) -> io::Result<()> {
        let put = |index: u64, mark: u32, state: T| {
            let index = usize::try_from(index).unwrap_or(usize::MAX);
            if let (Ok(mut held), Some(place)) = (self.0.states.hold(index), self.0.marks.get(index)) {
                *held = state;
                place.store(mark, Ordering::Relaxed);
            }
        };
        match &self.0.journal {
            None => Ok(()),
            Some(Journal::Lanes(lanes)) => {
                lanes.finish(put);
                Ok(())
            }
            Some(Journal::Log(log)) => log.finish(put, || self.0.flush()),
        }
    }

    /// Bytes of an element beside its state: its lock and its mark.
    pub const BYTES_BESIDE_STATE: usize = BESIDE_STATE;

    /// How many elements there are, with those that do not exist.
    pub fn len(&self) -> u64 {
        self.0.states.len() as u64
    }

    /// Whether the extent has no elements at all.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of memory or of the file that elements take, states and all beside them.
    pub fn bytes(&self) -> u64 {
        self.len() * (BESIDE_STATE + size_of::<T>()) as u64
    }

    /// A handle that does not keep the elements: for a [`Watcher`], which they keep.
    pub fn downgrade(&self) -> WeakElements<T> {
        WeakElements(Arc::downgrade(&self.0))
    }

    /// Which pages the system has given.
    pub fn pages(&self) -> Pages {
        self.0.states.states().memory().pages()
    }

    /// The generation of an element. Never blocks.
    #[inline]
    pub fn generation(&self, id: impl Into<ElementId>) -> Result<Generation, ElementError> {
        let id = id.into();
        let mark = self.mark(id.index)?;
        mark.check(id)?;
        Ok(mark.generation())
    }

    /// Has the processor fetch an element, while the thread goes on: it will be used soon. Among a billion elements each lies in
    /// memory that no cache has.
    #[inline]
    pub fn prefetch(&self, index: u64) {
        let index = usize::try_from(index).unwrap_or(usize::MAX);
        self.0.states.prefetch(index);
        self.0.marks.prefetch(index);
    }

    /// The indices of the elements that exist, in order. An element that is made or destroyed meanwhile may be among them.
    pub fn indices(&self) -> impl Iterator<Item = u64> + use<T> {
        let elements = self.clone();
        (0..self.len()).filter(move |index| elements.mark(*index).is_ok_and(Mark::exists))
    }

    /// Looks at an element. Blocks while another thread uses it. Never allocates.
    #[inline]
    pub fn read<R>(&self, id: impl Into<ElementId>, look: impl FnOnce(&T) -> R) -> Result<R, ElementError> {
        let (held, _) = self.hold(id.into())?;
        Ok(look(&held))
    }

    /// Changes an element. Blocks while another thread uses it, and with durability `Power` for the disk. A change that
    /// panics changes nothing. For several elements at once there is [`update_all`](Self::update_all): of threads whose closures use
    /// each other's elements at least one gets [`ElementError::Circle`]. Allocates nothing, but with durability `Power`.
    #[inline]
    pub fn update<R>(
        &self,
        id: impl Into<ElementId>,
        change: impl FnOnce(&mut T) -> R,
    ) -> Result<R, ElementError> {
        let id = id.into();
        let (held, mark) = self.hold(id)?;
        let mut state = *held;
        let result = change(&mut state);
        self.0.commit(&mut [Change::new(held, id.index, mark.0, state)])?;
        Ok(result)
    }

    /// Changes several elements at once: who reads them sees all changes or none. At most 16, in any order, each once.
    pub fn update_all<R>(
        &self,
        indices: &[u64],
        change: impl FnOnce(&mut [T]) -> R,
    ) -> Result<R, ElementError> {
        let mut order: Vec<usize> = (0..indices.len()).collect();
        // All threads take turns in one order, so that none waits in a circle.
        order.sort_unstable_by_key(|nth| indices[*nth]);
        let is_twice = order.windows(2).any(|pair| indices[pair[0]] == indices[pair[1]]);
        if is_twice || indices.len() > CHANGES_MAX {
            return Err(ElementError::BadSelection { max: CHANGES_MAX });
        }
        let mut changes = Vec::with_capacity(order.len());
        for nth in &order {
            let (held, mark) = self.hold(indices[*nth].into())?;
            let state = *held;
            changes.push(Change::new(held, indices[*nth], mark.0, state));
        }
        let mut states = vec![T::zeroed(); indices.len()];
        for (nth, change) in order.iter().zip(&changes) {
            states[*nth] = change.state;
        }
        let result = change(&mut states);
        for (nth, change) in order.iter().zip(&mut changes) {
            change.state = states[*nth];
        }
        self.0.commit(&mut changes)?;
        Ok(result)
    }

    /// Makes an element that does not exist. Gives its generation: references to an earlier element of this index are not of
    /// this one.
    pub fn create(&self, index: u64, state: T) -> Result<Generation, ElementError> {
        let (held, mark) = self.hold_any(index)?;
        if mark.exists() {
            return Err(ElementError::Exists);
        }
        let next = mark.next();
        self.0.commit(&mut [Change::new(held, index, next.0, state)])?;
        Ok(next.generation())
    }

    /// Destroys an element. Its state becomes zeros.
    pub fn destroy(&self, id: impl Into<ElementId>) -> Result<(), ElementError> {
        let id = id.into();
        let (held, mark) = self.hold(id)?;
        self.0.commit(&mut [Change::new(held, id.index, mark.absent().0, T::zeroed())])
    }

    /// Sets who is told of changes to watched elements. Once; false if somebody is already.
    pub fn set_watcher(&self, watcher: Arc<dyn Watcher<T>>) -> bool {
        self.0.watcher.set(watcher).is_ok()
    }

    /// Looks at an element as [`read`](Self::read) does, and has the watcher told of its changes from now on. Costs others
    /// nothing: an element that is not watched is changed as before.
    pub fn watch<R>(&self, id: impl Into<ElementId>, look: impl FnOnce(&T) -> R) -> Result<R, ElementError> {
        let id = id.into();
        let (held, mark) = self.hold(id)?;
        self.0.put_mark(id.index, mark.watched(true));
        Ok(look(&held))
    }

    /// Waits until all that has been changed is on the disk. Does nothing for elements in memory.
    pub fn flush(&self) -> io::Result<()> {
        self.0.flush()
    }

    fn mark(&self, index: u64) -> Result<Mark, ElementError> {
        let place = usize::try_from(index).ok().and_then(|index| self.0.marks.get(index));
        let place = place.ok_or_else(|| ElementError::OutOfRange { index, count: self.len() })?;
        Ok(Mark(place.load(Ordering::Relaxed)))
    }

    /// Waits for the turn of an element that exists, and is of the generation that is meant.
    #[inline]
    fn hold(&self, id: ElementId) -> Result<(Held<'_, T>, Mark), ElementError> {
        let (held, mark) = self.hold_any(id.index)?;
        mark.check(id)?;
        Ok((held, mark))
    }

    #[inline]
    fn hold_any(&self, index: u64) -> Result<(Held<'_, T>, Mark), ElementError> {
        match self.0.states.hold(usize::try_from(index).unwrap_or(usize::MAX)) {
            Ok(held) => Ok((held, self.mark(index)?)),
            Err(NotHeld::OwnTurn) => Err(ElementError::Reentered),
            Err(NotHeld::InACircle) => Err(ElementError::Circle),
            Err(NotHeld::NoSuchPlace) => Err(ElementError::OutOfRange { index, count: self.len() }),
        }
    }
}

impl<T: Element> Inner<T> {
    fn journal(
        options: &FileOptions,
        file: &OpenFile,
        lanes: Lanes<T>,
    ) -> Result<Option<Journal<T>>, ExtentError> {
        Ok(match options.durability {
            Durability::None => None,
            Durability::Process => Some(Journal::Lanes(lanes)),
            Durability::Power => Some(Journal::Log(Log::new(file.open_log(options)?, options.log_bytes_max))),
        })
    }

    /// Forgets what an earlier file of the same name has left.
    fn forget_what_was_under_way(&self) -> io::Result<()> {
        match &self.journal {
            Some(Journal::Log(log)) => log.forget(),
            Some(Journal::Lanes(_)) | None => Ok(()),
        }
    }

    /// Has all on the disk, and says so in the file.
    fn close(&self) -> io::Result<()> {
        if self.file.as_ref().is_some_and(|file| !file.is_ours()) {
            return Ok(());
        }
        self.flush()?;
        if !self.is_sound.load(Ordering::Relaxed) {
            return Ok(());
        }
        self.forget_what_was_under_way()?;
        self.file.as_ref().map_or(Ok(()), |file| file.mark_open(false))
    }

    #[inline]
    fn commit(&self, changes: &mut [Change<'_, T>]) -> Result<(), ElementError> {
        match &self.journal {
            None => self.store(changes),
            Some(journal) => self.store_durably(journal, changes)?,
        }
        self.tell_all(changes);
        Ok(())
    }

    #[inline(never)]
    fn store_durably(&self, journal: &Journal<T>, changes: &mut [Change<'_, T>]) -> io::Result<()> {
        match journal {
            Journal::Lanes(lanes) => {
                lanes.carry_out(changes, |changes| self.store(changes));
                Ok(())
            }
            Journal::Log(log) => log
                .carry_out(changes, || self.flush(), |changes| self.store(changes))
                .inspect_err(|_| self.is_sound.store(false, Ordering::Relaxed)),
        }
    }

    #[inline]
    fn store(&self, changes: &mut [Change<'_, T>]) {
        for change in changes {
            *change.held = change.state;
            self.put_mark(change.index, Mark(change.mark));
        }
    }

    /// Tells the watcher of what has changed: all of it has by now, whatever the watcher does.
    #[inline]
    fn tell_all(&self, changes: &[Change<'_, T>]) {
        for change in changes.iter().filter(|change| Mark(change.mark).is_watched()) {
            self.tell(change);
        }
    }

    #[inline]
    fn put_mark(&self, index: u64, mark: Mark) {
        if let Some(place) = self.marks.get(index as usize) {
            place.store(mark.0, Ordering::Relaxed);
        }
    }

    /// Tells the watcher. A file may have marks of watchers of earlier runs.
    #[cold]
    fn tell(&self, change: &Change<'_, T>) {
        let mark = Mark(change.mark);
        let state = mark.exists().then_some(&change.state);
        let goes_on = self.watcher.get().is_some_and(|watcher| watcher.changed(change.index, state));
        if !goes_on || !mark.exists() {
            self.put_mark(change.index, mark.watched(false));
        }
    }

    fn flush(&self) -> io::Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        // The system tells a failure once.
        file.memory.flush().inspect_err(|_| self.is_sound.store(false, Ordering::Relaxed))
    }
}

impl<T: Element> Drop for Inner<T> {
    fn drop(&mut self) {
        // A file that cannot be closed counts as one whose process has ended.
        let _closed = self.close();
    }
}

/// Bytes of an element beside its state: its turn and its mark.
const BESIDE_STATE: usize = size_of::<PiTurn>() + size_of::<AtomicU32>();

const _: () = assert!(BESIDE_STATE == 8);

fn check_state<T>() -> Result<(), ExtentError> {
    let (bytes, alignment) = (size_of::<T>(), align_of::<T>());
    match (1..=STATE_BYTES_MAX).contains(&bytes) && alignment <= 8 {
        true => Ok(()),
        false => Err(ExtentError::UnfitState { bytes, alignment, max: STATE_BYTES_MAX }),
    }
}

fn memory_of_zeros(bytes: usize) -> Result<Arc<Memory>, ExtentError> {
    if let Some(memory) = Memory::huge_zeros(bytes) {
        return Ok(Arc::new(memory));
    }
    // The system promises more memory than it has, and ends processes that believe it.
    let available = available_memory().unwrap_or(u64::MAX);
    if bytes as u64 > available {
        return Err(ExtentError::NotEnoughMemory { needed: bytes as u64, available });
    }
    let memory = Memory::zeros(bytes.max(1));
    memory.map(Arc::new).map_err(|error| ExtentError::Io { path: Default::default(), error })
}

/// Bytes that the system can give without taking any from a process; `None` where it does not tell.
fn available_memory() -> Option<u64> {
    let told = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = told.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}

// An update that panics changes nothing.
impl<T: Element> std::panic::UnwindSafe for Elements<T> {}
impl<T: Element> std::panic::RefUnwindSafe for Elements<T> {}

/// A handle that does not keep the elements.
pub struct WeakElements<T: Element>(Weak<Inner<T>>);

impl<T: Element> WeakElements<T> {
    /// The elements, while somebody keeps them.
    pub fn upgrade(&self) -> Option<Elements<T>> {
        self.0.upgrade().map(Elements)
    }
}

impl<T: Element> Clone for WeakElements<T> {
    fn clone(&self) -> Self {
        WeakElements(self.0.clone())
    }
}

impl<T: Element> fmt::Debug for WeakElements<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("WeakElements").finish()
    }
}

impl<T: Element> Clone for Elements<T> {
    fn clone(&self) -> Self {
        Elements(self.0.clone())
    }
}

impl<T: Element> fmt::Debug for Elements<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Elements").field("len", &self.len()).field("pages", &self.pages()).finish()
    }
}

#[cfg(test)]
mod tests;
