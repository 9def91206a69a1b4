//! The interface repository as plain code: one method for each thing that a client can do to definitions.

use std::collections::HashSet;

use ironorb::TypeCode;

use super::error::{RepositoryError, bad_param};
use super::limits::Limits;
use super::queries;
use super::queries::{enclosing, existing};
use super::record::{Body, DefinitionNumber, Record};
use super::rules::{check_body, check_lineage, check_place};
use super::store::{Change, Lookup as _, Store, View};
use super::types::{self, TYPE_VISITS_MAX, TypeCodes};

/// An interface repository over its store. Any thread may call any method. Methods that change definitions
/// block until earlier changes are done, and return once their own change is on disk.
#[derive(Debug)]
pub struct InterfaceRepository {
    store: Store,
    limits: Limits,
}

impl InterfaceRepository {
    /// A repository over this store.
    pub fn new(store: Store, limits: Limits) -> Self {
        InterfaceRepository { store, limits }
    }

    /// The record of a definition.
    pub fn get(&self, number: DefinitionNumber) -> Result<Record, RepositoryError> {
        existing(&self.store.read()?, number)
    }

    /// The definition with a repository id.
    pub fn lookup_id(&self, id: &str) -> Result<Option<DefinitionNumber>, RepositoryError> {
        Ok(self.store.read()?.by_id(id)?)
    }

    /// The definition of a scoped name, seen from a container: `::Bank::Account`, or `Account` from within
    /// `Bank`.
    pub fn lookup(
        &self,
        from: DefinitionNumber,
        scoped_name: &str,
    ) -> Result<Option<DefinitionNumber>, RepositoryError> {
        queries::lookup_scoped(&self.store.read()?, from, scoped_name)
    }

    /// The definitions in a container in the order of their creation, without inherited ones.
    pub fn contents(&self, container: DefinitionNumber) -> Result<Vec<DefinitionNumber>, RepositoryError> {
        Ok(self.store.read()?.contents(container)?)
    }

    /// The scoped name of a definition, beginning with `::`.
    pub fn absolute_name(&self, number: DefinitionNumber) -> Result<String, RepositoryError> {
        queries::absolute_name(&self.store.read()?, number)
    }

    /// The TypeCode of a type or exception. Computed from records at each call.
    pub fn type_code(&self, number: DefinitionNumber) -> Result<TypeCode, RepositoryError> {
        types::type_code(&self.store.read()?, number)
    }

    /// Creates a definition. Blocks until it is on disk.
    pub fn create(&self, record: &Record) -> Result<DefinitionNumber, RepositoryError> {
        let change = self.store.change()?;
        if change.count()? >= self.limits.definitions_max {
            return Err(RepositoryError::Limit { what: "definitions", max: self.limits.definitions_max });
        }
        check_place(&change, record, None)?;
        let number = change.insert(record)?;
        self.check(&change, number, record)?;
        change.commit()?;
        Ok(number)
    }

    /// Changes a definition. Blocks until the change is on disk.
    pub fn update(
        &self,
        number: DefinitionNumber,
        edit: impl FnOnce(&mut Record) -> Result<(), RepositoryError>,
    ) -> Result<(), RepositoryError> {
        let change = self.store.change()?;
        if number.is_permanent() {
            return Err(RepositoryError::Permanent);
        }
        let before = existing(&change, number)?;
        let mut record = before.clone();
        edit(&mut record)?;
        check_place(&change, &record, Some(number))?;
        if enclosing(&change, record.container)?.contains(&number) {
            return Err(bad_param("a definition cannot stand inside itself"));
        }
        replace(&change, number, &before, &record)?;
        self.check(&change, number, &record)?;
        Ok(change.commit()?)
    }

    fn check(
        &self,
        change: &Change,
        number: DefinitionNumber,
        record: &Record,
    ) -> Result<(), RepositoryError> {
        match &record.body {
            body @ Body::Value { .. } => check_lineage(change, number, body)?,
            body if body.interface_bases().is_some() => check_lineage(change, number, body)?,
            _ => {}
        }
        check_body(&mut TypeCodes::new(change, TYPE_VISITS_MAX), number, record, &self.limits)
    }

    /// Destroys a definition with all definitions in it, and with anonymous types that nothing else uses.
    /// Returns the numbers of all destroyed definitions. Blocks until the change is on disk.
    pub fn destroy(&self, number: DefinitionNumber) -> Result<Vec<DefinitionNumber>, RepositoryError> {
        let change = self.store.change()?;
        let gone = destroy_in(&change, &[number])?;
        change.commit()?;
        Ok(gone)
    }

    pub(super) fn read(&self) -> Result<View, RepositoryError> {
        Ok(self.store.read()?)
    }

    pub(super) fn change(&self) -> Result<Change, RepositoryError> {
        Ok(self.store.change()?)
    }

    pub(super) fn limits(&self) -> &Limits {
        &self.limits
    }
}

/// Replaces a record, and removes anonymous types that only this definition used.
pub(super) fn replace(
    change: &Change,
    number: DefinitionNumber,
    before: &Record,
    record: &Record,
) -> Result<(), RepositoryError> {
    change.update(number, before, record)?;
    collect(change, before.body.uses(), &mut Vec::new())
}

pub(super) fn destroy_in(
    change: &Change,
    numbers: &[DefinitionNumber],
) -> Result<Vec<DefinitionNumber>, RepositoryError> {
    if numbers.iter().any(|number| number.is_permanent()) {
        return Err(RepositoryError::Permanent);
    }
    let mut going = numbers.to_vec();
    let mut seen: HashSet<_> = going.iter().copied().collect();
    let mut at = 0;
    while let Some(&next) = going.get(at) {
        at += 1;
        let contents = change.contents(next)?;
        going.extend(contents.into_iter().filter(|&content| seen.insert(content)));
    }
    // Users of destroyed definitions must be destroyed too. Only anonymous types may: clients do not know
    // them.
    let mut at = 0;
    while let Some(&next) = going.get(at) {
        at += 1;
        for user in change.users(next)? {
            if seen.contains(&user) {
                continue;
            }
            let record = existing(change, user)?;
            let is_asked_for = numbers.contains(&next) && existing(change, next)?.body.is_anonymous();
            if !record.body.is_anonymous() || is_asked_for {
                return Err(RepositoryError::InUse(described(change, user, &record)?));
            }
            seen.insert(user);
            going.push(user);
        }
    }
    let mut used = Vec::new();
    for &number in &going {
        let record = existing(change, number)?;
        used.extend(record.body.uses());
        change.remove(number, &record)?;
    }
    collect(change, used, &mut going)?;
    Ok(going)
}

/// Removes anonymous types that nothing uses any more.
fn collect(
    change: &Change,
    mut candidates: Vec<DefinitionNumber>,
    gone: &mut Vec<DefinitionNumber>,
) -> Result<(), RepositoryError> {
    while let Some(number) = candidates.pop() {
        let Some(record) = change.get(number)? else { continue };
        if record.body.is_anonymous() && change.users(number)?.is_empty() {
            change.remove(number, &record)?;
            candidates.extend(record.body.uses());
            gone.push(number);
        }
    }
    Ok(())
}

fn described(change: &Change, number: DefinitionNumber, record: &Record) -> Result<String, RepositoryError> {
    match &record.body {
        body if body.is_anonymous() => Ok("a type without a name".to_owned()),
        _ => queries::absolute_name(change, number),
    }
}
