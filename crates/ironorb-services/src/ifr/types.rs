//! Computes TypeCodes from records (CORBA 3.3 part 1, 14.5 and 8.11).
//!
//! TypeCodes are cached for one answer or change only. A recursive type contains a placeholder for itself, as
//! in marshalled TypeCodes.

mod canonical;

use std::collections::HashMap;

use ironorb::giop::typecode::{BadType, UnionCase, ValueMember, ValueModifier, Visibility};
use ironorb::ifr::corba::PrimitiveKind;
use ironorb::{TypeCode, TypeDef};

use super::error::{RepositoryError, bad_param};
use super::record::{Body, Case, DefinitionNumber, Member, Record, Value};
use super::store::Lookup;

pub(super) use canonical::canonical;

/// The TypeCode of a type or exception.
pub(super) fn type_code(lookup: &impl Lookup, number: DefinitionNumber) -> Result<TypeCode, RepositoryError> {
    TypeCodes::new(lookup, TYPE_VISITS_MAX).of(number)
}

/// Computes TypeCodes, each once. The definitions must not change meanwhile.
pub(super) struct TypeCodes<'l, L> {
    lookup: &'l L,
    /// The types from the requested one to the current one, and whether a placeholder can stand for each.
    path: Vec<(DefinitionNumber, bool)>,
    /// Finished types that contain no placeholders for types outside of them.
    made: HashMap<DefinitionNumber, TypeCode>,
    visits_left: usize,
    visits_max: usize,
}

impl<'l, L: Lookup> TypeCodes<'l, L> {
    /// At most `visits_max` definitions are visited in all.
    pub(super) fn new(lookup: &'l L, visits_max: usize) -> Self {
        TypeCodes { lookup, path: Vec::new(), made: HashMap::new(), visits_left: visits_max, visits_max }
    }

    /// The TypeCode of a type or exception.
    pub(super) fn of(&mut self, number: DefinitionNumber) -> Result<TypeCode, RepositoryError> {
        Ok(self.visit(number)?.0)
    }

    pub(super) fn lookup(&self) -> &'l L {
        self.lookup
    }
}

/// The TypeCode of a basic type.
pub(super) fn primitive(kind: PrimitiveKind) -> TypeCode {
    match kind {
        PrimitiveKind::PkNull => TypeCode::of(&TypeDef::Null),
        PrimitiveKind::PkVoid => TypeCode::of(&TypeDef::Void),
        PrimitiveKind::PkShort => TypeCode::of(&TypeDef::Short),
        PrimitiveKind::PkLong => TypeCode::of(&TypeDef::Long),
        PrimitiveKind::PkUshort => TypeCode::of(&TypeDef::UShort),
        PrimitiveKind::PkUlong => TypeCode::of(&TypeDef::ULong),
        PrimitiveKind::PkFloat => TypeCode::of(&TypeDef::Float),
        PrimitiveKind::PkDouble => TypeCode::of(&TypeDef::Double),
        PrimitiveKind::PkBoolean => TypeCode::of(&TypeDef::Boolean),
        PrimitiveKind::PkChar => TypeCode::of(&TypeDef::Char),
        PrimitiveKind::PkOctet => TypeCode::of(&TypeDef::Octet),
        PrimitiveKind::PkAny => TypeCode::of(&TypeDef::Any),
        PrimitiveKind::PkTypeCode => TypeCode::of(&TypeDef::TypeCode),
        PrimitiveKind::PkPrincipal => TypeCode::of(&TypeDef::Principal),
        PrimitiveKind::PkString => TypeCode::of(&TypeDef::String { bound: 0 }),
        PrimitiveKind::PkObjref => {
            TypeCode::of(&TypeDef::ObjRef { id: "IDL:omg.org/CORBA/Object:1.0", name: "Object" })
        }
        PrimitiveKind::PkLonglong => TypeCode::of(&TypeDef::LongLong),
        PrimitiveKind::PkUlonglong => TypeCode::of(&TypeDef::ULongLong),
        PrimitiveKind::PkLongdouble => TypeCode::of(&TypeDef::LongDouble),
        PrimitiveKind::PkWchar => TypeCode::of(&TypeDef::WChar),
        PrimitiveKind::PkWstring => TypeCode::of(&TypeDef::WString { bound: 0 }),
        PrimitiveKind::PkValueBase => TypeCode::of(&TypeDef::Value {
            id: "IDL:omg.org/CORBA/ValueBase:1.0",
            name: "ValueBase",
            modifier: ValueModifier::None,
            base: None,
            members: &[],
        }),
    }
}

/// A type, and the index in the path of the outermost type that its placeholders stand for.
type Made = (TypeCode, usize);

impl<L: Lookup> TypeCodes<'_, L> {
    fn visit(&mut self, number: DefinitionNumber) -> Result<Made, RepositoryError> {
        if let Some(made) = self.made.get(&number) {
            return Ok((made.clone(), CLOSED));
        }
        self.visits_left = self
            .visits_left
            .checked_sub(1)
            .ok_or(RepositoryError::Limit { what: "parts of types", max: self.visits_max as u64 })?;
        let record = self.lookup.get(number)?.ok_or(RepositoryError::NoSuchDefinition)?;
        let is_enclosing =
            matches!(record.body, Body::Struct { .. } | Body::Union { .. } | Body::Value { .. });
        if let Some(place) = self.path.iter().position(|&(above, _)| above == number) {
            if is_enclosing {
                return Ok((TypeCode::recursive(&record.id)?, place));
            }
            // A cycle must lead through an enclosing type, for which the placeholder can stand.
            if !self.path[place..].iter().any(|&(_, is_enclosing)| is_enclosing) {
                return Err(BadType::Recursion.into());
            }
        }
        if self.path.len() >= DEPTH_MAX {
            return Err(BadType::TooDeep.into());
        }
        let depth = self.path.len();
        self.path.push((number, is_enclosing));
        let mut outermost = CLOSED;
        let made = self.make(number, &record, &mut outermost);
        self.path.pop();
        let made = made?;
        if outermost >= depth {
            self.made.insert(number, made.clone());
            outermost = CLOSED;
        }
        Ok((made, outermost))
    }

    fn make(
        &mut self,
        number: DefinitionNumber,
        record: &Record,
        outermost: &mut usize,
    ) -> Result<TypeCode, RepositoryError> {
        let (id, name) = (record.id.as_str(), record.name.as_str());
        Ok(match &record.body {
            Body::Primitive { kind } => primitive(*kind),
            Body::String { bound } => TypeCode::create_string(*bound),
            Body::WString { bound } => TypeCode::create_wstring(*bound),
            Body::Fixed { digits, scale } => TypeCode::create_fixed(*digits, *scale)?,
            Body::Sequence { bound, element } => {
                TypeCode::create_sequence(&self.inner(*element, outermost)?, *bound)?
            }
            Body::Array { length, element } => {
                TypeCode::create_array(&self.inner(*element, outermost)?, *length)?
            }
            Body::Alias { original } => TypeCode::create_alias(id, name, &self.inner(*original, outermost)?)?,
            Body::ValueBox { original } => {
                TypeCode::create_value_box(id, name, &self.inner(*original, outermost)?)?
            }
            Body::Enum { enumerators } => {
                let enumerators: Vec<&str> = enumerators.iter().map(String::as_str).collect();
                TypeCode::create_enum(id, name, &enumerators)?
            }
            Body::Struct { members } => {
                TypeCode::create_struct(id, name, &self.members(members, outermost)?)?
            }
            // Pairs have no name: the type around them has none either.
            Body::Pair { members } => TypeCode::create_struct("", "", &self.members(members, outermost)?)?,
            Body::Exception { members } => {
                TypeCode::create_exception(id, name, &self.members(members, outermost)?)?
            }
            Body::Union { discriminator, cases } => {
                let discriminator = self.inner(*discriminator, outermost)?;
                TypeCode::create_union(id, name, &discriminator, &self.cases(cases, outermost)?)?
            }
            Body::Interface { .. } => TypeCode::create_interface(id, name)?,
            Body::AbstractInterface { .. } => TypeCode::create_abstract_interface(id, name)?,
            Body::LocalInterface { .. } => TypeCode::create_local_interface(id, name)?,
            Body::Native {} => TypeCode::create_native(id, name)?,
            Body::Value { value } => self.value(number, record, value, outermost)?,
            _ => return Err(bad_param(format!("`{name}` is no type"))),
        })
    }

    /// The type of a part of the current type.
    fn inner(
        &mut self,
        number: DefinitionNumber,
        outermost: &mut usize,
    ) -> Result<TypeCode, RepositoryError> {
        let (made, leads_to) = self.visit(number)?;
        *outermost = leads_to.min(*outermost);
        Ok(made)
    }

    fn members<'m>(
        &mut self,
        members: &'m [Member],
        outermost: &mut usize,
    ) -> Result<Vec<(&'m str, TypeCode)>, RepositoryError> {
        members.iter().map(|member| Ok((member.name.as_str(), self.inner(member.ty, outermost)?))).collect()
    }

    fn cases(&mut self, cases: &[Case], outermost: &mut usize) -> Result<Vec<UnionCase>, RepositoryError> {
        let case = |case: &Case| {
            Ok(UnionCase {
                label: (!case.is_default).then_some(case.label),
                name: case.name.clone(),
                type_code: self.inner(case.ty, outermost)?,
            })
        };
        cases.iter().map(case).collect()
    }

    fn value(
        &mut self,
        number: DefinitionNumber,
        record: &Record,
        value: &Value,
        outermost: &mut usize,
    ) -> Result<TypeCode, RepositoryError> {
        let base = match value.base.first() {
            Some(&base) => Some(self.inner(base, outermost)?),
            None => None,
        };
        let mut members = Vec::new();
        for content in self.lookup.contents(number)? {
            let Some(Record { name, body: Body::ValueMember { ty, is_public }, .. }) =
                self.lookup.get(content)?
            else {
                continue;
            };
            let visibility = if is_public { Visibility::Public } else { Visibility::Private };
            members.push(ValueMember { name, type_code: self.inner(ty, outermost)?, visibility });
        }
        let modifier = match value {
            Value { is_abstract: true, .. } => ValueModifier::Abstract,
            Value { is_custom: true, .. } => ValueModifier::Custom,
            Value { is_truncatable: true, .. } => ValueModifier::Truncatable,
            _ => ValueModifier::None,
        };
        Ok(TypeCode::create_value(&record.id, &record.name, modifier, base.as_ref(), &members)?)
    }
}

/// Greater than every index of a path: the type has no placeholders for types outside of it.
const CLOSED: usize = usize::MAX;

/// Deepest nesting of types, typedefs included: the limit of TypeCodes. A level takes some 2 KB of stack.
const DEPTH_MAX: usize = 128;

/// Most visits to definitions for one TypeCode. Types that refer to each other by many paths would need more.
pub(super) const TYPE_VISITS_MAX: usize = 100_000;

/// Most visits to definitions for all TypeCodes of one answer.
pub(super) const ANSWER_VISITS_MAX: usize = 10 * TYPE_VISITS_MAX;

/// Most visits to definitions for all TypeCodes of one load.
pub(super) const LOAD_VISITS_MAX: usize = 100 * TYPE_VISITS_MAX;
