//! Initial references (CORBA 3.3 part 1, 8.5.2).

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;

use ironorb_giop::exception::{CompletionStatus, SystemException, SystemExceptionKind};
use ironorb_giop::minor::MinorCode;
use ironorb_giop::url::{Corbaloc, CorbalocAddress};

use super::Orb;
use crate::driver::orb_core::OrbCore;
use crate::object::ObjectRef;
use crate::poa::{Poa, PoaCurrent};
use crate::transport::{Address, unix};

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
        self.core
            .initial
            .with(|known| names.extend(known.into_iter().flat_map(|known| known.keys().cloned())));
        names.sort();
        names.dedup();
        names
    }

    /// Sets the object of a name, including for `corbaloc:rir:` (`register_initial_reference`).
    pub fn register_initial_reference(&self, name: &str, object: &ObjectRef) {
        self.core.enter_initial_reference(name, object.clone());
    }
}

impl OrbCore {
    pub(super) fn corbaloc_for(&self, plain_key: &str) -> String {
        let tcp = self.tcp_addresses().map(|(host, port)| CorbalocAddress::Iiop {
            version: self.config.giop_version,
            host: host.to_owned(),
            port,
        });
        let version = self.config.giop_version;
        let sockets = self.local_addresses().filter_map(|address| match address {
            Address::Tcp(_) | Address::Custom(_) => None,
            Address::Unix(path) => Some(CorbalocAddress::Unix { version, path: path.as_str().to_owned() }),
            Address::SharedMemory(path) => {
                Some(CorbalocAddress::SharedMemory { version, path: path.as_str().to_owned() })
            }
        });
        let mut addresses: Vec<_> = tcp.collect();
        if addresses.is_empty() {
            addresses.extend(sockets);
        }
        if addresses.is_empty() {
            return String::new();
        }
        Corbaloc { addresses, object_key: plain_key.as_bytes().to_vec() }.to_string()
    }

    pub(super) fn corbaloc(self: &Arc<Self>, corbaloc: &Corbaloc) -> Result<ObjectRef, SystemException> {
        match (corbaloc.initial_reference(), corbaloc.to_ior_on(Some(&unix::machine_name()))) {
            (Some(name), _) => self.initial_reference(&name),
            (None, Some(ior)) => Ok(ObjectRef::new(&self.handle(), ior)),
            (None, None) => Err(SystemException::new(
                SystemExceptionKind::BadParam,
                MinorCode::BAD_PARAM_URL_ADDRESS,
                CompletionStatus::No,
            )),
        }
    }

    pub(super) fn bind_key(&self, plain_key: &str, object: &ObjectRef) -> Result<(), SystemException> {
        match object.local_key(self) {
            Some(key) => {
                self.adapter.set_alias(plain_key.as_bytes().to_vec(), key);
                Ok(())
            }
            None => Err(SystemException::new(
                SystemExceptionKind::BadParam,
                MinorCode::NO_SUCH_OBJECT,
                CompletionStatus::No,
            )
            .with_detail("only an object of this ORB can have a plain key")),
        }
    }

    pub(super) fn set_initial_reference(
        &self,
        orb: &Orb,
        name: &str,
        url: &str,
    ) -> Result<(), SystemException> {
        let object = orb.string_to_object(url)?;
        self.enter_initial_reference(name, object);
        Ok(())
    }

    fn enter_initial_reference(&self, name: &str, object: ObjectRef) {
        let before = self.initial.change(|known| {
            let mut known = known.map(|known| BTreeMap::clone(known)).unwrap_or_default();
            known.insert(name.to_owned(), object);
            Ok::<_, Infallible>(Some(known))
        });
        drop(before);
    }

    pub(super) fn initial_reference(self: &Arc<Self>, name: &str) -> Result<ObjectRef, SystemException> {
        if let Some(object) = self.initial.with(|known| known?.get(name).cloned()) {
            return Ok(object);
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
