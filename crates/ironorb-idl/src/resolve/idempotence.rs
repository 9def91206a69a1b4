//! Operations that may be carried out twice: reads `@idempotent`, and reports what is wrong with it.

use super::Resolver;
use super::scope::ScopeId;
use crate::ast;

/// The name of the annotation.
const IDEMPOTENT: &str = "idempotent";

impl Resolver<'_> {
    /// Whether an operation, or the setter of an attribute, may be carried out twice. Outside of interfaces that are called
    /// remotely nothing is: there [`report_idempotence`](Self::report_idempotence) finds the annotation.
    pub(super) fn is_idempotent(&mut self, lead: &ast::Lead, scope: ScopeId) -> bool {
        let Some(first) = lead.annotations.iter().position(|given| self.is_idempotence(given, scope)) else {
            return false;
        };
        if self.remote_interface(scope).is_none() {
            return false;
        }
        self.idempotent = lead.token;
        for (at, given) in lead.annotations.iter().enumerate().skip(first) {
            if self.is_idempotence(given, scope) && (at > first || !given.arguments.is_empty()) {
                self.diags.idempotent_alone(given.span);
            }
        }
        true
    }

    /// Reports annotations of what nobody calls.
    pub(super) fn report_idempotence(&mut self, lead: &ast::Lead, scope: ScopeId) {
        if lead.token == self.idempotent {
            return;
        }
        for given in &lead.annotations {
            if self.is_idempotence(given, scope) {
                self.diags.idempotent_not_here(given.span);
            }
        }
    }

    /// Whether an annotation is ours. One of the name that the text declares itself is not.
    fn is_idempotence(&mut self, given: &ast::Annotation, scope: ScopeId) -> bool {
        self.is_named(given, IDEMPOTENT) && self.declared_annotation(&given.name, scope).is_none()
    }
}
