//! TAO's programs of the tests of real time, built against the tree that [`TREE`] names. TAO is no package of the
//! system, so that these tests are outside of the gate; see `interop/README.md`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::peer_cache::{Recipe, keep_only};
use crate::process::Process;

/// The variable that names a built tree of ACE and TAO: the folder `ACE_wrappers`.
pub const TREE: &str = "TAO_TREE";

/// The option that makes an ORB of TAO a real-time ORB, with a class of the system for its threads and a mapping. Threads that
/// it makes on demand end when they have been idle for 100 ms.
fn real_time(class: &str, mapping: &str) -> [String; 2] {
    let settings = format!(
        "-ORBSchedPolicy {class} -ORBScopePolicy SYSTEM -ORBPriorityMapping {mapping} \
         -RTORBDynamicThreadIdleTimeout 100000"
    );
    ["-ORBSvcConfDirective".to_owned(), format!("static RT_ORB_Loader \"{settings}\"")]
}

/// The options by which a server listens at any port of this machine, in all pools and lanes.
pub const ANY_PORT: [&str; 5] =
    ["-ORBListenEndpoints", "iiop://127.0.0.1:0", "-ORBLaneListenEndpoints", "*:*", "iiop://127.0.0.1:0"];

/// A server of TAO, and what it has printed for each adapter: a reference or the id of an exception.
#[derive(Debug)]
pub struct Server {
    /// The running program.
    pub process: Process,
    served: BTreeMap<String, String>,
}

/// The options by which an ORB of TAO knows Unix sockets beside TCP (UIOP).
pub const UNIX_SOCKETS: [&str; 2] = [
    "-ORBSvcConfDirective",
    "dynamic UIOP_Factory Service_Object * TAO_Strategies:_make_TAO_UIOP_Protocol_Factory() \"\"",
];

/// As [`ANY_PORT`], and at a Unix socket as well.
pub const ANY_PORT_AND_SOCKET: [&str; 5] = [
    "-ORBListenEndpoints",
    "iiop://127.0.0.1:0;uiop://",
    "-ORBLaneListenEndpoints",
    "*:*",
    "iiop://127.0.0.1:0;uiop://",
];

/// The number by which TAO's policies name Unix sockets, as its client's commands take it.
pub const UIOP: &str = "0x54414f00";

impl Server {
    /// Starts TAO's server; `peers/tao/server.cc` describes the arguments.
    ///
    /// # Panics
    ///
    /// If it does not start.
    pub fn start(arguments: &[&str]) -> Server {
        let process = start("server", "SCHED_FIFO", "linear", arguments);
        let mut served = BTreeMap::new();
        loop {
            let line = process.line();
            match line.split_once(' ') {
                Some((name, what)) => served.insert(name.to_owned(), what.to_owned()),
                None => break,
            };
        }
        Server { process, served }
    }

    /// What it has printed for an adapter.
    ///
    /// # Panics
    ///
    /// If it was not asked for this adapter.
    pub fn printed(&self, adapter: &str) -> &str {
        self.served.get(adapter).unwrap_or_else(|| panic!("{adapter} is not among {:?}", self.served))
    }
}

/// Starts TAO's client with SCHED_FIFO and a linear mapping; `peers/tao/client.cc` describes the commands.
///
/// # Panics
///
/// If it does not start.
pub fn start_client(commands: &[&str]) -> Process {
    start("client", "SCHED_FIFO", "linear", commands)
}

/// Runs TAO's client to its end, and gives the lines that it prints.
///
/// # Panics
///
/// If it fails.
#[track_caller]
pub fn client(commands: &[&str]) -> Vec<String> {
    lines_of(start_client(commands))
}

/// As [`client`], in a class of the system, such as `SCHED_RR`, and with a mapping, such as `continuous`.
///
/// # Panics
///
/// If it fails.
#[track_caller]
pub fn client_in(class: &str, mapping: &str, commands: &[&str]) -> Vec<String> {
    lines_of(start("client", class, mapping, commands))
}

fn start(program: &str, class: &str, mapping: &str, arguments: &[&str]) -> Process {
    let real_time = real_time(class, mapping);
    let real_time: Vec<&str> = real_time.iter().map(String::as_str).collect();
    Process::start(built().join(program), &[&real_time, arguments].concat())
}

/// Runs TAO's client without real time to its end, and gives the line that it prints.
///
/// # Panics
///
/// If it fails.
#[track_caller]
pub fn plain_client(reference: &str) -> Vec<String> {
    lines_of(Process::start(built().join("plain"), &[reference]))
}

/// The lines of a program that succeeds.
///
/// # Panics
///
/// If it fails.
#[track_caller]
pub fn lines_of(program: Process) -> Vec<String> {
    let finished = program.finish();
    assert!(finished.status.success() && finished.errors.is_empty(), "{finished:?}");
    finished.lines
}

/// The folder with TAO's programs. The first call builds them.
fn built() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(build)
}

fn build() -> PathBuf {
    let tree = tree();
    let library = tree.join("lib/libTAO_RTPortableServer.so");
    let library = library.to_str().expect("the tree's path is text");
    let this = Path::new(env!("CARGO_MANIFEST_DIR"));
    let peers = this.join("peers/tao");
    // The programs know where the libraries are, and fit those of one build alone.
    let tools: &[&[&str]] = &[&["ls", "-lL", "--full-time", library], &["g++", "--version"]];
    let how = this.join("../guard/peers/tao");
    let sources = [this.join("idl/real_time"), peers.clone(), how.join("tree.mk"), how.join("anys.hh")];
    let recipe = Recipe { name: "tao", sources: &sources, tools };
    let kept = ["server", "client", "plain"];
    recipe.folder(
        |folder| kept.iter().all(|name| folder.join(name).exists()),
        |folder| {
            let mut make = Command::new("make");
            make.args(["-j2", "-C"]).arg(&peers).arg(format!("BUILD={}", folder.display()));
            let made = make.env(TREE, &tree).output().expect("make is installed");
            let said = [made.stdout, made.stderr].concat();
            assert!(made.status.success(), "{make:?} failed:\n{}", String::from_utf8_lossy(&said));
            keep_only(folder, &kept);
        },
    )
}

/// The tree of TAO. A test that is silently left out would count as passed, so there is no other way.
fn tree() -> PathBuf {
    let tree = std::env::var_os(TREE).filter(|tree| !tree.is_empty()).map(PathBuf::from);
    let tree = tree.unwrap_or_else(|| {
        panic!("set {TREE} to a built tree of ACE and TAO with TAO_RTCORBA; interop/README.md says more")
    });
    let programs = ["bin/tao_idl", "bin/ace_gperf"].map(str::to_owned);
    let libraries =
        ["RTPortableServer", "Messaging", "Strategies"].map(|name| format!("lib/libTAO_{name}.so"));
    for part in programs.iter().chain(&libraries) {
        let path = tree.join(part);
        assert!(path.exists(), "{TREE} names no built tree with TAO_RTCORBA: {} is missing", path.display());
    }
    tree
}
