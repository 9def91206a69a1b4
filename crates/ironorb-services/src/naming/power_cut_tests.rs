//! What was acknowledged survives a power cut, at any write.
//!
//! A killed process loses nothing that it wrote, since the operating system still has it; only a disk that forgets
//! what was not synced shows whether `commit` really syncs. So the store runs on a pretended disk that keeps, on a
//! cut, a random part of what was written since the last sync, torn within pages too.

use std::io;
use std::sync::{Arc, Mutex};

use super::*;

/// A disk whose power fails after `writes_left` writes: from then on each access is an error.
#[derive(Debug)]
struct Disk {
    /// What reads see.
    now: Vec<u8>,
    /// What the last sync left.
    synced: Vec<u8>,
    /// Writes since then, in order; `None` is a change of length.
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

    /// The bytes that are found when the power is back.
    fn after_cut(&self, random: &mut Random) -> Vec<u8> {
        let mut found = self.synced.clone();
        for (at, data) in &self.pending {
            let at = usize::try_from(*at).unwrap();
            match data {
                None => found.resize(at, 0),
                // A write reaches the disk by sectors, each or not.
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
struct SharedDisk(Arc<Mutex<Disk>>);

impl SharedDisk {
    fn holding(bytes: Vec<u8>, writes_left: usize) -> Self {
        let disk = Disk { now: bytes.clone(), synced: bytes, pending: Vec::new(), writes_left };
        SharedDisk(Arc::new(Mutex::new(disk)))
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

/// SplitMix64: enough to choose by, and the same from the same seed.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }
}

/// A store that is made already: making one is a matter of files, not of the disk.
fn new_store() -> Vec<u8> {
    let disk = SharedDisk::holding(Vec::new(), usize::MAX);
    drop(Store::with_backend(disk.clone()).unwrap());
    disk.0.lock().unwrap().now.clone()
}

/// Binds `o0`, `o1`, ... from `first` on until the power fails; the number that were acknowledged, first included.
fn bind_until_cut(disk: &SharedDisk, first: usize) -> usize {
    // Opening writes too, and may be cut.
    let Ok(store) = Store::with_backend(disk.clone()) else { return first };
    let service = NamingService::new(store, Limits::default());
    for number in first..first + BINDS_MAX {
        let object = Reference::new(number.to_string().into_bytes());
        // An interrupted bind may have reached the disk although it was not acknowledged, so the next run rebinds.
        match service.rebind(ContextId::ROOT, &name(number), object) {
            Ok(Step::Done(())) => {}
            _ => return number,
        }
    }
    panic!("{BINDS_MAX} bindings were acknowledged in fewer writes: they cannot be on the disk");
}

fn check_bound(bytes: &[u8], acknowledged: usize, seed: u64) {
    let disk = SharedDisk::holding(bytes.to_vec(), usize::MAX);
    let store = Store::with_backend(disk).unwrap_or_else(|fault| panic!("seed {seed}: {fault}"));
    let service = NamingService::new(store, Limits::default());
    for number in 0..acknowledged {
        match service.resolve(ContextId::ROOT, &name(number)) {
            Ok(Step::Done(Bound::Object(object))) => {
                assert_eq!(object.as_bytes(), number.to_string().as_bytes(), "seed {seed}");
            }
            other => panic!("seed {seed}: binding {number} of {acknowledged} gave {other:?}"),
        }
    }
}

fn name(number: usize) -> Name {
    Name::new(vec![NameComponent::new(format!("o{number}"), "")]).unwrap()
}

/// More than the writes before any cut, and each binding takes one at least.
const BINDS_MAX: usize = 100;

#[test]
fn acknowledged_bindings_survive_power_cuts() {
    let mut acknowledged_in_all = 0;
    for seed in 0..40 {
        let mut random = Random(seed);
        let mut bytes = new_store();
        let mut acknowledged = 0;
        // Several cuts in a row, so that stores which were mended are cut again.
        for _ in 0..4 {
            let writes = 1 + usize::try_from(random.below(60)).unwrap();
            let disk = SharedDisk::holding(bytes, writes);
            acknowledged = bind_until_cut(&disk, acknowledged);
            bytes = disk.0.lock().unwrap().after_cut(&mut random);
            check_bound(&bytes, acknowledged, seed);
        }
        acknowledged_in_all += acknowledged;
    }
    assert!(acknowledged_in_all > 100, "the cuts came too early to show anything: {acknowledged_in_all}");
}
