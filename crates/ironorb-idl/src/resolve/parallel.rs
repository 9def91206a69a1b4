//! Operations that the parts of an object carry out together: reads `@parallel` and `@reduce`, and reports what is wrong with them.

use super::Resolver;
use super::scope::ScopeId;
use crate::ast;
use crate::model::{Basic, DefKind, Direction, Parameter, Type};
use crate::parallel::{Distribution, Join, Parallel, Reduction};
use crate::source::Span;

/// The names of the annotations.
const PARALLEL: &str = "parallel";
const REDUCE: &str = "reduce";

impl Resolver<'_> {
    /// Keeps the annotations of an operation and its parameters for [`parallel`](Self::parallel). Of what is not called remotely,
    /// [`report_parallel`](Self::report_parallel) finds them.
    pub(super) fn expect_parallel(&mut self, lead: &ast::Lead, operation: &ast::Operation, scope: ScopeId) {
        if self.remote_interface(scope).is_some() {
            let last = operation.parameters.last().map_or(lead.token, |parameter| parameter.lead.token);
            self.parallel = lead.token..=last;
        }
    }

    /// How parts of an object carry an operation out. `parameters` are those of the text, unless some had mistakes.
    pub(super) fn parallel(
        &mut self,
        lead: &ast::Lead,
        operation: &ast::Operation,
        (result, parameters): (Option<&Type>, &[Parameter]),
        is_cached: bool,
        scope: ScopeId,
    ) -> Option<Parallel> {
        self.remote_interface(scope)?;
        let leads = || operation.parameters.iter().map(|parameter| &parameter.lead);
        let is_given = std::iter::once(lead).chain(leads()).any(|lead| !lead.annotations.is_empty());
        if !is_given || parameters.len() != operation.parameters.len() {
            return None;
        }
        let errors = self.diags.errors_found();
        let mut shared = Vec::new();
        let mut distribution: Option<(Distribution, Span)> = None;
        if let Some(given) = self.only(lead, PARALLEL, scope) {
            self.diags.parallel_not_here(given.span);
        }
        for (at, (parsed, parameter)) in operation.parameters.iter().zip(parameters).enumerate() {
            let Some(given) = self.only(&parsed.lead, PARALLEL, scope) else { continue };
            let is_sequence = matches!(self.unaliased(&parameter.ty), Type::Sequence { .. });
            let has_reply = operation.oneway.is_none() && !is_cached;
            if !is_sequence || parameter.direction == Direction::Out || !has_reply {
                self.diags.parallel_not_here(given.span);
                continue;
            }
            let named = self.chosen(given, &Distribution::NAMED);
            let Some(named) = named else {
                self.diags.not_a_distribution(given.span);
                continue;
            };
            match distribution {
                Some((first, span)) if first != named => self.diags.distributions_differ(given.span, span),
                _ => distribution = distribution.or(Some((named, given.span))),
            }
            shared.push(at);
        }
        let is_parallel = !shared.is_empty();
        let mut joins = Vec::new();
        let is_void = matches!(operation.result.kind, ast::TypeKind::Void);
        let reduce = self.only(lead, REDUCE, scope);
        match (reduce, result) {
            (Some(given), _) if is_void || !is_parallel => self.diags.reduce_not_here(given.span),
            (_, Some(result)) if !is_void && is_parallel => {
                joins.extend(self.join(reduce, result, true, operation.result.span));
            }
            _ => {}
        }
        for (at, (parsed, parameter)) in operation.parameters.iter().zip(parameters).enumerate() {
            let reduce = self.only(&parsed.lead, REDUCE, scope);
            let is_shared = shared.contains(&at);
            match reduce {
                Some(given) if !is_parallel || is_shared || parameter.direction == Direction::In => {
                    self.diags.reduce_not_here(given.span);
                }
                _ if is_parallel && parameter.direction != Direction::In => {
                    // Each part gives the whole of what it got whole.
                    let is_taken_apart = is_shared || parameter.direction == Direction::Out;
                    joins.extend(self.join(reduce, &parameter.ty, is_taken_apart, parsed.name.span));
                }
                _ => {}
            }
        }
        let (distribution, _) = distribution?;
        (self.diags.errors_found() == errors).then_some(Parallel { distribution, shared, joins })
    }

    /// How a result is joined: sequences are put together unless `@reduce` says otherwise.
    fn join(
        &mut self,
        reduce: Option<&ast::Annotation>,
        ty: &Type,
        is_taken_apart: bool,
        span: Span,
    ) -> Option<Join> {
        let sequence = match self.unaliased(ty) {
            Type::Sequence { element, .. } => Some(&**element),
            _ => None,
        };
        let Some(given) = reduce else {
            if sequence.is_some() && is_taken_apart {
                return Some(Join::Concatenated);
            }
            self.diags.not_joined(span);
            return None;
        };
        let number = match self.unaliased(sequence.unwrap_or(ty)) {
            Type::Basic(basic) => Some(*basic),
            _ => None,
        };
        let Some(named) = self.chosen(given, &Reduction::NAMED) else {
            self.diags.not_a_reduction(given.span, &Reduction::NAMED.map(|(name, _)| name));
            return None;
        };
        let fits = match named {
            Reduction::First => true,
            Reduction::Equal => self.is_comparable(ty),
            Reduction::And | Reduction::Or => {
                number.is_some_and(|basic| basic == Basic::Boolean || basic.is_integer())
            }
            Reduction::Sum | Reduction::Product | Reduction::Min | Reduction::Max => {
                let is_real = |basic| matches!(basic, Basic::Float | Basic::Double);
                number.is_some_and(|basic: Basic| basic.is_integer() || is_real(basic))
            }
        };
        if !fits {
            self.diags.reduction_does_not_fit(given.span, span);
        }
        fits.then_some(Join::Reduced(named))
    }

    /// Whether values of a type can be equal: not where they refer to objects, or may be of any type.
    fn is_comparable(&self, ty: &Type) -> bool {
        match self.unaliased(ty) {
            Type::Basic(basic) => !matches!(basic, Basic::Any | Basic::Object | Basic::ValueBase),
            Type::String { .. } | Type::WString { .. } | Type::Fixed { .. } => true,
            Type::Sequence { element, .. } | Type::Array { element, .. } => self.is_comparable(element),
            Type::Named(id) => matches!(self.model.get(*id).kind, DefKind::Enum(_) | DefKind::Bitmask(_)),
            _ => false,
        }
    }

    /// The annotation of a lead with one of our names. A second one is reported.
    fn only<'l>(&mut self, lead: &'l ast::Lead, name: &str, scope: ScopeId) -> Option<&'l ast::Annotation> {
        let mut found = None;
        for given in &lead.annotations {
            if !self.is_own(given, name, scope) {
                continue;
            }
            match found {
                None => found = Some(given),
                Some(_) if name == PARALLEL => self.diags.parallel_not_here(given.span),
                Some(_) => self.diags.reduce_not_here(given.span),
            }
        }
        found
    }

    /// The one value of an annotation, which is a name, and no constant of the text.
    fn chosen<T: Copy>(&self, given: &ast::Annotation, named: &[(&str, T)]) -> Option<T> {
        let [(None, value)] = given.arguments.as_slice() else { return None };
        let text = self.unit.sources.text(value.span).trim();
        named.iter().find(|(name, _)| *name == text).map(|(_, value)| *value)
    }

    /// Reports annotations of what parts do not carry out.
    pub(super) fn report_parallel(&mut self, lead: &ast::Lead, scope: ScopeId) {
        if self.parallel.contains(&lead.token) {
            return;
        }
        for given in &lead.annotations {
            if self.is_own(given, PARALLEL, scope) {
                self.diags.parallel_not_here(given.span);
            } else if self.is_own(given, REDUCE, scope) {
                self.diags.reduce_not_here(given.span);
            }
        }
    }

    /// Whether an annotation is ours. One of the name that the text declares itself is not.
    fn is_own(&mut self, given: &ast::Annotation, name: &str, scope: ScopeId) -> bool {
        self.is_named(given, name) && self.declared_annotation(&given.name, scope).is_none()
    }
}
