//! Queries on definitions: contents, inheritance, and names.
//!
//! Queries read records only. Every walk visits each definition once, so it ends for every store.

use std::collections::HashSet;

use ironorb::ifr::corba::DefinitionKind;

use super::error::RepositoryError;
use super::record::{Body, DefinitionNumber, Record};
use super::store::Lookup;
use crate::database::damaged;

/// A definition with its number.
pub(super) type Found = (DefinitionNumber, Record);

pub(super) fn existing(lookup: &impl Lookup, number: DefinitionNumber) -> Result<Record, RepositoryError> {
    lookup.get(number)?.ok_or(RepositoryError::NoSuchDefinition)
}

/// The definitions that an interface or value inherits from or supports, directly or indirectly: each once,
/// nearest first, without itself.
pub(super) fn ancestors(
    lookup: &impl Lookup,
    number: DefinitionNumber,
) -> Result<Vec<Found>, RepositoryError> {
    let mut found: Vec<Found> = Vec::new();
    let mut seen = HashSet::from([number]);
    let mut waiting = bases(&existing(lookup, number)?.body);
    while !waiting.is_empty() {
        let mut next = Vec::new();
        for base in waiting {
            if seen.insert(base) {
                let record = existing(lookup, base)?;
                next.extend(bases(&record.body));
                found.push((base, record));
            }
        }
        waiting = next;
    }
    Ok(found)
}

/// The direct bases, and the interfaces that a value supports.
pub(super) fn bases(body: &Body) -> Vec<DefinitionNumber> {
    match body {
        Body::Value { value } => {
            let all = value.base.iter().chain(&value.abstract_bases).chain(&value.supported);
            all.copied().collect()
        }
        _ => body.interface_bases().cloned().unwrap_or_default(),
    }
}

/// `contents`: the definitions in a container, then the inherited ones.
pub(super) fn contents(
    lookup: &impl Lookup,
    container: DefinitionNumber,
    limit: DefinitionKind,
    exclude_inherited: bool,
) -> Result<Vec<Found>, RepositoryError> {
    let mut containers = vec![container];
    if !exclude_inherited {
        containers.extend(ancestors(lookup, container)?.into_iter().map(|(number, _)| number));
    }
    let mut found = Vec::new();
    for container in containers {
        for number in lookup.contents(container)? {
            let record = existing(lookup, number)?;
            if is_limited_to(record.kind(), limit) {
                found.push((number, record));
            }
        }
    }
    Ok(found)
}

/// `lookup_name`: definitions of this name in the container and so many levels below; in all levels if
/// negative.
pub(super) fn lookup_name(
    lookup: &impl Lookup,
    container: DefinitionNumber,
    name: &str,
    levels: i32,
    limit: DefinitionKind,
    exclude_inherited: bool,
) -> Result<Vec<Found>, RepositoryError> {
    let mut found = Vec::new();
    let mut seen = HashSet::new();
    let mut level = vec![container];
    let mut levels_left = levels;
    while levels_left != 0 && !level.is_empty() {
        let mut below = Vec::new();
        for container in level {
            for (number, record) in contents(lookup, container, DefinitionKind::DkAll, exclude_inherited)? {
                if !seen.insert(number) {
                    continue;
                }
                if is_container(&record.body) {
                    below.push(number);
                }
                if record.name.eq_ignore_ascii_case(name) && is_limited_to(record.kind(), limit) {
                    found.push((number, record));
                }
            }
        }
        level = below;
        levels_left = levels_left.saturating_sub(1).max(if levels < 0 { -1 } else { 0 });
    }
    Ok(found)
}

/// `lookup`: the definition of a scoped name, by the scoping rules of IDL.
pub(super) fn lookup_scoped(
    lookup: &impl Lookup,
    from: DefinitionNumber,
    scoped_name: &str,
) -> Result<Option<DefinitionNumber>, RepositoryError> {
    let (mut scopes, names) = match scoped_name.strip_prefix("::") {
        Some(absolute) => (vec![DefinitionNumber::REPOSITORY], absolute),
        None => (enclosing(lookup, from)?, scoped_name),
    };
    let mut at = None;
    for name in names.split("::") {
        at = None;
        for scope in std::mem::take(&mut scopes) {
            at = in_scope(lookup, scope, name)?;
            if at.is_some() {
                break;
            }
        }
        match at {
            Some(found) => scopes = vec![found],
            None => return Ok(None),
        }
    }
    Ok(at)
}

/// `absolute_name`: the scoped name with leading colons.
pub(super) fn absolute_name(
    lookup: &impl Lookup,
    number: DefinitionNumber,
) -> Result<String, RepositoryError> {
    let mut names = Vec::new();
    for scope in enclosing(lookup, number)? {
        names.push(existing(lookup, scope)?.name);
    }
    // The repository's name is empty, which yields the leading colons.
    names.reverse();
    Ok(names.join("::"))
}

/// `is_a` for interfaces and values.
pub(super) fn is_a(
    lookup: &impl Lookup,
    number: DefinitionNumber,
    repository_id: &str,
) -> Result<bool, RepositoryError> {
    let record = existing(lookup, number)?;
    let root = match record.body {
        Body::Value { .. } => "IDL:omg.org/CORBA/ValueBase:1.0",
        Body::AbstractInterface { .. } => "IDL:omg.org/CORBA/AbstractBase:1.0",
        _ => "IDL:omg.org/CORBA/Object:1.0",
    };
    Ok(record.id == repository_id
        || repository_id == root
        || ancestors(lookup, number)?.iter().any(|(_, base)| base.id == repository_id))
}

pub(super) fn is_container(body: &Body) -> bool {
    body.interface_bases().is_some()
        || matches!(
            body,
            Body::Repository {}
                | Body::Module {}
                | Body::Struct { .. }
                | Body::Union { .. }
                | Body::Exception { .. }
                | Body::Value { .. }
        )
}

/// A definition and all its containers, the repository last.
pub(super) fn enclosing(
    lookup: &impl Lookup,
    number: DefinitionNumber,
) -> Result<Vec<DefinitionNumber>, RepositoryError> {
    let mut scopes = vec![number];
    let mut seen = HashSet::from([number]);
    let mut at = number;
    while at != DefinitionNumber::REPOSITORY {
        at = existing(lookup, at)?.container;
        if !seen.insert(at) {
            return Err(damaged("a definition stands inside itself").into());
        }
        scopes.push(at);
    }
    Ok(scopes)
}

/// The definition of a name in a scope, inherited names included.
pub(super) fn in_scope(
    lookup: &impl Lookup,
    scope: DefinitionNumber,
    name: &str,
) -> Result<Option<DefinitionNumber>, RepositoryError> {
    if let Some(found) = lookup.by_name(scope, name)? {
        return Ok(Some(found));
    }
    for (base, _) in ancestors(lookup, scope)? {
        if let Some(found) = lookup.by_name(base, name)? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// Whether a kind matches a limit. `dk_Typedef` matches all TypedefDef objects.
fn is_limited_to(kind: DefinitionKind, limit: DefinitionKind) -> bool {
    use DefinitionKind as K;
    match limit {
        K::DkAll => true,
        K::DkTypedef => {
            matches!(kind, K::DkAlias | K::DkStruct | K::DkUnion | K::DkEnum | K::DkNative | K::DkValueBox)
        }
        _ => kind == limit,
    }
}
