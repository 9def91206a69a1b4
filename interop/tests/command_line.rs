//! The command line with other ORBs: `ironorb call` with their servers, their clients with `ironorb
//! serve-mock`.

use std::path::Path;
use std::process::Command;

use ironorb::giop::Version;
use ironorb_interop::peer::{Peer, java};
use ironorb_interop::process::{Process, ironorb_command, wait_until};
use ironorb_interop::results::{Side, case};
use ironorb_interop::skips::{Circumstances, skips};
use serde_json::{Map, Value, json};

const IDL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/idl/all.idl");
const SHOP: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/idl/repository/shop.idl");

const IR: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../idl/ir.idl");

/// The standard output of `ironorb call`, or its standard error if it fails.
fn call(arguments: &[&str]) -> Result<String, String> {
    let done = Command::new(ironorb_command()).arg("call").arg("--compact").args(arguments).output();
    let done = done.expect("ironorb can be started");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if done.status.success() { Ok(text(&done.stdout)) } else { Err(text(&done.stderr)) }
}

#[track_caller]
fn called(arguments: &[&str]) -> Value {
    let said = call(arguments).unwrap_or_else(|e| panic!("{arguments:?}: {e}"));
    serde_json::from_str(&said).unwrap_or_else(|e| panic!("{arguments:?}: {e}: {said}"))
}

/// Calls operations of every kind on a server of the contract. `sources` are the options for the source of
/// types.
fn calls(ior: &str, sources: &[&str], contexts: bool) {
    let with = |reference: &str, rest: &[&str]| called(&[&[reference], rest, sources].concat());
    let echoed = |operation: &str, x: Value, y: Value| {
        let result = with(ior, &[operation, &x.to_string(), &y.to_string()]);
        assert_eq!(result, json!({"result": x, "out": {"y": x, "z": y}}), "{operation}");
    };
    echoed("echo_llong", json!(-5), json!(i64::from(i32::MAX) + 1));
    echoed("echo_string", json!("one"), json!(""));
    let variable = |text: &str| json!({"text": text, "code": "c", "numbers": [1, -2], "raw": "AAH/", "tint": "infra_red"});
    echoed("echo_variable", variable("a"), variable("b"));
    let named = json!([{"name": "n", "value": 7}, {"name": "", "value": -7}]);
    echoed("echo_nameds", named, json!([]));
    let tree = json!({"label": "root", "children": [{"label": "leaf", "children": []}]});
    echoed("echo_tree", tree, json!({"label": "", "children": []}));
    let number = json!({"discriminator": -3, "number": 8});
    echoed("echo_by_long", number, json!({"discriminator": 6, "numbers": [1, 2, 3]}));
    let bin = json!({"s": 1, "c": "x", "l": -1, "o": 255, "d": 0.5});
    echoed("echo_bin_array", json!([bin, bin]), json!([bin, bin]));
    echoed("echo_wstring", json!("\u{e9}\u{4e16}"), json!("w"));
    echoed("echo_color", json!("green"), json!("blue"));

    with(ior, &["title=A new one"]);
    assert_eq!(with(ior, &["title"]), json!("A new one"));
    assert_eq!(with(ior, &["answer"]), json!(42));
    let said = call(&[&[ior, "raise_detailed", "1"], sources].concat()).expect_err("the operation raises");
    let raised = said.split_once('\n').map(|(_, json)| serde_json::from_str::<Value>(json).expect("JSON"));
    let members = json!({
        "at": {"s": 1, "c": "d", "l": 2, "o": 255, "d": 0.5},
        "trail": ["0"],
        "tint": "green",
        "pair": {"first": "deep", "outer": {"first": 1, "second": -1}},
    });
    let detailed = json!({"exception": "IDL:ironorb.example/interop/Detailed:1.0", "members": members});
    assert_eq!(raised, Some(detailed), "{said}");
    let said = call(&[&[ior, "raise_system", "no_permission", "17", "completed_yes"], sources].concat());
    let said = said.expect_err("the operation raises");
    assert!(
        said.contains("NO_PERMISSION") && said.contains("0x00000011") && said.contains("completed: yes"),
        "{said}"
    );
    if contexts {
        let context = ["--context", "region=north", "--context", "color.top=red"];
        let properties = called(&[&[ior, "with_context", "1"], &context[..], sources].concat());
        assert_eq!(properties, json!(["color.top=red", "region=north"]));
    }
    // A returned reference can be called.
    let node = with(ior, &["create_node", "12"]);
    let node = node.as_str().expect("a reference");
    assert_eq!(with(node, &["id"]), json!(12));
    let anys = with(ior, &["part", "anys"]);
    let anys = anys.as_str().expect("a reference");
    let pair = json!({"type": "interop::Pair", "value": {"first": 1, "second": 2}});
    let text = json!({"type": "string", "value": "text"});
    let result = with(anys, &["echo_any", &pair.to_string(), &text.to_string()]);
    assert_eq!(result["result"]["value"], pair["value"]);
    assert_eq!((&result["out"]["y"]["value"], &result["out"]["z"]), (&pair["value"], &text));
    derived_values(with(ior, &["part", "values"]).as_str().expect("a reference"), sources);
    let listed = call(&[&[ior, "--list"], sources].concat()).expect("it is known");
    assert!(listed.starts_with("interface Suite : "), "{listed}");
    assert!(
        listed.contains("    Variable echo_variable(in Variable x, inout Variable y, out Variable z);\n"),
        "{listed}"
    );
}

/// Values of types that only the sources of the call know: no ORB here has them registered.
fn derived_values(values: &str, sources: &[&str]) {
    let with = |rest: &[&str]| called(&[&[values], rest, sources].concat());
    let point3 = json!({"@type": "IDL:ironorb.example/interop/Point3:1.0", "x": 1, "y": 2, "depth": 3});
    let point = json!({"@type": "IDL:ironorb.example/interop/Point:1.0", "x": -1, "y": -2});
    let echoed = with(&["echo_point", &point3.to_string(), &point.to_string()]);
    // The result and `y` are one value, and the JSON shows that.
    let mut shared = json!({"@id": 1});
    shared.as_object_mut().expect("it is one").extend(point3.as_object().expect("it is one").clone());
    assert_eq!(echoed, json!({"result": shared, "out": {"y": {"@ref": 1}, "z": point}}));
    assert_eq!(with(&["kind_of", &point3.to_string()]), point3["@type"]);
    let spot = json!({"@type": "IDL:ironorb.example/interop/HotSpot:1.0", "x": 1, "y": 2, "color": "red", "heat": 0.5});
    let base = with(&["pass_base", &spot.to_string()]);
    assert_eq!(base, spot);
    // A value of an unknown type is truncated to a known base.
    let secret = with(&["secret", "3", "4"]);
    assert_eq!((&secret["x"], &secret["color"]), (&json!(3), &json!("red")));
    let ring = with(&["ring", "2"]);
    assert_eq!((&ring["@id"], &ring["next"]["next"]), (&json!(1), &json!({"@ref": 1})));
    assert_eq!(with(&["length_of", &ring.to_string()]), json!(2));
    let said = call(&[&[values, "raise_spoilt", &point.to_string()], sources].concat())
        .expect_err("the operation raises");
    assert!(said.contains("raised Spoilt"), "{said}");
}

/// JacORB's native code set must be one that has the characters of the texts.
fn server(peer: Peer, more: &[&str]) -> (Process, String) {
    match peer {
        Peer::OmniOrb => peer.start_server(more),
        Peer::JacOrb => {
            peer.start_server(&[&["--property", "jacorb.native_char_codeset=UTF8"], more].concat())
        }
    }
}

#[track_caller]
fn call_with_idl(peer: Peer) {
    case(peer, Side::Client, "call/idl", || {
        let (server, ior) = server(peer, &[]);
        calls(&ior, &["--idl", IDL], peer == Peer::OmniOrb);
        assert!(server.terminate().status.success());
    });
}

#[test]
fn omniorbs_server_is_called_with_idl() {
    call_with_idl(Peer::OmniOrb);
}

#[test]
fn jacorbs_server_is_called_with_idl() {
    call_with_idl(Peer::JacOrb);
}

/// IronORB's repository is an initial reference of the peer's server, so that its objects describe
/// themselves.
#[track_caller]
fn call_without_a_source(peer: Peer) {
    case(peer, Side::Client, "call/reference", || {
        let arguments = ["ifr", "serve", "--memory", "--endpoint", "iiop://127.0.0.1:0", "--load", IDL];
        let repository = Process::start(ironorb_command(), &arguments);
        let url = loop {
            if let Some(url) = repository.line().strip_prefix("ready ") {
                break url.to_owned();
            }
        };
        let initial = format!("InterfaceRepository={url}");
        let (server, ior) = server(peer, &["-ORBInitRef", &initial]);
        calls(&ior, &[], peer == Peer::OmniOrb);
        assert!(server.terminate().status.success());
        assert!(repository.terminate().status.success());
    });
}

#[test]
fn omniorbs_server_is_called_without_a_source() {
    call_without_a_source(Peer::OmniOrb);
}

#[test]
fn jacorbs_server_is_called_without_a_source() {
    call_without_a_source(Peer::JacOrb);
}

/// Parts of the description of the interface `Till`.
const LINES: [&str; 4] = [
    "    attribute string keeper;\n",
    "    Receipt pay(in long amount, inout Node what, out string said) raises (Empty);\n",
    "    readonly attribute long served;\n",
    "    void close();\n",
];

/// The types come from JacORB's own repository. omniORB has one too, but Debian does not ship it.
#[test]
fn types_come_from_jacorbs_repository() {
    case(Peer::JacOrb, Side::Client, "call/repository", || {
        let mock = Mock::start(&[SHOP, "--ior"]);
        let till = mock.ior("Shop::Till");
        let (repository, ior) = whole_repository(till);
        let ifr = ["--ifr", ior.as_str()];
        let node = json!({"name": "x", "children": [{"name": "y", "children": []}]});
        let paid = called(&[&[till, "pay", "3", &node.to_string()], &ifr[..]].concat());
        let receipt = json!({"discriminator": "CASH", "change": 0});
        assert_eq!(paid, json!({"result": receipt, "out": {"what": node, "said": ""}}));
        assert_eq!(called(&[&[till, "keeper=Anna"], &ifr[..]].concat()), Value::Null);
        assert_eq!(called(&[&[till, "keeper"], &ifr[..]].concat()), json!("Anna"));
        repository.kill();
        assert!(mock.process.terminate().status.success());
    });
}

/// Starts JacORB's repository, and gives it with its reference when it tells the whole interface of `till`.
///
/// JacORB finds definitions before it can describe them, and describes them before it has all of their types. A
/// definition that is asked for at such a moment keeps the type that it has then, so another repository is started.
fn whole_repository(till: &str) -> (Process, String) {
    // Before a repository is given up; more each time, for a machine that is slow or busy. Each is a process of its own,
    // so JacORB has time for its work between them.
    let mut listings = 40;
    let home = repository_classes();
    let begun = std::time::Instant::now();
    let mut listed = Err(String::new());
    while begun.elapsed() < ironorb_interop::process::PEER_TIMEOUT {
        let (repository, ior) = start_repository(home.path());
        for _ in 0..listings {
            listed = call(&[till, "--list", "--ifr", &ior]);
            let is_whole = |listed: &String| {
                listed.starts_with("interface Till : Counter {\n")
                    && LINES.iter().all(|line| listed.contains(line))
            };
            if listed.as_ref().is_ok_and(is_whole) {
                return (repository, ior);
            }
        }
        repository.kill();
        listings *= 2;
    }
    panic!("{LINES:?} are not in\n{listed:?}");
}

/// Makes the classes from which JacORB reads the definitions of `SHOP`. Its compiler generates them for that purpose.
fn repository_classes() -> tempfile::TempDir {
    let peers = Peer::JacOrb.build();
    let path = std::fs::read_to_string(peers.join("classpath")).expect("the peers are built");
    let home = tempfile::tempdir().expect("the temporary folder can be written");
    let run = |program: &str, arguments: &[&str]| {
        let done = Command::new(program).args(arguments).current_dir(home.path()).output().expect(program);
        assert!(
            done.status.success(),
            "{program}: {}{}",
            String::from_utf8_lossy(&done.stdout),
            String::from_utf8_lossy(&done.stderr)
        );
    };
    let quick = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", path.trim()];
    run(
        "java",
        &[&quick[..], &["org.jacorb.idl.parser", "-ir", "-all", "-notimestamps", "-d", "java", SHOP]]
            .concat(),
    );
    let mut sources = Vec::new();
    collect(&home.path().join("java"), &mut sources);
    std::fs::create_dir(home.path().join("classes")).expect("the temporary folder can be written");
    let mut javac =
        vec!["-J-XX:TieredStopAtLevel=1", "-nowarn", "-Xlint:none", "-cp", path.trim(), "-d", "classes"];
    javac.extend(sources.iter().map(String::as_str));
    run("javac", &javac);
    home
}

/// Starts JacORB's repository with the classes in a folder, and gives it with its reference when it finds them.
fn start_repository(home: &Path) -> (Process, String) {
    let (classes, file) = (home.join("classes"), home.join("ior"));
    let _no_earlier_one = std::fs::remove_file(&file);
    let text = |path: &Path| path.to_str().expect("temporary folders have plain names").to_owned();
    let repository = java("org.jacorb.ir.IRServer", &[&text(&classes), &text(&file)]);
    // JacORB prints nothing when it is ready, and writes its file before it serves.
    let mut ior = String::new();
    wait_until("JacORB's repository does not serve", || {
        ior = std::fs::read_to_string(&file).unwrap_or_default().trim().to_owned();
        !ior.is_empty()
            && call(&[&ior, "lookup_id", "IDL:Shop/Till:1.0", "--idl", IR]).is_ok_and(|said| said != "null\n")
    });
    (repository, ior)
}

fn collect(folder: &Path, files: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.path() {
            path if path.is_dir() => collect(&path, files),
            path => files.extend(path.to_str().map(str::to_owned)),
        }
    }
}

/// A running `ironorb serve-mock`.
struct Mock {
    process: Process,
    objects: Vec<(String, String)>,
}

impl Mock {
    fn start(arguments: &[&str]) -> Mock {
        let process = Process::start(ironorb_command(), &[&["serve-mock"], arguments].concat());
        let mut objects = Vec::new();
        loop {
            let line = process.line();
            match line.split_once("  ") {
                Some((name, reference)) => objects.push((name.to_owned(), reference.to_owned())),
                None => return Mock { process, objects },
            }
        }
    }

    fn ior(&self, name: &str) -> &str {
        let found = self.objects.iter().find(|(other, _)| other == name);
        found.map(|(_, ior)| ior.as_str()).expect("it is served")
    }
}

/// The answers of a server of the contract, as far as a file can describe them.
fn suite() -> Value {
    let mut answers = Map::new();
    for operation in echoes() {
        answers.insert(operation, json!({"echo": {"result": "x", "out": {"y": "x", "z": "y"}}}));
    }
    for of in ["octets", "longs", "doubles", "bins", "strings"] {
        answers.insert(format!("reflect_{of}"), json!({"echo": {"result": "data"}}));
    }
    answers.insert("orb_name".to_owned(), json!("a mock"));
    answers.insert("answer".to_owned(), json!(42));
    answers.insert("raise_empty".to_owned(), json!({"exception": "Empty"}));
    answers.insert(
        "raise_one_of".to_owned(),
        json!({"when": [
            {"arguments": {"which": 0}, "result": 1},
            {"arguments": {"which": 1}, "exception": "Empty"},
            {"arguments": {"which": 2}, "exception": "Refused", "members": {"why": "asked", "code": 2}},
            {"arguments": {"which": 3}, "exception": "Occupied", "members": {"holder": null}},
            {"arguments": {"which": 50}, "result": 101},
        ]}),
    );
    let occupied = json!({"exception": "Occupied", "members": {"holder": {"$object": "Node"}}});
    answers.insert("raise_occupied".to_owned(), occupied);
    let detailed = [0, 1, 3, 300].map(|depth| {
        let trail: Vec<String> = (0..depth).map(|step| step.to_string()).collect();
        let at = json!({"s": depth, "c": "d", "l": 2 * depth, "o": 255, "d": 0.5});
        let pair = json!({"first": "deep", "outer": {"first": depth, "second": -depth}});
        let members = json!({"at": at, "trail": trail, "tint": "green", "pair": pair});
        json!({"arguments": {"depth": depth}, "exception": "Detailed", "members": members})
    });
    answers.insert("raise_detailed".to_owned(), json!({"when": detailed}));
    let mut systems = Vec::new();
    for kind in SYSTEM {
        for minor in [0u32, 0x4952_0001, u32::MAX] {
            for completed in ["yes", "no", "maybe"] {
                let arguments = json!({
                    "what": kind.to_lowercase(),
                    "minor_code": minor,
                    "completed": format!("completed_{completed}"),
                });
                systems.push(
                    json!({"arguments": arguments, "system": kind, "minor": minor, "completed": completed}),
                );
            }
        }
    }
    answers.insert("raise_system".to_owned(), json!({"when": systems}));
    json!({"interop::Suite": answers, "interop::Node": {"id": 31}})
}

const SYSTEM: [&str; 8] = [
    "BAD_PARAM",
    "NO_PERMISSION",
    "IMP_LIMIT",
    "INTERNAL",
    "NO_RESOURCES",
    "NO_IMPLEMENT",
    "INV_POLICY",
    "DATA_CONVERSION",
];

/// The echoes of interface Suite.
fn echoes() -> Vec<String> {
    let idl = std::fs::read_to_string(IDL.replace("all.idl", "interop.idl")).expect("it is there");
    let is_echo = |line: &&str| line.contains("(in ") && line.trim_end().ends_with(" z);");
    let name = |line: &str| {
        let from = line.find("echo_")?;
        line[from..].split('(').next().map(str::to_owned)
    };
    idl.lines().filter(is_echo).filter_map(name).collect()
}

#[track_caller]
fn mocked(peer: Peer) {
    case(peer, Side::Server, "mock", || {
        let folder = tempfile::tempdir().expect("the temporary folder can be written");
        let file = folder.path().join("answers.json");
        std::fs::write(&file, suite().to_string()).expect("the temporary folder can be written");
        let answers = file.to_str().expect("temporary folders have plain names");
        let interfaces = ["--interface", "interop::Suite", "--interface", "interop::Node"];
        let mock = Mock::start(&[&[IDL, "--ior", "--quiet", "--answers", answers], &interfaces[..]].concat());
        let of =
            Circumstances { peer: Some(peer), side: Side::Server, version: Version::V1_2, code_sets: true };
        let left_out = skips(&of);
        // These cases create or compare objects. A mock has only one of each interface.
        let objects =
            ["echo_node", "echo_object", "echo_nodes", "echo_objects", "echo_link", "echo_node_or_name"];
        let mut cases: Vec<String> =
            echoes().into_iter().filter(|name| !objects.contains(&name.as_str())).collect();
        for case in &mut cases {
            if case.contains("_wchar") || case.contains("wstring") || case.contains("_wide_") {
                *case = format!("wide/{case}");
            }
        }
        cases.extend(SYSTEM.map(|kind| format!("raise_system/{kind}")));
        for name in
            ["count", "low_high", "title", "tint", "bin", "compound", "numbers", "cells", "choice", "answer"]
        {
            cases.push(format!("attribute/{name}"));
        }
        let others =
            ["nothing", "orb_name", "raise_empty", "raise_one_of", "raise_detailed", "raise_occupied"];
        cases.extend(others.map(str::to_owned));
        cases.extend(
            ["big/octets", "big/bins", "big/strings", "non_existent", "bad_operation/dii"].map(str::to_owned),
        );
        let skipped: Vec<String> =
            left_out.iter().map(|(case, reason)| format!("{case}={}", reason.number)).collect();
        let mut arguments: Vec<&str> = cases.iter().flat_map(|case| ["--only", case]).collect();
        arguments.extend(skipped.iter().flat_map(|case| ["--skip", case]));
        arguments.push(mock.ior("interop::Suite"));
        let report = peer.run_client(&arguments);
        assert!(report.failed.is_empty() && report.is_complete, "{}", report.text);
        assert!(report.passed.len() > 90, "{} cases are too few", report.passed.len());
        let ended = mock.process.terminate();
        assert!(ended.status.success(), "{ended:?}");
    });
}

#[test]
fn omniorbs_client_works_with_a_mock() {
    mocked(Peer::OmniOrb);
}

#[test]
fn jacorbs_client_works_with_a_mock() {
    mocked(Peer::JacOrb);
}
