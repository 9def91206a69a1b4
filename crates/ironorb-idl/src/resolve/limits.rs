//! Budgets for everything that a short text could multiply. Parts beyond their budget are left out and
//! reported.

use super::Resolver;
use crate::model::{Annotation, ConstValue, DefKind, Type};
use crate::source::Span;

/// The amounts spent so far.
#[derive(Default)]
pub(super) struct Spent {
    /// Bytes of texts that are copied for several names, or made of several names.
    copied: usize,
    /// Bytes of comments.
    docs: usize,
    /// Interfaces visited for interfaces that inherit from them.
    pub(super) inherited: std::cell::Cell<usize>,
}

impl Resolver<'_> {
    /// Counts text that is about to be copied. False beyond the budget, which is reported once.
    pub(super) fn may_copy(&mut self, bytes: usize, span: Span) -> bool {
        let before = self.spent.copied;
        self.spent.copied = before.saturating_add(bytes);
        let max = self.options.copied_bytes_max;
        if self.spent.copied <= max {
            return true;
        }
        if before <= max {
            self.diags.too_much_text(span, max);
        }
        false
    }

    /// Copies a declaration's annotations for its next name.
    pub(super) fn copied_annotations(&mut self, annotations: &[Annotation], span: Span) -> Vec<Annotation> {
        if annotations.is_empty() {
            return Vec::new();
        }
        let bytes = annotations.iter().map(|annotation| {
            let parameters = annotation.parameters.iter();
            let parameters = parameters.map(|parameter| 64 + value_bytes(&parameter.value));
            64 + annotation.name.len() + parameters.sum::<usize>()
        });
        if self.may_copy(bytes.sum(), span) { annotations.to_vec() } else { Vec::new() }
    }

    /// Counts comments. Those beyond the budget are left out, because nothing depends on them.
    pub(super) fn kept_docs(&mut self, docs: Vec<String>) -> Vec<String> {
        if docs.is_empty() {
            return docs;
        }
        self.spent.docs += docs.iter().map(|line| 24 + line.len()).sum::<usize>();
        if self.spent.docs <= DOCS_BYTES_MAX { docs } else { Vec::new() }
    }

    /// Counts visits to bases; false beyond the budget.
    pub(super) fn may_inherit(&self, bases: usize) -> bool {
        let spent = self.spent.inherited.get().saturating_add(bases);
        self.spent.inherited.set(spent);
        spent <= self.options.inheritance_max
    }

    pub(super) fn report_costly_inheritance(&mut self) {
        if self.spent.inherited.get() <= self.options.inheritance_max {
            return;
        }
        let most = self.states.iter().enumerate().max_by_key(|(_, side)| side.base_count);
        if let Some((index, side)) = most {
            let (span, count) = (self.model.definitions[index].span, side.base_count as usize);
            self.diags.inheritance_too_costly(span, count);
        }
    }

    /// The type behind typedefs, found in one step for chains of any length.
    pub(super) fn unaliased<'t>(&'t self, ty: &'t Type) -> &'t Type {
        let Type::Named(id) = ty else { return ty };
        let root = self.states[id.index()].root;
        match &self.model.get(root).kind {
            DefKind::Typedef(alias) => &alias.ty,
            _ => &self.states[root.index()].named,
        }
    }
}

/// Bytes of a value on the heap.
pub(super) fn value_bytes(value: &ConstValue) -> usize {
    match value {
        ConstValue::String(text) | ConstValue::WString(text) | ConstValue::Fixed(text) => text.len(),
        _ => 0,
    }
}

/// The most bytes of comments, far more than real texts have.
const DOCS_BYTES_MAX: usize = 64 << 20;
