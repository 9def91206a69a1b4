//! How a client keeps a state that one thread writes while others read.

use std::any::Any;
use std::borrow::Borrow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::state::CachedState;
use arc_swap::ArcSwapOption;

/// A place for a state. One thread writes at a time. What a reader finds while another thread writes counts for nothing, but is
/// no data race.
pub trait Storage: Default + Send + Sync + 'static {
    /// The state.
    type State: CachedState;
    /// A state that was there, whatever is put there since.
    type Snapshot: Borrow<Self::State> + Clone + Send + 'static;

    /// What is there; `None` before the first.
    fn snapshot(&self) -> Option<Self::Snapshot>;

    /// What would be there.
    fn snapshot_of(state: Self::State) -> Self::Snapshot;

    /// Puts a state there. Runs no code of the state's type: what was there before is the caller's, to be dropped with no lock held.
    #[must_use = "dropping the state from before may take locks"]
    fn store(&self, state: Self::Snapshot) -> Replaced;

    /// The whole state; `None` before the first.
    fn whole(&self) -> Option<Self::State>;

    /// Forgets the state, where that gives memory back. Gives what [`store`](Self::store) gives.
    #[must_use = "dropping the state from before may take locks"]
    fn clear(&self) -> Replaced;
}

/// A state that was in a storage, and is shared with those who read it still.
pub type Replaced = Option<Arc<dyn Any + Send + Sync>>;

/// A type that fits a word of 64 bits.
pub trait Word: Copy {
    /// The value as a word.
    fn to_word(self) -> u64;

    /// The value in a word that [`to_word`](Self::to_word) has made. Any other word gives any value.
    fn of_word(word: u64) -> Self;
}

macro_rules! words {
    ($($type:ty: $value:ident => $to:expr, $word:ident => $of:expr;)*) => {$(
        impl Word for $type {
            #[inline]
            fn to_word(self) -> u64 {
                let $value = self;
                $to
            }

            #[inline]
            fn of_word($word: u64) -> Self {
                $of
            }
        }
    )*};
}

words! {
    bool: value => u64::from(value), word => word != 0;
    u8: value => u64::from(value), word => word as u8;
    i8: value => value as u8 as u64, word => word as i8;
    u16: value => u64::from(value), word => word as u16;
    i16: value => value as u16 as u64, word => word as i16;
    u32: value => u64::from(value), word => word as u32;
    i32: value => value as u32 as u64, word => word as i32;
    u64: value => value, word => word;
    i64: value => value as u64, word => word as i64;
    f32: value => u64::from(value.to_bits()), word => f32::from_bits(word as u32);
    f64: value => value.to_bits(), word => f64::from_bits(word);
    char: value => u64::from(u32::from(value)), word => char::from_u32(word as u32).unwrap_or_default();
}

/// A state whose members are words: `N` of them. A read of one member reads one word.
#[derive(Debug)]
pub struct Words<S, const N: usize> {
    words: [AtomicU64; N],
    state: std::marker::PhantomData<fn() -> S>,
}

impl<S, const N: usize> Default for Words<S, N> {
    fn default() -> Self {
        Words { words: [const { AtomicU64::new(0) }; N], state: std::marker::PhantomData }
    }
}

impl<S, const N: usize> Words<S, N> {
    /// The word of a member.
    #[inline]
    pub fn word(&self, place: usize) -> u64 {
        self.words[place].load(Ordering::Relaxed)
    }
}

/// A state of which each member is a [`Word`]. Generated code implements it.
pub trait WordState<const N: usize>: CachedState {
    /// The members as words.
    fn to_words(&self) -> [u64; N];

    /// The state of words that [`to_words`](Self::to_words) has made.
    fn of_words(words: [u64; N]) -> Self;
}

impl<S: WordState<N>, const N: usize> Storage for Words<S, N> {
    type State = S;
    type Snapshot = S;

    fn snapshot(&self) -> Option<S> {
        self.whole()
    }

    fn snapshot_of(state: S) -> S {
        state
    }

    fn store(&self, state: S) -> Replaced {
        let words = state.to_words();
        self.words.iter().zip(words).for_each(|(to, word)| to.store(word, Ordering::Relaxed));
        None
    }

    fn whole(&self) -> Option<S> {
        Some(S::of_words(std::array::from_fn(|place| self.word(place))))
    }

    fn clear(&self) -> Replaced {
        None
    }
}

/// A state of any type: readers share snapshots.
#[derive(Debug)]
pub struct Shared<S>(ArcSwapOption<S>);

impl<S> Default for Shared<S> {
    fn default() -> Self {
        Shared(ArcSwapOption::const_empty())
    }
}

impl<S> Shared<S> {
    /// Looks at the state, if there is one.
    #[inline]
    pub fn with<T>(&self, look: impl FnOnce(&S) -> T) -> Option<T> {
        self.0.load().as_deref().map(look)
    }
}

impl<S: CachedState<Storage = Self>> Storage for Shared<S> {
    type State = S;
    type Snapshot = Arc<S>;

    fn snapshot(&self) -> Option<Arc<S>> {
        self.0.load_full()
    }

    fn snapshot_of(state: S) -> Arc<S> {
        Arc::new(state)
    }

    fn store(&self, state: Arc<S>) -> Replaced {
        replaced(self.0.swap(Some(state)))
    }

    fn whole(&self) -> Option<S> {
        self.with(S::clone)
    }

    fn clear(&self) -> Replaced {
        replaced(self.0.swap(None))
    }
}

fn replaced<S: CachedState>(state: Option<Arc<S>>) -> Replaced {
    state.map(|state| state as Arc<dyn Any + Send + Sync>)
}
