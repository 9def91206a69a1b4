//! Converts the resolved IDL model to TypeCodes and descriptions, equal to those of generated code.
//!
//! All types with names are made together: first each with placeholders for the others, then as one group.
//! Recursive types therefore need no special care, and the cost is proportional to the definitions, not to
//! the paths through them.

mod constant;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use ironorb::dynamic::{InterfaceDescription, OperationDescription, ParameterMode};
use ironorb::giop::typecode::{BadType, UnionCase, ValueMember, ValueModifier, Visibility};
use ironorb::{TypeCode, TypeDef, Typed, Value as ValueHandle, ValueBase};
use ironorb_idl::model::{
    Attribute, Basic, ConstValue, DefId, DefKind, Definition, Direction, InterfaceKind, Model, Operation,
    Type, Union, Value,
};

use crate::interfaces::{Constant, DefinitionError};

/// The definitions of a model.
pub(crate) struct Lowered {
    pub(crate) types: Vec<(String, TypeCode)>,
    pub(crate) interfaces: Vec<InterfaceDescription>,
    /// Constants, with their scoped names.
    pub(crate) constants: Vec<(String, Constant)>,
    /// Scoped names, with their repository ids.
    pub(crate) names: Vec<(String, String)>,
}

pub(crate) fn lower(model: &Model) -> Result<Lowered, DefinitionError> {
    let mut lowerer = Lowerer { model, types: HashMap::new() };
    lowerer.make_types()?;
    let mut lowered =
        Lowered { types: Vec::new(), interfaces: Vec::new(), constants: Vec::new(), names: Vec::new() };
    for def in model.definitions() {
        let type_code = lowerer.types.get(&def.id).filter(|_| is_whole(def));
        if let Some(type_code) = type_code {
            lowered.types.push((def.repository_id.clone(), type_code.clone()));
        }
        match &def.kind {
            // A local interface is not called by messages.
            DefKind::Interface(interface) if interface.defined && interface.kind != InterfaceKind::Local => {
                lowered.interfaces.push(lowerer.interface(def)?);
            }
            DefKind::Constant(constant) => {
                let value = lowerer.constant(constant).map_err(|why| unusable(def, why))?;
                let constant = Constant { id: def.repository_id.clone(), value };
                lowered.constants.push((model.scoped_name(def.id).join("::"), constant));
            }
            _ => {}
        }
        if type_code.is_some() {
            lowered.names.push((model.scoped_name(def.id).join("::"), def.repository_id.clone()));
        }
    }
    Ok(lowered)
}

/// Whether a definition is complete. A valuetype that is only declared is left for a file that defines it.
fn is_whole(def: &Definition) -> bool {
    !matches!(&def.kind, DefKind::Value(value) if !value.defined)
}

struct Lowerer<'m> {
    model: &'m Model,
    /// Finished types. While types are being made, only those without other types in them.
    types: HashMap<DefId, TypeCode>,
}

impl Lowerer<'_> {
    fn make_types(&mut self) -> Result<(), DefinitionError> {
        let mut made = Vec::new();
        for def in self.model.definitions() {
            if let Some(type_code) = self.leaf(def).map_err(|why| unusable(def, why))? {
                self.types.insert(def.id, type_code);
            }
        }
        for def in self.model.definitions() {
            if let Some(type_code) = self.composite(def).map_err(|why| unusable(def, why))? {
                made.push((def.id, type_code));
            }
        }
        let (ids, open): (Vec<DefId>, Vec<TypeCode>) = made.into_iter().unzip();
        let group = TypeCode::create_group(&open).map_err(|why| DefinitionError::Unusable {
            id: open.first().and_then(|ty| ty.id().ok()).unwrap_or_default().to_owned(),
            why: why.to_string(),
        })?;
        self.types.extend(ids.into_iter().zip(group));
        Ok(())
    }

    /// A type with a name that contains no other type.
    fn leaf(&self, def: &Definition) -> Result<Option<TypeCode>, BadType> {
        let (id, name) = (def.repository_id.as_str(), def.name.as_str());
        match &def.kind {
            DefKind::Interface(interface) => match interface.kind {
                InterfaceKind::Remote => TypeCode::create_interface(id, name),
                InterfaceKind::Abstract => TypeCode::create_abstract_interface(id, name),
                InterfaceKind::Local => TypeCode::create_local_interface(id, name),
            },
            DefKind::Enum(e) => {
                let names: Vec<&str> = e.enumerators.iter().map(|&id| self.name(id)).collect();
                TypeCode::create_enum(id, name, &names)
            }
            // Both are marshalled as integers. TypeCodes know them as aliases of these.
            DefKind::Bitset(bitset) => TypeCode::create_alias(id, name, &basic(bitset.storage)),
            DefKind::Bitmask(mask) => TypeCode::create_alias(id, name, &basic(mask.storage)),
            _ => return Ok(None),
        }
        .map(Some)
    }

    /// A type with a name that may contain others, with placeholders for these.
    fn composite(&self, def: &Definition) -> Result<Option<TypeCode>, BadType> {
        let (id, name) = (def.repository_id.as_str(), def.name.as_str());
        match &def.kind {
            // Declared and never defined: nothing may use the type, and it has no members.
            DefKind::Struct(s) if !s.defined => return Ok(None),
            DefKind::Union(u) if !u.defined => return Ok(None),
            DefKind::Struct(s) | DefKind::Exception(s) => {
                let members = s.members.iter().map(|member| Ok((member.name.as_str(), self.ty(&member.ty)?)));
                let members = members.collect::<Result<Vec<_>, BadType>>()?;
                match &def.kind {
                    DefKind::Exception(_) => TypeCode::create_exception(id, name, &members),
                    _ => TypeCode::create_struct(id, name, &members),
                }
            }
            DefKind::Union(u) => self.union(id, name, u),
            // Only local interfaces use members of native types. A native type made alone would not be a
            // legal member.
            DefKind::Native => TypeCode::create_native(id, name),
            DefKind::Typedef(typedef) => TypeCode::create_alias(id, name, &self.ty(&typedef.ty)?),
            DefKind::Value(value) => self.value(id, name, value),
            DefKind::ValueBox(value) => TypeCode::create_value_box(id, name, &self.ty(&value.ty)?),
            _ => return Ok(None),
        }
        .map(Some)
    }

    fn union(&self, id: &str, name: &str, u: &Union) -> Result<TypeCode, BadType> {
        // TypeCodes represent `int8` by `octet`, which has no value -1.
        let is_small = matches!(self.model.unaliased(&u.discriminator), Type::Basic(Basic::Int8));
        let in_type_code = |label| if is_small { self.label(label) & 0xFF } else { self.label(label) };
        let mut cases = Vec::new();
        for case in &u.cases {
            let type_code = self.ty(&case.member.ty)?;
            let made =
                |label| UnionCase { label, name: case.member.name.clone(), type_code: type_code.clone() };
            if case.is_default {
                // A further label beside `default` adds nothing.
                cases.push(made(None));
            } else {
                cases.extend(case.labels.iter().map(|label| made(Some(in_type_code(label)))));
            }
        }
        TypeCode::create_union(id, name, &self.discriminator(&u.discriminator)?, &cases)
    }

    /// The type of a discriminator. It must be complete, so that labels can be checked; it consists of
    /// typedefs and an enum at most.
    fn discriminator(&self, ty: &Type) -> Result<TypeCode, BadType> {
        if let Type::Named(id) = ty {
            let def = self.model.get(*id);
            if let DefKind::Typedef(typedef) = &def.kind {
                let original = self.discriminator(&typedef.ty)?;
                return TypeCode::create_alias(&def.repository_id, &def.name, &original);
            }
        }
        self.ty(ty)
    }

    fn value(&self, id: &str, name: &str, value: &Value) -> Result<TypeCode, BadType> {
        let modifier = match value {
            Value { is_abstract: true, .. } => ValueModifier::Abstract,
            Value { custom: true, .. } => ValueModifier::Custom,
            Value { truncatable: true, .. } => ValueModifier::Truncatable,
            _ => ValueModifier::None,
        };
        let base = match value.bases.first() {
            Some(&base) if self.has_state(base) => Some(self.ty(&Type::Named(base))?),
            _ => None,
        };
        let members = value.state.iter().map(|state| {
            Ok(ValueMember {
                name: state.member.name.clone(),
                type_code: self.ty(&state.member.ty)?,
                visibility: if state.public { Visibility::Public } else { Visibility::Private },
            })
        });
        let members = members.collect::<Result<Vec<_>, BadType>>()?;
        TypeCode::create_value(id, name, modifier, base.as_ref(), &members)
    }

    fn has_state(&self, id: DefId) -> bool {
        matches!(&self.model.get(id).kind, DefKind::Value(value) if !value.is_abstract)
    }

    /// A type at its use.
    fn ty(&self, ty: &Type) -> Result<TypeCode, BadType> {
        Ok(match ty {
            Type::Void => TypeCode::of(&TypeDef::Void),
            Type::Basic(kind) => basic(*kind),
            Type::String { bound } => TypeCode::create_string(bound.unwrap_or(0)),
            Type::WString { bound } => TypeCode::create_wstring(bound.unwrap_or(0)),
            Type::Fixed { spec } => {
                let (digits, scale) = spec.unwrap_or((1, 0));
                TypeCode::create_fixed(digits, scale)?
            }
            Type::Sequence { element, bound } => {
                TypeCode::create_sequence(&self.ty(element)?, bound.unwrap_or(0))?
            }
            Type::Map { key, value, bound } => {
                let members = [("key", self.ty(key)?), ("value", self.ty(value)?)];
                let pair = TypeCode::create_struct("", "", &members)?;
                TypeCode::create_sequence(&pair, bound.unwrap_or(0))?
            }
            Type::Array { element, dimensions } => {
                let mut array = self.ty(element)?;
                for &length in dimensions.iter().rev() {
                    array = TypeCode::create_array(&array, length)?;
                }
                array
            }
            Type::Named(id) => match self.types.get(id) {
                Some(type_code) => type_code.clone(),
                None => TypeCode::recursive(&self.model.get(*id).repository_id)?,
            },
        })
    }

    /// A label as a number, as TypeCodes have it.
    fn label(&self, label: &ConstValue) -> i64 {
        match label {
            // Labels of `unsigned long long` keep their bits.
            ConstValue::Integer(n) => *n as i64,
            ConstValue::Char(c) => i64::from(*c),
            ConstValue::WChar(c) => i64::from(u32::from(*c)),
            ConstValue::Boolean(b) => i64::from(*b),
            ConstValue::Enumerator(id) => match &self.model.get(*id).kind {
                DefKind::Enumerator { ordinal, .. } => i64::from(*ordinal),
                _ => 0,
            },
            // No union switches on these types.
            ConstValue::Float(_)
            | ConstValue::LongDouble(_)
            | ConstValue::String(_)
            | ConstValue::WString(_)
            | ConstValue::Fixed(_) => 0,
        }
    }

    fn name(&self, id: DefId) -> &str {
        &self.model.get(id).name
    }
}

/// Conversions of interfaces and operations.
impl Lowerer<'_> {
    fn interface(&self, def: &Definition) -> Result<InterfaceDescription, DefinitionError> {
        let mut made = InterfaceDescription::new(&def.repository_id, &def.name);
        let bases = self.model.all_bases(def.id);
        made.bases = bases.iter().map(|&base| self.model.get(base).repository_id.clone()).collect();
        let mut operations = BTreeMap::new();
        for id in std::iter::once(def.id).chain(bases) {
            let DefKind::Interface(interface) = &self.model.get(id).kind else { continue };
            for &item in &interface.items {
                let item = self.model.get(item);
                for operation in self.operations(item).map_err(|why| unusable(item, why))? {
                    if operations.insert(operation.name.clone(), ()).is_none() {
                        made.operations.push(Arc::new(operation));
                    }
                }
            }
        }
        Ok(made)
    }

    fn operations(&self, def: &Definition) -> Result<Vec<OperationDescription>, BadType> {
        match &def.kind {
            DefKind::Operation(operation) => Ok(vec![self.operation(&def.name, operation)?]),
            DefKind::Attribute(attribute) => self.attribute(&def.name, attribute),
            _ => Ok(Vec::new()),
        }
    }

    fn operation(&self, name: &str, operation: &Operation) -> Result<OperationDescription, BadType> {
        let mut made = OperationDescription::new(name).returns(self.ty(&operation.result)?);
        made.oneway = operation.oneway;
        for parameter in &operation.parameters {
            let mode = match parameter.direction {
                Direction::In => ParameterMode::In,
                Direction::Out => ParameterMode::Out,
                Direction::InOut => ParameterMode::InOut,
            };
            made = made.parameter(&parameter.name, mode, self.ty(&parameter.ty)?);
        }
        made.exceptions = self.exceptions(&operation.raises);
        made.contexts = operation.context.clone().unwrap_or_default();
        Ok(made)
    }

    fn attribute(&self, name: &str, attribute: &Attribute) -> Result<Vec<OperationDescription>, BadType> {
        let ty = self.ty(&attribute.ty)?;
        let mut getter = OperationDescription::getter(name, ty.clone());
        getter.exceptions = self.exceptions(&attribute.get_raises);
        let mut made = vec![getter];
        if !attribute.readonly {
            let mut setter = OperationDescription::setter(name, ty);
            setter.exceptions = self.exceptions(&attribute.set_raises);
            made.push(setter);
        }
        Ok(made)
    }

    fn exceptions(&self, raises: &[DefId]) -> Vec<TypeCode> {
        raises.iter().filter_map(|id| self.types.get(id).cloned()).collect()
    }
}

fn basic(kind: Basic) -> TypeCode {
    TypeCode::of(match kind {
        Basic::Short => &TypeDef::Short,
        Basic::UShort => &TypeDef::UShort,
        Basic::Long => &TypeDef::Long,
        Basic::ULong => &TypeDef::ULong,
        Basic::LongLong => &TypeDef::LongLong,
        Basic::ULongLong => &TypeDef::ULongLong,
        Basic::Float => &TypeDef::Float,
        Basic::Double => &TypeDef::Double,
        Basic::LongDouble => &TypeDef::LongDouble,
        Basic::Char => &TypeDef::Char,
        Basic::WChar => &TypeDef::WChar,
        Basic::Boolean => &TypeDef::Boolean,
        Basic::Octet | Basic::Int8 | Basic::UInt8 => &TypeDef::Octet,
        Basic::Any => &TypeDef::Any,
        Basic::TypeCode => &TypeDef::TypeCode,
        Basic::Object => <Option<ironorb::ObjectRef> as Typed>::TYPE,
        Basic::ValueBase => <Option<ValueHandle<dyn ValueBase>> as Typed>::TYPE,
    })
}

fn unusable(def: &Definition, why: impl std::fmt::Display) -> DefinitionError {
    DefinitionError::Unusable { id: def.repository_id.clone(), why: why.to_string() }
}
