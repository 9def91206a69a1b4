//! What the commands that call have in common: an ORB that serves nothing, and names of services.

use std::time::Duration;

use ironorb::{BuildError, Orb, OrbBuilder};

use crate::failure::Failure;

/// Builds the ORB. `timeout` bounds each call.
pub(crate) fn orb(builder: OrbBuilder, timeout: Duration) -> Result<Orb, Failure> {
    let builder = builder.no_endpoint().call_timeout(Some(timeout)).connect_timeout(timeout);
    builder.build().map_err(|e| not_built(&e))
}

/// Why the ORB could not be built: a mistake on the command line, or a refusal of the system.
pub(crate) fn not_built(e: &BuildError) -> Failure {
    match e {
        BuildError::Address(_) | BuildError::Setting(_) | BuildError::InitialReference { .. } => {
            Failure::usage(e)
        }
        BuildError::Io(_) => Failure::new(e),
    }
}

/// Whether the text is a reference that the ORB reads, and not just `host:port` of a service.
pub(crate) fn has_scheme(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    ["ior:", "corbaloc:", "corbaname:"].iter().any(|scheme| lower.starts_with(scheme))
}
