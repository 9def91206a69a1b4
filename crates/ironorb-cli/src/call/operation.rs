//! Finds the operation that the command line means.

use std::sync::Arc;

use ironorb::dynamic::{InterfaceDescription, OperationDescription, ParameterMode};
use ironorb::{ObjectRef, SystemException, Typed as _};
use ironorb_dynamic::Interfaces;

use crate::failure::Failure;

/// The operation to call.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) operation: Arc<OperationDescription>,
    /// The value to set an attribute to.
    pub(crate) value: Option<String>,
}

/// The operations of every object (CORBA 3.3 part 2, 9.4.2.1).
pub(crate) fn of_every_object(typed: &str) -> Option<Found> {
    let operation = OperationDescription::new(typed);
    let operation = match typed {
        "_is_a" => {
            operation.parameter("logical_type_id", ParameterMode::In, String::TYPE).returns(bool::TYPE)
        }
        "_non_existent" => operation.returns(bool::TYPE),
        "_repository_id" => operation.returns(String::TYPE),
        "_interface" | "_component" => operation.returns(Option::<ObjectRef>::TYPE),
        _ => return None,
    };
    Some(Found { operation: Arc::new(operation), value: None })
}

/// Finds an operation by its name, or an attribute by its name or `attribute=value`.
pub(crate) fn find(interface: &InterfaceDescription, typed: &str) -> Result<Found, Failure> {
    if let Some(operation) = interface.find(typed) {
        return Ok(Found { operation: operation.clone(), value: None });
    }
    let (name, value) = match typed.split_once('=') {
        Some((name, value)) => (name.trim_end(), Some(value.to_owned())),
        None => (typed, None),
    };
    let behind = if value.is_some() { "_set_" } else { "_get_" };
    if let Some(operation) = interface.find(&format!("{behind}{name}")) {
        return Ok(Found { operation: operation.clone(), value });
    }
    if value.is_some() && interface.find(&format!("_get_{name}")).is_some() {
        return Err(Failure::usage(format!("`{name}` of {} is a readonly attribute", interface.name)));
    }
    let what = if value.is_some() { "attribute" } else { "operation or attribute" };
    let failure = Failure::usage(format!("{} has no {what} `{name}`", interface.name));
    let listed = "--list shows what there is";
    Err(match likely(interface, name) {
        Some(meant) => failure.with_help(format!("`{meant}` is likely meant; {listed}")),
        None => failure.with_help(listed),
    })
}

/// Finds an interface by its repository id, its scoped name, or the end of that name.
pub(crate) fn interface_named(known: &Interfaces, name: &str) -> Result<Arc<InterfaceDescription>, Failure> {
    if let Some(interface) = known.id_of(name).or(Some(name)).and_then(|id| known.interface(id)) {
        return Ok(interface);
    }
    let mut ending = known.interfaces().filter(|interface| interface.name == name);
    match (ending.next(), ending.next()) {
        (Some(interface), None) => Ok(interface.clone()),
        (Some(one), Some(other)) => {
            Err(Failure::usage(format!("several interfaces are called {name}: {}, {}", one.id, other.id))
                .with_help("name the one that is meant by its scoped name"))
        }
        _ => match from_repository(known, name)? {
            Some(interface) => Ok(interface),
            None => {
                let ids: Vec<&str> = known.interfaces().map(|interface| interface.id.as_str()).collect();
                Err(Failure::usage(format!("no interface {name} is known")).with_help(match ids.is_empty() {
                    true => "--idl FILE names an IDL file that defines it, --ifr URL an interface repository"
                        .to_owned(),
                    false => format!("known are {}", ids.join(", ")),
                }))
            }
        },
    }
}

fn from_repository(known: &Interfaces, name: &str) -> Result<Option<Arc<InterfaceDescription>>, Failure> {
    let cannot = |e: SystemException| Failure::new(format!("the interface repository cannot be asked: {e}"));
    let id = known.fetch_id(name).map_err(cannot)?;
    id.map_or(Ok(None), |id| known.fetch_interface(&id).map_err(cannot))
}

/// The name of an operation, or of the attribute that the operation gets or sets.
pub(crate) fn plain(name: &str) -> &str {
    name.strip_prefix("_get_").or_else(|| name.strip_prefix("_set_")).unwrap_or(name)
}

/// The operation or attribute whose name is closest to a mistyped one.
fn likely<'a>(interface: &'a InterfaceDescription, typed: &str) -> Option<&'a str> {
    let typed = typed.to_lowercase();
    let mistakes = |name: &str| strsim::damerau_levenshtein(&name.to_lowercase(), &typed);
    let names = interface.operations.iter().map(|operation| plain(&operation.name));
    names
        .map(|name| (mistakes(name), name))
        .filter(|(mistakes, name)| *mistakes <= name.chars().count().div_ceil(3))
        .min()
        .map(|(_, name)| name)
}
