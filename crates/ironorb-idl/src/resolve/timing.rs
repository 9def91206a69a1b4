//! The timing of operations and attributes: reads `@rt`, and reports what is wrong with it.

use super::Resolver;
use super::scope::ScopeId;
use crate::ast;
use crate::model::ConstValue;
use crate::source::Span;
use crate::timing::{Level, Timing, time};

/// The name of the annotation.
const RT: &str = "rt";

impl Resolver<'_> {
    /// The timing of an operation or attribute. Outside of interfaces that are called remotely there is none: then
    /// [`report_timings`](Self::report_timings) finds the annotation.
    pub(super) fn timing(&mut self, lead: &ast::Lead, scope: ScopeId) -> Option<Timing> {
        let first = lead.annotations.iter().position(|annotation| self.is_timing(annotation, scope))?;
        self.remote_interface(scope)?;
        self.timed = lead.token;
        let (given, rest) = lead.annotations[first..].split_first()?;
        for again in rest {
            if self.is_timing(again, scope) {
                self.diags.timing_twice(again.span, "@rt", given.span);
            }
        }
        self.read_timing(given, scope)
    }

    /// Reports annotations of what has no timing.
    pub(super) fn report_timings(&mut self, lead: &ast::Lead, scope: ScopeId) {
        if lead.token == self.timed {
            return;
        }
        for annotation in &lead.annotations {
            if self.is_timing(annotation, scope) {
                self.diags.timing_not_here(annotation.span);
            }
        }
    }

    /// Whether an annotation is ours. One of the name that the text declares itself is not.
    fn is_timing(&mut self, annotation: &ast::Annotation, scope: ScopeId) -> bool {
        self.is_named(annotation, RT) && self.declared_annotation(&annotation.name, scope).is_none()
    }

    fn read_timing(&mut self, given: &ast::Annotation, scope: ScopeId) -> Option<Timing> {
        let mut timing = Timing::default();
        let mut spans: [Option<Span>; MEMBERS.len()] = [None; MEMBERS.len()];
        let errors = self.diags.errors_found();
        for (name, value) in &given.arguments {
            let text = name.map(|name| self.text(name.name).to_owned());
            let member = text.as_deref().and_then(|text| MEMBERS.iter().position(|member| *member == text));
            let Some(member) = member else {
                let span = name.map_or(value.span, |name| name.span);
                self.diags.unknown_timing(span, text.as_deref(), MEMBERS);
                continue;
            };
            if let Some(first) = spans[member].replace(value.span) {
                self.diags.timing_twice(value.span, MEMBERS[member], first);
            }
            self.read_member(member, value, scope, &mut timing);
        }
        self.check_timing(given, &timing, &spans);
        (self.diags.errors_found() == errors).then_some(timing)
    }

    fn read_member(&mut self, member: usize, value: &ast::Expr, scope: ScopeId, timing: &mut Timing) {
        match MEMBERS[member] {
            "period" => timing.period = self.read_time(value, scope),
            "wcet" => timing.wcet = self.read_time(value, scope),
            "deadline" => timing.deadline = self.read_time(value, scope),
            "criticality" => timing.criticality = self.read_level(value, scope),
            "importance" => timing.importance = self.read_level(value, scope),
            _ => timing.probability = self.read_probability(value, scope),
        }
    }

    fn read_time(&mut self, value: &ast::Expr, scope: ScopeId) -> Option<std::time::Duration> {
        let ConstValue::String(text) = self.free_value(value, scope) else {
            self.diags.not_a_time(value.span, "it must be a string with a unit");
            return None;
        };
        time(&text).map_err(|why| self.diags.not_a_time(value.span, why.reason())).ok()
    }

    /// A level is a word, which need not be defined, or a string with that word.
    fn read_level(&mut self, value: &ast::Expr, scope: ScopeId) -> Option<Level> {
        let word = Level::of_word(self.unit.sources.text(value.span).trim());
        let level = word.or_else(|| match self.free_value(value, scope) {
            ConstValue::String(text) => Level::of_word(&text),
            _ => None,
        });
        if level.is_none() {
            self.diags.not_a_level(value.span);
        }
        level
    }

    fn read_probability(&mut self, value: &ast::Expr, scope: ScopeId) -> Option<f64> {
        let number = match self.free_value(value, scope) {
            ConstValue::Float(number) => Some(number),
            ConstValue::String(text) | ConstValue::Fixed(text) => text.parse().ok(),
            _ => None,
        };
        let number = number.filter(|number| 0.0 < *number && *number < 1.0);
        if number.is_none() {
            self.diags.not_a_probability(value.span);
        }
        number
    }

    /// Checks what the members say together.
    fn check_timing(&mut self, given: &ast::Annotation, timing: &Timing, spans: &[Option<Span>]) {
        let span_of = |name| MEMBERS.iter().position(|member| *member == name).and_then(|at| spans[at]);
        if given.arguments.is_empty() {
            self.diags.unknown_timing(given.span, None, MEMBERS);
        }
        if let (Some(wcet), Some(deadline)) = (timing.wcet, timing.deadline)
            && wcet > deadline
            && let (Some(at), Some(other)) = (span_of("wcet"), span_of("deadline"))
        {
            self.diags.wcet_beyond_deadline(at, other);
        }
        if let (Some(at), None) = (span_of("probability"), span_of("deadline")) {
            self.diags.probability_without_deadline(at);
        }
    }
}

const MEMBERS: &[&str] = &["period", "wcet", "deadline", "criticality", "importance", "probability"];
