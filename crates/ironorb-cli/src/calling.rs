//! What the commands that call have in common: an ORB that serves nothing, and names of services.

use std::time::Duration;

use ironorb::{BuildError, Orb, OrbBuilder};

use crate::failure::Failure;

/// Builds the ORB. `timeout` bounds each call.
pub(crate) fn orb(builder: OrbBuilder, timeout: Duration) -> Result<Orb, Failure> {
    let builder =
        ironorb_record::install(builder).no_endpoint().call_timeout(Some(timeout)).connect_timeout(timeout);
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

/// Completes `host:port` to a reference to the object with a plain key there.
pub(crate) fn with_key(text: &str, key: &str) -> String {
    let is_file = text.get(..5).is_some_and(|scheme| scheme.eq_ignore_ascii_case("file:"));
    if is_file || has_scheme(text) {
        return text.to_owned();
    }
    format!("corbaloc::1.2@{text}/{key}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_completed_to_references() {
        let status = |text: &str| with_key(text, "IronORBStatus");
        assert_eq!(status("bank:2810"), "corbaloc::1.2@bank:2810/IronORBStatus");
        assert_eq!(status("[::1]:2810"), "corbaloc::1.2@[::1]:2810/IronORBStatus");
        for whole in ["corbaloc::bank/X", "IOR:00", "file:bank.ior", "corbaname::bank#x"] {
            assert_eq!(status(whole), whole);
        }
    }
}
