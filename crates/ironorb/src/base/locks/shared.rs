//! What all lanes read on the way of their calls.
//!
//! Threads of all lanes wait here for one another, without inheritance of priorities, for the few instructions in which
//! one of them changes something. Readers must become wait-free before an ORB can have lanes: each use of these two
//! types is a place where that is left to do.

use std::fmt;
use std::sync::{Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::LockGuard;
use crate::base::sync::{lock, read, write};

/// A mutex that calls of all lanes take for a few instructions.
#[derive(Default)]
pub(crate) struct SharedLock<T>(Mutex<T>);

/// Data that calls of all lanes read and that changes rarely.
#[derive(Default)]
pub(crate) struct SharedTable<T>(RwLock<T>);

/// What a thread holds of a [`SharedTable`] that it reads.
pub(crate) type ReadGuard<'l, T> = RwLockReadGuard<'l, T>;

impl<T> SharedLock<T> {
    #[inline]
    pub(crate) const fn new(value: T) -> SharedLock<T> {
        SharedLock(Mutex::new(value))
    }

    /// Locks. Blocks while another thread holds the lock.
    #[inline]
    pub(crate) fn lock(&self) -> LockGuard<'_, T> {
        lock(&self.0)
    }
}

impl<T> SharedTable<T> {
    /// Locks for reading. Blocks while another thread writes.
    #[inline]
    pub(crate) fn read(&self) -> ReadGuard<'_, T> {
        read(&self.0)
    }

    /// Locks for writing. Blocks while another thread reads or writes.
    #[inline]
    pub(crate) fn write(&self) -> RwLockWriteGuard<'_, T> {
        write(&self.0)
    }
}

impl<T> fmt::Debug for SharedLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedLock").finish_non_exhaustive()
    }
}

impl<T: fmt::Debug> fmt::Debug for SharedTable<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
