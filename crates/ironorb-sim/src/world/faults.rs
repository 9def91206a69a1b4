//! What a script or a seed does to hosts and links.

use crate::calls::disk;

use super::{HostId, State};

impl State {
    /// A process is killed: none of its code runs any more, and the kernel closes what it had open.
    pub(crate) fn kill(&mut self, host: HostId) {
        self.note(9, self.now().as_ns(), host.0 as u64);
        self.does_not_start(host);
        self.hosts[host.0].is_paused = false;
        self.end_threads_of(host);
        self.close_files_of(host);
        disk::forget(self, &[host], None);
    }

    /// A host loses its power: nothing is closed, and other hosts hear nothing until it is up again.
    pub(crate) fn crash(&mut self, host: HostId) {
        self.note(10, self.now().as_ns(), host.0 as u64);
        let machine = self.machine(host);
        self.hosts[machine.0].is_up = false;
        self.forget_sides_of(machine);
        (0..self.hosts.len()).for_each(|other| self.lose_touch(machine, HostId(other)));
        let processes = self.processes_of(machine);
        for &process in &processes {
            self.hosts[process.0].ran_at_crash |= self.does_not_start(process) | self.runs(process);
            self.hosts[process.0].is_paused = false;
            self.end_threads_of(process);
            self.close_files_of(process);
        }
        disk::forget(self, &processes, Some(machine));
    }

    /// A host that had lost its power is up again. What others sent it meanwhile comes, and is answered with resets.
    pub(crate) fn power_up(&mut self, host: HostId) {
        let host = self.machine(host);
        self.hosts[host.0].is_up = true;
        for other in 0..self.hosts.len() {
            self.release(HostId(other), host);
        }
    }

    /// None of a process's threads runs from now on, or all do again. Its connections stay.
    pub(crate) fn pause(&mut self, host: HostId, is_paused: bool) {
        self.note(13 + u64::from(is_paused), self.now().as_ns(), host.0 as u64);
        self.hosts[host.0].is_paused = is_paused;
    }

    /// Has the test's thread start the program of a host.
    pub(crate) fn start_soon(&mut self, host: HostId) {
        self.hosts[host.0].ran_at_crash = false;
        self.starting.push_back(host);
        self.tell_test();
    }

    /// A process that the test's thread was to start is gone before. True if there is one.
    fn does_not_start(&mut self, host: HostId) -> bool {
        let before = self.starting.len();
        self.starting.retain(|&it| it != host);
        self.starting.len() < before
    }

    /// Has the test's thread start the programs that ran on a host when it lost its power, but for those that have started since.
    pub(crate) fn start_those_that_ran(&mut self, host: HostId) {
        for process in self.processes_of(self.machine(host)) {
            if self.hosts[process.0].ran_at_crash {
                self.start_soon(process);
            }
        }
    }

    /// Nothing passes between two hosts from now on, or all does again.
    pub(crate) fn cut(&mut self, a: HostId, b: HostId, is_cut: bool) {
        self.note(11 + u64::from(is_cut), a.0 as u64, b.0 as u64);
        let (a, b) = (self.machine(a), self.machine(b));
        self.network.set_cut(a, b, is_cut);
        match is_cut {
            true => self.lose_touch(a, b),
            false => self.release(a, b),
        }
    }
}
