//! Where the commands that need types get them: from IDL files and interface repositories.

use std::path::PathBuf;

use ironorb::Orb;
use ironorb_dynamic::{DefinitionError, Interfaces};

use crate::failure::Failure;
use crate::{idl, ifr, reference};

/// Reads the definitions of IDL files.
pub(crate) fn read(files: &[PathBuf], settings: &idl::Settings) -> Result<Interfaces, Failure> {
    let mut known = Interfaces::new();
    match known.add_idl(files, &settings.options()) {
        // `ironorb idl check` prints warnings.
        Ok(_warnings) => Ok(known),
        Err(DefinitionError::Idl { path, diagnostics }) => {
            Err(Failure::new(format!("{} has errors", path.display())).with_body(diagnostics))
        }
        Err(other) => Err(Failure::new(other)),
    }
}

/// Adds the repository that `--ifr` names. It is called only when a type is not known otherwise.
pub(crate) fn add_repository(known: &mut Interfaces, orb: &Orb, text: &str) -> Result<(), Failure> {
    let object = orb
        .string_to_object(&ifr::with_scheme(text))
        .map_err(|e| reference::not_named("--ifr", text, &e, "localhost:2900"))?;
    known.add_repository(&object.narrow_unchecked());
    Ok(())
}
