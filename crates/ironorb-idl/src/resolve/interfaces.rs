//! Interfaces: inheritance, operations, attributes.

use std::rc::Rc;

use super::Resolver;
use super::scope::{ScopeId, ScopeKind, What};
use crate::ast;
use crate::model::{
    Attribute, ConstValue, DefId, DefKind, Direction, Interface, InterfaceKind, Operation, Parameter, Type,
};
use crate::source::Span;

impl Resolver<'_> {
    pub(super) fn interface(&mut self, lead: &ast::Lead, interface: &ast::Interface, scope: ScopeId) {
        let name = interface.name;
        let own_kind = self.interface_kind(interface, scope);
        let caching = self.interface_caching(lead, own_kind, scope);
        let existing = self.own_definition(scope, name.name);
        let existing = existing.and_then(|id| match &self.model.get(id).kind {
            DefKind::Interface(old) => Some((id, old.kind, old.defined)),
            _ => None,
        });
        let new = |defined| Interface { kind: own_kind, bases: Vec::new(), items: Vec::new(), defined };
        if let Some((id, kind, _)) = existing
            && kind != own_kind
        {
            let first = self.model.get(id).span;
            let text = self.text(name.name).to_owned();
            self.diags.interface_kind_differs(name.span, &text, kind_word(kind), kind_word(own_kind), first);
        }
        let Some(items) = &interface.items else {
            match existing {
                Some((id, ..)) => self.check_spelling(id, name),
                None => {
                    let id = self.define(lead, name, scope, DefKind::Interface(new(false)));
                    self.states[id.index()].local = own_kind == InterfaceKind::Local;
                }
            }
            return;
        };
        let id = match existing {
            Some((id, _, false)) => {
                self.complete_forward(id, lead, name, scope);
                id
            }
            _ => self.define(lead, name, scope, DefKind::Interface(new(false))),
        };
        self.states[id.index()].local = own_kind == InterfaceKind::Local;
        let bases = self.interface_bases(id, interface, scope);
        let inner = self.open_scope(ScopeKind::Interface, id, scope);
        self.inherit(inner, id, &bases);
        if let DefKind::Interface(body) = &mut self.model.definitions[id.index()].kind {
            body.kind = own_kind;
            body.bases = bases.iter().map(|&(base, _)| base).collect();
            body.defined = true;
        }
        self.check_inherited_clash(inner, name);
        let outer = self.enter_prefix(id);
        self.caching_of_interface = caching;
        self.items(items, inner);
        self.caching_of_interface = None;
        self.check_cached_state(inner);
        self.prefix = outer;
    }

    fn interface_bases(
        &mut self,
        id: DefId,
        interface: &ast::Interface,
        scope: ScopeId,
    ) -> Vec<(DefId, Span)> {
        let mut bases: Vec<(DefId, Span)> = Vec::new();
        for name in &interface.bases {
            let Some(base) = self.lookup_base(name, scope) else { continue };
            let definition = self.model.get(base);
            let (shown, span) = (self.shown(base), definition.span);
            if base == id {
                self.diags.own_base(name.span, &shown);
                continue;
            }
            let DefKind::Interface(body) = &definition.kind else {
                let kind = self.kind_word(base);
                self.diags.not_an_interface(name.span, &shown, kind, span);
                continue;
            };
            let (base_kind, defined) = (body.kind, body.defined);
            if !self.can_join(base, name.span, defined, &bases) {
                continue;
            }
            match (interface.kind, base_kind) {
                (InterfaceKind::Remote, InterfaceKind::Local) => {
                    self.diags.base_is_local(name.span, &shown, span, "an interface that is not local");
                }
                (InterfaceKind::Abstract, InterfaceKind::Remote | InterfaceKind::Local) => {
                    self.diags.base_is_not_abstract(name.span, &shown, span, "interface");
                }
                _ => {}
            }
            bases.push((base, name.span));
        }
        bases
    }

    /// Resolves a name in a list of bases: a typedef stands for the interface or valuetype that it names.
    pub(super) fn lookup_base(&mut self, name: &ast::ScopedName, scope: ScopeId) -> Option<DefId> {
        let named = self.lookup(name, scope)?;
        let root = self.states[named.index()].root;
        let is_base = matches!(self.model.get(root).kind, DefKind::Interface(_) | DefKind::Value(_));
        Some(if is_base { root } else { named })
    }

    /// Whether a definition of the right kind may stand in a list of bases: it is defined, and not in the list yet.
    pub(super) fn can_join(
        &mut self,
        base: DefId,
        place: Span,
        defined: bool,
        list: &[(DefId, Span)],
    ) -> bool {
        if !defined {
            let (shown, span) = (self.shown(base), self.model.get(base).span);
            self.diags.base_not_defined(place, &shown, span);
            self.states[base.index()].broken = true;
            return false;
        }
        if let Some(&(_, first)) = list.iter().find(|&&(other, _)| other == base) {
            let shown = self.shown(base);
            self.diags.duplicate_base(place, &shown, first);
            return false;
        }
        true
    }

    /// Makes the names of the bases visible in the scope.
    pub(super) fn inherit(&mut self, inner: ScopeId, id: DefId, bases: &[(DefId, Span)]) {
        let direct = bases.iter().filter_map(|&(base, _)| self.states[base.index()].scope);
        let direct: Vec<ScopeId> = direct.collect();
        let mut all: Vec<ScopeId> = Vec::new();
        let mut seen = std::collections::HashSet::new();
        let size = direct.iter().map(|base| 1 + self.scopes[base.index()].ancestors.len()).sum();
        if !self.may_inherit(size) {
            return;
        }
        for &base in &direct {
            let further = self.scopes[base.index()].ancestors.clone();
            for &scope in std::iter::once(&base).chain(further.iter()) {
                if seen.insert(scope) {
                    all.push(scope);
                }
            }
        }
        if all.len() > self.options.bases_max {
            let span = self.model.get(id).span;
            self.diags.too_many_bases(span, all.len(), self.options.bases_max);
            all.truncate(0);
        }
        self.states[id.index()].base_count = all.len() as u32;
        let scope = &mut self.scopes[inner.index()];
        scope.bases = direct;
        scope.ancestors = Rc::from(all);
    }

    /// Checks that no two bases have operations or attributes of one name (CORBA 3.3 part 1, 7.8.5).
    pub(super) fn check_inherited_clash(&mut self, inner: ScopeId, name: ast::Ident) {
        if self.scopes[inner.index()].bases.len() < 2 {
            return;
        }
        // For each name, the feature that has it and the interface for which it was found.
        let mut seen = std::mem::take(&mut self.seen_features);
        seen.resize(self.unit.interner.len(), (ScopeId::FILE, DefId(0)));
        for &base in self.scopes[inner.index()].ancestors.clone().iter() {
            if !self.may_inherit(self.scopes[base.index()].items.len()) {
                break;
            }
            for &item in &self.scopes[base.index()].items {
                if !self.is_feature(item) {
                    continue;
                }
                let fold = self.unit.interner.fold(self.states[item.index()].name);
                let slot = &mut seen[fold.index()];
                if slot.0 != inner {
                    *slot = (inner, item);
                }
                let first = slot.1;
                if first != item {
                    let text = self.text(name.name).to_owned();
                    let (one, other) = (self.shown(first), self.shown(item));
                    let spans = (self.model.get(first).span, self.model.get(item).span);
                    self.diags.inherited_clash(name.span, &text, (&one, spans.0), (&other, spans.1));
                }
            }
        }
        self.seen_features = seen;
    }

    /// An operation or attribute.
    pub(super) fn is_feature(&self, id: DefId) -> bool {
        matches!(self.model.get(id).kind, DefKind::Operation(_) | DefKind::Attribute(_))
    }

    /// Checks that a derived interface does not redefine an operation or attribute.
    pub(super) fn check_redefines_inherited(&mut self, name: ast::Ident, scope: ScopeId) {
        let fold = self.unit.interner.fold(name.name);
        if !self.may_inherit(self.scopes[scope.index()].ancestors.len()) {
            return;
        }
        for &base in self.scopes[scope.index()].ancestors.clone().iter() {
            let like_type = self.named_like_types.get(&(base, fold));
            if let Some(entry) = like_type.or_else(|| self.entries.get(&(base, fold)))
                && let What::Definition(id) = entry.what
                && self.is_feature(id)
            {
                let text = self.text(name.name).to_owned();
                let (kind, shown, span) = (self.kind_word(id), self.shown(id), self.model.get(id).span);
                self.diags.redefines_inherited(name.span, &text, kind, &shown, span);
                return;
            }
        }
    }

    pub(super) fn operation(&mut self, lead: &ast::Lead, operation: &ast::Operation, scope: ScopeId) {
        let name = operation.name;
        let result = match operation.result.kind {
            ast::TypeKind::Void => Some(Type::Void),
            _ => self.ty(&operation.result, scope),
        };
        if let Some(result) = &result {
            self.require_complete(result, operation.result.span);
            self.check_constructible(result, operation.result.span, "a result");
            self.check_local_use(result, operation.result.span, scope);
        }
        let inner = self.open_parameter_scope(scope);
        self.expect_parallel(lead, operation, scope);
        let parameters = self.parameters(&operation.parameters, inner, scope);
        let raises = self.raises(operation.raises.as_ref(), scope);
        let mut context = None;
        if let Some(names) = &operation.context {
            let mut list = Vec::new();
            for name in names {
                let target = super::constants::Target::String(None);
                if let Some(ConstValue::String(text)) = self.evaluate(name, &target, scope) {
                    self.check_context_name(&text, name.span);
                    list.push(text);
                }
            }
            context = Some(list);
        }
        if let Some(oneway) = operation.oneway {
            self.check_oneway(operation, oneway);
        }
        let timing = self.timing(lead, scope);
        let is_cached = self.is_cached_read(lead, operation, scope);
        let is_idempotent = self.is_idempotent(lead, scope) || is_cached;
        let parallel = self.parallel(lead, operation, (result.as_ref(), &parameters), is_cached, scope);
        let operation = Operation {
            oneway: operation.oneway.is_some(),
            result: result.unwrap_or(Type::Void),
            parameters,
            raises,
            context,
            timing,
            is_cached,
            is_idempotent,
            parallel,
        };
        self.define(lead, name, scope, DefKind::Operation(operation));
    }

    fn check_oneway(&mut self, operation: &ast::Operation, oneway: Span) {
        let text = self.text(operation.name.name).to_owned();
        if !matches!(operation.result.kind, ast::TypeKind::Void) {
            self.diags.oneway_with_result(operation.result.span, &text, oneway);
        }
        for parameter in &operation.parameters {
            if parameter.direction != Direction::In {
                let parameter_text = self.text(parameter.name.name).to_owned();
                self.diags.oneway_with_out(parameter.direction_span, &text, &parameter_text, oneway);
            }
        }
        if let Some(raises) = &operation.raises {
            self.diags.oneway_with_raises(raises.span, &text, oneway);
        }
    }

    /// 7.11.6: a letter, then letters, digits, points and underscores, with `*` only at the end.
    fn check_context_name(&mut self, text: &str, span: Span) {
        let stem = text.strip_suffix('*').unwrap_or(text);
        let well_formed = stem.starts_with(|char: char| char.is_ascii_alphabetic())
            && stem.chars().all(|char| char.is_ascii_alphanumeric() || char == '.' || char == '_');
        if !well_formed {
            self.diags.bad_context_name(span, text);
        }
    }

    pub(super) fn parameters(
        &mut self,
        parameters: &[ast::Parameter],
        inner: ScopeId,
        scope: ScopeId,
    ) -> Vec<Parameter> {
        let mut list = Vec::with_capacity(parameters.len());
        for parameter in parameters {
            let annotations = self.annotations(&parameter.lead, scope);
            let ty = self.ty(&parameter.ty, inner);
            if let Some(ty) = &ty {
                self.require_complete(ty, parameter.ty.span);
                self.check_constructible(ty, parameter.ty.span, "a parameter");
                self.check_local_use(ty, parameter.ty.span, scope);
            }
            self.declare(inner, parameter.name, What::Member);
            if let Some(ty) = ty {
                let name = self.text(parameter.name.name).to_owned();
                let (direction, span) = (parameter.direction, parameter.name.span);
                list.push(Parameter { direction, ty, name, span, annotations });
            }
        }
        list
    }

    pub(super) fn raises(&mut self, raises: Option<&ast::Raises>, scope: ScopeId) -> Vec<DefId> {
        let mut list: Vec<DefId> = Vec::new();
        for name in raises.map_or(&[][..], |raises| &raises.names) {
            let Some(id) = self.lookup(name, scope) else { continue };
            if matches!(self.model.get(id).kind, DefKind::Native)
                && let Some(remote) = self.remote_interface(scope)
            {
                let native = self.shown(id);
                self.diags.native_in_remote(name.span, &native, &remote);
            }
            let definition = self.model.get(id);
            if !matches!(definition.kind, DefKind::Exception(_) | DefKind::Native) {
                let (kind, shown, span) = (self.kind_word(id), self.shown(id), definition.span);
                self.diags.not_an_exception(name.span, &shown, kind, span);
            } else if list.contains(&id) {
                let shown = self.shown(id);
                self.diags.raised_twice(name.span, &shown);
            } else {
                list.push(id);
            }
        }
        list
    }

    pub(super) fn attribute(&mut self, lead: &ast::Lead, attribute: &ast::Attribute, scope: ScopeId) {
        let ty = self.ty(&attribute.ty, scope);
        if let Some(ty) = &ty {
            self.require_complete(ty, attribute.ty.span);
            self.check_constructible(ty, attribute.ty.span, "an attribute");
            self.check_local_use(ty, attribute.ty.span, scope);
        }
        let get_raises = self.raises(attribute.get_raises.as_ref(), scope);
        let set_raises = self.raises(attribute.set_raises.as_ref(), scope);
        let timing = self.timing(lead, scope);
        let caching = self.attribute_caching(lead, attribute, scope);
        let is_idempotent = self.is_idempotent(lead, scope);
        for &name in &attribute.names {
            let Some(ty) = ty.clone() else {
                self.define_broken(name, scope);
                continue;
            };
            let attribute = Attribute {
                readonly: attribute.readonly,
                ty,
                get_raises: get_raises.clone(),
                set_raises: set_raises.clone(),
                timing,
                caching: caching.clone(),
                is_idempotent,
            };
            self.define(lead, name, scope, DefKind::Attribute(attribute));
        }
    }

    /// Checks that only local interfaces and values use local types, which never leave the process, and
    /// native types, which have no bytes on the wire.
    fn check_local_use(&mut self, ty: &Type, span: Span, scope: ScopeId) {
        let native = self.native_in(ty);
        if native.is_none() && !self.is_local(ty) {
            return;
        }
        let Some(remote) = self.remote_interface(scope) else { return };
        match native {
            Some(native) => {
                let native = self.shown(native);
                self.diags.native_in_remote(span, &native, &remote);
            }
            None => self.diags.local_in_remote(span, &remote),
        }
    }

    /// The name of the interface that a scope belongs to, if it is not local.
    pub(super) fn remote_interface(&self, scope: ScopeId) -> Option<String> {
        let def = self.scopes[scope.index()].def?;
        match &self.model.get(def).kind {
            DefKind::Interface(interface) if interface.kind != InterfaceKind::Local => Some(self.shown(def)),
            _ => None,
        }
    }

    /// Whether a scope belongs to an interface that is neither local nor abstract.
    pub(super) fn is_in_plain_interface(&self, scope: ScopeId) -> bool {
        let kind = self.scopes[scope.index()].def.map(|def| &self.model.get(def).kind);
        matches!(kind, Some(DefKind::Interface(interface)) if interface.kind == InterfaceKind::Remote)
    }

    /// The native type that a type is or holds in sequences and arrays.
    pub(super) fn native_in(&self, ty: &Type) -> Option<DefId> {
        match ty {
            Type::Named(id) => self.states[id.index()].native,
            Type::Sequence { element, .. } | Type::Array { element, .. } => self.native_in(element),
            _ => None,
        }
    }
}

fn kind_word(kind: InterfaceKind) -> &'static str {
    match kind {
        InterfaceKind::Remote => "a plain interface",
        InterfaceKind::Abstract => "an abstract interface",
        InterfaceKind::Local => "a local interface",
    }
}
