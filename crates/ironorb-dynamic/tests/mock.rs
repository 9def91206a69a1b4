//! Mocks: objects of any interface with prepared answers or defaults.

use std::sync::{Arc, Mutex};
use std::thread;

use ironorb::dynamic::{DynamicError, OperationDescription, Request, Results};
use ironorb::{CompletionStatus, ObjectRef, Orb, SystemExceptionKind, TypeCode};
use ironorb_dynamic::mock::{CallReport, Mock, MockError, Options};
use ironorb_dynamic::{Interfaces, json};
use serde_json::{Value, json};

const BANK: &str = "
    module Bank {
        exception Insufficient { long missing; };
        exception Closed {};
        enum Kind { current, saving }; typedef octet Grid[2][3];
        struct Entry { string text; long amount; Kind of; };
        typedef sequence<Entry> Entries;
        union Key switch (boolean) { case TRUE: long number; case FALSE: string name; };
        interface Account {
            attribute string owner;
            readonly attribute long balance;
            attribute Kind sort getraises (Closed) setraises (Closed);
            long withdraw(in long amount, in string why) raises (Insufficient, Closed);
            oneway void poke(in string what);
            Entries list(in long max, out long left);
            void swap(inout string a, inout Key b, out string c);
            string join(in string a, in string b, out string c, out long d);
            any what(in any thing);
            fixed<9, 2> rate(out sequence<octet> raw, out Grid grid);
        };
        interface Savings : Account { void lock(); };
        interface Branch { Account open(in string owner); Entry best(); Object any_of(); Branch next(out Savings s); };
    };
    interface Branch { boolean other(); };
    local interface Here { void f(); };
";

fn known() -> Interfaces {
    known_by("bank.idl", BANK)
}

fn known_by(name: &str, idl: &str) -> Interfaces {
    let mut known = Interfaces::new();
    known.add_idl_text(name, idl, &Default::default()).unwrap();
    known
}

/// A mock, and a client that calls it by messages.
struct Mocked {
    mock: Mock,
    server: Orb,
    client: Orb,
    known: Interfaces,
    calls: Arc<Mutex<Vec<CallReport>>>,
}

impl Mocked {
    fn with(answers: Value) -> Mocked {
        Mocked::of(known(), answers)
    }

    fn of(known: Interfaces, answers: Value) -> Mocked {
        let server = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().build().unwrap();
        let client = Orb::builder().no_endpoint().build().unwrap();
        let calls: Arc<Mutex<Vec<CallReport>>> = Arc::default();
        let recorded = calls.clone();
        let report =
            Some(Box::new(move |call: &CallReport| recorded.lock().unwrap().push(call.clone())) as _);
        let mock = Mock::start(&server, known.clone(), Options { answers, report, ..Options::default() });
        Mocked { mock: mock.unwrap(), server, client, known, calls }
    }

    fn object(&self, key: &str) -> ObjectRef {
        if key == "Wide" {
            // An address alone carries no code sets, which wide characters need.
            return self
                .client
                .string_to_object(&self.mock.objects()[0].reference().to_ior_string())
                .unwrap();
        }
        let address = &self.server.published_addresses()[0];
        self.client.string_to_object(&format!("corbaloc::1.2@{address}/{key}")).unwrap()
    }

    fn request(&self, key: &str, operation: &str, arguments: &[Value]) -> Request<'static> {
        let object = self.object(key);
        let interface = self.known.of(&object).unwrap();
        let operation = interface.find(operation).unwrap_or_else(|| panic!("no {operation}")).clone();
        let mut request = Request::new(&object, operation.clone());
        for ((index, parameter), json) in operation.sent().zip(arguments) {
            let value = json::from_json(&parameter.type_code, json, &self.known, None).unwrap();
            request.set_any(index, &value).unwrap();
        }
        request
    }

    /// Results as `ironorb call` prints them; exceptions as in prepared answers.
    fn call(&self, key: &str, operation: &str, arguments: &[Value]) -> Value {
        match self.request(key, operation, arguments).invoke() {
            Ok(results) => as_json(&results),
            Err(DynamicError::User(exception)) => {
                json!({"raised": exception.type_code().name().unwrap(), "members": json::to_json(&exception).unwrap()})
            }
            Err(DynamicError::System(e)) => json!({"system": e.kind.name(), "minor": e.minor.0}),
            Err(e) => panic!("{e}"),
        }
    }
}

fn as_json(results: &Results) -> Value {
    let result = json::to_json(&results.result().unwrap()).unwrap();
    let outs = results.outs().unwrap();
    if outs.is_empty() {
        return result;
    }
    let outs = outs.into_iter().map(|(name, value)| (name.to_owned(), json::to_json(&value).unwrap()));
    json!({"result": result, "out": Value::Object(outs.collect())})
}

impl Drop for Mocked {
    fn drop(&mut self) {
        self.mock.stop();
        let _ = self.client.shutdown(true);
        let _ = self.server.shutdown(true);
    }
}

#[test]
fn without_answers_there_are_defaults() {
    let bank = Mocked::with(Value::Null);
    let names: Vec<&str> = bank.mock.objects().iter().map(|object| object.name()).collect();
    assert_eq!(names, ["Bank::Account", "Bank::Branch", "Bank::Savings", "Branch"]);
    assert_eq!(bank.mock.objects()[0].keys(), ["Bank/Account", "Account"]);
    // Two interfaces have this simple name.
    assert_eq!(bank.mock.objects()[1].keys(), ["Bank/Branch"]);
    assert_eq!(bank.mock.objects()[3].keys(), ["Branch"]);
    assert_eq!(bank.call("Branch", "other", &[]), json!(false));
    assert_eq!(bank.call("Account", "withdraw", &[json!(5), json!("x")]), json!(0));
    assert_eq!(bank.call("Account", "list", &[json!(5)]), json!({"result": [], "out": {"left": 0}}));
    let swapped = bank.call("Savings", "swap", &[json!("a"), json!({"name": "b"})]);
    let b = json!({"discriminator": false, "name": "b"});
    assert_eq!(swapped, json!({"result": null, "out": {"a": "a", "b": b, "c": ""}}));
    assert_eq!(bank.call("Account", "what", &[json!({"type": "long", "value": 3})]), Value::Null);
    let rate = json!({"result": "0.00", "out": {"raw": "", "grid": [[0, 0, 0], [0, 0, 0]]}});
    assert_eq!(bank.call("Account", "rate", &[]), rate);
    assert_eq!(bank.call("Bank/Branch", "best", &[]), json!({"text": "", "amount": 0, "of": "current"}));
    assert_eq!(bank.call("Bank/Branch", "any_of", &[]), Value::Null);
    // References lead to objects that can be called.
    let opened = bank.request("Bank/Branch", "open", &[json!("a")]).invoke().unwrap();
    let account: ObjectRef = opened.result_as::<Option<ObjectRef>>().unwrap().unwrap();
    assert_eq!(account.type_id(), "IDL:Bank/Account:1.0");
    assert!(!account.non_existent().unwrap());
    let next = bank.request("Bank/Branch", "next", &[]).invoke().unwrap();
    let savings: ObjectRef = next.out_as::<Option<ObjectRef>>(0).unwrap().unwrap();
    assert_eq!(savings.type_id(), "IDL:Bank/Savings:1.0");
    assert!(savings.is_a("IDL:Bank/Account:1.0").unwrap());
}

#[test]
fn attributes_keep_what_they_are_set_to() {
    let bank = Mocked::with(json!({
        "Account": {"owner": "Anna", "balance": {"result": 7}},
        "Account/bob": {"owner": "Bob"},
        "Savings": {"_set_sort": {"sequence": [{"exception": "Closed"}, {}]}},
    }));
    let read = |key| bank.call(key, "_get_owner", &[]);
    assert_eq!(
        [read("Account"), read("Account/bob"), read("Savings")],
        [json!("Anna"), json!("Bob"), json!("")]
    );
    assert_eq!(bank.call("Bank/Account", "_set_owner", &[json!("Carl")]), Value::Null);
    assert_eq!(
        [read("Account"), read("Account/bob"), read("Savings")],
        [json!("Carl"), json!("Bob"), json!("")]
    );
    assert_eq!(bank.call("Account", "_get_balance", &[]), json!(7));
    // A call that raises an exception does not change the attribute.
    assert_eq!(bank.call("Savings", "_set_sort", &[json!("saving")])["raised"], json!("Closed"));
    assert_eq!(bank.call("Savings", "_get_sort", &[]), json!("current"));
    assert_eq!(bank.call("Savings", "_set_sort", &[json!("saving")]), Value::Null);
    assert_eq!(bank.call("Savings", "_get_sort", &[]), json!("saving"));
}

#[test]
fn answers_come_by_turn_and_by_arguments() {
    let entry = json!({"text": "x", "amount": -1, "of": "saving"});
    let bank = Mocked::with(json!({
        "Bank::Account": {
            "withdraw": {"when": [
                {"arguments": {"amount": 1, "why": "rent"}, "result": 10},
                {"arguments": {"amount": 1}, "sequence": [11, {"exception": "IDL:Bank/Closed:1.0"}]},
                {"arguments": {"why": "no"}, "system": "NO_PERMISSION", "minor": 42, "completed": "maybe"},
                {"arguments": {}, "exception": "Bank::Insufficient", "members": {"missing": 3}},
            ]},
            "list": {"sequence": [{"out": {"left": 9}}, {"result": [entry, entry]}], "after": "repeat"},
            "balance": {"sequence": [1, 2], "after": "default"},
            "join": {"echo": true},
            "what": {"echo": true},
            "sort": {"echo": {}},
            "swap": {"out": {"b": {"number": 8}}},
            "rate": {"result": "-12.5", "out": {"raw": "AQI=", "grid": [[1, 2, 3], [4, 5, 6]]}},
        },
        "IDL:Bank/Branch:1.0": {"best": {"result": entry}},
        "Savings": {"join": {"echo": {"result": "b", "out": {"c": "a"}}}},
    }));
    let withdraw = |amount: i32, why: &str| bank.call("Account", "withdraw", &[json!(amount), json!(why)]);
    assert_eq!(withdraw(1, "rent"), json!(10));
    assert_eq!([withdraw(1, "a"), withdraw(1, "b")["raised"].take()], [json!(11), json!("Closed")]);
    assert_eq!(withdraw(1, "c")["raised"], json!("Closed"), "the last stays");
    assert_eq!(withdraw(2, "no"), json!({"system": "NO_PERMISSION", "minor": 42}));
    assert_eq!(withdraw(2, ""), json!({"raised": "Insufficient", "members": {"missing": 3}}));
    for _ in 0..2 {
        assert_eq!(bank.call("Account", "list", &[json!(1)]), json!({"result": [], "out": {"left": 9}}));
        let both = json!({"result": [entry, entry], "out": {"left": 0}});
        assert_eq!(bank.call("Account", "list", &[json!(1)]), both);
    }
    let balance = || bank.call("Account", "_get_balance", &[]);
    assert_eq!([balance(), balance(), balance()], [json!(1), json!(2), json!(0)]);
    let joined = bank.call("Account", "join", &[json!("a"), json!("b")]);
    assert_eq!(joined, json!({"result": "a", "out": {"c": "b", "d": 0}}));
    let thing = json!({"type": "sequence<string>", "value": ["x"]});
    assert_eq!(bank.call("Account", "what", std::slice::from_ref(&thing)), thing);
    let swapped = bank.call("Account", "swap", &[json!("a"), json!({"name": "b"})]);
    let b = json!({"discriminator": true, "number": 8});
    assert_eq!(swapped["out"], json!({"a": "a", "b": b, "c": ""}));
    let rate = json!({"result": "-12.50", "out": {"raw": "AQI=", "grid": [[1, 2, 3], [4, 5, 6]]}});
    assert_eq!(bank.call("Account", "rate", &[]), rate);
    assert_eq!(bank.call("Bank/Branch", "best", &[]), entry);
    let joined = bank.call("Savings", "join", &[json!("a"), json!("b")]);
    assert_eq!(joined, json!({"result": "b", "out": {"c": "a", "d": 0}}));
    // Other objects of the interface do not share the answers.
    assert_eq!(bank.call("Savings", "withdraw", &[json!(1), json!("rent")]), json!(0));
}

#[test]
fn arguments_are_echoed_where_only_bounds_differ() {
    let idl = "
        typedef wstring<4> Brief; typedef sequence<string<3>, 2> Few; typedef sequence<string> Lots;
        interface Wide {
            wstring longer(in Brief text);
            wstring<4> shorter(in wstring text);
            wstring named(in wstring<2> a, in wstring b, out wstring<2> c);
            Lots more(in Few some);
            Few fewer(in Lots some);
            string other(in wstring<4> text);
            string<3> as_said(in string text);
        };
    ";
    let echo = json!({"echo": true});
    let wide = Mocked::of(
        known_by("wide.idl", idl),
        json!({"Wide": {
            "longer": echo, "shorter": echo, "named": echo, "more": echo, "fewer": echo, "other": echo,
            "as_said": {"echo": {"result": "text"}}
        }}),
    );
    let call = |operation: &str, argument: Value| wide.call("Wide", operation, &[argument]);
    assert_eq!(call("longer", json!("ab€d")), json!("ab€d"));
    assert_eq!(call("shorter", json!("ab€d")), json!("ab€d"));
    assert_eq!(call("shorter", json!("abcde")), json!(""), "too long");
    let named = wide.call("Wide", "named", &[json!("ab"), json!("long")]);
    assert_eq!(named, json!({"result": "long", "out": {"c": "ab"}}), "the same type comes first");
    assert_eq!(call("more", json!(["abc"])), json!(["abc"]));
    assert_eq!(call("fewer", json!(["abc", "d"])), json!(["abc", "d"]));
    for too_much in [json!(["abcd"]), json!(["a", "b", "c"])] {
        assert_eq!(call("fewer", too_much), json!([]));
    }
    assert_eq!(call("other", json!("ab")), json!(""), "another type");
    assert_eq!(call("as_said", json!("abc")), json!("abc"));
    assert_eq!(call("as_said", json!("abcd"))["system"], json!("BAD_PARAM"));
}

#[test]
fn answers_refer_to_objects_of_the_mock() {
    let bank = Mocked::with(json!({
        "Bank::Branch": {
            "open": {"when": [{"arguments": {"owner": "bob"}, "result": {"$object": "Account/bob"}}]},
            "any_of": {"result": {"$object": "::Branch"}},
        },
        "Account/bob": {"balance": 3},
        "Account": {"what": {"result": {"type": "Bank::Account", "value": {"$object": "Savings"}}}},
    }));
    let open = |owner: &str| {
        let opened = bank.request("Bank/Branch", "open", &[json!(owner)]).invoke().unwrap();
        opened.result_as::<Option<ObjectRef>>().unwrap().unwrap()
    };
    let balance = |object: &ObjectRef| {
        let account = bank.known.interface("IDL:Bank/Account:1.0").unwrap();
        let mut request = Request::new(object, account.find("_get_balance").unwrap().clone());
        request.invoke().unwrap().result_as::<i32>().unwrap()
    };
    assert_eq!([balance(&open("bob")), balance(&open("anna"))], [3, 0]);
    let other = bank.request("Bank/Branch", "any_of", &[]).invoke().unwrap();
    let other = other.result_as::<Option<ObjectRef>>().unwrap().unwrap();
    assert_eq!(other.repository_id().unwrap(), "IDL:Branch:1.0");
    let answer = bank.call("Account", "what", &[Value::Null]);
    assert!(answer["value"].as_str().unwrap().starts_with("IOR:"), "{answer}");
}

#[test]
fn calls_are_reported_as_they_were_answered() {
    let bank = Mocked::with(
        json!({"Account": {"withdraw": {"exception": "Insufficient", "members": {"missing": 1}}}}),
    );
    bank.call("Account", "withdraw", &[json!(2), json!("x")]);
    bank.call("Account", "list", &[json!(2)]);
    let mut poke = bank.request("Account", "poke", &[json!("hi")]);
    poke.invoke().unwrap();
    // Calls on one connection are served in order.
    bank.call("Account", "_get_owner", &[]);
    let calls: Vec<Value> = bank.calls.lock().unwrap().iter().map(CallReport::to_json).collect();
    let reported = |operation: &str, arguments: Value, answer: Value| json!({"object": "Bank::Account", "operation": operation, "arguments": arguments, "answer": answer});
    assert_eq!(
        calls,
        [
            reported(
                "withdraw",
                json!({"amount": 2, "why": "x"}),
                json!({"exception": "IDL:Bank/Insufficient:1.0", "members": {"missing": 1}})
            ),
            reported("list", json!({"max": 2}), json!({"result": [], "out": {"left": 0}})),
            reported("poke", json!({"what": "hi"}), json!({})),
            reported("_get_owner", json!({}), json!({"result": ""})),
        ]
    );
}

#[test]
fn delays_hold_calls_back_and_end_with_the_mock() {
    let bank = Mocked::with(
        json!({"Account": {"withdraw": {"delay_ms": 3_600_000, "result": 1}, "balance": {"delay_ms": 1, "result": 4}}}),
    );
    assert_eq!(bank.call("Account", "_get_balance", &[]), json!(4));
    let mut request = bank.request("Account", "withdraw", &[json!(2), json!("x")]);
    let waiting = request.send_deferred().unwrap();
    assert!(!waiting.poll_response());
    bank.mock.stop();
    assert_eq!(as_json(&waiting.get_response().unwrap()), json!(1));
}

#[test]
fn what_the_interface_does_not_have_is_refused() {
    let bank = Mocked::with(Value::Null);
    let object = bank.object("Account");
    let failed = |operation: OperationDescription, first: Option<i16>| {
        let mut request = Request::new(&object, operation);
        if let Some(first) = first {
            request.set(0, &first).unwrap();
        }
        match request.invoke() {
            Err(DynamicError::System(e)) => e,
            other => panic!("{other:?}"),
        }
    };
    let e = failed(OperationDescription::new("deposit"), None);
    assert_eq!((e.kind, e.completed), (SystemExceptionKind::BadOperation, CompletionStatus::No));
    // Too few bytes for `long, string`.
    let short = (&ironorb::TypeDef::Short).into();
    let e = failed(
        OperationDescription::new("withdraw").parameter(
            "x",
            ironorb::dynamic::ParameterMode::In,
            TypeCode::clone(&short),
        ),
        Some(1),
    );
    assert_eq!(e.kind, SystemExceptionKind::Marshal);
    let report = bank.calls.lock().unwrap().pop().unwrap();
    assert_eq!((report.arguments, report.answer["system"].clone()), (Value::Null, json!("MARSHAL")));
}

#[test]
fn answers_that_do_not_fit_are_refused_with_place_and_mend() {
    let orb = Orb::builder().no_endpoint().build().unwrap();
    let refused = |answers: Value| match Mock::start(&orb, known(), Options { answers, ..Options::default() })
    {
        Err(MockError::Answers(e)) => e.to_string(),
        Err(e) => panic!("{e}"),
        Ok(_) => panic!("these are taken"),
    };
    let of = |operation: &str, answer: Value| refused(json!({"Account": {operation: answer}}));
    for (said, parts) in [
        (refused(json!([])), &["$: expected an object, found an array of 0"][..]),
        (
            refused(json!({"Acount": {}})),
            &["$.Acount: no interface that is served is called so; there are Bank::Account, "],
        ),
        (refused(json!({"Branch/x": {}, "Here": {}})), &["$.Here: no interface that is served"]),
        (refused(json!({"Account": 3})), &["$.Account: expected an object, found 3"]),
        (refused(json!({"Account": {}, "Bank::Account": {}})), &["Bank::Account has answers above already"]),
        (refused(json!({"Account/a b": {}})), &["letters, digits"]),
        (
            of("withdrw", json!(1)),
            &["$.Account.withdrw: Account has no operation", "it has owner, balance, sort, withdraw"],
        ),
        (of("withdraw", json!("x")), &["$.Account.withdraw: expected a whole number", "found \"x\""]),
        (
            of("withdraw", json!({"result": 1, "oot": {}})),
            &["$.Account.withdraw: there is no \"oot\" here, but result, out, delay_ms"],
        ),
        (
            of("list", json!({"out": {"lft": 1}})),
            &["$.Account.list.out.lft: list has no out or inout parameter of this name; it has left"],
        ),
        (
            of("list", json!({"result": [{"text": "a", "amount": 1, "of": "x"}]})),
            &["$.Account.list.result[0].of: expected", "current"],
        ),
        (
            of("withdraw", json!({"exception": "Missing"})),
            &["$.Account.withdraw.exception: withdraw raises Insufficient, Closed, not \"Missing\""],
        ),
        (
            of("withdraw", json!({"exception": "Insufficient"})),
            &["$.Account.withdraw.members: the member \"missing\" is missing"],
        ),
        (
            of("list", json!({"exception": "Closed"})),
            &["list raises no exceptions; a system exception is {\"system\": …}"],
        ),
        (
            of("withdraw", json!({"system": "NO_WAY"})),
            &["$.Account.withdraw.system: expected a system exception, such as"],
        ),
        (
            of("withdraw", json!({"system": "UNKNOWN", "minor": -1})),
            &["$.Account.withdraw.minor: expected a whole number"],
        ),
        (
            of("withdraw", json!({"system": "UNKNOWN", "completed": 1})),
            &["$.Account.withdraw.completed: expected \"yes\""],
        ),
        (
            of("withdraw", json!({"delay_ms": 3_600_001})),
            &["$.Account.withdraw.delay_ms: expected milliseconds, 3600000 at most"],
        ),
        (of("withdraw", json!({"echo": false})), &["$.Account.withdraw.echo: expected true, or {"]),
        (
            of("withdraw", json!({"sequence": [1, "x"]})),
            &["$.Account.withdraw.sequence[1]: expected a whole number"],
        ),
        (of("withdraw", json!({"sequence": 1})), &["$.Account.withdraw.sequence: expected an array"]),
        (
            of("withdraw", json!({"sequence": [], "after": "ever"})),
            &["$.Account.withdraw.after: expected \"last\""],
        ),
        (
            of("withdraw", json!({"when": [{"result": 1}]})),
            &["$.Account.withdraw.when[0]: the member \"arguments\" is missing"],
        ),
        (
            of("withdraw", json!({"when": [{"arguments": {"amont": 1}}]})),
            &["when[0].arguments.amont: withdraw has no argument of this name; it has amount, why"],
        ),
        (
            of("withdraw", json!({"when": [], "otherwise": {"result": "x"}})),
            &["$.Account.withdraw.otherwise.result: expected a whole number"],
        ),
        (of("poke", json!({"system": "UNKNOWN"})), &["$.Account.poke: poke is oneway, and is not answered"]),
        (of("poke", json!(null)), &["poke is oneway"]),
        (of("swap", json!(1)), &["expected null, since swap has no result, found 1"]),
        (
            refused(json!({"Bank::Branch": {"best": {"text": "a"}}})),
            &["a result that is an object stands in {\"result\": …}"],
        ),
        (
            refused(json!({"Bank::Branch": {"open": {"result": {"$object": "Account/x"}}}})),
            &["open.result[\"$object\"]: there is no object Bank::Account/x"],
        ),
        (
            refused(json!({"Bank::Branch": {"open": {"result": {"$object": 1}}}})),
            &["expected an object's name"],
        ),
    ] {
        for part in parts {
            assert!(said.contains(part), "{part} is not in\n{said}");
        }
    }
    // Refused mocks leave nothing behind.
    assert!(Mock::start(&orb, known(), Options::default()).is_ok());
    orb.shutdown(true).unwrap();
}

#[test]
fn only_what_is_asked_for_is_served() {
    let orb = Orb::builder().no_endpoint().build().unwrap();
    let served = |ids: &[&str]| {
        let interfaces = ids.iter().map(|id| (*id).to_owned()).collect();
        let mock = Mock::start(&orb, known(), Options { interfaces, ..Options::default() })?;
        Ok::<_, MockError>(mock.objects().iter().map(|object| object.name().to_owned()).collect::<Vec<_>>())
    };
    assert_eq!(served(&["IDL:Bank/Savings:1.0"]).unwrap(), ["Bank::Savings"]);
    assert!(matches!(served(&["IDL:Bank/Nothing:1.0"]), Err(MockError::UnknownInterface(_))));
    let nothing = Mock::start(&orb, Interfaces::new(), Options::default());
    assert!(matches!(nothing, Err(MockError::Nothing)));
    orb.shutdown(true).unwrap();
}

#[test]
fn clients_are_served_at_once() {
    let bank = Mocked::with(json!({"Account": {"withdraw": {"sequence": [1, 2, 3, 4], "after": "repeat"}}}));
    let mut sum = 0;
    thread::scope(|scope| {
        let call = || bank.call("Account", "withdraw", &[json!(1), json!("")]).as_i64().unwrap();
        let threads: Vec<_> =
            (0..4).map(|_| scope.spawn(move || (0..25).map(|_| call()).sum::<i64>())).collect();
        sum = threads.into_iter().map(|thread| thread.join().unwrap()).sum::<i64>();
    });
    // Each answer was given equally often.
    assert_eq!(sum, 100 / 4 * (1 + 2 + 3 + 4));
}
