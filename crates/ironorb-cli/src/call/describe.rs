//! `ironorb call --describe`: one type, as IDL.

use std::sync::Arc;

use ironorb::TypeCode;
use ironorb::dynamic::InterfaceDescription;
use ironorb::giop::typecode::TypeWalk;
use ironorb_dynamic::{Interfaces, declaration, definition};

use crate::failure::Failure;

/// The definition of a type, by its repository id, its scoped name or the end of that name. IDL files and
/// repositories come first, then the types that the object's interface uses, which `interface` returns.
pub(super) fn describe(
    name: &str,
    known: &Interfaces,
    interface: impl FnOnce() -> Result<Arc<InterfaceDescription>, Failure>,
) -> Result<String, Failure> {
    if let Some(text) = by_id(name, known) {
        return Ok(text);
    }
    let interface = match interface() {
        Ok(interface) => Some(interface),
        // The type may be known although the object's interface is unknown.
        Err(failure) if known.type_codes().next().is_none() => return Err(failure),
        Err(_) => None,
    };
    if let Some(interface) =
        interface.as_ref().filter(|one| one.id == name || is_called(&one.id, &one.name, name))
    {
        return Ok(with_id(&interface.id, &declaration(interface)));
    }
    let mut types: Vec<TypeCode> = known.type_codes().cloned().collect();
    types.extend(interface.iter().flat_map(|interface| used_by(interface)));
    let mut found = types.iter().filter(|ty| {
        let (id, own) = (ty.id().unwrap_or_default(), ty.name().unwrap_or_default());
        id == name || is_called(id, own, name)
    });
    match found.next() {
        Some(ty) => {
            let id = ty.id().unwrap_or_default();
            let of_interface = known.interface(id).map(|interface| declaration(&interface));
            Ok(with_id(id, &of_interface.unwrap_or_else(|| definition(ty))))
        }
        None => Err(unknown(name, &types)),
    }
}

fn by_id(name: &str, known: &Interfaces) -> Option<String> {
    let id = known.fetch_id(name).ok()??;
    if let Ok(Some(interface)) = known.fetch_interface(&id) {
        return Some(with_id(&id, &declaration(&interface)));
    }
    let ty = known.fetch_type(&id).ok()??;
    Some(with_id(&id, &definition(&ty)))
}

fn with_id(id: &str, text: &str) -> String {
    format!("// {id}\n{text}")
}

/// Whether a scoped name, such as `Bank::Entry` or its end, means the type with this id and name.
fn is_called(id: &str, own: &str, name: &str) -> bool {
    let name = name.trim_start_matches("::");
    let path = id.split(':').nth(1).unwrap_or_default().replace('/', "::");
    own == name || path == name || path.ends_with(&format!("::{name}"))
}

/// All types with repository ids that the operations of an interface use, at any depth.
fn used_by(interface: &InterfaceDescription) -> Vec<TypeCode> {
    let mut walk = TypeWalk::default();
    for operation in &interface.operations {
        walk.add(&operation.result, ());
        operation.parameters.iter().for_each(|parameter| walk.add(&parameter.type_code, ()));
        operation.exceptions.iter().for_each(|exception| walk.add(exception, ()));
    }
    let mut found: Vec<TypeCode> = Vec::new();
    while let Some((ty, ())) = walk.next_type() {
        if let Ok(id) = ty.id()
            && !id.is_empty()
        {
            if found.iter().any(|known| known.id() == Ok(id)) {
                continue;
            }
            found.push(ty.clone());
        }
        if walk.len() < STEPS_MAX {
            walk.add_parts(&ty, ());
        }
    }
    found
}

fn unknown(name: &str, types: &[TypeCode]) -> Failure {
    let mut names: Vec<&str> =
        types.iter().filter_map(|ty| ty.name().ok()).filter(|name| !name.is_empty()).collect();
    names.sort_unstable();
    names.dedup();
    let failure = Failure::usage(format!("no type {name} is known"));
    match names.is_empty() {
        true => failure
            .with_help("--idl FILE names an IDL file that defines it, --ifr URL an interface repository"),
        false => failure.with_help(format!("known are {}", names.join(", "))),
    }
}

/// Types that are examined in one interface. Default and only value.
const STEPS_MAX: usize = 1 << 16;
