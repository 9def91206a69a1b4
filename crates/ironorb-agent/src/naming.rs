//! The agent's names as those of a naming service, for clients that know only CosNaming.
//!
//! A name with slashes is a path: each part that leads further is a context. A name of several servers gives each of them
//! in turn. Names enter and leave by the agent alone: operations that bind raise NO_PERMISSION.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use ironorb::naming::cos_naming::naming_context as nc;
use ironorb::naming::cos_naming::naming_context_ext as ext;
use ironorb::naming::cos_naming::{
    Binding, BindingIterator, BindingIteratorRef, BindingList, BindingType, Name as CosName, NameComponent,
    NamingContext, NamingContextExt, NamingContextExtRef, NamingContextRef,
};
use ironorb::naming::{InvalidName, Name};
use ironorb::poa::{
    IdAssignment, IdUniqueness, Lifespan, ObjectId, PoaCurrent, PoaError, RequestProcessing, ServantRetention,
};
use ironorb::{
    CompletionStatus, MinorCode, ObjectRef, Orb, Poa, PoaPolicies, SystemException, SystemExceptionKind,
    TypedRef as _, servant,
};
use ironorb_services::naming::to_url;

use crate::reference::to_object;
use crate::server::{Shared, StartError};

/// The servant of all contexts. The object id is the path of the context, with a slash at its end unless it is the root's.
pub(crate) struct NamingFace {
    shared: Arc<Shared>,
    orb: Orb,
    contexts: Poa,
    iterators: Poa,
    next: AtomicUsize,
    open: Arc<Mutex<VecDeque<ObjectId>>>,
}

impl NamingFace {
    /// Serves the contexts, and returns their adapters.
    pub(crate) fn serve(orb: &Orb, shared: &Arc<Shared>) -> Result<[Poa; 2], StartError> {
        let root = orb.root_poa();
        let manager = Some(root.manager().clone());
        let contexts = root.create_poa(CONTEXTS_POA, manager.clone(), CONTEXTS_POLICIES)?;
        let iterators = root.create_poa(ITERATORS_POA, manager, PoaPolicies::default())?;
        let face = NamingFace {
            shared: shared.clone(),
            orb: orb.clone(),
            contexts: contexts.clone(),
            iterators: iterators.clone(),
            next: AtomicUsize::new(0),
            open: Arc::default(),
        };
        contexts.set_default_servant(servant::<NamingContextExtRef, _>(Arc::new(face)))?;
        let root = context_reference(&contexts, "")?;
        orb.bind_key(NAME_SERVICE, root.object())?;
        orb.register_initial_reference(NAME_SERVICE, root.object());
        Ok([contexts, iterators])
    }

    /// The path of the context that is called.
    fn path(&self) -> Result<String, SystemException> {
        let id = PoaCurrent.object_id();
        let path = id.and_then(|id| String::from_utf8(id.as_bytes().to_vec()).ok());
        path.filter(|path| path.is_empty() || path.ends_with('/')).ok_or_else(|| {
            SystemException::new(
                SystemExceptionKind::ObjectNotExist,
                MinorCode::NO_SUCH_OBJECT,
                CompletionStatus::No,
            )
        })
    }

    fn find(&self, name: Name) -> Result<ObjectRef, Fault> {
        let full = format!("{}{name}", self.path()?);
        let reference = {
            let state = self.shared.read();
            let entries: Vec<_> = state.registry.resolve(&full, &[]).1.collect();
            match entries.len() {
                0 => None,
                count => Some(entries[self.next.fetch_add(1, Ordering::Relaxed) % count].reference.clone()),
            }
        };
        if let Some(reference) = reference {
            return Ok(to_object(&self.orb, &reference)?);
        }
        let path = format!("{full}/");
        if self.shared.read().registry.list(&path, None, 1).next().is_some() {
            let context = context_reference(&self.contexts, &path);
            return Ok(context
                .map_err(|e| refused(SystemExceptionKind::ObjAdapter, &e.to_string()))?
                .object()
                .clone());
        }
        Err(Fault::NotFound(nc::NotFound {
            why: nc::NotFoundReason::MissingNode,
            rest_of_name: name.into_components().into_iter().map(Into::into).collect(),
        }))
    }

    /// What is bound in a context, in its order.
    fn bindings(&self, path: &str) -> VecDeque<Binding> {
        let mut found: BTreeMap<String, BindingType> = BTreeMap::new();
        let mut after = None;
        loop {
            let state = self.shared.read();
            let Some(name) = state.registry.list(path, after.as_deref(), 1).next() else { break };
            match name[path.len()..].split_once('/') {
                None => {
                    found.insert(name[path.len()..].to_owned(), BindingType::Nobject);
                    after = Some(name.to_string());
                }
                // A server's name may lead further, too. The object hides the context, as when it is resolved.
                Some((component, _)) => {
                    found.entry(component.to_owned()).or_insert(BindingType::Ncontext);
                    after = Some(format!("{path}{component}/{}", char::MAX));
                }
            }
        }
        // A name that is no stringified name of CosNaming cannot be told.
        let told = found.into_iter().filter_map(|(component, binding_type)| {
            let name = Name::parse(&component).ok()?;
            Some(Binding { binding_name: components(name), binding_type })
        });
        told.collect()
    }

    fn iterator(&self, rest: VecDeque<Binding>) -> Result<BindingIteratorRef, PoaError> {
        let listing = Arc::new(Listing {
            rest: Mutex::new(rest),
            poa: self.iterators.clone(),
            open: self.open.clone(),
        });
        let id = self.iterators.activate_object(servant::<BindingIteratorRef, _>(listing))?;
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.push_back(id.clone());
        let evicted = (open.len() > ITERATORS_MAX).then(|| open.pop_front()).flatten();
        drop(open);
        if let Some(evicted) = evicted {
            // Its client may be destroying it.
            let _ = self.iterators.deactivate(&evicted);
        }
        Ok(self.iterators.id_to_reference(&id)?.narrow_unchecked())
    }
}

impl NamingContext for NamingFace {
    fn bind(&self, _: &[NameComponent], _: Option<&ObjectRef>) -> Result<(), nc::BindError> {
        Err(not_here().into())
    }

    fn rebind(&self, _: &[NameComponent], _: Option<&ObjectRef>) -> Result<(), nc::RebindError> {
        Err(not_here().into())
    }

    fn bind_context(
        &self,
        _: &[NameComponent],
        _: Option<&NamingContextRef>,
    ) -> Result<(), nc::BindContextError> {
        Err(not_here().into())
    }

    fn rebind_context(
        &self,
        _: &[NameComponent],
        _: Option<&NamingContextRef>,
    ) -> Result<(), nc::RebindContextError> {
        Err(not_here().into())
    }

    fn resolve(&self, n: &[NameComponent]) -> Result<Option<ObjectRef>, nc::ResolveError> {
        Ok(Some(self.find(named(n)?)?))
    }

    fn unbind(&self, _: &[NameComponent]) -> Result<(), nc::UnbindError> {
        Err(not_here().into())
    }

    fn new_context(&self) -> Result<Option<NamingContextRef>, SystemException> {
        Err(not_here())
    }

    fn bind_new_context(
        &self,
        _: &[NameComponent],
    ) -> Result<Option<NamingContextRef>, nc::BindNewContextError> {
        Err(not_here().into())
    }

    fn destroy(&self) -> Result<(), nc::DestroyError> {
        Err(not_here().into())
    }

    fn list(&self, how_many: u32) -> Result<(BindingList, Option<BindingIteratorRef>), SystemException> {
        let mut rest = self.bindings(&self.path()?);
        let first = rest.drain(..rest.len().min(how_many as usize)).collect();
        let iterator = match rest.is_empty() {
            true => None,
            false => {
                let made = self.iterator(rest);
                Some(made.map_err(|e| refused(SystemExceptionKind::ObjAdapter, &e.to_string()))?)
            }
        };
        Ok((first, iterator))
    }
}

impl NamingContextExt for NamingFace {
    fn to_string(&self, n: &[NameComponent]) -> Result<ext::StringName, ext::ToStringError> {
        Ok(ToString::to_string(&named(n)?))
    }

    fn to_name(&self, sn: &str) -> Result<CosName, ext::ToNameError> {
        Ok(components(Name::parse(sn).map_err(Fault::from)?))
    }

    fn to_url(&self, addr: &str, sn: &str) -> Result<ext::UrlString, ext::ToUrlError> {
        to_url(addr, sn).map_err(|_| ext::ToUrlError::InvalidAddress(ext::InvalidAddress {}))
    }

    fn resolve_str(&self, n: &str) -> Result<Option<ObjectRef>, ext::ResolveStrError> {
        Ok(Some(self.find(Name::parse(n).map_err(Fault::from)?)?))
    }
}

/// What a client has not listed yet.
struct Listing {
    rest: Mutex<VecDeque<Binding>>,
    poa: Poa,
    open: Arc<Mutex<VecDeque<ObjectId>>>,
}

impl BindingIterator for Listing {
    fn next_one(&self) -> Result<(bool, Binding), SystemException> {
        let next = self.rest.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        Ok(next.map_or((false, Binding::default()), |binding| (true, binding)))
    }

    fn next_n(&self, how_many: u32) -> Result<(bool, BindingList), SystemException> {
        let mut rest = self.rest.lock().unwrap_or_else(PoisonError::into_inner);
        let count = rest.len().min(how_many as usize);
        let bindings: BindingList = rest.drain(..count).collect();
        Ok((!bindings.is_empty(), bindings))
    }

    fn destroy(&self) -> Result<(), SystemException> {
        if let Some(id) = PoaCurrent.object_id() {
            self.open.lock().unwrap_or_else(PoisonError::into_inner).retain(|open| *open != id);
            // It may just have been reclaimed to make room for another.
            let _ = self.poa.deactivate(&id);
        }
        Ok(())
    }
}

enum Fault {
    NotFound(nc::NotFound),
    InvalidName,
    System(SystemException),
}

impl From<SystemException> for Fault {
    fn from(e: SystemException) -> Self {
        Fault::System(e)
    }
}

impl From<InvalidName> for Fault {
    fn from(_: InvalidName) -> Self {
        Fault::InvalidName
    }
}

impl From<Fault> for nc::ResolveError {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::NotFound(e) => nc::ResolveError::NotFound(e),
            Fault::InvalidName => nc::ResolveError::InvalidName(nc::InvalidName {}),
            Fault::System(e) => nc::ResolveError::System(e),
        }
    }
}

impl From<Fault> for ext::ResolveStrError {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::NotFound(e) => ext::ResolveStrError::NotFound(e),
            Fault::InvalidName => ext::ResolveStrError::InvalidName(nc::InvalidName {}),
            Fault::System(e) => ext::ResolveStrError::System(e),
        }
    }
}

/// For operations that only read a name.
macro_rules! raises_invalid_name {
    ($($error:ident)*) => {$(
        impl From<Fault> for ext::$error {
            fn from(_: Fault) -> Self {
                ext::$error::InvalidName(nc::InvalidName {})
            }
        }
    )*};
}

raises_invalid_name! { ToStringError ToNameError }

fn named(n: &[NameComponent]) -> Result<Name, Fault> {
    Ok(Name::new(n.iter().cloned().map(Into::into).collect())?)
}

fn components(name: Name) -> CosName {
    name.into_components().into_iter().map(Into::into).collect()
}

fn context_reference(contexts: &Poa, path: &str) -> Result<NamingContextExtRef, PoaError> {
    let object =
        contexts.create_reference_with_id(ObjectId::from(path), NamingContextExtRef::REPOSITORY_ID)?;
    Ok(object.narrow_unchecked())
}

fn not_here() -> SystemException {
    refused(
        SystemExceptionKind::NoPermission,
        "names enter and leave by the agent: register with IronORBAgent",
    )
}

fn refused(kind: SystemExceptionKind, why: &str) -> SystemException {
    SystemException::new(kind, MinorCode::NONE, CompletionStatus::No).with_detail(why.to_owned())
}

const NAME_SERVICE: &str = "NameService";
/// Part of the object keys of contexts.
const CONTEXTS_POA: &str = "AgentContexts";
const ITERATORS_POA: &str = "AgentIterators";
/// Lists that are open at one time. The oldest makes room for a new one.
const ITERATORS_MAX: usize = 64;

const CONTEXTS_POLICIES: PoaPolicies = PoaPolicies {
    lifespan: Lifespan::Persistent,
    id_assignment: IdAssignment::User,
    id_uniqueness: IdUniqueness::Multiple,
    servant_retention: ServantRetention::NonRetain,
    request_processing: RequestProcessing::DefaultServant,
    ..PoaPolicies::PERSISTENT
};
