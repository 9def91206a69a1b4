//! Container, Repository and ModuleDef: finding and creating definitions.

use ironorb::ifr::corba::{
    self, AbstractInterfaceDefRef, ContainedRef, Container, DefinitionKind, ExtInitializer, IdlTypeRef,
    Initializer, InterfaceDefRef, ModuleDef, PrimitiveKind, Repository, StructMember, UnionMember,
    ValueDefRef, container,
};
use ironorb::{Any, SystemException, TypeCode, TypedRef};

use super::definition::Definition;
use super::fault::Fault;
use super::seen::Seen;
use crate::ifr::RepositoryError;
use crate::ifr::load::nameless;
use crate::ifr::queries::{self, Found};
use crate::ifr::record::{self, Body, Case, DefinitionNumber, Member, Record, Value};
use crate::ifr::store::Lookup as _;
use crate::ifr::types::canonical;
use crate::ifr::values::label_of;

impl Definition {
    /// Creates a definition in this container.
    pub(super) fn create<R: TypedRef>(
        &self,
        (id, name, version): (&str, &str, &str),
        body: Result<Body, Fault>,
    ) -> Result<Option<R>, SystemException> {
        self.shared.answer(body.and_then(|body| {
            let kind = body.kind();
            let record = Record {
                id: id.to_owned(),
                name: name.to_owned(),
                version: version.to_owned(),
                container: self.number,
                body,
            };
            let number = self.shared.repository.create(&record)?;
            self.shared.reference(number, kind).map(Some)
        }))
    }

    fn create_nameless<R: TypedRef>(&self, body: Result<Body, Fault>) -> Result<Option<R>, SystemException> {
        self.shared.answer(body.and_then(|body| {
            let kind = body.kind();
            let number = self.shared.repository.create(&nameless(body))?;
            self.shared.reference(number, kind).map(Some)
        }))
    }

    /// Members from a client. Their types are given by the definitions; the TypeCodes beside them are only
    /// for reading.
    pub(super) fn members_of(&self, members: &[StructMember]) -> Result<Vec<Member>, Fault> {
        let member = |member: &StructMember| {
            Ok(Member { name: member.name.clone(), ty: self.shared.number(member.type_def.as_ref())? })
        };
        members.iter().map(member).collect()
    }

    pub(super) fn cases_of(
        &self,
        discriminator: DefinitionNumber,
        members: &[UnionMember],
    ) -> Result<Vec<Case>, Fault> {
        let discriminator = self.shared.repository.type_code(discriminator)?;
        let case = |member: &UnionMember| {
            let label = label_of(&discriminator, &member.label)?;
            Ok(Case {
                name: member.name.clone(),
                is_default: label.is_none(),
                label: label.unwrap_or(0),
                ty: self.shared.number(member.type_def.as_ref())?,
            })
        };
        members.iter().map(case).collect()
    }

    pub(super) fn plain_initializers(
        &self,
        initializers: &[Initializer],
    ) -> Result<Vec<record::Initializer>, Fault> {
        let initializer = |initializer: &Initializer| {
            Ok(record::Initializer {
                name: initializer.name.clone(),
                members: self.members_of(&initializer.members)?,
                exceptions: Vec::new(),
            })
        };
        initializers.iter().map(initializer).collect()
    }

    pub(super) fn ext_initializers_of(
        &self,
        initializers: &[ExtInitializer],
    ) -> Result<Vec<record::Initializer>, Fault> {
        let initializer = |initializer: &ExtInitializer| {
            Ok(record::Initializer {
                name: initializer.name.clone(),
                members: self.members_of(&initializer.members)?,
                exceptions: self.described_exceptions(&initializer.exceptions)?,
            })
        };
        initializers.iter().map(initializer).collect()
    }

    /// A value type from its flags (custom, abstract, truncatable), its bases and supported interfaces, and
    /// its initializers.
    fn new_value(
        &self,
        (is_custom, is_abstract, is_truncatable): (bool, bool, bool),
        (base, abstract_bases, supported): (
            Option<&ValueDefRef>,
            &[Option<ValueDefRef>],
            &[Option<InterfaceDefRef>],
        ),
        initializers: Result<Vec<record::Initializer>, Fault>,
    ) -> Result<Body, Fault> {
        let base = base.map(|base| self.shared.number(Some(base))).transpose()?;
        Ok(Body::Value {
            value: Value {
                is_abstract,
                is_custom,
                is_truncatable,
                base: base.into_iter().collect(),
                abstract_bases: self.shared.numbers(abstract_bases)?,
                supported: self.shared.numbers(supported)?,
                initializers: initializers?,
            },
        })
    }

    /// Exceptions, by the ids in their descriptions.
    pub(super) fn described_exceptions(
        &self,
        exceptions: &[corba::ExceptionDescription],
    ) -> Result<Vec<DefinitionNumber>, Fault> {
        let view = self.shared.repository.read()?;
        let number = |exception: &corba::ExceptionDescription| {
            let found = view.by_id(&exception.id)?;
            found.ok_or_else(|| Fault::bad_param("the repository has no exception of this id"))
        };
        exceptions.iter().map(number).collect()
    }

    fn limited(&self, found: Vec<Found>) -> Result<Vec<Found>, Fault> {
        let max = self.shared.repository.limits().answer_definitions_max;
        if found.len() > max {
            return Err(RepositoryError::Limit { what: "definitions in one answer", max: max as u64 }.into());
        }
        Ok(found)
    }

    fn references(&self, found: Vec<Found>) -> Result<corba::ContainedSeq, Fault> {
        let found = self.limited(found)?;
        found
            .into_iter()
            .map(|(number, record)| self.shared.reference(number, record.kind()).map(Some))
            .collect()
    }

    fn found(
        &self,
        view: &Seen<'_>,
        number: Option<DefinitionNumber>,
    ) -> Result<Option<ContainedRef>, Fault> {
        number.map(|number| self.shared.reference_in(view, number)).transpose()
    }
}

impl Container for Definition {
    fn lookup(&self, search_name: &str) -> Result<Option<ContainedRef>, SystemException> {
        self.read(|view, _| self.found(view, queries::lookup_scoped(view, self.number, search_name)?))
    }

    fn contents(
        &self,
        limit_type: DefinitionKind,
        exclude_inherited: bool,
    ) -> Result<corba::ContainedSeq, SystemException> {
        self.read(|view, _| {
            self.references(queries::contents(view, self.number, limit_type, exclude_inherited)?)
        })
    }

    fn lookup_name(
        &self,
        search_name: &str,
        levels_to_search: i32,
        limit_type: DefinitionKind,
        exclude_inherited: bool,
    ) -> Result<corba::ContainedSeq, SystemException> {
        self.read(|view, _| {
            self.references(queries::lookup_name(
                view,
                self.number,
                search_name,
                levels_to_search,
                limit_type,
                exclude_inherited,
            )?)
        })
    }

    fn describe_contents(
        &self,
        limit_type: DefinitionKind,
        exclude_inherited: bool,
        max_returned_objs: i32,
    ) -> Result<container::DescriptionSeq, SystemException> {
        self.read(|view, _| {
            let mut found = queries::contents(view, self.number, limit_type, exclude_inherited)?;
            if let Ok(max) = usize::try_from(max_returned_objs) {
                found.truncate(max);
            }
            let describe = |(number, record): Found| {
                Ok(container::Description {
                    contained_object: Some(self.shared.reference(number, record.kind())?),
                    kind: record.kind(),
                    value: self.shared.describe(view, number, &record)?,
                })
            };
            self.limited(found)?.into_iter().map(describe).collect()
        })
    }

    fn create_module(
        &self,
        id: &str,
        name: &str,
        version: &str,
    ) -> Result<Option<corba::ModuleDefRef>, SystemException> {
        self.create((id, name, version), Ok(Body::Module {}))
    }

    fn create_constant(
        &self,
        id: &str,
        name: &str,
        version: &str,
        type_: Option<&IdlTypeRef>,
        value: &Any,
    ) -> Result<Option<corba::ConstantDefRef>, SystemException> {
        let ty = self.shared.number(type_);
        self.create((id, name, version), ty.map(|ty| Body::Constant { ty, value: value.clone() }))
    }

    fn create_struct(
        &self,
        id: &str,
        name: &str,
        version: &str,
        members: &[StructMember],
    ) -> Result<Option<corba::StructDefRef>, SystemException> {
        let members = self.members_of(members);
        self.create((id, name, version), members.map(|members| Body::Struct { members }))
    }

    fn create_union(
        &self,
        id: &str,
        name: &str,
        version: &str,
        discriminator_type: Option<&IdlTypeRef>,
        members: &[UnionMember],
    ) -> Result<Option<corba::UnionDefRef>, SystemException> {
        let body = self.shared.number(discriminator_type).and_then(|discriminator| {
            Ok(Body::Union { discriminator, cases: self.cases_of(discriminator, members)? })
        });
        self.create((id, name, version), body)
    }

    fn create_enum(
        &self,
        id: &str,
        name: &str,
        version: &str,
        members: &[String],
    ) -> Result<Option<corba::EnumDefRef>, SystemException> {
        self.create((id, name, version), Ok(Body::Enum { enumerators: members.to_vec() }))
    }

    fn create_alias(
        &self,
        id: &str,
        name: &str,
        version: &str,
        original_type: Option<&IdlTypeRef>,
    ) -> Result<Option<corba::AliasDefRef>, SystemException> {
        let original = self.shared.number(original_type);
        self.create((id, name, version), original.map(|original| Body::Alias { original }))
    }

    fn create_interface(
        &self,
        id: &str,
        name: &str,
        version: &str,
        base_interfaces: &[Option<InterfaceDefRef>],
    ) -> Result<Option<InterfaceDefRef>, SystemException> {
        let bases = self.shared.numbers(base_interfaces);
        self.create((id, name, version), bases.map(|bases| Body::Interface { bases }))
    }

    fn create_value(
        &self,
        id: &str,
        name: &str,
        version: &str,
        is_custom: bool,
        is_abstract: bool,
        base_value: Option<&ValueDefRef>,
        is_truncatable: bool,
        abstract_base_values: &[Option<ValueDefRef>],
        supported_interfaces: &[Option<InterfaceDefRef>],
        initializers: &[Initializer],
    ) -> Result<Option<ValueDefRef>, SystemException> {
        let flags = (is_custom, is_abstract, is_truncatable);
        let bases = (base_value, abstract_base_values, supported_interfaces);
        self.create((id, name, version), self.new_value(flags, bases, self.plain_initializers(initializers)))
    }

    fn create_value_box(
        &self,
        id: &str,
        name: &str,
        version: &str,
        original_type_def: Option<&IdlTypeRef>,
    ) -> Result<Option<corba::ValueBoxDefRef>, SystemException> {
        let original = self.shared.number(original_type_def);
        self.create((id, name, version), original.map(|original| Body::ValueBox { original }))
    }

    fn create_exception(
        &self,
        id: &str,
        name: &str,
        version: &str,
        members: &[StructMember],
    ) -> Result<Option<corba::ExceptionDefRef>, SystemException> {
        let members = self.members_of(members);
        self.create((id, name, version), members.map(|members| Body::Exception { members }))
    }

    fn create_native(
        &self,
        id: &str,
        name: &str,
        version: &str,
    ) -> Result<Option<corba::NativeDefRef>, SystemException> {
        self.create((id, name, version), Ok(Body::Native {}))
    }

    fn create_abstract_interface(
        &self,
        id: &str,
        name: &str,
        version: &str,
        base_interfaces: &[Option<AbstractInterfaceDefRef>],
    ) -> Result<Option<AbstractInterfaceDefRef>, SystemException> {
        let bases = self.shared.numbers(base_interfaces);
        self.create((id, name, version), bases.map(|bases| Body::AbstractInterface { bases }))
    }

    fn create_local_interface(
        &self,
        id: &str,
        name: &str,
        version: &str,
        base_interfaces: &[Option<InterfaceDefRef>],
    ) -> Result<Option<corba::LocalInterfaceDefRef>, SystemException> {
        let bases = self.shared.numbers(base_interfaces);
        self.create((id, name, version), bases.map(|bases| Body::LocalInterface { bases }))
    }

    fn create_ext_value(
        &self,
        id: &str,
        name: &str,
        version: &str,
        is_custom: bool,
        is_abstract: bool,
        base_value: Option<&ValueDefRef>,
        is_truncatable: bool,
        abstract_base_values: &[Option<ValueDefRef>],
        supported_interfaces: &[Option<InterfaceDefRef>],
        initializers: &[ExtInitializer],
    ) -> Result<Option<corba::ExtValueDefRef>, SystemException> {
        let flags = (is_custom, is_abstract, is_truncatable);
        let bases = (base_value, abstract_base_values, supported_interfaces);
        self.create((id, name, version), self.new_value(flags, bases, self.ext_initializers_of(initializers)))
    }
}

impl Repository for Definition {
    fn lookup_id(&self, search_id: &str) -> Result<Option<ContainedRef>, SystemException> {
        // The implicit bases of all interfaces and values are not in the repository, even if a definition has
        // their id (14.5.6.1).
        if matches!(search_id, "IDL:omg.org/CORBA/Object:1.0" | "IDL:omg.org/CORBA/ValueBase:1.0") {
            return Ok(None);
        }
        self.read(|view, _| self.found(view, view.by_id(search_id)?))
    }

    fn get_canonical_typecode(&self, tc: &TypeCode) -> Result<TypeCode, SystemException> {
        self.read(|view, _| Ok(canonical(view, tc)?))
    }

    fn get_primitive(&self, kind: PrimitiveKind) -> Result<Option<corba::PrimitiveDefRef>, SystemException> {
        self.read(|view, _| self.shared.reference_in(view, DefinitionNumber::primitive(kind)).map(Some))
    }

    fn create_string(&self, bound: u32) -> Result<Option<corba::StringDefRef>, SystemException> {
        self.create_nameless(bounded(bound).map(|bound| Body::String { bound }))
    }

    fn create_wstring(&self, bound: u32) -> Result<Option<corba::WstringDefRef>, SystemException> {
        self.create_nameless(bounded(bound).map(|bound| Body::WString { bound }))
    }

    fn create_sequence(
        &self,
        bound: u32,
        element_type: Option<&IdlTypeRef>,
    ) -> Result<Option<corba::SequenceDefRef>, SystemException> {
        let element = self.shared.number(element_type);
        self.create_nameless(element.map(|element| Body::Sequence { bound, element }))
    }

    fn create_array(
        &self,
        length: u32,
        element_type: Option<&IdlTypeRef>,
    ) -> Result<Option<corba::ArrayDefRef>, SystemException> {
        let body = self.shared.number(element_type).and_then(|element| match length {
            0 => Err(Fault::bad_param("an array has one element at least")),
            _ => Ok(Body::Array { length, element }),
        });
        self.create_nameless(body)
    }

    fn create_fixed(&self, digits: u16, scale: i16) -> Result<Option<corba::FixedDefRef>, SystemException> {
        self.create_nameless(Ok(Body::Fixed { digits, scale }))
    }
}

impl ModuleDef for Definition {}

/// The bound of a bounded string. Unbounded strings are basic types.
pub(super) fn bounded(bound: u32) -> Result<u32, Fault> {
    match bound {
        0 => Err(Fault::bad_param("a string without a bound is get_primitive(pk_string)")),
        _ => Ok(bound),
    }
}
