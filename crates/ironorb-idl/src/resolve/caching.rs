//! Cached attributes: reads `@cached`, and reports what is wrong with it.

use super::Resolver;
use super::scope::ScopeId;
use crate::ast;
use crate::caching::Caching;
use crate::model::{Attribute, ConstValue, DefId, DefKind, Direction, InterfaceKind};
use crate::source::Span;
use crate::timing::time;

/// The name of the annotation.
const CACHED: &str = "cached";
const MEMBERS: &[&str] = &["lag", "updates", "linearizable", "group"];

/// The most writes that `updates` may allow a read to miss.
const UPDATES_MAX: i128 = 1_000_000;

impl Resolver<'_> {
    /// How the attributes of an interface may be cached where they do not say it themselves.
    pub(super) fn interface_caching(
        &mut self,
        lead: &ast::Lead,
        kind: InterfaceKind,
        scope: ScopeId,
    ) -> Option<Caching> {
        if kind == InterfaceKind::Remote { self.caching(lead, scope) } else { None }
    }

    /// How an attribute may be cached. Only those of plain interfaces may: of others
    /// [`report_cachings`](Self::report_cachings) finds the annotation.
    pub(super) fn attribute_caching(
        &mut self,
        lead: &ast::Lead,
        attribute: &ast::Attribute,
        scope: ScopeId,
    ) -> Option<Caching> {
        if !self.is_in_plain_interface(scope) {
            return None;
        }
        let of_interface = self.caching_of_interface.clone();
        let given = self.caching(lead, scope).or(of_interface)?;
        match &attribute.get_raises {
            Some(raises) => {
                let span = raises.names.first().map_or(attribute.ty.span, |name| name.span);
                self.diags.cached_raises(span);
                None
            }
            None => Some(given),
        }
    }

    fn caching(&mut self, lead: &ast::Lead, scope: ScopeId) -> Option<Caching> {
        let first = lead.annotations.iter().position(|annotation| self.is_caching(annotation, scope))?;
        self.cached = lead.token;
        let (given, rest) = lead.annotations[first..].split_first()?;
        for again in rest {
            if self.is_caching(again, scope) {
                self.diags.cached_twice(again.span, "@cached", given.span);
            }
        }
        self.read_caching(given, scope)
    }

    fn read_caching(&mut self, given: &ast::Annotation, scope: ScopeId) -> Option<Caching> {
        let mut caching = Caching::default();
        let mut spans: [Option<Span>; MEMBERS.len()] = [None; MEMBERS.len()];
        let errors = self.diags.errors_found();
        for (name, value) in &given.arguments {
            let text = match name {
                Some(name) => Some(self.text(name.name).to_owned()),
                // The one word that needs no value.
                None => {
                    Some(self.unit.sources.text(value.span).trim().to_owned()).filter(|it| it == MEMBERS[2])
                }
            };
            let member = text.as_deref().and_then(|text| MEMBERS.iter().position(|member| *member == text));
            let Some(member) = member else {
                let span = name.map_or(value.span, |name| name.span);
                self.diags.unknown_cached(span, text.as_deref(), MEMBERS);
                continue;
            };
            if let Some(first) = spans[member].replace(value.span) {
                self.diags.cached_twice(value.span, MEMBERS[member], first);
            }
            let is_word = name.is_none();
            self.read_caching_member(member, (value, is_word), scope, &mut caching);
        }
        if self.diags.errors_found() == errors {
            self.check_caching(given, &caching, &spans);
        }
        (self.diags.errors_found() == errors).then_some(caching)
    }

    fn read_caching_member(
        &mut self,
        member: usize,
        (value, is_word): (&ast::Expr, bool),
        scope: ScopeId,
        caching: &mut Caching,
    ) {
        match MEMBERS[member] {
            "lag" => caching.lag = self.read_lag(value, scope),
            "updates" => caching.updates = self.read_updates(value, scope),
            "group" => caching.group = self.read_group(value, scope),
            _ if is_word => caching.is_linearizable = true,
            _ => match self.free_value(value, scope) {
                ConstValue::Boolean(is_linearizable) => caching.is_linearizable = is_linearizable,
                _ => self.diags.unknown_cached(value.span, None, MEMBERS),
            },
        }
    }

    fn read_lag(&mut self, value: &ast::Expr, scope: ScopeId) -> Option<std::time::Duration> {
        let ConstValue::String(text) = self.free_value(value, scope) else {
            self.diags.not_a_lag(value.span, "it must be a string with a unit");
            return None;
        };
        match text.trim() {
            "0" => Some(std::time::Duration::ZERO),
            text => time(text).map_err(|why| self.diags.not_a_lag(value.span, why.reason())).ok(),
        }
    }

    fn read_updates(&mut self, value: &ast::Expr, scope: ScopeId) -> Option<u32> {
        let number = match self.free_value(value, scope) {
            ConstValue::Integer(number @ 0..=UPDATES_MAX) => u32::try_from(number).ok(),
            _ => None,
        };
        if number.is_none() {
            self.diags.not_updates(value.span);
        }
        number
    }

    fn read_group(&mut self, value: &ast::Expr, scope: ScopeId) -> Option<String> {
        match self.free_value(value, scope) {
            ConstValue::String(name) if !name.trim().is_empty() => Some(name),
            _ => {
                self.diags.not_a_group(value.span, "it must be a string with a name");
                None
            }
        }
    }

    /// Checks what the members say together.
    fn check_caching(&mut self, given: &ast::Annotation, caching: &Caching, spans: &[Option<Span>]) {
        let [lag, updates, linearizable, _] = *spans else { return };
        if lag.or(updates).or(linearizable).is_none() {
            self.diags.unknown_cached(given.span, None, MEMBERS);
        }
        if caching.is_linearizable
            && let (Some(at), Some(other)) = (lag.or(updates), linearizable)
        {
            self.diags.cached_both(at, other);
        }
    }

    /// Whether clients run an operation over the state that they hold: `@cached` without values before it.
    pub(super) fn is_cached_read(
        &mut self,
        lead: &ast::Lead,
        operation: &ast::Operation,
        scope: ScopeId,
    ) -> bool {
        let is_bare = |given: &ast::Annotation| given.arguments.is_empty();
        let given = lead.annotations.iter().position(|given| self.is_caching(given, scope));
        let Some(given) = given.map(|at| &lead.annotations[at]).filter(|given| is_bare(given)) else {
            return false;
        };
        if !self.is_in_plain_interface(scope) {
            return false;
        }
        self.cached = lead.token;
        let gives_back = operation.parameters.iter().any(|parameter| parameter.direction != Direction::In);
        let why = match () {
            () if operation.oneway.is_some() => "it is oneway",
            () if matches!(operation.result.kind, ast::TypeKind::Void) => "it has no result",
            () if gives_back => "it has a parameter that is not `in`",
            () if operation.raises.is_some() => "it raises exceptions",
            () if operation.context.is_some() => "it has a context clause",
            () => return true,
        };
        self.diags.cached_read(given.span, why);
        false
    }

    /// Checks what the cached attributes and operations of an interface are together. They have one state.
    pub(super) fn check_cached_state(&mut self, inner: ScopeId) {
        let items = self.scopes[inner.index()].items.clone();
        let attributes: Vec<(Caching, Span)> =
            items.iter().filter_map(|id| self.cached_attribute(*id)).collect();
        if let Some(((first, at), rest)) = attributes.split_first() {
            for (_, span) in rest.iter().filter(|(caching, _)| !caching.has_mode_of(first)) {
                self.diags.cached_modes(*span, *at);
            }
        }
        for (caching, span) in &attributes {
            let Some(group) = &caching.group else { continue };
            if attributes.iter().filter(|(other, _)| other.group.as_ref() == Some(group)).count() == 1 {
                self.diags.not_a_group(*span, "it has one attribute");
            }
        }
        let is_read =
            |id: &&DefId| matches!(&self.model.get(**id).kind, DefKind::Operation(it) if it.is_cached);
        let read = items.iter().find(is_read).map(|id| self.model.get(*id).span);
        if let Some(span) = read.filter(|_| attributes.is_empty()) {
            self.diags.cached_read(span, "its interface has no cached attribute");
        }
    }

    fn cached_attribute(&self, id: DefId) -> Option<(Caching, Span)> {
        let definition = self.model.get(id);
        let DefKind::Attribute(Attribute { caching: Some(caching), .. }) = &definition.kind else {
            return None;
        };
        Some((caching.clone(), definition.span))
    }

    /// Reports annotations of what is not cached.
    pub(super) fn report_cachings(&mut self, lead: &ast::Lead, scope: ScopeId) {
        if lead.token == self.cached {
            return;
        }
        for annotation in &lead.annotations {
            if self.is_caching(annotation, scope) {
                self.diags.cached_not_here(annotation.span);
            }
        }
    }

    /// Whether an annotation is ours. One of the name that the text declares itself is not.
    fn is_caching(&mut self, annotation: &ast::Annotation, scope: ScopeId) -> bool {
        self.is_named(annotation, CACHED) && self.declared_annotation(&annotation.name, scope).is_none()
    }
}
