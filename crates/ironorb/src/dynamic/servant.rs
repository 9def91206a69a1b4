//! Servants that learn at run time which operation is called (the standard's `DynamicImplementation`, CORBA
//! 3.3 part 1, clause 12), and their connection to the adapters.

use std::borrow::Cow;
use std::sync::Arc;

use ironorb_giop::exception::{CompletionStatus, SystemException, SystemExceptionKind};
use ironorb_giop::minor::MinorCode;

use super::description::InterfaceDescription;
use super::server_request::ServerRequest;
use crate::base::probe::{self, Stage};
use crate::object::{OBJECT_ID, ObjectRef};
use crate::poa::servant::Servant;
use crate::poa::servant::no_interface_repository;
use crate::poa::servant::{Call, Replied};
use crate::poa::{ObjectId, Poa, PoaCurrent};

/// A servant that takes any operation. [`servant`] turns it into a servant that an adapter activates.
///
/// With an [`interface`](Self::interface) it looks to clients like a static skeleton. Operations that the
/// interface lacks never reach it, and the description answers the operations of every object: `_is_a`,
/// `_repository_id` and others. Without an interface all other operations reach the servant.
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
    /// The interface of an object, if it is known (the standard's `_primary_interface`). Called for every
    /// request.
    fn interface(&self, id: &ObjectId) -> Option<Arc<InterfaceDescription>>;

    /// Carries out a request. Answering the request gives the [`Replied`]. A panic becomes UNKNOWN at the
    /// client.
    fn invoke(&self, request: ServerRequest<'_>) -> Replied;

    /// Whether the operations of every object, `_is_a` and the others, reach [`invoke`](Self::invoke) as
    /// well. That is for a servant that stands for objects elsewhere. The default is false.
    fn takes_standard_operations(&self) -> bool {
        false
    }

    /// Whether an object is there, for a LocateRequest. The default is true: the object has a servant. May
    /// block, which delays the client's other requests.
    fn is_here(&self, id: &ObjectId) -> Result<bool, SystemException> {
        let _ = id;
        Ok(true)
    }

    /// Whether an object has an interface (`_is_a`). The default answers from the description; without one
    /// the object has only `CORBA::Object`.
    fn is_a(&self, id: &ObjectId, repository_id: &str) -> Result<bool, SystemException> {
        Ok(match self.interface(id) {
            Some(interface) => interface.is_a(repository_id),
            None => repository_id == OBJECT_ID,
        })
    }

    /// Whether an object is gone for good (`_non_existent`). The default is false: the object has a servant.
    fn non_existent(&self, id: &ObjectId) -> Result<bool, SystemException> {
        let _ = id;
        Ok(false)
    }

    /// The description of an object's interface in an interface repository (`_get_interface`). The default is
    /// INTF_REPOS. The ORB then answers with what its initial reference `InterfaceRepository` has for the id
    /// of [`interface`](Self::interface), if there is such a reference.
    fn interface_object(&self, id: &ObjectId) -> Result<Option<ObjectRef>, SystemException> {
        let _ = id;
        Err(no_interface_repository())
    }

    /// The component of which an object is a facet (`_get_component`). The default is none.
    fn component(&self, id: &ObjectId) -> Result<Option<ObjectRef>, SystemException> {
        let _ = id;
        Ok(None)
    }
}

/// Makes the servant that an adapter activates from a dynamic servant.
pub fn servant<S: DynamicServant>(servant: Arc<S>) -> Arc<dyn Servant> {
    Arc::new(DynamicSkeleton(servant))
}

struct DynamicSkeleton<S>(Arc<S>);

impl<S: DynamicServant> Servant for DynamicSkeleton<S> {
    /// Not constants: callers use the other methods.
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
                "_non_existent"
                | "_not_existent"
                | "_repository_id"
                | "_interface"
                | "_component"
                | "_bind_priority_band" => {
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
    /// Answers `_is_a`. Static servants cannot fail at it, but a dynamic one can.
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

/// The object for which the thread's servant runs.
fn current_id() -> ObjectId {
    // Outside of an adapter there is none.
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
