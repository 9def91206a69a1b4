//! Finds the definition of a scoped name: first in the scope itself, then in its bases, then in the enclosing
//! scopes.

use super::Resolver;
use super::scope::{Entry, ScopeId, ScopeKind, What};
use crate::ast::{Ident, ScopedName};
use crate::intern::Name;
use crate::model::{DefId, DefKind};
use crate::source::Span;

/// What a scope and its bases have under a name.
enum Found {
    Nothing,
    Broken,
    One(DefId),
    Several(Vec<DefId>),
}

impl Resolver<'_> {
    /// The definition that a scoped name means in a scope; a failure is reported.
    pub(super) fn lookup(&mut self, name: &ScopedName, scope: ScopeId) -> Option<DefId> {
        let mut found = if name.absolute {
            let found = self.find_or_report(ScopeId::FILE, name.first, name.span)?;
            self.check_spelling(found, name.first);
            found
        } else {
            self.lookup_first(name, scope)?
        };
        for &part in &name.rest {
            let Some(inner) = self.states[found.index()].scope else {
                self.report_no_scope(found, part);
                return None;
            };
            found = self.find_or_report(inner, part, name.span)?;
            self.check_spelling(found, part);
        }
        self.states[found.index()].used = true;
        Some(found)
    }

    /// An unqualified name, from the scope outwards; its use binds it there.
    fn lookup_first(&mut self, whole: &ScopedName, scope: ScopeId) -> Option<DefId> {
        let name = whole.first;
        let fold = self.unit.interner.fold(name.name);
        let mut at = Some(scope);
        while let Some(here) = at {
            match self.find(here, fold) {
                Found::Nothing => at = self.scopes[here.index()].parent,
                Found::Broken => return None,
                Found::Several(candidates) => {
                    self.report_ambiguous(name, &candidates);
                    return None;
                }
                Found::One(id) => {
                    self.check_spelling(id, name);
                    self.introduce(name, fold, id, scope, here);
                    return Some(id);
                }
            }
        }
        match self.find_imported(fold, scope) {
            Found::One(id) => {
                self.check_spelling(id, name);
                return Some(id);
            }
            Found::Several(candidates) => {
                self.report_ambiguous(name, &candidates);
                return None;
            }
            Found::Nothing | Found::Broken => {}
        }
        if let Some(id) = self.supplied_around(scope, fold) {
            self.check_spelling(id, name);
            return Some(id);
        }
        // A name that a missing file would have defined is no further mistake.
        if whole.rest.is_empty() || !self.diags.lacks_include() {
            self.report_unknown(name, scope);
        }
        None
    }

    /// Binds a used name in the scope of its use and the enclosing ones, up to where it was found or to the
    /// next module. In these scopes it cannot get another meaning (CORBA 3.3 part 1, 7.20.3).
    fn introduce(&mut self, name: Ident, fold: Name, id: DefId, scope: ScopeId, found_in: ScopeId) {
        let mut at = Some(scope);
        while let Some(here) = at {
            let scope = &self.scopes[here.index()];
            if matches!(scope.kind, ScopeKind::File | ScopeKind::Module) {
                return;
            }
            let entry =
                Entry { name: self.states[id.index()].name, span: name.span, what: What::Introduced(id) };
            self.entries.entry((here, fold)).or_insert(entry);
            if here == found_in {
                return;
            }
            at = scope.parent;
        }
    }

    fn find_or_report(&mut self, scope: ScopeId, name: Ident, whole: Span) -> Option<DefId> {
        let fold = self.unit.interner.fold(name.name);
        match self.find(scope, fold) {
            Found::One(id) => Some(id),
            Found::Broken => None,
            Found::Several(candidates) => {
                self.report_ambiguous(name, &candidates);
                None
            }
            Found::Nothing => {
                let supplied = self.supplied(scope, fold);
                if supplied.is_none() {
                    self.report_unknown_in(scope, name, whole);
                }
                supplied
            }
        }
    }

    fn find(&self, scope: ScopeId, fold: Name) -> Found {
        match self.own(scope, fold) {
            Found::Nothing => {}
            found => return found,
        }
        let ancestors = &self.scopes[scope.index()].ancestors;
        if ancestors.is_empty() {
            return Found::Nothing;
        }
        if !self.may_inherit(ancestors.len()) {
            return Found::Broken;
        }
        if !ancestors.iter().any(|&base| !matches!(self.own(base, fold), Found::Nothing)) {
            return Found::Nothing;
        }
        let mut candidates = Vec::new();
        let mut seen = vec![scope];
        let mut queue: Vec<ScopeId> = self.scopes[scope.index()].bases.iter().rev().copied().collect();
        while let Some(base) = queue.pop() {
            if seen.contains(&base) {
                continue;
            }
            seen.push(base);
            match self.own(base, fold) {
                Found::One(id) if !candidates.contains(&id) => candidates.push(id),
                Found::Broken => return Found::Broken,
                Found::Nothing => queue.extend(self.scopes[base.index()].bases.iter().rev()),
                _ => {}
            }
        }
        // A name that a base redefines also hides the one that the base's own base has.
        if candidates.len() > 1 {
            let hidden: Vec<bool> = candidates.iter().map(|&id| self.is_hidden(id, &candidates)).collect();
            let mut hidden = hidden.into_iter();
            candidates.retain(|_| !hidden.next().unwrap_or(false));
        }
        match candidates.as_slice() {
            [] => Found::Nothing,
            [one] => Found::One(*one),
            _ => Found::Several(candidates),
        }
    }

    fn is_hidden(&self, id: DefId, others: &[DefId]) -> bool {
        let home = |id: DefId| self.model.get(id).parent.and_then(|parent| self.states[parent.index()].scope);
        let Some(own) = home(id) else { return false };
        others
            .iter()
            .filter(|&&other| other != id)
            .any(|&other| home(other).is_some_and(|near| self.scopes[near.index()].ancestors.contains(&own)))
    }

    fn own(&self, scope: ScopeId, fold: Name) -> Found {
        match self.entries.get(&(scope, fold)).map(|entry| entry.what) {
            Some(What::Definition(id)) => Found::One(id),
            Some(What::Broken) => Found::Broken,
            // Other names mean what the enclosing scopes say.
            _ => Found::Nothing,
        }
    }

    /// Handles `import`, which makes the names of a scope visible in the importing scope (CORBA 3.3 part 1,
    /// 7.6).
    pub(super) fn import(&mut self, name: &ScopedName, scope: ScopeId) {
        let Some(id) = self.lookup(name, scope) else { return };
        match self.states[id.index()].scope {
            Some(imported) => {
                let imports = &mut self.scopes[scope.index()].imports;
                if !imports.contains(&imported) && imports.len() < IMPORTS_MAX {
                    imports.push(imported);
                }
            }
            None => {
                let (shown, kind, span) = (self.shown(id), self.kind_word(id), self.model.get(id).span);
                self.diags.holds_no_names(name.span, &shown, kind, span);
            }
        }
    }

    /// Finds a name in the scopes imported here or in an enclosing scope.
    fn find_imported(&self, fold: Name, scope: ScopeId) -> Found {
        let mut at = Some(scope);
        while let Some(here) = at {
            let here = &self.scopes[here.index()];
            let mut candidates = Vec::new();
            for &imported in &here.imports {
                match self.find(imported, fold) {
                    Found::One(id) if !candidates.contains(&id) => candidates.push(id),
                    Found::Several(several) => candidates.extend(several),
                    _ => {}
                }
            }
            match candidates.as_slice() {
                [] => at = here.parent,
                [one] => return Found::One(*one),
                _ => return Found::Several(candidates),
            }
        }
        Found::Nothing
    }

    // Reports.

    fn report_unknown(&mut self, name: Ident, scope: ScopeId) {
        let fold = self.unit.interner.fold(name.name);
        if self.lost.contains(&fold) {
            return;
        }
        if !self.diags.is_listening() {
            self.diags.unknown_name(name.span, "", None);
            return;
        }
        let text = self.text(name.name).to_owned();
        let help = if crate::builtin::knows(&text) {
            Some(format!("write `CORBA::{text}` after `#include <orb.idl>`"))
        } else {
            let type_word = crate::suggest::type_word(&text).map(|word| format!("do you mean `{word}`?"));
            self.elsewhere(fold).or(type_word).or_else(|| self.similar(&text, scope))
        };
        self.diags.unknown_name(name.span, &text, help);
    }

    fn report_unknown_in(&mut self, scope: ScopeId, name: Ident, _whole: Span) {
        let fold = self.unit.interner.fold(name.name);
        if self.lost.contains(&fold) {
            return;
        }
        if !self.diags.is_listening() {
            self.diags.unknown_name(name.span, "", None);
            return;
        }
        let text = self.text(name.name).to_owned();
        match self.scopes[scope.index()].def {
            Some(def) => {
                let within = self.shown(def);
                let help = self.similar_in(&text, &self.scopes[scope.index()].items.clone());
                self.diags.unknown_name_in(name.span, &text, &within, help);
            }
            None => {
                let help = self.similar(&text, scope);
                self.diags.unknown_name(name.span, &text, help);
            }
        }
    }

    fn report_no_scope(&mut self, found: DefId, part: Ident) {
        let shown = self.shown(found);
        let text = self.text(part.name).to_owned();
        let definition = self.model.get(found);
        let forward = match &definition.kind {
            DefKind::Interface(interface) => !interface.defined,
            DefKind::Value(value) => !value.defined,
            DefKind::Struct(body) => !body.defined,
            DefKind::Union(body) => !body.defined,
            _ => false,
        };
        let span = definition.span;
        if let DefKind::Enum(enumeration) = &definition.kind {
            let known = enumeration.enumerators.iter().any(|&id| self.model.get(id).name == text);
            self.diags.enumerator_in_enum(part.span, &text, &shown, known, span);
        } else if forward {
            self.diags.not_yet_defined(part.span, &shown, span);
        } else {
            let kind = self.kind_word(found);
            self.diags.holds_no_names(part.span, &shown, kind, span);
        }
    }

    fn report_ambiguous(&mut self, name: Ident, candidates: &[DefId]) {
        let text = self.text(name.name).to_owned();
        let places = candidates.iter().map(|&id| (self.model.get(id).span, self.shown(id)));
        let places: Vec<_> = places.collect();
        self.diags.ambiguous_name(name.span, &text, &places);
    }

    /// A definition of this name in another scope.
    fn elsewhere(&self, fold: Name) -> Option<String> {
        let same = self.states.iter().position(|side| self.unit.interner.fold(side.name) == fold)?;
        let shown = self.shown(DefId(same as u32));
        Some(format!("do you mean `{shown}`?"))
    }

    /// A name that looks like `text` and is visible in `scope`.
    fn similar(&self, text: &str, scope: ScopeId) -> Option<String> {
        let mut at = Some(scope);
        while let Some(here) = at {
            let scope = &self.scopes[here.index()];
            if let Some(help) = self.similar_in(text, &scope.items) {
                return Some(help);
            }
            at = scope.parent;
        }
        None
    }

    fn similar_in(&self, text: &str, items: &[DefId]) -> Option<String> {
        let far = if text.len() > 5 { 2 } else { 1 };
        let near = items.iter().rev().take(SIMILAR_MAX).map(|&id| &self.model.get(id).name);
        let near = near.filter(|name| text.len() > 2 && crate::suggest::distance(name, text) <= far);
        let best = near.min_by_key(|name| crate::suggest::distance(name, text))?;
        Some(format!("do you mean `{best}`?"))
    }
}

/// The most scopes that one scope imports. A look-up may search each of them.
const IMPORTS_MAX: usize = 100;

/// The most names compared for one suggestion, so that a file full of errors takes linear time.
const SIMILAR_MAX: usize = 500;
