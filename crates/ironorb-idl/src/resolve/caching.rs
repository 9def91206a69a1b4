//! Cached attributes: reads `@cached`, and reports what is wrong with it.

use super::Resolver;
use super::scope::ScopeId;
use crate::ast;
use crate::caching::Caching;
use crate::model::{ConstValue, InterfaceKind};
use crate::timing::time;

/// The name of the annotation.
const CACHED: &str = "cached";
const MEMBERS: &[&str] = &["lag"];

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
        let of_interface = self.caching_of_interface;
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
        let mut lag = None;
        for (name, value) in &given.arguments {
            let text = name.map(|name| self.text(name.name).to_owned());
            if text.as_deref() != Some("lag") {
                let span = name.map_or(value.span, |name| name.span);
                self.diags.unknown_cached(span, text.as_deref(), MEMBERS);
                return None;
            }
            if let Some((first, _)) = lag.replace((value.span, self.free_value(value, scope))) {
                self.diags.cached_twice(value.span, "lag", first);
            }
        }
        let Some((span, value)) = lag else {
            self.diags.unknown_cached(given.span, None, MEMBERS);
            return None;
        };
        let ConstValue::String(text) = value else {
            self.diags.not_a_lag(span, "it must be a string with a unit");
            return None;
        };
        time(&text).map(|lag| Caching { lag }).map_err(|why| self.diags.not_a_lag(span, why.reason())).ok()
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
