//! Interfaces: the trait, the typed reference, the errors of operations and the table of operations.

use ironorb_idl::model::{
    Attribute, Caching, DefId, DefKind, Definition, Direction, Distribution, Interface, InterfaceKind, Join,
    Model, Operation, Reduction, Type,
};

use super::types::joined;
use super::{Lowerer, Place, with_docs};
use crate::hash::PerfectHash;
use crate::names::{Taken, camel, is_cached, is_cached_read, side_by_side, snake};
use crate::owned;
use crate::tree::{self, Text};

impl<'a> Lowerer<'a> {
    pub(super) fn interface(
        &'a self,
        def: &'a Definition,
        interface: &'a Interface,
        at: &Place<'a>,
    ) -> Vec<tree::Item<'a>> {
        let names = self.names.of(def.id);
        let is_local = interface.kind == InterfaceKind::Local;
        let lowered = tree::Interface {
            name: names.own.as_str().into(),
            supertraits: interface.bases.iter().map(|&base| self.path(base, at)).collect(),
            methods: interface
                .items
                .iter()
                .filter(|&&id| !is_cached_read(self.model, id))
                .flat_map(|&id| {
                    // The getter of a cached attribute is no method of servants.
                    let methods = self.methods(def, id, at).into_iter();
                    methods.skip(usize::from(is_cached(self.model, id)))
                })
                .collect(),
            has_defaults: !is_local && self.config.has_defaults(&self.scoped(def)),
            cached: self.cached(def, interface, at),
            type_code: self.type_code(def),
            remote: (!is_local).then(|| self.remote(def, interface, at)),
        };
        let what = match interface.kind {
            InterfaceKind::Remote => "interface",
            InterfaceKind::Abstract => "abstract interface",
            InterfaceKind::Local => "local interface",
        };
        let mut items =
            vec![tree::Item { docs: self.docs(def, what), kind: tree::ItemKind::Interface(lowered) }];
        let errors = self.operation_errors(&interface.items, &at.inside(def.id, &names.inner));
        let errors = (!errors.is_empty())
            .then(|| tree::Item { docs: Vec::new(), kind: tree::ItemKind::OperationErrors(errors) });
        let reads = self.reads(def, interface, &names.reads, &at.inside(def.id, &names.inner)).map(|reads| {
            let doc = [
                "The operations of the IDL interface `",
                &self.scoped(def),
                "` that are functions of its cached attributes.",
            ];
            tree::Item { docs: vec![joined(&doc)], kind: tree::ItemKind::Reads(reads) }
        });
        let first = errors.into_iter().chain(reads).collect();
        items.extend(self.inner_module(def, what, first, &interface.items, at));
        items
    }

    /// The attributes of an interface that clients may cache.
    fn cached(
        &'a self,
        def: &'a Definition,
        interface: &'a Interface,
        at: &Place<'a>,
    ) -> Option<tree::Cached<'a>> {
        let member = |&id: &DefId| {
            let attribute = match &self.model.get(id).kind {
                DefKind::Attribute(attribute) => attribute,
                _ => return None,
            };
            let lag_nanos = attribute.caching.as_ref()?.lag.map_or(0, |lag| lag.as_nanos());
            let method = self.attribute(def, self.model.get(id), attribute, at).into_iter().next()?;
            Some(tree::CachedMember { method, with: self.names.of(id).with.as_str().into(), lag_nanos })
        };
        let members: Vec<_> = interface.items.iter().filter_map(member).collect();
        if members.is_empty() {
            return None;
        }
        let fits_word =
            |member: &tree::CachedMember<'_>| WORDS.contains(&member.method.results.join(" ").as_str());
        let names = self.names.of(def.id);
        let doc = joined(&["The cached attributes of the IDL interface `", &self.scoped(def), "`."]);
        Some(tree::Cached {
            docs: vec![doc],
            state: names.state.as_str().into(),
            update: names.update.as_str().into(),
            storage: if members.iter().all(fits_word) { "words" } else { "shared" },
            reads: self.reads(def, interface, &joined(&[&names.inner, "::", &names.reads]), at),
            mode: interface.items.iter().find_map(|id| caching(self.model, *id)).and_then(mode),
            members,
        })
    }

    /// The operations that clients run over the state that they hold.
    fn reads(
        &'a self,
        def: &'a Definition,
        interface: &'a Interface,
        path: &str,
        at: &Place<'a>,
    ) -> Option<tree::Reads<'a>> {
        let reads = interface.items.iter().filter(|&&id| is_cached_read(self.model, id));
        let methods: Vec<_> = reads.flat_map(|&id| self.methods(def, id, at)).collect();
        (!methods.is_empty()).then(|| tree::Reads { path: path.to_owned().into(), methods })
    }

    fn remote(&'a self, def: &'a Definition, interface: &'a Interface, at: &Place<'a>) -> tree::Remote<'a> {
        let mut operations = wire_names(self, &interface.items);
        let own = 0..operations.len();
        let mut bases = Vec::new();
        for base in self.model.all_bases(def.id) {
            let first = operations.len();
            if let DefKind::Interface(interface) = &self.model.get(base).kind {
                operations.extend(wire_names(self, &interface.items));
            }
            let names = self.names.of(base);
            bases.push(tree::Base {
                reference: self.path_to(base, &names.reference, at),
                name: self.path(base, at),
                deferred: self.path_to(base, &names.deferred, at),
                repository_id: self.model.get(base).repository_id.as_str().into(),
                operations: first..operations.len(),
            });
        }
        let names: Vec<&str> = operations.iter().map(|name| &**name).collect();
        let table = PerfectHash::of(&names);
        let names = self.names.of(def.id);
        tree::Remote {
            docs: vec![
                format!("A reference to an object of the IDL interface `{}`.", self.scoped(def)).into(),
            ],
            reference: names.reference.as_str().into(),
            skeleton: names.skeleton.as_str().into(),
            asynchronous: names.asynchronous.as_str().into(),
            deferred: names.deferred.as_str().into(),
            parallel: self.parallel(def, interface, at),
            is_abstract: interface.kind == InterfaceKind::Abstract,
            bases,
            table,
            operations,
            own,
        }
    }

    /// The operations that parts of an object carry out together.
    fn parallel(
        &'a self,
        def: &'a Definition,
        interface: &'a Interface,
        at: &Place<'a>,
    ) -> Option<tree::Parallel<'a>> {
        let method = |&id: &DefId| {
            let item = self.model.get(id);
            let DefKind::Operation(operation) = &item.kind else { return None };
            let parallel = operation.parallel.as_ref()?;
            let mut method = self.operation(def, item, operation, at);
            let mut ways = Vec::new();
            let ins = operation.parameters.iter().enumerate();
            let ins = ins.filter(|(_, parameter)| parameter.direction != Direction::Out);
            for ((place, parameter), lowered) in ins.zip(&mut method.parameters) {
                (lowered.ty, lowered.way) = self.parameter(&parameter.ty, at);
                let is_owned = owned::is_owned(parameter) && parameter.direction == Direction::In;
                ways.push(match (parallel.shared.contains(&place), is_owned) {
                    (true, false) => "shared",
                    (false, false) => "whole",
                    (true, true) => "shared_owned",
                    (false, true) => "whole_owned",
                });
            }
            let distribution = match parallel.distribution {
                Distribution::Block => "Block",
                Distribution::Cyclic => "Cyclic",
            };
            let joins = parallel.joins.iter().map(|join| self.support(join_name(*join), at)).collect();
            Some(tree::ParallelMethod { method, ways, distribution, joins })
        };
        let methods: Vec<_> = interface.items.iter().filter_map(method).collect();
        let name = self.names.of(def.id).parallel.as_str();
        (!methods.is_empty()).then(|| tree::Parallel { name: name.into(), methods })
    }

    pub(super) fn methods(
        &'a self,
        interface: &'a Definition,
        id: DefId,
        at: &Place<'a>,
    ) -> Vec<tree::Method<'a>> {
        let def = self.model.get(id);
        match &def.kind {
            DefKind::Operation(operation) => vec![self.operation(interface, def, operation, at)],
            DefKind::Attribute(attribute) => self.attribute(interface, def, attribute, at),
            _ => Vec::new(),
        }
    }

    fn operation(
        &'a self,
        interface: &'a Definition,
        def: &'a Definition,
        operation: &'a Operation,
        at: &Place<'a>,
    ) -> tree::Method<'a> {
        let ins = operation.parameters.iter().filter(|parameter| parameter.direction != Direction::Out);
        let mut names = side_by_side(ins.map(|parameter| parameter.name.as_str()), snake).into_iter();
        let mut parameters = Vec::new();
        let mut results = Vec::new();
        let mut codecs = Vec::new();
        let mut words: Vec<String> = Vec::new();
        if operation.result != Type::Void {
            results.push(self.rust(&operation.result, at));
            codecs.push(self.result_codec(&operation.result, at));
            words.push("its result".to_owned());
        }
        for parameter in &operation.parameters {
            if parameter.direction != Direction::Out {
                let (ty, way) = match owned::is_owned(parameter) {
                    true => self.owned_parameter(&parameter.ty, at),
                    false => self.parameter(&parameter.ty, at),
                };
                parameters.push(tree::Parameter { name: names.next().unwrap_or_default(), ty, way });
            }
            if parameter.direction != Direction::In {
                results.push(self.rust(&parameter.ty, at));
                codecs.push(self.result_codec(&parameter.ty, at));
                words.push(format!("`{}`", parameter.name));
            }
        }
        let gives = match words.as_slice() {
            [] => String::new(),
            [word] if word == "its result" => String::new(),
            words => format!("; gives {}", words.join(", ")),
        };
        tree::Method {
            docs: with_docs(&def.docs, joined(&["IDL operation `", &def.name, "`", &gives, "."])),
            name: self.names.of(def.id).own.as_str().into(),
            later: self.names.of(def.id).later.as_str().into(),
            parameters,
            results,
            result_codecs: codecs,
            joined_codec: self.support("Results", at),
            error: self.error(interface, &operation.raises, &self.names.of(def.id).error, at),
            oneway: operation.oneway,
            bounded: std::iter::once(&operation.result)
                .chain(operation.parameters.iter().map(|parameter| &parameter.ty))
                .any(|ty| !self.layout.facts(ty).unbounded),
            context: operation.context.as_deref(),
            timing: operation.timing,
            is_idempotent: operation.is_idempotent && !operation.is_cached,
            wire_name: def.name.as_str().into(),
        }
    }

    fn attribute(
        &'a self,
        interface: &'a Definition,
        def: &'a Definition,
        attribute: &'a Attribute,
        at: &Place<'a>,
    ) -> Vec<tree::Method<'a>> {
        let names = self.names.of(def.id);
        let mut methods = vec![tree::Method {
            docs: with_docs(&def.docs, joined(&["Reads the IDL attribute `", &def.name, "`."])),
            name: names.own.as_str().into(),
            later: names.later.as_str().into(),
            parameters: Vec::new(),
            results: vec![self.rust(&attribute.ty, at)],
            result_codecs: vec![self.result_codec(&attribute.ty, at)],
            joined_codec: self.support("Results", at),
            error: self.error(interface, &attribute.get_raises, &names.error, at),
            oneway: false,
            bounded: !self.layout.facts(&attribute.ty).unbounded,
            context: None,
            timing: attribute.timing,
            is_idempotent: false,
            wire_name: getter(def),
        }];
        if !attribute.readonly {
            let (ty, way) = self.parameter(&attribute.ty, at);
            methods.push(tree::Method {
                docs: vec![joined(&["Writes the IDL attribute `", &def.name, "`."])],
                name: names.setter.as_str().into(),
                later: names.setter_later.as_str().into(),
                parameters: vec![tree::Parameter { name: "value".into(), ty, way }],
                results: Vec::new(),
                result_codecs: Vec::new(),
                joined_codec: self.support("Results", at),
                error: self.error(interface, &attribute.set_raises, &names.setter_error, at),
                oneway: false,
                bounded: !self.layout.facts(&attribute.ty).unbounded,
                context: None,
                timing: attribute.timing,
                is_idempotent: attribute.is_idempotent,
                wire_name: setter(def),
            });
        }
        methods
    }

    /// The error type of an operation: its own enum when it raises something.
    pub(super) fn error(
        &'a self,
        interface: &'a Definition,
        raises: &[DefId],
        own: &'a str,
        at: &Place<'a>,
    ) -> Text<'a> {
        if raises.is_empty() {
            self.support("SystemException", at)
        } else {
            joined(&[&self.names.of(interface.id).inner, "::", own])
        }
    }

    /// The error enums of one interface or valuetype, for its inner module.
    pub(super) fn operation_errors(
        &'a self,
        items: &[DefId],
        at: &Place<'a>,
    ) -> Vec<tree::OperationError<'a>> {
        let mut errors = Vec::new();
        for &id in items {
            let (def, names) = (self.model.get(id), self.names.of(id));
            match &def.kind {
                DefKind::Operation(operation) => {
                    errors.extend(self.operation_error(&def.name, &names.error, &operation.raises, at));
                }
                DefKind::Attribute(attribute) => {
                    let (reading, writing) = (&attribute.get_raises, &attribute.set_raises);
                    errors.extend(self.error_of("reading ", &def.name, &names.error, reading, at));
                    errors.extend(self.error_of("writing ", &def.name, &names.setter_error, writing, at));
                }
                _ => {}
            }
        }
        errors
    }

    /// The error enum of an operation or factory that raises something.
    pub(super) fn operation_error(
        &'a self,
        idl: &str,
        name: &'a str,
        raises: &[DefId],
        at: &Place<'a>,
    ) -> Option<tree::OperationError<'a>> {
        self.error_of("", idl, name, raises, at)
    }

    fn error_of(
        &'a self,
        verb: &str,
        idl: &str,
        name: &'a str,
        raises: &[DefId],
        at: &Place<'a>,
    ) -> Option<tree::OperationError<'a>> {
        if raises.is_empty() {
            return None;
        }
        let mut variants = Taken::with(&["System"]);
        let exceptions = raises
            .iter()
            .map(|&id| (variants.take(camel(&self.model.get(id).name)).into(), self.path(id, at)));
        Some(tree::OperationError {
            docs: vec![joined(&["Why ", verb, "`", idl, "` failed."])],
            name: name.into(),
            exceptions: exceptions.collect(),
        })
    }
}

/// The operation names in requests of the interface's own operations and attributes, in the order of its
/// methods; the getters of cached attributes, and the operations that clients run over them, are the last.
fn wire_names<'a>(lowerer: &'a Lowerer<'a>, items: &[DefId]) -> Vec<Text<'a>> {
    let mut names = Vec::new();
    for &id in items {
        let def = lowerer.model.get(id);
        match &def.kind {
            DefKind::Operation(operation) if operation.is_cached => {}
            DefKind::Operation(_) => names.push(def.name.as_str().into()),
            DefKind::Attribute(attribute) => {
                if attribute.caching.is_none() {
                    names.push(getter(def));
                }
                if !attribute.readonly {
                    names.push(setter(def));
                }
            }
            _ => {}
        }
    }
    let cached = items.iter().filter(|id| is_cached(lowerer.model, **id));
    names.extend(cached.map(|&id| getter(lowerer.model.get(id))));
    let reads = items.iter().filter(|id| is_cached_read(lowerer.model, **id));
    names.extend(reads.map(|&id| lowerer.model.get(id).name.as_str().into()));
    names
}

/// The type of the support module that joins results.
fn join_name(join: Join) -> &'static str {
    match join {
        Join::Concatenated => "Concatenated",
        Join::Reduced(Reduction::Sum) => "Sum",
        Join::Reduced(Reduction::Product) => "Product",
        Join::Reduced(Reduction::Min) => "Min",
        Join::Reduced(Reduction::Max) => "Max",
        Join::Reduced(Reduction::And) => "And",
        Join::Reduced(Reduction::Or) => "Or",
        Join::Reduced(Reduction::First) => "First",
        Join::Reduced(Reduction::Equal) => "Equal",
    }
}

fn caching(model: &Model, id: DefId) -> Option<&Caching> {
    match &model.get(id).kind {
        DefKind::Attribute(attribute) => attribute.caching.as_ref(),
        _ => None,
    }
}

/// How clients are told of changes, which is the same for all cached attributes of an interface.
fn mode(caching: &Caching) -> Option<(&'static str, u32)> {
    match caching.missed_max() {
        Some(missed_max) => Some(("missed", missed_max)),
        None => caching.is_pushed().then_some(("pushed", 0)),
    }
}

/// The Rust types that fit a word of 64 bits, so that clients read them without a lock or a copy of the rest.
const WORDS: [&str; 12] =
    ["bool", "char", "u8", "i8", "u16", "i16", "u32", "i32", "u64", "i64", "f32", "f64"];

// CORBA 3.3 part 2, 9.4.2: the operation names of attributes.
fn getter(def: &Definition) -> Text<'_> {
    joined(&["_get_", &def.name])
}

fn setter(def: &Definition) -> Text<'_> {
    joined(&["_set_", &def.name])
}
