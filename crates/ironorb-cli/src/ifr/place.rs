//! The interface repository that a command uses.

use std::time::Duration;

use clap::Args;
use ironorb::giop::ior::IiopProfile;
use ironorb::giop::url::completed;
use ironorb::ifr::INTERFACE_REPOSITORY;
use ironorb::ifr::corba::{ContainedRef, Container as _, ContainerRef, Repository as _, RepositoryRef};
use ironorb::{Orb, SystemExceptionKind, TypedRef as _};

use super::explain::unanswered;
use super::loader::{LOADER_KEY, LoaderRef};
use crate::calling;
use crate::failure::Failure;
use crate::reference;
use crate::seconds::seconds;

#[derive(Debug, Args)]
pub(crate) struct Place {
    /// The repository: a corbaloc, corbaname or IOR, or just HOST[:PORT]. Default: InterfaceRepository of the
    /// environment variable IRONORB_INIT_REF, else port 2900 of this machine.
    #[arg(long, alias = "repository", value_name = "URL")]
    ifr: Option<String>,
    /// How long one call may take, in seconds. Fractions are allowed.
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = seconds)]
    timeout: Duration,
}

/// A connection to a repository.
pub(super) struct Session {
    pub(super) root: RepositoryRef,
    orb: Orb,
}

impl Place {
    pub(super) fn open(&self) -> Result<Session, Failure> {
        let orb = calling::orb(Orb::builder(), self.timeout)?;
        let configured = || ironorb::ifr::repository(&orb).ok();
        let root = match (&self.ifr, configured()) {
            (None, Some(root)) => root,
            (text, _) => {
                let text = text.as_deref().unwrap_or("localhost:2900");
                let object = orb
                    .string_to_object(&with_scheme(text))
                    .map_err(|e| reference::not_named("--ifr", text, &e, "localhost:2900"))?;
                object.narrow_unchecked()
            }
        };
        Ok(Session { root, orb })
    }
}

impl Session {
    /// Finds a definition by its scoped name or repository id.
    pub(super) fn find(&self, name: &str) -> Result<ContainedRef, Failure> {
        let is_id =
            name.split_once(':').is_some_and(|(format, rest)| !rest.starts_with(':') && !format.is_empty());
        let found = if is_id { self.root.lookup_id(name) } else { self.root.lookup(name) };
        let found = found.map_err(|e| unanswered("cannot look it up", &e))?;
        found.ok_or_else(|| {
            Failure::new(format!("`{name}` is not defined in the repository"))
                .with_help("`ironorb ifr list --recursive` lists all that is")
        })
    }

    /// The loader of the repository, which has the same addresses.
    pub(super) fn loader(&self) -> Result<LoaderRef, Failure> {
        let repository = self.root.object();
        let address = repository.ior().iiop_profiles().flat_map(IiopProfile::addresses).next();
        let address = address.ok_or_else(|| Failure::new("the repository has no IIOP address"))?;
        let url = format!("corbaloc::1.2@{address}/{LOADER_KEY}");
        let loader = self.orb.string_to_object(&url).map_err(Failure::new)?;
        match loader.narrow() {
            Ok(Some(loader)) => Ok(loader),
            Err(e) if e.kind != SystemExceptionKind::ObjectNotExist => {
                Err(unanswered("cannot reach the repository", &e))
            }
            _ => Err(Failure::new("the repository is not served by `ironorb ifr serve`, and takes no IDL")),
        }
    }

    pub(super) fn container(&self, name: Option<&str>) -> Result<ContainerRef, Failure> {
        let Some(name) = name else { return Ok(self.root.clone().into()) };
        match self.find(name)?.object().narrow() {
            Ok(Some(container)) => Ok(container),
            Ok(None) => Err(Failure::new(format!(
                "`{name}` cannot contain definitions: it is not a module, interface or struct"
            ))),
            Err(e) => Err(unanswered("cannot ask for its kind", &e)),
        }
    }
}

/// Completes `host:port` to a reference to the repository there.
pub(crate) fn with_scheme(text: &str) -> String {
    completed(text, 2900, INTERFACE_REPOSITORY)
}
