//! `ironorb serve-mock` as a process, called by `ironorb call`.

use std::process::{Command, Stdio};

use ironorb_tests::command::{Done, NamingProcess, ServingProcess, ironorb, run};
use serde_json::{Value, json};
use tempfile::TempDir;

const PROBE_IDL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/idl/probe.idl");
const BANK: &str = "
    module Bank {
        exception Insufficient { long missing; };
        interface Account {
            attribute string owner;
            long withdraw(in long amount) raises (Insufficient);
            oneway void poke(in string what);
        };
        interface Branch { Account open(in string owner); };
    };
";

struct Files {
    folder: TempDir,
    idl: String,
}

impl Files {
    fn new() -> Files {
        let folder = tempfile::tempdir().unwrap();
        let idl = folder.path().join("bank.idl").to_str().unwrap().to_owned();
        std::fs::write(&idl, BANK).unwrap();
        Files { folder, idl }
    }

    fn write(&self, name: &str, text: &str) -> String {
        let path = self.folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }

    fn serve(&self, args: &[&str]) -> ServingProcess {
        ServingProcess::start(["serve-mock", &self.idl].iter().chain(args))
    }

    fn refused(&self, code: i32, args: &[&str]) -> String {
        run(["serve-mock", &self.idl].iter().chain(args)).expect_failure(code)
    }
}

fn url(mock: &ServingProcess, object: &str) -> String {
    format!("corbaloc::1.2@{}/{object}", mock.ready)
}

fn call(mock: &ServingProcess, object: &str, args: &[&str]) -> Done {
    run(["call", &url(mock, object), "--compact"].iter().chain(args))
}

#[test]
fn a_mock_answers_as_its_file_says_and_prints_calls() {
    let files = Files::new();
    let answers = json!({
        "Bank::Account": {
            "owner": "Anna",
            "withdraw": {
                "when": [{"arguments": {"amount": 5}, "result": 95}, {"arguments": {"amount": 0}, "system": "BAD_PARAM"}],
                "otherwise": {"exception": "Insufficient", "members": {"missing": 7}},
            },
        },
        "Account/bob": {"owner": "Bob"},
        "Branch": {"open": {"when": [{"arguments": {"owner": "bob"}, "result": {"$object": "Account/bob"}}]}},
    });
    let answers = files.write("answers.json", &answers.to_string());
    let mut mock = files.serve(&["--answers", &answers]);
    let announced: Vec<String> = ["Bank::Account", "Bank::Account/bob", "Bank::Branch"]
        .iter()
        .zip(["Account", "Account/bob", "Branch"])
        .map(|(name, key)| format!("{name}  {}", url(&mock, key)))
        .collect();
    assert_eq!(mock.announced, announced);
    let idl = ["--idl", files.idl.as_str()];
    let call = |object: &str, args: &[&str]| call(&mock, object, &[args, &idl].concat());
    assert!(call("Account", &["--list"]).expect().starts_with("interface Account {\n"));
    assert_eq!(call("Account", &["withdraw", "5"]).expect(), "95\n");
    let said = call("Account", &["withdraw", "6"]).expect_failure(1);
    assert!(said.contains("`withdraw` raised Insufficient") && said.contains(r#"{"missing":7}"#), "{said}");
    let said = call("Account", &["withdraw", "0"]).expect_failure(1);
    assert!(said.contains("BAD_PARAM"), "{said}");
    assert_eq!(call("Bank/Account", &["owner=Eva"]).expect(), "null\n");
    assert_eq!(call("Account", &["owner"]).expect(), "\"Eva\"\n");
    let bob = call("Branch", &["open", "bob"]).expect();
    let bob = bob.trim().trim_matches('"');
    assert_eq!(run(["call", bob, "owner", "--idl", &files.idl]).expect(), "\"Bob\"\n");
    // An operation that only the client's IDL has.
    let said = run(["call", bob, "add", "1", "2", "--idl", PROBE_IDL, "--interface", "testing::Probe"])
        .expect_failure(1);
    assert!(said.contains("BAD_OPERATION"), "{said}");

    let mut printed = |operation: &str| -> Value {
        loop {
            let mut line: Value = serde_json::from_str(&mock.line()).unwrap();
            assert!(line["at_ms"].is_u64(), "{line}");
            line.as_object_mut().unwrap().remove("at_ms");
            if line["operation"] == operation {
                return line;
            }
        }
    };
    assert_eq!(
        printed("withdraw"),
        json!({"object": "Bank::Account", "operation": "withdraw", "arguments": {"amount": 5}, "answer": {"result": 95}})
    );
    assert_eq!(printed("_set_owner")["arguments"], json!({"value": "Eva"}));
    assert_eq!(printed("open")["answer"], json!({"result": bob}));
    let ended = mock.terminate();
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), "stopping: SIGTERM\n"));
}

#[test]
fn numbers_keep_the_digits_that_were_typed() {
    let files = Files::new();
    let idl = files.write(
        "numbers.idl",
        "struct S { long double x; };
         struct Both { long double x; double y; };
         interface Numbers {
             void beside(inout Both b);
             void precise(inout long double x);
             void inside(inout S s);
             void large(inout unsigned long long x);
             void rough(inout double x);
         };",
    );
    let mock = ServingProcess::start(["serve-mock", &idl]);
    let ask = |name: &str, argument: &str| call(&mock, "Numbers", &[name, argument, "--idl", &idl]);
    let given = |name: &str, argument: &str| ask(name, argument).expect().trim_end().to_owned();
    assert_eq!(
        given("precise", "1.23456789012345678901234567890"),
        r#"{"out":{"x":"1.2345678901234567890123456789"}}"#
    );
    assert_eq!(given("precise", "1e2"), r#"{"out":{"x":"100"}}"#);
    assert_eq!(given("inside", r#"{"x": 0.1}"#), r#"{"out":{"s":{"x":"0.1"}}}"#);
    let rough: Value = serde_json::from_str(&given("rough", "100000000000000000000")).unwrap();
    assert_eq!(rough, json!({"out": {"x": 1e20}}));
    // A `double` would round these numbers, a `long double` keeps them.
    for digits in ["0.1000000000000000055", "1.23456789012345678901"] {
        let inside = format!(r#"{{"x": {digits}}}"#);
        assert_eq!(given("inside", &inside), format!(r#"{{"out":{{"s":{{"x":"{digits}"}}}}}}"#));
    }
    // A number that would lose digits is refused.
    let said = ask("beside", r#"{"x": 1.23456789012345678901, "y": 1}"#).expect_failure(2);
    assert!(said.contains("$.x: expected a number of at most 15 digits, or a string"), "{said}");
    let said = ask("large", "18446744073709551616").expect_failure(2);
    assert!(said.contains("18446744073709551615, found \"18446744073709551616\""), "{said}");
}

#[test]
fn refused_wide_characters_come_with_help() {
    let files = Files::new();
    let idl = files.write(
        "wide.idl",
        "valuetype Note { public wstring text; };
         interface Wide { void say(in wstring text); void keep(in Note note); };",
    );
    let mock = ServingProcess::start(["serve-mock", &idl, "--ior"]);
    let note = r#"{"text": "hm"}"#;
    for (operation, argument) in [("say", "hm"), ("keep", note)] {
        let bare =
            |args: &[&str]| call(&mock, "Wide", &[&[operation, argument, "--idl", &idl], args].concat());
        let said = bare(&[]).expect_failure(1);
        assert!(said.contains("INV_OBJREF") && said.contains("help: wide characters need"), "{said}");
        let ior = mock.announced[0].rsplit(' ').next().unwrap();
        let with_ior =
            |args: &[&str]| run([&["call", ior, operation, argument, "--idl", &idl], args].concat());
        with_ior(&[]).expect();
        let said = with_ior(&["-ORBgiopVersion", "1.0"]).expect_failure(1);
        assert!(said.contains("MARSHAL") && said.contains("help: GIOP 1.0 has no wide"), "{said}");
    }
}

#[test]
fn the_error_says_which_server_cannot_be_reached() {
    let files = Files::new();
    let nowhere = "InterfaceRepository=corbaloc::1.2@127.0.0.1:1/InterfaceRepository";
    let mock = ServingProcess::start_knowing(nowhere, ["serve-mock", &files.idl]);
    // The servant's repository cannot be reached. The servant can.
    let said = call(&mock, "Account", &["_interface"]).expect_failure(1);
    assert!(said.contains("INTF_REPOS") && !said.contains("is the server running"), "{said}");
    // An exception that the servant raises does not mean that it cannot be reached.
    let answers = r#"{"Account": {"withdraw": {"system": "TRANSIENT"}}}"#;
    let mock = files.serve(&["--answers", &files.write("answers.json", answers)]);
    let said = call(&mock, "Account", &["withdraw", "1", "--idl", &files.idl]).expect_failure(1);
    let answers = format!("help: the server at {} answers", mock.ready);
    assert!(said.contains("TRANSIENT") && said.contains(&answers), "{said}");
    assert!(!said.contains("is the server running"), "{said}");
}

#[test]
fn a_signal_ends_a_mock_with_a_delayed_reply() {
    let files = Files::new();
    let answers = files
        .write("a.json", r#"{"Account": {"withdraw": {"delay_ms": 3600000, "result": 1}, "owner": "x"}}"#);
    let mock = files.serve(&["--answers", &answers, "--interface", "Bank::Account", "--quiet"]);
    assert_eq!(mock.announced.len(), 1, "{:?}", mock.announced);
    let mut waiting = Command::new(ironorb());
    waiting.args(["call", &url(&mock, "Account"), "withdraw", "1", "--idl", &files.idl, "--timeout", "60"]);
    let mut waiting = waiting.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    // The test cannot see from outside whether the delayed call waits already. It gets a reply or a refusal
    // in either case.
    assert_eq!(call(&mock, "Account", &["owner", "--idl", &files.idl]).expect(), "\"x\"\n");
    let ended = mock.terminate();
    assert_eq!((ended.code, ended.out.as_str()), (Some(0), ""));
    assert!(waiting.wait().unwrap().code().is_some());
}

#[test]
fn a_mock_is_found_in_the_naming_service() {
    let files = Files::new();
    let service = NamingProcess::start_with(&["--memory"], "127.0.0.1:0");
    let naming = ["--naming", service.address.as_str()];
    let mock = files
        .serve(&[&naming[..], &["--name", "Bank::Account=bank/main", "--name", "Branch=branch.x"]].concat());
    let found = |name: &str| format!("corbaname::1.2@{}#{name}", service.address);
    let call = |name: &str, args: &[&str]| run([&["call", &found(name), "--idl", &files.idl], args].concat());
    assert_eq!(call("bank/main", &["withdraw", "1"]).expect(), "0\n");
    assert!(call("branch.x", &["open", "x"]).expect().starts_with("\"IOR:"));
    assert_eq!(mock.terminate().code, Some(0));
    let said = call("bank/main", &["withdraw", "1"]).expect_failure(1);
    assert!(said.contains("leads to no object"), "{said}");

    let mock = files.serve(&[&naming[..], &["--name", "main", "--interface", "Branch"]].concat());
    assert!(call("main", &["open", "x"]).expect().starts_with("null"), "an Account is not served");
    drop(mock);
    let said = files.refused(2, &[&naming[..], &["--name", "main"]].concat());
    assert!(said.contains("which of the 2 objects?") && said.contains("OBJECT=NAME"), "{said}");
    let said = files.refused(2, &[&naming[..], &["--name", "Acc=main"]].concat());
    assert!(
        said.contains("there is no object Acc") && said.contains("Bank::Account, Bank::Branch"),
        "{said}"
    );
    let said = files.refused(1, &["--name", "Account=main", "--naming", "127.0.0.1:1"]);
    assert!(said.contains("cannot register Bank::Account as main") && said.contains("TRANSIENT"), "{said}");
}

#[test]
fn mistakes_are_reported_before_the_mock_serves() {
    let files = Files::new();
    let bad = files.write("bad.json", "{\"Account\": ");
    let said = files.refused(1, &["--answers", &bad]);
    assert!(said.contains("bad.json is not JSON: EOF while parsing a value at line 1"), "{said}");
    let said = files.refused(1, &["--answers", "/no/such/file"]);
    assert!(said.contains("cannot read /no/such/file: No such file"), "{said}");
    let wrong = files.write("wrong.json", r#"{"Account": {"withdraw": {"sequence": [1, {"result": "x"}]}}}"#);
    let said = files.refused(1, &["--answers", &wrong]);
    assert!(
        said.starts_with("error: ") && said.contains("wrong.json does not fit the interfaces\n"),
        "{said}"
    );
    assert!(said.contains("  $.Account.withdraw.sequence[1].result\n  expected a whole number"), "{said}");
    let said = files.refused(2, &["--interface", "Acount"]);
    assert!(said.contains("no interface Acount is known"), "{said}");
    let said = files.refused(2, &["--endpoint", "iiop://256.0.0.1:x"]);
    assert!(said.starts_with("error: "), "{said}");
    let none = files.write("none.idl", "struct Only { long x; };");
    let said = run(["serve-mock", &none]).expect_failure(1);
    assert!(said.contains("define no interface that objects could have"), "{said}");
    let broken = files.write("broken.idl", "interface I { strin s(); };");
    let said = run(["serve-mock", &broken]).expect_failure(1);
    assert!(said.contains("broken.idl has errors") && said.contains("broken.idl:1:15"), "{said}");
    run(["serve-mock"]).expect_failure(2);
}

/// A mock answers with values of types that only its IDL has, where the operation declares a base or an
/// abstract interface. Like a server with compiled types, it sends them whole.
#[test]
fn a_mock_answers_with_values_of_derived_types() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let idl = write(
        "shapes.idl",
        "module Shapes {
            abstract interface Drawn {};
            valuetype Base { public long a; };
            valuetype Plain : Base supports Drawn { public short b; };
            valuetype Longer : truncatable Base { public short c; };
            interface Board { Base same(in Base b); Base fixed_one(); Drawn draw(in Drawn d); };
        };",
    );
    let plain = json!({"@type": "IDL:Shapes/Plain:1.0", "a": 1, "b": 2});
    let longer = json!({"@type": "IDL:Shapes/Longer:1.0", "a": 3, "c": 4});
    let answers = json!({
        "Board": {"same": {"echo": true}, "draw": {"echo": true}, "fixed_one": {"result": plain}},
    });
    let answers = write("answers.json", &answers.to_string());
    let mock = ServingProcess::start(["serve-mock", &idl, "--answers", &answers]);
    let answer = |args: &[&str]| -> Value {
        let said =
            run(["call", &url(&mock, "Board"), "--compact", "--idl", &idl].iter().chain(args)).expect();
        serde_json::from_str(&said).unwrap()
    };
    assert_eq!(answer(&["fixed_one"]), plain);
    for value in [&plain, &longer] {
        assert_eq!(answer(&["same", &value.to_string()]), *value);
    }
    assert_eq!(answer(&["draw", &plain.to_string()]), plain);
}
