//! `ironorb call` without IDL: types from an interface repository or from the object itself.

use ironorb::dynamic::{self, DynamicServant, InterfaceDescription, OperationDescription, ServerRequest};
use ironorb::poa::ObjectId;
use ironorb::{Any, Context, INIT_REF_VARIABLE, Orb, Replied, TypedRef as _};
use ironorb_tests::Deriving;
use ironorb_tests::command::{Done, ServingProcess, bash, done, ironorb, run};
use ironorb_tests::testing::DerivedRef;
use std::process::Command;
use std::sync::Arc;

const PROBE_IDL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/idl/probe.idl");
const NAMING_IDL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../idl/CosNaming.idl");

fn repository(loaded: &str) -> ServingProcess {
    let endpoint = "iiop://127.0.0.1:0";
    ServingProcess::start(["ifr", "serve", "--memory", "--listen", endpoint, "--load", loaded])
}

/// A `Derived` of `probe.idl`. Its ORB may have an interface repository.
fn serve(repository: Option<&ServingProcess>) -> (Orb, String) {
    let mut builder = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap();
    if let Some(repository) = repository {
        builder = builder.initial_reference("InterfaceRepository", &repository.ready);
    }
    let orb = builder.build().unwrap();
    let derived: DerivedRef = orb.root_poa().activate(Deriving::default()).unwrap();
    (orb, derived.object().to_ior_string())
}

fn call(args: &[&str]) -> Done {
    run(["call"].iter().chain(args))
}

#[test]
fn types_come_from_the_given_repository() {
    let repository = repository(PROBE_IDL);
    let (orb, ior) = serve(None);
    let named = ["--ifr", &repository.ready];
    let with = |args: &[&str]| call(&[&[ior.as_str()], args, &named].concat());
    assert_eq!(with(&["add", "40", "2"]).expect(), "42\n");
    assert_eq!(with(&["label=red"]).expect(), "null\n");
    assert_eq!(with(&["label"]).expect(), "\"red\"\n");
    let listed = with(&["--list"]).expect();
    assert!(listed.starts_with("interface Derived : Probe {\n"), "{listed}");
    for line in ["    string depth();\n", "    attribute string label;\n", "    oneway void tick();\n"] {
        assert!(listed.contains(line), "{line} is not in\n{listed}");
    }
    let said = with(&["refuse", "no"]).expect_failure(1);
    assert!(
        said.starts_with("error: `refuse` raised Refused\n") && said.contains("\"why\": \"no\""),
        "{said}"
    );
    // `--as` takes a base, by a name from the repository.
    for name in ["testing::Probe", "IDL:testing/Probe:1.0"] {
        let said = with(&["depth", "--interface", name]).expect_failure(2);
        assert!(said.contains("Probe has no operation or attribute `depth`"), "{said}");
    }
    let said = with(&["depth", "--interface", "testing::Nothing"]).expect_failure(2);
    assert!(said.contains("no interface testing::Nothing is known"), "{said}");
    // `--ifr` takes HOST:PORT too.
    let address =
        repository.ready.trim_start_matches("corbaloc::1.2@").trim_end_matches("/InterfaceRepository");
    assert_eq!(call(&[&ior, "add", "1", "2", "--ifr", address]).expect(), "3\n");
    // The initial reference InterfaceRepository is a source too.
    let mut command = Command::new(ironorb());
    command.args(["call", &ior, "depth"]);
    command.env(INIT_REF_VARIABLE, format!("InterfaceRepository={}", repository.ready));
    assert_eq!(done(&command.output().unwrap()).expect(), "\"derived\"\n");
    let option = format!("InterfaceRepository={}", repository.ready);
    assert_eq!(call(&[&ior, "depth", "-ORBInitRef", &option]).expect(), "\"derived\"\n");
    assert_eq!(repository.terminate().code, Some(0));
    orb.shutdown(true).unwrap();
}

#[test]
fn types_come_from_the_object_itself() {
    let repository = repository(PROBE_IDL);
    let (orb, ior) = serve(Some(&repository));
    assert_eq!(call(&[&ior, "add", "40", "2"]).expect(), "42\n");
    assert!(call(&[&ior, "--list"]).expect().starts_with("interface Derived : Probe {\n"));
    // An IDL file in `--idl` without the interface does no harm.
    assert_eq!(call(&[&ior, "depth", "--idl", NAMING_IDL]).expect(), "\"derived\"\n");
    let described = call(&[&ior, "_interface", "--compact"]).expect();
    let described = described.trim().trim_matches('"');
    // A definition in the repository is an object, whose interface is in idl/ir.idl.
    let ir = concat!(env!("CARGO_MANIFEST_DIR"), "/../idl/ir.idl");
    assert_eq!(call(&[described, "id", "--idl", ir]).expect(), "\"IDL:testing/Derived:1.0\"\n");
    orb.shutdown(true).unwrap();
}

#[test]
fn errors_list_the_sources_that_were_asked() {
    let (orb, ior) = serve(None);
    let said = call(&[&ior, "add", "1", "2"]).expect_failure(1);
    for part in [
        "error: the object's interface is not known, IDL:testing/Derived:1.0\n",
        "  the object, asked for its description (_interface): INTF_REPOS",
        "  the initial reference InterfaceRepository: the ORB has none\n",
        "  help: --idl FILE names an IDL file that defines it, --ifr URL an interface repository",
    ] {
        assert!(said.contains(part), "{part} is not in\n{said}");
    }
    let nobody = "corbaloc::127.0.0.1:1/InterfaceRepository";
    let said = call(&[&ior, "--list", "--ifr", nobody, "--idl", NAMING_IDL]).expect_failure(1);
    assert!(said.contains("--ifr corbaloc::127.0.0.1:1/InterfaceRepository: TRANSIENT"), "{said}");
    assert!(said.contains("CosNaming.idl: it has none of these interfaces"), "{said}");
    let repository = repository(NAMING_IDL);
    let said = call(&[&ior, "--list", "--ifr", &repository.ready]).expect_failure(1);
    assert!(said.contains("it does not have IDL:testing/Derived:1.0"), "{said}");
    // The error lists the repository ids that were asked for.
    let none = format!("--ifr {}", repository.ready);
    let asked = said.lines().filter(|line| line.contains(&none)).nth(1).unwrap_or_default();
    assert!(asked.contains("(_is_a): IDL:omg.org/CosNaming/"), "{said}");
    // A repository with a base of the object's interface works as an IDL file with the base does.
    let folder = tempfile::tempdir().unwrap();
    let base = folder.path().join("base.idl");
    let idl = "module testing { interface Probe { long add(in long a, in long b); }; };";
    std::fs::write(&base, idl).unwrap();
    let bases = ServingProcess::start([
        "ifr",
        "serve",
        "--memory",
        "--listen",
        "iiop://127.0.0.1:0",
        "--load",
        base.to_str().unwrap(),
    ]);
    assert_eq!(call(&[&ior, "add", "40", "2", "--ifr", &bases.ready]).expect(), "42\n");
    let said = call(&[&ior, "ping", "--ifr", "IOR:zz"]).expect_failure(2);
    assert!(said.contains("--ifr IOR:zz: "), "{said}");
    // Operations that every object has need no types.
    assert_eq!(call(&[&ior, "_repository_id"]).expect(), "\"IDL:testing/Derived:1.0\"\n");
    orb.shutdown(true).unwrap();
    let said = call(&[&ior, "ping"]).expect_failure(1);
    assert!(
        said.contains("cannot ask the object for its interface") && said.contains("is the server running"),
        "{said}"
    );
}

#[test]
fn services_of_the_command_need_no_idl() {
    let repository = repository(PROBE_IDL);
    let listed = call(&[&repository.ready, "--list"]).expect();
    assert!(listed.starts_with("interface Repository : Container, IRObject {\n"), "{listed}");
    let found = call(&[&repository.ready, "lookup_id", "IDL:testing/Derived:1.0", "--compact"]).expect();
    let found = found.trim().trim_matches('"');
    assert_eq!(call(&[found, "absolute_name"]).expect(), "\"::testing::Derived\"\n");
    assert_eq!(call(&[found, "def_kind"]).expect(), "\"dk_Interface\"\n");
    let naming = ServingProcess::start(["naming", "serve", "--memory", "--listen", "iiop://127.0.0.1:0"]);
    assert_eq!(call(&[&naming.ready, "to_name", "a.b/c", "--compact"]).expect().matches("\"id\"").count(), 2);
}

/// Returns the properties that the request carried.
struct Telling(Arc<InterfaceDescription>);

impl DynamicServant for Telling {
    fn interface(&self, _: &ObjectId) -> Option<Arc<InterfaceDescription>> {
        Some(self.0.clone())
    }

    fn invoke(&self, mut request: ServerRequest<'_>) -> Replied {
        if let Err(e) = request.arguments() {
            return request.raise_system(e);
        }
        let came: Vec<String> =
            Context::received().iter().map(|(name, value)| format!("{name}={value}")).collect();
        request.reply(Some(&Any::new(&came.join(" ")).unwrap()), &[])
    }
}

#[test]
fn properties_are_sent_with_operations_that_declare_them() {
    let orb = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().build().unwrap();
    let text = &ironorb::TypeDef::String { bound: 0 };
    let tell = OperationDescription::new("tell").returns(text).context("region").context("colour*");
    let interface = InterfaceDescription::new("IDL:Telling:1.0", "Telling").operation(tell);
    let servant = dynamic::servant(Arc::new(Telling(Arc::new(interface))));
    let poa = orb.root_poa();
    let id = poa.activate_object(servant).unwrap();
    let object = poa.id_to_reference(&id).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("telling.idl");
    std::fs::write(
        &file,
        "interface Telling { string tell() context (\"region\", \"colour*\"); string other(); };",
    )
    .unwrap();
    let ior = object.to_ior_string();
    let with = |args: &[&str]| call(&[&[ior.as_str(), "--idl", file.to_str().unwrap()], args].concat());
    let answer = with(&["tell", "--context", "region=north", "--context", "colour.front=a=b"]).expect();
    assert_eq!(answer, "\"colour.front=a=b region=north\"\n");
    assert_eq!(with(&["tell"]).expect(), "\"\"\n");
    let said = with(&["tell", "--context", "reg=north"]).expect_failure(2);
    assert!(said.contains("`tell` does not take the property reg"), "{said}");
    let said = with(&["other", "--context", "region=north"]).expect_failure(2);
    assert!(said.contains("no `context` clause names it"), "{said}");
    with(&["tell", "--context", "region"]).expect_failure(2);
    orb.shutdown(true).unwrap();
}

/// The completions that Bash offers at the end of a line.
fn offered(line: &str) -> String {
    let script = run(["completions", "bash"]).expect();
    let program = ironorb().to_str().unwrap();
    let words: Vec<&str> = line.split(' ').collect();
    let asked = format!(
        "{script}\nCOMP_LINE='{line}' COMP_POINT={} COMP_CWORD={} COMP_WORDS=({line} ''); _ironorb_operations {program} '{}' ''; \
         echo \"${{COMPREPLY[*]}}\"",
        line.len(),
        words.len() - 1,
        words[words.len() - 1],
    );
    bash(&asked).expect()
}

#[test]
fn shells_complete_operations() {
    let repository = repository(PROBE_IDL);
    let (orb, ior) = serve(None);
    let idl = ["--idl", PROBE_IDL].join(" ");
    assert_eq!(offered(&format!("ironorb call {ior} {idl} re")), "reflect refuse release\n");
    assert_eq!(offered(&format!("ironorb call --ifr {} {ior} la", repository.ready)), "label label=\n");
    assert_eq!(offered(&format!("ironorb call {ior} -ORBgiopVersion 1.1 {idl} dep")), "depth\n");
    let (described, itself) = serve(Some(&repository));
    assert_eq!(offered(&format!("ironorb call {itself} dep")), "depth\n");
    // No completions after the operation, or where the types are unknown. Errors print nothing either.
    for line in [
        format!("ironorb call {ior} {idl} add re"),
        format!("ironorb call {ior} {idl}x re"),
        format!("ironorb call {ior} re"),
        format!("ironorb call {ior} --idl re"),
        format!("ironorb call IOR:zz {idl} re"),
        format!("ironorb call corbaloc::127.0.0.1:1/x {idl} re"),
        "ironorb naming re".to_owned(),
    ] {
        let names = run(["complete-operations", &line]).expect();
        assert_eq!(names, "", "{line}");
    }
    orb.shutdown(true).unwrap();
    described.shutdown(true).unwrap();
}
