//! The `ironorb` command: its output, its error messages, and its exit codes.

use std::process::{Command, Stdio};

use ironorb::giop::Version;
use ironorb::giop::ior::{IiopProfile, Ior, TaggedComponent, TaoUnixEndpoint};
use ironorb_tests::command::{NamingProcess, done, ironorb, run};

#[test]
fn names_are_bound_listed_and_unbound() {
    let service = NamingProcess::start_with(&["--memory"], "127.0.0.1:0");
    let naming = |args: &[&str]| {
        let at = ["--naming", &service.address];
        run(["naming"].iter().chain(&args[..1]).chain(&at).chain(&args[1..]))
    };
    let thing = "corbaloc::1.2@192.0.2.1:7/thing";
    assert_eq!(naming(&["list"]).expect(), "");
    naming(&["bind", "-p", "bank/branch/main", thing]).expect();
    naming(&["new-context", "bank/empty"]).expect();
    assert_eq!(naming(&["list", "bank"]).expect(), "branch/\nempty/\n");
    let tree = naming(&["tree"]).expect();
    let expected = "\
└── bank/
    ├── branch/
    │   └── main
    └── empty/
4 contexts, 1 object
";
    assert_eq!(tree.split_once('\n').unwrap().1, expected);
    let found = naming(&["resolve", "bank/branch/main"]).expect();
    assert!(run(["ior", "decode", found.trim()]).expect().contains("192.0.2.1:7"), "{found}");

    let said = naming(&["bind", "bank/branch/main", thing]).expect_failure(1);
    assert!(said.contains("error: cannot bind `bank/branch/main`: the name is bound already"), "{said}");
    assert!(said.contains("help: `rebind` replaces"), "{said}");
    naming(&["rebind", "bank/branch/main", "corbaloc::1.2@192.0.2.1:8/other"]).expect();
    let said = naming(&["bind", "no/way", thing]).expect_failure(1);
    assert!(said.contains("there is no context `no` on the way"), "{said}");
    let said = naming(&["resolve", "bank/no"]).expect_failure(1);
    assert!(said.contains("nothing is bound to `no`"), "{said}");
    let said = naming(&["list", "bank//x"]).expect_failure(2);
    assert!(said.contains("component 2, at byte 5, is empty"), "{said}");
    let said = naming(&["destroy", "bank"]).expect_failure(1);
    assert!(said.contains("the context is not empty"), "{said}");
    naming(&["destroy", "bank/empty"]).expect();
    // Without its binding, the contents of the context would be out of reach.
    let said = naming(&["unbind", "bank/branch"]).expect_failure(1);
    assert!(said.contains("it is a context that is not empty") && said.contains("--force"), "{said}");
    naming(&["unbind", "bank/branch/main"]).expect();
    assert_eq!(naming(&["list", "bank"]).expect(), "branch/\n");
    naming(&["unbind", "bank/branch"]).expect();
    naming(&["bind", "-p", "bank/branch/main", thing]).expect();
    naming(&["unbind", "--force", "bank/branch"]).expect();
    assert_eq!(naming(&["list", "bank"]).expect(), "");
    assert_eq!(service.terminate(), Some(0));
}

#[test]
fn long_listings_are_fetched_page_by_page() {
    let service = NamingProcess::start_with(&["--memory"], "127.0.0.1:0");
    let orb = ironorb::Orb::builder().no_endpoint().build().unwrap();
    let object = orb.string_to_object("corbaloc::1.2@192.0.2.1:7/thing").unwrap();
    use ironorb::naming::cos_naming::{NameComponent, NamingContext as _};
    for number in 0..450 {
        let component = NameComponent { id: format!("n{number:03}"), kind: String::new() };
        service.root(&orb).bind(&[component], Some(&object)).unwrap();
    }
    let listed = run(["naming", "list", "--naming", &service.address]).expect();
    let expected: String = (0..450).map(|number| format!("n{number:03}\n")).collect();
    assert_eq!(listed, expected);
    assert!(
        run(["naming", "tree", "--naming", &service.address]).expect().ends_with("1 context, 450 objects\n")
    );
}

#[test]
fn a_cyclic_naming_tree_is_shown_once() {
    let service = NamingProcess::start_with(&["--memory"], "127.0.0.1:0");
    let at = ["--naming", service.address.as_str()];
    let root = format!("corbaloc::1.2@{}/NameService", service.address);
    run(["naming", "new-context"].iter().chain(&at).chain(&["a"])).expect();
    let a = run(["naming", "resolve"].iter().chain(&at).chain(&["a"])).expect();
    run(["naming", "bind"].iter().chain(&at).chain(&["--context", "a/self", a.trim()])).expect();
    run(["naming", "bind"].iter().chain(&at).chain(&["--context", "a/up", &root])).expect();
    let tree = run(["naming", "tree", "--depth", "9"].iter().chain(&at)).expect();
    assert!(tree.contains("self/  (leads back to a context above)"), "{tree}");
}

#[test]
fn the_service_prints_its_address_or_why_it_cannot_start() {
    let folder = tempfile::tempdir().unwrap();
    let (store, ior) = (folder.path().join("names.redb"), folder.path().join("root.ior"));
    let (store, ior) = (store.to_str().unwrap(), ior.to_str().unwrap());
    let args = ["--store", store, "--ior-file", ior, "--publish", "names.example:2810"];
    let service = NamingProcess::start_with(&args, "127.0.0.1:0");
    assert!(service.announced.contains(store), "{}", service.announced);
    assert!(service.announced.contains("ready corbaloc::1.2@names.example:2810/NameService\n"));
    let decoded = run(["ior", "decode", std::fs::read_to_string(ior).unwrap().trim()]).expect();
    assert!(decoded.contains("names.example:2810"), "{decoded}");
    assert!(decoded.contains("persistent: adapter RootPOA/NamingContexts, id \"0\""), "{decoded}");

    let said =
        run(["naming", "serve", "--endpoint", "iiop://127.0.0.1:0", "--store", store]).expect_failure(1);
    assert!(said.contains("is in use by another process"), "{said}");
    let other = NamingProcess::start_with(&["--memory", "--concurrency", "pool:2"], "127.0.0.1:0");
    let endpoint = format!("iiop://{}", other.address);
    let said = run(["naming", "serve", "--memory", "--endpoint", &endpoint]).expect_failure(1);
    assert!(said.contains("cannot listen at"), "{said}");
    let said = run(["naming", "serve", "--memory", "--endpoint", "iiop://127.0.0.1:x"]).expect_failure(2);
    assert!(said.contains("the port is a number"), "{said}");
    // The naming service works with a pool too.
    assert_eq!(run(["naming", "list", "--naming", &other.address]).expect(), "");
}

#[test]
fn an_unreachable_service_is_reported_with_help() {
    let said = run(["naming", "list", "--naming", "127.0.0.1:1"]).expect_failure(1);
    assert!(said.contains("is a naming service running at 127.0.0.1:1?"), "{said}");
    let said = run(["naming", "list", "--naming", "corbaloc:x"]).expect_failure(2);
    assert!(said.contains("help: for example"), "{said}");
}

#[test]
fn wrong_usage_has_its_own_exit_code() {
    for args in [
        &["naming", "bogus"][..],
        &["naming", "bind", "only-a-name"],
        &["idl", "compile", "x.idl"],
        &["--bogus"],
    ] {
        run(args).expect_failure(2);
    }
    run(["--help"]).expect();
    assert!(run(["--version"]).expect().starts_with("ironorb "));
}

#[test]
fn unix_sockets_of_tao_are_decoded() {
    let at = |path: &str, priority| TaoUnixEndpoint { path: path.to_owned(), priority };
    let listed = [at("/tmp/all", -1), at("/tmp/lane", 1_000)];
    let listed = [TaggedComponent::new_tao_unix_endpoints(&listed).unwrap()];
    let profile = IiopProfile::new_uiop(Version::V1_2, "/tmp/all", b"key", &listed).unwrap();
    let ior = Ior::with_profile("IDL:a/B:1.0", profile).to_string();
    let decoded = run(["ior", "decode", &ior]).expect();
    for part in [
        "UIOP 1.2, ",
        "uiop:///tmp/all\n",
        "uiop:///tmp/all, without a priority (TAO)\n",
        "uiop:///tmp/lane, for priority 1000 (TAO)\n",
    ] {
        assert!(decoded.contains(part), "{part} is not in\n{decoded}");
    }
    // What changes IIOP profiles leaves it alone.
    assert_eq!(run(["ior", "make", &ior, "--host", "elsewhere"]).expect().trim(), ior);
}

#[test]
fn references_of_another_orb_are_decoded() {
    let iors = include_str!("../../crates/ironorb-giop/testdata/omniorb/iors.txt");
    let ior = iors.lines().find(|line| line.starts_with("IOR:")).unwrap();
    let decoded = run(["ior", "decode", ior]).expect();
    for part in [
        "type id        IDL:ironorb.example/interop/Suite:1.0\n",
        "IIOP 1.2, 104 bytes, little-endian\n",
        "gateway.example:2810\n",
        "ff 69 6e 74 65 72 6f 70 00 73 75 69 74 65        .interop.suite\n",
        "omniORB (0x41545400)\n",
        "char: UTF-8, converts UTF-8\n",
        "wchar: UTF-16, converts UTF-16\n",
    ] {
        assert!(decoded.contains(part), "{part} is not in\n{decoded}");
    }
    for ior in iors.lines().filter(|line| line.starts_with("IOR:")) {
        run(["ior", "decode", ior]).expect();
    }
    let decoded = run(["ior", "decode", "corbaname::host:2810,:1.2@[::1]/Names#a/b%20c"]).expect();
    for part in ["host:2810, GIOP 1.0\n", "[::1]:2809, GIOP 1.2\n", "Names\n", "name           a/b c\n"] {
        assert!(decoded.contains(part), "{part} is not in\n{decoded}");
    }
    let said = run(["ior", "decode", &ior[..60]]).expect_failure(2);
    assert!(said.contains("error: not an object reference"), "{said}");

    let mut command = Command::new(ironorb());
    command.args(["ior", "decode", "-"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), format!("{ior}\n").as_bytes()).unwrap();
    assert!(done(&child.wait_with_output().unwrap()).expect().contains("gateway.example"));
}

#[test]
fn idl_check_prints_json_explains_codes_and_obeys_warning_options() {
    let folder = tempfile::tempdir().unwrap();
    let write = |file: &str, text: &str| {
        let path = folder.path().join(file);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    write("shared.idl", "#pragma once\nmodule Empty { };\n");
    let one = write("one.idl", "#include \"shared.idl\"\nstruct One { @defualt(1) long a; };\n");
    let two = write("two.idl", "#include \"shared.idl\"\nstruct Two { long a; };\n");
    let bad = write("bad.idl", "\n  typedef Absent Gone;\n");

    // A warning in a file that both include counts once.
    assert_eq!(run(["idl", "check", &one, &two]).expect(), "2 files without errors, 2 warnings\n");
    assert_eq!(
        run(["idl", "check", "-W", "allow=included", &one, &two]).expect(),
        "2 files without errors, 1 warning\n"
    );
    assert_eq!(
        run(["idl", "check", "-W", "allow=IDL0526,IDL0528", &one]).expect(),
        "1 file without errors\n"
    );
    let said = run(["idl", "check", "-W", "error=IDL0526", &one]).expect_failure(1);
    assert!(said.contains("error[IDL0526]") && said.contains("warning[IDL0528]"), "{said}");
    let said = run(["idl", "check", "-W", "error", "-W", "allow=IDL0528", &one]).expect_failure(1);
    assert!(said.contains("error[IDL0526]") && !said.contains("IDL0528"), "{said}");
    for (wrong, why) in
        [("allow=IDL0404", "always an error"), ("allow=IDL9", "no code"), ("quiet", "write error")]
    {
        let said = run(["idl", "check", "-W", wrong, &one]).expect_failure(2);
        assert!(said.contains(why), "{said}");
    }

    let checked =
        Command::new(ironorb()).args(["idl", "check", "--format", "json", &one, &bad]).output().unwrap();
    assert_eq!(checked.status.code(), Some(1));
    let json: serde_json::Value = serde_json::from_slice(&checked.stdout).unwrap();
    assert_eq!(json["files"], 2);
    assert_eq!(json["failed"][0], bad);
    let last = json["diagnostics"].as_array().unwrap().last().unwrap();
    assert_eq!((&last["code"], &last["severity"]), (&"IDL0401".into(), &"error".into()));
    assert_eq!((&last["line"], &last["column"], &last["endColumn"]), (&2.into(), &11.into(), &17.into()));
    let misspelt = &json["diagnostics"][1];
    assert_eq!(misspelt["help"], "do you mean `@default`?");

    let said = run(["idl", "check", "--explain", "IDL0526"]).expect();
    assert!(said.starts_with("IDL0526 (warning)") && said.contains("Mended:"), "{said}");
    run(["idl", "check", "--explain", "IDL9999"]).expect_failure(2);
}

#[test]
fn idl_is_checked_compiled_and_dumped() {
    let folder = tempfile::tempdir().unwrap();
    let path = |file: &str| folder.path().join(file).to_str().unwrap().to_owned();
    let write = |file: &str, text: &str| {
        std::fs::write(path(file), text).unwrap();
        path(file)
    };
    let good = write("good.idl", "#include <types.idl>\ninterface Good { Number f(in string s); };\n");
    std::fs::create_dir(path("inc")).unwrap();
    write("inc/types.idl", "#ifdef WIDE\ntypedef long long Number;\n#else\ntypedef long Number;\n#endif\n");
    let bad = write("bad.idl", "interface Bad { long f(in strin s); };\nstruct S { Nothing n; };\n");
    let worse = write("worse.idl", "interface {\n");

    // One run reports all errors of all files.
    let inc = path("inc");
    let said = run(["idl", "check", "-I", &inc, &bad, &good, &worse]).expect_failure(1);
    for part in ["bad.idl:1:27", "bad.idl:2:12", "worse.idl:1:11", "error: 2 of 3 files failed"] {
        assert!(said.contains(part), "{part} is not in\n{said}");
    }
    assert!(!said.contains('\u{1b}'), "colors are for terminals: {said}");
    assert_eq!(run(["idl", "check", "-I", &inc, &good]).expect(), "1 file without errors\n");
    let said = run(["idl", "check", &good]).expect_failure(1);
    assert!(said.contains("types.idl"), "{said}");
    let said = run(["idl", "check", &path("none.idl")]).expect_failure(1);
    assert!(said.contains("cannot read"), "{said}");

    let slips =
        write("slips.idl", "@marshal(fast) struct S { long x; };\n@marshal(compiled) const long ONE = 1;\n");
    let said = run(["idl", "check", &slips]).expect_failure(1);
    for part in ["`@marshal` has no value `fast`", "slips.idl:2:1", "error: 1 of 1 file failed"] {
        assert!(said.contains(part), "{part} is not in\n{said}");
    }

    let out = path("out/deep");
    run(["idl", "compile", "-I", &inc, "-D", "WIDE", "--out", &out, &good]).expect();
    let rust = std::fs::read_to_string(format!("{out}/good.rs")).unwrap();
    assert!(rust.contains("pub trait Good") && rust.contains("pub type Number = i64;"), "{rust}");
    let said = run(["idl", "compile", "--out", &out, &bad]).expect_failure(1);
    assert!(said.contains("bad.idl:1:27") && !std::fs::exists(format!("{out}/bad.rs")).unwrap(), "{said}");
    let not_yet = write("not_yet.idl", "struct Later;\n");
    let said = run(["idl", "compile", "--out", &out, &not_yet]).expect_failure(1);
    assert!(said.contains("not generated yet") && said.contains("not_yet.idl:1:"), "{said}");
    let said = run(["idl", "compile", "--out", &out, &good, &path("inc/good.idl")]).expect_failure(1);
    assert!(said.contains("would be written to the same file"), "{said}");

    let dumped = run(["idl", "dump", "-I", &inc, &good]).expect();
    assert!(dumped.contains("interface Good  [IDL:Good:1.0]"), "{dumped}");
}

/// The reader of a pipe is gone before the command prints, as with `| head -0`.
#[test]
fn a_closed_output_ends_commands_quietly() {
    let service = NamingProcess::start_with(&["--memory"], "127.0.0.1:0");
    let url = format!("corbaloc::1.2@{}/NameService", service.address);
    run(["naming", "bind", "--naming", &service.address, "a", &url]).expect();
    let idl = concat!(env!("CARGO_MANIFEST_DIR"), "/../idl/CosNaming.idl");
    for args in [
        &["ior", "decode", &url][..],
        &["ior", "make", &url],
        &["ior", "resolve", &url],
        &["idl", "dump", idl],
        &["idl", "check", idl],
        &["completions", "bash"],
        &["call", &url, "--list"],
        &["call", &url, "_repository_id"],
        &["naming", "list", "--naming", &service.address],
        &["naming", "tree", "--naming", &service.address],
        &["naming", "resolve", "--naming", &service.address, "a"],
        &["naming", "new-context", "--naming", &service.address],
        &["--help"],
        &["--version"],
    ] {
        let mut command = Command::new(ironorb());
        let done = done(&command.args(args).stdin(Stdio::null()).stdout(closed()).output().unwrap());
        assert!(done.code == Some(0) && !done.err.contains("panicked"), "{args:?}: {done:?}");
        // With standard error closed too, only the exit code remains.
        let mut command = Command::new(ironorb());
        let status = command.args(args).stdin(Stdio::null()).stdout(closed()).stderr(closed()).status();
        assert_eq!(status.unwrap().code(), Some(0), "{args:?}");
    }
    let mut command = Command::new(ironorb());
    let status = command.args(["ior", "decode", "nonsense"]).stderr(closed()).status();
    assert_eq!(status.unwrap().code(), Some(2));
}

/// A pipe without a reader.
fn closed() -> std::io::PipeWriter {
    std::io::pipe().unwrap().1
}

#[test]
fn references_are_created_and_changed() {
    let made = run(["ior", "make", "--host", "db.example", "--key", "Bank%2f1", "--type", "IDL:Bank:1.0"]);
    let made = made.expect();
    let decoded = run(["ior", "decode", made.trim()]).expect();
    for part in ["type id        IDL:Bank:1.0\n", "IIOP 1.2, ", "db.example:2809\n", "Bank/1\n"] {
        assert!(decoded.contains(part), "{part} is not in\n{decoded}");
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bank.ior");
    std::fs::write(&file, &made).unwrap();
    let file = format!("file:{}", file.display());
    // `ior make` without options returns the reference unchanged. `ior decode` takes a file as it takes the
    // text.
    assert_eq!(run(["ior", "make", &file]).expect(), made);
    assert_eq!(run(["ior", "decode", &file]).expect(), decoded);
    let changed = run([
        "ior",
        "make",
        &file,
        "--host",
        "gw",
        "--port",
        "99",
        "--giop",
        "1.1",
        "--orb-type",
        "0x54414f00",
        "--code-sets",
        "UTF-8",
        "--alternate",
        "db2:7",
        "--component",
        "77=0a0b",
    ]);
    let changed = changed.expect();
    let decoded = run(["ior", "decode", changed.trim()]).expect();
    for part in [
        "IIOP 1.1, ",
        "gw:99\n",
        "Bank/1\n",
        "TAO (0x54414f00)\n",
        "char: UTF-8, converts ISO 8859-1\n",
        "db2:7 (alternate)\n",
        "0a 0b",
        "(unknown)",
    ] {
        assert!(decoded.contains(part), "{part} is not in\n{decoded}");
    }
    let without = run(["ior", "make", changed.trim(), "--without", "77", "--without", "3"]).expect();
    let decoded = run(["ior", "decode", without.trim()]).expect();
    assert!(!decoded.contains("0a 0b") && !decoded.contains("alternate"), "{decoded}");
    for (args, why) in [
        (&["--type", "IDL:X:1.0"][..], "needs --host and --key"),
        (&["corbaname::h#a"], "a corbaname has no object key"),
        (&[changed.trim(), "--giop", "1.0"], "IIOP 1.0 has no place for components"),
        (&[changed.trim(), "--key", "a%zz"], "--key a%zz"),
        (&[changed.trim(), "--component", "77=0"], "an even number of hexadecimal digits"),
    ] {
        let said = run(["ior", "make"].iter().chain(args)).expect_failure(2);
        assert!(said.contains(why), "{said}");
    }
    let said = run(["ior", "decode", "file:/no/such/file"]).expect_failure(1);
    assert!(said.contains("cannot read file:/no/such/file: "), "{said}");
}

#[test]
fn components_are_described_in_words() {
    // The bytes follow the IDL of the standard and of the vendors, big-endian.
    let gssup = "0606678102010101";
    let csi = [
        "00010000", "00000001", "00460000", "00000024", "00000014", "00000046", "00060000", "00000001",
        "00000002", "68000a7c", "00400040", "00000008", gssup, "00000000", "04000000", "00000000",
        "00000001", "00000008", gssup, "00000003",
    ]
    .concat();
    let components = [
        format!("33={csi}"),
        "20=0000006600400a7d".to_owned(),
        "2=00000000000000010000002800000004 00000007".replace(' ', ""),
        "25=0000000000000005 6874747000".replace(' ', ""),
        "38=0002".to_owned(),
        "0x54414f02=000000000000000100000002 68000af9 ffff".replace(' ', ""),
        "0x41545401=01".to_owned(),
        "33=00".to_owned(),
    ];
    let mut args = vec!["ior", "make", "--host", "h", "--key", "k"];
    components.iter().for_each(|component| args.extend(["--component", component]));
    let decoded = run(["ior", "decode", run(args).expect().trim()]).expect();
    for part in [
        "1 mechanism, the server keeps sessions\n",
        "1, requires integrity, confidentiality, trust in the client\n",
        "TLS at h:2684\n",
        "by user and password (GSSUP, 2.23.130.1.1.1)\n",
        "types: anonymous, principal name\n",
        "supports identity assertion\n",
        "port 2685\n",
        "supports integrity, confidentiality, trust in the target, trust in the client\n",
        "(real-time priority model)\n",
        "code base    http\n",
        "custom marshalling up to version 2\n",
        "h:2809, without a priority (TAO)\n",
        "takes bidirectional GIOP\n",
        "malformed: ",
    ] {
        assert!(decoded.contains(part), "{part} is not in\n{decoded}");
    }
}
