//! Loads definitions from IDL: a resolved model becomes records, all in one change.
//!
//! A definition whose repository id the store has already is updated and keeps its number, so that references
//! to it and uses of it stay valid. Contents that an interface, value or struct no longer has are removed.
//! Modules only grow.

mod words;

use std::collections::HashMap;

use ironorb::giop::Misuse;
use ironorb::ifr::corba::{AttributeMode, OperationMode, ParameterMode, PrimitiveKind};
use ironorb::{Any, LongDouble, TypeCode, WString};
use ironorb_idl::model::{ConstValue, DefId, DefKind, Definition, Direction, InterfaceKind, Model, Type};

use crate::ifr::error::RepositoryError;
use crate::ifr::queries::absolute_name;
use crate::ifr::queries::existing;
use crate::ifr::record::{
    Attribute, Body, Case, DefinitionNumber, Initializer, Member, Operation, Parameter, Record, Value,
};
use crate::ifr::repository::{InterfaceRepository, destroy_in, replace};
use crate::ifr::rules::{check_body, check_inherited_names, heirs, noun};
use crate::ifr::store::{Change, Lookup as _};
use crate::ifr::types::{LOAD_VISITS_MAX, TypeCodes};
use words::{
    NULL, basic, digits_of, empty, has_record, is_leaf, is_only_declared, items, version_of, within,
};

/// The effect of a load, in definitions with names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Loaded {
    /// Definitions that are new.
    pub added: usize,
    /// Definitions that existed and have been updated.
    pub updated: usize,
    /// Definitions whose container no longer contains them.
    pub removed: usize,
}

/// The reason why a model cannot be loaded. A failed load has changed nothing.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The store has a different definition with this repository id.
    #[error("{id}: the repository has {found} under this id: remove it first")]
    Conflict {
        /// The repository id.
        id: String,
        /// The existing definition, and its scoped name.
        found: String,
    },
    /// The container has a different definition with this name.
    #[error("{id}: the repository has {found} under this name: remove it first")]
    NameInUse {
        /// The repository id of the definition.
        id: String,
        /// The existing definition, and its repository id.
        found: String,
    },
    /// Definitions outside the new text still use a definition that the text leaves out.
    #[error("what was loaded before and is not there any more cannot go: {0}")]
    StillUsed(RepositoryError),
    /// The store refuses a definition.
    #[error("{id}: {why}")]
    Refused {
        /// The repository id of the definition.
        id: String,
        /// The reason.
        why: RepositoryError,
    },
}

impl InterfaceRepository {
    /// Loads the definitions of a translation unit and its included files. From files that the front end has
    /// built in, such as `orb.idl`, it loads only definitions that are used. Blocks until the change is on
    /// disk.
    pub fn load(&self, model: &Model) -> Result<Loaded, LoadError> {
        let failed = |why| LoadError::Refused { id: "the repository".to_owned(), why };
        let change = self.change().map_err(failed)?;
        let mut load = Load {
            model,
            change: &change,
            numbers: HashMap::new(),
            current: HashMap::new(),
            displaced: Vec::new(),
            waiting: Vec::new(),
            types: TypeCodes::new(&change, 0),
            loaded: Loaded::default(),
        };
        load.all(self)?;
        let loaded = load.loaded;
        change.commit().map_err(|e| failed(e.into()))?;
        Ok(loaded)
    }
}

struct Load<'l> {
    model: &'l Model,
    change: &'l Change,
    numbers: HashMap<DefId, DefinitionNumber>,
    /// All current contents of the loaded definitions, and whether each existed before.
    current: HashMap<DefinitionNumber, bool>,
    /// Definitions whose name now belongs to another definition, with the id of that definition.
    displaced: Vec<(DefinitionNumber, String)>,
    /// Declared definitions that are not filled in yet.
    waiting: Vec<DefId>,
    /// The TypeCodes of definitions that do not change any more.
    types: TypeCodes<'l, Change>,
    loaded: Loaded,
}

impl Load<'_> {
    fn all(&mut self, repository: &InterfaceRepository) -> Result<(), LoadError> {
        for &root in self.model.roots() {
            self.declare_tree(root)?;
        }
        let mut constants = Vec::new();
        let mut at = 0;
        // Filling in a definition may declare definitions of built-in files.
        while let Some(&def) = self.waiting.get(at) {
            at += 1;
            match &self.model.get(def).kind {
                // Constant values need the TypeCodes of filled definitions, including those of their types.
                DefKind::Constant(constant) => {
                    constants.push(def);
                    if let Type::Named(ty) = constant.ty {
                        self.declare_used(ty)?;
                    }
                }
                _ => self.fill(def)?,
            }
        }
        self.types = TypeCodes::new(self.change, LOAD_VISITS_MAX);
        for def in constants {
            self.fill(def)?;
        }
        let waiting = std::mem::take(&mut self.waiting);
        self.drop_stale(&waiting)?;
        self.types = TypeCodes::new(self.change, LOAD_VISITS_MAX);
        for &def in &waiting {
            self.check(def, repository).map_err(|why| refused(self.model.get(def), why))?;
        }
        self.check_heirs(&waiting)?;
        let limit = repository.limits().definitions_max;
        let count = self.change.count();
        if count.map_err(|e| LoadError::Refused { id: String::new(), why: e.into() })? > limit {
            let why = RepositoryError::Limit { what: "definitions", max: limit };
            return Err(LoadError::Refused { id: "the repository".to_owned(), why });
        }
        Ok(())
    }

    /// Checks a definition as if a client had created it.
    fn check(&mut self, def: DefId, repository: &InterfaceRepository) -> Result<(), RepositoryError> {
        let number = self.numbers[&def];
        let record = existing(self.change, number)?;
        check_body(&mut self.types, number, &record, repository.limits())
    }

    /// Checks the definitions that inherit from loaded ones. The front end has checked inheritance within the
    /// files. It does not know derived definitions that only the repository has.
    fn check_heirs(&self, loaded: &[DefId]) -> Result<(), LoadError> {
        let loaded: Vec<_> = loaded.iter().map(|def| self.numbers[def]).collect();
        let failed = |why| LoadError::Refused { id: "what inherits from the definitions".to_owned(), why };
        for heir in heirs(self.change, &loaded).map_err(failed)? {
            check_inherited_names(self.change, heir).map_err(|why| {
                let id = existing(self.change, heir).map(|record| record.id).unwrap_or_default();
                LoadError::Refused { id, why }
            })?;
        }
        Ok(())
    }

    /// Declares a definition of the files and all definitions in it.
    fn declare_tree(&mut self, def: DefId) -> Result<(), LoadError> {
        let definition = self.model.get(def);
        let is_standard = self.model.is_standard(def);
        // A module of the standard gets only the definitions that the text uses, even if a built-in file
        // opened it first.
        if !is_standard && has_record(&definition.kind) {
            self.declare(def)?;
        }
        for &item in items(&definition.kind) {
            self.declare_tree(item)?;
        }
        Ok(())
    }

    /// The number of a definition. Creates an empty one if needed.
    fn declare(&mut self, def: DefId) -> Result<DefinitionNumber, LoadError> {
        if let Some(&number) = self.numbers.get(&def) {
            return Ok(number);
        }
        let definition = self.model.get(def);
        let container = match definition.parent {
            Some(parent) => self.declare(parent)?,
            None => DefinitionNumber::REPOSITORY,
        };
        let record = Record {
            id: definition.repository_id.clone(),
            name: definition.name.clone(),
            version: version_of(&definition.repository_id).to_owned(),
            container,
            body: empty(&definition.kind),
        };
        let number = self.place(&record)?;
        self.numbers.insert(def, number);
        self.waiting.push(def);
        Ok(number)
    }

    /// The number of the store's definition with this id, or of a new definition.
    fn place(&mut self, record: &Record) -> Result<DefinitionNumber, LoadError> {
        let refuse = |why: RepositoryError| LoadError::Refused { id: record.id.clone(), why };
        let found = self.change.by_id(&record.id).map_err(|e| refuse(e.into()))?;
        let Some(number) = found else { return self.insert(record) };
        let before = existing(self.change, number).map_err(refuse)?;
        let is_here = before.container == record.container && before.name == record.name;
        if before.kind() != record.kind() && is_here && is_leaf(&before.body) && is_leaf(&record.body) {
            // Nothing refers to either definition, so the new one can replace the old one.
            destroy_in(self.change, &[number]).map_err(refuse)?;
            self.loaded.removed += 1;
            return self.insert(record);
        }
        if before.kind() != record.kind() || !is_here {
            let name = absolute_name(self.change, number).map_err(refuse)?;
            let found = format!("{}, {name},", noun(&before.body));
            return Err(LoadError::Conflict { id: record.id.clone(), found });
        }
        self.current.insert(number, true);
        self.loaded.updated += 1;
        Ok(number)
    }

    fn insert(&mut self, record: &Record) -> Result<DefinitionNumber, LoadError> {
        let refuse = |why: RepositoryError| LoadError::Refused { id: record.id.clone(), why };
        let in_use = self.change.by_name(record.container, &record.name);
        if let Some(other) = in_use.map_err(|e| refuse(e.into()))? {
            // The new text may leave out the other definition. Then it is removed once everything is
            // declared.
            self.displaced.push((other, record.id.clone()));
        }
        let number = self.change.insert(record).map_err(|e| refuse(e.into()))?;
        self.current.insert(number, false);
        self.loaded.added += 1;
        Ok(number)
    }

    /// Fills in a declared definition.
    fn fill(&mut self, def: DefId) -> Result<(), LoadError> {
        let definition = self.model.get(def);
        let number = self.numbers[&def];
        if is_only_declared(&definition.kind) {
            return Ok(());
        }
        let Some(body) = self.body(definition, number)? else { return Ok(()) };
        self.write(number, body).map_err(|why| refused(definition, why))
    }

    fn write(&self, number: DefinitionNumber, body: Body) -> Result<(), RepositoryError> {
        let before = existing(self.change, number)?;
        let record = Record { body, ..before.clone() };
        replace(self.change, number, &before, &record)
    }

    /// The body of a definition; `None` if its declaration was complete.
    fn body(&mut self, definition: &Definition, number: DefinitionNumber) -> Result<Option<Body>, LoadError> {
        Ok(Some(match &definition.kind {
            DefKind::Interface(interface) => {
                let bases = self.declared(&interface.bases)?;
                match interface.kind {
                    InterfaceKind::Remote => Body::Interface { bases },
                    InterfaceKind::Abstract => Body::AbstractInterface { bases },
                    InterfaceKind::Local => Body::LocalInterface { bases },
                }
            }
            DefKind::Operation(operation) => Body::Operation {
                operation: Operation {
                    result: self.ty(definition, &operation.result)?,
                    mode: if operation.oneway { OperationMode::OpOneway } else { OperationMode::OpNormal },
                    parameters: self.parameters(definition, &operation.parameters)?,
                    exceptions: self.declared(&operation.raises)?,
                    contexts: operation.context.clone().unwrap_or_default(),
                },
            },
            DefKind::Attribute(attribute) => Body::Attribute {
                attribute: Attribute {
                    ty: self.ty(definition, &attribute.ty)?,
                    mode: match attribute.readonly {
                        true => AttributeMode::AttrReadonly,
                        false => AttributeMode::AttrNormal,
                    },
                    get_exceptions: self.declared(&attribute.get_raises)?,
                    set_exceptions: self.declared(&attribute.set_raises)?,
                },
            },
            DefKind::Struct(s) => Body::Struct { members: self.members(definition, &s.members)? },
            DefKind::Exception(s) => Body::Exception { members: self.members(definition, &s.members)? },
            DefKind::Union(u) => Body::Union {
                discriminator: self.ty(definition, &u.discriminator)?,
                cases: self.cases(definition, &u.cases)?,
            },
            DefKind::Enum(e) => Body::Enum {
                enumerators: e.enumerators.iter().map(|&name| self.model.get(name).name.clone()).collect(),
            },
            DefKind::Typedef(typedef) => Body::Alias { original: self.ty(definition, &typedef.ty)? },
            // The integer that it is marshalled as: CORBA's repository has no kind for its parts.
            DefKind::Bitset(set) => Body::Alias { original: DefinitionNumber::primitive(basic(set.storage)) },
            DefKind::Bitmask(mask) => {
                Body::Alias { original: DefinitionNumber::primitive(basic(mask.storage)) }
            }
            DefKind::ValueBox(boxed) => Body::ValueBox { original: self.ty(definition, &boxed.ty)? },
            DefKind::Constant(constant) => {
                let ty = self.ty(definition, &digits_of(constant))?;
                let type_code = self.types.of(ty).map_err(|why| refused(definition, why))?;
                let value = self.value_of(&type_code, &constant.value).map_err(|e| {
                    refused(definition, RepositoryError::BadParam(format!("its value cannot be stored: {e}")))
                })?;
                Body::Constant { ty, value }
            }
            DefKind::Value(value) => self.value(definition, number, value)?,
            _ => return Ok(None),
        }))
    }

    fn value(
        &mut self,
        definition: &Definition,
        number: DefinitionNumber,
        value: &ironorb_idl::model::Value,
    ) -> Result<Body, LoadError> {
        for state in &value.state {
            let record = Record {
                id: within(&definition.repository_id, &state.member.name),
                name: state.member.name.clone(),
                version: version_of(&definition.repository_id).to_owned(),
                container: number,
                body: Body::ValueMember { ty: NULL, is_public: state.public },
            };
            let member = self.place(&record)?;
            let ty = self.ty(definition, &state.member.ty)?;
            self.write(member, Body::ValueMember { ty, is_public: state.public })
                .map_err(|why| refused(definition, why))?;
        }
        let is_stateful =
            |&base: &DefId| matches!(&self.model.get(base).kind, DefKind::Value(value) if !value.is_abstract);
        let (base, abstract_bases): (Vec<DefId>, Vec<DefId>) =
            value.bases.iter().partition(|base| is_stateful(base));
        let mut initializers = Vec::new();
        for factory in &value.factories {
            let parameters = self.parameters(definition, &factory.parameters)?;
            let members = parameters.into_iter().map(|p| Member { name: p.name, ty: p.ty }).collect();
            let exceptions = self.declared(&factory.raises)?;
            initializers.push(Initializer { name: factory.name.clone(), members, exceptions });
        }
        Ok(Body::Value {
            value: Value {
                is_abstract: value.is_abstract,
                is_custom: value.custom,
                is_truncatable: value.truncatable,
                base: self.declared(&base)?,
                abstract_bases: self.declared(&abstract_bases)?,
                supported: self.declared(&value.supports)?,
                initializers,
            },
        })
    }

    fn declared(&mut self, defs: &[DefId]) -> Result<Vec<DefinitionNumber>, LoadError> {
        defs.iter().map(|&def| self.declare_used(def)).collect()
    }

    /// Declares a definition because another refers to it, together with the definitions in it.
    fn declare_used(&mut self, def: DefId) -> Result<DefinitionNumber, LoadError> {
        if let Some(&number) = self.numbers.get(&def) {
            return Ok(number);
        }
        let number = self.declare(def)?;
        let mut waiting = items(&self.model.get(def).kind).to_vec();
        while let Some(item) = waiting.pop() {
            if has_record(&self.model.get(item).kind) {
                self.declare(item)?;
                waiting.extend(items(&self.model.get(item).kind));
            }
        }
        Ok(number)
    }

    fn members(
        &mut self,
        definition: &Definition,
        members: &[ironorb_idl::model::Member],
    ) -> Result<Vec<Member>, LoadError> {
        let member = |member: &ironorb_idl::model::Member| {
            Ok(Member { name: member.name.clone(), ty: self.ty(definition, &member.ty)? })
        };
        members.iter().map(member).collect()
    }

    fn parameters(
        &mut self,
        definition: &Definition,
        parameters: &[ironorb_idl::model::Parameter],
    ) -> Result<Vec<Parameter>, LoadError> {
        let parameter = |parameter: &ironorb_idl::model::Parameter| {
            Ok(Parameter {
                name: parameter.name.clone(),
                ty: self.ty(definition, &parameter.ty)?,
                mode: match parameter.direction {
                    Direction::In => ParameterMode::ParamIn,
                    Direction::Out => ParameterMode::ParamOut,
                    Direction::InOut => ParameterMode::ParamInout,
                },
            })
        };
        parameters.iter().map(parameter).collect()
    }

    fn cases(
        &mut self,
        definition: &Definition,
        cases: &[ironorb_idl::model::Case],
    ) -> Result<Vec<Case>, LoadError> {
        let mut found = Vec::new();
        for case in cases {
            let ty = self.ty(definition, &case.member.ty)?;
            let one = |is_default, label| Case { name: case.member.name.clone(), is_default, label, ty };
            if case.is_default {
                // A further label beside `default` adds nothing; the TypeCodes of generated code lack it too.
                found.push(one(true, 0));
            } else {
                found.extend(case.labels.iter().map(|label| one(false, self.label(label))));
            }
        }
        Ok(found)
    }

    fn label(&self, label: &ConstValue) -> i64 {
        match *label {
            // Larger labels are those of `unsigned long long`, by their bits.
            ConstValue::Integer(number) => number as i64,
            ConstValue::Char(char) => char.into(),
            ConstValue::WChar(char) => u32::from(char).into(),
            ConstValue::Boolean(yes) => yes.into(),
            ConstValue::Enumerator(def) => self.ordinal(def).into(),
            // The front end allows no other constants as labels.
            _ => 0,
        }
    }

    fn ordinal(&self, enumerator: DefId) -> u32 {
        match self.model.get(enumerator).kind {
            DefKind::Enumerator { ordinal, .. } => ordinal,
            _ => 0,
        }
    }

    fn value_of(&self, type_code: &TypeCode, value: &ConstValue) -> Result<Any, Misuse> {
        use ironorb::TcKind as K;
        let kind = type_code.resolved().kind();
        match value {
            ConstValue::Integer(n) => match kind {
                K::Short => Any::with_type(type_code.clone(), &(*n as i16)),
                K::UShort => Any::with_type(type_code.clone(), &(*n as u16)),
                K::Long => Any::with_type(type_code.clone(), &(*n as i32)),
                K::ULong => Any::with_type(type_code.clone(), &(*n as u32)),
                K::LongLong => Any::with_type(type_code.clone(), &(*n as i64)),
                K::ULongLong => Any::with_type(type_code.clone(), &(*n as u64)),
                _ => Any::with_type(type_code.clone(), &(*n as u8)),
            },
            ConstValue::Float(x) if kind == K::Float => Any::with_type(type_code.clone(), &(*x as f32)),
            ConstValue::Float(x) => Any::with_type(type_code.clone(), x),
            ConstValue::LongDouble(bits) => Any::with_type(type_code.clone(), &LongDouble::from_bits(*bits)),
            ConstValue::Char(char) => Any::with_type(type_code.clone(), char),
            ConstValue::WChar(char) => Any::with_type(type_code.clone(), char),
            ConstValue::Boolean(yes) => Any::with_type(type_code.clone(), yes),
            ConstValue::String(text) => Any::with_type(type_code.clone(), text),
            ConstValue::WString(text) => Any::with_type(type_code.clone(), &WString(text.clone())),
            ConstValue::Fixed(text) => crate::ifr::values::fixed_any(type_code, text),
            ConstValue::Enumerator(def) => Any::with_type(type_code.clone(), &self.ordinal(*def)),
        }
    }

    /// The number of a type. An anonymous type is created anew.
    fn ty(&mut self, definition: &Definition, ty: &Type) -> Result<DefinitionNumber, LoadError> {
        let body = match ty {
            Type::Void => return Ok(DefinitionNumber::primitive(PrimitiveKind::PkVoid)),
            Type::Basic(ty) => return Ok(DefinitionNumber::primitive(basic(*ty))),
            Type::Named(def) => return self.declare_used(*def),
            Type::String { bound: None } => return Ok(DefinitionNumber::primitive(PrimitiveKind::PkString)),
            Type::WString { bound: None } => {
                return Ok(DefinitionNumber::primitive(PrimitiveKind::PkWstring));
            }
            Type::String { bound: Some(bound) } => Body::String { bound: *bound },
            Type::WString { bound: Some(bound) } => Body::WString { bound: *bound },
            Type::Fixed { spec } => {
                let (digits, scale) = spec.unwrap_or((1, 0));
                Body::Fixed { digits, scale }
            }
            Type::Sequence { element, bound } => {
                Body::Sequence { bound: bound.unwrap_or(0), element: self.ty(definition, element)? }
            }
            Type::Array { element, dimensions } => {
                let mut element = self.ty(definition, element)?;
                let (outermost, inner) = dimensions.split_first().map_or((1, &[][..]), |(o, i)| (*o, i));
                for &length in inner.iter().rev() {
                    element = self.nameless(definition, Body::Array { length, element })?;
                }
                Body::Array { length: outermost, element }
            }
            // CORBA's repository has no kind for a map. It becomes the sequence that it is marshalled as and
            // that its TypeCode describes.
            Type::Map { key, value, bound } => {
                let mut member = |name: &str, ty: &Type| {
                    Ok(Member { name: name.to_owned(), ty: self.ty(definition, ty)? })
                };
                let members = vec![member("key", key)?, member("value", value)?];
                let element = self.nameless(definition, Body::Pair { members })?;
                Body::Sequence { bound: bound.unwrap_or(0), element }
            }
        };
        self.nameless(definition, body)
    }

    fn nameless(&self, definition: &Definition, body: Body) -> Result<DefinitionNumber, LoadError> {
        self.change.insert(&nameless(body)).map_err(|e| refused(definition, e.into()))
    }

    /// Removes definitions that updated definitions no longer contain.
    fn drop_stale(&mut self, loaded: &[DefId]) -> Result<(), LoadError> {
        let mut stale = Vec::new();
        for &def in loaded {
            let definition = self.model.get(def);
            if matches!(definition.kind, DefKind::Module(_)) || is_only_declared(&definition.kind) {
                continue;
            }
            let contents = self.change.contents(self.numbers[&def]);
            let contents = contents.map_err(|e| refused(definition, e.into()))?;
            stale.extend(contents.into_iter().filter(|content| !self.current.contains_key(content)));
        }
        for (other, id) in std::mem::take(&mut self.displaced) {
            if !stale.contains(&other) {
                let found = existing(self.change, other);
                let found = found.map(|record| format!("{} of the id {}", noun(&record.body), record.id));
                let why = |why| LoadError::Refused { id: id.clone(), why };
                return Err(LoadError::NameInUse { found: found.map_err(why)?, id });
            }
        }
        self.loaded.removed += stale.len();
        destroy_in(self.change, &stale).map(drop).map_err(LoadError::StillUsed)
    }
}

/// A type without a name, id or container.
pub(super) fn nameless(body: Body) -> Record {
    Record {
        id: String::new(),
        name: String::new(),
        version: String::new(),
        container: DefinitionNumber::REPOSITORY,
        body,
    }
}

fn refused(definition: &Definition, why: RepositoryError) -> LoadError {
    LoadError::Refused { id: definition.repository_id.clone(), why }
}
