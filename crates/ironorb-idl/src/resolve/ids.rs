//! Repository ids: prefixes, versions, explicit ids (CORBA 3.3 part 1, 14.7).

use std::rc::Rc;

use super::Resolver;
use super::constants::Target;
use super::scope::{ScopeId, ScopeKind};
use crate::ast;
use crate::model::{ConstValue, DefId, DefKind, Module};
use crate::preprocess::{EventKind, PragmaName};
use crate::source::Span;

/// A prefix and the scope in which it was set: ids name the path from there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Prefix {
    text: Rc<str>,
    /// `None` for file scope.
    base: Option<DefId>,
}

impl Prefix {
    pub(super) fn none() -> Self {
        Self { text: Rc::from(""), base: None }
    }

    pub(super) fn of_omg() -> Self {
        Self { text: Rc::from("omg.org"), base: None }
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }
}

/// What makes up the repository id of a definition.
pub(super) struct IdState {
    /// In effect where it was declared.
    prefix: u32,
    /// In effect inside it by `typeprefix`.
    inner_prefix: Option<u32>,
    version: Option<(String, Span)>,
    explicit: Option<(String, Span)>,
}

impl IdState {
    pub(super) fn new(prefix: u32) -> Self {
        Self { prefix, inner_prefix: None, version: None, explicit: None }
    }

    pub(super) fn prefix(&self) -> u32 {
        self.prefix
    }

    pub(super) fn is_explicit(&self) -> bool {
        self.explicit.is_some() || self.inner_prefix.is_some()
    }
}

impl Resolver<'_> {
    /// Handles a pragma or the border of a file.
    pub(super) fn event(&mut self, index: usize, scope: ScopeId) {
        match self.unit.events[index].kind.clone() {
            EventKind::EnterFile => {
                // 14.7.5.2: a file starts without prefix, and its prefix ends with it.
                self.file_prefixes.push(self.prefix);
                let base = self.scopes[scope.index()].def;
                // The `typeprefix` of a module applies to all files that make it up.
                self.prefix = match base.and_then(|def| self.states[def.index()].ids.inner_prefix) {
                    Some(prefix) => prefix,
                    None => self.prefix_index(Prefix { text: Rc::from(""), base }),
                };
            }
            EventKind::LeaveFile => {
                if let Some(outer) = self.file_prefixes.pop() {
                    self.prefix = outer;
                }
            }
            EventKind::Prefix { prefix, span } => {
                let base = self.scopes[scope.index()].def;
                if let Some(prefix) = self.checked_prefix(&prefix, base, span) {
                    self.prefix = prefix;
                }
            }
            EventKind::Id { name, id, span } => {
                if let Some(def) = self.pragma_target(&name, scope) {
                    self.set_id(def, &id, span);
                }
            }
            EventKind::Version { name, version, span } => {
                if let Some(def) = self.pragma_target(&name, scope) {
                    self.set_version(def, &version, span);
                }
            }
        }
    }

    /// Sets the prefix in effect inside a definition and returns the one outside, to be restored.
    pub(super) fn enter_prefix(&mut self, id: DefId) -> u32 {
        let outer = self.prefix;
        if let Some(inner) = self.states[id.index()].ids.inner_prefix {
            self.prefix = inner;
        }
        outer
    }

    pub(super) fn type_id(&mut self, name: &ast::ScopedName, id: &ast::Expr, scope: ScopeId) {
        let def = self.lookup(name, scope);
        let text = self.evaluate(id, &Target::String(None), scope);
        if let (Some(def), Some(ConstValue::String(text))) = (def, text) {
            self.set_id(def, &text, id.span);
        }
    }

    pub(super) fn type_prefix(&mut self, name: &ast::ScopedName, prefix: &ast::Expr, scope: ScopeId) {
        let def = match self.undeclared_module(name, scope) {
            Some(module) => Some(module),
            None => self.lookup(name, scope),
        };
        let text = self.evaluate(prefix, &Target::String(None), scope);
        let (Some(def), Some(ConstValue::String(text))) = (def, text) else { return };
        // Unlike a pragma it stands before the name of its scope.
        let base = self.model.get(def).parent;
        let Some(index) = self.checked_prefix(&text, base, prefix.span) else { return };
        let Some(target) = self.states[def.index()].scope else {
            let (shown, kind, span) = (self.shown(def), self.kind_word(def), self.model.get(def).span);
            self.diags.holds_no_names(name.span, &shown, kind, span);
            return;
        };
        // The prefix applies to the definitions that the scope has already, and to later ones.
        let mut queue = vec![(def, target)];
        while let Some((def, inner)) = queue.pop() {
            let ids = &mut self.states[def.index()].ids;
            ids.prefix = index;
            ids.inner_prefix = Some(index);
            for &item in &self.scopes[inner.index()].items.clone() {
                match self.states[item.index()].scope {
                    Some(scope) => queue.push((item, scope)),
                    None => self.states[item.index()].ids.prefix = index,
                }
            }
        }
        let mut at = Some(scope);
        while let Some(here) = at {
            if here == target {
                self.prefix = index;
            }
            at = self.scopes[here.index()].parent;
        }
    }

    /// The module that `typeprefix` names before the module begins, as the OMG's own files of CORBA 3 do.
    /// That declares it.
    fn undeclared_module(&mut self, name: &ast::ScopedName, scope: ScopeId) -> Option<DefId> {
        let scope = if name.absolute { ScopeId::FILE } else { scope };
        let may_begin = matches!(self.scopes[scope.index()].kind, ScopeKind::File | ScopeKind::Module);
        if !name.rest.is_empty()
            || !may_begin
            || self.quietly(|resolver| resolver.lookup(name, scope).is_some())
        {
            return None;
        }
        let text = self.text(name.first.name).to_owned();
        self.diags.prefix_before_module(name.span, &text);
        let module = self.define(&ast::Lead::NONE, name.first, scope, DefKind::Module(Module::default()));
        self.open_scope(ScopeKind::Module, module, scope);
        Some(module)
    }

    /// Gives every definition its id.
    pub(super) fn assign_ids(&mut self) {
        // The name of the last definition's scope, from file scope down, with `/` between. The next
        // definition usually has the same scope.
        let mut scope: Option<DefId> = None;
        let mut path = String::new();
        let mut chain = Vec::new();
        for index in 0..self.states.len() {
            let ids = &self.states[index].ids;
            if let Some((id, _)) = &ids.explicit {
                self.model.definitions[index].repository_id = id.clone();
                continue;
            }
            let parent = self.model.definitions[index].parent;
            if parent != scope {
                scope = parent;
                chain.clear();
                let mut at = parent;
                while let Some(id) = at {
                    chain.push(id);
                    at = self.model.get(id).parent;
                }
                path.clear();
                for &id in chain.iter().rev() {
                    path.push_str(&self.model.get(id).name);
                    path.push('/');
                }
            }
            let prefix = &self.prefixes[ids.prefix as usize];
            // 14.7.5.5: the name is relative to the scope in which the prefix was set.
            let own = DefId(index as u32);
            let relative = match prefix.base.and_then(|base| chain.iter().rposition(|&id| id == base)) {
                Some(place) => {
                    let outer = chain[place..].iter().map(|&id| self.model.get(id).name.len() + 1);
                    &path[outer.sum()..]
                }
                None => path.as_str(),
            };
            let version = ids.version.as_ref().map_or("1.0", |(version, _)| version);
            let name = &self.model.get(own).name;
            let text = prefix.text();
            let slash = if text.is_empty() { "" } else { "/" };
            let parts = ["IDL:", text, slash, relative, name, ":", version];
            let length = parts.iter().map(|part| part.len()).sum();
            let mut id = String::with_capacity(length);
            parts.iter().for_each(|part| id.push_str(part));
            let definition = &mut self.model.definitions[index];
            definition.repository_id = id;
            let span = definition.span;
            if !self.may_copy(length, span) {
                return;
            }
        }
    }

    fn checked_prefix(&mut self, prefix: &str, base: Option<DefId>, span: Span) -> Option<u32> {
        let why = if prefix.starts_with('_') || prefix.starts_with('-') || prefix.starts_with('.') {
            Some("it starts with a mark")
        } else if prefix.starts_with('/') || prefix.ends_with('/') {
            Some("it starts or ends with `/`")
        } else if prefix.contains(|char: char| char.is_whitespace() || char.is_control() || char == ':') {
            Some("it holds blanks or colons")
        } else {
            None
        };
        if let Some(why) = why {
            self.diags.invalid_prefix(span, prefix, why);
            return None;
        }
        Some(self.prefix_index(Prefix { text: Rc::from(prefix), base }))
    }

    /// The index of a prefix. Few prefixes repeat often, so only the latest are compared.
    pub(super) fn prefix_index(&mut self, prefix: Prefix) -> u32 {
        if self.prefixes[0] == prefix {
            return 0;
        }
        match self.prefixes.iter().rev().take(8).position(|known| *known == prefix) {
            Some(back) => (self.prefixes.len() - 1 - back) as u32,
            None => {
                self.prefixes.push(prefix);
                self.prefixes.len() as u32 - 1
            }
        }
    }

    fn pragma_target(&mut self, name: &PragmaName, scope: ScopeId) -> Option<DefId> {
        let mut parts = name.parts.iter().map(|&(name, span)| ast::Ident { name, span });
        let first = parts.next()?;
        let rest: Vec<ast::Ident> = parts.collect();
        let span = rest.last().map_or(first.span, |last| first.span.to(last.span));
        // Inside a definition its own name is that of the scope around it.
        self.lookup(&ast::ScopedName { absolute: name.absolute, first, rest, span }, scope)
    }

    fn set_id(&mut self, def: DefId, id: &str, span: Span) {
        let well_formed =
            id.split_once(':').is_some_and(|(format, rest)| !format.is_empty() && !rest.is_empty());
        if !well_formed || id.contains(char::is_control) {
            self.diags.invalid_repository_id(span, id);
            return;
        }
        let shown = self.shown(def);
        let ids = &mut self.states[def.index()].ids;
        if let Some((old, first)) = &ids.explicit {
            if old != id {
                self.diags.repository_id_set_twice(span, &shown, &format!("the id \"{old}\""), Some(*first));
            }
            return;
        }
        if let Some((_, first)) = &ids.version {
            self.diags.repository_id_set_twice(
                span,
                &shown,
                "a version, which an id would contradict",
                Some(*first),
            );
            return;
        }
        ids.explicit = Some((id.to_owned(), span));
    }

    fn set_version(&mut self, def: DefId, version: &str, span: Span) {
        let number = |text: &str| !text.is_empty() && text.parse::<u16>().is_ok();
        if !version.split_once('.').is_some_and(|(major, minor)| number(major) && number(minor)) {
            self.diags.invalid_version(span, version);
            return;
        }
        let shown = self.shown(def);
        let ids = &mut self.states[def.index()].ids;
        if let Some((id, first)) = &ids.explicit {
            if !id.ends_with(&format!(":{version}")) {
                self.diags.repository_id_set_twice(span, &shown, &format!("the id \"{id}\""), Some(*first));
            }
            return;
        }
        if let Some((old, first)) = &ids.version {
            if old != version {
                self.diags.repository_id_set_twice(span, &shown, &format!("the version {old}"), Some(*first));
            }
            return;
        }
        ids.version = Some((version.to_owned(), span));
    }
}
