//! An area in memory that another process also maps. All unsafe code of the crate is here.
//!
//! The memory is a `memfd` that is sealed against shrinking (`F_SEAL_SHRINK`). So no access within its size
//! can fault, whatever the other process does to it. Pages that were never written cost nothing.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::ptr::NonNull;
use std::time::Duration;

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, fstat, ftruncate, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use rustix::thread::futex;
use rustix::time::Timespec;

use crate::RING_BYTES;
use crate::area::{Area, CONTROL_BYTES, Control, Side};
use crate::sync::{AtomicU32, AtomicUsize};

/// Shared memory, mapped until this value is dropped.
#[derive(Debug)]
pub struct Mapping {
    start: NonNull<u8>,
    ring_bytes: usize,
}

// SAFETY: the mapping belongs to this value alone, which unmaps it when it is dropped. It lends only
// references to atomics, with the lifetime of the value, and threads may share atomics.
unsafe impl Send for Mapping {}
// SAFETY: a shared reference gives access to atomics only.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Creates memory with two rings of `ring_bytes` bytes each. Returns it with the descriptor that another
    /// process needs to map it. An error if the size is not a power of two within
    /// [`RING_BYTES`](crate::RING_BYTES), or if a system call fails.
    pub fn create(ring_bytes: usize) -> io::Result<(Mapping, OwnedFd)> {
        if !is_ring(ring_bytes) {
            return Err(refused("a ring has a power of two of bytes, from 4 KiB to 64 MiB"));
        }
        let memory = memfd_create("ironorb-rings", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        ftruncate(&memory, area_bytes(ring_bytes) as u64)?;
        // `SEAL` forbids further seals: one against writing would make our own later mappings fail.
        fcntl_add_seals(&memory, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        Ok((Mapping::map(&memory, ring_bytes)?, memory))
    }

    /// Maps memory from another process. An error unless the size is valid, the memory has exactly that size,
    /// and it is sealed against shrinking.
    pub fn open(memory: impl AsFd, ring_bytes: usize) -> io::Result<Mapping> {
        if !is_ring(ring_bytes) {
            return Err(refused("a ring whose size is not a power of two from 4 KiB to 64 MiB"));
        }
        // Only a memfd has seals. The pages of a file could be removed, or an access to them could block.
        let seals = fcntl_get_seals(&memory).map_err(|_| refused("memory that is not sealed"))?;
        if !seals.contains(SealFlags::SHRINK) {
            return Err(refused("memory that could become shorter"));
        }
        if u64::try_from(fstat(&memory)?.st_size) != Ok(area_bytes(ring_bytes) as u64) {
            return Err(refused("memory of another length than announced"));
        }
        Mapping::map(&memory, ring_bytes)
    }

    /// Maps a whole memfd that has the right length and cannot shrink.
    fn map(memory: impl AsFd, ring_bytes: usize) -> io::Result<Mapping> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: the system chooses the address, so no memory in use is replaced.
        let start = unsafe {
            mmap(std::ptr::null_mut(), area_bytes(ring_bytes), protection, MapFlags::SHARED, memory, 0)?
        };
        let start = NonNull::new(start.cast()).ok_or_else(|| refused("a mapping at address 0"))?;
        Ok(Mapping { start, ring_bytes })
    }
}

impl Area for Mapping {
    #[inline]
    fn control(&self) -> &Control {
        // SAFETY: the mapping starts at a page, which is aligned enough. `Control` fits into its first
        // CONTROL_BYTES (asserted beside it). These are mapped, readable and writable as long as `self`
        // lives, and cannot fault because the memory is sealed. `Control` consists of atomics only, for which
        // any bytes are valid and which the other process may change at any time.
        unsafe { self.start.cast::<Control>().as_ref() }
    }

    #[inline]
    fn ring(&self, writer: Side) -> &[AtomicUsize] {
        let offset = CONTROL_BYTES + self.ring_bytes * (writer as usize);
        // SAFETY: `writer` is 0 or 1, so the ring ends within the mapping, whose length is `area_bytes`. Both
        // terms of the offset are multiples of a word, and the mapping starts at a page. The words are
        // mapped, readable and writable as long as `self` lives, and cannot fault because the memory is
        // sealed. They are atomics, for which any bytes are valid and which the other process may change at
        // any time.
        unsafe {
            let first = self.start.add(offset).cast::<AtomicUsize>();
            std::slice::from_raw_parts(first.as_ptr(), self.ring_bytes / size_of::<usize>())
        }
    }

    fn sleep(&self, word: &AtomicU32, value: u32, at_most: Duration) {
        let at_most = Timespec {
            tv_sec: i64::try_from(at_most.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: at_most.subsec_nanos().into(),
        };
        // Whatever ends the wait, the caller checks again. Not a private futex, because the other process
        // wakes it.
        let _ = futex::wait(word, futex::Flags::empty(), value, Some(&at_most));
    }

    fn wake(&self, word: &AtomicU32) {
        let _ = futex::wake(word, futex::Flags::empty(), i32::MAX as u32);
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: this is the mapping that `map` created, with its length. All references into it have ended
        // with `self`.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), area_bytes(self.ring_bytes)) };
    }
}

/// The size of the whole mapping in bytes.
fn area_bytes(ring_bytes: usize) -> usize {
    CONTROL_BYTES + 2 * ring_bytes
}

fn is_ring(bytes: usize) -> bool {
    bytes.is_power_of_two() && RING_BYTES.contains(&bytes)
}

fn refused(why: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

#[cfg(test)]
mod tests {
    use rustix::fs::memfd_create;

    use super::*;
    use crate::end::End;

    const RING: usize = 8 << 10;

    #[test]
    fn two_mappings_of_one_memory_are_one_connection() {
        let (ours, memory) = Mapping::create(RING).unwrap();
        let theirs = Mapping::open(&memory, RING).unwrap();
        drop(memory);
        let (server, client) = (End::new(ours, Side::Server), End::new(theirs, Side::Client));
        let mut space = vec![0; 2 * RING];
        for round in 0..10 {
            let sent = vec![round; RING];
            assert_eq!(client.write(&sent).unwrap().bytes, RING);
            assert_eq!(server.read(&mut space).unwrap().bytes, RING);
            assert!(space[..RING] == sent);
            assert_eq!(server.write(&[round; 100]).unwrap().bytes, 100);
            assert_eq!(client.read(&mut space).unwrap().bytes, 100);
        }
    }

    #[test]
    fn threads_sleep_at_futexes() {
        use crate::end::Wanted;
        let (ours, memory) = Mapping::create(RING).unwrap();
        let theirs = Mapping::open(&memory, RING).unwrap();
        let (server, client) = (End::new(ours, Side::Server), End::new(theirs, Side::Client));
        let receive = |end: &End<Mapping>| {
            let mut space = [0; 8];
            loop {
                match end.read(&mut space).unwrap().bytes {
                    0 => end.sleep(Wanted::Bytes, Duration::from_secs(60), || false),
                    count => return (count, space),
                }
            }
        };
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..2000 {
                    let (count, bytes) = receive(&server);
                    let _ = server.write(&bytes[..count]).unwrap();
                }
            });
            for round in 0..2000u32 {
                let _ = client.write(&round.to_ne_bytes()).unwrap();
                assert_eq!(receive(&client).1[..4], round.to_ne_bytes());
            }
        });
    }

    #[test]
    fn memory_that_could_fault_or_has_another_size_is_refused() {
        let why = |memory: &OwnedFd, ring_bytes| Mapping::open(memory, ring_bytes).unwrap_err().to_string();
        let (_, memory) = Mapping::create(RING).unwrap();
        assert_eq!(why(&memory, 2 * RING), "memory of another length than announced");
        assert_eq!(why(&memory, RING / 2), "memory of another length than announced");
        for size in [0, 1, RING - 1, RING + 1, 128 << 20, usize::MAX, 1 << 63] {
            assert_eq!(
                why(&memory, size),
                "a ring whose size is not a power of two from 4 KiB to 64 MiB",
                "{size}"
            );
            assert!(Mapping::create(size).is_err());
        }
        let made = |flags, bytes: usize| {
            let memory = memfd_create("test", MemfdFlags::CLOEXEC | flags).unwrap();
            ftruncate(&memory, bytes as u64).unwrap();
            memory
        };
        let unsealed = made(MemfdFlags::ALLOW_SEALING, area_bytes(RING));
        assert_eq!(why(&unsealed, RING), "memory that could become shorter");
        fcntl_add_seals(&unsealed, SealFlags::GROW).unwrap();
        assert_eq!(why(&unsealed, RING), "memory that could become shorter");
        let file: OwnedFd = std::fs::File::open("/proc/self/exe").unwrap().into();
        assert_eq!(why(&file, RING), "memory that is not sealed");
        let (reader, _) = std::io::pipe().unwrap();
        assert_eq!(why(&reader.into(), RING), "memory that is not sealed");
        // A seal against writing, which the peer could set, makes the mapping fail and has no other effect.
        let readable = made(MemfdFlags::ALLOW_SEALING, area_bytes(RING));
        fcntl_add_seals(&readable, SealFlags::SHRINK | SealFlags::WRITE).unwrap();
        assert!(Mapping::open(&readable, RING).is_err());
        // The peer that receives our memory cannot seal it.
        assert!(fcntl_add_seals(&memory, SealFlags::WRITE).is_err());
        assert!(ftruncate(&memory, 0).is_err());
    }
}
