//! `ironorb ifr load`.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use clap::Args;
use ironorb_services::ifr::{InterfaceRepository, Limits, Store};

use super::loader;
use super::place::Place;
use crate::failure::{Failure, printed};
use crate::idl::Settings;
use crate::serving;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    settings: Settings,
    /// The file that holds the definitions; it is created if it does not exist. It can be changed only while
    /// no `ironorb ifr serve` has it open.
    #[arg(long, value_name = "PATH", conflicts_with_all = ["ifr", "timeout"])]
    store: Option<PathBuf>,
    #[command(flatten)]
    place: Place,
    /// The files.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    if let Some(store) = &arguments.store {
        let (store, _) = open_store(Some(store))?;
        let repository = InterfaceRepository::new(store, Limits::default());
        return load(&repository, &arguments.settings, &arguments.files);
    }
    let session = arguments.place.open()?;
    let loader = session.loader()?;
    for file in &arguments.files {
        let outcome = arguments.settings.compile(file);
        if outcome.model.is_none() {
            return Err(not_loaded(file, ""));
        }
        let Settings { include, define } = &arguments.settings;
        let loaded =
            loader::load(&loader, &outcome, include, define).map_err(|why| not_loaded(file, &why))?;
        report(file, loaded.added, loaded.updated, loaded.removed)?;
    }
    Ok(())
}

/// Loads files one after another, and prints what each has changed.
pub(super) fn load(
    repository: &InterfaceRepository,
    settings: &Settings,
    files: &[PathBuf],
) -> Result<(), Failure> {
    for file in files {
        let model = settings.compile(file).model.ok_or_else(|| not_loaded(file, ""))?;
        let loaded = repository.load(&model).map_err(|e| not_loaded(file, &e.to_string()))?;
        report(file, loaded.added, loaded.updated, loaded.removed)?;
    }
    Ok(())
}

/// Opens the store, and returns it with its name for messages.
pub(super) fn open_store(path: Option<&Path>) -> Result<(Store, String), Failure> {
    let path = match path {
        Some(path) => path.to_owned(),
        None => serving::default_store("definitions.redb")?,
    };
    let store = Store::open(&path).map_err(Failure::new)?;
    Ok((store, serving::shown(path)))
}

fn report(
    file: &Path,
    added: impl std::fmt::Display,
    updated: impl std::fmt::Display,
    removed: impl std::fmt::Display,
) -> Result<(), Failure> {
    let shown = file.display();
    printed(writeln!(io::stdout(), "{shown}: {added} added, {updated} updated, {removed} removed"))
}

fn not_loaded(file: &Path, why: &str) -> Failure {
    let colon = if why.is_empty() { "" } else { ": " };
    Failure::new(format!("{} is not loaded{colon}{why}", file.display()))
}
