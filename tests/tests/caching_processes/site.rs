//! The processes of a test, and what it waits for.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use ironorb::Orb;
use ironorb::status::{STATUS_KEY, Status as _, StatusRef};
use ironorb_tests::eventually;
use ironorb_tests::relay::Relay;
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use tempfile::TempDir;

use crate::logs::{self, Moment, Outcome, Read};
pub(crate) use crate::part::LAG;
use crate::part::{ADDRESS, FOLDER, FORK, NAME, PART, PUBLISHED, REFERENCE, TIMEOUT_MS, WRITES};

/// A server's address, a relay to it, and what the processes have noted.
pub(crate) struct Site {
    folder: TempDir,
    address: SocketAddr,
    pub(crate) relay: Relay,
}

impl Site {
    /// The number tells the tests of this process apart: each has a loopback address of its own, so that a server finds its
    /// port free when it comes again.
    pub(crate) fn new(number: u8) -> Site {
        let [.., high, low] = std::process::id().to_be_bytes();
        let address = SocketAddr::from((Ipv4Addr::new(127, 100 + number, high, low.clamp(1, 254)), 2809));
        Site { folder: tempfile::tempdir().unwrap(), address, relay: Relay::to_address(address) }
    }

    /// Starts the server, and waits until it serves.
    pub(crate) fn server(&self) -> Part {
        let reference = self.folder.path().join(REFERENCE);
        let _first = std::fs::remove_file(&reference);
        let published = format!("127.0.0.1:{}", self.relay.port());
        let server = self.start("server", &[(ADDRESS, &self.address.to_string()), (PUBLISHED, &published)]);
        eventually("the server serves", || reference.exists());
        server
    }

    /// Starts a client whose calls give up soon.
    pub(crate) fn client(&self, name: &str) -> Part {
        self.start("client", &[(NAME, name), (TIMEOUT_MS, "100")])
    }

    /// Starts a client whose calls never give up.
    pub(crate) fn patient_client(&self, name: &str) -> Part {
        self.start("client", &[(NAME, name), (TIMEOUT_MS, "0")])
    }

    fn start(&self, part: &str, variables: &[(&str, &str)]) -> Part {
        let name = variables.iter().find(|(name, _)| *name == NAME).map_or(WRITES, |(_, name)| name);
        Part::start(part, &self.folder.path().join(name), variables)
    }

    /// Waits until the server has written after this moment.
    pub(crate) fn writes_past(&self, moment: Moment) {
        let path = self.folder.path().join(WRITES);
        eventually("the server writes", || {
            logs::writes(&path).last().is_some_and(|write| write.begun > moment.0)
        });
    }

    /// How many changes the server keeps for clients that have not taken them, as its status tells.
    pub(crate) fn untold(&self) -> u64 {
        let client = Orb::builder().no_endpoint().build().unwrap();
        let url = format!("corbaloc::1.2@{}/{STATUS_KEY}", self.address);
        let status: StatusRef = client.string_to_object(&url).unwrap().narrow_unchecked();
        status.take_snapshot().unwrap().total("cache_untold")
    }

    /// Holds all that was read against what was written.
    pub(crate) fn check(&self) {
        let writes = logs::writes(&self.folder.path().join(WRITES));
        let logs = std::fs::read_dir(&self.folder).unwrap().map(|entry| entry.unwrap().path());
        for log in logs.filter(|path| !path.ends_with(WRITES) && !path.ends_with(REFERENCE)) {
            let reads = logs::reads(&log);
            assert!(!reads.is_empty(), "{} has nothing", log.display());
            let found = logs::violations(&writes, &reads, LAG);
            assert!(found.is_empty(), "{} of {} reads: {found:#?}", found.len(), reads.len());
        }
    }
}

/// A process of a test, which ends with it.
pub(crate) struct Part {
    /// A child of a client ends with that.
    child: Option<Child>,
    log: PathBuf,
}

impl Part {
    /// Starts a process that plays this part, with its files in the folder of its log.
    pub(crate) fn start(part: &str, log: &Path, variables: &[(&str, &str)]) -> Part {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "part", "--nocapture"]).envs(variables.iter().copied());
        command.env(PART, part).env(FOLDER, log.parent().unwrap());
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
        Part { child: Some(child), log: log.to_owned() }
    }

    /// Stops the process. When this returns, none of its threads runs.
    pub(crate) fn stop(&self) {
        let pid = self.signal(Signal::STOP);
        let stopped = waitpid(Some(pid), WaitOptions::UNTRACED).unwrap();
        assert!(stopped.is_some_and(|(_, status)| status.stopped()), "{stopped:?}");
    }

    pub(crate) fn go_on(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) -> Pid {
        let pid = Pid::from_child(self.child.as_ref().unwrap());
        kill_process(pid, signal).unwrap();
        pid
    }

    /// Ends the process by SIGKILL, and waits for its end.
    pub(crate) fn kill(mut self) {
        self.end();
    }

    fn end(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Has the client fork, once for each name. The children go on reading, and end with the client.
    pub(crate) fn forks(&self, names: &[&str]) -> Vec<Part> {
        let folder = self.log.parent().unwrap();
        let own = self.log.file_name().unwrap().to_str().unwrap();
        let fork = |name: &&str| {
            let (told, log) = (folder.join(format!("{FORK}{own}")), folder.join(name));
            let written = folder.join("fork-written");
            std::fs::write(&written, name).unwrap();
            std::fs::rename(written, told).unwrap();
            eventually("the child reads", || log.exists());
            Part { child: None, log }
        };
        names.iter().map(fork).collect()
    }

    /// Waits for so many further reads from the client's cache.
    pub(crate) fn reads_from_its_cache(&self, count: usize) {
        let begun = logs::now();
        let is_new = |read: &&Read| read.is_held() && read.from > begun.0;
        eventually("the client reads from its cache", || {
            logs::reads(&self.log).iter().filter(is_new).count() >= count
        });
    }

    /// Waits until reads of the client have failed that began later than this, those that ask no server among them.
    pub(crate) fn fails_after(&self, moment: Moment) {
        for outcome in [Outcome::Failed, Outcome::NotHeld] {
            let is_so = |read: &Read| read.outcome == outcome && read.from > moment.0;
            eventually("reads fail", || logs::reads(&self.log).iter().any(is_so));
        }
    }

    /// Checks that the client has read nothing from its cache meanwhile.
    pub(crate) fn holds_nothing_between(&self, from: Moment, to: Moment) {
        let is_among = |read: &&Read| read.from > from.0 && read.to < to.0;
        let reads = logs::reads(&self.log);
        let held: Vec<_> = reads.iter().filter(is_among).filter(|read| read.is_held()).collect();
        assert!(held.is_empty(), "{held:#?}");
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        self.end();
    }
}
