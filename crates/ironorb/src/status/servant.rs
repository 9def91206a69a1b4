//! The object that tells clients the ORB's status.

use std::sync::{Arc, Weak};

use ironorb_giop::exception::{CompletionStatus, SystemException, SystemExceptionKind};
use ironorb_giop::minor::MinorCode;

use super::{STATUS_KEY, Snapshot, Status, StatusRef, seen};
use crate::base::config::StatusAccess;
use crate::driver::orb_core::OrbCore;
use crate::poa::servant::{Call, LocalSlot, Replied, Servant, servant};
use crate::poa::{Poa, PoaError, PoaPolicies};

/// The adapter of the status. It has a manager of its own, so that the status can be asked while the root adapter's
/// manager holds requests.
const ADAPTER: &str = "IronORB";

/// The adapter of the ORB's own objects.
pub(crate) fn adapter(root: &Poa) -> Result<Poa, PoaError> {
    match root.find_poa(ADAPTER, false) {
        Ok(poa) => Ok(poa),
        Err(_) => root.create_poa(ADAPTER, None, PoaPolicies::default()),
    }
}

/// Makes an object of the ORB's own, for all clients or for those of this machine.
pub(super) fn furnish(
    root: &Poa,
    key: &'static str,
    skeleton: Arc<dyn Servant>,
    local_only: bool,
) -> Result<(), PoaError> {
    let poa = adapter(root)?;
    let id = poa.activate_object(Arc::new(Guarded { skeleton, local_only }))?;
    poa.bind_plain_key(key, &id)
}

/// Makes the status an object of the ORB.
pub(crate) fn furnish_root(orb: &Arc<OrbCore>, root: &Poa) -> Result<(), PoaError> {
    let local_only = orb.config.status == StatusAccess::Local;
    let skeleton = servant::<StatusRef, _>(Arc::new(StatusServant(Arc::downgrade(orb))));
    furnish(root, STATUS_KEY, skeleton, local_only)
}

struct StatusServant(Weak<OrbCore>);

impl Status for StatusServant {
    fn take_snapshot(&self) -> Result<Snapshot, SystemException> {
        let gone = SystemExceptionKind::ObjectNotExist;
        let orb = self.0.upgrade();
        let orb =
            orb.ok_or_else(|| SystemException::new(gone, MinorCode::NO_SUCH_OBJECT, CompletionStatus::No))?;
        Ok(seen::snapshot(&orb))
    }
}

/// The skeleton behind the question who asks.
struct Guarded {
    skeleton: Arc<dyn Servant>,
    local_only: bool,
}

impl Servant for Guarded {
    fn repository_ids(&self) -> &[&'static str] {
        self.skeleton.repository_ids()
    }

    fn dispatch(&self, call: Call<'_>) -> Replied {
        // What every object answers tells nothing.
        if self.local_only && !call.operation().starts_with(b"_") && !call.is_from_this_machine() {
            return call.raise(&not_for_this_client());
        }
        self.skeleton.dispatch(call)
    }

    fn provide(self: Arc<Self>, slot: &mut LocalSlot<'_>) {
        self.skeleton.clone().provide(slot);
    }
}

#[cold]
fn not_for_this_client() -> SystemException {
    SystemException::new(
        SystemExceptionKind::NoPermission,
        MinorCode::STATUS_NOT_FOR_CLIENT,
        CompletionStatus::No,
    )
    .with_detail("the server tells its status only to clients on its own machine (setting status = local)")
}
