//! What the commands that call have in common: an ORB that serves nothing, and how a service is named.

use std::time::Duration;

use ironorb::{BuildError, Orb, OrbBuilder};

use crate::failure::Failure;

/// The ORB, whose calls may take so long each.
pub(crate) fn orb(builder: OrbBuilder, timeout: Duration) -> Result<Orb, Failure> {
    let builder = builder.no_endpoint().call_timeout(Some(timeout)).connect_timeout(timeout);
    builder.build().map_err(|e| not_built(&e))
}

/// Why there is no ORB: what was typed, or what the system refuses.
pub(crate) fn not_built(e: &BuildError) -> Failure {
    match e {
        BuildError::Address(_) | BuildError::Setting(_) | BuildError::InitialReference { .. } => {
            Failure::usage(e)
        }
        BuildError::Io(_) => Failure::new(e),
    }
}

/// Whether this is a reference that the ORB reads, and not just `host:port` of a service.
pub(crate) fn has_scheme(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    ["ior:", "corbaloc:", "corbaname:"].iter().any(|scheme| lower.starts_with(scheme))
}
