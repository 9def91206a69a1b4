//! `ironorb ifr` as a process: loaded while it serves, killed, and started again.

use ironorb_tests::command::{ServingProcess, run};

fn serve(store: &str) -> ServingProcess {
    ServingProcess::start(["ifr", "serve", "--endpoint", "iiop://127.0.0.1:0", "--store", store])
}

fn ask<'a>(serving: &'a ServingProcess, command: &'a str, rest: &[&'a str]) -> Vec<&'a str> {
    [&["ifr", command, "--ifr", &serving.ready], rest].concat()
}

#[test]
fn definitions_loaded_while_serving_survive_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (store, types, bank) = (path("store"), path("types.idl"), path("bank.idl"));
    std::fs::write(&types, "typedef fixed<9, 2> Money;").unwrap();
    let text =
        "#include \"types.idl\"\ninterface Account { void pay(in Money amount); const long DAYS = EXTRA; };";
    std::fs::write(&bank, text).unwrap();

    let serving = serve(&store);
    let loaded = run(ask(&serving, "load", &["-D", "EXTRA=3", &bank])).expect();
    assert_eq!(loaded, format!("{bank}: 4 added, 0 updated, 0 removed\n"));
    let in_use = run(["ifr", "load", "--store", &store, &types]).expect_failure(1);
    assert!(in_use.contains("in use"), "{in_use}");
    drop(serving);

    let serving = serve(&store);
    let listed = run(ask(&serving, "list", &["--recursive"])).expect();
    let expected =
        ["Money  (typedef)", "Account::  (interface)", "  pay  (operation)", "  DAYS  (const)"].join("\n");
    assert_eq!(listed, expected + "\n");
    let account = "interface Account {\n    void pay(in ::Money amount);\n    const long DAYS = 3;\n};\n";
    let shown = run(ask(&serving, "show", &["IDL:Account:1.0"])).expect();
    assert_eq!(shown, format!("// IDL:Account:1.0\n{account}"));
    let shown = run(ask(&serving, "show", &["Account::DAYS"])).expect();
    assert_eq!(shown, "// IDL:Account/DAYS:1.0\nconst long DAYS = 3;\n");
    let exported = run(ask(&serving, "export", &[])).expect();
    assert_eq!(exported, format!("typedef fixed<9, 2> Money;\n{account}"));

    let refusal = run(ask(&serving, "remove", &["Money"])).expect_failure(1);
    assert!(refusal.contains("remove them first"), "{refusal}");
    std::fs::write(&bank, "struct Account { long x; };").unwrap();
    let refused = run(ask(&serving, "load", &[&bank])).expect_failure(1);
    assert!(refused.contains("has an interface, ::Account"), "{refused}");
    run(ask(&serving, "remove", &["Account"])).expect();
    run(ask(&serving, "load", &[&bank])).expect();
    let missing = run(ask(&serving, "show", &["Account::pay"])).expect_failure(1);
    assert!(missing.contains("not defined"), "{missing}");
}

#[test]
fn a_damaged_store_is_reported_and_not_changed() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (store, idl) = (path("store"), path("some.idl"));
    std::fs::write(&idl, "interface I { void run(); };").unwrap();
    run(["ifr", "load", "--store", &store, &idl]).expect();
    let whole = std::fs::read(&store).unwrap();
    let middle = whole.len() / 2;
    let garbled = whole.iter().map(|byte| byte ^ 0x5a).collect();
    let half_garbled = [&whole[..64], &vec![0xa5; whole.len() - 64]].concat();
    let damaged: [(&str, Vec<u8>); 4] = [
        ("truncated", whole[..middle].to_vec()),
        ("garbled", garbled),
        ("half-garbled", half_garbled),
        ("another", b"This is a letter and no store. ".repeat(400)),
    ];
    for (name, bytes) in damaged {
        let file = path(name);
        std::fs::write(&file, &bytes).unwrap();
        let message = run(["ifr", "load", "--store", &file, &idl]).expect_failure(1);
        assert!(message.contains("is damaged") || message.contains("is not a store"), "{name}: {message}");
        assert!(message.contains(name), "{message}");
    }
    // The undamaged store is still valid.
    let again = run(["ifr", "load", "--store", &store, &idl]).expect();
    assert!(again.contains("0 added, 2 updated"), "{again}");
}
