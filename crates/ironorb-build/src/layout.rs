//! Facts about types that lowering asks for: which derives a type can have and whether it has bounds to
//! check. Decides nothing about names or text.

use ironorb_idl::model::{Basic, DefId, DefKind, InterfaceKind, Model, Type};

/// Facts about the Rust type of an IDL type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Facts {
    /// `Copy`.
    pub(crate) copy: bool,
    /// `Eq` and `Hash`: no floating-point number inside.
    pub(crate) eq: bool,
    /// `Default`.
    pub(crate) default: bool,
    /// The type does not reach a type that contains itself.
    pub(crate) acyclic: bool,
    /// No string, sequence or map in the type has a bound, and no field of a bitset a width. Valuetypes are
    /// not searched.
    pub(crate) unbounded: bool,
    /// Its values can be sent: the type contains neither local interfaces nor native types.
    pub(crate) sent: bool,
    /// Its values are numbers, or structs or short arrays of such: all values have the same size.
    pub(crate) alike: bool,
}

/// Facts of every definition that is a type.
#[derive(Debug)]
pub(crate) struct Layout<'m> {
    model: &'m Model,
    definitions: Vec<Facts>,
}

impl<'m> Layout<'m> {
    /// Assumes all facts and removes wrong ones until nothing changes, so that recursive types come out
    /// right.
    pub(crate) fn of(model: &'m Model) -> Self {
        let mut layout = Layout { model, definitions: vec![Facts::ALL; model.definitions().len()] };
        let mut changed = true;
        while changed {
            changed = false;
            // The facts change in place. Types mostly name earlier ones, so this ends after few rounds.
            for def in model.definitions() {
                let facts = layout.definition_facts(&def.kind);
                changed |= facts != layout.definitions[def.id.index()];
                layout.definitions[def.id.index()] = facts;
            }
        }
        layout
    }

    pub(crate) fn definition(&self, id: DefId) -> Facts {
        self.definitions[id.index()]
    }

    fn definition_facts(&self, kind: &DefKind) -> Facts {
        match kind {
            DefKind::Struct(s) | DefKind::Exception(s) => {
                let members = s.members.iter().map(|member| self.facts(&member.ty));
                let alike = !s.members.is_empty() && s.members.len() <= ALIKE_MAX;
                members.fold(Facts { acyclic: !s.recursive, alike, ..Facts::ALL }, Facts::and)
            }
            DefKind::Union(u) => {
                let members = u.cases.iter().map(|case| self.facts(&case.member.ty));
                // The default value is of the first case.
                let default = members.clone().next().is_none_or(|first| first.default);
                let all = Facts { acyclic: !u.recursive, alike: false, ..Facts::ALL };
                Facts { default, ..members.fold(all, Facts::and) }
            }
            DefKind::Typedef(typedef) => self.facts(&typedef.ty),
            DefKind::Interface(interface) if interface.kind == InterfaceKind::Abstract => {
                Facts { copy: false, eq: false, alike: false, ..Facts::ALL }
            }
            // A reference is a handle that is counted.
            DefKind::Interface(interface) => Facts {
                copy: false,
                sent: interface.kind != InterfaceKind::Local,
                alike: false,
                ..Facts::ALL
            },
            // These are the facts of the state's struct; a use of the type is a link.
            DefKind::Value(value) => {
                let members = value.state.iter().map(|state| self.facts(&state.member.ty));
                let base = value.bases.first().map(|&base| self.definition(base));
                members.chain(base).fold(Facts::LINK, Facts::and)
            }
            DefKind::ValueBox(value) => {
                Facts { copy: false, acyclic: false, alike: false, ..self.facts(&value.ty) }
            }
            DefKind::Native => Facts { copy: false, default: false, sent: false, alike: false, ..Facts::ALL },
            // A field may hold more than its bits.
            DefKind::Bitset(_) => Facts { unbounded: false, alike: false, ..Facts::ALL },
            DefKind::Enum(_) => Facts::ALL,
            _ => Facts { alike: false, ..Facts::ALL },
        }
    }

    pub(crate) fn facts(&self, ty: &Type) -> Facts {
        match ty {
            Type::Basic(Basic::Float | Basic::Double) => Facts { eq: false, ..Facts::ALL },
            Type::Basic(Basic::Any | Basic::TypeCode) => {
                Facts { copy: false, eq: false, alike: false, ..Facts::ALL }
            }
            Type::Basic(Basic::ValueBase) => Facts { acyclic: true, ..Facts::LINK },
            Type::Basic(Basic::Object) => Facts { copy: false, alike: false, ..Facts::ALL },
            Type::String { bound } | Type::WString { bound } => {
                Facts { copy: false, unbounded: bound.is_none(), alike: false, ..Facts::ALL }
            }
            Type::Void | Type::Fixed { .. } | Type::Basic(Basic::LongDouble | Basic::WChar) => {
                Facts { alike: false, ..Facts::ALL }
            }
            Type::Basic(_) => Facts::ALL,
            Type::Sequence { element, bound } => {
                let element = self.facts(element);
                let unbounded = bound.is_none() && element.unbounded;
                Facts { copy: false, default: true, unbounded, alike: false, ..element }
            }
            Type::Map { key, value, bound } => {
                let pair = self.facts(key).and(self.facts(value));
                let unbounded = bound.is_none() && pair.unbounded;
                Facts { copy: false, default: true, unbounded, alike: false, ..pair }
            }
            Type::Array { element, dimensions } => {
                let element = self.facts(element);
                // The standard library has `Default` for arrays of up to 32 elements only.
                let default = element.default && dimensions.iter().all(|&n| n <= 32);
                let count = dimensions.iter().fold(1u64, |all, &n| all.saturating_mul(u64::from(n)));
                Facts { default, alike: element.alike && count <= ALIKE_MAX as u64, ..element }
            }
            Type::Named(id) => match self.model.get(*id).kind {
                DefKind::Value(_) | DefKind::ValueBox(_) => Facts::LINK,
                _ => self.definition(*id),
            },
        }
    }

    /// Whether values of this type need a codec of their own outside of structs and unions, mostly because a
    /// bound must be checked. Structs and unions check their own bounds.
    pub(crate) fn has_codec(&self, ty: &Type) -> bool {
        match ty {
            Type::String { bound } | Type::WString { bound } => bound.is_some(),
            Type::Sequence { element, bound } => bound.is_some() || self.has_codec(element),
            Type::Map { key, value, bound } => {
                bound.is_some() || self.has_codec(key) || self.has_codec(value)
            }
            Type::Array { element, .. } => self.has_codec(element),
            Type::Named(id) => match &self.model.get(*id).kind {
                DefKind::Typedef(typedef) => self.has_codec(&typedef.ty),
                // This is not about bounds, but the Rust type cannot be marshalled by itself either.
                DefKind::Interface(interface) => interface.kind == InterfaceKind::Local,
                _ => false,
            },
            Type::Void | Type::Basic(_) | Type::Fixed { .. } => false,
        }
    }
}

impl Facts {
    const ALL: Facts = Facts {
        copy: true,
        eq: true,
        default: true,
        acyclic: true,
        unbounded: true,
        sent: true,
        alike: true,
    };

    /// Links to values cannot be hashed, and may form cycles.
    const LINK: Facts = Facts { copy: false, eq: false, acyclic: false, alike: false, ..Facts::ALL };

    fn and(self, other: Facts) -> Facts {
        Facts {
            copy: self.copy && other.copy,
            eq: self.eq && other.eq,
            default: self.default && other.default,
            acyclic: self.acyclic && other.acyclic,
            unbounded: self.unbounded && other.unbounded,
            sent: self.sent && other.sent,
            alike: self.alike && other.alike,
        }
    }
}

/// The most members and elements of a value that may join a block. Larger values gain nothing from it.
const ALIKE_MAX: usize = 16;
