//! `ironorb call`: calls any operation of any object with JSON.

use std::io::{ErrorKind, Write as _};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use ironorb::poa::{ObjectId, RequestProcessing, ServantActivator, Unavailable};
use ironorb::{
    CompletionStatus, MinorCode, ObjectRef, Orb, Poa, PoaPolicies, Servant, SystemException,
    SystemExceptionKind, TypedRef,
};
use ironorb_tests::command::{Done, NamingProcess, bash, done, ironorb, run};
use ironorb_tests::testing::{Derived, Probe, ProbeRef};
use ironorb_tests::{Deriving, Hooked, Probing, eventually};
use serde_json::{Value, json};

const PROBE_IDL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/idl/probe.idl");
const NAMING_IDL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../idl/CosNaming.idl");

/// An object of `probe.idl` with its ORB and its reference.
struct Served {
    _orb: Orb,
    ior: String,
}

impl Served {
    fn probe(servant: impl Probe) -> Served {
        let orb = server();
        let probe: ironorb_tests::testing::ProbeRef = orb.root_poa().activate(servant).unwrap();
        Served { ior: probe.object().to_ior_string(), _orb: orb }
    }

    fn derived(servant: impl Derived) -> Served {
        let orb = server();
        let derived: ironorb_tests::testing::DerivedRef = orb.root_poa().activate(servant).unwrap();
        Served { ior: derived.object().to_ior_string(), _orb: orb }
    }

    fn call(&self, args: &[&str]) -> Done {
        run(["call", &self.ior].iter().chain(args).chain(&["--idl", PROBE_IDL]))
    }

    #[track_caller]
    fn json(&self, args: &[&str]) -> Value {
        serde_json::from_str(&self.call(args).expect()).unwrap()
    }

    /// Expects the exit code 2: wrong usage, which the command reports without the object.
    #[track_caller]
    fn refused(&self, args: &[&str], parts: &[&str]) {
        assert_says(&self.call(args).expect_failure(2), parts);
    }

    /// Expects the exit code 1: the command understood the call, and the call failed.
    #[track_caller]
    fn failed(&self, args: &[&str], parts: &[&str]) {
        assert_says(&self.call(args).expect_failure(1), parts);
    }
}

#[track_caller]
fn assert_says(said: &str, parts: &[&str]) {
    for part in parts {
        assert!(said.contains(part), "{part} is not in\n{said}");
    }
}

fn server() -> Orb {
    Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().build().unwrap()
}

/// Runs `ironorb call` with `input` on standard input.
fn with_input(args: &[&str], input: &str) -> Done {
    let mut command = Command::new(ironorb());
    command.arg("call").args(args);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // A command that refuses its arguments ends without reading standard input.
    match child.stdin.take().unwrap().write_all(input.as_bytes()) {
        Err(e) if e.kind() == ErrorKind::BrokenPipe => {}
        written => written.unwrap(),
    }
    done(&child.wait_with_output().unwrap())
}

/// The JSON after the first line of the output.
#[track_caller]
fn json_of(said: &str) -> Value {
    let (_, rest) = said.split_once('\n').unwrap();
    serde_json::from_str(rest).unwrap_or_else(|e| panic!("{e}: {rest}"))
}

#[test]
fn operations_take_json_and_give_json() {
    let probe = Served::probe(Probing::default());
    assert_eq!(probe.json(&["add", "2", "-5"]), json!(-3));
    assert_eq!(probe.json(&["add", r#"{"b": 1, "a": 2147483646}"#]), json!(2147483647));
    assert_eq!(probe.json(&["ping"]), Value::Null);
    // Texts with and without quotes.
    assert_eq!(probe.json(&["echo", r#""a\tb""#]), json!("a\tb"));
    assert_eq!(probe.json(&["echo", "hello there"]), json!("hello there"));
    assert_eq!(probe.json(&["echo", "42"]), json!("42"));
    assert_eq!(probe.json(&["echo", r#"{"text": "by name"}"#]), json!(r#"{"text": "by name"}"#));
    assert_eq!(probe.json(&["reflect", "aXJvbg=="]), json!("aXJvbg=="));
    assert_eq!(probe.json(&["reflect", r#"{"data": [105, 114]}"#]), json!("aXI="));
    // References are accepted in the form in which they are printed.
    let itself = probe.json(&["itself"]);
    let itself = itself.as_str().unwrap();
    assert_eq!(probe.json(&["is_same", itself]), json!(true));
    assert_eq!(probe.json(&["is_same", "null"]), json!(false));
}

#[test]
fn attributes_are_read_and_set_by_their_names() {
    let probe = Served::probe(Probing::default());
    assert_eq!(probe.json(&["label"]), json!(""));
    assert_eq!(probe.json(&["label=red = 1"]), Value::Null);
    assert_eq!(probe.json(&["label"]), json!("red = 1"));
    assert_eq!(probe.json(&["_set_label", r#""blue""#]), Value::Null);
    assert_eq!(probe.json(&["_get_label"]), json!("blue"));
    probe.refused(&["ticks=3"], &["`ticks` of Probe is a readonly attribute"]);
    // A oneway has no reply, so the test waits for its effect.
    probe.call(&["tick"]).expect();
    eventually("the tick arrives", || probe.json(&["ticks"]) == json!(1));
}

#[test]
fn arguments_come_from_files_and_standard_input() {
    let probe = Served::probe(Probing::default());
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        format!("@{}", path.display())
    };
    let both = file("both.json", "{\n  \"a\": 20,\n  \"b\": 1\n}\n");
    assert_eq!(probe.json(&["add", &both]), json!(21));
    let one = file("one.json", "30\n");
    assert_eq!(probe.json(&["add", &one, "1"]), json!(31));
    let at = [probe.ior.as_str(), "--idl", PROBE_IDL];
    let from_stdin = |args: &[&str], input: &str| with_input(&[&at[..], args].concat(), input);
    assert_eq!(from_stdin(&["add", "-"], r#"{"a": 40, "b": 1}"#).expect(), "41\n");
    assert_eq!(from_stdin(&["add", "1", "-"], "50").expect(), "51\n");
    let said = from_stdin(&["add", "-", "-"], "50").expect_failure(2);
    assert!(said.contains("only one argument can come from standard input"), "{said}");
    let said = from_stdin(&["add", "1", "-"], "{").expect_failure(2);
    assert!(said.contains("standard input is not JSON: EOF"), "{said}");
    // A text in a file or on standard input needs no quotes, and JSON strings have them.
    for (text, meant) in [
        ("plain {text\n", "plain {text"),
        ("two\nlines\r\n", "two\nlines"),
        ("\"quoted\\n\"\n", "quoted\n"),
        ("17\n", "17"),
        ("{\"text\": \"by name\"}\n", "by name"),
        ("{\"other\": 1}", "{\"other\": 1}"),
        ("\n", ""),
    ] {
        assert_eq!(probe.json(&["echo", &file("text", text)]), json!(meant), "{text:?}");
    }
    probe.failed(&["add", "@no/such/file"], &["cannot read no/such/file", "No such file"]);
    // A reference in a file.
    let ior = file("object.ior", &probe.ior).replace('@', "file:");
    assert_eq!(run(["call", &ior, "add", "1", "1", "--idl", PROBE_IDL]).expect(), "2\n");
}

#[test]
fn interfaces_are_listed_with_what_they_inherit() {
    let derived = Served::derived(Deriving::default());
    let listed = derived.call(&["--list"]).expect();
    assert!(listed.starts_with("interface Derived : Probe {\n    string depth();\n"), "{listed}");
    for line in [
        "    readonly attribute unsigned long ticks;\n",
        "    attribute string label;\n",
        "    void refuse(in string why) raises (Refused);\n",
        "    oneway void tick();\n",
    ] {
        assert!(listed.contains(line), "{line} is not in\n{listed}");
    }
    assert_eq!(derived.json(&["depth"]), json!("derived"));
    assert_eq!(derived.json(&["add", "1", "2"]), json!(3));
    // With the type of its base, the object offers the base's operations only.
    derived.refused(
        &["depth", "--interface", "testing::Probe"],
        &["Probe has no operation or attribute `depth`"],
    );
    derived
        .refused(&["depth", "--interface", "Prob"], &["no interface Prob is known", "IDL:testing/Probe:1.0"]);
}

#[test]
fn exceptions_are_shown_in_words_and_as_json() {
    let probe = Served::probe(Probing::default());
    let done = probe.call(&["refuse", "not today"]);
    assert_eq!(done.out, "");
    let said = done.expect_failure(1);
    assert!(said.starts_with("error: `refuse` raised Refused\n"), "{said}");
    let expected = json!({"exception": "IDL:testing/Refused:1.0", "members": {"why": "not today"}});
    assert_eq!(json_of(&said), expected);
    let said = probe.call(&["refuse", "no", "--compact"]).expect_failure(1);
    assert_eq!(said.lines().count(), 2, "{said}");

    probe.failed(
        &["raise_system", "7"],
        &[
            "error: `raise_system` failed\n",
            "  NO_PERMISSION: ",
            "  minor code: 0x00000007",
            "completed: yes",
        ],
    );
    probe.refused(&["raise_system", "0x"], &["the argument `minor`: $: expected a whole number"]);
    // A minor code of the OMG has a meaning for certain exceptions only. The standard defines none with
    // this number for NO_PERMISSION.
    probe.failed(&["raise_system", "1330446337"], &["0x4f4d0001, 1 of the standard's for NO_PERMISSION"]);
    probe.failed(&["_interface"], &["INTF_REPOS", "0x4f4d0001, no interface repository is available"]);
}

#[test]
fn deadlines_and_orb_options_apply() {
    let probe = Served::probe(Probing::default());
    probe.failed(
        &["block", "-ORBcallTimeout", "500ms"],
        &["TIMEOUT", "completed: maybe; calling again could repeat the operation", "help: --timeout SECONDS"],
    );
    probe.call(&["release"]).expect();
    assert_eq!(probe.json(&["add", "1", "1", "-ORBgiopVersion=1.0"]), json!(2));
    probe.refused(&["ping", "-ORBgiopVersio", "1.0"], &["do you mean giopVersion?"]);
    // After `--`, an option is an argument.
    let done = run(["call", &probe.ior, "--idl", PROBE_IDL, "echo", "--", "-ORBx"]);
    assert_eq!(done.expect(), "\"-ORBx\"\n");
}

#[test]
fn errors_name_the_mistake_and_a_likely_correction() {
    let probe = Served::probe(Probing::default());
    probe.refused(
        &["reflekt", "1"],
        &["error: Probe has no operation or attribute `reflekt`", "help: `reflect` is likely meant"],
    );
    probe.refused(&["lable=red"], &["Probe has no attribute `lable`", "`label` is likely meant"]);
    let said = probe.call(&["something_else"]).expect_failure(2);
    assert!(said.contains("--list shows") && !said.contains("likely"), "{said}");
    probe.refused(
        &["add", "1"],
        &["error: add takes 2 arguments, a, b, not 1", "help: long add(in long a, in long b)"],
    );
    probe.refused(&["ping", "1"], &["ping takes no arguments, not 1"]);
    probe.refused(&["add", r#"{"a": 1}"#], &["the argument `b` is missing"]);
    probe.refused(&["add", r#"{"a": 1, "b": 2, "c": 3}"#], &["add has no parameter `c`"]);
    probe.refused(&["add", "1", "2147483648"], &["the argument `b`: $: expected a whole number"]);
    probe.refused(&["add", "1", "[2"], &["the argument `b` is not JSON: EOF"]);
    probe.refused(&["reflect", "[1, 2, 256]"], &["the argument `data`: $[2]: expected a whole number"]);

    let call = |args: &[&str]| run(["call"].iter().chain(args)).expect_failure(1);
    let said = call(&[&probe.ior, "ping"]);
    assert!(said.contains("--idl FILE names"), "{said}");
    let said = call(&[&probe.ior, "list", "1", "--idl", NAMING_IDL]);
    assert!(
        said.starts_with("error: the object's interface is not known, IDL:testing/Probe:1.0\n"),
        "{said}"
    );
    assert!(said.contains("CosNaming.idl: it has none of these interfaces"), "{said}");
    let said = call(&[&probe.ior, "destroy", "--idl", NAMING_IDL, "--interface", "BindingIterator"]);
    assert!(said.contains("BAD_OPERATION") && said.contains("_repository_id"), "{said}");
    let said = run(["call", "IOR:00", "ping", "--idl", PROBE_IDL]).expect_failure(2);
    assert!(said.contains("the reference leads to no object"), "{said}");
    let said = call(&["corbaloc::127.0.0.1:1/x", "ping", "--idl", PROBE_IDL]);
    assert!(said.contains("TRANSIENT") && said.contains("is the server running at 127.0.0.1:1?"), "{said}");
    let folder = tempfile::tempdir().unwrap();
    let bad = folder.path().join("bad.idl");
    std::fs::write(&bad, "interface I { strin s(); };\n").unwrap();
    let said = call(&[&probe.ior, "ping", "--idl", bad.to_str().unwrap()]);
    assert!(said.contains("bad.idl has errors") && said.contains("bad.idl:1:15"), "{said}");
    run(["call", &probe.ior, "ping", "--idl", PROBE_IDL, "--timeout", "9.5"]).expect();
    for args in [
        &["call"][..],
        &["call", &probe.ior],
        &["call", &probe.ior, "ping", "--time", "0"],
        &["call", &probe.ior, "ping", "--timeout", "0"],
    ] {
        run(args).expect_failure(2);
    }
}

#[test]
fn operations_of_corba_object_need_no_idl() {
    let probe = Served::probe(Probing::default());
    let call = |args: &[&str]| run(["call", &probe.ior].iter().chain(args)).expect();
    assert_eq!(call(&["_repository_id"]), "\"IDL:testing/Probe:1.0\"\n");
    assert_eq!(call(&["_is_a", "IDL:testing/Probe:1.0"]), "true\n");
    assert_eq!(call(&["_is_a", "IDL:testing/Derived:1.0"]), "false\n");
    assert_eq!(call(&["_non_existent"]), "false\n");
}

#[test]
fn out_parameters_are_printed_beside_the_result() {
    let service = NamingProcess::start_with(&["--memory"], "127.0.0.1:0");
    // The reference has no type, so the command asks the object for its interface.
    let root = format!("corbaloc::1.2@{}/NameService", service.address);
    let call = |args: &[&str]| run(["call", &root, "--idl", NAMING_IDL].iter().chain(args));
    let json = |args: &[&str]| -> Value { serde_json::from_str(&call(args).expect()).unwrap() };
    assert!(call(&["--list"]).expect().starts_with("interface NamingContextExt : NamingContext {\n"));
    for name in ["a", "b"] {
        let name = json!([{"id": name, "kind": "k"}]).to_string();
        assert!(json(&["bind_new_context", &name]).as_str().unwrap().starts_with("IOR:"));
    }
    let binding = |id: &str| json!({"binding_name": [{"id": id, "kind": "k"}], "binding_type": "ncontext"});
    let listed = json(&["list", "10"]);
    assert_eq!(listed, json!({"out": {"bl": [binding("a"), binding("b")], "bi": null}}));
    // The returned iterator can be called, and its operations have a result beside their parameters.
    let listed = json(&["list", "1"]);
    assert_eq!(listed["out"]["bl"], json!([binding("a")]));
    let iterator = listed["out"]["bi"].as_str().unwrap();
    let next = run(["call", iterator, "next_one", "--idl", NAMING_IDL, "--compact"]).expect();
    assert_eq!(
        serde_json::from_str::<Value>(&next).unwrap(),
        json!({"result": true, "out": {"b": binding("b")}})
    );
    assert_eq!(next.lines().count(), 1, "{next}");

    let said = call(&["resolve", r#"[{"id": "x", "kind": ""}]"#]).expect_failure(1);
    let expected = json!({
        "exception": "IDL:omg.org/CosNaming/NamingContext/NotFound:1.0",
        "members": {"why": "missing_node", "rest_of_name": [{"id": "x", "kind": ""}]},
    });
    assert_eq!(json_of(&said), expected);
    let said = call(&["resolve", r#"[{"id": "x"}]"#]).expect_failure(2);
    assert!(said.contains("the argument `n`: $[0]: the member \"kind\" is missing"), "{said}");
    // By its name in the naming service.
    let url = format!("corbaname::1.2@{}#a.k", service.address);
    let listed = run(["call", &url, "list", "10", "--idl", NAMING_IDL, "--compact"]).expect();
    assert_eq!(listed, "{\"out\":{\"bl\":[],\"bi\":null}}\n");
}

#[test]
fn time_repeats_a_call_and_prints_latencies() {
    let pings = Arc::new(AtomicU32::new(0));
    let counted = pings.clone();
    let probe = Served::probe(Hooked::new(move || {
        counted.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }));
    let done = probe.call(&["ping", "--time", "25"]);
    assert!(done.err.starts_with("25 calls: min "), "{}", done.err);
    assert!(done.err.contains(", median ") && done.err.contains(", p99 "), "{}", done.err);
    assert_eq!(done.expect(), "null\n");
    assert_eq!(pings.load(Ordering::SeqCst), 25);
    // The first failing call ends the measurement.
    let said = probe.call(&["refuse", "no", "--time", "25"]).expect_failure(1);
    assert!(!said.contains("calls:") && said.contains("raised Refused"), "{said}");
}

#[test]
fn shells_complete_the_command() {
    for shell in ["bash", "zsh", "fish"] {
        let script = run(["completions", shell]).expect();
        assert!(
            script.contains("call") && script.contains("interface") && script.contains("naming"),
            "{shell}"
        );
    }
    let script = run(["completions", "bash"]).expect();
    // The completions that Bash offers after `ironorb call IOR:00 --ti`.
    let asked = format!(
        "{script}\nCOMP_WORDS=(ironorb call IOR:00 --ti); COMP_CWORD=3; _ironorb ironorb --ti IOR:00; echo \"${{COMPREPLY[@]}}\""
    );
    let offered = bash(&asked).expect();
    assert_eq!(offered, "--time --timeout\n");
    run(["completions", "tcsh"]).expect_failure(2);
}

#[test]
fn a_template_of_the_arguments_is_printed_and_accepted() {
    let service = NamingProcess::start_with(&["--memory"], "127.0.0.1:0");
    let url = format!("corbaloc::1.2@{}/NameService", service.address);
    let call = |args: &[&str]| run(["call", &url].iter().chain(args).chain(&["--idl", NAMING_IDL]));
    let template: Value = serde_json::from_str(&call(&["bind", "--template"]).expect()).unwrap();
    assert_eq!(template, json!({"n": [{"id": "", "kind": ""}], "obj": null}));
    assert_eq!(call(&["new_context", "--template"]).expect(), "{}\n");
    // The operation accepts the filled template.
    let mut filled = template.clone();
    filled["n"][0]["id"] = json!("thing");
    filled["obj"] = json!(url);
    let filled = filled.to_string();
    call(&["bind", &filled]).expect();
    assert_eq!(run(["naming", "list", "--naming", &service.address]).expect(), "thing\n");
    // With `--fill`, members that are left out have their defaults.
    let said = call(&["unbind", r#"[{"id": "thing"}]"#]).expect_failure(2);
    assert!(said.contains("the member \"kind\" is missing"), "{said}");
    call(&["unbind", r#"[{"id": "thing"}]"#, "--fill"]).expect();
    assert_eq!(run(["naming", "list", "--naming", &service.address]).expect(), "");
    assert_eq!(call(&["list", "--fill", "--compact"]).expect(), "{\"out\":{\"bl\":[],\"bi\":null}}\n");
    call(&["bind", "--template", "--time", "3"]).expect_failure(2);
}

#[test]
fn a_type_is_described_by_any_of_its_names() {
    let probe = Served::probe(Probing::default());
    let describe = |name: &str| run(["call", &probe.ior, "--describe", name, "--idl", NAMING_IDL]);
    let expected = "\
// IDL:omg.org/CosNaming/Binding:1.0
struct Binding {
    Name binding_name;
    BindingType binding_type;
};
";
    for name in ["CosNaming::Binding", "Binding", "IDL:omg.org/CosNaming/Binding:1.0"] {
        assert_eq!(describe(name).expect(), expected, "{name}");
    }
    let text = describe("BindingType").expect();
    assert!(text.ends_with("enum BindingType { nobject, ncontext };\n"), "{text}");
    let text = describe("BindingIterator").expect();
    assert!(text.contains("interface BindingIterator {\n    boolean next_one(out Binding b);\n"), "{text}");
    let said = describe("Bindin").expect_failure(2);
    assert!(said.contains("no type Bindin is known") && said.contains("Binding, "), "{said}");
}

#[test]
fn server_details_of_an_exception_are_cut_to_one_line() {
    let orb = Orb::builder()
        .endpoint("iiop://127.0.0.1:0")
        .unwrap()
        .arguments(&mut vec!["-ORBexceptionDetails".to_owned(), "yes".to_owned()])
        .build()
        .unwrap();
    let stack = "java.lang.Error: closed\n\tat bank.Main.run(Main.java:7)\n\tat bank.Main.main(Main.java:3)";
    let failing = move || {
        let kind = SystemExceptionKind::Unknown;
        Err(SystemException::new(kind, MinorCode::NONE, CompletionStatus::Maybe).with_detail(stack))
    };
    let probe: ironorb_tests::testing::ProbeRef = orb.root_poa().activate(Hooked::new(failing)).unwrap();
    let ior = probe.object().to_ior_string();
    let said = run(["call", &ior, "ping", "--idl", PROBE_IDL]).expect_failure(1);
    assert_says(
        &said,
        &["the server says: java.lang.Error: closed\n", "(2 more lines: --verbose shows all)"],
    );
    assert!(!said.contains("bank.Main"), "{said}");
    let said = run(["call", &ior, "ping", "--idl", PROBE_IDL, "--verbose"]).expect_failure(1);
    assert_says(&said, &["java.lang.Error: closed\n", "at bank.Main.run(Main.java:7)\n", "Main.java:3"]);
    orb.shutdown(true).unwrap();
}

#[test]
fn a_failed_call_does_not_suggest_repository_id() {
    let probe = Served::probe(Probing::default());
    let said = run(["call", &probe.ior, "_component", "--compact"]).expect();
    assert_eq!(said, "null\n");
    let said = probe.call(&["raise_system", "7"]).expect_failure(1);
    assert!(!said.contains("_repository_id"), "{said}");
}

/// IORs of Orbix have octets after the reference.
#[test]
fn octets_after_a_reference_are_ignored_with_a_note() {
    let probe = Served::probe(Probing::default());
    let ior = format!("{}abcd", probe.ior);
    let done = run(["call", &ior, "add", "40", "2", "--idl", PROBE_IDL]);
    assert!(done.err.contains("note: 2 octets follow the reference in its text"), "{}", done.err);
    assert_eq!(done.expect(), "42\n");
    let decoded = run(["ior", "decode", &ior]).expect();
    assert!(decoded.contains("note           2 octets follow the reference"), "{decoded}");
}

#[test]
fn the_full_reference_of_an_object_is_found() {
    let probe = Served::probe(Probing::default());
    let done = run(["ior", "resolve", &probe.ior]);
    assert!(done.err.contains("note: the object is where the given IOR says"), "{}", done.err);
    assert_eq!(done.expect().trim(), probe.ior);
    let service = NamingProcess::start_with(&["--memory"], "127.0.0.1:0");
    run(["naming", "bind", "--naming", &service.address, "probe", &probe.ior]).expect();
    let done = run(["ior", "resolve", &format!("corbaname::1.2@{}#probe", service.address)]);
    assert!(done.err.contains("note: the naming service has this reference"), "{}", done.err);
    assert_eq!(done.expect().trim(), probe.ior);
    // A corbaloc has no type, so the command asks the object for it.
    let done = run(["ior", "resolve", &format!("corbaloc::1.2@{}/NameService", service.address)]);
    assert!(done.err.contains("code sets, are not known; the object reports its type"), "{}", done.err);
    let decoded = run(["ior", "decode", done.expect().trim()]).expect();
    assert_says(&decoded, &["IDL:omg.org/CosNaming/NamingContextExt:1.0\n", &service.address]);
    let none = format!("corbaloc::1.2@{}/Nothing", service.address);
    let said = run(["ior", "resolve", &none]).expect_failure(1);
    assert!(said.contains("does not have this object"), "{said}");
    run(["ior", "resolve", "corbaloc:nonsense"]).expect_failure(2);
}

/// Forwards requests for each of its objects.
struct Forwarding(ObjectRef);

impl ServantActivator for Forwarding {
    fn incarnate(&self, _: &ObjectId, _: &Poa) -> Result<Arc<dyn Servant>, Unavailable> {
        Err(Unavailable::Forward(self.0.clone()))
    }
}

#[test]
fn the_reference_that_a_server_forwards_to_is_the_full_one() {
    let probe = Served::probe(Probing::default());
    let orb = server();
    let policies =
        PoaPolicies { request_processing: RequestProcessing::ServantManager, ..PoaPolicies::PERSISTENT };
    let poa = orb.root_poa().create_poa("forwarding", None, policies).unwrap();
    poa.set_servant_activator(Arc::new(Forwarding(orb.string_to_object(&probe.ior).unwrap()))).unwrap();
    let moved = poa.create_reference_with_id("moved", ProbeRef::REPOSITORY_ID).unwrap().to_ior_string();
    let done = run(["ior", "resolve", &moved]);
    assert!(done.err.contains("note: the server forwards clients to this reference"), "{}", done.err);
    assert_eq!(done.expect().trim(), probe.ior);
}
