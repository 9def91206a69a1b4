//! Mocks of interface repositories that lie, that answer without end, or that cannot be reached.

use std::path::Path;
use std::sync::{Arc, Mutex};

use ironorb::{ObjectRef, Orb, SystemExceptionKind, TcKind};
use ironorb_dynamic::limits::{BASES_MAX, DEFINITIONS_ASKED_MAX, OPERATIONS_TOLD_MAX};
use ironorb_dynamic::mock::{CallReport, Mock, Options};
use ironorb_dynamic::{Interfaces, Source, json};
use serde_json::{Map, Value, json};

/// An ORB with mocks of the interfaces with these ids.
struct Served {
    orb: Orb,
    mock: Mock,
    calls: Arc<Mutex<Vec<String>>>,
}

impl Served {
    fn with(orb: Orb, known: Interfaces, interfaces: &[&str], answers: Value) -> Served {
        let calls: Arc<Mutex<Vec<String>>> = Arc::default();
        let recorded = calls.clone();
        let record = move |call: &CallReport| recorded.lock().unwrap().push(call.operation.clone());
        let options = Options {
            interfaces: interfaces.iter().map(|id| (*id).to_owned()).collect(),
            answers,
            report: Some(Box::new(record)),
        };
        let mock = Mock::start(&orb, known, options).unwrap();
        Served { orb, mock, calls }
    }

    /// A repository that finds objects by these ids; the objects have these names in the answers.
    fn repository(found: &[(&str, &str)], definitions: Map<String, Value>) -> Served {
        Served::repository_at(ANYWHERE, found, definitions)
    }

    fn repository_at(endpoint: &str, found: &[(&str, &str)], mut definitions: Map<String, Value>) -> Served {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../idl/ir.idl");
        let mut known = Interfaces::new();
        known.add_idl([path], &Default::default()).unwrap();
        let cases = found.iter().map(|(id, name)| {
            json!({"arguments": {"search_id": id}, "result": {"$object": format!("{DEFINITION}/{name}")}})
        });
        let lookup = json!({"when": cases.collect::<Vec<_>>(), "otherwise": {"result": null}});
        definitions.insert("CORBA::Repository".to_owned(), json!({ "lookup_id": lookup }));
        let ids = ["IDL:omg.org/CORBA/Repository:1.0", "IDL:omg.org/CORBA/ExtInterfaceDef:1.0"];
        let orb = Orb::builder().endpoint(endpoint).unwrap().build().unwrap();
        Served::with(orb, known, &ids, Value::Object(definitions))
    }

    /// Objects of the interfaces in an IDL text, whose server has a repository.
    fn objects(idl: &str, interfaces: &[&str], repository: Option<&Served>) -> Served {
        let mut known = Interfaces::new();
        known.add_idl_text("objects.idl", idl, &Default::default()).unwrap();
        let mut builder = Orb::builder().endpoint(ANYWHERE).unwrap();
        if let Some(repository) = repository {
            let reference = repository.object("CORBA::Repository").to_ior_string();
            builder = builder.initial_reference("InterfaceRepository", &reference);
        }
        Served::with(builder.build().unwrap(), known, interfaces, Value::Null)
    }

    fn object(&self, name: &str) -> ObjectRef {
        let found = self.mock.objects().iter().find(|object| object.name() == name);
        found.unwrap_or_else(|| panic!("there is no {name}")).reference().clone()
    }

    /// The number of calls of an operation since the last question.
    fn calls_of(&self, operation: &str) -> usize {
        std::mem::take(&mut *self.calls.lock().unwrap()).iter().filter(|name| *name == operation).count()
    }

    fn stop(self) {
        self.orb.shutdown(true).unwrap();
    }
}

const ANYWHERE: &str = "iiop://127.0.0.1:0";
const DEFINITION: &str = "CORBA::ExtInterfaceDef";

fn operation(name: &str, result: &Value) -> Value {
    json!({
        "name": name, "id": format!("IDL:{name}:1.0"), "defined_in": "", "version": "1.0", "result": result,
        "mode": "OP_NORMAL", "contexts": [], "parameters": [], "exceptions": []
    })
}

/// The answers of an interface's definition. Bases are given by the names of their objects.
fn definition(id: &str, operations: &[Value], bases: &[String]) -> Value {
    let bases: Vec<Value> =
        bases.iter().map(|name| json!({"$object": format!("{DEFINITION}/{name}")})).collect();
    json!({
        "def_kind": "dk_Interface",
        "base_interfaces": bases,
        "containing_repository": {"result": {"$object": "CORBA::Repository"}},
        "describe_ext_interface": {"result": {
            "name": "I", "id": id, "defined_in": "", "version": "1.0", "operations": operations, "attributes": [],
            "base_interfaces": bases.iter().map(|_| "IDL:Base:1.0").collect::<Vec<_>>(), "type": "Object"
        }}
    })
}

fn definitions(of: impl IntoIterator<Item = (String, Value)>) -> Map<String, Value> {
    of.into_iter().map(|(name, answers)| (format!("{DEFINITION}/{name}"), answers)).collect()
}

fn point(member: &str) -> Value {
    let member = json!({"name": member, "type": "long"});
    json!({"kind": "struct", "id": "IDL:Point:1.0", "name": "Point", "members": [member]})
}

fn client() -> Orb {
    Orb::builder().no_endpoint().build().unwrap()
}

/// A server's object as a client's reference.
fn seen_by(client: &Orb, object: &ObjectRef) -> ObjectRef {
    client.string_to_object(&object.to_ior_string()).unwrap()
}

#[test]
fn an_object_s_description_counts_for_that_object_only() {
    let lies = Served::repository(
        &[("IDL:Liar:1.0", "lie"), ("IDL:Spare:1.0", "lie")],
        definitions([(
            "lie".to_owned(),
            definition("IDL:Account:1.0", &[operation("steal", &point("x"))], &[]),
        )]),
    );
    let truth = Served::repository(
        &[("IDL:Account:1.0", "account")],
        definitions([(
            "account".to_owned(),
            definition("IDL:Account:1.0", &[operation("balance", &point("y"))], &[]),
        )]),
    );
    let liars = Served::objects("interface Liar {};", &["IDL:Liar:1.0"], Some(&lies));
    let accounts = Served::objects("interface Account {};", &["IDL:Account:1.0"], Some(&truth));
    let client = client();
    let (liar, account) =
        (seen_by(&client, &liars.object("Liar")), seen_by(&client, &accounts.object("Account")));

    let known = Interfaces::new();
    let claimed = known.of(&liar).unwrap();
    assert_eq!((claimed.id.as_str(), claimed.operations.len()), ("IDL:Account:1.0", 1));
    assert_eq!(known.interface("IDL:Account:1.0"), None);
    assert_eq!(known.type_code("IDL:Point:1.0"), None);
    // The object's repository is not asked either.
    lies.calls_of("lookup_id");
    assert_eq!(known.fetch_interface("IDL:Spare:1.0").unwrap(), None);
    assert_eq!(lies.calls_of("lookup_id"), 0);
    let honest = known.of(&account).unwrap();
    assert_eq!(honest.operations[0].name, "balance");

    // Each object keeps its own definition, though both are known, and neither object is asked again.
    let (by_liar, by_account) = (known.with_definitions_of(&liar), known.with_definitions_of(&account));
    for (by, member) in [(&by_liar, "x"), (&by_account, "y")] {
        let any = json!({"type": "IDL:Point:1.0", "value": {member: 5}});
        let made = json::from_json(&(&ironorb::TypeDef::Any).into(), &any, by, None).unwrap();
        assert_eq!(json::to_json_with(&made, by).unwrap()["value"], json!({ member: 5 }));
        assert_eq!(by.of(&account).unwrap().operations[0].name, "balance");
        assert_eq!(by.of(&liar).unwrap().operations[0].name, "steal");
    }
    assert_eq!(truth.calls_of("describe_ext_interface"), 1);
    assert_eq!(lies.calls_of("describe_ext_interface"), 0, "it was counted before");
    // For the object itself its repository is asked, but a definition with another id than asked for is
    // refused.
    let e = by_liar.fetch_interface("IDL:Spare:1.0").unwrap_err();
    assert_eq!(e.kind, SystemExceptionKind::IntfRepos, "{e}");
    client.shutdown(true).unwrap();
    [liars, accounts, lies, truth].into_iter().for_each(Served::stop);
}

#[test]
fn a_repository_s_answer_counts_only_for_the_id_that_was_asked() {
    let repository = Served::repository(
        &[("IDL:Asked:1.0", "other")],
        definitions([("other".to_owned(), definition("IDL:Other:1.0", &[operation("f", &point("x"))], &[]))]),
    );
    let client = client();
    let mut known = Interfaces::new();
    let root = seen_by(&client, &repository.object("CORBA::Repository"));
    known.add_repository(&root.narrow_unchecked());
    let e = known.fetch_interface("IDL:Asked:1.0").unwrap_err();
    assert_eq!(e.kind, SystemExceptionKind::IntfRepos);
    assert_eq!(e.detail(), Some("the repository has another interface under IDL:Asked:1.0"));
    for id in ["IDL:Asked:1.0", "IDL:Other:1.0"] {
        assert_eq!(known.interface(id), None, "{id}");
    }
    assert_eq!(known.type_code("IDL:Point:1.0"), None);
    // The repository is asked again, because failures are not kept.
    repository.calls_of("lookup_id");
    known.fetch_interface("IDL:Asked:1.0").unwrap_err();
    assert_eq!(repository.calls_of("lookup_id"), 1);
    client.shutdown(true).unwrap();
    repository.stop();
}

/// Asks for `IDL:Top:1.0`. Returns the outcome, and the number of definitions that were asked for.
fn ask(made_of: Map<String, Value>) -> (Result<usize, SystemExceptionKind>, usize) {
    let repository = Served::repository(&[("IDL:Top:1.0", "top")], made_of);
    let client = client();
    let mut known = Interfaces::new();
    let root = seen_by(&client, &repository.object("CORBA::Repository"));
    known.add_repository(&root.narrow_unchecked());
    let found = known.fetch_interface("IDL:Top:1.0");
    let found = found.map(|found| found.unwrap().operations.len()).map_err(|e| e.kind);
    let asked = repository.calls_of("describe_ext_interface");
    client.shutdown(true).unwrap();
    repository.stop();
    (found, asked)
}

#[test]
fn what_one_look_up_asks_is_bounded() {
    let long = json!("long");
    let many = |count: usize| -> Vec<Value> {
        (0..count).map(|index| operation(&format!("f{index}"), &long)).collect()
    };
    // Many references to one base: a few are asked without effect; very many are not asked at all.
    let same = |count: usize| {
        definitions([
            ("top".to_owned(), definition("IDL:Top:1.0", &many(1), &vec!["base".to_owned(); count])),
            ("base".to_owned(), definition("IDL:Base:1.0", &many(2), &[])),
        ])
    };
    assert_eq!(ask(same(5)), (Ok(2), 6));
    assert_eq!(ask(same(DEFINITIONS_ASKED_MAX)), (Err(SystemExceptionKind::ImpLimit), 1));
    // Bases that refer to each other by ever more paths.
    let cycle = definitions((0..2).map(|index| {
        let (name, id) = if index == 0 { ("top", "IDL:Top:1.0") } else { ("base", "IDL:Base:1.0") };
        let bases: Vec<String> =
            (0..600).map(|turn| if turn % 2 == index { "base" } else { "top" }.to_owned()).collect();
        (name.to_owned(), definition(id, &many(1), &bases))
    }));
    let (found, asked) = ask(cycle);
    assert_eq!(found, Err(SystemExceptionKind::ImpLimit));
    assert!(asked < 10, "{asked} were asked");
    // Many bases, each of which repeats many operations.
    let each = 4096;
    let names = || (0..OPERATIONS_TOLD_MAX / each).map(|index| format!("b{index}"));
    let top = definition("IDL:Top:1.0", &many(1), &names().collect::<Vec<_>>());
    let operations = many(each);
    let bases = names().map(|name| (name.clone(), definition(&format!("IDL:{name}:1.0"), &operations, &[])));
    let (found, asked) = ask(definitions(bases.chain([("top".to_owned(), top)])));
    assert_eq!((found, asked), (Err(SystemExceptionKind::ImpLimit), 1 + OPERATIONS_TOLD_MAX / each));
    // One base too many in a chain.
    let line = |count: usize| {
        definitions((0..=count).map(|index| {
            let name = |index: usize| if index == 0 { "top".to_owned() } else { format!("b{index}") };
            let id = if index == 0 { "IDL:Top:1.0".to_owned() } else { format!("IDL:b{index}:1.0") };
            let bases = if index < count { vec![name(index + 1)] } else { Vec::new() };
            (name(index), definition(&id, &many(1), &bases))
        }))
    };
    assert_eq!(ask(line(BASES_MAX)), (Ok(1), BASES_MAX + 1));
    assert_eq!(ask(line(BASES_MAX + 1)), (Err(SystemExceptionKind::ImpLimit), BASES_MAX + 2));
}

#[test]
fn an_error_says_whether_a_later_attempt_may_succeed() {
    let idl = "interface Account { struct Point { long x; }; Point where(); };";
    let without = Served::objects(idl, &["IDL:Account:1.0"], None);
    let client = client();
    let account = seen_by(&client, &without.object("Account"));
    let mut known = Interfaces::new();
    known.add_idl_text("other.idl", "interface Other {};", &Default::default()).unwrap();
    let unknown = known.of(&account).unwrap_err();
    let asked: Vec<Source> = unknown.attempts.iter().map(|attempt| attempt.source).collect();
    assert_eq!(asked, [Source::Known, Source::Object, Source::InitialReference]);
    assert_eq!(unknown.attempts[0].failure, None);
    let failure = unknown.attempts[1].failure.as_ref().map(|e| e.kind);
    assert_eq!(failure, Some(SystemExceptionKind::IntfRepos));
    // The object's server may have no repository, or one that cannot be reached.
    assert!(unknown.may_succeed_later());
    // A repository that cannot be reached.
    let unreachable = client.string_to_object("corbaloc::127.0.0.1:1/InterfaceRepository").unwrap();
    known.add_repository(&unreachable.narrow_unchecked());
    let unknown = known.of(&account).unwrap_err();
    assert_eq!(unknown.attempts[0].source, Source::Repository);
    assert_eq!(unknown.attempts[0].failure.as_ref().map(|e| e.kind), Some(SystemExceptionKind::Transient));
    assert!(unknown.may_succeed_later());
    // All sources have answered that they do not know it.
    let empty = Served::repository(&[], Map::new());
    let with = Served::objects(idl, &["IDL:Account:1.0"], Some(&empty));
    let account = seen_by(&client, &with.object("Account"));
    let unknown = Interfaces::new().of(&account).unwrap_err();
    assert!(!unknown.may_succeed_later(), "{unknown}");
    client.shutdown(true).unwrap();
    [without, with, empty].into_iter().for_each(Served::stop);
}

#[test]
fn a_repository_that_comes_back_is_asked_again() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("ir").to_str().unwrap().to_owned();
    let start = || {
        let account = definition("IDL:Account:1.0", &[operation("balance", &json!("long"))], &[]);
        let made_of = definitions([("account".to_owned(), account)]);
        Served::repository_at(&format!("uiop://{socket}"), &[("IDL:Account:1.0", "account")], made_of)
    };
    let client = client();
    let mut known = Interfaces::new();
    let root = client.string_to_object(&format!("corbaloc:uiop:{socket}|CORBA/Repository")).unwrap();
    known.add_repository(&root.narrow_unchecked());
    let account = "IDL:Account:1.0";
    assert_eq!(known.fetch_interface(account).unwrap_err().kind, SystemExceptionKind::Transient);
    assert_eq!(known.fetch_type(account).unwrap_err().kind, SystemExceptionKind::Transient);
    let repository = start();
    assert_eq!(known.fetch_interface(account).unwrap().unwrap().operations[0].result.kind(), TcKind::Long);
    // The cached definitions are available without the repository.
    repository.stop();
    assert!(known.fetch_interface(account).unwrap().is_some());
    assert_eq!(known.fetch_type("IDL:Else:1.0").unwrap_err().kind, SystemExceptionKind::Transient);
    let repository = start();
    assert_eq!(known.fetch_type("IDL:Else:1.0").unwrap(), None);
    client.shutdown(true).unwrap();
    repository.stop();
}
