//! `ironorb ifr` as a process: loaded while it serves, killed, looked at again.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use ironorb_tests::command::{ironorb, run};

/// `ironorb ifr serve`; killed when dropped.
struct Serving {
    child: Child,
    url: String,
}

impl Serving {
    fn start(store: &str) -> Serving {
        let mut command = Command::new(ironorb());
        command.args(["ifr", "serve", "--endpoint", "iiop://127.0.0.1:0", "--store", store]);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let url = lines.map(Result::unwrap).find_map(|line| line.strip_prefix("ready ").map(str::to_owned));
        Serving { child, url: url.expect("it says when it is ready") }
    }

    fn ask<'a>(&'a self, command: &'a str, rest: &[&'a str]) -> Vec<&'a str> {
        [&["ifr", command, "--repository", &self.url], rest].concat()
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // On Unix this is SIGKILL.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn what_was_loaded_while_it_served_survives_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (store, types, bank) = (path("store"), path("types.idl"), path("bank.idl"));
    std::fs::write(&types, "typedef fixed<9, 2> Money;").unwrap();
    let text =
        "#include \"types.idl\"\ninterface Account { void pay(in Money amount); const long DAYS = EXTRA; };";
    std::fs::write(&bank, text).unwrap();

    let serving = Serving::start(&store);
    let loaded = run(serving.ask("load", &["-D", "EXTRA=3", &bank])).expect();
    assert_eq!(loaded, format!("{bank}: 4 added, 0 updated, 0 removed\n"));
    let in_use = run(["ifr", "load", "--store", &store, &types]).expect_failure(1);
    assert!(in_use.contains("in use"), "{in_use}");
    drop(serving);

    let serving = Serving::start(&store);
    let listed = run(serving.ask("list", &["--recursive"])).expect();
    let expected =
        ["Money  (typedef)", "Account::  (interface)", "  pay  (operation)", "  DAYS  (const)"].join("\n");
    assert_eq!(listed, expected + "\n");
    let shown = run(serving.ask("show", &["IDL:Account:1.0"])).expect();
    assert!(shown.ends_with("  void pay(in Money amount);\n"), "{shown}");
    let shown = run(serving.ask("show", &["Account::DAYS"])).expect();
    assert!(shown.ends_with("  long = 3\n"), "{shown}");

    let kept = run(serving.ask("remove", &["Money"])).expect_failure(1);
    assert!(kept.contains("remove them first"), "{kept}");
    std::fs::write(&bank, "struct Account { long x; };").unwrap();
    let refused = run(serving.ask("load", &[&bank])).expect_failure(1);
    assert!(refused.contains("has an interface, ::Account"), "{refused}");
    run(serving.ask("remove", &["Account"])).expect();
    run(serving.ask("load", &[&bank])).expect();
    let missing = run(serving.ask("show", &["Account::pay"])).expect_failure(1);
    assert!(missing.contains("not defined"), "{missing}");
}
