//! Hosts and the processes on them: names, addresses, programs.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use super::State;

/// A process of the simulation, and the host of that name if it is the first there. Process 0 is the test itself, on a host of
/// its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct HostId(pub(crate) usize);

/// What clocks of the day show when a simulation begins: the first second of 2026, as everywhere.
const FIRST_DATE: Duration = Duration::from_secs(1_767_225_600);

/// No clock is further ahead.
const CENTURY: Duration = Duration::from_secs(100 * 365 * 86_400);

/// How far a clock of the day is off.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ClockError {
    Ahead(Duration),
    Behind(Duration),
}

/// A program: what runs when a host starts.
pub(crate) type Program = Arc<dyn Fn() + Send + Sync>;

pub(crate) struct Host {
    pub(crate) name: String,
    /// The host on which the process runs, by its first process.
    pub(crate) machine: HostId,
    pub(crate) address: Ipv4Addr,
    pub(super) next_port: u16,
    /// Processors, as programs are told.
    pub(crate) cores: u32,
    /// What it takes a processor to go from one thread to another; `None`: as everywhere.
    pub(crate) switch_time: Option<Duration>,
    /// What its clock of the day has shown, or would have, when the simulation began. Of a process only that of its host counts.
    first_date: Duration,
    pub(crate) program: Option<Program>,
    pub(crate) is_up: bool,
    /// None of its threads runs, as after SIGSTOP.
    pub(crate) is_paused: bool,
    /// Its program ran when its host lost its power, and has not started since.
    pub(crate) ran_at_crash: bool,
    /// Counts starts.
    pub(crate) incarnation: u32,
    /// A line of output that has no end yet.
    pub(crate) line: Vec<u8>,
}

impl Host {
    pub(super) fn new(name: &str, number: usize, machine: HostId) -> Host {
        let [high, low] = [(number / 250) as u8, (number % 250) as u8 + 1];
        Host {
            name: name.to_owned(),
            machine,
            address: Ipv4Addr::new(10, 0, high, low),
            next_port: 32_768,
            cores: 4,
            switch_time: None,
            first_date: FIRST_DATE,
            program: None,
            is_up: true,
            is_paused: false,
            ran_at_crash: false,
            incarnation: 0,
            line: Vec::new(),
        }
    }
}

impl State {
    pub(crate) fn add_host(&mut self, name: &str) -> HostId {
        let id = HostId(self.hosts.len());
        self.hosts.push(Host::new(name, id.0, id));
        id
    }

    /// Adds a process to a host.
    pub(crate) fn add_process(&mut self, name: &str, on: HostId) -> HostId {
        let machine = self.machine(on);
        let id = HostId(self.hosts.len());
        let mut process = Host::new(name, machine.0, machine);
        process.address = self.hosts[machine.0].address;
        process.cores = self.hosts[machine.0].cores;
        self.hosts.push(process);
        id
    }

    /// The host of a process.
    pub(crate) fn machine(&self, process: HostId) -> HostId {
        self.hosts[process.0].machine
    }

    /// The number and name of each host.
    pub(crate) fn names_of_hosts(&self) -> Vec<(u32, String)> {
        let hosts = self.hosts.iter().enumerate().filter(|(number, host)| host.machine.0 == *number);
        hosts.map(|(number, host)| (number as u32, host.name.clone())).collect()
    }

    /// What the clock of the day of this host has shown, or would have, when the simulation began.
    pub(crate) fn first_date(&self) -> Duration {
        self.hosts[self.this_machine().0].first_date
    }

    pub(crate) fn set_clock(&mut self, host: HostId, error: ClockError) {
        let machine = self.machine(host);
        self.hosts[machine.0].first_date = match error {
            ClockError::Ahead(by) => FIRST_DATE + by.min(CENTURY),
            ClockError::Behind(by) => FIRST_DATE.saturating_sub(by),
        };
    }

    /// The host of the running thread.
    pub(crate) fn this_machine(&self) -> HostId {
        self.machine(self.here())
    }

    /// The processes of a host.
    pub(crate) fn processes_of(&self, machine: HostId) -> Vec<HostId> {
        (0..self.hosts.len()).map(HostId).filter(|&it| self.machine(it) == machine).collect()
    }

    /// Whether a process has been started and has threads.
    pub(super) fn runs(&self, process: HostId) -> bool {
        let has_threads = || self.threads.iter().any(|thread| thread.host == process && !thread.has_ended());
        self.hosts[process.0].incarnation > 0 && has_threads()
    }

    /// The process of the running thread.
    pub(crate) fn here(&self) -> HostId {
        self.threads[self.running.0].host
    }

    pub(crate) fn host_at(&self, address: Ipv4Addr, from: HostId) -> Option<HostId> {
        if address.is_loopback() || address.is_unspecified() {
            return Some(from);
        }
        self.hosts.iter().position(|host| host.address == address).map(HostId)
    }

    /// The address of a name, as a host asks for it.
    pub(crate) fn look_up(&self, name: &str) -> Option<Ipv4Addr> {
        if let Ok(address) = name.parse() {
            return Some(address);
        }
        if name == "localhost" {
            return Some(Ipv4Addr::LOCALHOST);
        }
        self.hosts.iter().find(|host| host.name == name).map(|host| host.address)
    }
}
