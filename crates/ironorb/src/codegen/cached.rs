//! Cached attributes: the reads of references, and the answers of skeletons from cells.

use std::time::Duration;

use ironorb_cache::{Members, Position};
use ironorb_giop::exception::{CompletionStatus, SystemException, SystemExceptionKind};
use ironorb_giop::minor::MinorCode;
use ironorb_giop::{Encoding, MalformedKind, Writer};

use super::{Operation, RefTo, RemoteOperation, stub};
use crate::cache::wire::{FILL, encapsulated};
use crate::cache::{
    CachedMember, CachedState, CellRef, ProxyCell, ReadOptions, Seen, Source, Storage, WordState,
};
use crate::driver::cache::{Bounds, moment, read_anew, read_held, read_settled};
use crate::driver::invoke::invoke;
use crate::object::ObjectRef;
use crate::poa::exception_of_element;

/// Reads an attribute with the lag that its declaration gives.
#[inline]
pub fn get<O, R>(target: &R, proxy: &ProxyCell<O::State>) -> Result<O::Value, SystemException>
where
    O: CachedMember + RemoteOperation<Arguments = (), Error = SystemException>,
    O::Results: super::Codec<Value = O::Value>,
    R: RefTo<O::Interface>,
{
    let bounds = Bounds { lag: O::LAG, at_least: Position::START };
    match proxy.get().and_then(|place| read_held(place, bounds, O::load)) {
        Some(seen) => Ok(seen.value),
        None => get_anew::<O, R>(target, proxy, bounds).map(|seen| seen.value),
    }
}

/// Reads an attribute in a way that the caller chooses.
pub fn get_with<O, R>(
    target: &R,
    proxy: &ProxyCell<O::State>,
    options: &ReadOptions,
) -> Result<Seen<O::Value>, SystemException>
where
    O: CachedMember + RemoteOperation<Arguments = (), Error = SystemException>,
    O::Results: super::Codec<Value = O::Value>,
    R: RefTo<O::Interface>,
{
    if options.is_remote {
        return call::<O, R>(target);
    }
    let bounds = bounds_of(options, O::LAG);
    let held = |bounds| proxy.get().and_then(|place| read_held(place, bounds, O::load));
    if let Some(seen) = held(bounds) {
        return Ok(seen);
    }
    if options.is_held_only && !target.object().is_local_object()? {
        return read_settled(target.object(), proxy, bounds, O::load).ok_or_else(not_held);
    }
    get_anew::<O, R>(target, proxy, bounds).or_else(|e| or_older(e, options, bounds, held))
}

/// Reads all cached attributes at once, in a way that the caller chooses.
pub fn state_with<S: CachedState, R: super::TypedRef>(
    target: &R,
    proxy: &ProxyCell<S>,
    declared: Duration,
    options: &ReadOptions,
    here: impl FnOnce() -> Result<S, SystemException>,
) -> Result<Seen<S>, SystemException> {
    let object = target.object();
    if object.is_local_object()? {
        let (begun, value) = (moment(), here()?);
        return Ok(seen_since(begun, value, Source::Collocated));
    }
    let bounds = bounds_of(options, declared);
    let held = |bounds| proxy.get().and_then(|place| read_held(place, bounds, S::Storage::whole));
    if !options.is_remote
        && let Some(seen) = held(bounds)
    {
        return Ok(seen);
    }
    if options.is_held_only {
        return read_settled(object, proxy, bounds, S::Storage::whole).ok_or_else(not_held);
    }
    // What is asked of the object is never older than the call.
    let bounds = if options.is_remote { Bounds { lag: Duration::ZERO, ..bounds } } else { bounds };
    match read_anew(object, proxy, bounds, S::Storage::whole, S::clone) {
        Ok(Some(seen)) => Ok(seen),
        Ok(None) => Err(no_caches(object)),
        Err(e) => or_older(e, options, bounds, held),
    }
}

/// The state over which a client runs an operation, if it holds one within the lag or can come to hold it. `None`: the object
/// runs the operation, because it is in this process or its server keeps no caches.
pub fn snapshot<S: CachedState, R: super::TypedRef>(
    target: &R,
    proxy: &ProxyCell<S>,
    declared: Duration,
) -> Result<Option<<S::Storage as Storage>::Snapshot>, SystemException> {
    let bounds = Bounds { lag: declared, at_least: Position::START };
    let held = proxy.get().and_then(|place| read_held(place, bounds, S::Storage::snapshot));
    if held.is_some() || target.object().is_local_object()? {
        return Ok(held.map(|seen| seen.value));
    }
    let of = |state: &S| S::Storage::snapshot_of(state.clone());
    let asked = read_anew(target.object(), proxy, bounds, S::Storage::snapshot, of)?;
    Ok(asked.map(|seen| seen.value))
}

/// What a read finds that is older than it should be, if the caller takes that where the server does not answer.
fn or_older<T>(
    e: SystemException,
    options: &ReadOptions,
    bounds: Bounds,
    held: impl FnOnce(Bounds) -> Option<Seen<T>>,
) -> Result<Seen<T>, SystemException> {
    let does_not_answer = matches!(
        e.kind,
        SystemExceptionKind::CommFailure | SystemExceptionKind::Transient | SystemExceptionKind::Timeout
    );
    let older = options.or_within.filter(|_| does_not_answer);
    older.and_then(|lag| held(Bounds { lag, ..bounds })).ok_or(e)
}

fn bounds_of(options: &ReadOptions, declared: Duration) -> Bounds {
    Bounds { lag: options.lag.unwrap_or(declared), at_least: Position(options.at_least) }
}

/// Reads an attribute that is not held fresh enough.
#[inline(never)]
fn get_anew<O, R>(
    target: &R,
    proxy: &ProxyCell<O::State>,
    bounds: Bounds,
) -> Result<Seen<O::Value>, SystemException>
where
    O: CachedMember + RemoteOperation<Arguments = (), Error = SystemException>,
    O::Results: super::Codec<Value = O::Value>,
    R: RefTo<O::Interface>,
{
    let object = target.object();
    if !object.is_local_object()?
        && let Some(seen) = read_anew(object, proxy, bounds, O::load, O::of)?
    {
        return Ok(seen);
    }
    call::<O, R>(target)
}

/// Calls the object.
fn call<O, R>(target: &R) -> Result<Seen<O::Value>, SystemException>
where
    O: CachedMember + RemoteOperation<Arguments = (), Error = SystemException>,
    O::Results: super::Codec<Value = O::Value>,
    R: RefTo<O::Interface>,
{
    let begun = moment();
    let value = stub::twoway::<O, R>(target, ())?;
    let is_here = target.object().is_local_object()?;
    Ok(seen_since(begun, value, if is_here { Source::Collocated } else { Source::Remote }))
}

fn seen_since<T>(begun: ironorb_cache::Moment, value: T, source: Source) -> Seen<T> {
    Seen { value, age: moment().since(begun).unwrap_or_default(), version: None, source }
}

/// The answer of a skeleton: what the servant's cell has.
pub fn of_cell<O: CachedMember>(cell: CellRef<'_, O::State>) -> Result<O::Value, SystemException> {
    whole_of_cell(cell, O::of)
}

/// What a servant's cell has.
pub fn whole_of_cell<S: CachedState, T>(
    cell: CellRef<'_, S>,
    look: impl FnOnce(&S) -> T,
) -> Result<T, SystemException> {
    cell.read(look).ok_or_else(no_cell)?.map_err(exception_of_element)
}

/// All that the cell of an object in this process has.
pub fn state_here<I, S, R>(target: &R, cell: impl FnOnce(&I) -> CellRef<'_, S>) -> Result<S, SystemException>
where
    I: ?Sized + 'static,
    S: CachedState,
    R: RefTo<I>,
{
    static READ: Operation<'static> = Operation::twoway(FILL);
    let local = |servant: &I| whole_of_cell(cell(servant), S::clone);
    invoke(target, &READ, local, |_| Ok(()), |r| Err(r.malformed(MalformedKind::LocalObject)))
}

/// Which members of a state in words have changed.
pub fn changed_words<S: WordState<N>, const N: usize>(state: &S, before: &S) -> Members {
    let (words, before) = (state.to_words(), before.to_words());
    members_where(N, |place| words[place] != before[place])
}

/// Which of so many members have changed: those that are other octets in a message. By `==`, 0 would be -0, and what is no number would
/// change with each look.
pub fn changed_members<S: CachedState>(state: &S, before: &S, count: usize) -> Members {
    let octets = |state: &S, place| {
        let write = |members, w: &mut Writer<'_>| state.write(members, w);
        encapsulated(Members::one(place), &write, Encoding::NATIVE).ok()
    };
    // What cannot be written is told to no client; that it has changed is.
    members_where(count, |place| octets(state, place).is_none_or(|now| octets(before, place) != Some(now)))
}

fn members_where(count: usize, has_changed: impl Fn(usize) -> bool) -> Members {
    let changed = (0..count).filter(|place| has_changed(*place));
    changed.fold(Members::NONE, |members, place| members.and(Members::one(place)))
}

#[cold]
fn no_cell() -> SystemException {
    SystemException::new(SystemExceptionKind::NoImplement, MinorCode::NONE, CompletionStatus::No)
        .with_detail("the servant has no cell: its method `cell` must return that of its cached attributes")
}

#[cold]
fn not_held() -> SystemException {
    SystemException::new(SystemExceptionKind::Transient, MinorCode::NONE, CompletionStatus::No)
        .with_detail("the cache holds no state that is fresh enough, and the read must not ask the server")
}

#[cold]
fn no_caches(object: &ObjectRef) -> SystemException {
    let of = object.type_id();
    SystemException::new(SystemExceptionKind::NoImplement, MinorCode::NONE, CompletionStatus::No)
        .with_detail(format!("the server of {of} tells no whole states: read its attributes one by one"))
}

/// Defines the cached attributes of an interface: their state, and what changes it in a cell.
#[doc(hidden)]
#[macro_export]
macro_rules! __ironorb_cached_state {
    (
        $(#[$meta:meta])*
        $state:ident, $update:ident: $storage:ident $count:literal $($mode:ident $missed:literal)? $id:literal {
            $($(#[$member_meta:meta])* $place:literal $member:ident / $set:ident / $mut:ident: $type:ty = $codec:ty;)*
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq)]
        pub struct $state {
            $($(#[$member_meta])* pub $member: $type,)*
        }

        /// Changes cached attributes in a cell, and notes which.
        #[derive(Debug)]
        pub struct $update<'s> {
            state: &'s mut $state,
            changed: &'s mut $crate::generated::Members,
        }

        impl $update<'_> {
            $(
                /// The attribute's value.
                #[inline]
                pub fn $member(&self) -> &$type {
                    &self.state.$member
                }

                /// Gives the attribute a value.
                #[inline]
                pub fn $set(&mut self, value: $type) {
                    *self.changed = self.changed.and($crate::generated::Members::one($place));
                    self.state.$member = value;
                }

                /// The attribute's value, to be changed where it is.
                #[inline]
                pub fn $mut(&mut self) -> &mut $type {
                    *self.changed = self.changed.and($crate::generated::Members::one($place));
                    &mut self.state.$member
                }
            )*
        }

        impl ::std::ops::Deref for $update<'_> {
            type Target = $state;

            fn deref(&self) -> &$state {
                self.state
            }
        }

        impl $crate::generated::CachedState for $state {
            type Storage = $crate::__ironorb_storage!($storage $state $count);
            type Update<'s> = $update<'s>;
            const REPOSITORY_ID: &'static str = $id;
            const MODE: $crate::generated::CachedMode = $crate::__ironorb_cached_mode!($($mode $missed)?);

            fn write(
                &self,
                members: $crate::generated::Members,
                w: &mut $crate::generated::Writer<'_>,
            ) -> ::std::result::Result<(), $crate::generated::Misuse> {
                $(if members.has($place) {
                    <$codec as $crate::generated::Codec>::put(&self.$member, w)?;
                })*
                ::std::result::Result::Ok(())
            }

            fn read(
                r: &mut $crate::generated::Reader<'_>,
            ) -> ::std::result::Result<Self, $crate::generated::Malformed> {
                ::std::result::Result::Ok($state {
                    $($member: <$codec as $crate::generated::Codec>::get(r)?,)*
                })
            }

            fn read_over(
                &mut self,
                members: $crate::generated::Members,
                r: &mut $crate::generated::Reader<'_>,
            ) -> ::std::result::Result<(), $crate::generated::Malformed> {
                $(if members.has($place) {
                    self.$member = <$codec as $crate::generated::Codec>::get(r)?;
                })*
                ::std::result::Result::Ok(())
            }

            fn changed_since(&self, before: &Self) -> $crate::generated::Members {
                $crate::__ironorb_changed_since!($storage self before $count)
            }

            fn update<'s>(&'s mut self, changed: &'s mut $crate::generated::Members) -> $update<'s> {
                $update { state: self, changed }
            }
        }

        $crate::__ironorb_words! { $storage $state $count { $($place $member: $type;)* } }
    };
}

/// How clients are told of changes.
#[doc(hidden)]
#[macro_export]
macro_rules! __ironorb_cached_mode {
    () => {
        $crate::generated::CachedMode::Asked
    };
    (pushed $missed:literal) => {
        $crate::generated::CachedMode::Pushed
    };
    (missed $missed:literal) => {
        $crate::generated::CachedMode::Missed($missed)
    };
}

/// How a client keeps a state.
#[doc(hidden)]
#[macro_export]
macro_rules! __ironorb_storage {
    (words $state:ident $count:literal) => {
        $crate::generated::Words<$state, $count>
    };
    (shared $state:ident $count:literal) => {
        $crate::generated::Shared<$state>
    };
}

/// Which members of a state have changed.
#[doc(hidden)]
#[macro_export]
macro_rules! __ironorb_changed_since {
    (words $state:ident $before:ident $count:literal) => {
        $crate::generated::cached::changed_words($state, $before)
    };
    (shared $state:ident $before:ident $count:literal) => {
        $crate::generated::cached::changed_members($state, $before, $count)
    };
}

/// The words of a state that clients keep in words.
#[doc(hidden)]
#[macro_export]
macro_rules! __ironorb_words {
    (shared $($rest:tt)*) => {};
    (words $state:ident $count:literal { $($place:literal $member:ident: $type:ty;)* }) => {
        impl $crate::generated::WordState<$count> for $state {
            fn to_words(&self) -> [::std::primitive::u64; $count] {
                [$($crate::generated::Word::to_word(self.$member)),*]
            }

            fn of_words(words: [::std::primitive::u64; $count]) -> Self {
                $state { $($member: $crate::generated::Word::of_word(words[$place])),* }
            }
        }
    };
}

/// The value of a member in a client's storage.
#[doc(hidden)]
#[macro_export]
macro_rules! __ironorb_load {
    (words $from:ident $place:literal $member:ident) => {
        ::std::option::Option::Some($crate::generated::Word::of_word($from.word($place)))
    };
    (shared $from:ident $place:literal $member:ident) => {
        $from.with(|state| ::std::clone::Clone::clone(&state.$member))
    };
}
