//! Disks: what a crash takes from files that programs have written and not synced.
//!
//! Files are the system's own, and are read and written there. Beside it each write is kept until the file is synced. When a
//! host loses its power, its files go back to where they were at their last sync, and then some of the later writes are made
//! again: any of them, in their order, one perhaps in part. Names of files (creating, renaming, removing) count as synced.
//!
//! A file that is not synced is kept open here, so that what its program has closed can be lost as well. Its order among others is
//! that of first writes: nothing depends on how the system numbers files.

use std::collections::BTreeMap;

use ironorb_model::Random;

use super::{HostId, State};

/// A file, as the system numbers it: device and inode.
pub(crate) type Inode = (u64, u64);

pub(crate) struct Disk {
    /// Descriptors of the system, by their number.
    open: BTreeMap<i32, Open>,
    unsynced: BTreeMap<Inode, Unsynced>,
    /// Files that have been not synced so far.
    count: u64,
    /// What crashes lose.
    random: Random,
}

impl Disk {
    pub(super) fn new(seed: u64) -> Disk {
        let random = Random::stream(seed, 5);
        Disk { open: BTreeMap::new(), unsynced: BTreeMap::new(), count: 0, random }
    }
}

#[derive(Clone, Copy)]
struct Open {
    process: HostId,
    inode: Inode,
}

struct Unsynced {
    machine: HostId,
    /// Its place among others.
    number: u64,
    /// A descriptor of its own, for reading and writing.
    descriptor: i32,
    changes: Vec<Change>,
}

/// A change of a file that is not synced.
pub(crate) struct Change {
    pub(crate) length_before: u64,
    pub(crate) at: u64,
    pub(crate) before: Vec<u8>,
    pub(crate) after: What,
}

pub(crate) enum What {
    Written(Vec<u8>),
    /// The file has this length.
    Length(u64),
}

/// What is to be done to a file after a crash, in this order. Then the descriptor is to be closed.
pub(crate) struct Repair {
    pub(crate) descriptor: i32,
    pub(crate) steps: Vec<Step>,
}

pub(crate) enum Step {
    Write { at: u64, octets: Vec<u8> },
    SetLength(u64),
}

impl State {
    pub(crate) fn note_open(&mut self, descriptor: i32, inode: Inode) {
        let process = self.here();
        self.disk.open.insert(descriptor, Open { process, inode });
    }

    pub(crate) fn note_close(&mut self, descriptor: i32) {
        self.disk.open.remove(&descriptor);
    }

    /// The file of a descriptor of the system that a program has opened.
    pub(crate) fn inode_of(&self, descriptor: i32) -> Option<Inode> {
        self.disk.open.get(&descriptor).map(|open| open.inode)
    }

    /// A program has made another descriptor for what one names.
    pub(crate) fn note_duplicate(&mut self, descriptor: i32, duplicate: i32) {
        let process = self.here();
        if let Some(&open) = self.disk.open.get(&descriptor) {
            self.disk.open.insert(duplicate, Open { process, ..open });
        }
    }

    /// The descriptor by which a file that is not synced is kept.
    pub(crate) fn kept_descriptor(&self, inode: Inode) -> Option<i32> {
        self.disk.unsynced.get(&inode).map(|unsynced| unsynced.descriptor)
    }

    /// A file is no longer synced. The descriptor is this one's.
    pub(crate) fn keep(&mut self, inode: Inode, descriptor: i32) {
        let machine = self.this_machine();
        self.disk.count += 1;
        let number = self.disk.count;
        self.disk.unsynced.insert(inode, Unsynced { machine, number, descriptor, changes: Vec::new() });
    }

    pub(crate) fn note_change(&mut self, inode: Inode, change: Change) {
        if let Some(unsynced) = self.disk.unsynced.get_mut(&inode) {
            unsynced.changes.push(change);
        }
    }

    /// A file is synced. Gives the descriptor by which it was kept; it is to be closed.
    pub(crate) fn note_sync(&mut self, inode: Inode) -> Option<i32> {
        self.disk.unsynced.remove(&inode).map(|unsynced| unsynced.descriptor)
    }

    /// The system's descriptors of a process that is gone; they are to be closed.
    pub(crate) fn forget_descriptors_of(&mut self, process: HostId) -> Vec<i32> {
        let of_process = self.disk.open.iter().filter(|(_, open)| open.process == process);
        let gone = of_process.map(|(&descriptor, _)| descriptor).collect();
        self.disk.open.retain(|_, open| open.process != process);
        gone
    }

    /// What a crash of a host does to its files.
    pub(crate) fn repairs_after_crash_of(&mut self, machine: HostId) -> Vec<Repair> {
        let Disk { unsynced, random, .. } = &mut self.disk;
        type Files = BTreeMap<Inode, Unsynced>;
        let (lost, others): (Files, Files) =
            std::mem::take(unsynced).into_iter().partition(|(_, it)| it.machine == machine);
        *unsynced = others;
        let mut lost: Vec<Unsynced> = lost.into_values().collect();
        lost.sort_by_key(|unsynced| unsynced.number);
        let repair = |unsynced: Unsynced| Repair {
            descriptor: unsynced.descriptor,
            steps: after_crash(unsynced.changes, random),
        };
        lost.into_iter().map(repair).collect()
    }
}

/// What a disk writes at once, between multiples of it in the file.
const SECTOR: u64 = 512;

/// How much of a write is made that is made in part: what lies in some of the first sectors that it touches, or in none.
fn torn(at: u64, length: usize, random: &mut Random) -> usize {
    let first = at / SECTOR;
    let sectors = (at + length as u64).div_ceil(SECTOR) - first;
    let border = (first + random.below(sectors)) * SECTOR;
    border.saturating_sub(at) as usize
}

fn after_crash(changes: Vec<Change>, random: &mut Random) -> Vec<Step> {
    let mut steps = Vec::new();
    for change in changes.iter().rev() {
        steps.push(Step::Write { at: change.at, octets: change.before.clone() });
        steps.push(Step::SetLength(change.length_before));
    }
    for change in changes {
        // Half of the writes are made, one of eight of these in part.
        if !random.is_so(0.5) {
            continue;
        }
        match change.after {
            What::Length(length) => steps.push(Step::SetLength(length)),
            What::Written(mut octets) => {
                if random.is_so(0.125) {
                    octets.truncate(torn(change.at, octets.len(), random));
                }
                steps.push(Step::Write { at: change.at, octets });
            }
        }
    }
    steps
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// How much of a write of this length may be there after a crash.
    fn left(at: u64, length: usize) -> Vec<usize> {
        let mut left = BTreeSet::new();
        for seed in 0..1_000 {
            let after = What::Written(vec![1; length]);
            let change = Change { length_before: at, at, before: Vec::new(), after };
            let steps = after_crash(vec![change], &mut Random::stream(seed, 0));
            left.insert(match steps.last() {
                Some(Step::Write { octets, .. }) => octets.len(),
                _ => 0,
            });
        }
        left.into_iter().collect()
    }

    #[test]
    fn writes_are_torn_where_sectors_meet() {
        assert_eq!(left(100, 100), [0, 100], "within a sector: all or nothing");
        assert_eq!(left(412, 100), [0, 100], "up to its end");
        assert_eq!(left(500, 100), [0, 12, 100]);
        assert_eq!(left(1_100, 1_000), [0, 436, 948, 1_000]);
        assert_eq!(left(512, 1_024), [0, 512, 1_024]);
    }
}
