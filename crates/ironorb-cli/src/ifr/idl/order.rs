//! The order of definitions in one IDL file: each definition comes before its users.
//!
//! IDL can declare interfaces and values first and define them later, so only definitions that need them
//! whole must come after them. A repository keeps no order across modules. A module is opened again where a
//! definition of another module must come between two of its own.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use ironorb::giop::typecode::TypeWalk;
use ironorb::{TcKind, TypeCode};

use super::read::{Definition, What};

/// A definition in a module or at file scope, with its modules; or a module without definitions.
pub(super) struct Unit<'d> {
    /// The enclosing modules, outermost first.
    pub(super) modules: Vec<&'d Definition>,
    pub(super) definition: &'d Definition,
}

/// All units of a file, in order.
pub(super) fn units(definitions: &[Definition]) -> Vec<Unit<'_>> {
    let mut found = Vec::new();
    collect(definitions, &mut Vec::new(), &mut found);
    let order = sorted(&found.iter().map(|unit| unit.definition).collect::<Vec<_>>());
    let mut found: Vec<Option<Unit<'_>>> = found.into_iter().map(Some).collect();
    order.into_iter().filter_map(|index| found[index].take()).collect()
}

/// The definitions within an interface or value, in order.
pub(super) fn items(definition: &Definition) -> Vec<&Definition> {
    let items: Vec<&Definition> = definition.items.iter().collect();
    sorted(&items).into_iter().map(|index| items[index]).collect()
}

fn collect<'d>(definitions: &'d [Definition], modules: &mut Vec<&'d Definition>, found: &mut Vec<Unit<'d>>) {
    for definition in definitions {
        match definition.what {
            What::Module if !definition.items.is_empty() => {
                modules.push(definition);
                collect(&definition.items, modules, found);
                modules.pop();
            }
            _ => found.push(Unit { modules: modules.clone(), definition }),
        }
    }
}

/// The indices of definitions, ordered so that each comes after what it needs, and otherwise unchanged.
fn sorted(definitions: &[&Definition]) -> Vec<usize> {
    let mut places = HashMap::new();
    for (place, definition) in definitions.iter().enumerate() {
        belongs_to(definition, place, &mut places);
    }
    // For each definition: how many that it needs are still to come, and how many that should come first.
    let mut waits = vec![(0usize, 0usize); definitions.len()];
    let mut users: Vec<Vec<(usize, Need)>> = vec![Vec::new(); definitions.len()];
    for (place, definition) in definitions.iter().enumerate() {
        let mut needs = Vec::new();
        needed(definition, &mut needs);
        for (id, need) in needs {
            let Some(&(used, is_whole)) = places.get(id.as_str()) else { continue };
            // A definition inside another exists only once that other definition is complete.
            let need = if is_whole { need } else { Need::Whole };
            if used == place || need == Need::Declared {
                continue;
            }
            users[used].push((place, need));
            match need {
                Need::Whole => waits[place].0 += 1,
                _ => waits[place].1 += 1,
            }
        }
    }
    let mut done = vec![false; definitions.len()];
    let mut order = Vec::new();
    // Definitions that need nothing more, and whether something should still come before them.
    let mut ready = BinaryHeap::new();
    let key = |place: usize, waits: &[(usize, usize)]| Reverse((waits[place].1 > 0, place));
    ready.extend((0..definitions.len()).filter(|&place| waits[place].0 == 0).map(|place| key(place, &waits)));
    while let Some(Reverse((_, place))) = ready.pop() {
        if std::mem::replace(&mut done[place], true) {
            continue;
        }
        order.push(place);
        for &(user, need) in &users[place] {
            match need {
                Need::Whole => waits[user].0 -= 1,
                _ => waits[user].1 -= 1,
            }
            if waits[user].0 == 0 && !done[user] {
                ready.push(key(user, &waits));
            }
        }
    }
    // What is left forms a cycle, which no IDL file can contain.
    order.extend((0..definitions.len()).filter(|&place| !done[place]));
    order
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Need {
    /// The definition must come before.
    Whole,
    /// The definition should come before, and can be declared where that leads in a circle.
    Sequence,
    /// A declaration is enough.
    Declared,
}

/// Maps a definition and all definitions in it to a place, and notes which is the definition itself.
fn belongs_to<'d>(definition: &'d Definition, place: usize, places: &mut HashMap<&'d str, (usize, bool)>) {
    let mut waiting = vec![definition];
    while let Some(next) = waiting.pop() {
        places.insert(&next.id, (place, std::ptr::eq(next, definition)));
        waiting.extend(&next.items);
    }
}

/// Collects the ids of the definitions that a definition refers to.
pub(super) fn needed(definition: &Definition, needs: &mut Vec<(String, Need)>) {
    let whole = |ids: &[String], needs: &mut Vec<_>| {
        needs.extend(ids.iter().map(|id| (id.clone(), Need::Whole)));
    };
    match &definition.what {
        What::Module => {}
        What::Interface { bases, .. } => whole(bases, needs),
        What::Value { value, initializers } => {
            whole(std::slice::from_ref(&value.base_value), needs);
            whole(&value.abstract_base_values, needs);
            whole(&value.supported_interfaces, needs);
            for initializer in initializers {
                initializer.members.iter().for_each(|member| used(&member.type_, Need::Whole, needs));
                needs.extend(initializer.exceptions.iter().map(|e| (e.id.clone(), Need::Whole)));
            }
        }
        What::Type(tc) => parts(tc, needs),
        What::Constant { ty, .. } => used(ty, Need::Whole, needs),
        What::Attribute(attribute) => {
            used(&attribute.type_, Need::Whole, needs);
            let raised = attribute.get_exceptions.iter().chain(&attribute.put_exceptions);
            needs.extend(raised.map(|e| (e.id.clone(), Need::Whole)));
        }
        What::Operation(operation) => {
            used(&operation.result, Need::Whole, needs);
            operation.parameters.iter().for_each(|parameter| used(&parameter.type_, Need::Whole, needs));
            needs.extend(operation.exceptions.iter().map(|e| (e.id.clone(), Need::Whole)));
        }
        What::Member(member) => used(&member.type_, Need::Whole, needs),
    }
    definition.items.iter().for_each(|item| needed(item, needs));
}

/// Collects what a use of a type needs: the type itself if it has a name, else the types of its parts.
fn used(tc: &TypeCode, need: Need, needs: &mut Vec<(String, Need)>) {
    let mut walk = TypeWalk::default();
    walk.add(tc, need);
    walked(walk, needs);
}

/// Collects what the parts of a type need.
fn parts(tc: &TypeCode, needs: &mut Vec<(String, Need)>) {
    let mut walk = TypeWalk::default();
    walk.add_parts(tc, Need::Whole);
    walked(walk, needs);
}

fn walked(mut walk: TypeWalk<Need>, needs: &mut Vec<(String, Need)>) {
    while let Some((tc, need)) = walk.next_type() {
        let id = tc.id().ok();
        match tc.kind() {
            TcKind::ObjRef | TcKind::AbstractInterface | TcKind::LocalInterface | TcKind::Value => {
                needs.extend(id.map(|id| (id.to_owned(), Need::Declared)));
            }
            TcKind::Sequence => walk.add_parts(&tc, Need::Sequence),
            TcKind::Array => walk.add_parts(&tc, need),
            TcKind::Struct if id == Some("") => walk.add_parts(&tc, Need::Whole),
            TcKind::Struct | TcKind::Union if id != Some("") => {
                needs.extend(id.map(|id| (id.to_owned(), need)));
            }
            _ => needs.extend(id.map(|id| (id.to_owned(), Need::Whole))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair_of(id: &str, part: &TypeCode) -> TypeCode {
        TypeCode::create_struct(id, "", &[("a", part.clone()), ("b", part.clone())]).unwrap()
    }

    #[test]
    fn each_type_without_a_name_is_taken_apart_once() {
        let point = pair_of("IDL:Point:1.0", &TypeCode::of(&ironorb::TypeDef::Long));
        let mut ty = TypeCode::create_sequence(&point, 0).unwrap();
        // There are 2^100 paths to the innermost type.
        for _ in 0..100 {
            ty = pair_of("", &ty);
        }
        let mut needs = Vec::new();
        used(&ty, Need::Whole, &mut needs);
        assert_eq!(needs.len(), 1);
        assert!(needs[0] == ("IDL:Point:1.0".to_owned(), Need::Sequence));
    }
}
