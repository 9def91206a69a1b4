//! omniORB's client against IronORB's server.

use ironorb_interop::omniorb::run_client;
use ironorb_interop::process::{Process, programs};

/// Why cases are left out. README.md has the same table.
mod reason {
    pub(crate) const CONTEXT: &str = "IronORB's mapping hands the values of a context to no servant";
    pub(crate) const FRAGMENTS_1_1: &str =
        "IronORB reads the fragments of GIOP 1.1 with the alignment of GIOP 1.2";
}

/// Cases that the omniORB client leaves out by itself when the reference offers no code sets, or the version
/// has no wide characters.
const WIDE: [&str; 10] = [
    "echo_wchar",
    "echo_wstring",
    "echo_short_wstring",
    "echo_wchars",
    "echo_wstrings",
    "echo_wchar_array",
    "echo_wide_struct",
    "echo_wide_union",
    "raise_wide",
    "wide_constants",
];
const UTF8: &[&str] = &["echo_string/utf8"];
/// omniORB 4.2 breaks a string across GIOP 1.1 fragments wrongly.
const LONG_STRINGS: &[&str] = &["echo_string/long", "big/one_string"];

/// All of the contract without what a version or reference cannot carry.
const CASES: usize = 164;

fn start(arguments: &[&str]) -> (Process, String, String) {
    let server = Process::start(programs().join("interop-server"), arguments);
    let ior = server.line();
    let address = address(&ior);
    (server, ior, address)
}

/// `host:port` of a reference.
fn address(ior: &str) -> String {
    let ior: ironorb::giop::ior::Ior = ior.parse().expect("the first line is a reference");
    let profile = ior.iiop_profiles().next().expect("it has a profile");
    profile.addresses().next().expect("it has an address").to_string()
}

/// Runs the client: all cases must pass but those that `ours` names with a reason, and those of `theirs`,
/// which it leaves out by itself and nothing else.
#[track_caller]
fn check(version: &str, reference: &str, ours: &[(&str, &str)], theirs: &[&[&str]]) {
    let skips: Vec<String> = ours.iter().map(|(case, reason)| format!("{case}={reason}")).collect();
    let mut arguments = vec!["-ORBmaxGIOPVersion", version];
    for skip in &skips {
        arguments.extend(["--skip", skip]);
    }
    arguments.push(reference);
    let report = run_client(&arguments);
    assert!(report.failed.is_empty() && report.is_complete, "{}", report.text);
    let mut expected: Vec<&str> = theirs.iter().flat_map(|group| group.iter().copied()).collect();
    expected.extend(ours.iter().map(|(case, _)| *case));
    expected.sort_unstable();
    let mut skipped: Vec<&str> = report.skipped.iter().map(|(case, _)| case.as_str()).collect();
    skipped.sort_unstable();
    assert_eq!(skipped, expected, "{}", report.text);
    assert_eq!(report.passed.len() + skipped.len(), CASES, "{}", report.text);
}

/// Every version by an IOR and by a corbaloc.
#[track_caller]
fn check_all_forms(server: &[&str]) {
    let mut arguments = vec!["--key", "suite", "-ORBendPoint", "giop:tcp:127.0.0.1:0"];
    arguments.extend(server);
    let (server, ior, address) = start(&arguments);
    let url = |version: &str| format!("corbaloc:iiop:{version}@{address}/suite");
    let context = ("context", reason::CONTEXT);
    let fragments = [context, ("echo_bins", reason::FRAGMENTS_1_1), ("big/bins", reason::FRAGMENTS_1_1)];
    check("1.2", &ior, &[context], &[]);
    check("1.2", &url("1.2"), &[context], &[UTF8, &WIDE]);
    check("1.1", &ior, &fragments, &[LONG_STRINGS, &WIDE]);
    check("1.1", &url("1.1"), &fragments, &[LONG_STRINGS, UTF8, &WIDE]);
    check("1.0", &ior, &[context], &[UTF8, &WIDE]);
    check("1.0", &url("1.0"), &[context], &[UTF8, &WIDE]);
    let finished = server.terminate();
    assert!(finished.status.success() && finished.errors.is_empty(), "{finished:?}");
}

#[test]
fn all_cases_pass_with_a_thread_per_connection() {
    check_all_forms(&["--concurrency", "connection"]);
}

#[test]
fn all_cases_pass_with_leader_and_followers() {
    check_all_forms(&["--concurrency", "leader-followers"]);
}

#[test]
fn replies_in_fragments_are_understood() {
    let (_server, ior, _) = start(&["--fragment", "1000"]);
    check("1.2", &ior, &[("context", reason::CONTEXT)], &[]);
}

#[test]
fn a_reference_outlives_its_server() {
    let (server, ior, address) = start(&["--poa", "persistent"]);
    let alive = ["--only", "nothing", "--only", "echo_long", "--only", "references", &ior];
    assert!(run_client(&alive).is_complete);
    server.kill();
    let dead = run_client(&alive);
    assert!(!dead.is_complete && dead.text.contains("TRANSIENT"), "{}", dead.text);

    let endpoint = format!("giop:tcp:{address}");
    let (server, again, _) = start(&["--poa", "persistent", "-ORBendPoint", &endpoint]);
    assert_eq!(again, ior);
    let report = run_client(&alive);
    assert!(report.is_complete, "{}", report.text);
    server.kill();

    // A reference to a transient object does not: whoever is there now knows nothing of it.
    let (server, transient, address) = start(&[]);
    server.kill();
    let endpoint = format!("giop:tcp:{address}");
    let (_server, ..) = start(&["-ORBendPoint", &endpoint]);
    let report = run_client(&["--only", "nothing", &transient]);
    assert!(report.text.contains("OBJECT_NOT_EXIST"), "{}", report.text);
}

#[test]
fn the_address_published_is_not_the_one_listened_at() {
    let (_server, ior, published) =
        start(&["-ORBendPoint", "giop:tcp:127.0.0.1:0", "-ORBendPointPublish", "giop:tcp:localhost:"]);
    assert!(published.starts_with("localhost:"), "{published}");
    let report = run_client(&["--only", "nothing", "--only", "echo_long", &ior]);
    assert!(report.is_complete, "{}", report.text);
}

#[test]
fn shutdown_is_answered_and_ends_the_server() {
    let (server, ior, _) = start(&[]);
    let report = run_client(&["--only", "nothing", "--only", "shutdown", "--shutdown", &ior]);
    assert!(report.is_complete && report.passed.len() == 2, "{}", report.text);
    let finished = server.finish();
    assert!(finished.status.success() && finished.errors.is_empty(), "{finished:?}");
}
