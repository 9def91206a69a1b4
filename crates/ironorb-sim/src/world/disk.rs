//! Disks: what a crash takes from files that programs have written and not synced.
//!
//! Files are the system's own, and are read and written there. Beside it each write is kept until the file is synced. When a
//! host loses its power, its files go back to where they were at their last sync, and then some of the later writes are made
//! again: any of them, in their order, one perhaps in part. Names of files (creating, renaming, removing) count as synced.

use std::collections::BTreeMap;

use ironorb_model::Random;

use super::{HostId, State};

/// A file, as the system numbers it: device and inode.
pub(crate) type Inode = (u64, u64);

#[derive(Default)]
pub(crate) struct Disk {
    /// Descriptors of the system, by their number.
    open: BTreeMap<i32, Open>,
    unsynced: BTreeMap<Inode, Unsynced>,
}

#[derive(Clone, Copy)]
struct Open {
    process: HostId,
    inode: Inode,
}

struct Unsynced {
    machine: HostId,
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

/// What is to be done to a file after a crash, in this order.
pub(crate) struct Repair {
    pub(crate) inode: Inode,
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

    /// A descriptor of a file.
    pub(crate) fn descriptor_of(&self, inode: Inode) -> Option<i32> {
        self.disk.open.iter().find(|(_, open)| open.inode == inode).map(|(&descriptor, _)| descriptor)
    }

    pub(crate) fn note_change(&mut self, inode: Inode, change: Change) {
        let machine = self.this_machine();
        let unsynced = self.disk.unsynced.entry(inode);
        unsynced.or_insert_with(|| Unsynced { machine, changes: Vec::new() }).changes.push(change);
    }

    pub(crate) fn note_sync(&mut self, inode: Inode) {
        self.disk.unsynced.remove(&inode);
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
        let lost: Vec<Inode> = {
            let of_machine = self.disk.unsynced.iter().filter(|(_, unsynced)| unsynced.machine == machine);
            of_machine.map(|(&inode, _)| inode).collect()
        };
        let repair = |inode| {
            let unsynced = self.disk.unsynced.remove(&inode)?;
            Some(Repair { inode, steps: after_crash(unsynced.changes, &mut self.order) })
        };
        lost.into_iter().filter_map(repair).collect()
    }
}

/// What a disk writes at once.
const SECTOR: usize = 512;

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
                    let sectors = octets.len().div_ceil(SECTOR) as u64;
                    octets.truncate(random.below(sectors) as usize * SECTOR);
                }
                steps.push(Step::Write { at: change.at, octets });
            }
        }
    }
    steps
}
