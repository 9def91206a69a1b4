//! Repository ids: prefixes, versions, explicit ids (CORBA 3.3 part 1, 14.7).

use std::rc::Rc;

use super::Resolver;
use super::constants::Target;
use super::scope::ScopeId;
use crate::ast;
use crate::model::{ConstValue, DefId};
use crate::preprocess::{EventKind, PragmaName};
use crate::source::Span;

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
    /// Obeys a pragma or the border of a file.
    pub(super) fn event(&mut self, index: usize, scope: ScopeId) {
        match self.unit.events[index].kind.clone() {
            EventKind::EnterFile => {
                // 14.7.5.2: a file starts without prefix, and its prefix ends with it.
                self.file_prefixes.push(self.prefix);
                self.prefix = 0;
            }
            EventKind::LeaveFile => {
                if let Some(outer) = self.file_prefixes.pop() {
                    self.prefix = outer;
                }
            }
            EventKind::Prefix { prefix, span } => {
                if let Some(prefix) = self.add_prefix(&prefix, span) {
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

    /// The prefix in effect inside a definition; gives the one outside, to be restored.
    pub(super) fn enter_prefix(&mut self, id: DefId) -> u32 {
        let outer = self.prefix;
        if let Some(inner) = self.side[id.index()].ids.inner_prefix {
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
        let def = self.lookup(name, scope);
        let text = self.evaluate(prefix, &Target::String(None), scope);
        let (Some(def), Some(ConstValue::String(text))) = (def, text) else { return };
        let Some(index) = self.add_prefix(&text, prefix.span) else { return };
        let Some(target) = self.side[def.index()].scope else {
            let (shown, kind, span) = (self.shown(def), self.kind_word(def), self.model.get(def).span);
            self.diags.holds_no_names(name.span, &shown, kind, span);
            return;
        };
        // All that it holds already gets the prefix, and what comes later.
        let mut queue = vec![(def, target)];
        while let Some((def, inner)) = queue.pop() {
            let ids = &mut self.side[def.index()].ids;
            ids.prefix = index;
            ids.inner_prefix = Some(index);
            for &item in &self.scopes[inner.index()].items.clone() {
                match self.side[item.index()].scope {
                    Some(scope) => queue.push((item, scope)),
                    None => self.side[item.index()].ids.prefix = index,
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

    /// Gives every definition its id.
    pub(super) fn assign_ids(&mut self) {
        // Names from file scope down, with `/` between; parents come before what they hold.
        let mut paths: Vec<Rc<str>> = Vec::with_capacity(self.side.len());
        for index in 0..self.side.len() {
            let definition = &mut self.model.definitions[index];
            let path: Rc<str> = match definition.parent {
                Some(parent) => Rc::from(format!("{}/{}", paths[parent.index()], definition.name)),
                None => Rc::from(definition.name.as_str()),
            };
            let ids = &self.side[index].ids;
            let prefix = &self.prefixes[ids.prefix as usize];
            definition.repository_id = match &ids.explicit {
                Some((id, _)) => id.clone(),
                None => {
                    let version = ids.version.as_ref().map_or("1.0", |(version, _)| version);
                    let slash = if prefix.is_empty() { "" } else { "/" };
                    format!("IDL:{prefix}{slash}{path}:{version}")
                }
            };
            paths.push(path);
        }
    }

    fn add_prefix(&mut self, prefix: &str, span: Span) -> Option<u32> {
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
        if let Some(known) = self.prefixes.iter().rev().take(8).position(|known| &**known == prefix) {
            return Some((self.prefixes.len() - 1 - known) as u32);
        }
        self.prefixes.push(Rc::from(prefix));
        Some(self.prefixes.len() as u32 - 1)
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
        let ids = &mut self.side[def.index()].ids;
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
        let ids = &mut self.side[def.index()].ids;
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
