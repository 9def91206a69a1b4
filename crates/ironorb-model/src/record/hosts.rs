//! The hosts of a scenario that recorded programs are on.

use std::collections::{BTreeSet, HashSet};
use std::time::Duration;

use super::recording::{Call as Recorded, Recording, ServedBy};
use super::workload::plain;
use crate::scenario::HostGroup;

/// Where the recorded programs run.
pub(super) struct Hosts {
    pub(super) groups: Vec<HostGroup>,
    /// The machine of each group: programs that share no processor have groups of their own on one machine.
    machines: Vec<String>,
    pub(super) by_section: Vec<usize>,
    /// Of addresses without a recording.
    pub(super) by_address: Vec<usize>,
    /// Of clients of which nothing is recorded, if there are any.
    of_strangers: Option<usize>,
}

impl Hosts {
    pub(super) fn of(recording: &Recording, notes: &mut Vec<String>) -> Hosts {
        let mut hosts = Hosts {
            groups: Vec::new(),
            machines: Vec::new(),
            by_section: Vec::new(),
            by_address: Vec::new(),
            of_strangers: None,
        };
        let places = Place::all(recording);
        for section in 0..recording.sections.len() {
            let Some(place) = places.iter().find(|place| place.sections.contains(&section)) else { continue };
            let group = hosts.group(&place.name(&places), &place.machine, place.cores(recording));
            hosts.by_section.push(group);
        }
        for place in places.iter().filter(|place| place.is_shared_in_part(recording)) {
            notes.push(format!(
                "{}: programs there share some of their processors: each may use all of them",
                place.name(&places)
            ));
        }
        let unrecorded: HashSet<ServedBy> = recording.calls.iter().map(|call| call.server).collect();
        for (index, address) in recording.servers.iter().enumerate() {
            let name = address.rsplit_once(':').map_or(address.as_str(), |(host, _)| host);
            // An address whose program has recorded needs no host of its own.
            let is_needed = unrecorded.contains(&ServedBy::Address(index));
            let group = if is_needed { hosts.group(name, name, 1) } else { 0 };
            hosts.by_address.push(group);
        }
        if recording.calls.iter().any(|call| call.client.is_none()) {
            hosts.of_strangers = Some(hosts.group("clients", "clients", 1));
        }
        hosts
    }

    fn group(&mut self, name: &str, machine: &str, cores: u32) -> usize {
        let name = plain(name);
        if let Some(index) = self.groups.iter().position(|group| group.name == name) {
            self.groups[index].cores = self.groups[index].cores.max(cores);
            return index;
        }
        self.groups.push(HostGroup { name, count: 1, cores, switch_time: Duration::ZERO, speed: 1.0 });
        self.machines.push(machine.to_owned());
        self.groups.len() - 1
    }

    /// Whether a call between these groups leaves no machine.
    pub(super) fn is_within(&self, ends: (usize, usize)) -> bool {
        self.machines[ends.0] == self.machines[ends.1]
    }

    pub(super) fn of_client(&self, call: &Recorded) -> usize {
        match call.client {
            Some(client) => self.by_section[client.section],
            None => self.of_strangers.unwrap_or(0),
        }
    }
}

/// Processors of one machine, and the programs that may use some of them and no others.
struct Place {
    machine: String,
    /// Empty if a program there has not told which ones it may use.
    processors: BTreeSet<u32>,
    sections: Vec<usize>,
}

impl Place {
    fn all(recording: &Recording) -> Vec<Place> {
        let sections = || recording.sections.iter().map(|section| &section.head);
        let is_silent =
            |host: &str| sections().any(|head| head.host == host && listed(&head.processors).is_empty());
        let mut places: Vec<Place> = Vec::new();
        for (section, head) in sections().enumerate() {
            let processors = if is_silent(&head.host) { BTreeSet::new() } else { listed(&head.processors) };
            let mut own = Place { machine: head.host.clone(), processors, sections: vec![section] };
            let is_same = |place: &Place| {
                place.machine == own.machine
                    && (own.processors.is_empty() || !place.processors.is_disjoint(&own.processors))
            };
            let (same, others): (Vec<Place>, Vec<Place>) = places.into_iter().partition(is_same);
            for place in same {
                own.processors.extend(place.processors);
                own.sections.extend(place.sections);
            }
            places = others;
            places.push(own);
        }
        places
    }

    /// The machine's name, and the processors if there are others on it.
    fn name(&self, all: &[Place]) -> String {
        let of_machine = all.iter().filter(|place| place.machine == self.machine).count();
        if of_machine == 1 {
            return self.machine.clone();
        }
        let processors: Vec<String> = self.processors.iter().map(u32::to_string).collect();
        format!("{}, processors {}", self.machine, processors.join(" "))
    }

    /// A program may have a smaller share of its processors than all their time.
    fn cores(&self, recording: &Recording) -> u32 {
        let heads = || self.sections.iter().map(|section| &recording.sections[*section].head);
        let most = heads().map(|head| head.cores).max().unwrap_or(1).max(1);
        let has_all = heads().any(|head| head.cores as usize >= listed(&head.processors).len());
        if has_all { most.max(self.processors.len() as u32) } else { most }
    }

    fn is_shared_in_part(&self, recording: &Recording) -> bool {
        let of = |section: &usize| listed(&recording.sections[*section].head.processors);
        !self.processors.is_empty() && self.sections.iter().any(|section| of(section) != self.processors)
    }
}

/// The most processors that a list may have: it comes from a file.
const PROCESSORS_MAX: u32 = 65_536;

/// Processors as systems list them, `0-3,8`. Empty if it is no such list.
fn listed(text: &str) -> BTreeSet<u32> {
    let number = |text: &str| text.trim().parse::<u32>().ok();
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (number(first)?, number(last)?);
        (last < PROCESSORS_MAX).then_some(first..=last)
    };
    let ranges: Option<Vec<_>> = text.split(',').map(range).collect();
    ranges.into_iter().flatten().flatten().collect()
}
