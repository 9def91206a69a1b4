//! Types in use, structs and enums.

use super::Resolver;
use super::scope::{ScopeId, ScopeKind, What};
use crate::ast;
use crate::intern::{Class, Word};
use crate::model::{Basic, DefId, DefKind, Enum, Member, Struct, Type};
use crate::source::Span;

impl Resolver<'_> {
    /// Resolves a type; `None` after a report.
    pub(super) fn ty(&mut self, spec: &ast::TypeSpec, scope: ScopeId) -> Option<Type> {
        match &spec.kind {
            ast::TypeKind::Void => {
                self.diags.void_not_here(spec.span);
                None
            }
            ast::TypeKind::Basic(basic) => Some(Type::Basic(*basic)),
            ast::TypeKind::String { wide, bound } => {
                let bound = match bound {
                    Some(bound) => Some(self.positive(bound, scope, "the bound of a string")?),
                    None => None,
                };
                Some(if *wide { Type::WString { bound } } else { Type::String { bound } })
            }
            ast::TypeKind::Fixed(None) => Some(Type::Fixed { spec: None }),
            ast::TypeKind::Fixed(Some(spec)) => self.fixed_type(&spec.0, &spec.1, scope),
            ast::TypeKind::Sequence { element, bound } => {
                let element_type = self.ty(element, scope);
                let bound = match bound {
                    Some(bound) => Some(self.positive(bound, scope, "the bound of a sequence")?),
                    None => None,
                };
                let element_type = element_type?;
                self.check_constructible(&element_type, element.span, "an element");
                Some(Type::Sequence { element: Box::new(element_type), bound })
            }
            ast::TypeKind::Map { key, value, bound } => {
                let key_type = self.ty(key, scope);
                let value_type = self.ty(value, scope);
                let bound = match bound {
                    Some(bound) => Some(self.positive(bound, scope, "the bound of a map")?),
                    None => None,
                };
                let (key_type, value_type) = (key_type?, value_type?);
                self.check_constructible(&key_type, key.span, "a key");
                self.check_constructible(&value_type, value.span, "an element");
                self.check_key(&key_type, key.span)?;
                Some(Type::Map { key: Box::new(key_type), value: Box::new(value_type), bound })
            }
            ast::TypeKind::Named(name) => self.named_type(name, scope),
            ast::TypeKind::Struct(body) => self.structure(&ast::Lead::NONE, body, scope).map(Type::Named),
            ast::TypeKind::Union(body) => self.union(&ast::Lead::NONE, body, scope).map(Type::Named),
            ast::TypeKind::Enum(body) => Some(Type::Named(self.enumeration(&ast::Lead::NONE, body, scope))),
            ast::TypeKind::Bitset(body) => self.bitset(&ast::Lead::NONE, body, scope).map(Type::Named),
            ast::TypeKind::Bitmask(body) => self.bitmask(&ast::Lead::NONE, body, scope).map(Type::Named),
        }
    }

    fn named_type(&mut self, name: &ast::ScopedName, scope: ScopeId) -> Option<Type> {
        if let Some(basic) = self.implied_type(name, scope) {
            return Some(Type::Basic(basic));
        }
        let id = self.lookup(name, scope)?;
        if self.is_type_code(id) {
            return Some(Type::Basic(Basic::TypeCode));
        }
        let definition = self.model.get(id);
        match definition.kind {
            DefKind::Interface(_)
            | DefKind::Struct(_)
            | DefKind::Union(_)
            | DefKind::Enum(_)
            | DefKind::Typedef(_)
            | DefKind::Value(_)
            | DefKind::ValueBox(_)
            | DefKind::Native
            | DefKind::Bitset(_)
            | DefKind::Bitmask(_) => Some(Type::Named(id)),
            _ => {
                let (span, kind, shown) = (definition.span, self.kind_word(id), self.shown(id));
                self.diags.not_a_type(name.span, &shown, kind, span);
                None
            }
        }
    }

    /// Finds types without a definition: those of IDL 4 that have a counterpart, and `TypeCode` of `CORBA`,
    /// which many files use without including `orb.idl`.
    fn implied_type(&mut self, name: &ast::ScopedName, scope: ScopeId) -> Option<Basic> {
        let basic = match (name.rest.as_slice(), self.unit.interner.class(name.first.name)) {
            ([], Class::Word(Word::Integer(basic))) if !name.absolute => basic,
            ([], _) if self.text(name.first.name) == "TypeCode" && self.inside_corba(scope) => {
                Basic::TypeCode
            }
            ([second], _)
                if self.text(name.first.name) == "CORBA" && self.text(second.name) == "TypeCode" =>
            {
                Basic::TypeCode
            }
            _ => return None,
        };
        let defined = self.quietly(|resolver| resolver.lookup(name, scope).is_some());
        (!defined).then_some(basic)
    }

    fn inside_corba(&self, scope: ScopeId) -> bool {
        let mut at = Some(scope);
        while let Some(here) = at {
            let here = &self.scopes[here.index()];
            if here.parent == Some(ScopeId::FILE) {
                return here.def.is_some_and(|def| self.model.get(def).name == "CORBA");
            }
            at = here.parent;
        }
        false
    }

    /// `CORBA::TypeCode`, however a file declares it.
    pub(super) fn is_type_code(&self, id: DefId) -> bool {
        let definition = self.model.get(id);
        definition.name == "TypeCode"
            && matches!(definition.kind, DefKind::Native | DefKind::Interface(_))
            && definition.parent.is_some_and(|parent| {
                let parent = self.model.get(parent);
                parent.name == "CORBA" && parent.parent.is_none()
            })
    }

    fn fixed_type(&mut self, digits: &ast::Expr, scale: &ast::Expr, scope: ScopeId) -> Option<Type> {
        let (digits_span, scale_span) = (digits.span, scale.span);
        let digits = self.positive(digits, scope, "the number of digits");
        let scale = self.not_negative(scale, scope, "the scale");
        let (digits, scale) = (digits?, scale?);
        if digits > FIXED_DIGITS_MAX {
            self.diags.fixed_too_many_digits(digits_span, digits, FIXED_DIGITS_MAX);
            return None;
        }
        if scale > digits {
            self.diags.fixed_scale_too_large(scale_span, scale, digits);
            return None;
        }
        Some(Type::Fixed { spec: Some((digits as u16, scale as i16)) })
    }

    /// The type with the dimensions of its declarator.
    pub(super) fn declared_type(
        &mut self,
        base: Option<&Type>,
        declarator: &ast::Declarator,
        scope: ScopeId,
    ) -> Option<Type> {
        let mut dimensions = Vec::new();
        let mut complete = true;
        for dimension in &declarator.dimensions {
            match self.positive(dimension, scope, "the dimension of an array") {
                Some(dimension) => dimensions.push(dimension),
                None => complete = false,
            }
        }
        let base = base?.clone();
        if !complete {
            return None;
        }
        Some(if dimensions.is_empty() { base } else { Type::Array { element: Box::new(base), dimensions } })
    }

    /// A struct; the forward declaration and the definition are one.
    pub(super) fn structure(
        &mut self,
        lead: &ast::Lead,
        body: &ast::Struct,
        scope: ScopeId,
    ) -> Option<DefId> {
        let empty = |defined| {
            let (members, items) = (Vec::new(), Vec::new());
            Struct { members, base: None, items, recursive: false, defined }
        };
        let existing = self.own_definition(scope, body.name.name);
        let existing = existing.filter(|&id| matches!(&self.model.get(id).kind, DefKind::Struct(_)));
        let declared = match existing {
            Some(id) if body.members.is_none() => {
                self.check_spelling(id, body.name);
                return Some(id);
            }
            Some(id) => matches!(&self.model.get(id).kind, DefKind::Struct(old) if !old.defined && !self.states[id.index()].open)
                .then_some(id),
            None => None,
        };
        let id = match declared {
            Some(id) => {
                self.complete_forward(id, lead, body.name, scope);
                id
            }
            None => self.define(lead, body.name, scope, DefKind::Struct(empty(false))),
        };
        let Some(members) = &body.members else { return Some(id) };
        self.states[id.index()].open = true;
        let base = body.base.as_ref().and_then(|base| self.struct_base(id, base, scope));
        let inner = self.open_scope(ScopeKind::Struct, id, scope);
        let outer = self.prefix;
        let mut list = match base.map(|base| &self.model.get(base).kind) {
            Some(DefKind::Struct(base)) => base.members.clone(),
            _ => Vec::new(),
        };
        self.inherited += list.len();
        if self.inherited > self.options.inherited_max {
            self.diags.too_many_inherited(body.name.span, self.options.inherited_max);
            list = Vec::new();
        }
        for member in &list {
            self.declare_inherited(inner, &member.name, member.span);
        }
        for member in members {
            self.member(member, inner, &mut list);
        }
        let members = list;
        self.prefix = outer;
        self.states[id.index()].open = false;
        let local = members.iter().any(|member| self.is_local(&member.ty));
        self.states[id.index()].local = local;
        if let DefKind::Struct(body) = &mut self.model.definitions[id.index()].kind {
            body.members = members;
            body.base = base;
            body.defined = true;
        }
        Some(id)
    }

    /// Resolves the base of a struct.
    fn struct_base(&mut self, own: DefId, name: &ast::ScopedName, scope: ScopeId) -> Option<DefId> {
        let named = self.lookup(name, scope)?;
        let id = self.states[named.index()].root;
        if id == own {
            let shown = self.shown(id);
            self.diags.own_base(name.span, &shown);
            return None;
        }
        let definition = self.model.get(id);
        if !matches!(definition.kind, DefKind::Struct(_)) {
            let (span, kind, shown) = (definition.span, self.kind_word(id), self.shown(id));
            self.diags.not_a_base(name.span, &shown, kind, "struct", span);
            return None;
        }
        self.require_complete(&Type::Named(id), name.span);
        matches!(&self.model.get(id).kind, DefKind::Struct(body) if body.defined).then_some(id)
    }

    /// Enters the name of a member that comes from a base, so that no other gets it.
    pub(super) fn declare_inherited(&mut self, scope: ScopeId, name: &str, span: Span) {
        if let Some(name) = self.unit.interner.find(name) {
            self.declare(scope, ast::Ident { name, span }, What::Member);
        }
    }

    /// Checks the key type of a map. Every language must be able to compare keys: whole numbers, characters,
    /// text, enumerators.
    fn check_key(&mut self, ty: &Type, span: Span) -> Option<()> {
        let legal = match self.unaliased(ty) {
            Type::Basic(basic) => {
                basic.is_integer() || matches!(basic, Basic::Char | Basic::WChar | Basic::Boolean)
            }
            Type::String { .. } | Type::WString { .. } => true,
            Type::Named(id) => matches!(self.model.get(*id).kind, DefKind::Enum(_)),
            _ => false,
        };
        if !legal {
            self.diags.illegal_key(span);
        }
        legal.then_some(())
    }

    /// Completes a forward declaration. The definition gives place, comment and annotations.
    pub(super) fn complete_forward(&mut self, id: DefId, lead: &ast::Lead, name: ast::Ident, scope: ScopeId) {
        self.check_spelling(id, name);
        let annotations = self.annotations(lead, scope);
        let docs = self.docs(lead.token);
        let docs = self.kept_docs(docs);
        let (was, is) = (self.states[id.index()].ids.prefix(), self.prefix);
        let (was, is) = (self.prefixes[was as usize].clone(), self.prefixes[is as usize].clone());
        if was != is && !self.states[id.index()].ids.is_explicit() {
            let declared = self.model.get(id).span;
            let text = self.text(name.name).to_owned();
            self.diags.prefix_differs(name.span, &text, declared, was.text(), is.text());
        }
        let definition = &mut self.model.definitions[id.index()];
        definition.span = name.span;
        definition.file = name.span.file;
        definition.annotations = annotations;
        if !docs.is_empty() {
            definition.docs = docs;
        }
    }

    pub(super) fn members(&mut self, members: &[ast::Member], scope: ScopeId) -> Vec<Member> {
        let mut list = Vec::new();
        for member in members {
            self.member(member, scope, &mut list);
        }
        list
    }

    /// One member declaration, which may have several declarators.
    pub(super) fn member(&mut self, member: &ast::Member, scope: ScopeId, list: &mut Vec<Member>) {
        let annotations = self.annotations(&member.lead, scope);
        let docs = self.docs(member.lead.token);
        let base = self.ty(&member.ty, scope);
        if let Some(base) = &base {
            self.check_constructible(base, member.ty.span, "a member");
            self.require_complete(base, member.ty.span);
        }
        let from = list.len();
        for declarator in &member.declarators {
            let ty = self.declared_type(base.as_ref(), declarator, scope);
            self.declare(scope, declarator.name, What::Member);
            if let Some(ty) = ty {
                list.push(Member {
                    name: self.text(declarator.name.name).to_owned(),
                    ty,
                    span: declarator.name.span,
                    annotations: self.copied_annotations(&annotations, declarator.name.span),
                    docs: self.kept_docs(docs.clone()),
                });
            } else if let Some(def) = self.scopes[scope.index()].def {
                self.states[def.index()].broken = true;
            }
        }
        self.type_default(&member.lead, &mut list[from..], scope);
    }

    pub(super) fn enumeration(&mut self, lead: &ast::Lead, body: &ast::Enum, scope: ScopeId) -> DefId {
        let id = self.define(lead, body.name, scope, DefKind::Enum(Enum { enumerators: Vec::new() }));
        let mut enumerators = Vec::with_capacity(body.enumerators.len());
        for (ordinal, (lead, name)) in body.enumerators.iter().enumerate() {
            let kind = DefKind::Enumerator { of: id, ordinal: ordinal as u32 };
            let enumerator = self.define(lead, *name, scope, kind);
            if !lead.annotations.is_empty() {
                self.check_value(lead, enumerator, ordinal, scope);
            }
            enumerators.push(enumerator);
        }
        if let Some(bits) = self.bit_bound(lead, id, ENUM_BITS, scope)
            && body.enumerators.len() as u64 > 1 << bits
        {
            self.diags.bit_bound_too_small(body.name.span, bits, body.enumerators.len());
        }
        if let DefKind::Enum(body) = &mut self.model.definitions[id.index()].kind {
            body.enumerators = enumerators;
        }
        id
    }

    /// Checks a type whose size must be known here: no incomplete struct or union, except in a sequence.
    pub(super) fn require_complete(&mut self, ty: &Type, span: Span) {
        let Some(id) = self.held(ty) else { return };
        let side = &self.states[id.index()];
        let definition = self.model.get(id);
        let defined = match &definition.kind {
            DefKind::Struct(body) => body.defined,
            DefKind::Union(body) => body.defined,
            _ => return,
        };
        if defined || side.broken {
            return;
        }
        let (name, declared) = (definition.name.clone(), definition.span);
        if side.open {
            self.diags.contains_itself(span, &name, declared);
        } else {
            self.diags.incomplete_type(span, &name, declared);
            self.states[id.index()].broken = true;
        }
    }

    /// The definition that a type holds in place: through arrays and typedefs, not through sequences.
    fn held(&self, ty: &Type) -> Option<DefId> {
        let mut ty = ty;
        loop {
            match ty {
                Type::Array { element, .. } => ty = element,
                Type::Named(id) => {
                    let root = self.states[id.index()].root;
                    // The type of a typedef was complete when the typedef was made.
                    let typedef = matches!(self.model.get(root).kind, DefKind::Typedef(_));
                    return (!typedef).then_some(root);
                }
                _ => return None,
            }
        }
    }

    /// True for a local interface and a type that contains one.
    pub(super) fn is_local(&self, ty: &Type) -> bool {
        match ty {
            Type::Named(id) => self.states[id.index()].local,
            Type::Sequence { element, .. } | Type::Array { element, .. } => self.is_local(element),
            Type::Map { key, value, .. } => self.is_local(key) || self.is_local(value),
            _ => false,
        }
    }

    /// Members and elements cannot be a `fixed` without digits.
    pub(super) fn check_constructible(&mut self, ty: &Type, span: Span, what: &str) {
        if *ty == (Type::Fixed { spec: None }) {
            self.diags.fixed_without_digits(span, what);
        }
    }
}

/// Of an enum on the wire.
const ENUM_BITS: u8 = 32;

/// CORBA 3.3 part 1, 7.11.3.4: a fixed-point number has up to 31 digits.
const FIXED_DIGITS_MAX: u32 = 31;
