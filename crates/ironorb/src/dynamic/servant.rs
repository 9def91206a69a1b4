//! Servants that learn at run time what they are asked (the standard's `DynamicImplementation`, CORBA 3.3 part 1, clause
//! 12), joined to the adapters.

use std::borrow::Cow;
use std::sync::Arc;

use ironorb_giop::exception::{CompletionStatus, SystemException, SystemExceptionKind};
use ironorb_giop::minor::MinorCode;

use super::description::InterfaceDescription;
use super::server_request::ServerRequest;
use crate::generated::call::no_interface_repository;
use crate::generated::{Call, Replied};
use crate::object::{OBJECT_ID, ObjectRef};
use crate::poa::{ObjectId, Poa, PoaCurrent};
use crate::probe::{self, Stage};
use crate::servant::Servant;

/// A servant that takes any operation. [`servant`] makes of it what an adapter activates.
///
/// With an [`interface`](Self::interface) it looks to clients as a static skeleton does: operations that the interface
/// does not have never reach it, and what every object has - `_is_a`, `_repository_id` and others - is answered from the
/// description. Without one everything reaches it but these.
///
/// ```
/// use std::sync::Arc;
/// use ironorb::dynamic::{self, DynamicServant, InterfaceDescription, OperationDescription, ParameterMode};
/// use ironorb::dynamic::ServerRequest;
/// use ironorb::poa::ObjectId;
/// use ironorb::{Replied, TypeDef};
///
/// struct Echo(Arc<InterfaceDescription>);
///
/// impl DynamicServant for Echo {
///     fn interface(&self, _: &ObjectId) -> Option<Arc<InterfaceDescription>> {
///         Some(self.0.clone())
///     }
///
///     fn invoke(&self, mut request: ServerRequest<'_>) -> Replied {
///         match request.arguments() {
///             Ok(arguments) => request.reply(arguments.first(), &[]),
///             Err(e) => request.raise_system(e),
///         }
///     }
/// }
///
/// let text = || &TypeDef::String { bound: 0 };
/// let echo = OperationDescription::new("echo").parameter("text", ParameterMode::In, text()).returns(text());
/// let interface = InterfaceDescription::new("IDL:Echo:1.0", "Echo").operation(echo);
/// let servant = dynamic::servant(Arc::new(Echo(Arc::new(interface))));
/// # let _ = servant;
/// ```
pub trait DynamicServant: Send + Sync + 'static {
    /// The interface of an object, if it is known (the standard's `_primary_interface`). Asked with every request.
    fn interface(&self, id: &ObjectId) -> Option<Arc<InterfaceDescription>>;

    /// Carries out a request. It must be answered, which gives the [`Replied`]; a panic is UNKNOWN to the client.
    fn invoke(&self, request: ServerRequest<'_>) -> Replied;

    /// Whether what every object has - `_is_a` and the others - is to reach [`invoke`](Self::invoke) as well, for a servant
    /// that stands for objects elsewhere. By default it is not.
    fn takes_standard_operations(&self) -> bool {
        false
    }

    /// Whether an object is there, as a LocateRequest asks. By default it is: it has a servant. May block, which keeps the
    /// client's other requests waiting.
    fn is_here(&self, id: &ObjectId) -> Result<bool, SystemException> {
        let _ = id;
        Ok(true)
    }

    /// Whether an object has an interface (`_is_a`). By default as its description says; without one it has none but
    /// `CORBA::Object`.
    fn is_a(&self, id: &ObjectId, repository_id: &str) -> Result<bool, SystemException> {
        Ok(match self.interface(id) {
            Some(interface) => interface.is_a(repository_id),
            None => repository_id == OBJECT_ID,
        })
    }

    /// Whether an object is gone for good (`_non_existent`). By default it is not: it has a servant.
    fn non_existent(&self, id: &ObjectId) -> Result<bool, SystemException> {
        let _ = id;
        Ok(false)
    }

    /// The description of an object's interface in an interface repository (`_get_interface`). By default there is none of
    /// its own, INTF_REPOS, which is answered by what the ORB's initial reference `InterfaceRepository` has for the id of
    /// [`interface`](Self::interface), if there is such a reference.
    fn interface_object(&self, id: &ObjectId) -> Result<Option<ObjectRef>, SystemException> {
        let _ = id;
        Err(no_interface_repository())
    }

    /// The component that an object is a facet of (`_get_component`). By default it is none's.
    fn component(&self, id: &ObjectId) -> Result<Option<ObjectRef>, SystemException> {
        let _ = id;
        Ok(None)
    }
}

/// A dynamic servant as an adapter wants it.
pub fn servant<S: DynamicServant>(servant: Arc<S>) -> Arc<dyn Servant> {
    Arc::new(DynamicSkeleton(servant))
}

struct DynamicSkeleton<S>(Arc<S>);

impl<S: DynamicServant> Servant for DynamicSkeleton<S> {
    /// Not constants: everybody asks by the other methods.
    fn repository_ids(&self) -> &[&'static str] {
        &[]
    }

    fn dispatch(&self, call: Call<'_>) -> Replied {
        let id = current_id();
        let Ok(operation) = std::str::from_utf8(call.operation()) else {
            return call.raise(&no_such_operation());
        };
        if operation.starts_with('_') && !self.0.takes_standard_operations() {
            match operation {
                "_is_a" => return self.answer_is_a(&id, call),
                "_non_existent" | "_not_existent" | "_repository_id" | "_interface" | "_component" => {
                    return call.standard_operation(&[]);
                }
                _ => {}
            }
        }
        let probe = probe::enter(Stage::OperationLookup);
        let description = match self.0.interface(&id) {
            None => None,
            Some(interface) => match interface.find(operation) {
                Some(operation) => Some(operation.clone()),
                None => return call.raise(&no_such_operation()),
            },
        };
        drop(probe);
        let _probe = probe::enter(Stage::Upcall);
        self.0.invoke(ServerRequest::new(call, operation, id, description))
    }

    fn address(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }

    fn implementation(self: Arc<Self>) -> Option<Arc<dyn std::any::Any + Send + Sync>> {
        Some(self.0.clone())
    }

    fn is_here(&self, id: &ObjectId) -> Result<bool, SystemException> {
        self.0.is_here(id)
    }

    fn primary_interface(&self, id: &ObjectId, _: &Poa) -> Cow<'static, str> {
        match self.0.interface(id) {
            Some(interface) => Cow::Owned(interface.id.clone()),
            None => Cow::Borrowed(OBJECT_ID),
        }
    }

    fn is_a(&self, repository_id: &str) -> bool {
        self.0.is_a(&current_id(), repository_id).unwrap_or(false)
    }

    fn non_existent(&self) -> Result<bool, SystemException> {
        self.0.non_existent(&current_id())
    }

    fn interface(&self) -> Result<Option<ObjectRef>, SystemException> {
        self.0.interface_object(&current_id())
    }

    fn component(&self) -> Result<Option<ObjectRef>, SystemException> {
        self.0.component(&current_id())
    }
}

impl<S: DynamicServant> DynamicSkeleton<S> {
    /// Not as other servants do, for a dynamic one may fail at it.
    fn answer_is_a(&self, id: &ObjectId, mut call: Call<'_>) -> Replied {
        match call.arguments().read_str() {
            Ok(repository_id) => match self.0.is_a(id, &repository_id) {
                Ok(yes) => call.reply(|w| w.put(&(yes || repository_id == OBJECT_ID))),
                Err(e) => call.raise(&e),
            },
            Err(e) => call.refuse_arguments(e),
        }
    }
}

/// The object that the thread's servant is being.
fn current_id() -> ObjectId {
    // Called without an adapter?
    PoaCurrent.object_id().unwrap_or_else(|| ObjectId::from(""))
}

#[cold]
pub(super) fn no_such_operation() -> SystemException {
    SystemException::new(
        SystemExceptionKind::BadOperation,
        MinorCode::NO_SUCH_OPERATION,
        CompletionStatus::No,
    )
}
