//! The naming service that a command uses.

use std::time::Duration;

use clap::Args;
use ironorb::giop::ior::IiopProfile;
use ironorb::naming::Name;
use ironorb::naming::cos_naming::{NameComponent, NamingContext as _, NamingContextRef};
use ironorb::{ObjectRef, Orb, SystemException};

use super::explain::explain;
use crate::calling;
use crate::failure::Failure;
use crate::reference;
use crate::seconds::seconds;

#[derive(Debug, Args)]
pub(crate) struct Place {
    /// The naming context to start from: a corbaloc, corbaname or IOR, or just HOST[:PORT] of a naming
    /// service. Default: NameService of the environment variable IRONORB_INIT_REF, else port 2809 of this
    /// machine.
    #[arg(long, value_name = "URL")]
    naming: Option<String>,
    /// How long one call may take, in seconds. Fractions are allowed.
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = seconds)]
    timeout: Duration,
}

/// A connection to a naming service, and the context to start from.
pub(super) struct Session {
    pub(super) orb: Orb,
    pub(super) start: NamingContextRef,
    /// The service as the user names it, for messages.
    pub(super) shown: String,
}

impl Place {
    pub(super) fn open(&self) -> Result<Session, Failure> {
        let orb = calling::orb(Orb::builder(), self.timeout)?;
        match &self.naming {
            None => {
                let start = orb.naming().map_err(Failure::new)?.context().clone();
                let shown = address_of(start_object(&start));
                Ok(Session { orb, start, shown })
            }
            Some(text) => {
                let url = with_scheme(text);
                let object = orb
                    .string_to_object(&url)
                    .map_err(|e| reference::not_named("--naming", text, &e, "localhost:2809"))?;
                Ok(Session { start: object.narrow_unchecked(), orb, shown: text.clone() })
            }
        }
    }
}

impl Session {
    /// The context of this name; without a name the context to start from.
    pub(super) fn context(&self, name: Option<&str>) -> Result<NamingContextRef, Failure> {
        let Some(name) = name.filter(|name| !name.is_empty()) else {
            return Ok(self.start.clone());
        };
        let object = self.resolve(name)?;
        match object.narrow() {
            Ok(Some(context)) => Ok(context),
            Ok(None) => Err(Failure::new(format!("`{name}` is bound to an object, not to a naming context"))),
            Err(e) => {
                Err(Failure::new(format!("cannot reach the context bound to `{name}`: {}", in_words(&e))))
            }
        }
    }

    pub(super) fn resolve(&self, name: &str) -> Result<ObjectRef, Failure> {
        let found = self
            .start
            .resolve(&components(name)?)
            .map_err(|e| explain(&format!("cannot resolve `{name}`"), self, e.into()))?;
        found.ok_or_else(|| Failure::new(format!("`{name}` is bound to the nil reference")))
    }
}

pub(super) fn components(name: &str) -> Result<Vec<NameComponent>, Failure> {
    let name: Name = name.parse().map_err(|e| Failure::usage(format!("`{name}` is not a name: {e}")))?;
    Ok(name.into_components().into_iter().map(Into::into).collect())
}

/// The exception and its detail.
pub(super) fn in_words(e: &SystemException) -> String {
    e.to_string()
}

/// Where a reference leads, in a few words.
pub(crate) fn address_of(object: &ObjectRef) -> String {
    let address = object.ior().iiop_profiles().flat_map(IiopProfile::addresses).next();
    address.map(|address| address.to_string()).unwrap_or_else(|| "an address that is not IIOP".to_owned())
}

fn start_object(start: &NamingContextRef) -> &ObjectRef {
    ironorb::TypedRef::object(start)
}

/// Completes `host:port` to a reference to the naming service there.
pub(crate) fn with_scheme(text: &str) -> String {
    if calling::has_scheme(text) { text.to_owned() } else { format!("corbaloc::1.2@{text}/NameService") }
}
