//! Loads IDL into a repository that is being served. The client sends the IDL, and the server compiles it
//! where the store is.
//!
//! This gives no new rights: a client that can reach the repository can already change it by standard
//! operations. The front end's limits and the size of a message bound the cost of a text.

ironorb::include_idl!("loader");

use std::path::{Path, PathBuf};

use ironorb::TypedRef as _;
use ironorb::{Orb, SystemException};
use ironorb_idl::{MapLoader, Options, Outcome, compile_with};
use ironorb_services::ifr::InterfaceRepositoryServer;

pub(super) use ifr_loader::LoaderRef;
use ifr_loader::loader::LoadError;
use ifr_loader::{Loaded, Loader, NotLoaded, SourceFile};

/// The object key of the loader, which stands beside the repository's own key.
pub(super) const LOADER_KEY: &str = "InterfaceRepositoryLoader";

/// Serves the loader of a repository.
pub(super) fn start(orb: &Orb, server: &InterfaceRepositoryServer) -> Result<(), SystemException> {
    let loader: LoaderRef =
        orb.root_poa().activate(Loading { server: server.clone() }).map_err(SystemException::from)?;
    orb.bind_key(LOADER_KEY, loader.object())
}

/// Sends a file to the repository, which loads it. This process has compiled it without errors.
pub(super) fn load(
    loader: &LoaderRef,
    outcome: &Outcome,
    include_dirs: &[PathBuf],
    defines: &[String],
) -> Result<Loaded, String> {
    let files = outcome.sources.files().iter().filter(|file| !file.is_builtin());
    let files: Vec<SourceFile> = files
        .map(|file| SourceFile { path: file.path().display().to_string(), text: file.text().to_owned() })
        .collect();
    let dirs: Vec<String> = include_dirs.iter().map(|dir| dir.display().to_string()).collect();
    loader.load(&files, &dirs, defines).map_err(|e| match e {
        LoadError::NotLoaded(e) => e.why,
        LoadError::System(e) => e.to_string(),
    })
}

struct Loading {
    server: InterfaceRepositoryServer,
}

impl Loader for Loading {
    fn load(
        &self,
        files: &[SourceFile],
        include_dirs: &[String],
        defines: &[String],
    ) -> Result<Loaded, LoadError> {
        let refused = |why: String| LoadError::NotLoaded(NotLoaded { why });
        let main = files.first().ok_or_else(|| refused("there is no file".to_owned()))?;
        let mut options = Options::new();
        for dir in include_dirs {
            options = options.include_dir(dir);
        }
        for define in defines {
            let (name, value) =
                define.split_once('=').map_or((define.as_str(), None), |(name, value)| (name, Some(value)));
            options = options.define(name, value);
        }
        let texts =
            files.iter().fold(MapLoader::new(), |texts, file| texts.with(&file.path, file.text.as_str()));
        let outcome = compile_with(Path::new(&main.path), &options, &texts);
        let model = outcome.model.as_ref().ok_or_else(|| refused(outcome.render(false)))?;
        let loaded = self.server.repository().load(model).map_err(|e| refused(e.to_string()))?;
        let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        Ok(Loaded {
            added: count(loaded.added),
            updated: count(loaded.updated),
            removed: count(loaded.removed),
        })
    }
}
