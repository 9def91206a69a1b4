//! A disk that loses what was not synced, in parts of a sector.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use super::*;
use crate::memory::{LockedRow, Memory, Row};

const SECTOR: usize = 512;

/// The files of a disk: what is on it for sure, and what was written since, sector by sector.
#[derive(Clone, Default)]
struct Disk(Arc<Mutex<Files>>);

#[derive(Default)]
struct Files {
    log: SimulatedFile,
    elements: SimulatedFile,
    /// Calls until the machine ends; none goes through after that.
    left: Option<u32>,
}

#[derive(Default, Clone)]
struct SimulatedFile {
    synced: Vec<u8>,
    seen: Vec<u8>,
    /// Sectors that differ, if the length does not.
    written: BTreeMap<usize, ()>,
    is_emptied: bool,
}

impl SimulatedFile {
    fn write(&mut self, bytes: &[u8], at: usize) {
        let end = at + bytes.len();
        self.seen.resize(self.seen.len().max(end), 0);
        self.seen[at..end].copy_from_slice(bytes);
        for sector in at / SECTOR..end.div_ceil(SECTOR) {
            self.written.insert(sector, ());
        }
    }

    fn sync(&mut self) {
        *self =
            SimulatedFile { synced: self.seen.clone(), seen: self.seen.clone(), ..SimulatedFile::default() };
    }

    /// What is there after the machine has ended: of what was not synced, any part.
    fn after_end(&mut self, random: &mut fastrand::Rng) {
        if self.is_emptied && random.bool() {
            self.synced.clear();
        }
        for sector in self.written.keys().copied().collect::<Vec<_>>() {
            if random.bool() {
                let (from, to) = (sector * SECTOR, ((sector + 1) * SECTOR).min(self.seen.len()));
                self.synced.resize(self.synced.len().max(to), 0);
                if from < to {
                    self.synced[from..to].copy_from_slice(&self.seen[from..to]);
                }
            }
        }
        let synced = std::mem::take(&mut self.synced);
        *self = SimulatedFile { seen: synced.clone(), synced, ..SimulatedFile::default() };
    }
}

impl Disk {
    fn call<T>(&self, call: impl FnOnce(&mut Files) -> T) -> io::Result<T> {
        let mut files = self.0.lock().unwrap();
        match &mut files.left {
            Some(0) => return Err(io::Error::other("the machine has ended")),
            Some(left) => *left -= 1,
            None => {}
        }
        Ok(call(&mut files))
    }
}

impl LogFile for Disk {
    fn write_at(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        self.call(|files| files.log.write(bytes, at as usize))
    }

    fn sync(&self) -> io::Result<()> {
        self.call(|files| files.log.sync())
    }

    fn empty(&self) -> io::Result<()> {
        self.call(|files| {
            files.log.seen.clear();
            files.log.written.clear();
            files.log.is_emptied = true;
        })?;
        self.sync()
    }

    fn read(&self) -> io::Result<Vec<u8>> {
        Ok(self.0.lock().unwrap().log.seen.clone())
    }
}

/// Larger than a sector, so that a part of it may be lost.
type State = [u64; 96];

const ELEMENTS: usize = 5;

/// Elements on the disk, and what was acknowledged of them.
struct Extent {
    disk: Disk,
    log: Log<Disk>,
    turns: LockedRow<State>,
}

impl Extent {
    fn open(disk: &Disk) -> Extent {
        let memory = Arc::new(Memory::zeros(64 + ELEMENTS * size_of::<State>()).unwrap());
        let turns = LockedRow::new(Row::at(&memory, 0, ELEMENTS), Row::at(&memory, 64, ELEMENTS));
        Extent { disk: disk.clone(), log: Log::new(disk.clone(), 4000), turns }
    }

    /// The machine has ended: what was not synced is perhaps lost, and the extent is opened anew.
    fn after_end(disk: &Disk, random: &mut fastrand::Rng) -> Extent {
        let mut files = disk.0.lock().unwrap();
        files.log.after_end(random);
        files.elements.after_end(random);
        files.left = None;
        drop(files);
        let extent = Extent::open(disk);
        extent.recover();
        extent
    }

    fn put(&self, index: u64, state: State) {
        let bytes = bytemuck::bytes_of(&state);
        // As the system may write memory of a file at any time, a store is a write that is not synced.
        let _ended = self.disk.call(|files| files.elements.write(bytes, index as usize * bytes.len()));
    }

    fn flush(&self) -> io::Result<()> {
        self.disk.call(|files| files.elements.sync())
    }

    fn update(&self, index: u64, state: State) -> io::Result<()> {
        self.update_all(&[index], state)
    }

    /// Gives these elements one state, at once.
    fn update_all(&self, indices: &[u64], state: State) -> io::Result<()> {
        let change = |index: &u64| Change::new(self.turns.hold(*index as usize).unwrap(), *index, 0, state);
        let mut changes: Vec<_> = indices.iter().map(change).collect();
        self.log.carry_out(
            &mut changes,
            || self.flush(),
            |changes| {
                for change in changes {
                    self.put(change.index, change.state);
                }
            },
        )
    }

    fn recover(&self) {
        self.log.finish(|index, _, state| self.put(index, state), || self.flush()).unwrap();
    }

    fn state(&self, index: usize) -> State {
        let files = self.disk.0.lock().unwrap();
        let bytes = size_of::<State>();
        match files.elements.seen.get(index * bytes..(index + 1) * bytes) {
            Some(state) => bytemuck::pod_read_unaligned(state),
            None => [0; 96],
        }
    }
}

#[test]
fn nothing_acknowledged_is_lost_and_nothing_torn_when_the_machine_ends_anywhere() {
    let seeds = if cfg!(miri) { 3 } else { 600 };
    let mut ends = 0;
    for seed in 0..seeds {
        let mut random = fastrand::Rng::with_seed(seed);
        let disk = Disk::default();
        disk.0.lock().unwrap().elements.seen = vec![0; ELEMENTS * size_of::<State>()];
        disk.0.lock().unwrap().elements.sync();
        let mut acknowledged = [0_u64; ELEMENTS];
        let mut next = 1;
        for _life in 0..4 {
            disk.0.lock().unwrap().left = None;
            let extent = Extent::open(&disk);
            extent.recover();
            disk.0.lock().unwrap().left = Some(random.u32(1..60));
            let mut tried = [0_u64; ELEMENTS];
            loop {
                let index = random.usize(..ELEMENTS);
                tried[index] = next;
                if extent.update(index as u64, [next; 96]).is_err() {
                    ends += 1;
                    break;
                }
                acknowledged[index] = next;
                next += 1;
            }
            next += 1;
            let extent = Extent::after_end(&disk, &mut random);
            for index in 0..ELEMENTS {
                let state = extent.state(index);
                assert!(state.iter().all(|word| *word == state[0]), "seed {seed}: element {index} is torn");
                let may_be = [acknowledged[index], tried[index]];
                assert!(
                    may_be.contains(&state[0]),
                    "seed {seed}: element {index} is {}, not {may_be:?}",
                    state[0]
                );
                acknowledged[index] = state[0];
            }
        }
    }
    assert!(ends >= seeds, "machines ended in the middle");
}

/// Each thread gives two elements of its own one state after another, until the machine ends under all of them.
#[test]
fn what_threads_have_been_told_is_on_the_disk_when_the_machine_ends() {
    const THREADS: usize = ELEMENTS / 2;
    let (seeds, calls_max) = if cfg!(miri) { (1, 30) } else { (300, 90) };
    for seed in 0..seeds {
        let mut random = fastrand::Rng::with_seed(seed);
        let disk = Disk::default();
        disk.0.lock().unwrap().elements.seen = vec![0; ELEMENTS * size_of::<State>()];
        disk.0.lock().unwrap().elements.sync();
        let mut known = [0; THREADS];
        for life in 0..4 {
            let extent = Extent::open(&disk);
            extent.recover();
            disk.0.lock().unwrap().left = Some(random.u32(1..calls_max));
            let until_the_end = |thread: usize, known: u64| {
                let pair = [2 * thread as u64, 2 * thread as u64 + 1];
                let fails = |n: &u64| extent.update_all(&pair, [*n; 96]).is_err();
                (known + 1..).find(fails).expect("the machine ends")
            };
            let tried: Vec<u64> = std::thread::scope(|scope| {
                let until_the_end = &until_the_end;
                let spawn = |(thread, known)| scope.spawn(move || until_the_end(thread, known));
                let threads: Vec<_> = known.into_iter().enumerate().map(spawn).collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).collect()
            });
            let extent = Extent::after_end(&disk, &mut random);
            for (thread, tried) in tried.into_iter().enumerate() {
                let [one, other] = [2 * thread, 2 * thread + 1].map(|index| extent.state(index));
                assert!(one.iter().all(|word| *word == one[0]), "seed {seed}, life {life}: torn");
                assert_eq!(one, other, "seed {seed}, life {life}: they change at once");
                let may_be = [tried - 1, tried];
                assert!(may_be.contains(&one[0]), "seed {seed}, life {life}: {} of {may_be:?}", one[0]);
                known[thread] = one[0];
            }
        }
    }
}

#[test]
fn updates_of_several_threads_share_a_sync() {
    let disk = Disk::default();
    let extent = Extent::open(&disk);
    std::thread::scope(|scope| {
        for index in 0..ELEMENTS as u64 {
            let extent = &extent;
            scope.spawn(move || (1..=20).for_each(|n| extent.update(index, [n; 96]).unwrap()));
        }
    });
    for index in 0..ELEMENTS {
        assert_eq!(extent.state(index)[0], 20);
    }
}

#[test]
fn what_is_no_record_ends_the_log() {
    let body = [7_u8; 20];
    let mut record = Vec::new();
    for number in [MAGIC, 20, checksum(&body)] {
        record.extend(number.to_le_bytes());
    }
    record.extend(body);
    assert_eq!(first_record(&record), Some((&body[..], &[][..])));
    for at in 0..record.len() {
        let mut other = record.clone();
        other[at] ^= 1;
        assert_eq!(first_record(&other), None, "octet {at}");
        assert_eq!(first_record(&record[..at]), None, "the first {at} octets");
    }
    assert_eq!(first_record(&[0; 64]), None);
    let mut long = record.clone();
    long[4..8].copy_from_slice(&u32::MAX.to_le_bytes());
    assert_eq!(first_record(&long), None);
}
