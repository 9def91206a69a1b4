//! `equal` and `equivalent` (CORBA 3.3 part 1, 8.11.1).
//!
//! Recursive types are infinite trees, and a TypeCode in which a peer repeats types can be a tree of 2^1000
//! nodes. So types are compared as the finite graphs that they are. Once two nodes have been compared, or are
//! about to be, they count as the same, and so do all nodes that are the same as either. Each comparison
//! joins two separate sets of nodes, so there are no more comparisons than nodes.

use std::collections::HashMap;

use super::TypeCode;
use super::node::{Members, Shape, TypeKey, TypeRef};
use crate::probe::{self, Stage};

impl TypeCode {
    /// Whether values of both types have the same form. Typedefs and names do not count. Where both types
    /// have repository ids, only these count. Extraction from an [`Any`](crate::Any) uses this relation.
    pub fn equivalent(&self, other: &TypeCode) -> bool {
        let _probe = probe::enter(Stage::TypeCode);
        compare(self.as_type_ref(), other.as_type_ref(), Rule::Equivalent)
    }
}

/// The standard's `equal`: everything is equal, including ids, names and typedefs.
impl PartialEq for TypeCode {
    fn eq(&self, other: &Self) -> bool {
        compare(self.as_type_ref(), other.as_type_ref(), Rule::Equal)
    }
}

impl Eq for TypeCode {}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Rule {
    Equal,
    Equivalent,
}

fn compare<'a>(a: TypeRef<'a>, b: TypeRef<'a>, rule: Rule) -> bool {
    let mut comparison = Comparison { rule, work: Vec::new(), same: Same::default() };
    comparison.pair(a, b) && comparison.run()
}

struct Comparison<'a> {
    rule: Rule,
    /// Pairs whose parts are still to be compared. A list instead of recursion, because a path through a
    /// graph can be long.
    work: Vec<(TypeRef<'a>, TypeRef<'a>)>,
    same: Same,
}

impl<'a> Comparison<'a> {
    fn run(&mut self) -> bool {
        while let Some((a, b)) = self.work.pop() {
            if !self.parts(a.shape(), b.shape()) {
                return false;
            }
        }
        true
    }

    /// Compares two types without their parts, which are compared later.
    fn pair(&mut self, mut a: TypeRef<'a>, mut b: TypeRef<'a>) -> bool {
        if self.rule == Rule::Equivalent {
            (a, b) = (a.resolved(), b.resolved());
        }
        match (a.shape(), b.shape()) {
            (Shape::Basic(a), Shape::Basic(b)) => return a == b,
            (Shape::Placeholder { .. }, _) | (_, Shape::Placeholder { .. }) => return false,
            (a, b) if a.kind() != b.kind() => return false,
            (a, b) => {
                if let (Rule::Equivalent, Some((a, _)), Some((b, _))) =
                    (self.rule, a.id_and_name(), b.id_and_name())
                    && !a.is_empty()
                    && !b.is_empty()
                {
                    return a == b;
                }
            }
        }
        if self.same.join(a.key(), b.key()) {
            self.work.push((a, b));
        }
        true
    }

    fn parts(&mut self, a: Shape<'a>, b: Shape<'a>) -> bool {
        use Shape as S;
        if self.rule == Rule::Equal && a.id_and_name() != b.id_and_name() {
            return false;
        }
        match (a, b) {
            (S::String { bound: a }, S::String { bound: b })
            | (S::WString { bound: a }, S::WString { bound: b }) => a == b,
            (S::Fixed { digits, scale }, S::Fixed { digits: d, scale: s }) => (digits, scale) == (d, s),
            (S::Sequence { element: a, bound: m }, S::Sequence { element: b, bound: n })
            | (S::Array { element: a, length: m }, S::Array { element: b, length: n }) => {
                m == n && self.pair(a, b)
            }
            (S::Alias { original: a, .. }, S::Alias { original: b, .. })
            | (S::ValueBox { content: a, .. }, S::ValueBox { content: b, .. }) => self.pair(a, b),
            (S::Enum { enumerators: a, .. }, S::Enum { enumerators: b, .. }) => {
                a.len() == b.len()
                    && (self.rule == Rule::Equivalent || (0..a.len()).all(|i| a.get(i) == b.get(i)))
            }
            (S::Struct { members: a, .. }, S::Struct { members: b, .. }) => self.members(a, b),
            (
                S::Union { discriminator: a, default: m, cases: c, .. },
                S::Union { discriminator: b, default: n, cases: d, .. },
            ) => {
                m == n
                    && self.pair(a, b)
                    && self.members(c, d)
                    && (0..c.len()).all(|i| m == Some(i as u32) || c.label(i) == d.label(i))
            }
            (
                S::Value { modifier: m, base: a, members: c, .. },
                S::Value { modifier: n, base: b, members: d, .. },
            ) => {
                let bases = match (a, b) {
                    (Some(a), Some(b)) => self.pair(a, b),
                    (None, None) => true,
                    _ => false,
                };
                // One known ORB swaps public and private, so equivalence ignores them.
                let visible = self.rule == Rule::Equivalent
                    || (c.len() == d.len() && (0..c.len()).all(|i| c.visibility(i) == d.visibility(i)));
                m == n && bases && visible && self.members(c, d)
            }
            // Named types without parts. Their ids and names have been compared where they count.
            (S::Named { .. }, S::Named { .. }) => true,
            _ => false,
        }
    }

    fn members(&mut self, a: Members<'a>, b: Members<'a>) -> bool {
        a.len() == b.len()
            && a.iter().zip(b.iter()).all(|((a_name, a), (b_name, b))| {
                (self.rule == Rule::Equivalent || a_name == b_name) && self.pair(a, b)
            })
    }
}

/// Sets of types that count as the same.
#[derive(Default)]
struct Same {
    numbers: HashMap<TypeKey, usize>,
    parents: Vec<usize>,
}

impl Same {
    /// Joins the sets of two types. False if they are one set already.
    fn join(&mut self, a: TypeKey, b: TypeKey) -> bool {
        if a == b {
            return false;
        }
        let (a, b) = (self.find(a), self.find(b));
        self.parents[a] = b;
        a != b
    }

    fn find(&mut self, key: TypeKey) -> usize {
        let parents = &mut self.parents;
        let mut at = *self.numbers.entry(key).or_insert_with(|| {
            parents.push(parents.len());
            parents.len() - 1
        });
        while parents[at] != at {
            parents[at] = parents[parents[at]]; // halves the path for the next search
            at = parents[at];
        }
        at
    }
}
