//! In which order definitions stand in one IDL file: what is used before what uses it.
//!
//! Interfaces and values can be declared first and defined later, so only what needs them whole comes after them. A
//! repository keeps no order of its own across modules: a module is opened again where another has to come between.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use ironorb::giop::typecode::TypeWalk;
use ironorb::{TcKind, TypeCode};

use super::read::{Definition, What};

/// What stands in a module or at file scope, and in which modules; or a module in which nothing stands.
pub(super) struct Unit<'d> {
    /// Outermost first.
    pub(super) modules: Vec<&'d Definition>,
    pub(super) definition: &'d Definition,
}

/// All that there is to print, in order.
pub(super) fn units(definitions: &[Definition]) -> Vec<Unit<'_>> {
    let mut found = Vec::new();
    collect(definitions, &mut Vec::new(), &mut found);
    let order = sorted(&found.iter().map(|unit| unit.definition).collect::<Vec<_>>());
    let mut found: Vec<Option<Unit<'_>>> = found.into_iter().map(Some).collect();
    order.into_iter().filter_map(|index| found[index].take()).collect()
}

/// What stands in an interface or value, in order.
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

/// The places of definitions in an order in which each comes after what it needs; otherwise as they come.
fn sorted(definitions: &[&Definition]) -> Vec<usize> {
    let mut places = HashMap::new();
    for (place, definition) in definitions.iter().enumerate() {
        belongs_to(definition, place, &mut places);
    }
    // How many of those it needs, and how many it had better come after, are still to come.
    let mut waits = vec![(0usize, 0usize); definitions.len()];
    let mut users: Vec<Vec<(usize, Need)>> = vec![Vec::new(); definitions.len()];
    for (place, definition) in definitions.iter().enumerate() {
        let mut needs = Vec::new();
        needed(definition, &mut needs);
        for (id, need) in needs {
            let Some(&(used, is_whole)) = places.get(id.as_str()) else { continue };
            // What stands inside another is there only when the other is.
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
    // Those that need nothing any more, and whether they had better wait for something.
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
    // Only definitions that no IDL can say need each other.
    order.extend((0..definitions.len()).filter(|&place| !done[place]));
    order
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Need {
    /// It must have been defined.
    Whole,
    /// It should have been, but can be declared where that leads in a circle.
    Sequence,
    /// It can be declared.
    Declared,
}

/// The place of a definition and of all that stands in it, and whether it is the definition itself.
fn belongs_to<'d>(definition: &'d Definition, place: usize, places: &mut HashMap<&'d str, (usize, bool)>) {
    let mut waiting = vec![definition];
    while let Some(next) = waiting.pop() {
        places.insert(&next.id, (place, std::ptr::eq(next, definition)));
        waiting.extend(&next.items);
    }
}

/// The ids of what a definition refers to.
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

/// What a use of a type needs: the type, if it has a name, else what it is made of.
fn used(tc: &TypeCode, need: Need, needs: &mut Vec<(String, Need)>) {
    let mut walk = TypeWalk::default();
    walk.add(tc, need);
    walked(walk, needs);
}

/// What a type is made of.
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
        // There are 2^100 ways to what is innermost.
        for _ in 0..100 {
            ty = pair_of("", &ty);
        }
        let mut needs = Vec::new();
        used(&ty, Need::Whole, &mut needs);
        assert_eq!(needs.len(), 1);
        assert!(needs[0] == ("IDL:Point:1.0".to_owned(), Need::Sequence));
    }
}
