//! Bitsets and bitmasks (IDL 4.2, 7.4.13.4.3).

use super::Resolver;
use super::scope::{ScopeId, ScopeKind, What};
use crate::ast;
use crate::model::{Basic, Bitfield, Bitmask, Bitset, DefId, DefKind, Type};
use crate::source::Span;

impl Resolver<'_> {
    pub(super) fn bitset(&mut self, lead: &ast::Lead, body: &ast::Bitset, scope: ScopeId) -> Option<DefId> {
        let new = Bitset { base: None, fields: Vec::new(), bits: 0, storage: Basic::UInt8 };
        let id = self.define(lead, body.name, scope, DefKind::Bitset(new));
        self.states[id.index()].open = true;
        let base = body.base.as_ref().and_then(|base| self.bitset_base(id, base, scope));
        let inner = self.open_scope(ScopeKind::Bitset, id, scope);
        let (mut fields, mut total) = match base.map(|base| &self.model.get(base).kind) {
            Some(DefKind::Bitset(base)) => (base.fields.clone(), u32::from(base.bits)),
            _ => (Vec::new(), 0),
        };
        for field in &fields {
            self.declare_inherited(inner, &field.name, field.span);
        }
        for field in &body.fields {
            self.bitfield(field, inner, &mut fields, &mut total);
        }
        self.states[id.index()].open = false;
        if total == 0 {
            self.diags.no_members(body.name.span, "bitset");
        }
        let bits = match u8::try_from(total) {
            Ok(bits @ ..=64) => bits,
            _ => {
                self.diags.too_many_bits(body.name.span, total);
                return None;
            }
        };
        if let DefKind::Bitset(bitset) = &mut self.model.definitions[id.index()].kind {
            *bitset = Bitset { base, fields, bits, storage: storage(bits) };
        }
        Some(id)
    }

    fn bitset_base(&mut self, own: DefId, name: &ast::ScopedName, scope: ScopeId) -> Option<DefId> {
        let named = self.lookup(name, scope)?;
        let id = self.states[named.index()].root;
        if id == own {
            let shown = self.shown(id);
            self.diags.own_base(name.span, &shown);
            return None;
        }
        let definition = self.model.get(id);
        let (span, shown) = (definition.span, self.shown(id));
        if !matches!(definition.kind, DefKind::Bitset(_)) {
            self.diags.not_a_base(name.span, &shown, self.kind_word(id), "bitset", span);
            return None;
        }
        Some(id)
    }

    /// Adds one declaration. Each of its names gets this many bits; without a name it is padding.
    fn bitfield(
        &mut self,
        field: &ast::Bitfield,
        scope: ScopeId,
        fields: &mut Vec<Bitfield>,
        total: &mut u32,
    ) {
        let annotations = self.annotations(&field.lead, scope);
        let docs = self.docs(field.lead.token);
        let bits = self.positive(&field.bits, scope, "the number of bits");
        let ty = match &field.ty {
            Some(ty) => self.ty(ty, scope).map(|found| (found, ty.span)),
            None => None,
        };
        let bits = match bits {
            Some(bits @ ..=64) => bits as u8,
            Some(bits) => {
                self.diags.too_many_bits(field.bits.span, bits);
                1
            }
            None => 1,
        };
        let basic = match ty {
            Some((ty, span)) => self.destination(&ty, bits, span),
            None if bits == 1 => Basic::Boolean,
            None => storage(bits),
        };
        *total += u32::from(bits) * field.names.len().max(1) as u32;
        let mut offset = *total;
        for name in &field.names {
            self.declare(scope, *name, What::Member);
        }
        let from = fields.len();
        for &name in field.names.iter().rev() {
            offset -= u32::from(bits);
            fields.push(Bitfield {
                name: self.text(name.name).to_owned(),
                ty: basic,
                // More than 64 bits are reported for the whole.
                offset: offset.min(255) as u8,
                bits,
                span: name.span,
                annotations: self.copied_annotations(&annotations, name.span),
                docs: self.kept_docs(docs.clone()),
            });
        }
        fields[from..].reverse();
    }

    /// The type that a field is declared to have.
    fn destination(&mut self, ty: &Type, bits: u8, span: Span) -> Basic {
        let found = match self.unaliased(ty) {
            Type::Basic(basic) => *basic,
            _ => Basic::Any,
        };
        let width = match found {
            Basic::Boolean => 1,
            Basic::Octet | Basic::Int8 | Basic::UInt8 => 8,
            Basic::Short | Basic::UShort => 16,
            Basic::Long | Basic::ULong => 32,
            Basic::LongLong | Basic::ULongLong => 64,
            _ => {
                self.diags.illegal_bitfield(span);
                return storage(bits);
            }
        };
        if bits > width {
            self.diags.bitfield_wider_than_type(span, bits, width);
        }
        found
    }

    pub(super) fn bitmask(&mut self, lead: &ast::Lead, body: &ast::Bitmask, scope: ScopeId) -> Option<DefId> {
        let new = Bitmask { flags: Vec::new(), bits: 32, storage: Basic::ULong };
        let id = self.define(lead, body.name, scope, DefKind::Bitmask(new));
        let bits = self.bit_bound(lead, id, 64, scope).unwrap_or(32);
        let inner = self.open_scope(ScopeKind::Bitmask, id, scope);
        if body.flags.is_empty() {
            self.diags.no_members(body.name.span, "bitmask");
        }
        let mut flags = Vec::with_capacity(body.flags.len());
        let mut taken: [Option<Span>; 64] = [None; 64];
        let mut next = 0i128;
        for (lead, name) in &body.flags {
            let flag = self.define(lead, *name, inner, DefKind::Flag { position: 0 });
            let annotations = std::mem::take(&mut self.model.definitions[flag.index()].annotations);
            let (position, span) =
                self.whole_number(lead, &annotations, "position", inner).unwrap_or((next, name.span));
            let definition = &mut self.model.definitions[flag.index()];
            definition.annotations = annotations;
            next = position.saturating_add(1);
            if !(0..i128::from(bits)).contains(&position) {
                self.diags.position_out_of_range(span, position, bits);
                continue;
            }
            definition.kind = DefKind::Flag { position: position as u8 };
            flags.push(flag);
            match &mut taken[position as usize] {
                Some(first) => self.diags.position_taken(span, position, *first),
                free => *free = Some(span),
            }
        }
        if let DefKind::Bitmask(mask) = &mut self.model.definitions[id.index()].kind {
            *mask = Bitmask { flags, bits, storage: storage(bits) };
        }
        Some(id)
    }
}

impl Resolver<'_> {
    /// The `@bit_bound` of a definition. A number beyond the limit is reported and replaced by the limit.
    pub(super) fn bit_bound(&mut self, lead: &ast::Lead, id: DefId, limit: u8, scope: ScopeId) -> Option<u8> {
        let annotations = std::mem::take(&mut self.model.definitions[id.index()].annotations);
        let given = self.whole_number(lead, &annotations, "bit_bound", scope);
        self.model.definitions[id.index()].annotations = annotations;
        let (bits, span) = given?;
        match u8::try_from(bits) {
            Ok(bits) if (1..=limit).contains(&bits) => Some(bits),
            _ => {
                self.diags.bad_bit_bound(span, limit);
                Some(limit)
            }
        }
    }
}

/// The smallest type that holds this many bits, from 1 to 64.
fn storage(bits: u8) -> Basic {
    match bits {
        ..=8 => Basic::UInt8,
        9..=16 => Basic::UShort,
        17..=32 => Basic::ULong,
        _ => Basic::ULongLong,
    }
}
