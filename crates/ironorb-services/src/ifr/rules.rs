//! The rules for definitions and their containers (CORBA 3.3 part 1, 14.5), checked within the change.
//!
//! The caller drops a change that breaks a rule, so rules may be checked after the records are written.

use std::collections::HashSet;

use ironorb::ifr::corba::{OperationMode, ParameterMode, PrimitiveKind};
use ironorb::{Any, TcKind};

use super::error::{RepositoryError, bad_param};
use super::limits::Limits;
use super::queries::{ancestors, bases, existing};
use super::record::{Body, DefinitionNumber, Operation, Record};
use super::store::{Change, Lookup as _, encode};
use super::types::TypeCodes;

/// Checks whether a definition may have its id and name in its container. `own` is its number, if it has one
/// already.
pub(super) fn check_place(
    change: &Change,
    record: &Record,
    own: Option<DefinitionNumber>,
) -> Result<(), RepositoryError> {
    if record.body.is_anonymous() {
        return match record.name.is_empty() && record.id.is_empty() {
            true => Ok(()),
            false => Err(bad_param("a type that has no name or id cannot be given one")),
        };
    }
    check_identifier(&record.name)?;
    if !record.id.contains(':') {
        return Err(ironorb::giop::typecode::BadType::Id.into());
    }
    if record.version.is_empty() {
        return Err(bad_param("a definition has a version"));
    }
    let is_other = |found: Option<DefinitionNumber>| found.is_some() && found != own;
    if is_other(change.by_id(&record.id)?) {
        return Err(RepositoryError::IdInUse(record.id.clone()));
    }
    if is_other(change.by_name(record.container, &record.name)?) {
        return Err(RepositoryError::NameInUse(record.name.clone()));
    }
    let container = existing(change, record.container)?;
    if !may_contain(&container.body, &record.body) {
        return Err(RepositoryError::NotAContainer(noun(&record.body), noun(&container.body)));
    }
    if matches!(record.body, Body::Attribute { .. } | Body::Operation { .. }) {
        for (base, _) in ancestors(change, record.container)? {
            if change.by_name(base, &record.name)?.is_some() {
                return Err(RepositoryError::InheritedName(record.name.clone()));
            }
        }
        for heir in heirs(change, &[record.container])? {
            if let Some(found) = change.by_name(heir, &record.name)?
                && has_one_meaning(&existing(change, found)?.body)
            {
                return Err(RepositoryError::InheritedName(record.name.clone()));
            }
        }
    }
    Ok(())
}

/// Checks that an interface or value does not inherit from itself, and that no operation or attribute has the
/// name of another, in it and in all definitions that inherit from it.
pub(super) fn check_lineage(
    change: &Change,
    number: DefinitionNumber,
    body: &Body,
) -> Result<(), RepositoryError> {
    for base in bases(body) {
        let leads_back = base == number || ancestors(change, base)?.iter().any(|&(above, _)| above == number);
        if leads_back {
            let name = existing(change, base)?.name;
            return Err(bad_param(format!("`{name}` inherits from what it is to be a base of")));
        }
    }
    check_inherited_names(change, number)?;
    heirs(change, &[number])?.into_iter().try_for_each(|heir| check_inherited_names(change, heir))
}

/// Checks that all operations and attributes of an interface or value, inherited ones included, have
/// different names.
pub(super) fn check_inherited_names(
    change: &Change,
    number: DefinitionNumber,
) -> Result<(), RepositoryError> {
    let mut names = HashSet::new();
    let inherited = ancestors(change, number)?.into_iter().map(|(base, _)| base);
    for container in std::iter::once(number).chain(inherited) {
        for content in change.contents(container)? {
            let record = existing(change, content)?;
            if has_one_meaning(&record.body) && !names.insert(record.name.to_ascii_lowercase()) {
                return Err(RepositoryError::InheritedName(record.name));
            }
        }
    }
    Ok(())
}

/// All definitions that inherit from or support one of these, directly or indirectly, without these
/// themselves.
pub(super) fn heirs(
    change: &Change,
    of: &[DefinitionNumber],
) -> Result<Vec<DefinitionNumber>, RepositoryError> {
    let mut found = Vec::new();
    let mut seen: HashSet<_> = of.iter().copied().collect();
    let mut waiting = of.to_vec();
    while let Some(base) = waiting.pop() {
        for user in change.users(base)? {
            if !seen.contains(&user) && bases(&existing(change, user)?.body).contains(&base) {
                seen.insert(user);
                found.push(user);
                waiting.push(user);
            }
        }
    }
    Ok(found)
}

/// Whether a name has one meaning in all derived definitions. Operations and attributes have; types and
/// constants may be redefined.
fn has_one_meaning(body: &Body) -> bool {
    matches!(body, Body::Attribute { .. } | Body::Operation { .. })
}

/// Checks that a definition refers to definitions of the right kinds, and that its types are legal. The
/// record has been written already.
pub(super) fn check_body(
    types: &mut TypeCodes<'_, Change>,
    number: DefinitionNumber,
    record: &Record,
    limits: &Limits,
) -> Result<(), RepositoryError> {
    let change = types.lookup();
    check_size(record, limits)?;
    match &record.body {
        Body::Constant { ty, value } => is_of_type(types, *ty, value)?,
        Body::Attribute { attribute } => {
            is_type(change, attribute.ty)?;
            are_exceptions(change, attribute.get_exceptions.iter().chain(&attribute.set_exceptions))?;
        }
        Body::Operation { operation } => check_operation(change, operation)?,
        Body::Interface { bases } => are_bases(change, bases, |base| {
            matches!(base, Body::Interface { .. } | Body::AbstractInterface { .. })
        })?,
        Body::AbstractInterface { bases } => {
            are_bases(change, bases, |base| matches!(base, Body::AbstractInterface { .. }))?;
        }
        Body::LocalInterface { bases } => {
            are_bases(change, bases, |base| base.interface_bases().is_some())?;
        }
        Body::Value { value } => {
            let is_stateful = |base: &Body| matches!(base, Body::Value { value } if !value.is_abstract);
            are_bases(change, &value.base, is_stateful)?;
            let is_abstract = |base: &Body| matches!(base, Body::Value { value } if value.is_abstract);
            are_bases(change, &value.abstract_bases, is_abstract)?;
            are_bases(change, &value.supported, |base| base.interface_bases().is_some())?;
            for initializer in &value.initializers {
                check_identifier(&initializer.name)?;
                initializer.members.iter().try_for_each(|member| is_type(change, member.ty))?;
                are_exceptions(change, initializer.exceptions.iter())?;
            }
        }
        Body::ValueMember { ty, .. } => is_type(change, *ty)?,
        Body::ValueBox { original } => {
            let kind = types.of(*original)?.resolved().kind();
            if matches!(kind, TcKind::Value | TcKind::ValueBox) {
                return Err(bad_param("a value type cannot be boxed: it can be nil and shared as it is"));
            }
        }
        _ => {}
    }
    // A type on a cycle sees the whole cycle, so it is enough to check this one.
    match &record.body {
        Body::ValueMember { .. } => drop(types.of(record.container)?),
        Body::Exception { .. } => drop(types.of(number)?),
        body if body.is_type() => drop(types.of(number)?),
        _ => {}
    }
    Ok(())
}

fn is_of_type(
    types: &mut TypeCodes<'_, Change>,
    ty: DefinitionNumber,
    value: &Any,
) -> Result<(), RepositoryError> {
    match types.of(ty)?.equivalent(value.type_code()) {
        true => Ok(()),
        false => Err(bad_param("the value of a constant is not of its type")),
    }
}

fn check_operation(change: &Change, operation: &Operation) -> Result<(), RepositoryError> {
    let void = DefinitionNumber::primitive(PrimitiveKind::PkVoid);
    if operation.result != void {
        is_type(change, operation.result)?;
    }
    let mut names = HashSet::new();
    for parameter in &operation.parameters {
        check_identifier(&parameter.name)?;
        if !names.insert(parameter.name.to_ascii_lowercase()) {
            return Err(ironorb::giop::typecode::BadType::DuplicateName.into());
        }
        is_type(change, parameter.ty)?;
    }
    are_exceptions(change, operation.exceptions.iter())?;
    let answers = operation.result != void
        || !operation.exceptions.is_empty()
        || operation.parameters.iter().any(|parameter| parameter.mode != ParameterMode::ParamIn);
    if operation.mode == OperationMode::OpOneway && answers {
        return Err(RepositoryError::Oneway);
    }
    Ok(())
}

fn check_size(record: &Record, limits: &Limits) -> Result<(), RepositoryError> {
    if encode(record)?.len() > limits.definition_bytes_max {
        return Err(RepositoryError::Limit {
            what: "bytes in a definition",
            max: limits.definition_bytes_max as u64,
        });
    }
    Ok(())
}

fn is_type(change: &Change, number: DefinitionNumber) -> Result<(), RepositoryError> {
    let body = existing(change, number)?.body;
    match body {
        Body::Primitive { kind: PrimitiveKind::PkVoid | PrimitiveKind::PkNull } => {
            Err(bad_param("void is no type of a value"))
        }
        body if body.is_type() => Ok(()),
        body => Err(bad_param(format!("{} is no type", noun(&body)))),
    }
}

fn are_exceptions<'n>(
    change: &Change,
    numbers: impl Iterator<Item = &'n DefinitionNumber>,
) -> Result<(), RepositoryError> {
    for &number in numbers {
        let body = existing(change, number)?.body;
        if !matches!(body, Body::Exception { .. }) {
            return Err(bad_param(format!("{} cannot be raised", noun(&body))));
        }
    }
    Ok(())
}

fn are_bases(
    change: &Change,
    direct: &[DefinitionNumber],
    is_allowed: impl Fn(&Body) -> bool,
) -> Result<(), RepositoryError> {
    for (index, &base) in direct.iter().enumerate() {
        let record = existing(change, base)?;
        if !is_allowed(&record.body) {
            return Err(bad_param(format!("`{}` cannot be a base here", record.name)));
        }
        if direct[..index].contains(&base) {
            return Err(bad_param(format!("`{}` is named as a base twice", record.name)));
        }
    }
    Ok(())
}

fn check_identifier(name: &str) -> Result<(), RepositoryError> {
    let mut chars = name.chars();
    let is_legal = chars.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_');
    if is_legal { Ok(()) } else { Err(ironorb::giop::typecode::BadType::Name.into()) }
}

fn may_contain(container: &Body, content: &Body) -> bool {
    let is_file_scope = matches!(container, Body::Repository {} | Body::Module {});
    let has_operations = container.interface_bases().is_some() || matches!(container, Body::Value { .. });
    match content {
        Body::Module {} | Body::Value { .. } | Body::ValueBox { .. } => is_file_scope,
        Body::ValueMember { .. } => matches!(container, Body::Value { .. }),
        Body::Attribute { .. } | Body::Operation { .. } => has_operations,
        Body::Constant { .. } | Body::Exception { .. } | Body::Alias { .. } | Body::Native {} => {
            is_file_scope || has_operations
        }
        Body::Struct { .. } | Body::Union { .. } | Body::Enum { .. } => {
            is_file_scope
                || has_operations
                || matches!(container, Body::Struct { .. } | Body::Union { .. } | Body::Exception { .. })
        }
        body => body.interface_bases().is_some() && is_file_scope,
    }
}

/// The kind of a definition, for messages.
pub(super) fn noun(body: &Body) -> &'static str {
    match body {
        Body::Repository {} => "the repository",
        Body::Primitive { .. } => "a basic type",
        Body::Module {} => "a module",
        Body::Constant { .. } => "a constant",
        Body::Struct { .. } => "a struct",
        Body::Exception { .. } => "an exception",
        Body::Union { .. } => "a union",
        Body::Enum { .. } => "an enum",
        Body::Alias { .. } => "a typedef",
        Body::Native {} => "a native type",
        Body::String { .. } | Body::WString { .. } => "a bounded string",
        Body::Fixed { .. } => "a fixed",
        Body::Sequence { .. } => "a sequence",
        Body::Array { .. } => "an array",
        Body::Pair { .. } => "a pair of a map",
        Body::Attribute { .. } => "an attribute",
        Body::Operation { .. } => "an operation",
        Body::Interface { .. } => "an interface",
        Body::AbstractInterface { .. } => "an abstract interface",
        Body::LocalInterface { .. } => "a local interface",
        Body::Value { .. } => "a value type",
        Body::ValueMember { .. } => "a state member",
        Body::ValueBox { .. } => "a boxed value",
    }
}
