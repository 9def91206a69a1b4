//! Definitions from interface repositories, ours or other ORBs', by the operations that all have (CORBA 3.3 part 1,
//! clause 14).
//!
//! Nothing here changes a repository. What one has told is kept and not asked again; TypeCodes come whole, with what they
//! contain, so a question for each interface and each of its bases is all there is.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ironorb::dynamic::{InterfaceDescription, OperationDescription, ParameterMode};
use ironorb::giop::typecode::TypeWalk;
use ironorb::ifr::corba::{
    self, Contained as _, Container as _, DefinitionKind, IdlType as _, IdlTypeRef,
    InterfaceAttrExtension as _, InterfaceAttrExtensionRef, InterfaceDef as _, InterfaceDefRef,
    IrObject as _, Repository as _, RepositoryRef,
};
use ironorb::{
    CompletionStatus, MinorCode, ObjectRef, SystemException, SystemExceptionKind, TcKind, TypeCode, TypedRef,
};

/// Interfaces that are kept of all that repositories have told; those beyond are asked for each time. Default and only
/// value.
pub const INTERFACES_KEPT_MAX: usize = 4096;

/// Types that are kept of all that repositories have told; those beyond are asked for each time. Default and only value.
pub const TYPES_KEPT_MAX: usize = 65_536;

/// Bases, direct and not, that an interface in a repository may have; with more it is IMP_LIMIT. Default and only value.
pub const BASES_MAX: usize = 256;

/// Types that are looked at in one answer to find those with ids.
const STEPS_MAX: usize = 1 << 16;

/// Repositories that objects have led to and that are asked from then on, too. Default and only value.
pub const REPOSITORIES_FOUND_MAX: usize = 8;

/// What repositories have told so far.
#[derive(Default)]
pub(crate) struct Told {
    tables: Mutex<Tables>,
}

#[derive(Default)]
struct Tables {
    interfaces: BTreeMap<String, Arc<InterfaceDescription>>,
    types: BTreeMap<String, TypeCode>,
    /// Those that objects have led to.
    repositories: Vec<RepositoryRef>,
}

impl Told {
    /// Keeps a repository that an object has led to: the types of other things are likely there, too.
    pub(crate) fn remember(&self, repository: &RepositoryRef) {
        let mut tables = self.tables();
        let is_same = |known: &RepositoryRef| known.object().is_equivalent(repository.object());
        if tables.repositories.len() < REPOSITORIES_FOUND_MAX && !tables.repositories.iter().any(is_same) {
            tables.repositories.push(repository.clone());
        }
    }

    pub(crate) fn repositories(&self) -> Vec<RepositoryRef> {
        self.tables().repositories.clone()
    }

    pub(crate) fn interface(&self, id: &str) -> Option<Arc<InterfaceDescription>> {
        self.tables().interfaces.get(id).cloned()
    }

    pub(crate) fn type_code(&self, id: &str) -> Option<TypeCode> {
        self.tables().types.get(id).cloned()
    }

    /// The interface that a repository has under an id. Blocks.
    pub(crate) fn ask_interface(
        &self,
        repository: &RepositoryRef,
        id: &str,
    ) -> Result<Option<Arc<InterfaceDescription>>, SystemException> {
        match repository.lookup_id(id)? {
            Some(found) if is_interface(found.def_kind()?) => {
                self.ask_definition(&found.object().narrow_unchecked()).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// The type that a repository has under an id. Blocks.
    pub(crate) fn ask_type(
        &self,
        repository: &RepositoryRef,
        id: &str,
    ) -> Result<Option<TypeCode>, SystemException> {
        let Some(found) = repository.lookup_id(id)? else { return Ok(None) };
        if !has_type(found.def_kind()?) {
            return Ok(None);
        }
        // Exceptions are no IDLType, but theirs is the same operation.
        let type_code = found.object().narrow_unchecked::<IdlTypeRef>().type_()?;
        if type_code.id() != Ok(id) {
            return Err(inconsistent(format!("the repository has another type under {id}")));
        }
        let types = with_ids([&type_code]);
        self.tables().keep_types(types);
        Ok(Some(type_code))
    }

    /// What an `InterfaceDef` describes, with its bases. Blocks.
    pub(crate) fn ask_definition(
        &self,
        definition: &InterfaceDefRef,
    ) -> Result<Arc<InterfaceDescription>, SystemException> {
        let mut made: Option<InterfaceDescription> = None;
        let mut seen = BTreeSet::new();
        let mut types = Vec::new();
        let mut to_ask = VecDeque::from([definition.clone()]);
        while let Some(definition) = to_ask.pop_front() {
            let full = Full::ask(&definition)?;
            if !seen.insert(full.description.id.clone()) {
                continue;
            }
            if seen.len() > BASES_MAX + 1 {
                return Err(too_many_bases());
            }
            match &mut made {
                None => {
                    if let Some(known) = self.interface(&full.description.id) {
                        return Ok(known);
                    }
                    made = Some(full.description);
                }
                // Repositories should tell inherited operations with the first, and not all do.
                Some(made) => *made = std::mem::replace(made, empty()).inherits(&full.description),
            }
            types.extend(full.type_code);
            if full.has_bases {
                to_ask.extend(definition.base_interfaces()?.into_iter().flatten());
            }
        }
        let made = Arc::new(made.unwrap_or_else(empty));
        let types = with_ids(types.iter().chain(types_of(&made)));
        let mut tables = self.tables();
        tables.keep_types(types);
        if tables.interfaces.len() < INTERFACES_KEPT_MAX {
            tables.interfaces.entry(made.id.clone()).or_insert_with(|| made.clone());
        }
        Ok(made)
    }

    fn tables(&self) -> MutexGuard<'_, Tables> {
        // Tables are whole at every moment.
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tables = self.tables();
        f.debug_struct("Told")
            .field("interfaces", &tables.interfaces.len())
            .field("types", &tables.types.len())
            .finish()
    }
}

/// The repository id that a scoped name stands for in a repository. Blocks.
pub(crate) fn ask_id(
    repository: &RepositoryRef,
    scoped_name: &str,
) -> Result<Option<String>, SystemException> {
    match repository.lookup(scoped_name)? {
        Some(found) => found.id().map(Some),
        None => Ok(None),
    }
}

impl Tables {
    fn keep_types(&mut self, types: BTreeMap<String, TypeCode>) {
        for (id, type_code) in types {
            if self.types.len() < TYPES_KEPT_MAX {
                self.types.entry(id).or_insert(type_code);
            }
        }
    }
}

/// All types with ids in those of one answer, the first with each id.
fn with_ids<'t>(types: impl IntoIterator<Item = &'t TypeCode>) -> BTreeMap<String, TypeCode> {
    let mut found = BTreeMap::new();
    let mut walk = TypeWalk::default();
    types.into_iter().take(STEPS_MAX).for_each(|type_code| walk.add(type_code, ()));
    while let Some((ty, ())) = walk.next_type() {
        if let Ok(id) = ty.id()
            && !id.is_empty()
        {
            if found.contains_key(id) {
                continue; // each answer has its own copy of what it is made of
            }
            found.insert(id.to_owned(), ty.clone());
        }
        if walk.len() < STEPS_MAX {
            walk.add_parts(&ty, ());
        }
    }
    found
}

/// One interface without its bases.
struct Full {
    description: InterfaceDescription,
    type_code: Option<TypeCode>,
    has_bases: bool,
}

impl Full {
    fn ask(definition: &InterfaceDefRef) -> Result<Full, SystemException> {
        let extended: InterfaceAttrExtensionRef = definition.object().narrow_unchecked();
        match extended.describe_ext_interface() {
            Ok(full) => {
                let mut description = operations(full.id, full.name, full.operations);
                for attribute in full.attributes {
                    add_attribute(&mut description, attribute);
                }
                let type_code = Some(full.type_);
                Ok(Full { description, type_code, has_bases: !full.base_interfaces.is_empty() })
            }
            // A repository from before CORBA 3, whose attributes have no exceptions.
            Err(e) if is_no_operation(&e) => {
                let full = definition.describe_interface()?;
                let mut description = operations(full.id, full.name, full.operations);
                for attribute in full.attributes {
                    add_attribute(&mut description, without_exceptions(attribute));
                }
                let type_code = Some(full.type_);
                Ok(Full { description, type_code, has_bases: !full.base_interfaces.is_empty() })
            }
            Err(e) => Err(e),
        }
    }
}

fn operations(id: String, name: String, told: Vec<corba::OperationDescription>) -> InterfaceDescription {
    let mut made = InterfaceDescription::new(id, name);
    for told in told {
        let mut operation = OperationDescription::new(told.name).returns(told.result);
        operation.oneway = told.mode == corba::OperationMode::OpOneway;
        for parameter in told.parameters {
            let mode = match parameter.mode {
                corba::ParameterMode::ParamIn => ParameterMode::In,
                corba::ParameterMode::ParamOut => ParameterMode::Out,
                corba::ParameterMode::ParamInout => ParameterMode::InOut,
            };
            operation = operation.parameter(parameter.name, mode, parameter.type_);
        }
        operation.exceptions = exceptions(told.exceptions);
        operation.contexts = told.contexts;
        made = made.operation(operation);
    }
    made
}

fn add_attribute(description: &mut InterfaceDescription, told: corba::ExtAttributeDescription) {
    let mut getter = OperationDescription::getter(&told.name, told.type_.clone());
    getter.exceptions = exceptions(told.get_exceptions);
    description.operations.push(Arc::new(getter));
    if told.mode == corba::AttributeMode::AttrNormal {
        let mut setter = OperationDescription::setter(&told.name, told.type_);
        setter.exceptions = exceptions(told.put_exceptions);
        description.operations.push(Arc::new(setter));
    }
}

fn without_exceptions(told: corba::AttributeDescription) -> corba::ExtAttributeDescription {
    corba::ExtAttributeDescription {
        name: told.name,
        id: told.id,
        defined_in: told.defined_in,
        version: told.version,
        type_: told.type_,
        mode: told.mode,
        get_exceptions: Vec::new(),
        put_exceptions: Vec::new(),
    }
}

fn exceptions(told: Vec<corba::ExceptionDescription>) -> Vec<TypeCode> {
    let types = told.into_iter().map(|exception| exception.type_);
    types.filter(|type_code| type_code.kind() == TcKind::Except).collect()
}

fn types_of(interface: &InterfaceDescription) -> impl Iterator<Item = &TypeCode> {
    interface.operations.iter().flat_map(|operation| {
        let parameters = operation.parameters.iter().map(|parameter| &parameter.type_code);
        std::iter::once(&operation.result).chain(parameters).chain(&operation.exceptions)
    })
}

fn is_interface(kind: DefinitionKind) -> bool {
    use DefinitionKind as Kind;
    matches!(kind, Kind::DkInterface | Kind::DkAbstractInterface | Kind::DkLocalInterface)
}

fn has_type(kind: DefinitionKind) -> bool {
    use DefinitionKind as Kind;
    let is_typedef = matches!(
        kind,
        Kind::DkTypedef
            | Kind::DkAlias
            | Kind::DkStruct
            | Kind::DkUnion
            | Kind::DkEnum
            | Kind::DkNative
            | Kind::DkValueBox
    );
    is_typedef || is_interface(kind) || matches!(kind, Kind::DkValue | Kind::DkException | Kind::DkEvent)
}

fn is_no_operation(e: &SystemException) -> bool {
    matches!(e.kind, SystemExceptionKind::BadOperation | SystemExceptionKind::NoImplement)
}

fn empty() -> InterfaceDescription {
    InterfaceDescription::new("", "")
}

#[cold]
fn inconsistent(what: String) -> SystemException {
    SystemException::new(SystemExceptionKind::IntfRepos, MinorCode::NONE, CompletionStatus::Yes)
        .with_detail(what)
}

#[cold]
fn too_many_bases() -> SystemException {
    SystemException::new(SystemExceptionKind::ImpLimit, MinorCode::NONE, CompletionStatus::Yes)
        .with_detail(format!("the interface has more than {BASES_MAX} bases"))
}

/// The definition that a reference from `_interface` stands for.
pub(crate) fn definition(object: &ObjectRef) -> InterfaceDefRef {
    object.narrow_unchecked()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hostile::{selfish, wide};

    #[test]
    fn types_of_an_answer_are_found_by_looking_at_each_once() {
        assert!(with_ids([&selfish(20_000)]).is_empty());
        let structs = wide(64, TcKind::Long);
        let found = with_ids([&structs, &structs]);
        assert_eq!(found.len(), 64);
        assert_eq!(found["IDL:S0:1.0"], structs);
    }
}
