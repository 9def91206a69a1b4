//! Unions: discriminators and labels.

use std::collections::HashMap;

use super::Resolver;
use super::constants::Target;
use super::scope::{ScopeId, ScopeKind, What};
use crate::ast;
use crate::model::{Basic, Case, ConstValue, DefId, DefKind, Member, Type, Union};
use crate::source::Span;

impl Resolver<'_> {
    pub(super) fn union(&mut self, lead: &ast::Lead, union: &ast::Union, scope: ScopeId) -> Option<DefId> {
        let existing = self.own_definition(scope, union.name.name);
        let existing = existing.filter(|&id| matches!(&self.model.get(id).kind, DefKind::Union(_)));
        let Some(body) = &union.body else {
            return Some(match existing {
                Some(id) => {
                    self.check_spelling(id, union.name);
                    id
                }
                None => self.define(lead, union.name, scope, DefKind::Union(Self::empty_union())),
            });
        };
        let declared = existing.filter(|&id| {
            matches!(&self.model.get(id).kind, DefKind::Union(old) if !old.defined)
                && !self.states[id.index()].open
        });
        let id = match declared {
            Some(id) => {
                self.complete_forward(id, lead, union.name, scope);
                id
            }
            None => self.define(lead, union.name, scope, DefKind::Union(Self::empty_union())),
        };
        self.states[id.index()].open = true;
        let inner = self.open_scope(ScopeKind::Union, id, scope);
        let outer = self.prefix;
        let discriminator = self.ty(&body.discriminator, inner);
        let target =
            discriminator.as_ref().and_then(|ty| self.discriminator_target(ty, body.discriminator.span));
        let mut labels = Labels::default();
        let mut cases = Vec::with_capacity(body.cases.len());
        for case in &body.cases {
            cases.extend(self.case(case, target.as_ref(), &mut labels, inner));
        }
        if body.cases.is_empty() {
            self.diags.no_members(union.name.span, "union");
        }
        let exhaustive = target.as_ref().is_some_and(|target| {
            self.value_count(target).is_some_and(|count| labels.seen.len() as u128 >= count)
        });
        if let (true, Some(default)) = (exhaustive, labels.default) {
            self.diags.default_without_values(default);
        }
        self.prefix = outer;
        self.states[id.index()].open = false;
        let local = cases.iter().any(|case| self.is_local(&case.member.ty));
        self.states[id.index()].local = local;
        if discriminator.is_none() {
            self.states[id.index()].broken = true;
        }
        if let (Some(discriminator), DefKind::Union(union)) =
            (discriminator, &mut self.model.definitions[id.index()].kind)
        {
            union.discriminator = discriminator;
            union.cases = cases;
            union.exhaustive = exhaustive;
            union.defined = true;
        }
        Some(id)
    }

    fn empty_union() -> Union {
        Union {
            discriminator: Type::Basic(Basic::Long),
            cases: Vec::new(),
            items: Vec::new(),
            exhaustive: false,
            recursive: false,
            defined: false,
        }
    }

    fn case(
        &mut self,
        case: &ast::Case,
        target: Option<&Target>,
        labels: &mut Labels,
        scope: ScopeId,
    ) -> Option<Case> {
        let mut values = Vec::new();
        let mut is_default = false;
        for label in &case.labels {
            match label {
                ast::Label::Default(span) => {
                    if let Some(first) = labels.default {
                        self.diags.second_default(*span, first);
                    }
                    labels.default = Some(*span);
                    is_default = true;
                }
                ast::Label::Value(expr) => {
                    let Some(target) = target else { continue };
                    let Some(value) = self.evaluate_label(expr, target, scope) else { continue };
                    if let Some(&first) = labels.seen.get(&label_key(&value)) {
                        let shown = self.shown_value(&value);
                        self.diags.duplicate_label(expr.span, &shown, first);
                        continue;
                    }
                    labels.seen.insert(label_key(&value), expr.span);
                    values.push(value);
                }
            }
        }
        let annotations = self.annotations(&case.lead, scope);
        let docs = self.docs(case.lead.token);
        let docs = self.kept_docs(docs);
        let base = self.ty(&case.ty, scope);
        if let Some(base) = &base {
            self.check_constructible(base, case.ty.span, "a member");
            self.require_complete(base, case.ty.span);
        }
        let ty = self.declared_type(base.as_ref(), &case.declarator, scope);
        self.declare(scope, case.declarator.name, What::Member);
        let name = case.declarator.name;
        let mut member =
            Member { name: self.text(name.name).to_owned(), ty: ty?, span: name.span, annotations, docs };
        self.type_default(&case.lead, std::slice::from_mut(&mut member), scope);
        Some(Case { labels: values, is_default, member })
    }

    fn discriminator_target(&mut self, ty: &Type, span: Span) -> Option<Target> {
        let legal = match self.unaliased(ty) {
            Type::Basic(basic) => !matches!(
                basic,
                Basic::Float
                    | Basic::Double
                    | Basic::LongDouble
                    | Basic::Any
                    | Basic::Object
                    | Basic::ValueBase
                    | Basic::TypeCode
            ),
            Type::Named(id) => matches!(self.model.get(*id).kind, DefKind::Enum(_)),
            _ => false,
        };
        if !legal {
            self.diags.illegal_discriminator(span);
            return None;
        }
        self.constant_target(ty, span)
    }

    /// How many values a discriminator has.
    fn value_count(&self, target: &Target) -> Option<u128> {
        Some(match target {
            Target::Integer(kind) => (kind.max - kind.min) as u128 + 1,
            Target::Char => 256,
            Target::Boolean => 2,
            Target::Enum(id) => match &self.model.get(*id).kind {
                DefKind::Enum(body) => body.enumerators.len() as u128,
                _ => return None,
            },
            _ => return None,
        })
    }
}

#[derive(Default)]
struct Labels {
    seen: HashMap<i128, Span>,
    default: Option<Span>,
}

/// One number for each value of one discriminator.
fn label_key(value: &ConstValue) -> i128 {
    match value {
        ConstValue::Integer(value) => *value,
        ConstValue::Char(char) => i128::from(*char),
        ConstValue::WChar(char) => *char as i128,
        ConstValue::Boolean(value) => i128::from(*value),
        ConstValue::Enumerator(id) => id.index() as i128,
        _ => 0,
    }
}
