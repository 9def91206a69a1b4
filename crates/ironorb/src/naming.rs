//! The client's side of the naming service (Naming 1.3).

use ironorb_giop::exception::SystemException;

use crate::object::ObjectRef;

pub(crate) fn resolve(_context: &ObjectRef, _name: &str) -> Result<ObjectRef, SystemException> {
    Err(crate::object::nil_reference())
}
