//! What makes an update survive the end of the machine: it stands in a log on the disk before elements change. Updates of
//! several threads share one write to the disk.
//!
//! Elements change only after their record is on the disk, because the system may write memory of the file at any time. The
//! log is emptied when it is long, after all elements are on the disk.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use bytemuck::Pod;
use ironorb_locks::{Condition, LockGuard, Locked, Waits};

use crate::elements::Change;
use crate::lanes::CHANGES_MAX;

/// A file that the log is in.
pub(crate) trait LogFile: Send + Sync {
    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()>;
    /// Waits until all that was written is on the disk.
    fn sync(&self) -> io::Result<()>;
    /// Forgets all that was written.
    fn empty(&self) -> io::Result<()>;
    fn read(&self) -> io::Result<Vec<u8>>;
}

/// What an extent's file and its log have in common, and no other extent's: a random number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Identity(pub(crate) [u8; 16]);

impl Identity {
    /// One that no extent has.
    pub(crate) fn new() -> io::Result<Identity> {
        let mut random = [0; 16];
        let mut rest = &mut random[..];
        while !rest.is_empty() {
            let given = rustix::rand::getrandom(&mut *rest, rustix::rand::GetRandomFlags::empty())?;
            rest = &mut rest[given..];
        }
        Ok(Identity(random))
    }
}

// What stands before the records in a log on the disk: the magic number, and the identity of the extent that it is of.
const OF_LOG: [u8; 8] = *b"IROEXLOG";
const RECORDS_AT: u64 = 24;

/// A log on the disk.
pub(crate) struct DiskLog(File);

/// What a log says of itself before it is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LogHead {
    /// Nothing: it has been made just now, or was being made when its process ended.
    Nothing,
    /// The extent that it is of, and whether it has bytes of records.
    Of(Identity, bool),
    /// It is no log.
    Unknown,
}

impl DiskLog {
    /// The log in a file, whatever it has, and what it says of itself.
    pub(crate) fn of(file: File) -> io::Result<(DiskLog, LogHead)> {
        let bytes = file.metadata()?.len();
        let mut head = [0; RECORDS_AT as usize];
        let head = match bytes {
            ..RECORDS_AT => LogHead::Nothing,
            _ => {
                file.read_exact_at(&mut head, 0)?;
                match (head.strip_prefix(&OF_LOG), head.last_chunk()) {
                    (Some(_), Some(identity)) => LogHead::Of(Identity(*identity), bytes > RECORDS_AT),
                    _ => LogHead::Unknown,
                }
            }
        };
        Ok((DiskLog(file), head))
    }

    /// Makes it the empty log of an extent, on the disk.
    pub(crate) fn begin(&self, of: Identity) -> io::Result<()> {
        self.0.set_len(0)?;
        self.0.write_all_at(&[&OF_LOG[..], &of.0].concat(), 0)?;
        self.0.sync_all()
    }
}

impl LogFile for DiskLog {
    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        self.0.write_all_at(bytes, at + RECORDS_AT)
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn empty(&self) -> io::Result<()> {
        self.0.set_len(RECORDS_AT)?;
        self.0.sync_all()
    }

    fn read(&self) -> io::Result<Vec<u8>> {
        let bytes = self.0.metadata()?.len().saturating_sub(RECORDS_AT);
        let mut read = vec![0; usize::try_from(bytes).map_err(|_| io::ErrorKind::FileTooLarge)?];
        self.0.read_exact_at(&mut read, RECORDS_AT)?;
        Ok(read)
    }
}

/// The log of an extent.
pub(crate) struct Log<F> {
    file: F,
    /// Bytes from which on the log is emptied.
    bytes_max: u64,
    state: Locked<State>,
    changed: Condition,
}

#[derive(Default)]
struct State {
    /// Where the next record goes.
    end: u64,
    /// Up to where records are on the disk.
    synced: u64,
    is_syncing: bool,
    /// Updates with a record whose elements have not changed yet.
    under_way: usize,
    /// A write has failed: nobody knows what is on the disk.
    is_broken: bool,
}

impl<F: LogFile> Log<F> {
    /// An empty log.
    pub(crate) fn new(file: F, bytes_max: u64) -> Log<F> {
        Log {
            file,
            bytes_max,
            state: Locked::new(Waits::Lending, State::default()),
            changed: Condition::new(),
        }
    }

    /// Carries out an update: its record is on the disk before `store` puts the states where they belong. Where the log is
    /// long, `flush` has all elements written to the disk first. Blocks for the disk.
    pub(crate) fn carry_out<T: Pod>(
        &self,
        changes: &mut [Change<'_, T>],
        flush: impl FnOnce() -> io::Result<()>,
        store: impl FnOnce(&mut [Change<'_, T>]),
    ) -> io::Result<()> {
        let record = record_of(changes);
        let end = self.append(&record, flush)?;
        let synced = self.wait_until_synced(end);
        if synced.is_ok() {
            store(changes);
        }
        self.state.lock(()).under_way -= 1;
        self.changed.notify_all();
        synced
    }

    fn append(&self, record: &[u8], flush: impl FnOnce() -> io::Result<()>) -> io::Result<u64> {
        let mut state = self.working()?;
        while state.end >= self.bytes_max && state.under_way > 0 {
            state = self.changed.wait(state, ());
        }
        if state.end >= self.bytes_max {
            let emptied = flush().and_then(|()| self.file.empty());
            state.is_broken |= emptied.is_err();
            emptied?;
            (state.end, state.synced) = (0, 0);
        }
        let written = self.file.write_at(record, state.end);
        state.is_broken |= written.is_err();
        written?;
        state.end += record.len() as u64;
        state.under_way += 1;
        Ok(state.end)
    }

    fn wait_until_synced(&self, end: u64) -> io::Result<()> {
        let mut state = self.working()?;
        while state.synced < end {
            if state.is_syncing {
                state = self.changed.wait(state, ());
            } else {
                state = self.sync(state);
            }
            if state.is_broken {
                return Err(broken());
            }
        }
        Ok(())
    }

    /// Has all records that are written by now on the disk. Other threads write more of them meanwhile.
    fn sync<'l>(&'l self, mut state: LockGuard<'l, State>) -> LockGuard<'l, State> {
        let end = state.end;
        state.is_syncing = true;
        drop(state);
        let synced = self.file.sync();
        let mut state = self.state.lock(());
        state.is_syncing = false;
        match synced {
            Ok(()) => state.synced = state.synced.max(end),
            Err(_) => state.is_broken = true,
        }
        self.changed.notify_all();
        state
    }

    fn working(&self) -> io::Result<LockGuard<'_, State>> {
        let state = self.state.lock(());
        if state.is_broken { Err(broken()) } else { Ok(state) }
    }

    /// Empties the log.
    pub(crate) fn forget(&self) -> io::Result<()> {
        self.file.empty()
    }

    /// Finishes what the log has: `store` gets each element's index, mark and state; `flush` has all elements on the disk.
    pub(crate) fn finish<T: Pod>(
        &self,
        mut store: impl FnMut(u64, u32, T),
        flush: impl FnOnce() -> io::Result<()>,
    ) -> io::Result<()> {
        let bytes = self.file.read()?;
        let mut rest = &bytes[..];
        while let Some((body, after)) = first_record(rest) {
            changes_in(body, &mut store);
            rest = after;
        }
        flush()?;
        self.file.empty()
    }
}

fn broken() -> io::Error {
    io::Error::other("an earlier write to the extent's log has failed")
}

// A record: the magic number, its bytes after the checksum, their checksum; then for each element index, mark and state.
// Numbers are little-endian.
const MAGIC: u32 = 0x524F_4952;
const HEAD: usize = 12;

fn record_of<T: Pod>(changes: &[Change<'_, T>]) -> Vec<u8> {
    let mut record = vec![0; HEAD];
    for change in changes {
        record.extend(change.index.to_le_bytes());
        record.extend(change.mark.to_le_bytes());
        record.extend(bytemuck::bytes_of(&change.state));
    }
    let body = &record[HEAD..];
    let head = [MAGIC, body.len() as u32, checksum(body)];
    for (place, number) in record.chunks_exact_mut(4).zip(head) {
        place.copy_from_slice(&number.to_le_bytes());
    }
    record
}

/// The body of the first record, if it is whole, and what follows it.
fn first_record(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (head, rest) = bytes.split_at_checked(HEAD)?;
    let number = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    let (body, after) = rest.split_at_checked(usize::try_from(number(4)).ok()?)?;
    (number(0) == MAGIC && number(8) == checksum(body)).then_some((body, after))
}

fn changes_in<T: Pod>(body: &[u8], store: &mut impl FnMut(u64, u32, T)) {
    for change in body.chunks_exact(12 + size_of::<T>()).take(CHANGES_MAX) {
        if let (Some((index, rest)), Some((mark, state))) =
            (change.split_first_chunk::<8>(), change[8..].split_first_chunk::<4>())
        {
            debug_assert_eq!(rest.len(), state.len() + 4);
            store(u64::from_le_bytes(*index), u32::from_le_bytes(*mark), bytemuck::pod_read_unaligned(state));
        }
    }
}

/// Of an empty body it is not zero, so that zeros are no record.
fn checksum(body: &[u8]) -> u32 {
    !crc32fast::hash(body)
}

#[cfg(test)]
mod tests;
