//! Types of calls from an interface repository agree with the IDL.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ironorb::dynamic::{DynamicError, InterfaceDescription, Request};
use ironorb::giop::Ior;
use ironorb::{Any, ObjectRef, Orb, TcKind, TypedRef as _};
use ironorb_dynamic::{Interfaces, Source, json};
use ironorb_idl::{Options, compile_file};
use ironorb_services::ifr::{InterfaceRepository, InterfaceRepositoryServer, Limits, Store};
use ironorb_tests::testing::{DerivedRef, ProbeRef};
use ironorb_tests::{Deriving, Probing};
use serde_json::json;

fn idl(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// A repository with the definitions of some files.
struct Repository {
    orb: Orb,
    server: InterfaceRepositoryServer,
}

impl Repository {
    fn with(files: &[PathBuf]) -> Repository {
        let orb = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().build().unwrap();
        let repository = InterfaceRepository::new(Store::in_memory().unwrap(), Limits::default());
        for file in files {
            let outcome = compile_file(file, &Options::new());
            let errors = outcome.render(false);
            repository.load(&outcome.model.unwrap_or_else(|| panic!("{errors}"))).unwrap();
        }
        let server = InterfaceRepositoryServer::start(&orb, repository).unwrap();
        Repository { orb, server }
    }

    /// The definitions of a client that takes all of them from the repository.
    fn known(&self, client: &Orb) -> Interfaces {
        let mut known = Interfaces::new();
        let root = client.string_to_object(&self.server.corbaloc()).unwrap();
        known.add_repository(&root.narrow_unchecked());
        known
    }
}

impl Drop for Repository {
    fn drop(&mut self) {
        let _ = self.orb.shutdown(true);
    }
}

fn client() -> Orb {
    Orb::builder().no_endpoint().build().unwrap()
}

/// Sorts operations and bases, because a repository lists operations before attributes.
fn sorted(interface: &InterfaceDescription) -> InterfaceDescription {
    let mut sorted = interface.clone();
    sorted.operations.sort_by(|a, b| a.name.cmp(&b.name));
    sorted.bases.sort();
    sorted
}

#[test]
fn a_repository_returns_the_definitions_of_the_idl() {
    let files = [
        idl("idl/probe.idl"),
        idl("idl/dynamic.idl"),
        idl("../idl/CosNaming.idl"),
        idl("../interop/idl/all.idl"),
    ];
    // The definitions of every ORB are not loaded.
    let is_built_in = |id: &str| id.starts_with("IDL:omg.org/CORBA/");
    let mut read = Interfaces::new();
    read.add_idl(&files, &Options::new()).unwrap();
    let repository = Repository::with(&files);
    let client = client();
    let known = repository.known(&client);
    let mut compared = 0;
    for interface in read.interfaces().filter(|interface| !is_built_in(&interface.id)) {
        assert_eq!(known.interface(&interface.id), None, "a definition is unknown before it is fetched");
        let fetched = known.fetch_interface(&interface.id).unwrap();
        let fetched = fetched.unwrap_or_else(|| panic!("{} is not in the repository", interface.id));
        assert_eq!(sorted(&fetched), sorted(interface));
        compared += interface.operations.len();
        assert!(Arc::ptr_eq(&known.fetch_interface(&interface.id).unwrap().unwrap(), &fetched));
    }
    assert!(compared > 400, "{compared} operations are too few");
    let mut types = 0;
    // Each type on its own, without the results of other queries.
    let known = repository.known(&client);
    for type_code in read.type_codes() {
        let id = type_code.id().unwrap();
        if is_built_in(id) {
            continue;
        }
        let fetched = known.fetch_type(id).unwrap();
        assert_eq!(fetched.as_ref(), Some(type_code), "{id}");
        types += 1;
    }
    assert!(types > 200, "{types} types are too few");
    assert_eq!(known.fetch_id("testing::Probe").unwrap().as_deref(), Some("IDL:testing/Probe:1.0"));
    for nothing in ["IDL:testing/Nothing:1.0", "IDL:testing/Probe/add:1.0", ""] {
        assert_eq!(known.fetch_interface(nothing).unwrap(), None, "{nothing}");
        assert_eq!(known.fetch_type(nothing).unwrap(), None, "{nothing}");
    }
    client.shutdown(true).unwrap();
}

#[test]
fn an_object_is_called_with_types_from_its_server() {
    let repository = Repository::with(&[idl("idl/probe.idl")]);
    let server = Orb::builder()
        .endpoint("iiop://127.0.0.1:0")
        .unwrap()
        .initial_reference("InterfaceRepository", &repository.server.corbaloc())
        .build()
        .unwrap();
    let derived: DerivedRef = server.root_poa().activate(Deriving::default()).unwrap();
    let client = client();
    let with_type = |type_id: &str| -> ObjectRef {
        let ior = Ior { type_id: type_id.to_owned(), ..derived.object().ior().clone() };
        client.ior_to_object(ior).unwrap()
    };
    for type_id in ["", "IDL:testing/Derived:1.0", "IDL:testing/Unheard:1.0"] {
        let object = with_type(type_id);
        let known = Interfaces::new();
        let interface = known.of(&object).unwrap();
        assert_eq!(interface.id, "IDL:testing/Derived:1.0", "{type_id:?}");
        assert_eq!(interface.bases, ["IDL:testing/Probe:1.0"]);
        let mut add = Request::new(&object, interface.find("add").unwrap().clone());
        add.set(0, &40i32).unwrap();
        add.set(1, &2i32).unwrap();
        assert_eq!(add.invoke().unwrap().result_as::<i32>().unwrap(), 42);
        let mut refuse = Request::new(&object, interface.find("refuse").unwrap().clone());
        refuse.set(0, "no").unwrap();
        let Err(DynamicError::User(refused)) = refuse.invoke() else { panic!("it raises Refused") };
        assert_eq!(json::to_json(&refused).unwrap(), json!({"why": "no"}));
        // `with_definitions_of` includes the types of the object's operations, and the JSON of an `any` can name
        // them.
        let by_it = known.with_definitions_of(&object);
        let refused = by_it.type_code("IDL:testing/Refused:1.0").unwrap();
        assert_eq!(refused.kind(), TcKind::Except);
        assert_eq!(known.type_code("IDL:testing/Refused:1.0"), None);
        // Its repository is asked too.
        assert!(by_it.fetch_type("IDL:testing/Probe:1.0").unwrap().is_some());
        assert!(known.fetch_type("IDL:testing/Probe:1.0").unwrap().is_none());
    }
    server.shutdown(true).unwrap();
    client.shutdown(true).unwrap();
}

#[test]
fn types_named_in_an_any_are_fetched_on_demand() {
    let repository = Repository::with(&[idl("../idl/CosNaming.idl")]);
    let client = client();
    let known = repository.known(&client);
    let any = |json| json::from_json(&(&ironorb::TypeDef::Any).into(), &json, &known, None);
    for name in ["CosNaming::NameComponent", "IDL:omg.org/CosNaming/NameComponent:1.0"] {
        let made = any(json!({"type": name, "value": {"id": "a", "kind": "b"}})).unwrap();
        let inner: Any = made.extract().unwrap();
        assert_eq!(inner.type_code().id(), Ok("IDL:omg.org/CosNaming/NameComponent:1.0"));
    }
    let wrong = any(json!({"type": "CosNaming::Nothing", "value": 1})).unwrap_err();
    assert_eq!(wrong.to_string(), "$.type: expected a known type, found \"CosNaming::Nothing\"");
    repository.orb.shutdown(true).unwrap();
    let wrong = any(json!({"type": "CosNaming::Istring", "value": 1})).unwrap_err();
    assert!(wrong.to_string().starts_with("$.type: expected a known type ("), "{wrong}");
    client.shutdown(true).unwrap();
}

#[test]
fn an_unknown_interface_lists_the_sources_that_were_asked() {
    let repository = Repository::with(&[idl("../idl/CosNaming.idl")]);
    let server = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().build().unwrap();
    let probe: ProbeRef = server.root_poa().activate(Probing::default()).unwrap();
    let client = client();
    let object = client.string_to_object(&probe.object().to_ior_string()).unwrap();
    let mut known = repository.known(&client);
    known.add_idl_text("other.idl", "interface Other { void f(); };", &Options::new()).unwrap();
    let unknown = known.of(&object).unwrap_err();
    assert_eq!(unknown.id, "IDL:testing/Probe:1.0");
    let asked: Vec<Source> = unknown.attempts.iter().map(|attempt| attempt.source).collect();
    // The repository is asked for the object's id, and then for interfaces that the object may have.
    let [first, second] = [Source::Repository; 2];
    assert_eq!(asked, [first, Source::Known, second, Source::Object, Source::InitialReference]);
    assert!(unknown.attempts[3].why.contains("INTF_REPOS"), "{unknown}");
    assert!(
        unknown.to_string().contains("the interface repository: it does not have IDL:testing/Probe"),
        "{unknown}"
    );
    server.shutdown(true).unwrap();
    let unknown = known.of(&object).unwrap_err();
    assert!(unknown.unanswered.is_some(), "{unknown}");
    client.shutdown(true).unwrap();
}
