//! Where there is no Linux.

use std::io;

pub(super) const OTHER: i32 = 0;
pub(super) const FIFO: i32 = 1;
pub(super) const ROUND_ROBIN: i32 = 2;
pub(super) const BATCH: i32 = 3;
pub(super) const IDLE: i32 = 5;

pub(super) fn at_fork_in_child(_child: extern "C" fn()) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(super) fn class(_thread: i32) -> io::Result<(i32, u8)> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(super) fn set_class(_thread: i32, _policy: i32, _priority: u8) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(super) fn set_deadline_class(_thread: i32, _times: [u64; 3]) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
