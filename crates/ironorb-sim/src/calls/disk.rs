//! Files of the system: they are what they are, and what programs write is noted until it is synced.

use std::ffi::{c_char, c_int, c_long, c_void};

use super::{inside, is_simulated, raw, with};
use crate::world::{Change, HostId, Inode, Repair, State, Step, What};

/// The C library's `open`; its third argument is not there unless a file may be created.
#[unsafe(no_mangle)]
unsafe extern "C" fn open(path: *const c_char, flags: c_int, mode: c_long) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { openat(libc::AT_FDCWD, path, flags, mode) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn open64(path: *const c_char, flags: c_int, mode: c_long) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { openat(libc::AT_FDCWD, path, flags, mode) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn openat64(folder: c_int, path: *const c_char, flags: c_int, mode: c_long) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { openat(folder, path, flags, mode) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn openat(folder: c_int, path: *const c_char, flags: c_int, mode: c_long) -> c_int {
    // SAFETY: the caller's promise: a string that ends with a zero.
    let name = unsafe { std::ffi::CStr::from_ptr(path) }.to_bytes();
    if is_simulated() && (name == b"/dev/urandom" || name == b"/dev/random") {
        return inside(State::new_entropy);
    }
    if is_simulated() && tells_of_processors(name) {
        raw::set_errno(libc::ENOENT);
        return -1;
    }
    let writes = is_simulated() && flags & libc::O_ACCMODE != libc::O_RDONLY;
    // What opening cuts off may be there again after a crash, so it is cut off afterwards.
    let cuts_off = writes && flags & libc::O_TRUNC != 0;
    let passed = if cuts_off { flags & !libc::O_TRUNC } else { flags };
    // SAFETY: the caller's promise.
    let opened =
        unsafe { raw::libc_call(libc::SYS_openat, [folder.into(), path as i64, passed.into(), mode, 0, 0]) };
    let opened = opened as c_int;
    if writes
        && opened >= 0
        && let Some(inode) = inode_of(opened)
    {
        inside(|state| state.note_open(opened, inode));
        if cuts_off && length_of(opened) > 0 {
            ftruncate64(opened, 0);
        }
    }
    opened
}

/// Files by which programs learn how many processors this machine has, and how much of them they may use. A simulated host has
/// other ones.
fn tells_of_processors(name: &[u8]) -> bool {
    name.starts_with(b"/sys/devices/system/cpu/")
        || name.starts_with(b"/sys/fs/cgroup/")
        || name == b"/proc/self/cgroup"
        || name == b"/proc/cpuinfo"
}

/// The file that a descriptor names, if it is a regular one.
fn inode_of(descriptor: c_int) -> Option<Inode> {
    // SAFETY: all fields are numbers, for which zeros are legal; the call writes them.
    let status = unsafe {
        let mut status: libc::stat = std::mem::zeroed();
        let arguments = [descriptor.into(), &raw mut status as i64, 0, 0, 0, 0];
        (raw::kernel(libc::SYS_fstat, arguments) == 0).then_some(status)
    }?;
    (status.st_mode & libc::S_IFMT == libc::S_IFREG).then_some((status.st_dev, status.st_ino))
}

fn length_of(descriptor: c_int) -> u64 {
    // SAFETY: as above.
    unsafe {
        let mut status: libc::stat = std::mem::zeroed();
        raw::kernel(libc::SYS_fstat, [descriptor.into(), &raw mut status as i64, 0, 0, 0, 0]);
        status.st_size as u64
    }
}

/// Notes a write, if the descriptor is that of a file that a program has opened. It is made afterwards.
pub(super) fn note_write(descriptor: c_int, at: Option<u64>, octets: &[u8]) {
    let Some(inode) = with(|state| state.inode_of(descriptor)).flatten() else { return };
    let length_before = length_of(descriptor);
    let at = at.unwrap_or_else(|| {
        if appends(descriptor) {
            return length_before;
        }
        let arguments = [descriptor.into(), 0, libc::SEEK_CUR.into(), 0, 0, 0];
        // SAFETY: the call has no addresses.
        (unsafe { raw::kernel(libc::SYS_lseek, arguments) }) as u64
    });
    let before = read_at(kept(descriptor, inode), at, octets.len());
    let after = What::Written(octets.to_vec());
    inside(|state| state.note_change(inode, Change { length_before, at, before, after }));
}

/// Notes writes of several pieces, one behind the other.
pub(super) fn note_writes(descriptor: c_int, pieces: &[&[u8]]) {
    if with(|state| state.inode_of(descriptor)).flatten().is_some() {
        note_write(descriptor, None, &pieces.concat());
    }
}

/// Notes that a program has made another descriptor for what one names.
pub(super) fn note_duplicate(descriptor: c_int, duplicate: c_int) {
    with(|state| state.note_duplicate(descriptor, duplicate));
}

fn appends(descriptor: c_int) -> bool {
    let arguments = [descriptor.into(), libc::F_GETFL.into(), 0, 0, 0, 0];
    // SAFETY: the call has no addresses.
    let flags = unsafe { raw::kernel(libc::SYS_fcntl, arguments) };
    flags >= 0 && flags as c_int & libc::O_APPEND != 0
}

/// The simulation's own descriptor of a file that is about to be changed: it can be read whatever the program may do, and is there
/// when the program has closed its own.
fn kept(descriptor: c_int, inode: Inode) -> c_int {
    if let Some(kept) = inside(|state| state.kept_descriptor(inode)) {
        return kept;
    }
    let path = format!("/proc/self/fd/{descriptor}\0");
    let flags = libc::O_RDWR | libc::O_CLOEXEC;
    let arguments = [libc::AT_FDCWD.into(), path.as_ptr() as i64, flags.into(), 0, 0, 0];
    // SAFETY: the path ends with a zero and lives until the call returns.
    let mut kept = unsafe { raw::kernel(libc::SYS_openat, arguments) };
    if kept < 0 {
        // The file may not be read. What is overwritten is not known then.
        let arguments = [descriptor.into(), libc::F_DUPFD_CLOEXEC.into(), 0, 0, 0, 0];
        // SAFETY: the call has no addresses.
        kept = unsafe { raw::kernel(libc::SYS_fcntl, arguments) };
    }
    inside(|state| state.keep(inode, kept as c_int));
    kept as c_int
}

fn close(descriptor: c_int) {
    // SAFETY: the descriptor is the simulation's, or that of a program whose threads never run again.
    unsafe { raw::kernel(libc::SYS_close, [descriptor.into(), 0, 0, 0, 0, 0]) };
}

fn read_at(descriptor: c_int, at: u64, most: usize) -> Vec<u8> {
    let mut octets = vec![0; most];
    let arguments = [descriptor.into(), octets.as_mut_ptr() as i64, most as i64, at as i64, 0, 0];
    // SAFETY: the buffer has room for so many.
    let read = unsafe { raw::kernel(libc::SYS_pread64, arguments) };
    octets.truncate(read.max(0) as usize);
    octets
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pwrite64(descriptor: c_int, buffer: *const c_void, length: usize, at: i64) -> isize {
    // SAFETY: the caller's promise.
    note_write(descriptor, Some(at as u64), unsafe {
        std::slice::from_raw_parts(buffer.cast::<u8>(), length)
    });
    let arguments = [descriptor.into(), buffer as i64, length as i64, at, 0, 0];
    // SAFETY: the caller's promise.
    unsafe { raw::libc_call(libc::SYS_pwrite64, arguments) as isize }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pwrite(descriptor: c_int, buffer: *const c_void, length: usize, at: i64) -> isize {
    // SAFETY: the caller's promise.
    unsafe { pwrite64(descriptor, buffer, length, at) }
}

#[unsafe(no_mangle)]
extern "C" fn ftruncate64(descriptor: c_int, length: i64) -> c_int {
    if let Some(inode) = with(|state| state.inode_of(descriptor)).flatten() {
        let length_before = length_of(descriptor);
        let (at, cut) = (length as u64, length_before.saturating_sub(length as u64));
        let before = read_at(kept(descriptor, inode), at, cut as usize);
        let after = What::Length(at);
        inside(|state| state.note_change(inode, Change { length_before, at, before, after }));
    }
    // SAFETY: the call has no addresses.
    unsafe { raw::libc_call(libc::SYS_ftruncate, [descriptor.into(), length, 0, 0, 0, 0]) as c_int }
}

#[unsafe(no_mangle)]
extern "C" fn ftruncate(descriptor: c_int, length: i64) -> c_int {
    ftruncate64(descriptor, length)
}

#[unsafe(no_mangle)]
extern "C" fn fsync(descriptor: c_int) -> c_int {
    sync(libc::SYS_fsync, descriptor)
}

#[unsafe(no_mangle)]
extern "C" fn fdatasync(descriptor: c_int) -> c_int {
    sync(libc::SYS_fdatasync, descriptor)
}

/// A file of a program is synced by forgetting what could be lost; the system need not write it for that.
fn sync(call: c_long, descriptor: c_int) -> c_int {
    if let Some(inode) = inode_of(descriptor).filter(|_| is_simulated()) {
        if let Some(kept) = inside(|state| state.note_sync(inode)) {
            close(kept);
        }
        return 0;
    }
    // SAFETY: the call has no addresses.
    unsafe { raw::libc_call(call, [descriptor.into(), 0, 0, 0, 0, 0]) as c_int }
}

/// Closes what processes that are gone had open, and has a crash take what was not synced.
pub(crate) fn forget(state: &mut State, processes: &[HostId], crashed: Option<HostId>) {
    if let Some(machine) = crashed {
        for repair in state.repairs_after_crash_of(machine) {
            carry_out(&repair);
        }
    }
    for &process in processes {
        for descriptor in state.forget_descriptors_of(process) {
            close(descriptor);
        }
    }
}

fn carry_out(repair: &Repair) {
    let descriptor = repair.descriptor;
    for step in &repair.steps {
        // SAFETY: the descriptor is the simulation's own; the octets live.
        unsafe {
            match step {
                Step::Write { at, octets } => {
                    let arguments =
                        [descriptor.into(), octets.as_ptr() as i64, octets.len() as i64, *at as i64, 0, 0];
                    raw::kernel(libc::SYS_pwrite64, arguments);
                }
                Step::SetLength(length) => {
                    raw::kernel(libc::SYS_ftruncate, [descriptor.into(), *length as i64, 0, 0, 0, 0]);
                }
            }
        }
    }
    close(descriptor);
}
