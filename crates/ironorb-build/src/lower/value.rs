//! Lowers valuetypes: the struct of the state, the trait of the operations, and the facts about the bases.

use ironorb_idl::model::{DefId, DefKind, Definition, Factory, StateMember, Value, ValueBox};

use super::{Lowerer, Place, doc_lines, unlike, with_docs};
use crate::names::{side_by_side, snake};
use crate::tree::{self, Text};

impl<'a> Lowerer<'a> {
    pub(super) fn value(
        &'a self,
        def: &'a Definition,
        value: &'a Value,
        at: &Place<'a>,
    ) -> Vec<tree::Item<'a>> {
        let names = self.names.of(def.id);
        let what = if value.is_abstract { "abstract valuetype" } else { "valuetype" };
        let methods = value.items.iter().flat_map(|&id| self.methods(def, id, at)).collect::<Vec<_>>();
        let kind = if value.is_abstract {
            let operations = tree::Operations {
                docs: Vec::new(),
                name: names.own.as_str().into(),
                supertraits: value.bases.iter().map(|&base| self.path(base, at)).collect(),
                methods,
            };
            tree::ItemKind::AbstractValue(tree::AbstractValue {
                operations,
                type_code: self.type_code(def),
                bases: self.model.all_bases(def.id).into_iter().map(|base| self.path(base, at)).collect(),
            })
        } else {
            tree::ItemKind::Value(self.concrete(def, value, methods, at))
        };
        let mut items = vec![tree::Item { docs: self.docs(def, what), kind }];
        if !value.factories.is_empty() {
            let factory = tree::ValueFactory {
                name: names.factory.as_str().into(),
                methods: value.factories.iter().enumerate().map(|f| self.factory(def, f, at)).collect(),
            };
            let docs = vec![format!("Makes values of the IDL valuetype `{}`.", self.scoped(def)).into()];
            items.push(tree::Item { docs, kind: tree::ItemKind::ValueFactory(factory) });
        }
        let inner = at.inside(def.id, &names.inner);
        let mut errors = self.operation_errors(&value.items, &inner);
        for (factory, name) in value.factories.iter().zip(&names.factory_errors) {
            errors.extend(self.operation_error(&factory.name, name, &factory.raises, &inner));
        }
        let errors = (!errors.is_empty())
            .then(|| tree::Item { docs: Vec::new(), kind: tree::ItemKind::OperationErrors(errors) });
        items.extend(self.inner_module(def, what, errors.into_iter().collect(), &value.items, at));
        items
    }

    fn concrete(
        &'a self,
        def: &'a Definition,
        value: &'a Value,
        methods: Vec<tree::Method<'a>>,
        at: &Place<'a>,
    ) -> tree::Value<'a> {
        let names = self.names.of(def.id);
        let fields = self.state_names(value);
        let chain = self.concrete_bases(def.id);
        let truncatable = std::iter::once(value)
            .chain(chain.iter().map(|&(_, base)| base))
            .take_while(|value| value.truncatable)
            .count();
        let abstract_bases = self.abstract_bases(def.id);
        let views = self.operation_traits(def.id, value, &chain, at);
        let modifier = match value {
            Value { custom: true, .. } => "custom",
            Value { truncatable: true, .. } => "truncatable",
            _ => "plain",
        };
        let mut derives = self.derives(def.id, true);
        let state = value.state.iter().map(|state| &state.member);
        let mut defaults = self.defaults(state, at).filter(|_| derives.contains(&"Default"));
        if let Some(defaults) = &mut defaults {
            derives.retain(|&derive| derive != "Default");
            if !chain.is_empty() {
                defaults.insert(0, "Default::default()".into());
            }
        }
        tree::Value {
            name: names.own.as_str().into(),
            type_code: self.type_code(def),
            derives,
            defaults,
            modifier,
            base: chain.first().map(|&(id, _)| {
                let description = self.path_to(id, &self.names.of(id).type_code, at);
                (self.base_field(value), self.path(id, at), format!("&{description}").into())
            }),
            bases: chain.iter().map(|&(id, _)| self.path(id, at)).collect(),
            truncatable,
            abstract_bases: abstract_bases
                .into_iter()
                .map(|id| (self.path(id, at), self.has_no_operations(id)))
                .collect(),
            views,
            fields: value.state.iter().zip(fields).map(|(state, name)| self.state(state, name, at)).collect(),
            operations: (!methods.is_empty()).then(|| tree::Operations {
                docs: vec![
                    format!(
                        "The operations of the IDL valuetype `{}`; its struct may implement them.",
                        self.scoped(def)
                    )
                    .into(),
                ],
                name: names.operations.as_str().into(),
                supertraits: Vec::new(),
                methods,
            }),
        }
    }

    fn state(&'a self, state: &'a StateMember, name: Text<'a>, at: &Place<'a>) -> (tree::Field<'a>, bool) {
        let member = &state.member;
        let docs = match state.public {
            true => doc_lines(&member.docs),
            false => with_docs(&member.docs, "Private in IDL.".into()),
        };
        let idl = unlike(&member.name, &name);
        let ty = self.element(&member.ty, at);
        (tree::Field { docs, name, idl, ty, codec: self.described(&member.ty, at) }, state.public)
    }

    fn state_names(&'a self, value: &'a Value) -> Vec<Text<'a>> {
        side_by_side(value.state.iter().map(|state| state.member.name.as_str()), snake)
    }

    /// The field that holds the state of the concrete base.
    fn base_field(&'a self, value: &'a Value) -> Text<'a> {
        let taken = self.state_names(value);
        let mut name = "base".to_owned();
        while taken.iter().any(|taken| *taken == name) {
            name.push('_');
        }
        name.into()
    }

    /// The bases with state, nearest first.
    fn concrete_bases(&'a self, id: DefId) -> Vec<(DefId, &'a Value)> {
        let mut found = Vec::new();
        let mut at = id;
        while let DefKind::Value(value) = &self.model.get(at).kind
            && let Some(&base) = value.bases.first()
            && let DefKind::Value(base_value) = &self.model.get(base).kind
            && !base_value.is_abstract
        {
            found.push((base, base_value));
            at = base;
        }
        found
    }

    fn abstract_bases(&'a self, id: DefId) -> Vec<DefId> {
        let is_abstract =
            |id: &DefId| matches!(&self.model.get(*id).kind, DefKind::Value(value) if value.is_abstract);
        self.model.all_bases(id).into_iter().filter(is_abstract).collect()
    }

    /// Whether the trait of an abstract valuetype has no methods, so that every valuetype can implement it.
    fn has_no_operations(&'a self, id: DefId) -> bool {
        let is_plain = |id: DefId| match &self.model.get(id).kind {
            DefKind::Value(value) => !value.items.iter().any(|&item| self.is_callable(item)),
            _ => false,
        };
        is_plain(id) && self.model.all_bases(id).into_iter().all(is_plain)
    }

    fn is_callable(&'a self, id: DefId) -> bool {
        matches!(self.model.get(id).kind, DefKind::Operation(_) | DefKind::Attribute(_))
    }

    /// The traits of the operations of a value and of its concrete bases, and of the interfaces that it or any of
    /// its bases supports.
    fn operation_traits(
        &'a self,
        id: DefId,
        value: &'a Value,
        chain: &[(DefId, &Value)],
        at: &Place<'a>,
    ) -> Vec<Text<'a>> {
        let mut traits = Vec::new();
        for (id, value) in std::iter::once((id, value)).chain(chain.iter().copied()) {
            if value.items.iter().any(|&item| self.is_callable(item)) {
                traits.push(self.path_to(id, &self.names.of(id).operations, at));
            }
        }
        let mut supported = Vec::new();
        for id in std::iter::once(id).chain(self.model.all_bases(id)) {
            let DefKind::Value(value) = &self.model.get(id).kind else { continue };
            for &interface in &value.supports {
                for id in std::iter::once(interface).chain(self.model.all_bases(interface)) {
                    if !supported.contains(&id) {
                        supported.push(id);
                        traits.push(self.path(id, at));
                    }
                }
            }
        }
        traits
    }

    fn factory(
        &'a self,
        def: &'a Definition,
        (index, factory): (usize, &'a Factory),
        at: &Place<'a>,
    ) -> tree::Method<'a> {
        let DefKind::Value(value) = &def.kind else { return tree::Method::default() };
        let methods = side_by_side(value.factories.iter().map(|factory| factory.name.as_str()), snake);
        let parameters = side_by_side(factory.parameters.iter().map(|p| p.name.as_str()), snake);
        let parameters = factory.parameters.iter().zip(parameters).map(|(parameter, name)| {
            let (ty, way) = self.parameter(&parameter.ty, at);
            tree::Parameter { name, ty, way }
        });
        let names = self.names.of(def.id);
        tree::Method {
            docs: vec![format!("IDL factory `{}`.", factory.name).into()],
            name: methods.into_iter().nth(index).unwrap_or_default(),
            parameters: parameters.collect(),
            results: vec![format!("{}<{}>", self.support("Value", at), names.own).into()],
            error: self.error(
                def,
                &factory.raises,
                names.factory_errors.get(index).map_or("", String::as_str),
                at,
            ),
            ..tree::Method::default()
        }
    }

    pub(super) fn value_box(
        &'a self,
        def: &'a Definition,
        value: &'a ValueBox,
        at: &Place<'a>,
    ) -> tree::ItemKind<'a> {
        tree::ItemKind::ValueBox(tree::ValueBox {
            name: self.names.of(def.id).own.as_str().into(),
            type_code: self.type_code(def),
            derives: self.derives(def.id, true),
            ty: self.element(&value.ty, at),
            content: self.described(&value.ty, at),
        })
    }
}
