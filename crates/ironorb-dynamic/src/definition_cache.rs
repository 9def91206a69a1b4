//! Caches the definitions that repositories and objects have reported, with the scope in which each counts.
//!
//! An object is believed only about itself: its description is stored with the object's reference,
//! independently of the repository id that it claims. Only repositories that the user or the ORB's
//! configuration names fill the table by ids, and only under the ids that they were asked for. Failures are
//! not kept.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ironorb::dynamic::InterfaceDescription;
use ironorb::giop::Ior;
use ironorb::ifr::corba::{Contained as _, InterfaceDefRef, RepositoryRef};
use ironorb::{ObjectRef, SystemException, TypeCode, TypedRef as _};

use crate::repository::{Described, LookUp, with_ids};

/// Most interfaces of repositories that are cached. Further ones are asked for each time. Default and only
/// value.
pub const INTERFACES_KEPT_MAX: usize = 4096;

/// Most types of repositories that are cached, and as many names. Further ones are asked for each time.
/// Default and only value.
pub const TYPES_KEPT_MAX: usize = 65_536;

/// Most repositories of initial references that are asked for further definitions too. Default and only
/// value.
pub const REPOSITORIES_FOUND_MAX: usize = 8;

/// Most objects whose own descriptions are cached. When there are more, all are forgotten, and are asked
/// again at need. Default and only value.
pub const OBJECTS_KEPT_MAX: usize = 256;

/// Most types of one object and its repository that are cached, and as many interfaces and names. Further
/// ones are asked for each time. Default and only value.
pub const OBJECT_TYPES_KEPT_MAX: usize = 1024;

/// The cached definitions.
pub(crate) struct DefinitionCache {
    /// Definitions from repositories, which count for every object.
    pub(crate) definitions: Definitions,
    /// Repositories of initial references.
    repositories: Mutex<Vec<RepositoryRef>>,
    objects: Mutex<HashMap<Ior, Arc<ObjectDefinitions>>>,
}

/// The definitions that an object has reported of itself.
#[derive(Debug)]
pub(crate) struct ObjectDefinitions {
    pub(crate) interface: Arc<InterfaceDescription>,
    pub(crate) definitions: Definitions,
    /// The repository of the object's description.
    pub(crate) repository: Option<RepositoryRef>,
}

impl Default for DefinitionCache {
    fn default() -> Self {
        DefinitionCache {
            definitions: Definitions::at_most(INTERFACES_KEPT_MAX, TYPES_KEPT_MAX),
            repositories: Mutex::default(),
            objects: Mutex::default(),
        }
    }
}

impl DefinitionCache {
    /// Adds a repository that an initial reference has led to.
    pub(crate) fn remember(&self, repository: &RepositoryRef) {
        let mut repositories = locked(&self.repositories);
        let is_same = |known: &RepositoryRef| known.object().is_equivalent(repository.object());
        if repositories.len() < REPOSITORIES_FOUND_MAX && !repositories.iter().any(is_same) {
            repositories.push(repository.clone());
        }
    }

    pub(crate) fn repositories(&self) -> Vec<RepositoryRef> {
        locked(&self.repositories).clone()
    }

    /// The definitions that an object has reported of itself, if it was asked.
    pub(crate) fn by_object(&self, object: &ObjectRef) -> Option<Arc<ObjectDefinitions>> {
        locked(&self.objects).get(object.ior()).cloned()
    }

    /// Reads the definition that an object reports as its own, with its bases. Blocks.
    pub(crate) fn ask_object(
        &self,
        object: &ObjectRef,
        definition: &InterfaceDefRef,
    ) -> Result<Arc<InterfaceDescription>, SystemException> {
        let mut look_up = LookUp::begin();
        let first = look_up.describe(definition)?;
        // An object that claims a known interface is taken to have it.
        if let Some(known) = self.definitions.interface(&first.description.id) {
            return Ok(known);
        }
        let described = look_up.with_bases(definition, first)?;
        // Without the repository only this interface is known, which may be enough.
        let repository = look_up.in_time(definition).and_then(|one| one.containing_repository());
        let repository = repository.ok().flatten();
        let definitions = Definitions::at_most(OBJECT_TYPES_KEPT_MAX, OBJECT_TYPES_KEPT_MAX);
        let interface = definitions.keep(described);
        let reported = Arc::new(ObjectDefinitions { interface: interface.clone(), definitions, repository });
        let mut objects = locked(&self.objects);
        if objects.len() >= OBJECTS_KEPT_MAX {
            objects.clear();
        }
        objects.insert(object.ior().clone(), reported);
        Ok(interface)
    }
}

impl fmt::Debug for DefinitionCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DefinitionCache").field("definitions", &self.definitions).finish_non_exhaustive()
    }
}

/// Cached definitions, by their ids.
pub(crate) struct Definitions {
    tables: Mutex<Tables>,
    interfaces_max: usize,
    types_max: usize,
}

#[derive(Default)]
struct Tables {
    interfaces: BTreeMap<String, Arc<InterfaceDescription>>,
    types: BTreeMap<String, TypeCode>,
    /// Repository ids by scoped names.
    names: BTreeMap<String, String>,
}

impl Definitions {
    fn at_most(interfaces_max: usize, types_max: usize) -> Definitions {
        Definitions { tables: Mutex::default(), interfaces_max, types_max }
    }

    pub(crate) fn interface(&self, id: &str) -> Option<Arc<InterfaceDescription>> {
        locked(&self.tables).interfaces.get(id).cloned()
    }

    pub(crate) fn type_code(&self, id: &str) -> Option<TypeCode> {
        locked(&self.tables).types.get(id).cloned()
    }

    pub(crate) fn id_of(&self, scoped_name: &str) -> Option<String> {
        locked(&self.tables).names.get(scoped_name).cloned()
    }

    /// Asks a repository for the id of a scoped name. Blocks.
    pub(crate) fn ask_id(
        &self,
        repository: &RepositoryRef,
        scoped_name: &str,
    ) -> Result<Option<String>, SystemException> {
        let Some(id) = LookUp::begin().id(repository, scoped_name)? else { return Ok(None) };
        let mut tables = locked(&self.tables);
        if tables.names.len() < self.types_max {
            tables.names.entry(scoped_name.to_owned()).or_insert_with(|| id.clone());
        }
        Ok(Some(id))
    }

    /// Asks a repository for the interface with an id. Blocks.
    pub(crate) fn ask_interface(
        &self,
        repository: &RepositoryRef,
        id: &str,
    ) -> Result<Option<Arc<InterfaceDescription>>, SystemException> {
        Ok(LookUp::begin().interface(repository, id)?.map(|described| self.keep(described)))
    }

    /// Asks a repository for the type with an id. Blocks.
    pub(crate) fn ask_type(
        &self,
        repository: &RepositoryRef,
        id: &str,
    ) -> Result<Option<TypeCode>, SystemException> {
        let Some(type_code) = LookUp::begin().type_code(repository, id)? else { return Ok(None) };
        self.keep_types(with_ids([&type_code]));
        Ok(Some(type_code))
    }

    fn keep(&self, described: Described) -> Arc<InterfaceDescription> {
        let interface = Arc::new(described.interface);
        self.keep_types(described.types);
        let mut tables = locked(&self.tables);
        if tables.interfaces.len() < self.interfaces_max {
            tables.interfaces.entry(interface.id.clone()).or_insert_with(|| interface.clone());
        }
        interface
    }

    fn keep_types(&self, types: BTreeMap<String, TypeCode>) {
        let mut tables = locked(&self.tables);
        for (id, type_code) in types {
            if tables.types.len() < self.types_max {
                tables.types.entry(id).or_insert(type_code);
            }
        }
    }
}

impl fmt::Debug for Definitions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tables = locked(&self.tables);
        f.debug_struct("Definitions")
            .field("interfaces", &tables.interfaces.len())
            .field("types", &tables.types.len())
            .finish()
    }
}

/// Locks a table. Every change is atomic, so a poisoned lock still guards a consistent table.
fn locked<T>(tables: &Mutex<T>) -> MutexGuard<'_, T> {
    tables.lock().unwrap_or_else(PoisonError::into_inner)
}
