//! The object by which the caches of an ORB's clients are emptied.

use std::sync::{Arc, Weak};

use ironorb_giop::exception::{CompletionStatus, SystemException, SystemExceptionKind};
use ironorb_giop::minor::MinorCode;

use super::servant::furnish;
use super::{CACHES_KEY, Caches, CachesRef};
use crate::driver::orb_core::OrbCore;
use crate::poa::servant::servant;
use crate::poa::{Poa, PoaError};

/// Makes the object. It changes what the ORB's clients hold, so it is for those of this machine alone.
pub(super) fn furnish_root(orb: &Arc<OrbCore>, root: &Poa) -> Result<(), PoaError> {
    let skeleton = servant::<CachesRef, _>(Arc::new(CachesServant(Arc::downgrade(orb))));
    furnish(root, CACHES_KEY, skeleton, true)
}

struct CachesServant(Weak<OrbCore>);

impl Caches for CachesServant {
    fn revoke(&self) -> Result<u32, SystemException> {
        let gone = SystemExceptionKind::ObjectNotExist;
        let orb = self.0.upgrade();
        let orb =
            orb.ok_or_else(|| SystemException::new(gone, MinorCode::NO_SUCH_OBJECT, CompletionStatus::No))?;
        Ok(u32::try_from(orb.adapter.cache().revoke()).unwrap_or(u32::MAX))
    }
}
