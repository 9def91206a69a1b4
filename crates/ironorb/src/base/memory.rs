//! Memory that stays: pages of the process are locked when they are first used (mlockall(2)).

use std::io;

use rustix::mm::{MlockAllFlags, mlockall};

/// Locks all pages of the process that are in memory, and each further one from its first use on.
pub(crate) fn lock_on_fault() -> io::Result<()> {
    let flags = MlockAllFlags::CURRENT | MlockAllFlags::FUTURE | MlockAllFlags::ONFAULT;
    mlockall(flags).map_err(|e| {
        let e = io::Error::from(e);
        let advice = "raise RLIMIT_MEMLOCK to unlimited (`memlock` in /etc/security/limits.d, LimitMEMLOCK=infinity of a \
                      systemd unit), or grant CAP_IPC_LOCK";
        io::Error::new(e.kind(), format!("the system does not let the process lock its memory: {e}; {advice}"))
    })
}
