//! omniORB's side: its peers, built once for all tests, and its tools.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use ironorb::Orb;
use tempfile::TempDir;

use crate::process::{Finished, Process, free_port, programs, wait_until};

/// What makes omniORB's side work on a Debian machine.
const INSTALL: &str = "apt-get install -y g++ make omniidl libomniorb4-dev omniorb omniorb-nameserver";

/// What each of those packages brings.
const NEEDED: [&str; 6] = [
    "/usr/bin/g++",
    "/usr/bin/make",
    "/usr/bin/omniidl",
    "/usr/include/omniORB4/CORBA.h",
    "/usr/bin/nameclt",
    "/usr/bin/omniNames",
];

/// The programs of `peers/omniorb`.
#[derive(Debug)]
pub struct Peers {
    /// Serves the contract.
    pub server: PathBuf,
    /// Checks a server of the contract.
    pub client: PathBuf,
}

/// The peers; builds them the first time.
///
/// # Panics
/// If omniORB is not installed, with the command that installs it, or if the peers cannot be built.
pub fn peers() -> &'static Peers {
    static PEERS: OnceLock<Peers> = OnceLock::new();
    PEERS.get_or_init(|| {
        assert_installed();
        let build = programs().join("omniorb-peers");
        std::fs::create_dir_all(&build).expect("the target folder can be written");
        // Tests are several processes, each of which may be the first.
        let lock = File::create(build.join("lock")).expect("the target folder can be written");
        lock.lock().expect("a file can be locked");
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers/omniorb");
        let mut make = Command::new("make");
        make.arg("-j2").arg("-C").arg(&sources).arg(format!("BUILD={}", build.display()));
        let made = make.output().expect("make has been found");
        assert!(
            made.status.success(),
            "{make:?} failed:\n{}{}",
            String::from_utf8_lossy(&made.stdout),
            String::from_utf8_lossy(&made.stderr)
        );
        Peers { server: build.join("server"), client: build.join("client") }
    })
}

/// Fails, and says how to mend it, where omniORB is missing: a test that is left out would pass for nothing.
///
/// # Panics
/// If something is missing.
pub fn assert_installed() {
    let missing: Vec<&str> = NEEDED.into_iter().filter(|path| !Path::new(path).exists()).collect();
    assert!(
        missing.is_empty(),
        "the tests against omniORB need it installed, and {} is missing. Run:\n\n    sudo {INSTALL}\n",
        missing.join(", ")
    );
}

/// A running omniORB server of the contract and its reference.
///
/// # Panics
/// If it does not start.
pub fn start_server(arguments: &[&str]) -> (Process, String) {
    let server = Process::start(&peers().server, arguments);
    let ior = server.line();
    (server, ior)
}

/// What a run of the omniORB client found.
#[derive(Debug)]
pub struct ClientReport {
    /// Cases that passed.
    pub passed: Vec<String>,
    /// Cases that failed, each with what went wrong.
    pub failed: Vec<String>,
    /// Cases that were left out, each with the reason.
    pub skipped: Vec<(String, String)>,
    /// Exit code 0, and a summary that agrees.
    pub is_complete: bool,
    /// Everything it said.
    pub text: String,
}

/// Runs the omniORB client to its end.
pub fn run_client(arguments: &[&str]) -> ClientReport {
    let finished = Process::start(&peers().client, arguments).finish();
    let mut report = ClientReport {
        passed: Vec::new(),
        failed: Vec::new(),
        skipped: Vec::new(),
        is_complete: false,
        text: format!("{}\n{}", finished.lines.join("\n"), finished.errors),
    };
    let mut summary = "";
    for line in &finished.lines {
        match line.split_once(' ') {
            Some(("PASS", case)) => report.passed.push(case.to_owned()),
            Some(("FAIL", what)) => report.failed.push(what.to_owned()),
            Some(("SKIP", what)) => {
                let (case, reason) = what.split_once(": ").unwrap_or((what, ""));
                report.skipped.push((case.to_owned(), reason.to_owned()));
            }
            _ => summary = line,
        }
    }
    let expected = format!("{} passed, {} failed", report.passed.len(), report.failed.len());
    report.is_complete = finished.status.success() && summary == expected;
    report
}

/// A running omniNames, with an empty tree of names.
#[derive(Debug)]
pub struct OmniNames {
    /// `corbaloc:` of the root context.
    pub url: String,
    /// `host:port`.
    pub address: String,
    _process: Process,
    _data: TempDir,
}

impl OmniNames {
    /// Starts one and waits until it answers.
    ///
    /// # Panics
    /// If it does not.
    pub fn start(orb: &Orb) -> OmniNames {
        assert_installed();
        let data = TempDir::new().expect("the machine has a folder for temporary files");
        let folder = data.path().to_str().expect("its name is text").to_owned();
        let port = free_port().to_string();
        let mut process = Process::start("omniNames", &["-start", &port, "-datadir", &folder]);
        let address = format!("127.0.0.1:{port}");
        let url = format!("corbaloc:iiop:1.2@{address}/NameService");
        let root = orb.string_to_object(&url).expect("the text is a corbaloc");
        // It says nothing of its own when it is ready.
        wait_until("omniNames does not answer", || {
            assert!(process.is_running(), "omniNames ended early. {}", process.errors());
            root.non_existent() == Ok(false)
        });
        OmniNames { url, address, _process: process, _data: data }
    }
}

/// Runs omniORB's `nameclt` on a naming service.
///
/// # Panics
/// If it cannot be started.
pub fn nameclt(service: &str, arguments: &[&str]) -> Finished {
    assert_installed();
    let initial = format!("NameService={service}");
    let mut all = vec!["-ORBInitRef", &initial, "-advanced"];
    all.extend(arguments);
    Process::start("nameclt", &all).finish()
}
