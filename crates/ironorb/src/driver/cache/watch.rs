//! Callbacks when what a client reads has changed.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use ironorb_giop::exception::{CompletionStatus, SystemException, SystemExceptionKind};
use ironorb_giop::minor::MinorCode;

use crate::base::spawner::{NewThread, ThreadClass};
use crate::cache::{ReadOptions, Seen};
use crate::driver::orb_core::OrbCore;
use crate::object::TypedRef;

/// How long a watch without a lag of its own waits for news before it reads again.
const PATIENCE: Duration = Duration::from_millis(100);

/// A watch. Dropping it ends the watch: `told` is not called again, but for a call that has begun. It does not wait for that.
#[must_use = "the watch ends when this is dropped"]
pub struct Watching {
    is_over: Arc<AtomicBool>,
    orb: Weak<OrbCore>,
}

/// Calls `told` with what `read` reads of a reference, now and whenever it has changed since; and with the error when a read fails
/// that has not failed before. `read` is a method of the reference that takes options, as `AccountRef::cached_state` or
/// `AccountRef::balance_with`.
///
/// The watch reads again when its ORB has been told of a change by the server, and at the latest after the lag of `options` (100 ms
/// without one). So changes of attributes with `lag = "0"`, `updates` or `linearizable` are told at once, others within the lag. What
/// changes twice between two reads is told once. Calls of `told` are made one after another, by a thread that the watch has for
/// itself, so that `told` may block and make calls.
///
/// ```no_run
/// # use ironorb::cache::{ReadOptions, Seen};
/// # use ironorb::{SystemException, TypedRef, watch_cached};
/// # fn of<R: TypedRef>(account: &R, balance_with: fn(&R, &ReadOptions) -> Result<Seen<i64>, SystemException>) -> Result<(), SystemException> {
/// // AccountRef::balance_with
/// let watching = watch_cached(account, ReadOptions::new(), balance_with, |seen| match seen {
///     Ok(seen) => println!("{} (version {:?})", seen.value, seen.version),
///     Err(e) => println!("{e}"),
/// })?;
/// # drop(watching);
/// # Ok(()) }
/// ```
///
/// NO_RESOURCES when no thread can be made.
pub fn watch_cached<R, T>(
    reference: &R,
    options: ReadOptions,
    read: fn(&R, &ReadOptions) -> Result<Seen<T>, SystemException>,
    told: impl FnMut(Result<Seen<T>, SystemException>) + Send + 'static,
) -> Result<Watching, SystemException>
where
    R: TypedRef,
    T: PartialEq + Clone + Send + 'static,
{
    let is_over = Arc::new(AtomicBool::new(false));
    let (core, reference, over) = (reference.object().shared_core(), reference.clone(), is_over.clone());
    let orb = Arc::downgrade(&core);
    let thread = NewThread::new("ironorb-watch", ThreadClass::Background);
    let run = {
        let orb = orb.clone();
        move || tell_changes(&reference, &options, read, told, (&orb, &over))
    };
    match thread.spawn(run) {
        Ok(_) => Ok(Watching { is_over, orb }),
        Err(e) => {
            let kind = SystemExceptionKind::NoResources;
            let no_thread = SystemException::new(kind, MinorCode::NONE, CompletionStatus::No);
            Err(no_thread.with_detail(format!("no thread can be made for a watch: {e}")))
        }
    }
}

fn tell_changes<R, T: PartialEq + Clone>(
    reference: &R,
    options: &ReadOptions,
    read: fn(&R, &ReadOptions) -> Result<Seen<T>, SystemException>,
    mut told: impl FnMut(Result<Seen<T>, SystemException>),
    (orb, is_over): (&Weak<OrbCore>, &AtomicBool),
) {
    let (mut last, mut has_failed) = (None, false);
    while let Some(core) = orb.upgrade()
        && !is_over.load(Ordering::Acquire)
    {
        let changes = &core.cache.changes;
        let seen = changes.count();
        let read = read(reference, options);
        if is_over.load(Ordering::Acquire) {
            return;
        }
        match read {
            Ok(seen) => {
                has_failed = false;
                // What is no number is never equal to itself, but has a version. That alone would not do: another life of the server
                // counts anew.
                let is_unlike_itself = |value: &T| *value != value.clone();
                let is_same = |(value, version): &(T, Option<u64>)| {
                    let is_of_version = version.is_some() && *version == seen.version;
                    *value == seen.value
                        || (is_of_version && is_unlike_itself(value) && is_unlike_itself(&seen.value))
                };
                if !last.as_ref().is_some_and(is_same) {
                    last = Some((seen.value.clone(), seen.version));
                    told(Ok(seen));
                }
            }
            Err(e) => {
                if !has_failed {
                    told(Err(e));
                }
                has_failed = true;
            }
        }
        changes.wait_beyond(seen, options.lag.unwrap_or(PATIENCE).max(SHORTEST));
    }
}

/// A lag below this would have the thread read without a pause.
const SHORTEST: Duration = Duration::from_micros(100);

impl Drop for Watching {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Release);
        if let Some(core) = self.orb.upgrade() {
            core.cache.changes.note();
        }
    }
}

impl fmt::Debug for Watching {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watching").finish_non_exhaustive()
    }
}
