//! Turns IDL names into Rust names. Knows nothing of types; `docs/mapping.md` describes the rules for users.

mod case;

use std::collections::HashSet;

use ironorb_idl::model::{DefId, DefKind, Model};

use crate::tree::Text;

pub(crate) use case::{camel, screaming, snake};

/// The Rust names of one definition. Which are set depends on what it is.
#[derive(Debug, Clone, Default)]
pub(crate) struct DefNames {
    /// The type, trait, module, constant, variant or method.
    pub(crate) own: String,
    /// The typed reference of an interface.
    pub(crate) reference: String,
    /// The skeleton of an interface.
    pub(crate) skeleton: String,
    /// The trait of the asynchronous operations of an interface.
    pub(crate) asynchronous: String,
    /// The trait of servants of an interface that answer later.
    pub(crate) deferred: String,
    /// The trait of the operations of an interface that parts of an object carry out together.
    pub(crate) parallel: String,
    /// The asynchronous method of an operation, or of reading an attribute.
    pub(crate) later: String,
    /// The asynchronous method of writing an attribute.
    pub(crate) setter_later: String,
    /// The Rust module for what is declared inside an interface, struct, union or exception.
    pub(crate) inner: String,
    /// The error enum of an operation, or of reading an attribute.
    pub(crate) error: String,
    /// The trait of the operations of a valuetype.
    pub(crate) operations: String,
    /// The trait of the factories of a valuetype.
    pub(crate) factory: String,
    /// The error enum of each factory.
    pub(crate) factory_errors: Vec<String>,
    /// The static that describes the type, as the standard's `_tc_` constants do.
    pub(crate) type_code: String,
    /// The method that writes an attribute.
    pub(crate) setter: String,
    /// The method that reads a cached attribute with options.
    pub(crate) with: String,
    /// The state of the cached attributes of an interface.
    pub(crate) state: String,
    /// What changes the state in a cell.
    pub(crate) update: String,
    /// The trait of the operations that clients run over the state, in the inner module of the interface.
    pub(crate) reads: String,
    /// The error enum of writing an attribute.
    pub(crate) setter_error: String,
}

/// The names of all definitions of a model.
#[derive(Debug)]
pub(crate) struct Names {
    definitions: Vec<DefNames>,
}

impl Names {
    /// Names everything. The result depends on the model alone, so that files generated apart agree.
    pub(crate) fn assign(model: &Model) -> Self {
        let mut names = Names { definitions: vec![DefNames::default(); model.definitions().len()] };
        names.scope(model, model.roots(), None, Scope::default());
        let mut done = HashSet::new();
        for def in model.definitions() {
            names.methods(model, def.id, &mut done);
        }
        names
    }

    pub(crate) fn of(&self, id: DefId) -> &DefNames {
        &self.definitions[id.index()]
    }

    /// Names the items of one Rust module and of the modules inside it. `owner` is the definition whose inner
    /// module this is.
    fn scope(&mut self, model: &Model, items: &[DefId], owner: Option<DefId>, mut scope: Scope) {
        // Names from the IDL come before generated ones.
        let mut types = Vec::new();
        let mut values = Vec::new();
        for &id in items {
            let def = model.get(id);
            match &def.kind {
                DefKind::Module(_) => types.push((id, def.name.as_str(), snake(&def.name))),
                DefKind::Constant(_) => values.push((id, def.name.as_str(), screaming(&def.name))),
                _ if !has_type_code(&def.kind) => {}
                _ => types.push((id, def.name.as_str(), camel(&def.name))),
            }
            if let DefKind::Enum(e) = &def.kind {
                let variants = e.enumerators.iter().map(|&variant| {
                    let name = model.get(variant).name.as_str();
                    (variant, name, camel(name))
                });
                self.take_all(&mut Taken::default(), variants.collect());
            }
            if let DefKind::Bitmask(mask) = &def.kind {
                let flags = mask.flags.iter().map(|&flag| {
                    let name = model.get(flag).name.as_str();
                    (flag, name, screaming(name))
                });
                self.take_all(&mut Taken::with(BITMASK_OWN), flags.collect());
            }
        }
        self.take_all(&mut scope.types, types);
        self.take_all(&mut scope.values, values);
        for &id in items {
            let def = model.get(id);
            if let DefKind::Interface(interface) = &def.kind {
                let own = self.of(id).own.clone();
                let names = &mut self.definitions[id.index()];
                names.reference = scope.types.take([own.trim_end_matches('_'), "Ref"].concat());
                let own = own.trim_end_matches('_');
                names.skeleton = scope.types.take([own, "Skeleton"].concat());
                names.asynchronous = scope.types.take([own, "Async"].concat());
                names.deferred = scope.types.take(["Deferred", own].concat());
                if interface.items.iter().any(|&item| is_cached(model, item)) {
                    names.state = scope.types.take([own, "State"].concat());
                    names.update = scope.types.take([own, "Update"].concat());
                }
                if interface.items.iter().any(|&item| is_parallel(model, item)) {
                    names.parallel = scope.types.take([own, "Parallel"].concat());
                }
            }
            if let DefKind::Value(value) = &def.kind {
                let own = self.of(id).own.trim_end_matches('_').to_owned();
                let names = &mut self.definitions[id.index()];
                // The trait of an abstract valuetype is what it is.
                if !value.is_abstract {
                    names.operations = scope.types.take([&*own, "Operations"].concat());
                }
                if !value.factories.is_empty() {
                    names.factory = scope.types.take([&*own, "Factory"].concat());
                }
            }
            if has_type_code(&def.kind) {
                let name = scope.values.take(["TC_", &screaming(&def.name)].concat());
                self.definitions[id.index()].type_code = name;
            }
            let has_inner = match &def.kind {
                DefKind::Interface(_) | DefKind::Value(_) => true,
                DefKind::Struct(s) | DefKind::Exception(s) => !s.items.is_empty(),
                DefKind::Union(u) => !u.items.is_empty(),
                _ => false,
            };
            if has_inner {
                self.definitions[id.index()].inner = scope.types.take(snake(&def.name));
            }
        }
        if let Some(owner) = owner {
            self.errors(model, owner, items, &mut scope);
        }
        for &id in items {
            let inside = match &model.get(id).kind {
                DefKind::Module(module) => &module.items,
                DefKind::Struct(s) | DefKind::Exception(s) => &s.items,
                DefKind::Union(u) => &u.items,
                DefKind::Interface(interface) => &interface.items,
                DefKind::Value(value) => &value.items,
                _ => continue,
            };
            self.scope(model, inside, Some(id), Scope::default());
        }
    }

    /// Names the errors of operations and factories in the inner module of their owner.
    fn errors(&mut self, model: &Model, owner: DefId, items: &[DefId], scope: &mut Scope) {
        for id in callable(model, items) {
            let name = camel(&model.get(id).name);
            let name = name.trim_end_matches('_');
            match &model.get(id).kind {
                DefKind::Attribute(_) => {
                    self.definitions[id.index()].error = scope.types.take(["Get", name, "Error"].concat());
                    self.definitions[id.index()].setter_error =
                        scope.types.take(["Set", name, "Error"].concat());
                }
                _ => self.definitions[id.index()].error = scope.types.take([name, "Error"].concat()),
            }
        }
        if items.iter().any(|&item| is_cached_read(model, item)) {
            self.definitions[owner.index()].reads = scope.types.take("Reads".to_owned());
        }
        if let DefKind::Value(value) = &model.get(owner).kind {
            let errors = value.factories.iter().map(|factory| {
                let name = camel(&factory.name);
                scope.types.take(format!("{}Error", name.trim_end_matches('_')))
            });
            self.definitions[owner.index()].factory_errors = errors.collect();
        }
    }

    /// Names definitions of one scope, from their definition, IDL name and wished Rust name. A name that
    /// needs no change is kept, independent of the names before it.
    fn take_all(&mut self, taken: &mut Taken, mut wishes: Vec<(DefId, &str, String)>) {
        // The sort is stable, so that equal names stay in the order of the text.
        wishes.sort_by_key(|(_, idl, wish)| idl != wish);
        for (id, _, wish) in wishes {
            self.definitions[id.index()].own = taken.take(wish);
        }
    }

    /// Names the methods of an interface or valuetype so that they differ from the inherited ones.
    fn methods(&mut self, model: &Model, owner: DefId, done: &mut HashSet<DefId>) {
        let Some(items) = members(model, owner) else { return };
        if !done.insert(owner) {
            return;
        }
        let mut taken = Taken::default();
        let mut bases = model.all_bases(owner);
        if let DefKind::Value(value) = &model.get(owner).kind {
            for &supported in &value.supports {
                bases.push(supported);
                bases.extend(model.all_bases(supported));
            }
        }
        for base in bases {
            self.methods(model, base, done);
            for &item in members(model, base).unwrap_or_default() {
                let names = self.of(item);
                let methods = [&names.own, &names.setter, &names.later, &names.setter_later, &names.with];
                methods.iter().filter(|name| !name.is_empty()).for_each(|name| taken.add(name));
            }
        }
        let callable = callable(model, items);
        let methods = callable.iter().map(|&id| {
            let name = model.get(id).name.as_str();
            (id, name, snake(name))
        });
        self.take_all(&mut taken, methods.collect());
        for &id in &callable {
            if let DefKind::Attribute(attribute) = &model.get(id).kind
                && !attribute.readonly
            {
                let name = snake(&model.get(id).name);
                self.definitions[id.index()].setter =
                    taken.take(format!("set_{}", name.trim_end_matches('_')));
            }
        }
        for &id in &callable {
            let names = &mut self.definitions[id.index()];
            names.later = taken.take([names.own.trim_end_matches('_'), "_async"].concat());
            if is_cached(model, id) {
                names.with = taken.take([names.own.trim_end_matches('_'), "_with"].concat());
            }
            if !names.setter.is_empty() {
                names.setter_later = taken.take(format!("{}_async", names.setter.trim_end_matches('_')));
            }
        }
    }
}

/// Whether something is an attribute that clients may cache.
pub(crate) fn is_cached(model: &Model, id: DefId) -> bool {
    matches!(&model.get(id).kind, DefKind::Attribute(attribute) if attribute.caching.is_some())
}

/// Whether something is an operation that clients run over the state that they hold.
pub(crate) fn is_cached_read(model: &Model, id: DefId) -> bool {
    matches!(&model.get(id).kind, DefKind::Operation(operation) if operation.is_cached)
}

/// Whether something is an operation that parts of an object carry out together.
pub(crate) fn is_parallel(model: &Model, id: DefId) -> bool {
    matches!(&model.get(id).kind, DefKind::Operation(operation) if operation.parallel.is_some())
}

/// The items of an interface or valuetype.
fn members(model: &Model, id: DefId) -> Option<&[DefId]> {
    match &model.get(id).kind {
        DefKind::Interface(interface) => Some(&interface.items),
        DefKind::Value(value) => Some(&value.items),
        _ => None,
    }
}

/// Whether something is described by a TypeCode.
fn has_type_code(kind: &DefKind) -> bool {
    !matches!(
        kind,
        DefKind::Module(_)
            | DefKind::Operation(_)
            | DefKind::Attribute(_)
            | DefKind::Enumerator { .. }
            | DefKind::Flag { .. }
            | DefKind::Annotation(_)
            | DefKind::Constant(_)
    )
}

/// The operations and attributes among the items of an interface.
fn callable(model: &Model, items: &[DefId]) -> Vec<DefId> {
    let is_callable =
        |id: &DefId| matches!(model.get(*id).kind, DefKind::Operation(_) | DefKind::Attribute(_));
    items.iter().copied().filter(is_callable).collect()
}

/// Distinct Rust names for the items of one scope, e.g. parameters.
#[derive(Debug, Default)]
pub(crate) struct Taken {
    /// The first names, which are compared one by one.
    few: Vec<String>,
    /// The further names, which are hashed.
    many: HashSet<String>,
    /// Whether names of the prelude must not be used.
    is_prelude_kept: bool,
}

impl Taken {
    pub(crate) fn with(reserved: &[&str]) -> Self {
        Taken { few: reserved.iter().map(|&name| name.to_owned()).collect(), ..Taken::default() }
    }

    /// The name itself when it is free, else with as many underscores as it takes.
    pub(crate) fn take(&mut self, mut name: String) -> String {
        while case::is_reserved(&name)
            || self.is_prelude_kept && case::is_unshadowed(&name)
            || self.has(&name)
        {
            name.push('_');
        }
        self.add(&name);
        name
    }

    fn has(&self, name: &str) -> bool {
        self.few.iter().any(|few| few == name) || !self.many.is_empty() && self.many.contains(name)
    }

    fn add(&mut self, name: &str) {
        if self.few.len() < FEW {
            self.few.push(name.to_owned());
        } else {
            self.many.insert(name.to_owned());
        }
    }
}

/// Names compared one by one before they are hashed.
const FEW: usize = 16;

/// Distinct Rust names for members, parameters or variants, in order. A name that needs no change is kept.
pub(crate) fn side_by_side<'n>(
    idl: impl Iterator<Item = &'n str>,
    convert: impl Fn(&str) -> String,
) -> Vec<Text<'n>> {
    let mut taken = Taken::default();
    let mut names: Vec<(String, bool)> = idl
        .map(|idl| {
            let name = convert(idl);
            let is_changed = name != idl;
            (name, is_changed)
        })
        .collect();
    for pass in [false, true] {
        for (name, is_changed) in &mut names {
            if *is_changed == pass {
                *name = taken.take(std::mem::take(name));
            }
        }
    }
    names.into_iter().map(|(name, _)| name.into()).collect()
}

/// Constants that every bitmask has.
const BITMASK_OWN: &[&str] = &["ALL", "NONE"];

/// The namespaces of one Rust module.
#[derive(Debug)]
struct Scope {
    types: Taken,
    values: Taken,
}

impl Default for Scope {
    fn default() -> Self {
        let types = Taken { is_prelude_kept: true, ..Taken::default() };
        Scope { types, values: Taken::default() }
    }
}
