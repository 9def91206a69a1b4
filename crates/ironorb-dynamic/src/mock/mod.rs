//! Mock objects: they implement any interface of an IDL file with prepared answers.
//!
//! The meaning of answers is defined in `answers`, which checks all of them against the IDL before the first
//! call. A mock never sends a reply that its IDL does not allow.
//!
//! ```
//! use ironorb_dynamic::{Interfaces, mock::{Mock, Options}};
//! use serde_json::json;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut known = Interfaces::new();
//! let idl = "interface Account {
//!     exception Empty {};
//!     attribute string owner;
//!     long withdraw(in long amount) raises (Empty);
//! };";
//! known.add_idl_text("bank.idl", idl, &Default::default())?;
//! let orb = ironorb::Orb::builder().endpoint("iiop://127.0.0.1:0")?.build()?;
//! let answers = json!({"Account": {
//!     "owner": "Anna",
//!     "withdraw": {"sequence": [{"result": 10}, {"exception": "Empty"}]},
//! }});
//! let mock = Mock::start(&orb, known, Options { answers, ..Options::default() })?;
//! assert_eq!(mock.objects()[0].name(), "Account");
//! # mock.stop(); orb.shutdown(true)?;
//! # Ok(()) }
//! ```

mod answers;
mod object;
mod report;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use ironorb::dynamic::{InterfaceDescription, servant};
use ironorb::poa::PoaError;
use ironorb::{ObjectRef, Orb, SystemException};
use serde_json::Value;

use crate::Interfaces;
use crate::json::JsonError;
use answers::{Checking, Script};
use object::{MockServant, Shared};

pub use answers::DELAY_MS_MAX;
pub use report::CallReport;

/// A callback that is called with each call.
pub type Report = Box<dyn Fn(&CallReport) + Send + Sync>;

/// The interfaces and answers of a mock. Default: all known interfaces outside module CORBA, with default
/// answers, without a report.
#[derive(Default)]
pub struct Options {
    /// The repository ids of the interfaces that get an object; empty for all interfaces.
    pub interfaces: Vec<String>,
    /// Answers by object and operation; see `docs/dynamic.md`. `null` for none.
    pub answers: Value,
    /// Called with each call, on the thread that serves it and before the reply is sent.
    pub report: Option<Report>,
}

/// Objects that an ORB serves until it shuts down, one for each interface and one for each further name in
/// the answers.
///
/// Calls without a prepared answer get defaults. Attributes keep the value that a client sets. Inout
/// parameters come back unchanged. A reference leads to the mock's own object of that interface, if there is
/// one. Every other value is the default of its type: 0, the empty text, nil, the first enumerator.
#[derive(Debug)]
pub struct Mock {
    objects: Vec<MockObject>,
    shared: Arc<Shared>,
}

/// One object of a mock.
#[derive(Debug, Clone)]
pub struct MockObject {
    name: String,
    keys: Vec<String>,
    interface: Arc<InterfaceDescription>,
    reference: ObjectRef,
}

impl MockObject {
    /// The scoped name of the object's interface. A further object of an interface has its own name appended:
    /// `Bank::Account/anna`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The object's plain object keys, for `corbaloc:` addresses: `Bank/Account`, and `Account` if no other
    /// interface has this simple name.
    pub fn keys(&self) -> &[String] {
        &self.keys
    }

    /// The object's interface.
    pub fn interface(&self) -> &Arc<InterfaceDescription> {
        &self.interface
    }

    /// A reference to the object.
    pub fn reference(&self) -> &ObjectRef {
        &self.reference
    }
}

impl Mock {
    /// Checks all answers and then creates the objects. Their keys lead to them from now on, also if the keys
    /// led to other objects before. Asks the repositories of `known` for interfaces that are named and not
    /// known, which blocks.
    pub fn start(orb: &Orb, known: Interfaces, options: Options) -> Result<Mock, MockError> {
        let named = name_objects(&known, &options)?;
        known.register_value_types(orb);
        let poa = orb.root_poa();
        let shared = Arc::new(Shared::new(known, options.report));
        let mut objects = Vec::new();
        let mut servants = Vec::new();
        let mut ids = Vec::new();
        let made = (|| {
            for (name, (interface, keys)) in named {
                let made = Arc::new(MockServant::new(name.clone(), interface.clone(), shared.clone()));
                let id = poa.activate_object(servant(made.clone()))?;
                ids.push(id.clone());
                let reference = poa.id_to_reference(&id)?;
                objects.push(MockObject { name, keys, interface, reference });
                servants.push(made);
            }
            let checking = Checking { orb, known: shared.known(), objects: &objects };
            let mut scripts = checking.all(&options.answers).map_err(MockError::Answers)?;
            for (object, servant) in objects.iter().zip(servants) {
                servant.begin(scripts.remove(&object.name).unwrap_or_else(Script::default));
            }
            shared.begin(&objects);
            for object in &objects {
                for key in &object.keys {
                    orb.bind_key(key, &object.reference)?;
                }
            }
            Ok(())
        })();
        match made {
            Ok(()) => Ok(Mock { objects, shared }),
            Err(e) => {
                for id in ids {
                    // The object exists. If the ORB has shut down meanwhile, it is gone as well.
                    let _ = poa.deactivate(&id);
                }
                Err(e)
            }
        }
    }

    /// The objects, in the order of their names.
    pub fn objects(&self) -> &[MockObject] {
        &self.objects
    }

    /// Ends all delays, also those of later calls, so that a shutdown does not wait for them.
    pub fn stop(&self) {
        self.shared.stop();
    }
}

/// The reason why a mock cannot be started.
#[derive(Debug)]
#[non_exhaustive]
pub enum MockError {
    /// An answer does not fit its operation, or names an operation or object that does not exist. The error
    /// names the place.
    Answers(JsonError),
    /// No interface of this name or id is known.
    UnknownInterface(String),
    /// There is no interface to serve.
    Nothing,
    /// The ORB refuses the objects.
    Adapter(PoaError),
    /// A repository could not be asked, or the ORB is being shut down.
    System(SystemException),
}

impl fmt::Display for MockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MockError::Answers(e) => e.fmt(f),
            MockError::UnknownInterface(name) => write!(f, "no interface {name} is known"),
            MockError::Nothing => f.write_str("no interface is defined that objects could have"),
            MockError::Adapter(e) => write!(f, "the ORB cannot serve the objects: {e}"),
            MockError::System(e) => e.fmt(f),
        }
    }
}

impl std::error::Error for MockError {}

impl From<PoaError> for MockError {
    fn from(e: PoaError) -> Self {
        MockError::Adapter(e)
    }
}

impl From<SystemException> for MockError {
    fn from(e: SystemException) -> Self {
        MockError::System(e)
    }
}

/// Objects by name, with their interfaces and keys.
type Named = BTreeMap<String, (Arc<InterfaceDescription>, Vec<String>)>;

fn name_objects(known: &Interfaces, options: &Options) -> Result<Named, MockError> {
    let interfaces: Vec<Arc<InterfaceDescription>> = match options.interfaces.is_empty() {
        true => known.interfaces().filter(|interface| !is_built_in(&interface.id)).cloned().collect(),
        false => {
            let one = |id: &String| {
                known.fetch_interface(id)?.ok_or_else(|| MockError::UnknownInterface(id.clone()))
            };
            options.interfaces.iter().map(one).collect::<Result<_, MockError>>()?
        }
    };
    if interfaces.is_empty() {
        return Err(MockError::Nothing);
    }
    let names: BTreeMap<&str, &str> = known.names().map(|(name, id)| (id, name)).collect();
    let scoped = |interface: &InterfaceDescription| {
        names.get(interface.id.as_str()).map_or(&*interface.name, |name| name).to_owned()
    };
    let mut simple = BTreeSet::new();
    let mut twice = BTreeSet::new();
    for interface in &interfaces {
        if !simple.insert(interface.name.clone()) {
            twice.insert(interface.name.clone());
        }
    }
    let mut named = Named::new();
    let mut add = |interface: &Arc<InterfaceDescription>, further: &str| {
        let full = scoped(interface);
        let mut keys = vec![format!("{}{further}", full.replace("::", "/"))];
        if full != interface.name && !twice.contains(&interface.name) {
            keys.push(format!("{}{further}", interface.name));
        }
        named.insert(format!("{full}{further}"), (interface.clone(), keys));
    };
    for interface in &interfaces {
        add(interface, "");
    }
    for name in options.answers.as_object().into_iter().flat_map(|by_object| by_object.keys()) {
        let Some((of, further)) = name.split_once('/').filter(|_| !is_id(name)) else { continue };
        let at_name = |what: String| MockError::Answers(JsonError::new(what).in_member(name));
        let interface = answers::interface_called(&interfaces, &scoped, of).map_err(at_name)?;
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        if further.is_empty() || !further.chars().all(is_plain) {
            return Err(at_name(
                "the name of an object, behind that of its interface, is made of letters, digits, `_`, `-` and `.`".to_owned(),
            ));
        }
        add(interface, &format!("/{further}"));
    }
    Ok(named)
}

/// Whether an id belongs to the ORB's own interfaces, for which a mock has no objects.
fn is_built_in(id: &str) -> bool {
    id.starts_with("IDL:omg.org/CORBA/")
}

fn is_id(name: &str) -> bool {
    name.split_once(':').is_some_and(|(format, rest)| !format.is_empty() && !rest.starts_with(':'))
}
