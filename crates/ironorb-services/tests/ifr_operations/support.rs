//! A repository behind TCP, its client, and the record of calls.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use ironorb::ifr::corba::*;
use ironorb::interceptor::{ClientInterceptor, ClientRequestInfo};
use ironorb::{Orb, SystemException, SystemExceptionKind, TypeCode, TypedRef};
use ironorb_idl::model::{DefId, DefKind, Model};
use ironorb_idl::{MapLoader, Options, compile_with};
use ironorb_services::ifr::{InterfaceRepository, InterfaceRepositoryServer, Limits, Store};

pub(crate) struct Session {
    pub(crate) root: RepositoryRef,
    called: Calls,
    _orbs: [Orb; 2],
}

/// The type id of a reference, and an operation that returned a result.
type Calls = Arc<Mutex<BTreeSet<(String, String)>>>;

struct Witness(Calls);

impl ClientInterceptor for Witness {
    fn receive_reply(&self, request: &ClientRequestInfo) -> Result<(), SystemException> {
        let target = request.target().ior().type_id.clone();
        self.0.lock().unwrap().insert((target, request.operation().to_owned()));
        Ok(())
    }
}

impl Session {
    pub(crate) fn start() -> Session {
        let server = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().build().unwrap();
        let repository = InterfaceRepository::new(Store::in_memory().unwrap(), Limits::default());
        let served = InterfaceRepositoryServer::start(&server, repository).unwrap();
        let called = Calls::default();
        let client =
            Orb::builder().no_endpoint().client_interceptor(Witness(called.clone())).build().unwrap();
        let root = client.string_to_object(&served.root().object().to_ior_string()).unwrap();
        Session { root: root.narrow_unchecked(), called, _orbs: [server, client] }
    }

    /// A module for one scenario.
    pub(crate) fn module(&self, name: &str) -> ModuleDefRef {
        self.root.create_module(&format!("IDL:{name}:1.0"), name, "1.0").unwrap().unwrap()
    }

    pub(crate) fn primitive(&self, kind: PrimitiveKind) -> IdlTypeRef {
        self.root.get_primitive(kind).unwrap().unwrap().into()
    }

    /// The operations of the IDL without a reply, as `Interface::operation`.
    pub(crate) fn never_called(&self) -> Vec<String> {
        let model = ir();
        let mut missing = BTreeSet::new();
        for (_, operations) in interfaces(&model) {
            missing.extend(operations);
        }
        for (type_id, operation) in &*self.called.lock().unwrap() {
            // References carry the interface of CORBA 2, and the object has the extended one.
            let extended = type_id.replace("IDL:omg.org/CORBA/", "IDL:omg.org/CORBA/Ext");
            for (id, _) in interfaces(&model) {
                let definition = &model.get(id).repository_id;
                if *definition != *type_id && *definition != extended {
                    continue;
                }
                for has in std::iter::once(id).chain(model.all_bases(id)) {
                    missing.remove(&format!("{}::{operation}", model.get(has).name));
                }
            }
        }
        missing.into_iter().collect()
    }
}

fn ir() -> Model {
    let files = MapLoader::new().with("ir.idl", include_str!("../../../../idl/ir.idl"));
    compile_with("ir.idl".as_ref(), &Options::default(), &files).model.expect("it is IDL")
}

/// The interfaces of the IDL with the operations that each adds, by their names in requests.
fn interfaces(model: &Model) -> Vec<(DefId, Vec<String>)> {
    let mut found = Vec::new();
    for definition in model.definitions() {
        let DefKind::Interface(interface) = &definition.kind else { continue };
        if model.files()[definition.file.index()].is_builtin {
            continue;
        }
        let mut operations = Vec::new();
        for &item in &interface.items {
            let item = model.get(item);
            let name = |lead: &str| format!("{}::{lead}{}", definition.name, item.name);
            match &item.kind {
                DefKind::Operation(_) => operations.push(name("")),
                DefKind::Attribute(attribute) => {
                    operations.push(name("_get_"));
                    if !attribute.readonly {
                        operations.push(name("_set_"));
                    }
                }
                _ => {}
            }
        }
        found.push((definition.id, operations));
    }
    assert!(found.iter().map(|(_, operations)| operations.len()).sum::<usize>() > 100);
    found
}

/// A member whose TypeCode has no meaning, as the standard says.
pub(crate) fn member(name: &str, ty: &IdlTypeRef) -> StructMember {
    StructMember { name: name.to_owned(), type_: TypeCode::default(), type_def: Some(ty.clone()) }
}

pub(crate) fn parameter(name: &str, ty: &IdlTypeRef, mode: ParameterMode) -> ParameterDescription {
    ParameterDescription {
        name: name.to_owned(),
        type_: TypeCode::default(),
        type_def: Some(ty.clone()),
        mode,
    }
}

/// The exception of a refused operation, and its minor code.
#[track_caller]
pub(crate) fn refused<T>(outcome: Result<T, SystemException>) -> (SystemExceptionKind, u32) {
    let e = outcome.map(drop).expect_err("it is refused");
    (e.kind, e.minor.0 & 0xfff)
}

pub(crate) fn names<R: TypedRef + Contained>(found: &[Option<R>]) -> Vec<String> {
    found.iter().map(|one| one.as_ref().unwrap().name().unwrap()).collect()
}

pub(crate) fn same(one: &impl TypedRef, other: &impl TypedRef) -> bool {
    one.object().is_equivalent(other.object())
}
