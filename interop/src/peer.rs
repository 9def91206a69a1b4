//! The ORBs that IronORB is tested against: their peers, built once for all tests, and their programs.
//! Knows no case.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::peer_cache::{Recipe, keep_only};
use crate::process::Process;

/// An ORB that IronORB is tested against.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Peer {
    /// omniORB 4.2, in C++.
    OmniOrb,
    /// JacORB 3.9, in Java.
    JacOrb,
}

impl Peer {
    /// All ORBs that have peers.
    pub const ALL: [Peer; 2] = [Peer::OmniOrb, Peer::JacOrb];

    /// The ORB's name in its own spelling.
    pub fn name(self) -> &'static str {
        match self {
            Peer::OmniOrb => "omniORB",
            Peer::JacOrb => "JacORB",
        }
    }

    /// Starts the peer's server of the contract. Returns it and its reference.
    ///
    /// # Panics
    ///
    /// If it does not start.
    pub fn start_server(self, arguments: &[&str]) -> (Process, String) {
        let server = self.start(Program::Server, arguments);
        let ior = server.line();
        (server, ior)
    }

    /// Runs the peer's client to its end.
    pub fn run_client(self, arguments: &[&str]) -> ClientReport {
        ClientReport::of(self.start(Program::Client, arguments))
    }

    /// Has the peer's client of an object with cached attributes carry out commands. Returns what it prints, a line for each.
    ///
    /// # Panics
    ///
    /// If a command fails.
    pub fn run_cached(self, ior: &str, commands: &[&str]) -> Vec<String> {
        let finished = self.start(Program::Cached, &[&[ior], commands].concat()).finish();
        assert!(finished.status.success(), "{} {commands:?}: {}", self.name(), finished.errors);
        finished.lines
    }

    fn start(self, program: Program, arguments: &[&str]) -> Process {
        let (name, class) = match program {
            Program::Server => ("server", "peer.Server"),
            Program::Client => ("client", "peer.Client"),
            Program::Cached => ("cached", "peer.CachedClient"),
        };
        match self {
            Peer::OmniOrb => Process::start(self.built().join(name), arguments),
            Peer::JacOrb => java(class, arguments),
        }
    }

    /// The folder of the peers. The first call builds them.
    fn built(self) -> &'static Path {
        static BUILT: [OnceLock<PathBuf>; 2] = [OnceLock::new(), OnceLock::new()];
        BUILT[self as usize].get_or_init(|| self.build())
    }

    /// Builds its peers where that has not been done, and gives their folder, which lies outside of the tree.
    ///
    /// # Panics
    ///
    /// If the ORB is not installed, with the command that installs it, or if the peers cannot be built.
    pub fn build(self) -> PathBuf {
        self.assert_installed();
        let this = Path::new(env!("CARGO_MANIFEST_DIR"));
        let (name, tools, kept): (&str, &[&[&str]], &[&str]) = match self {
            Peer::OmniOrb => {
                let tools: &[&[&str]] = &[&["omniidl", "-V"], &["g++", "--version"]];
                ("omniorb", tools, &["server", "client", "repository", "cached"])
            }
            Peer::JacOrb => ("jacorb", &[&["javac", "-version"]], &["classpath", "classes"]),
        };
        let peers = this.join("peers").join(name);
        let recipe = Recipe { name, sources: &[this.join("idl"), peers.clone()], tools };
        let is_whole = |folder: &Path| {
            kept.iter().all(|name| folder.join(name).exists())
                && (self != Peer::JacOrb || has_its_class_path(folder))
        };
        recipe.folder(is_whole, |folder| {
            let mut make = Command::new("make");
            make.arg("-j2").arg("-C").arg(&peers).arg(format!("BUILD={}", folder.display()));
            let made = make.output().expect("make has been found");
            assert!(
                made.status.success(),
                "{make:?} failed:\n{}{}",
                String::from_utf8_lossy(&made.stdout),
                String::from_utf8_lossy(&made.stderr)
            );
            keep_only(folder, kept);
        })
    }

    /// Fails with the command that installs the ORB, if it is missing. A test that is silently left out
    /// would count as passed.
    ///
    /// # Panics
    ///
    /// If a program or package is missing.
    pub fn assert_installed(self) {
        let (packages, needed): (&str, &[&str]) = match self {
            Peer::OmniOrb => (
                "g++ make omniidl libomniorb4-dev omniorb omniorb-nameserver",
                &[
                    "/usr/bin/g++",
                    "/usr/bin/make",
                    "/usr/bin/omniidl",
                    "/usr/include/omniORB4/CORBA.h",
                    "/usr/bin/nameclt",
                    "/usr/bin/omniNames",
                ],
            ),
            // JacORB itself comes from Maven's repository when the peers are built.
            Peer::JacOrb => {
                ("make maven default-jdk-headless", &["/usr/bin/make", "/usr/bin/mvn", "/usr/bin/javac"])
            }
        };
        let missing: Vec<&str> = needed.iter().copied().filter(|path| !Path::new(path).exists()).collect();
        assert!(
            missing.is_empty(),
            "the tests against {} need it installed, and {} is missing. Run:\n\n    sudo apt-get install -y {packages}\n",
            self.name(),
            missing.join(", ")
        );
    }
}

/// Whether all that the class path names is there: Maven's repository may have been emptied.
fn has_its_class_path(folder: &Path) -> bool {
    let path = std::fs::read_to_string(folder.join("classpath")).unwrap_or_default();
    path.trim().split(':').all(|jar| Path::new(jar).exists())
}

/// Starts a Java program with JacORB and the peers in its class path.
///
/// # Panics
/// If it cannot be started.
pub fn java(class: &str, arguments: &[&str]) -> Process {
    let build = Peer::JacOrb.built();
    let jars = std::fs::read_to_string(build.join("classpath")).expect("the peers are built");
    let path = format!("{}:{}", build.join("classes").display(), jars.trim());
    // A peer's time is mostly the start of the virtual machine.
    let mut all = vec!["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-Xmx1g", "-cp", &path];
    // System properties come before the class.
    let (properties, arguments): (Vec<&str>, Vec<&str>) =
        arguments.iter().partition(|argument| argument.starts_with("-D"));
    all.extend(properties);
    all.push(class);
    all.extend(arguments);
    Process::start("java", &all)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Program {
    Server,
    Client,
    Cached,
}

/// The results of a client.
#[derive(Debug)]
pub struct ClientReport {
    /// Cases that passed.
    pub passed: Vec<String>,
    /// Cases that failed, each with what went wrong.
    pub failed: Vec<(String, String)>,
    /// Cases that were left out, each with the reason.
    pub skipped: Vec<(String, String)>,
    /// True for exit code 0 and a summary that agrees with the cases.
    pub is_complete: bool,
    /// All of its output.
    pub text: String,
}

impl ClientReport {
    fn of(client: Process) -> ClientReport {
        let finished = client.finish();
        let mut report = ClientReport {
            passed: Vec::new(),
            failed: Vec::new(),
            skipped: Vec::new(),
            is_complete: false,
            text: format!("{}\n{}", finished.lines.join("\n"), finished.errors),
        };
        let mut summary = "";
        for line in &finished.lines {
            let named = |what: &str| {
                let (case, why) = what.split_once(": ").unwrap_or((what, ""));
                (case.to_owned(), why.to_owned())
            };
            match line.split_once(' ') {
                Some(("PASS", case)) => report.passed.push(case.to_owned()),
                Some(("FAIL", what)) => report.failed.push(named(what)),
                Some(("SKIP", what)) => report.skipped.push(named(what)),
                _ => summary = line,
            }
        }
        let expected = format!("{} passed, {} failed", report.passed.len(), report.failed.len());
        report.is_complete = finished.status.success() && summary == expected;
        report
    }
}
