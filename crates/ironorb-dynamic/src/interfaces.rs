//! The known definitions: interfaces, types and constants by their ids and names.
//!
//! This module does not decide how a definition is marshalled; `lower` does.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ironorb::dynamic::InterfaceDescription;
use ironorb::ifr::corba::RepositoryRef;
use ironorb::{Any, ObjectRef, Orb, SystemException, TcKind, TypeCode};
use ironorb_idl::model::Model;
use ironorb_idl::{MapLoader, Options, Outcome, compile_file, compile_with};

use crate::definition_cache::{DefinitionCache, Definitions, ObjectDefinitions};
use crate::lower;

/// Definitions known at run time, from IDL files, descriptions and TypeCodes, and from interface
/// repositories, which are asked for definitions that are missing.
///
/// Definitions are never removed. Adding a definition again succeeds if both are equal, so files that include
/// the same files can be added one after another.
///
/// Answers of a repository are cached and not asked again, so later changes in the repository do not show.
/// Copies share the cache and are cheap. What an object reports of itself ([`of`](Self::of)) counts for that
/// object alone: only the copy that [`with_definitions_of`](Self::with_definitions_of) returns has it. [`of`](Self::of) and the
/// `fetch_…` methods call servers and block; no other method blocks.
#[derive(Debug, Clone, Default)]
pub struct Interfaces {
    /// Copied only when definitions are added while other copies share it.
    added: Arc<Added>,
    /// The repositories, in the order in which they are asked.
    repositories: Vec<RepositoryRef>,
    cache: Arc<DefinitionCache>,
    /// The object whose own definitions count here too.
    object: Option<Arc<ObjectDefinitions>>,
}

#[derive(Debug, Clone, Default)]
struct Added {
    interfaces: BTreeMap<String, Arc<InterfaceDescription>>,
    types: BTreeMap<String, TypeCode>,
    constants: BTreeMap<String, Constant>,
    /// Repository ids by scoped names.
    names: BTreeMap<String, String>,
}

/// An IDL constant.
#[derive(Debug, Clone, PartialEq)]
pub struct Constant {
    /// The repository id.
    pub id: String,
    /// The value, under the declared type of the constant.
    pub value: Any,
}

impl Interfaces {
    /// An empty set of definitions.
    pub fn new() -> Self {
        Interfaces::default()
    }

    /// Adds everything that IDL files and the files they include define. Reads files. A file with errors adds
    /// nothing, and the definitions of the files before it stay.
    ///
    /// Returns the warnings of the front end as text for people; the text is empty without warnings.
    pub fn add_idl<P: AsRef<Path>>(
        &mut self,
        paths: impl IntoIterator<Item = P>,
        options: &Options,
    ) -> Result<String, DefinitionError> {
        let mut warnings = String::new();
        for path in paths {
            let path = path.as_ref();
            warnings.push_str(&self.add_outcome(path, &compile_file(path, options))?);
        }
        Ok(warnings)
    }

    /// Adds the definitions of an IDL text, under this file name. The text cannot include files on disk.
    pub fn add_idl_text(
        &mut self,
        name: &str,
        text: &str,
        options: &Options,
    ) -> Result<String, DefinitionError> {
        let files = MapLoader::new().with(name, text);
        self.add_outcome(Path::new(name), &compile_with(name.as_ref(), options, &files))
    }

    fn add_outcome(&mut self, path: &Path, outcome: &Outcome) -> Result<String, DefinitionError> {
        let Some(model) = &outcome.model else {
            return Err(DefinitionError::Idl { path: path.to_owned(), diagnostics: outcome.render(false) });
        };
        self.add_model(model)?;
        Ok(outcome.render(false))
    }

    /// Adds everything that a resolved IDL model defines; nothing if there is an error.
    pub fn add_model(&mut self, model: &Model) -> Result<(), DefinitionError> {
        let lowered = lower::lower(model)?;
        for (id, type_code) in &lowered.types {
            self.check_type(id, type_code)?;
        }
        for interface in &lowered.interfaces {
            self.check_interface(interface)?;
        }
        for type_code in lowered.types.into_iter().map(|(_, type_code)| type_code) {
            self.add_type(type_code)?;
        }
        for interface in lowered.interfaces {
            self.add_interface(interface)?;
        }
        let added = Arc::make_mut(&mut self.added);
        added.constants.extend(lowered.constants);
        added.names.extend(lowered.names);
        Ok(())
    }

    /// Adds an interface repository of any ORB, which is asked for missing definitions. Does not call it.
    pub fn add_repository(&mut self, repository: &RepositoryRef) {
        self.repositories.push(repository.clone());
    }

    /// Adds a type that has a repository id. A type without an id is ignored.
    pub fn add_type(&mut self, type_code: TypeCode) -> Result<(), DefinitionError> {
        let id = type_code.id().unwrap_or_default().to_owned();
        self.check_type(&id, &type_code)?;
        if !id.is_empty() {
            Arc::make_mut(&mut self.added).types.insert(id, type_code);
        }
        Ok(())
    }

    /// Adds an interface.
    pub fn add_interface(
        &mut self,
        interface: impl Into<Arc<InterfaceDescription>>,
    ) -> Result<(), DefinitionError> {
        let interface = interface.into();
        self.check_interface(&interface)?;
        Arc::make_mut(&mut self.added).interfaces.insert(interface.id.clone(), interface);
        Ok(())
    }

    fn check_type(&self, id: &str, type_code: &TypeCode) -> Result<(), DefinitionError> {
        match self.added.types.get(id) {
            Some(known) if known != type_code => Err(DefinitionError::Conflict(id.to_owned())),
            _ => Ok(()),
        }
    }

    fn check_interface(&self, interface: &InterfaceDescription) -> Result<(), DefinitionError> {
        match self.added.interfaces.get(&interface.id) {
            Some(known) if **known != *interface => Err(DefinitionError::Conflict(interface.id.clone())),
            _ => Ok(()),
        }
    }

    /// The interface with a repository id, if it was added or is cached from a repository.
    pub fn interface(&self, id: &str) -> Option<Arc<InterfaceDescription>> {
        let added = self.added.interfaces.get(id).cloned();
        added.or_else(|| self.tables().find_map(|cache| cache.interface(id)))
    }

    /// The interface with a repository id. If it is not known, the repositories are asked in order, and the
    /// first one that has it counts. Blocks.
    pub fn fetch_interface(&self, id: &str) -> Result<Option<Arc<InterfaceDescription>>, SystemException> {
        match self.interface(id) {
            Some(known) => Ok(Some(known)),
            None => self.first_of(|repository, cache| cache.ask_interface(repository, id)),
        }
    }

    /// All interfaces that were added, in the order of their ids.
    pub fn interfaces(&self) -> impl Iterator<Item = &Arc<InterfaceDescription>> {
        self.added.interfaces.values()
    }

    /// The type with a repository id: a struct, union, enum, typedef, exception, interface, valuetype, box or
    /// native type. Only types that were added or are cached from a repository.
    pub fn type_code(&self, id: &str) -> Option<TypeCode> {
        let added = self.added.types.get(id).cloned();
        added.or_else(|| self.tables().find_map(|cache| cache.type_code(id)))
    }

    /// The type with a repository id. If it is not known, the repositories are asked in order, and the first
    /// one that has it counts. Blocks.
    pub fn fetch_type(&self, id: &str) -> Result<Option<TypeCode>, SystemException> {
        match self.type_code(id) {
            Some(known) => Ok(Some(known)),
            None => self.first_of(|repository, cache| cache.ask_type(repository, id)),
        }
    }

    /// All added types with ids, in the order of their ids.
    pub fn type_codes(&self) -> impl Iterator<Item = &TypeCode> {
        self.added.types.values()
    }

    /// Registers the valuetypes with an ORB, so that its dynamic requests and servants accept values of
    /// derived types: see [`Orb::register_value_type`].
    ///
    /// ```
    /// use ironorb::Orb;
    /// use ironorb_dynamic::{Interfaces, json};
    /// use serde_json::json;
    ///
    /// let mut known = Interfaces::new();
    /// let idl = "valuetype Shape { public string name; }; valuetype Circle : Shape { public double radius; };";
    /// known.add_idl_text("shapes.idl", idl, &Default::default())?;
    /// let shape = known.type_code("IDL:Shape:1.0").expect("it was just read");
    /// let circle = json!({"@type": "Circle", "name": "c", "radius": 1.5});
    ///
    /// let orb = Orb::builder().no_endpoint().build()?;
    /// assert!(json::from_json(&shape, &circle, &known, Some(&orb)).is_err());
    /// known.register_value_types(&orb);
    /// let value = json::from_json(&shape, &circle, &known, Some(&orb))?;
    /// assert_eq!(json::to_json_with(&value, &known)?["radius"], json!(1.5));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn register_value_types(&self, orb: &Orb) {
        self.type_codes().for_each(|type_code| orb.register_value_type(type_code));
    }

    /// The exception with a repository id.
    pub fn exception(&self, id: &str) -> Option<TypeCode> {
        self.type_code(id).filter(|type_code| type_code.kind() == TcKind::Except)
    }

    /// The constant with a scoped name, such as `Bank::LIMIT`.
    pub fn constant(&self, scoped_name: &str) -> Option<&Constant> {
        self.added.constants.get(scoped_name.trim_start_matches("::"))
    }

    /// All constants with their scoped names, in the order of the names.
    pub fn constants(&self) -> impl Iterator<Item = (&str, &Constant)> {
        self.added.constants.iter().map(|(name, constant)| (name.as_str(), constant))
    }

    /// The repository id of an interface or type by its scoped name, such as `Bank::Account`. Only
    /// definitions from IDL have scoped names.
    pub fn id_of(&self, scoped_name: &str) -> Option<&str> {
        self.added.names.get(scoped_name.trim_start_matches("::")).map(String::as_str)
    }

    /// The repository id of an interface or type by its scoped name; an id is returned unchanged. If the name
    /// is not known, the repositories are asked in order, and the first one that has it counts. Blocks.
    pub fn fetch_id(&self, scoped_name: &str) -> Result<Option<String>, SystemException> {
        let format_and_rest = scoped_name.split_once(':');
        if format_and_rest.is_some_and(|(format, rest)| !format.is_empty() && !rest.starts_with(':')) {
            return Ok(Some(scoped_name.to_owned()));
        }
        match self.known_id(scoped_name) {
            Some(id) => Ok(Some(id)),
            None => self.first_of(|repository, cache| cache.ask_id(repository, scoped_name)),
        }
    }

    /// The repository id for a scoped name, from IDL or cached from a repository.
    pub(crate) fn known_id(&self, scoped_name: &str) -> Option<String> {
        let cached = || self.tables().find_map(|cache| cache.id_of(scoped_name));
        self.id_of(scoped_name).map(str::to_owned).or_else(cached)
    }

    /// Scoped names with their repository ids, in the order of the names. Only definitions from IDL have
    /// scoped names.
    pub fn names(&self) -> impl Iterator<Item = (&str, &str)> {
        self.added.names.iter().map(|(name, id)| (name.as_str(), id.as_str()))
    }

    /// These definitions together with those that this object has reported when [`of`](Self::of) asked it:
    /// its interface, the types of its operations, and other definitions of its repository. They do not count
    /// for other objects. Calls no server; cheap.
    #[must_use]
    pub fn with_definitions_of(&self, object: &ObjectRef) -> Interfaces {
        Interfaces { object: self.cache.by_object(object), ..self.clone() }
    }

    /// These definitions without those of one object.
    pub(crate) fn for_all(&self) -> Interfaces {
        Interfaces { object: None, ..self.clone() }
    }

    pub(crate) fn repositories(&self) -> &[RepositoryRef] {
        &self.repositories
    }

    pub(crate) fn cache(&self) -> &DefinitionCache {
        &self.cache
    }

    /// The caches to search, the best authority first.
    fn tables(&self) -> impl Iterator<Item = &Definitions> {
        let object = self.object.as_deref().map(|object| &object.definitions);
        std::iter::once(&self.cache.definitions).chain(object)
    }

    /// The answer of the first repository that has one; an error only if no repository has an answer and one
    /// failed. Each repository comes with the cache for its answers.
    fn first_of<T>(
        &self,
        ask: impl Fn(&RepositoryRef, &Definitions) -> Result<Option<T>, SystemException>,
    ) -> Result<Option<T>, SystemException> {
        let mut failed = None;
        let found = self.cache.repositories();
        let for_all = self.repositories.iter().chain(&found).map(|one| (one, &self.cache.definitions));
        let of_object =
            self.object.as_deref().and_then(|cache| Some((cache.repository.as_ref()?, &cache.definitions)));
        for (repository, cache) in for_all.chain(of_object) {
            match ask(repository, cache) {
                Ok(None) => {}
                Ok(found) => return Ok(found),
                Err(e) => failed = failed.or(Some(e)),
            }
        }
        failed.map_or(Ok(None), Err)
    }
}

/// The reason why definitions cannot be added.
#[derive(Debug, Clone, PartialEq)]
pub enum DefinitionError {
    /// An IDL file has errors, or cannot be read.
    Idl {
        /// The file.
        path: PathBuf,
        /// The errors, as text for people of several lines.
        diagnostics: String,
    },
    /// This repository id has a different definition already.
    Conflict(String),
    /// A definition has no TypeCode or value.
    Unusable {
        /// The repository id of the definition.
        id: String,
        /// The reason.
        why: String,
    },
}

impl fmt::Display for DefinitionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DefinitionError::Idl { path, diagnostics } => {
                write!(f, "{} has errors:\n{diagnostics}", path.display())
            }
            DefinitionError::Conflict(id) => write!(f, "{id} is defined already, and differently"),
            DefinitionError::Unusable { id, why } => write!(f, "{id} cannot be used: {why}"),
        }
    }
}

impl std::error::Error for DefinitionError {}
