//! What has happened to the objects of a session, and is not known to have been taken by its client.

use std::collections::{BTreeMap, VecDeque};
use std::hash::{Hash, Hasher};

use crate::books::{Books, ObjectSlot};
use crate::index::{Index, hash_of};
use crate::message::{Change, Due, Members, Position, Unit};

/// For each object the newest of what is untold, in the order of the positions since which it is.
///
/// A write that is noted takes the same time however much is untold, and no memory of its own where the object has an entry. Memory:
/// some 100 bytes and a name for each object, and twice that where much has just been taken.
#[derive(Debug, Clone)]
pub(crate) struct Untold<K> {
    /// In no order. Those of `free` say nothing.
    entries: Vec<Entry<K>>,
    free: Vec<usize>,
    index: Index,
    /// The entries of which nothing has been taken, in the order in which they came: none but the first is ever removed.
    whole: VecDeque<usize>,
    /// The entries of which a part has been taken.
    parts: BTreeMap<(Position, K), usize>,
    /// How many are drops.
    dropped: usize,
    /// How many are news.
    news: usize,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Entry<K> {
    object: K,
    /// No later than the first of what is untold.
    since: Position,
    answered: Answered,
    what: What,
    /// Whether a probe that waits is answered because of it.
    is_news: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum What {
    /// The session holds the object no more, since this position.
    Dropped(Position),
    /// The object, which the session holds, has been written. The books know the last write.
    Written {
        at: ObjectSlot,
        members: Members,
        /// How many writes of the object the books had counted before these; `None` where not all of these have been counted.
        counted: Option<u64>,
    },
}

/// What of an object's changes has been in an answer that has perhaps not come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Answered {
    Nothing,
    All,
    /// What came before this position.
    Before(Position),
    /// Not known: a part of it has been taken. So it is told until all of it has been.
    Unknown,
}

/// A write of an object that a session holds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Write {
    /// Where the object is in the books.
    pub(crate) object: ObjectSlot,
    pub(crate) at: Position,
    /// How many writes of the object the books have counted, with this one.
    pub(crate) count: u64,
    pub(crate) members: Members,
    /// Whether a probe that waits is answered because of it.
    pub(crate) is_news: bool,
}

impl<K> Default for Untold<K> {
    fn default() -> Self {
        Untold {
            entries: Vec::new(),
            free: Vec::new(),
            index: Index::default(),
            whole: VecDeque::new(),
            parts: BTreeMap::new(),
            dropped: 0,
            news: 0,
        }
    }
}

impl<K: PartialEq> PartialEq for Untold<K> {
    fn eq(&self, other: &Self) -> bool {
        self.in_order().map(|at| &self.entries[at]).eq(other.in_order().map(|at| &other.entries[at]))
    }
}

impl<K: Eq> Eq for Untold<K> {}

impl<K: Hash> Hash for Untold<K> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.len().hash(state);
        self.in_order().for_each(|at| self.entries[at].hash(state));
    }
}

impl<K> Entry<K> {
    /// It has been in an answer. True for the first time: a write that comes after that is to be told from others.
    fn answer(&mut self) -> bool {
        let is_first = self.answered == Answered::Nothing;
        if is_first {
            self.answered = Answered::All;
        }
        is_first
    }

    /// Since when there is a rest of it when its client has taken an answer as of a position, and `at` is the last of it. That
    /// answer was made after what is untold first, and so the object was in it; but perhaps it was the first such answer.
    fn rest_since(&self, taken: Position, at: Position) -> Option<Position> {
        let since = match self.answered {
            _ if at <= taken => None,
            Answered::All => None,
            Answered::Before(since) => Some(since),
            Answered::Nothing | Answered::Unknown => Some(self.since),
        }?;
        Some(since.max(taken.next()))
    }

    fn is_drop(&self) -> bool {
        matches!(self.what, What::Dropped(_))
    }
}

impl What {
    fn of(write: &Write) -> What {
        What::Written { at: write.object, members: write.members, counted: Some(write.count - 1) }
    }

    fn and(self, write: &Write) -> What {
        match self {
            What::Written { members, counted, .. } => {
                What::Written { at: write.object, members: members.and(write.members), counted }
            }
            // What was written between the drop and the next fill has been noted nowhere.
            What::Dropped(_) => What::Written { at: write.object, members: Members::ALL, counted: None },
        }
    }

    /// The last of it.
    fn last<K>(&self, books: &Books<K>) -> Position {
        match self {
            What::Dropped(at) => *at,
            What::Written { at, .. } => books.written(*at).0,
        }
    }

    /// The members that have been written; `None` for a drop.
    fn members(&self) -> Option<Members> {
        match self {
            What::Dropped(_) => None,
            What::Written { members, .. } => Some(*members),
        }
    }

    /// The next write of the object is one that this session has to note.
    fn end_noted<K>(&self, books: &mut Books<K>) {
        if let What::Written { at, .. } = self {
            books.end_noted(*at);
        }
    }
}

impl<K> Untold<K> {
    /// How many objects there are.
    pub(crate) fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many of the objects are held no more.
    pub(crate) fn dropped(&self) -> usize {
        self.dropped
    }

    /// Whether a probe that waits is answered because of it.
    pub(crate) fn has_news(&self) -> bool {
        self.news > 0
    }

    /// Where the entries are, in the order in which they are told.
    fn in_order(&self) -> impl Iterator<Item = usize> {
        let mut whole = self.whole.iter().copied().peekable();
        let mut parts = self.parts.values().copied().peekable();
        std::iter::from_fn(move || match (parts.peek(), whole.peek()) {
            (Some(part), Some(all)) if self.entries[*all].since < self.entries[*part].since => whole.next(),
            (Some(_), _) => parts.next(),
            (None, _) => whole.next(),
        })
    }

    /// Since when what comes after so many objects is untold.
    pub(crate) fn since_after(&self, objects: usize) -> Option<Position> {
        self.in_order().nth(objects).map(|at| self.entries[at].since)
    }

    /// About how many bytes its tables take.
    pub(crate) fn bytes(&self) -> usize {
        let entries = self.entries.capacity() * size_of::<Entry<K>>();
        let places = (self.free.capacity() + self.whole.capacity()) * size_of::<usize>();
        let parts = crate::books::bytes_of_tree::<((Position, K), usize)>(self.parts.len());
        entries + places + parts + self.index.bytes()
    }
}

impl<K: Ord + Clone + Hash> Untold<K> {
    fn find(&self, object: &K) -> Option<usize> {
        self.index.find(object, |at| self.entries[at].object == *object)
    }

    /// Notes a write, and says how much more is untold.
    pub(crate) fn note_write(&mut self, object: &K, write: &Write) -> usize {
        match self.find(object) {
            Some(at) => self.change(at, self.entries[at].what.and(write), write.at, write.is_news),
            None => self.begin(object, What::of(write), write.at, write.is_news),
        }
    }

    /// Notes that the session holds an object no more, and says how much more is untold.
    pub(crate) fn note_drop(&mut self, object: &K, at: Position) -> usize {
        match self.find(object) {
            Some(entry) => self.change(entry, What::Dropped(at), at, false),
            None => self.begin(object, What::Dropped(at), at, false),
        }
    }

    fn begin(&mut self, object: &K, what: What, since: Position, is_news: bool) -> usize {
        let entry = Entry { object: object.clone(), since, answered: Answered::Nothing, what, is_news };
        let at = self.keep(entry);
        self.whole.push_back(at);
        1
    }

    /// It stays where it is in the order.
    fn change(&mut self, at: usize, what: What, position: Position, is_news: bool) -> usize {
        let entry = &mut self.entries[at];
        if entry.answered == Answered::All {
            entry.answered = Answered::Before(position);
        }
        let (was_drop, was_news) = (entry.is_drop(), entry.is_news);
        entry.what = what;
        // News stays news: a write may wait for it.
        entry.is_news |= is_news;
        self.dropped = self.dropped + usize::from(entry.is_drop()) - usize::from(was_drop);
        self.news += usize::from(entry.is_news && !was_news);
        0
    }

    fn keep(&mut self, entry: Entry<K>) -> usize {
        self.dropped += usize::from(entry.is_drop());
        self.news += usize::from(entry.is_news);
        let at = match self.free.pop() {
            Some(at) => {
                self.entries[at] = entry;
                at
            }
            None => {
                self.entries.push(entry);
                self.entries.len() - 1
            }
        };
        let entries = &self.entries;
        self.index.add(at, |at| hash_of(&entries[at].object));
        at
    }

    fn forget(&mut self, at: usize) {
        let entries = &self.entries;
        self.index.remove(at, |at| hash_of(&entries[at].object));
        self.dropped -= usize::from(entries[at].is_drop());
        self.news -= usize::from(entries[at].is_news);
        self.free.push(at);
    }

    /// What is untold of an object is news. False if nothing is.
    pub(crate) fn hurry(&mut self, object: &K) -> bool {
        let Some(at) = self.find(object) else { return false };
        let entry = &mut self.entries[at];
        self.news += usize::from(!entry.is_news);
        entry.is_news = true;
        true
    }

    /// Where the drop of an object is of which the client may still have a state.
    pub(crate) fn may_have_kept(&self, object: &K) -> Option<Position> {
        match self.entries[self.find(object)?].what {
            What::Dropped(at) => Some(at),
            What::Written { .. } => None,
        }
    }

    /// The last write of an object that the client may have missed, if one more would be too many.
    pub(crate) fn has_missed(&self, object: &K, missed_max: u32, books: &Books<K>) -> Option<Position> {
        let (last, missed) = match self.entries[self.find(object)?].what {
            What::Dropped(at) => (at, None),
            What::Written { at, counted, .. } => {
                let (last, count) = books.written(at);
                (last, counted.map(|counted| count - counted))
            }
        };
        missed.is_none_or(|missed| missed >= u64::from(missed_max)).then_some(last)
    }

    /// Forgets what the client has taken, and says how much that was. All that is untold since then has been in an answer.
    pub(crate) fn take(&mut self, taken: Position, books: &mut Books<K>) -> usize {
        let before = self.len();
        while let Some(at) = self.first_until(taken) {
            let entry = &mut self.entries[at];
            match entry.rest_since(taken, entry.what.last(books)) {
                Some(since) => {
                    (entry.since, entry.answered) = (since, Answered::Unknown);
                    self.parts.insert((since, entry.object.clone()), at);
                }
                None => {
                    entry.what.end_noted(books);
                    self.forget(at);
                }
            }
        }
        let taken = before - self.len();
        self.give_back();
        taken
    }

    /// Takes the first entry out of the order, if it is untold since a position or longer.
    fn first_until(&mut self, taken: Position) -> Option<usize> {
        if let Some(part) = self.parts.first_entry().filter(|part| part.key().0 <= taken) {
            return Some(part.remove());
        }
        let first = *self.whole.front()?;
        if self.entries[first].since > taken {
            return None;
        }
        self.whole.pop_front()
    }

    /// Gives memory back where most of it is not used any more.
    fn give_back(&mut self) {
        if self.entries.capacity() <= KEPT_MAX.max(4 * self.len()) {
            return;
        }
        let mut rest = Untold::default();
        for at in &self.whole {
            let at = rest.keep(self.entries[*at].clone());
            rest.whole.push_back(at);
        }
        for (since_and_object, at) in std::mem::take(&mut self.parts) {
            let at = rest.keep(self.entries[at].clone());
            rest.parts.insert(since_and_object, at);
        }
        *self = rest;
    }

    /// What is untold, beginning with what has been so for the longest time, as long as there is room; at least one unit, and all that
    /// are untold since one position. Objects share one only if they were in one answer.
    pub(crate) fn units(
        &mut self,
        room: usize,
        bytes_of: impl Fn(&K, Members) -> usize,
        books: &mut Books<K>,
    ) -> Vec<Unit<K, Due>> {
        let mut units = Vec::new();
        let mut told = Vec::new();
        let (mut bytes, mut last) = (0_usize, Position::START);
        for place in self.in_order() {
            let Entry { object, since, what, .. } = &self.entries[place];
            let (at, members) = (what.last(books), what.members());
            bytes = bytes.saturating_add(bytes_of(object, members.unwrap_or(Members::NONE)));
            if bytes > room && !units.is_empty() && *since != last {
                break;
            }
            last = *since;
            let due = |members| Change::Members(members, Due::new(at, members));
            told.push(place);
            units.push(Unit { object: object.clone(), at, change: members.map_or(Change::Dropped, due) });
        }
        for place in told {
            if self.entries[place].answer() {
                self.entries[place].what.end_noted(books);
            }
        }
        units
    }
}

/// The most entries for which memory is kept however few there are.
const KEPT_MAX: usize = 256;
