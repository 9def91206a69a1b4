//! Valuetypes: inheritance, state, factories, boxes.

use super::Resolver;
use super::scope::{ScopeId, ScopeKind, What};
use crate::ast;
use crate::model::{DefId, DefKind, Factory, InterfaceKind, StateMember, Type, Value, ValueBox};
use crate::source::Span;

impl Resolver<'_> {
    pub(super) fn value(&mut self, lead: &ast::Lead, value: &ast::Value, scope: ScopeId) {
        let name = value.name;
        let existing = self.own_definition(scope, name.name);
        let existing = existing.and_then(|id| match &self.model.get(id).kind {
            DefKind::Value(old) => Some((id, old.is_abstract, old.defined)),
            _ => None,
        });
        if let Some((id, is_abstract, _)) = existing
            && is_abstract != value.is_abstract
        {
            let (first, text) = (self.model.get(id).span, self.text(name.name).to_owned());
            self.diags.value_kind_differs(name.span, &text, first);
        }
        let new = Value {
            is_abstract: value.is_abstract,
            custom: value.custom,
            truncatable: value.truncatable.is_some(),
            bases: Vec::new(),
            supports: Vec::new(),
            state: Vec::new(),
            factories: Vec::new(),
            items: Vec::new(),
            defined: false,
        };
        let Some(items) = &value.items else {
            match existing {
                Some((id, ..)) => self.check_spelling(id, name),
                None => {
                    if value.custom {
                        self.diags.custom_forward(name.span);
                    }
                    self.define(lead, name, scope, DefKind::Value(new));
                }
            }
            return;
        };
        let id = match existing {
            Some((id, _, false)) => {
                self.complete_forward(id, lead, name, scope);
                self.model.definitions[id.index()].kind = DefKind::Value(new);
                id
            }
            _ => self.define(lead, name, scope, DefKind::Value(new)),
        };
        if value.is_abstract && value.custom {
            self.diags.abstract_custom(name.span);
        }
        let bases = self.value_bases(id, value, scope);
        let supports = self.supported_interfaces(value, scope);
        self.check_truncatable(value, &bases);
        let inner = self.open_scope(ScopeKind::Value, id, scope);
        let inherited: Vec<(DefId, Span)> = bases.iter().chain(&supports).copied().collect();
        self.inherit(inner, id, &inherited);
        if let DefKind::Value(body) = &mut self.model.definitions[id.index()].kind {
            body.bases = bases.iter().map(|&(base, _)| base).collect();
            body.supports = supports.iter().map(|&(base, _)| base).collect();
            body.defined = true;
        }
        self.check_inherited_clash(inner, name);
        let outer = self.enter_prefix(id);
        let mut state = Vec::new();
        let mut factories = Vec::new();
        for item in items {
            match &item.kind {
                ast::ItemKind::State { public, member } => {
                    if value.is_abstract {
                        let span = member.declarators.first().map_or(member.ty.span, |first| first.name.span);
                        self.diags.abstract_with_state(span);
                    }
                    self.state(&item.lead, *public, member, inner, &mut state);
                }
                ast::ItemKind::Factory(factory) => {
                    if value.is_abstract {
                        self.diags.abstract_with_factory(factory.name.span);
                    }
                    factories.extend(self.factory(factory, inner));
                }
                _ => self.item(item, inner),
            }
        }
        self.prefix = outer;
        if let DefKind::Value(body) = &mut self.model.definitions[id.index()].kind {
            body.state = state;
            body.factories = factories;
        }
    }

    pub(super) fn value_box(
        &mut self,
        lead: &ast::Lead,
        name: ast::Ident,
        ty: &ast::TypeSpec,
        scope: ScopeId,
    ) {
        let span = ty.span;
        match self.ty(ty, scope) {
            Some(ty) => {
                let is_value = match self.unaliased(&ty) {
                    Type::Named(id) => {
                        matches!(self.model.get(*id).kind, DefKind::Value(_) | DefKind::ValueBox(_))
                    }
                    Type::Basic(basic) => *basic == crate::model::Basic::ValueBase,
                    _ => false,
                };
                if is_value {
                    self.diags.box_of_value(span);
                }
                self.require_complete(&ty, span);
                self.define(lead, name, scope, DefKind::ValueBox(ValueBox { ty }));
            }
            None => self.define_broken(name, scope),
        }
    }

    fn value_bases(&mut self, id: DefId, value: &ast::Value, scope: ScopeId) -> Vec<(DefId, Span)> {
        let mut bases: Vec<(DefId, Span)> = Vec::new();
        for name in &value.bases {
            let Some(base) = self.lookup_base(name, scope) else { continue };
            let definition = self.model.get(base);
            let (shown, span) = (self.shown(base), definition.span);
            if base == id {
                self.diags.own_base(name.span, &shown);
                continue;
            }
            let DefKind::Value(body) = &definition.kind else {
                let kind = self.kind_word(base);
                self.diags.not_a_value(name.span, &shown, kind, span);
                continue;
            };
            let (base_abstract, defined) = (body.is_abstract, body.defined);
            if !self.can_join(base, name.span, defined, &bases) {
                continue;
            }
            if value.is_abstract && !base_abstract {
                self.diags.base_is_not_abstract(name.span, &shown, span, "valuetype");
            } else if !base_abstract && !bases.is_empty() {
                self.diags.concrete_base_not_first(name.span, &shown, span);
            }
            bases.push((base, name.span));
        }
        bases
    }

    fn supported_interfaces(&mut self, value: &ast::Value, scope: ScopeId) -> Vec<(DefId, Span)> {
        let mut supports: Vec<(DefId, Span)> = Vec::new();
        let mut concrete: Option<Span> = None;
        for name in &value.supports {
            let Some(base) = self.lookup_base(name, scope) else { continue };
            let definition = self.model.get(base);
            let (shown, span) = (self.shown(base), definition.span);
            let DefKind::Interface(body) = &definition.kind else {
                let kind = self.kind_word(base);
                self.diags.not_an_interface(name.span, &shown, kind, span);
                continue;
            };
            let (kind, defined) = (body.kind, body.defined);
            if !self.can_join(base, name.span, defined, &supports) {
                continue;
            }
            if kind != InterfaceKind::Abstract {
                if let Some(first) = concrete {
                    self.diags.second_concrete_interface(name.span, &shown, first);
                }
                concrete = Some(name.span);
            }
            supports.push((base, name.span));
        }
        supports
    }

    fn check_truncatable(&mut self, value: &ast::Value, bases: &[(DefId, Span)]) {
        let Some(span) = value.truncatable else { return };
        if value.custom {
            self.diags.custom_truncatable(span);
        }
        if let Some(&(base, _)) = bases.first()
            && matches!(&self.model.get(base).kind, DefKind::Value(body) if body.is_abstract)
        {
            let shown = self.shown(base);
            self.diags.truncatable_to_abstract(span, &shown);
        }
    }

    fn state(
        &mut self,
        lead: &ast::Lead,
        public: bool,
        member: &ast::Member,
        scope: ScopeId,
        state: &mut Vec<StateMember>,
    ) {
        let annotations = self.annotations(lead, scope);
        let docs = self.docs(lead.token);
        let mut members = Vec::new();
        self.member(member, scope, &mut members);
        for member in &mut members {
            member.annotations.splice(0..0, annotations.iter().cloned());
        }
        self.type_default(lead, &mut members, scope);
        state.extend(members.into_iter().map(|mut member| {
            member.docs = self.kept_docs(docs.clone());
            StateMember { public, member }
        }));
    }

    fn factory(&mut self, factory: &ast::Factory, scope: ScopeId) -> Option<Factory> {
        self.check_redefines_inherited(factory.name, scope);
        self.declare(scope, factory.name, What::Member);
        let inner = self.open_parameter_scope(scope);
        for parameter in &factory.parameters {
            if parameter.direction != crate::model::Direction::In {
                self.diags.factory_parameter_not_in(parameter.direction_span);
            }
        }
        let parameters = self.parameters(&factory.parameters, inner, scope);
        let raises = self.raises(factory.raises.as_ref(), scope);
        let name = self.text(factory.name.name).to_owned();
        Some(Factory { name, parameters, raises, span: factory.name.span })
    }
}
