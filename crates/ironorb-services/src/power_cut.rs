//! A simulated disk whose power fails, for tests of stores.
//!
//! A killed process loses nothing that it wrote, because the operating system still has it. Only a disk that
//! loses unsynced data shows whether `commit` really syncs. On a power cut this disk keeps a random part of
//! the data written since the last sync, torn within pages too.

use std::io;
use std::sync::{Arc, Mutex};

#[path = "../tests/support/random.rs"]
mod random;

pub(crate) use random::Random;

/// A disk whose power fails after `writes_left` writes. From then on each access is an error.
#[derive(Debug)]
struct Disk {
    /// The contents that reads see.
    now: Vec<u8>,
    /// The contents at the last sync.
    synced: Vec<u8>,
    /// Writes since the last sync, in order; `None` is a change of length.
    pending: Vec<(u64, Option<Vec<u8>>)>,
    writes_left: usize,
}

impl Disk {
    fn powered(&self) -> io::Result<()> {
        if self.writes_left == 0 { Err(io::Error::other("the power is off")) } else { Ok(()) }
    }

    fn spend(&mut self) -> io::Result<()> {
        self.powered()?;
        self.writes_left -= 1;
        Ok(())
    }

    /// The contents after the power is back.
    fn after_cut(&self, random: &mut Random) -> Vec<u8> {
        let mut found = self.synced.clone();
        for (at, data) in &self.pending {
            let at = usize::try_from(*at).unwrap();
            match data {
                None => found.resize(at, 0),
                // Each sector of a write reaches the disk or does not.
                Some(data) => {
                    let end = at + data.len();
                    if found.len() < end {
                        found.resize(end, 0);
                    }
                    for (index, sector) in data.chunks(512).enumerate() {
                        if random.below(2) == 0 {
                            let start = at + index * 512;
                            found[start..start + sector.len()].copy_from_slice(sector);
                        }
                    }
                }
            }
        }
        found
    }
}

#[derive(Clone, Debug)]
pub(crate) struct SharedDisk(Arc<Mutex<Disk>>);

impl SharedDisk {
    pub(crate) fn holding(bytes: Vec<u8>, writes_left: usize) -> Self {
        let disk = Disk { now: bytes.clone(), synced: bytes, pending: Vec::new(), writes_left };
        SharedDisk(Arc::new(Mutex::new(disk)))
    }

    /// A disk whose power does not fail, for creating a store: how that survives is a matter of files, not of
    /// the disk.
    pub(crate) fn new() -> Self {
        SharedDisk::holding(Vec::new(), usize::MAX)
    }

    /// Everything that was written.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.0.lock().unwrap().now.clone()
    }

    /// The contents after the power is back.
    pub(crate) fn after_cut(&self, random: &mut Random) -> Vec<u8> {
        self.0.lock().unwrap().after_cut(random)
    }
}

impl redb::StorageBackend for SharedDisk {
    fn len(&self) -> io::Result<u64> {
        let disk = self.0.lock().unwrap();
        disk.powered()?;
        Ok(disk.now.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let disk = self.0.lock().unwrap();
        disk.powered()?;
        let start = usize::try_from(offset).unwrap();
        let bytes = disk.now.get(start..start + out.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
        out.copy_from_slice(bytes);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut disk = self.0.lock().unwrap();
        disk.spend()?;
        disk.now.resize(usize::try_from(len).unwrap(), 0);
        disk.pending.push((len, None));
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut disk = self.0.lock().unwrap();
        disk.spend()?;
        disk.synced = disk.now.clone();
        disk.pending.clear();
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut disk = self.0.lock().unwrap();
        disk.spend()?;
        let start = usize::try_from(offset).unwrap();
        disk.now[start..start + data.len()].copy_from_slice(data);
        disk.pending.push((offset, Some(data.to_vec())));
        Ok(())
    }
}
