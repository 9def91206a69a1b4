//! What repositories and objects have told so far, and for whom it counts.
//!
//! Nothing here believes an object about more than itself: what its description says is kept beside the object's reference,
//! whatever repository id it claims. Only repositories that the user or the ORB's configuration named fill the table by
//! ids, and only under the ids that they were asked for. No failure is kept.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ironorb::dynamic::InterfaceDescription;
use ironorb::giop::Ior;
use ironorb::ifr::corba::{Contained as _, InterfaceDefRef, RepositoryRef};
use ironorb::{ObjectRef, SystemException, TypeCode, TypedRef as _};

use crate::repository::{Described, LookUp, with_ids};

/// Interfaces that are kept of all that repositories have told; those beyond are asked for each time. Default and only
/// value.
pub const INTERFACES_KEPT_MAX: usize = 4096;

/// Types, and as many names, that are kept of all that repositories have told; those beyond are asked for each time. Default and only value.
pub const TYPES_KEPT_MAX: usize = 65_536;

/// Repositories that initial references have led to and that are asked from then on, too. Default and only value.
pub const REPOSITORIES_FOUND_MAX: usize = 8;

/// Objects of which it is kept what they have told of themselves. Those of all are forgotten when there would be more, and
/// asked again. Default and only value.
pub const OBJECTS_KEPT_MAX: usize = 256;

/// Types, and as many interfaces and names, that are kept of what one object and its repository have told; those beyond are asked for
/// each time. Default and only value.
pub const OBJECT_TYPES_KEPT_MAX: usize = 1024;

/// What has been told so far.
pub(crate) struct Told {
    /// By repositories, for everybody.
    pub(crate) definitions: Definitions,
    /// Those of initial references.
    repositories: Mutex<Vec<RepositoryRef>>,
    objects: Mutex<HashMap<Ior, Arc<ToldByObject>>>,
}

/// What an object has told of itself.
#[derive(Debug)]
pub(crate) struct ToldByObject {
    pub(crate) interface: Arc<InterfaceDescription>,
    pub(crate) definitions: Definitions,
    /// Where its description is from.
    pub(crate) repository: Option<RepositoryRef>,
}

impl Default for Told {
    fn default() -> Self {
        Told {
            definitions: Definitions::at_most(INTERFACES_KEPT_MAX, TYPES_KEPT_MAX),
            repositories: Mutex::default(),
            objects: Mutex::default(),
        }
    }
}

impl Told {
    /// Keeps a repository that an initial reference has led to.
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

    /// What an object has told of itself, if it was asked.
    pub(crate) fn by_object(&self, object: &ObjectRef) -> Option<Arc<ToldByObject>> {
        locked(&self.objects).get(object.ior()).cloned()
    }

    /// What the definition that an object gives as its own describes, with its bases. Blocks.
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
        // Without it nothing but this interface can be learnt there, which may be enough.
        let repository = look_up.in_time(definition).and_then(|one| one.containing_repository());
        let repository = repository.ok().flatten();
        let definitions = Definitions::at_most(OBJECT_TYPES_KEPT_MAX, OBJECT_TYPES_KEPT_MAX);
        let interface = definitions.keep(described);
        let told = Arc::new(ToldByObject { interface: interface.clone(), definitions, repository });
        let mut objects = locked(&self.objects);
        if objects.len() >= OBJECTS_KEPT_MAX {
            objects.clear();
        }
        objects.insert(object.ior().clone(), told);
        Ok(interface)
    }
}

impl fmt::Debug for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Told").field("definitions", &self.definitions).finish_non_exhaustive()
    }
}

/// Definitions by their ids.
pub(crate) struct Definitions {
    tables: Mutex<Tables>,
    interfaces_max: usize,
    types_max: usize,
}

#[derive(Default)]
struct Tables {
    interfaces: BTreeMap<String, Arc<InterfaceDescription>>,
    types: BTreeMap<String, TypeCode>,
    /// From scoped names to ids.
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

    /// The id of what a repository has under a scoped name. Blocks.
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

    /// The interface that a repository has under an id. Blocks.
    pub(crate) fn ask_interface(
        &self,
        repository: &RepositoryRef,
        id: &str,
    ) -> Result<Option<Arc<InterfaceDescription>>, SystemException> {
        Ok(LookUp::begin().interface(repository, id)?.map(|described| self.keep(described)))
    }

    /// The type that a repository has under an id. Blocks.
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

/// Tables are whole at every moment.
fn locked<T>(tables: &Mutex<T>) -> MutexGuard<'_, T> {
    tables.lock().unwrap_or_else(PoisonError::into_inner)
}
