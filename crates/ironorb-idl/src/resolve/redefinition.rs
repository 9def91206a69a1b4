//! Handles redefinitions of built-in definitions. Other ORBs' files contain parts of module `CORBA`, and an
//! equal second definition is no mistake.

use std::collections::HashMap;

use super::Resolver;
use super::ids::Prefix;
use super::scope::{Scope, ScopeId, ScopeKind};
use crate::ast::{self, Ident};
use crate::builtin;
use crate::intern::Name;
use crate::model::{DefId, DefKind, FileId, InterfaceKind, Member, Type};
use crate::preprocess::Unit;

impl Resolver<'_> {
    /// True for an item that repeats an equal definition of the scope, from another file or the same place,
    /// if one of the two files is built in or read in place of a built-in one. Such an item changes nothing.
    pub(super) fn is_repetition(&mut self, item: &ast::Item, scope: ScopeId) -> bool {
        if !self.is_builtin_module(scope) {
            return false;
        }
        let names = defined_names(&item.kind);
        let known: Vec<Option<DefId>> =
            names.iter().map(|name| self.first_definition(scope, *name)).collect();
        let Some(known) = known.into_iter().collect::<Option<Vec<DefId>>>() else { return false };
        if known.is_empty() {
            return false;
        }
        if let ([only], [name]) = (known.as_slice(), names.as_slice())
            && self.is_type_code(*only)
        {
            // Each ORB declares it in its own way, and all mean one type.
            return self.states[only.index()].name == name.name
                && !matches!(item.kind, ast::ItemKind::Typedef { .. });
        }
        self.is_identical(item, scope, &names, &known)
    }

    /// The built-in file's definition of a name that module `CORBA` of another file lacks.
    pub(super) fn supplied(&mut self, scope: ScopeId, fold: Name) -> Option<DefId> {
        if self.supplement.is_empty() || !self.is_builtin_module(scope) {
            return None;
        }
        let item = self.supplement.remove(&fold)?;
        for name in defined_names(&item.kind) {
            self.supplement.remove(&self.unit.interner.fold(name.name));
        }
        let outer = self.prefix;
        self.prefix = self.prefix_index(Prefix::of_omg());
        self.item(item, scope);
        self.prefix = outer;
        self.own_definition(scope, fold)
    }

    /// Searches outwards from a scope that may be in module `CORBA`.
    pub(super) fn supplied_around(&mut self, scope: ScopeId, fold: Name) -> Option<DefId> {
        let mut at = Some(scope).filter(|_| !self.supplement.is_empty());
        while let Some(here) = at {
            if let Some(found) = self.supplied(here, fold) {
                return Some(found);
            }
            at = self.scopes[here.index()].parent;
        }
        None
    }

    /// The kind that an interface counts as. `CORBA::Current` is not local, because services derive
    /// interfaces of both kinds from it.
    pub(super) fn interface_kind(&self, interface: &ast::Interface, scope: ScopeId) -> InterfaceKind {
        let is_current = interface.kind == InterfaceKind::Local
            && self.text(interface.name.name) == "Current"
            && self.scopes[scope.index()].def.is_some_and(|def| self.has_builtin_name(def));
        if is_current { InterfaceKind::Remote } else { interface.kind }
    }

    /// True for module `CORBA` or `IOP` at file scope.
    fn is_builtin_module(&self, scope: ScopeId) -> bool {
        let scope = &self.scopes[scope.index()];
        scope.kind == ScopeKind::Module
            && scope.parent == Some(ScopeId::FILE)
            && scope.def.is_some_and(|def| self.has_builtin_name(def))
    }

    fn has_builtin_name(&self, def: DefId) -> bool {
        let definition = self.model.get(def);
        definition.parent.is_none() && builtin::is_module(&definition.name)
    }

    /// The scope's definition of a name from another file.
    fn first_definition(&self, scope: ScopeId, name: Ident) -> Option<DefId> {
        let known = self.own_definition(scope, name.name)?;
        let is_standard = |file: FileId| {
            let file = self.unit.sources.file(file);
            file.is_builtin() || file.replaces_builtin()
        };
        let first = self.model.get(known).span;
        // A file without guards may be read twice.
        let may_repeat = (first.file != name.span.file || first == name.span)
            && (is_standard(first.file) || is_standard(name.span.file));
        (may_repeat && self.states[known.index()].name == name.name).then_some(known)
    }

    /// Resolves the item in a scope of its own, compares the two, and removes it again.
    fn is_identical(&mut self, item: &ast::Item, scope: ScopeId, names: &[Ident], known: &[DefId]) -> bool {
        let (definitions, scopes, prefix) = (self.model.definitions.len(), self.scopes.len(), self.prefix);
        let errors = self.diags.errors_found();
        let own = self.scopes[scope.index()].def;
        let trial = self.push_scope(Scope::new(ScopeKind::Module, own, Some(scope)));
        self.quietly(|resolver| resolver.item(item, trial));
        let same = self.diags.errors_found() == errors
            && names.iter().zip(known).all(|(name, &known)| {
                let new = self.own_definition(trial, name.name);
                new.is_some_and(|new| Comparison::new(self).definitions(new, known))
            });
        self.prefix = prefix;
        self.model.definitions.truncate(definitions);
        self.states.truncate(definitions);
        // The scopes stay, because their numbers are keys, but belong to no definition.
        for scope in &mut self.scopes[scopes..] {
            *scope = Scope::new(ScopeKind::Module, None, None);
        }
        same
    }
}

impl Resolver<'_> {
    /// The items inside a definition.
    fn items_of(&self, id: DefId) -> &[DefId] {
        self.states[id.index()].scope.map_or(&[], |scope| self.scopes[scope.index()].items.as_slice())
    }
}

/// The items of the built-in module `CORBA` by folded name.
pub(super) fn supplement<'a>(unit: &Unit, ast: &'a ast::Ast) -> HashMap<Name, &'a ast::Item> {
    let modules = ast.supplement.iter().filter_map(|item| match &item.kind {
        ast::ItemKind::Module { items, .. } => Some(items),
        _ => None,
    });
    let items = modules.flatten();
    items
        .flat_map(|item| defined_names(&item.kind).into_iter().map(move |name| (name, item)))
        .map(|(name, item)| (unit.interner.fold(name.name), item))
        .collect()
}

/// The names that an item defines in its scope, of the kinds that are compared.
fn defined_names(item: &ast::ItemKind) -> Vec<Ident> {
    match item {
        ast::ItemKind::Interface(interface) => vec![interface.name],
        ast::ItemKind::Struct(body) | ast::ItemKind::Exception(body) => vec![body.name],
        ast::ItemKind::Enum(body) => {
            std::iter::once(body.name).chain(body.enumerators.iter().map(|&(_, name)| name)).collect()
        }
        ast::ItemKind::Typedef { declarators, .. } => {
            declarators.iter().map(|declarator| declarator.name).collect()
        }
        ast::ItemKind::Const { name, .. } | ast::ItemKind::ValueBox { name, .. } => vec![*name],
        ast::ItemKind::Native(name) => vec![*name],
        _ => Vec::new(),
    }
}

/// Compares resolved definitions, including those that they refer to.
struct Comparison<'r, 'a> {
    resolver: &'r Resolver<'a>,
    /// Pairs of definitions taken as equal, so that recursive definitions compare in finite time.
    paired: HashMap<DefId, DefId>,
    /// The number of types and definitions compared so far. It is bounded.
    steps: usize,
    depth: usize,
}

impl<'r, 'a> Comparison<'r, 'a> {
    fn new(resolver: &'r Resolver<'a>) -> Self {
        Self { resolver, paired: HashMap::new(), steps: 0, depth: 0 }
    }

    fn definitions(&mut self, new: DefId, old: DefId) -> bool {
        if new == old || self.paired.get(&new) == Some(&old) {
            return true;
        }
        self.paired.insert(new, old);
        self.one_level(|comparison| comparison.bodies(new, old))
    }

    /// Compares parts. Parts that are too large to be compared count as different.
    fn one_level(&mut self, compare: impl FnOnce(&mut Self) -> bool) -> bool {
        self.steps += 1;
        if self.steps > STEPS_MAX || self.depth >= DEPTH_MAX {
            return false;
        }
        self.depth += 1;
        let same = compare(self);
        self.depth -= 1;
        same
    }

    fn bodies(&mut self, new: DefId, old: DefId) -> bool {
        let (new, old) = (self.resolver.model.get(new), self.resolver.model.get(old));
        if new.name != old.name {
            return false;
        }
        match (&new.kind, &old.kind) {
            (DefKind::Native, DefKind::Native) => true,
            (DefKind::Enumerator { ordinal: new, .. }, DefKind::Enumerator { ordinal: old, .. }) => {
                new == old
            }
            (DefKind::Enum(new), DefKind::Enum(old)) => self.lists(&new.enumerators, &old.enumerators),
            (DefKind::Typedef(new), DefKind::Typedef(old)) => self.types(&new.ty, &old.ty),
            (DefKind::Constant(new), DefKind::Constant(old)) => {
                new.value == old.value && self.types(&new.ty, &old.ty)
            }
            (DefKind::Struct(new), DefKind::Struct(old))
            | (DefKind::Exception(new), DefKind::Exception(old)) => {
                new.defined == old.defined && self.members(&new.members, &old.members)
            }
            (DefKind::ValueBox(new), DefKind::ValueBox(old)) => self.types(&new.ty, &old.ty),
            (DefKind::Interface(_), DefKind::Interface(_)) => self.interfaces(new.id, old.id),
            (DefKind::Operation(new), DefKind::Operation(old)) => {
                new.oneway == old.oneway
                    && new.context == old.context
                    && self.types(&new.result, &old.result)
                    && self.lists(&new.raises, &old.raises)
                    && new.parameters.len() == old.parameters.len()
                    && new
                        .parameters
                        .iter()
                        .zip(&old.parameters)
                        .all(|(new, old)| new.direction == old.direction && self.types(&new.ty, &old.ty))
            }
            (DefKind::Attribute(new), DefKind::Attribute(old)) => {
                new.readonly == old.readonly
                    && self.types(&new.ty, &old.ty)
                    && self.lists(&new.get_raises, &old.get_raises)
                    && self.lists(&new.set_raises, &old.set_raises)
            }
            _ => false,
        }
    }

    fn interfaces(&mut self, new: DefId, old: DefId) -> bool {
        let resolver = self.resolver;
        let (DefKind::Interface(new_body), DefKind::Interface(old_body)) =
            (&resolver.model.get(new).kind, &resolver.model.get(old).kind)
        else {
            return false;
        };
        // A declaration without a body has nothing more to compare.
        if !new_body.defined {
            return true;
        }
        let (new_items, old_items) = (resolver.items_of(new), resolver.items_of(old));
        new_body.kind == old_body.kind
            && old_body.defined
            && self.lists(&new_body.bases, &old_body.bases)
            && self.lists(new_items, old_items)
    }

    fn lists(&mut self, new: &[DefId], old: &[DefId]) -> bool {
        new.len() == old.len() && new.iter().zip(old).all(|(&new, &old)| self.definitions(new, old))
    }

    fn members(&mut self, new: &[Member], old: &[Member]) -> bool {
        new.len() == old.len()
            && new.iter().zip(old).all(|(new, old)| new.name == old.name && self.types(&new.ty, &old.ty))
    }

    /// Compares types without their typedefs.
    fn types(&mut self, new: &Type, old: &Type) -> bool {
        new == old || self.one_level(|comparison| comparison.roots(new, old))
    }

    fn roots(&mut self, new: &Type, old: &Type) -> bool {
        let resolver = self.resolver;
        match (resolver.unaliased(new), resolver.unaliased(old)) {
            (
                Type::Sequence { element: new, bound: new_bound },
                Type::Sequence { element: old, bound: old_bound },
            ) => new_bound == old_bound && self.types(new, old),
            (
                Type::Array { element: new, dimensions: new_dimensions },
                Type::Array { element: old, dimensions: old_dimensions },
            ) => new_dimensions == old_dimensions && self.types(new, old),
            (Type::Named(new), Type::Named(old)) => self.definitions(*new, *old),
            (new, old) => new == old,
        }
    }
}

/// The most types and definitions compared for one redefinition. The largest interface of CORBA has some
/// hundred.
const STEPS_MAX: usize = 10_000;

/// The deepest nesting of types and definitions in a redefinition.
const DEPTH_MAX: usize = 64;
