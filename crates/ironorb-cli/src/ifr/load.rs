//! `ironorb ifr load`.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use clap::Args;
use ironorb_services::ifr::{InterfaceRepository, Limits, Loaded, Store};

use crate::failure::{Failure, printed};
use crate::idl::Settings;
use crate::serving;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    settings: Settings,
    /// The file that holds the definitions; made when there is none. Default: `ironorb/definitions.redb` in
    /// $XDG_STATE_HOME or ~/.local/state.
    #[arg(long, value_name = "PATH")]
    store: Option<PathBuf>,
    /// The files.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let (store, _) = open_store(arguments.store.as_deref())?;
    let repository = InterfaceRepository::new(store, Limits::default());
    load(&repository, &arguments.settings, &arguments.files)
}

/// Loads files one after the other, and says of each what it has changed.
pub(super) fn load(
    repository: &InterfaceRepository,
    settings: &Settings,
    files: &[PathBuf],
) -> Result<(), Failure> {
    for file in files {
        let shown = file.display();
        let model =
            settings.compile(file).model.ok_or_else(|| Failure::new(format!("{shown} is not loaded")))?;
        let Loaded { added, updated, removed } =
            repository.load(&model).map_err(|e| Failure::new(format!("{shown} is not loaded: {e}")))?;
        printed(writeln!(io::stdout(), "{shown}: {added} added, {updated} updated, {removed} removed"))?;
    }
    Ok(())
}

/// The store, and what to call it.
pub(super) fn open_store(path: Option<&Path>) -> Result<(Store, String), Failure> {
    let path = match path {
        Some(path) => path.to_owned(),
        None => serving::default_store("definitions.redb")?,
    };
    let store = Store::open(&path).map_err(Failure::new)?;
    let shown = std::fs::canonicalize(&path).unwrap_or(path);
    Ok((store, shown.display().to_string()))
}
