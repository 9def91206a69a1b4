//! Initial references (CORBA 3.3 part 1, 8.5.2).

use ironorb_giop::exception::{CompletionStatus, SystemException, SystemExceptionKind};
use ironorb_giop::minor::MinorCode;

use super::Orb;
use super::core::OrbCore;
use crate::base::sync::{read, write};
use crate::object::ObjectRef;
use crate::poa::{Poa, PoaCurrent};

/// The object of a well-known name. Adapters and currents are local to the process and so are no references.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum InitialReference {
    /// `RootPOA`.
    RootPoa(Poa),
    /// `POACurrent`.
    PoaCurrent(PoaCurrent),
    /// Any other object.
    Object(ObjectRef),
}

/// The naming service's default URL.
const NAME_SERVICE_DEFAULT: &str = "corbaloc::1.2@localhost:2809/NameService";
const NAME_SERVICE: &str = "NameService";

impl Orb {
    /// The object of a well-known name (`resolve_initial_references`): `RootPOA`, `POACurrent`,
    /// `NameService`, or a name given to the builder. `NameService` is by default expected at port 2809 of
    /// this machine. BAD_PARAM for an unknown name.
    pub fn resolve_initial_references(&self, name: &str) -> Result<InitialReference, SystemException> {
        match name {
            "RootPOA" => Ok(InitialReference::RootPoa(self.root_poa())),
            "POACurrent" => Ok(InitialReference::PoaCurrent(PoaCurrent)),
            _ => self.core.initial_reference(name).map(InitialReference::Object),
        }
    }

    /// The names that [`resolve_initial_references`](Self::resolve_initial_references) knows.
    pub fn list_initial_services(&self) -> Vec<String> {
        let mut names: Vec<String> = ["NameService", "POACurrent", "RootPOA"].map(String::from).to_vec();
        names.extend(read(&self.core.initial).keys().cloned());
        names.sort();
        names.dedup();
        names
    }

    /// Sets the object of a name, including for `corbaloc:rir:` (`register_initial_reference`).
    pub fn register_initial_reference(&self, name: &str, object: &ObjectRef) {
        write(&self.core.initial).insert(name.to_owned(), object.clone());
    }
}

impl OrbCore {
    pub(super) fn set_initial_reference(
        &self,
        orb: &Orb,
        name: &str,
        url: &str,
    ) -> Result<(), SystemException> {
        let object = orb.string_to_object(url)?;
        write(&self.initial).insert(name.to_owned(), object);
        Ok(())
    }

    pub(super) fn initial_reference(
        self: &std::sync::Arc<Self>,
        name: &str,
    ) -> Result<ObjectRef, SystemException> {
        if let Some(object) = read(&self.initial).get(name) {
            return Ok(object.clone());
        }
        if let Some(base) = &self.default_initial {
            let orb = Orb::from_core(self.clone());
            return orb.string_to_object(&format!("{}/{name}", base.trim_end_matches('/')));
        }
        if name == NAME_SERVICE {
            return Orb::from_core(self.clone()).string_to_object(NAME_SERVICE_DEFAULT);
        }
        Err(SystemException::new(
            SystemExceptionKind::BadParam,
            MinorCode::NO_SUCH_INITIAL_REFERENCE,
            CompletionStatus::No,
        )
        .with_detail(format!(
            "{name}: give it to OrbBuilder::initial_reference or set {}",
            super::settings::INIT_REF_VARIABLE
        )))
    }
}
