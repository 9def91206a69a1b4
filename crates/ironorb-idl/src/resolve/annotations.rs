//! Annotations: those of definitions, their declarations, and the values of annotations that have a meaning
//! here. Values are checked as constants are.

use super::Resolver;
use super::constants::Target;
use super::scope::{Entry, ScopeId, ScopeKind, What};
use crate::ast;
use crate::model::{
    Annotation, AnnotationMember, AnnotationParameter, AnnotationType, ConstValue, DefId, DefKind, Member,
    Type,
};
use crate::source::Span;

impl Resolver<'_> {
    /// The annotations of a lead, their parameters evaluated.
    pub(super) fn annotations(&mut self, lead: &ast::Lead, scope: ScopeId) -> Vec<Annotation> {
        if lead.annotations.is_empty() {
            return Vec::new();
        }
        // The annotations are evaluated once for all names of a declaration.
        if lead.token == self.last_annotations.0 {
            let (token, shared) = std::mem::take(&mut self.last_annotations);
            let copy = self.copied_annotations(&shared, lead.annotations[0].span);
            self.last_annotations = (token, shared);
            return copy;
        }
        self.report_timings(lead, scope);
        self.report_cachings(lead, scope);
        self.report_idempotence(lead, scope);
        self.report_parallel(lead, scope);
        let list: Vec<Annotation> =
            lead.annotations.iter().map(|annotation| self.annotation(annotation, scope)).collect();
        let copy = self.copied_annotations(&list, lead.annotations[0].span);
        self.last_annotations = (lead.token, list);
        copy
    }

    fn annotation(&mut self, annotation: &ast::Annotation, scope: ScopeId) -> Annotation {
        let of = self.declared_annotation(&annotation.name, scope);
        if of.is_none() {
            self.check_known(annotation);
        }
        let parameters = match of {
            Some(of) => self.declared_parameters(of, annotation, scope),
            None => annotation
                .arguments
                .iter()
                .map(|(name, value)| AnnotationParameter {
                    name: name.map(|name| self.text(name.name).to_owned()),
                    value: self.free_value(value, scope),
                })
                .collect(),
        };
        let mut name = String::from(if annotation.name.absolute { "::" } else { "" });
        name.push_str(self.text(annotation.name.first.name));
        for part in &annotation.name.rest {
            name.push_str("::");
            name.push_str(self.text(part.name));
        }
        Annotation { name, of, parameters, span: annotation.span }
    }

    /// Warns of an annotation that means nothing here.
    fn check_known(&mut self, annotation: &ast::Annotation) {
        let (text, whole) =
            (self.text(annotation.name.first.name), self.unit.sources.text(annotation.name.span));
        if whole == "optional" {
            self.diags.annotation_without_effect(
                annotation.span,
                "optional",
                "CORBA sends every member",
                "use a union with one case, or a valuetype, which may be null",
            );
        } else if !STANDARD.contains(&text) || whole != text {
            let (whole, far) = (whole.to_owned(), 1 + usize::from(whole.len() > 5));
            let near = STANDARD.iter().copied();
            let near = near.map(|known| (crate::suggest::distance(known, &whole), known)).min();
            let near =
                near.filter(|&(distance, _)| whole.len() > 2 && distance <= far).map(|(_, known)| known);
            self.diags.unknown_annotation(annotation.span, &whole, near);
        }
    }

    /// `@value` gives an enumerator a number, which is only right when it is the number that CORBA sends.
    pub(super) fn check_value(
        &mut self,
        lead: &ast::Lead,
        enumerator: DefId,
        ordinal: usize,
        scope: ScopeId,
    ) {
        let annotations = std::mem::take(&mut self.model.definitions[enumerator.index()].annotations);
        let is_own = annotations.iter().any(|own| own.name == "value" && own.of.is_some());
        let given = if is_own { None } else { self.whole_number(lead, &annotations, "value", scope) };
        self.model.definitions[enumerator.index()].annotations = annotations;
        if let Some((value, span)) = given
            && value != ordinal as i128
        {
            let why = format!("CORBA sends this enumerator as {ordinal}");
            let help = "enumerators count from 0 in the order written; use constants where numbers matter";
            self.diags.annotation_without_effect(span, "value", &why, help);
        }
    }

    /// Converts the value of `@default` to the members' type. A value that cannot be converted is reported.
    pub(super) fn type_default(&mut self, lead: &ast::Lead, members: &mut [Member], scope: ScopeId) {
        let Some(at) = lead.annotations.iter().position(|annotation| self.is_named(annotation, "default"))
        else {
            return;
        };
        let given = &lead.annotations[at];
        let mut found: Option<ConstValue> = None;
        for member in members {
            // None where there was too much to copy.
            let Some(own) = member.annotations.iter_mut().find(|own| own.span == given.span) else { return };
            // Names of one declaration share their type, except for dimensions, so only the first needs a
            // check.
            if found.is_none() || matches!(member.ty, Type::Array { .. }) {
                let ty = &member.ty;
                let Some(target) = self.quietly(|resolver| resolver.constant_target(ty, given.span)) else {
                    self.diags.default_of_no_constant(given.span, &member.name, member.span);
                    return;
                };
                found = self.standard_value(given, own, &target, scope);
            }
            let Some(value) = &found else { return };
            own.parameters = vec![AnnotationParameter { name: None, value: value.clone() }];
        }
    }

    /// The whole number of a standard annotation, and its place. `None` when there is no annotation, or when
    /// its value is no number, which is reported.
    pub(super) fn whole_number(
        &mut self,
        lead: &ast::Lead,
        own: &[Annotation],
        name: &str,
        scope: ScopeId,
    ) -> Option<(i128, Span)> {
        let given = lead.annotations.iter().find(|annotation| self.is_named(annotation, name))?;
        let own = own.iter().find(|own| own.span == given.span)?;
        match self.standard_value(given, own, &Target::whole_number(), scope)? {
            ConstValue::Integer(value) => Some((value, given.span)),
            _ => None,
        }
    }

    /// The value of an annotation whose one parameter is called `value`.
    fn standard_value(
        &mut self,
        given: &ast::Annotation,
        own: &Annotation,
        target: &Target,
        scope: ScopeId,
    ) -> Option<ConstValue> {
        match (given.arguments.as_slice(), own.parameters.as_slice()) {
            ([(name, value)], _) if name.is_none_or(|name| self.text(name.name) == "value") => {
                self.evaluate(value, target, scope)
            }
            // The text declares the annotation, with a default.
            ([], [only]) => self.fit_constant(&only.value, given.span, target),
            _ => {
                self.diags.one_value_expected(given.span, &own.name);
                None
            }
        }
    }

    /// True for a simple name, as the standard annotations have.
    pub(super) fn is_named(&self, annotation: &ast::Annotation, name: &str) -> bool {
        let given = &annotation.name;
        !given.absolute && given.rest.is_empty() && self.text(given.first.name) == name
    }

    /// Keeps a name that is no constant as text: its meaning is up to the annotation.
    pub(super) fn free_value(&mut self, value: &ast::Expr, scope: ScopeId) -> ConstValue {
        let evaluated = self.quietly(|resolver| resolver.evaluate(value, &Target::Anything, scope));
        let text = || self.unit.sources.text(value.span).trim().to_owned();
        evaluated.unwrap_or_else(|| ConstValue::String(text()))
    }

    /// All parameters in the order of the declaration, those not given with their defaults.
    fn declared_parameters(
        &mut self,
        of: DefId,
        annotation: &ast::Annotation,
        scope: ScopeId,
    ) -> Vec<AnnotationParameter> {
        let DefKind::Annotation(declared) = &self.model.get(of).kind else { return Vec::new() };
        let declared = declared.parameters.clone();
        let inner = self.states[of.index()].scope;
        let mut values: Vec<Option<ConstValue>> =
            declared.iter().map(|member| member.default.clone()).collect();
        let mut given = vec![false; declared.len()];
        for (index, (name, value)) in annotation.arguments.iter().enumerate() {
            let at = match name {
                Some(name) => {
                    let text = self.text(name.name);
                    declared.iter().position(|member| member.name.eq_ignore_ascii_case(text))
                }
                // The grammar allows one value without a name. Several are taken in order.
                None => (index < declared.len()).then_some(index),
            };
            let Some(at) = at else {
                let span = name.map_or(value.span, |name| name.span);
                let (shown, text) = (self.shown(of), self.unit.sources.text(span).to_owned());
                self.diags.unknown_parameter(span, &text, &shown, self.model.get(of).span);
                continue;
            };
            let value = match declared[at].ty.as_ref().and_then(|ty| self.constant_target(ty, value.span)) {
                Some(target) => self.evaluate_within(value, &target, scope, inner),
                None => Some(self.free_value(value, scope)),
            };
            given[at] = true;
            values[at] = value;
        }
        let mut list = Vec::with_capacity(declared.len());
        for ((member, value), given) in declared.into_iter().zip(values).zip(given) {
            match value {
                Some(value) => list.push(AnnotationParameter { name: Some(member.name), value }),
                None if given => {}
                None => {
                    let shown = self.shown(of);
                    self.diags.missing_parameter(annotation.span, &member.name, &shown, member.span);
                }
            }
        }
        list
    }

    /// Looks up names where the annotation is used, or else in its declaration.
    fn evaluate_within(
        &mut self,
        value: &ast::Expr,
        target: &Target,
        scope: ScopeId,
        inner: Option<ScopeId>,
    ) -> Option<ConstValue> {
        let found = self.quietly(|resolver| resolver.evaluate(value, target, scope));
        match (found, inner) {
            (Some(found), _) => Some(found),
            (None, Some(inner)) => {
                let found = self.quietly(|resolver| resolver.evaluate(value, target, inner));
                found.or_else(|| self.evaluate(value, target, scope))
            }
            (None, None) => self.evaluate(value, target, scope),
        }
    }

    pub(super) fn declared_annotation(&mut self, name: &ast::ScopedName, scope: ScopeId) -> Option<DefId> {
        if self.annotation_types.is_empty() {
            return None;
        }
        let Some((last, path)) = name.rest.split_last() else {
            let fold = self.unit.interner.fold(name.first.name);
            let mut at = Some(if name.absolute { ScopeId::FILE } else { scope });
            while let Some(here) = at {
                if let Some(&found) = self.annotation_types.get(&(here, fold)) {
                    return Some(found);
                }
                at = self.scopes[here.index()].parent;
            }
            return None;
        };
        let path = ast::ScopedName { rest: path.to_vec(), ..name.clone() };
        let module = self.quietly(|resolver| resolver.lookup(&path, scope))?;
        let within = self.states[module.index()].scope?;
        self.annotation_types.get(&(within, self.unit.interner.fold(last.name))).copied()
    }

    /// Enters the name of a declared annotation; false when the scope has it already.
    pub(super) fn declare_annotation(&mut self, scope: ScopeId, name: ast::Ident, id: DefId) -> bool {
        let fold = self.unit.interner.fold(name.name);
        let first = *self.annotation_types.entry((scope, fold)).or_insert(id);
        if first != id {
            let (text, span) = (self.text(name.name).to_owned(), self.model.get(first).span);
            self.diags.redefinition(name.span, &text, "an annotation", span, false);
        }
        first == id
    }

    pub(super) fn annotation_type(&mut self, lead: &ast::Lead, body: &ast::AnnotationType, scope: ScopeId) {
        let new = AnnotationType { parameters: Vec::new(), items: Vec::new() };
        let id = self.define(lead, body.name, scope, DefKind::Annotation(new));
        let inner = self.open_scope(ScopeKind::Annotation, id, scope);
        let mut parameters: Vec<AnnotationMember> = Vec::new();
        let mut items = body.items.iter();
        let mut passed = 0;
        for member in &body.members {
            while passed < member.after {
                if let Some(item) = items.next() {
                    self.item(item, inner);
                }
                passed += 1;
            }
            parameters.extend(self.annotation_member(member, inner));
        }
        for item in items {
            self.item(item, inner);
        }
        if parameters.len() > PARAMETERS_MAX {
            self.diags.too_many_parameters(body.name.span, PARAMETERS_MAX);
            parameters.clear();
        }
        if let DefKind::Annotation(body) = &mut self.model.definitions[id.index()].kind {
            body.parameters = parameters;
        }
    }

    fn annotation_member(
        &mut self,
        member: &ast::AnnotationMember,
        scope: ScopeId,
    ) -> Option<AnnotationMember> {
        let name = member.name;
        // Parameters clash only with each other: `@value` has a parameter `value`, and `Kind kind` is usual.
        let fold = self.unit.interner.fold(name.name);
        let entry = Entry { name: name.name, span: name.span, what: What::Member };
        match self.entries.get(&(scope, fold)).map(|old| old.what) {
            Some(What::Member) => {
                self.declare(scope, name, What::Member);
            }
            None | Some(What::ScopeName(_)) => {
                self.entries.insert((scope, fold), entry);
            }
            Some(_) => {}
        }
        let ty = match &member.ty {
            Some(spec) => {
                let ty = self.ty(spec, scope)?;
                Some((self.constant_target(&ty, spec.span)?, ty))
            }
            None => None,
        };
        let default = match (&member.default, &ty) {
            (Some(value), Some((target, _))) => Some(self.evaluate(value, target, scope)?),
            (Some(value), None) => Some(self.free_value(value, scope)),
            (None, _) => None,
        };
        let ty: Option<Type> = ty.map(|(_, ty)| ty);
        Some(AnnotationMember { name: self.text(name.name).to_owned(), ty, default, span: name.span })
    }
}

/// The most parameters of a declared annotation; each use of it has them all.
const PARAMETERS_MAX: usize = 100;

/// The annotations of IDL 4.2, those that DDS adds, and our own.
const STANDARD: &[&str] = &[
    "ami",
    "appendable",
    "autoid",
    "bit_bound",
    "cached",
    "data_representation",
    "default",
    "default_literal",
    "default_nested",
    "extensibility",
    "external",
    "final",
    "hashid",
    "id",
    "idempotent",
    "ignore_literal_names",
    "key",
    "marshal",
    "max",
    "min",
    "must_understand",
    "mutable",
    "nested",
    "non_serialized",
    "oneway",
    "optional",
    "owned",
    "parallel",
    "position",
    "range",
    "reduce",
    "rt",
    "service",
    "topic",
    "try_construct",
    "unit",
    "value",
    "verbatim",
];
