//! Which definitions of a unit are generated: those of its files, without what is mapped to existing
//! modules, and of the definitions that the front end brings along (`orb.idl`) only those in use.

use ironorb_idl::model::{DefId, DefKind, Model, Type};

use crate::config::Config;

/// The definitions to be generated.
#[derive(Debug)]
pub(crate) struct Selection {
    chosen: Vec<bool>,
}

impl Selection {
    pub(crate) fn of(model: &Model, config: &Config) -> Self {
        let mut selection = Selection { chosen: vec![false; model.definitions().len()] };
        for def in model.definitions() {
            if !is_builtin(model, def.id) && config.external_of(model, def.id).is_none() {
                selection.chosen[def.id.index()] = true;
            }
        }
        if selection.chosen.iter().all(|&chosen| chosen) {
            return selection;
        }
        let mut waiting: Vec<DefId> =
            model.definitions().iter().map(|def| def.id).filter(|&id| selection.contains(id)).collect();
        while let Some(id) = waiting.pop() {
            for used in uses(model, id) {
                if !selection.contains(used) && config.external_of(model, used).is_none() {
                    selection.chosen[used.index()] = true;
                    waiting.push(used);
                }
            }
        }
        selection
    }

    pub(crate) fn contains(&self, id: DefId) -> bool {
        self.chosen[id.index()]
    }
}

/// Whether a definition comes with the front end, or with another ORB's file that is read in its place.
pub(crate) fn is_builtin(model: &Model, id: DefId) -> bool {
    model.is_standard(id)
}

/// The definitions that a definition names directly, including the parts inside it and the scopes around it.
pub(crate) fn uses(model: &Model, id: DefId) -> Vec<DefId> {
    let def = model.get(id);
    let mut types: Vec<&Type> = Vec::new();
    let mut used: Vec<DefId> = Vec::new();
    match &def.kind {
        DefKind::Interface(interface) => {
            used.extend(interface.bases.iter().chain(&interface.items));
        }
        DefKind::Operation(operation) => {
            types.push(&operation.result);
            types.extend(operation.parameters.iter().map(|parameter| &parameter.ty));
            used.extend(&operation.raises);
        }
        DefKind::Attribute(attribute) => {
            types.push(&attribute.ty);
            used.extend(attribute.get_raises.iter().chain(&attribute.set_raises));
        }
        DefKind::Struct(s) | DefKind::Exception(s) => {
            types.extend(s.members.iter().map(|member| &member.ty));
            used.extend(&s.items);
        }
        DefKind::Union(u) => {
            types.push(&u.discriminator);
            types.extend(u.cases.iter().map(|case| &case.member.ty));
            used.extend(&u.items);
        }
        DefKind::Typedef(typedef) => types.push(&typedef.ty),
        DefKind::Value(value) => {
            used.extend(value.bases.iter().chain(&value.supports).chain(&value.items));
            types.extend(value.state.iter().map(|state| &state.member.ty));
            for factory in &value.factories {
                types.extend(factory.parameters.iter().map(|parameter| &parameter.ty));
                used.extend(&factory.raises);
            }
        }
        DefKind::ValueBox(value) => types.push(&value.ty),
        DefKind::Constant(constant) => types.push(&constant.ty),
        DefKind::Bitmask(mask) => used.extend(&mask.flags),
        DefKind::Bitset(_)
        | DefKind::Flag { .. }
        | DefKind::Annotation(_)
        | DefKind::Enum(_)
        | DefKind::Enumerator { .. }
        | DefKind::Module(_)
        | DefKind::Native => {}
    }
    for mut ty in types {
        while let Type::Sequence { element, .. }
        | Type::Array { element, .. }
        | Type::Map { value: element, .. } = ty
        {
            if let Type::Map { key, .. } = ty
                && let Type::Named(id) = **key
            {
                used.push(id);
            }
            ty = element;
        }
        if let Type::Named(id) = ty {
            used.push(*id);
        }
    }
    used.extend(def.parent.filter(|&parent| !matches!(model.get(parent).kind, DefKind::Module(_))));
    used
}
