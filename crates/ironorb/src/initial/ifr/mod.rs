//! The interfaces of the Interface Repository (CORBA 3.3 part 1, clause 14), as generated from `idl/ir.idl`: [`corba`]
//! has one typed reference and one trait for each kind of definition. The repository itself is in `ironorb-services`.
//!
//! ```no_run
//! use ironorb::TypedRef as _;
//! use ironorb::ifr::corba::{InterfaceDef as _, InterfaceDefRef, Repository as _};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let orb = ironorb::Orb::builder().initial_reference("InterfaceRepository", "corbaloc::host:2900/InterfaceRepository").build()?;
//! let repository = ironorb::ifr::repository(&orb)?;
//! let found = repository.lookup_id("IDL:Bank/Account:1.0")?.expect("it is loaded");
//! let account: InterfaceDefRef = found.object().narrow()?.expect("it is an interface");
//! for operation in account.describe_interface()?.operations {
//!     println!("{} returns {:?}", operation.name, operation.result);
//! }
//! # Ok(()) }
//! ```

include!(concat!(env!("OUT_DIR"), "/ir.rs"));

use ironorb_giop::exception::SystemException;

use crate::object::ObjectRef;
use crate::orb::{InitialReference, Orb};
use crate::poa::servant::no_interface_repository;
use corba::{Repository as _, RepositoryRef};

/// The ORB's initial reference `InterfaceRepository`. Raises INTF_REPOS when the ORB has none. Does not call
/// the repository.
pub fn repository(orb: &Orb) -> Result<RepositoryRef, SystemException> {
    match orb.resolve_initial_references(INTERFACE_REPOSITORY) {
        Ok(InitialReference::Object(object)) => Ok(object.narrow_unchecked()),
        _ => Err(no_interface_repository()),
    }
}

/// The name of the initial reference, and the usual plain key of the [`repository`].
pub const INTERFACE_REPOSITORY: &str = "InterfaceRepository";

/// Looks an interface up in the repository: the answer to `get_interface` when the servant has none of its
/// own.
#[cold]
pub(crate) fn interface_of(orb: &Orb, repository_id: &str) -> Result<Option<ObjectRef>, SystemException> {
    match repository(orb)?.lookup_id(repository_id) {
        Ok(found) => Ok(found.map(Into::into)),
        // The client must learn that the repository is unreachable, and that its target has not failed.
        Err(e) => Err(no_interface_repository().with_detail(e.to_string())),
    }
}
