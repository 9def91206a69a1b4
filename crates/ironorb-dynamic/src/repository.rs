//! Reads definitions from interface repositories of any ORB, by the operations that all of them have (CORBA
//! 3.3 part 1, clause 14).
//!
//! This module changes no repository and caches nothing. [`LookUp`] bounds what it accepts. A TypeCode
//! arrives with all types that it contains, so one question for each interface and each of its bases is
//! enough.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ironorb::dynamic::{InterfaceDescription, OperationDescription, ParameterMode};
use ironorb::giop::typecode::TypeWalk;
use ironorb::ifr::corba::{
    self, Contained as _, Container as _, ContainerRef, DefinitionKind, IdlType as _, IdlTypeRef,
    InterfaceAttrExtension as _, InterfaceAttrExtensionRef, InterfaceDef as _, InterfaceDefRef,
    IrObject as _, Repository as _, RepositoryRef,
};
use ironorb::{
    CompletionStatus, MinorCode, ObjectRef, SystemException, SystemExceptionKind, TcKind, TypeCode, TypedRef,
};

/// Most bases of an interface in a repository, direct and indirect; more raise IMP_LIMIT. Default and only
/// value.
pub const BASES_MAX: usize = 256;

/// Most definitions that one look-up asks for; more raise IMP_LIMIT. A base that is reached by several paths
/// counts for each. Default and only value.
pub const DEFINITIONS_ASKED_MAX: usize = 1024;

/// Most operations and attributes in all definitions of one look-up; more raise IMP_LIMIT. Attributes that
/// can be set count twice. Repositories repeat inherited operations in each definition. Default and only
/// value.
pub const OPERATIONS_TOLD_MAX: usize = 1 << 16;

/// Most interfaces of one repository that an object is asked for (`_is_a`) when its own is not known. Default
/// and only value.
pub const INTERFACES_LISTED_MAX: usize = 256;

/// Longest time for one look-up; then it raises TIMEOUT. Each of its calls also ends at its own deadline.
/// Default and only value.
pub const LOOK_UP_TIME_MAX: Duration = Duration::from_secs(60);

/// Most types that are examined in one answer to find those with ids.
const STEPS_MAX: usize = 1 << 16;

/// An interface with all of its bases, and the types with ids in its description.
pub(crate) struct Described {
    pub(crate) interface: InterfaceDescription,
    pub(crate) types: BTreeMap<String, TypeCode>,
}

/// One look-up, with the rest of its bounds.
pub(crate) struct LookUp {
    until: Instant,
    definitions_left: usize,
    operations_left: usize,
}

impl LookUp {
    pub(crate) fn begin() -> LookUp {
        LookUp {
            until: Instant::now() + LOOK_UP_TIME_MAX,
            definitions_left: DEFINITIONS_ASKED_MAX,
            operations_left: OPERATIONS_TOLD_MAX,
        }
    }

    /// The interface with this id in a repository. Blocks.
    pub(crate) fn interface(
        mut self,
        repository: &RepositoryRef,
        id: &str,
    ) -> Result<Option<Described>, SystemException> {
        let Some(found) = self.in_time(repository)?.lookup_id(id)? else { return Ok(None) };
        if !is_interface(self.in_time(&found)?.def_kind()?) {
            return Ok(None);
        }
        let definition = found.object().narrow_unchecked();
        let first = self.describe(&definition)?;
        if first.description.id != id {
            return Err(inconsistent(format!("the repository has another interface under {id}")));
        }
        self.with_bases(&definition, first).map(Some)
    }

    /// The type with this id in a repository. Blocks.
    pub(crate) fn type_code(
        self,
        repository: &RepositoryRef,
        id: &str,
    ) -> Result<Option<TypeCode>, SystemException> {
        let Some(found) = self.in_time(repository)?.lookup_id(id)? else { return Ok(None) };
        if !has_type(self.in_time(&found)?.def_kind()?) {
            return Ok(None);
        }
        // An exception is not an IDLType, but has the same operation for its type.
        let definition: IdlTypeRef = found.object().narrow_unchecked();
        let type_code = self.in_time(&definition)?.type_()?;
        if type_code.id() != Ok(id) {
            return Err(inconsistent(format!("the repository has another type under {id}")));
        }
        Ok(Some(type_code))
    }

    /// The repository id of a scoped name in a repository. Blocks.
    pub(crate) fn id(
        self,
        repository: &RepositoryRef,
        scoped_name: &str,
    ) -> Result<Option<String>, SystemException> {
        match self.in_time(repository)?.lookup(scoped_name)? {
            Some(found) => self.in_time(&found)?.id().map(Some),
            None => Ok(None),
        }
    }

    /// The ids of the interfaces that a repository lists, including those in nested modules, up to
    /// [`INTERFACES_LISTED_MAX`]. Blocks.
    pub(crate) fn interface_ids(
        mut self,
        repository: &RepositoryRef,
    ) -> Result<Vec<String>, SystemException> {
        let mut ids = Vec::new();
        let mut containers = VecDeque::from([ContainerRef::from(repository.clone())]);
        while let Some(container) = containers.pop_front() {
            for listed in self.in_time(&container)?.describe_contents(DefinitionKind::DkAll, true, -1)? {
                let Some(contained) = listed.contained_object else { continue };
                self.definitions_left =
                    self.definitions_left.checked_sub(1).ok_or_else(too_many_definitions)?;
                if listed.kind == DefinitionKind::DkModule {
                    containers.push_back(contained.object().narrow_unchecked());
                } else if is_interface(listed.kind) {
                    ids.push(self.in_time(&contained)?.id()?);
                }
                if ids.len() >= INTERFACES_LISTED_MAX {
                    return Ok(ids);
                }
            }
        }
        Ok(ids)
    }

    /// The full description of one definition. Blocks.
    pub(crate) fn describe(&mut self, definition: &InterfaceDefRef) -> Result<Full, SystemException> {
        self.definitions_left = self.definitions_left.checked_sub(1).ok_or_else(too_many_definitions)?;
        let full = Full::ask(&self.in_time(definition)?)?;
        let count = full.description.operations.len();
        self.operations_left = self.operations_left.checked_sub(count).ok_or_else(too_many_operations)?;
        Ok(full)
    }

    /// An interface with its bases. Blocks.
    pub(crate) fn with_bases(
        &mut self,
        definition: &InterfaceDefRef,
        first: Full,
    ) -> Result<Described, SystemException> {
        let mut seen = BTreeSet::from([first.description.id.clone()]);
        let mut types = Vec::from_iter(first.type_code);
        let mut bases = Vec::new();
        let mut to_ask = VecDeque::new();
        if first.has_bases {
            to_ask.extend(self.bases_of(definition)?);
        }
        while let Some(base) = to_ask.pop_front() {
            let full = self.describe(&base)?;
            if !seen.insert(full.description.id.clone()) {
                continue;
            }
            if seen.len() > BASES_MAX + 1 {
                return Err(limited(format!("the interface has more than {BASES_MAX} bases")));
            }
            if full.has_bases {
                to_ask.extend(self.bases_of(&base)?);
                // Several references may lead to one base. Each counts against the bound.
                if to_ask.len() > self.definitions_left {
                    return Err(too_many_definitions());
                }
            }
            types.extend(full.type_code);
            bases.push(full.description);
        }
        // Repositories should include inherited operations in a description, but not all do.
        let interface = first.description.inherits_all(&bases);
        let types = with_ids(types.iter().chain(types_of(&interface)));
        Ok(Described { interface, types })
    }

    fn bases_of(&self, definition: &InterfaceDefRef) -> Result<Vec<InterfaceDefRef>, SystemException> {
        let bases = self.in_time(definition)?.base_interfaces()?;
        if bases.len() > self.definitions_left {
            return Err(too_many_definitions());
        }
        Ok(bases.into_iter().flatten().collect())
    }

    /// A reference to an object whose next call ends within the look-up's time.
    pub(crate) fn in_time<R: TypedRef>(&self, one: &R) -> Result<R, SystemException> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(took_too_long());
        }
        let own = one.object().effective_policies().roundtrip_timeout.flatten();
        let timeout = own.map_or(left, |own| own.min(left));
        Ok(one.object().with_timeout(Some(timeout)).narrow_unchecked())
    }
}

/// All types with ids within the types of one answer; the first type with each id counts.
pub(crate) fn with_ids<'t>(types: impl IntoIterator<Item = &'t TypeCode>) -> BTreeMap<String, TypeCode> {
    let mut found = BTreeMap::new();
    let mut walk = TypeWalk::default();
    types.into_iter().take(STEPS_MAX).for_each(|type_code| walk.add(type_code, ()));
    while let Some((ty, ())) = walk.next_type() {
        if let Ok(id) = ty.id()
            && !id.is_empty()
        {
            if found.contains_key(id) {
                continue; // each answer contains its own copy of its parts
            }
            found.insert(id.to_owned(), ty.clone());
        }
        if walk.len() < STEPS_MAX {
            walk.add_parts(&ty, ());
        }
    }
    found
}

/// The description of one interface without its bases.
pub(crate) struct Full {
    pub(crate) description: InterfaceDescription,
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
            // A repository older than CORBA 3, whose attributes have no exceptions.
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

fn operations(id: String, name: String, described: Vec<corba::OperationDescription>) -> InterfaceDescription {
    let mut made = InterfaceDescription::new(id, name);
    for described in described {
        let mut operation = OperationDescription::new(described.name).returns(described.result);
        operation.oneway = described.mode == corba::OperationMode::OpOneway;
        for parameter in described.parameters {
            let mode = match parameter.mode {
                corba::ParameterMode::ParamIn => ParameterMode::In,
                corba::ParameterMode::ParamOut => ParameterMode::Out,
                corba::ParameterMode::ParamInout => ParameterMode::InOut,
            };
            operation = operation.parameter(parameter.name, mode, parameter.type_);
        }
        operation.exceptions = exceptions(described.exceptions);
        operation.contexts = described.contexts;
        made = made.operation(operation);
    }
    made
}

fn add_attribute(description: &mut InterfaceDescription, described: corba::ExtAttributeDescription) {
    let mut getter = OperationDescription::getter(&described.name, described.type_.clone());
    getter.exceptions = exceptions(described.get_exceptions);
    description.operations.push(Arc::new(getter));
    if described.mode == corba::AttributeMode::AttrNormal {
        let mut setter = OperationDescription::setter(&described.name, described.type_);
        setter.exceptions = exceptions(described.put_exceptions);
        description.operations.push(Arc::new(setter));
    }
}

fn without_exceptions(described: corba::AttributeDescription) -> corba::ExtAttributeDescription {
    corba::ExtAttributeDescription {
        name: described.name,
        id: described.id,
        defined_in: described.defined_in,
        version: described.version,
        type_: described.type_,
        mode: described.mode,
        get_exceptions: Vec::new(),
        put_exceptions: Vec::new(),
    }
}

fn exceptions(described: Vec<corba::ExceptionDescription>) -> Vec<TypeCode> {
    let types = described.into_iter().map(|exception| exception.type_);
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

#[cold]
fn inconsistent(what: String) -> SystemException {
    SystemException::new(SystemExceptionKind::IntfRepos, MinorCode::NONE, CompletionStatus::Yes)
        .with_detail(what)
}

fn too_many_definitions() -> SystemException {
    limited(format!("the interface leads to more than {DEFINITIONS_ASKED_MAX} definitions"))
}

fn too_many_operations() -> SystemException {
    limited(format!("the interface has more than {OPERATIONS_TOLD_MAX} operations, counted with each base"))
}

#[cold]
fn limited(what: String) -> SystemException {
    SystemException::new(SystemExceptionKind::ImpLimit, MinorCode::NONE, CompletionStatus::Yes)
        .with_detail(what)
}

#[cold]
fn took_too_long() -> SystemException {
    let seconds = LOOK_UP_TIME_MAX.as_secs();
    SystemException::new(SystemExceptionKind::Timeout, MinorCode::NONE, CompletionStatus::Yes)
        .with_detail(format!("the interface repository has not answered within {seconds} seconds"))
}

/// The definition that a reference from `_interface` leads to.
pub(crate) fn definition(object: &ObjectRef) -> InterfaceDefRef {
    object.narrow_unchecked()
}

#[cfg(test)]
mod tests {
    use ironorb::Orb;

    use super::*;
    use crate::hostile::{selfish, wide};

    #[test]
    fn a_look_up_ends_with_its_time_and_its_definitions() {
        let orb = Orb::builder().no_endpoint().build().unwrap();
        // No server listens there, so a question raises TRANSIENT.
        let unreachable = orb.string_to_object("corbaloc::127.0.0.1:1/absent").unwrap();
        let kind = |look_up: LookUp| {
            let mut look_up = look_up;
            look_up.describe(&unreachable.narrow_unchecked()).err().map(|e| e.kind)
        };
        assert_eq!(kind(LookUp::begin()), Some(SystemExceptionKind::Transient));
        let past = LookUp { until: Instant::now(), ..LookUp::begin() };
        assert_eq!(kind(past), Some(SystemExceptionKind::Timeout));
        let spent = LookUp { definitions_left: 0, ..LookUp::begin() };
        assert_eq!(kind(spent), Some(SystemExceptionKind::ImpLimit));
        // No call may take longer than the look-up has left, nor longer than the reference's own timeout.
        let timeout = |own: Option<Duration>| {
            let look_up = LookUp { until: Instant::now() + Duration::from_secs(20), ..LookUp::begin() };
            let called: InterfaceDefRef =
                look_up.in_time(&unreachable.with_timeout(own).narrow_unchecked()).unwrap();
            called.object().effective_policies().roundtrip_timeout.flatten().unwrap()
        };
        assert_eq!(timeout(Some(Duration::from_secs(5))), Duration::from_secs(5));
        assert!(timeout(None) <= Duration::from_secs(20));
        assert!(timeout(Some(Duration::from_secs(500))) <= Duration::from_secs(20));
        orb.shutdown(true).unwrap();
    }

    #[test]
    fn types_of_an_answer_are_found_by_looking_at_each_once() {
        assert!(with_ids([&selfish(20_000)]).is_empty());
        let structs = wide(64, TcKind::Long);
        let found = with_ids([&structs, &structs]);
        assert_eq!(found.len(), 64);
        assert_eq!(found["IDL:S0:1.0"], structs);
    }
}
