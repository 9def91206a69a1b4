//! Definitions from interface repositories, ours or other ORBs', by the operations that all have (CORBA 3.3 part 1,
//! clause 14).
//!
//! Nothing here changes a repository, keeps what it tells or believes it for longer than [`LookUp`] says. TypeCodes come
//! whole, with what they contain, so a question for each interface and each of its bases is all there is.

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

/// Bases, direct and not, that an interface in a repository may have; with more it is IMP_LIMIT. Default and only value.
pub const BASES_MAX: usize = 256;

/// Definitions that are asked in one look-up; with more it is IMP_LIMIT. A base that is reached in several ways is asked for
/// each. Default and only value.
pub const DEFINITIONS_ASKED_MAX: usize = 1024;

/// Operations and attributes, those that can be set counting twice, that all the definitions of one look-up may tell; with
/// more it is IMP_LIMIT. Repositories tell inherited ones with each. Default and only value.
pub const OPERATIONS_TOLD_MAX: usize = 1 << 16;

/// Interfaces of one repository that an object is asked for (`_is_a`) when its own is not known. Default and only value.
pub const INTERFACES_LISTED_MAX: usize = 256;

/// How long one look-up may take in all; then it is TIMEOUT. Each of its calls also ends at its own deadline. Default and
/// only value.
pub const LOOK_UP_TIME_MAX: Duration = Duration::from_secs(60);

/// Types that are looked at in one answer to find those with ids.
const STEPS_MAX: usize = 1 << 16;

/// An interface with all of its bases, and the types with ids that came along.
pub(crate) struct Described {
    pub(crate) interface: InterfaceDescription,
    pub(crate) types: BTreeMap<String, TypeCode>,
}

/// One look-up: what it may still cost, whatever a repository says.
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

    /// The interface that a repository has under an id. Blocks.
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

    /// The type that a repository has under an id. Blocks.
    pub(crate) fn type_code(
        self,
        repository: &RepositoryRef,
        id: &str,
    ) -> Result<Option<TypeCode>, SystemException> {
        let Some(found) = self.in_time(repository)?.lookup_id(id)? else { return Ok(None) };
        if !has_type(self.in_time(&found)?.def_kind()?) {
            return Ok(None);
        }
        // Exceptions are no IDLType, but theirs is the same operation.
        let definition: IdlTypeRef = found.object().narrow_unchecked();
        let type_code = self.in_time(&definition)?.type_()?;
        if type_code.id() != Ok(id) {
            return Err(inconsistent(format!("the repository has another type under {id}")));
        }
        Ok(Some(type_code))
    }

    /// The repository id that a scoped name stands for in a repository. Blocks.
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

    /// The ids of the interfaces that a repository lists, those of modules within modules too, up to
    /// [`INTERFACES_LISTED_MAX`]. Blocks.
    pub(crate) fn interface_ids(
        mut self,
        repository: &RepositoryRef,
    ) -> Result<Vec<String>, SystemException> {
        let mut ids = Vec::new();
        let mut containers = VecDeque::from([ContainerRef::from(repository.clone())]);
        while let Some(container) = containers.pop_front() {
            for told in self.in_time(&container)?.describe_contents(DefinitionKind::DkAll, true, -1)? {
                let Some(contained) = told.contained_object else { continue };
                self.definitions_left =
                    self.definitions_left.checked_sub(1).ok_or_else(too_many_definitions)?;
                if told.kind == DefinitionKind::DkModule {
                    containers.push_back(contained.object().narrow_unchecked());
                } else if is_interface(told.kind) {
                    ids.push(self.in_time(&contained)?.id()?);
                }
                if ids.len() >= INTERFACES_LISTED_MAX {
                    return Ok(ids);
                }
            }
        }
        Ok(ids)
    }

    /// What one definition tells of itself. Blocks.
    pub(crate) fn describe(&mut self, definition: &InterfaceDefRef) -> Result<Full, SystemException> {
        self.definitions_left = self.definitions_left.checked_sub(1).ok_or_else(too_many_definitions)?;
        let full = Full::ask(&self.in_time(definition)?)?;
        let told = full.description.operations.len();
        self.operations_left = self.operations_left.checked_sub(told).ok_or_else(too_many_operations)?;
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
                // Many references may be to one base, and none is followed for nothing.
                if to_ask.len() > self.definitions_left {
                    return Err(too_many_definitions());
                }
            }
            types.extend(full.type_code);
            bases.push(full.description);
        }
        // Repositories should tell inherited operations with the first, and not all do.
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

    /// A reference to an object whose next call ends in time.
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

/// All types with ids in those of one answer, the first with each id.
pub(crate) fn with_ids<'t>(types: impl IntoIterator<Item = &'t TypeCode>) -> BTreeMap<String, TypeCode> {
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
        .with_detail(format!("the interface repository has not told all within {seconds} seconds"))
}

/// The definition that a reference from `_interface` stands for.
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
        // No server is there, so what is asked is TRANSIENT.
        let nobody = orb.string_to_object("corbaloc::127.0.0.1:1/nobody").unwrap();
        let kind = |look_up: LookUp| {
            let mut look_up = look_up;
            look_up.describe(&nobody.narrow_unchecked()).err().map(|e| e.kind)
        };
        assert_eq!(kind(LookUp::begin()), Some(SystemExceptionKind::Transient));
        let past = LookUp { until: Instant::now(), ..LookUp::begin() };
        assert_eq!(kind(past), Some(SystemExceptionKind::Timeout));
        let spent = LookUp { definitions_left: 0, ..LookUp::begin() };
        assert_eq!(kind(spent), Some(SystemExceptionKind::ImpLimit));
        // No call of it may take longer than what is left of it, nor longer than it would take elsewhere.
        let timeout = |own: Option<Duration>| {
            let look_up = LookUp { until: Instant::now() + Duration::from_secs(20), ..LookUp::begin() };
            let called: InterfaceDefRef =
                look_up.in_time(&nobody.with_timeout(own).narrow_unchecked()).unwrap();
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
