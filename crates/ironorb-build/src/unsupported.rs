//! Finds all constructs that the generator cannot express yet, with the place of each use. So lowering need
//! not check again.

use ironorb_idl::model::{DefId, DefKind, Definition, Direction, Model, Type};
use ironorb_idl::source::Span;

use crate::select::{Selection, is_builtin, uses};

/// One use of a construct that is not generated yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NotGenerated {
    pub(crate) span: Span,
    /// The construct, e.g. ``the type `any` ``.
    pub(crate) what: String,
}

/// Every use in the definitions that are to be generated, in the order of the text.
pub(crate) fn check(model: &Model, selection: &Selection) -> Vec<NotGenerated> {
    let found = too_deep(model);
    if !found.is_empty() {
        return found; // the rest follows aliases, which is only safe when they end soon
    }
    let mut checker = Checker { model, in_builtin: false, found };
    for def in model.definitions() {
        // A mistake in a definition without source text is reported where the definition is used.
        if selection.contains(def.id) && !is_builtin(model, def.id) {
            checker.definition(def);
        }
    }
    checker.found.sort_by_key(|found| (found.span.file, found.span.start));
    checker.found.dedup();
    checker.found
}

/// Aliases with more levels of sequences, arrays and aliases than the generator follows.
fn too_deep(model: &Model) -> Vec<NotGenerated> {
    let mut levels = vec![0u32; model.definitions().len()];
    let mut found = Vec::new();
    for def in model.definitions() {
        let DefKind::Typedef(typedef) = &def.kind else { continue };
        let mut deep = 1;
        let mut ty = &typedef.ty;
        // A key is a simple type in all but name; a map's values may nest.
        while let Type::Sequence { element, .. }
        | Type::Array { element, .. }
        | Type::Map { value: element, .. } = ty
        {
            deep += 1;
            ty = element;
        }
        if let Type::Named(id) = ty {
            // An alias can only name earlier ones.
            deep += levels[id.index()];
        }
        levels[def.id.index()] = deep;
        // Only the first alias that is too deep is reported, not all that use it.
        if deep > TYPE_LEVELS_MAX && deep <= 2 * TYPE_LEVELS_MAX {
            let what =
                format!("a type of more than {TYPE_LEVELS_MAX} levels of sequences, arrays and aliases");
            found.push(NotGenerated { span: def.span, what });
        }
    }
    found
}

struct Checker<'m> {
    model: &'m Model,
    /// True while the parts of a definition without source text are checked one by one.
    in_builtin: bool,
    found: Vec<NotGenerated>,
}

impl Checker<'_> {
    fn definition(&mut self, def: &Definition) {
        match &def.kind {
            DefKind::Interface(interface) => {
                for &base in &interface.bases {
                    self.named(base, def.span);
                }
                if self.model.all_bases(def.id).len() > BASES_MAX {
                    self.push(def.span, format!("an interface with more than {BASES_MAX} bases"));
                }
            }
            DefKind::Operation(operation) => {
                self.ty(&operation.result, def.span);
                for parameter in &operation.parameters {
                    self.ty(&parameter.ty, parameter.span);
                }
                let outs = operation.parameters.iter().filter(|p| p.direction != Direction::In).count();
                if outs + usize::from(operation.result != Type::Void) > RESULTS_MAX {
                    self.push(def.span, format!("an operation with more than {RESULTS_MAX} results"));
                }
                let ins = operation.parameters.iter().filter(|p| p.direction != Direction::Out).count();
                if ins > ARGUMENTS_MAX {
                    self.push(def.span, format!("an operation with more than {ARGUMENTS_MAX} arguments"));
                }
            }
            DefKind::Attribute(attribute) => self.ty(&attribute.ty, def.span),
            DefKind::Struct(s) | DefKind::Exception(s) => {
                if !s.defined {
                    self.push(def.span, "a struct that is only declared".to_owned());
                }
                for member in &s.members {
                    self.ty(&member.ty, member.span);
                }
            }
            DefKind::Union(u) => {
                if !u.defined {
                    self.push(def.span, "a union that is only declared".to_owned());
                }
                for case in &u.cases {
                    self.ty(&case.member.ty, case.member.span);
                }
            }
            DefKind::Value(value) => {
                if !value.defined {
                    self.push(def.span, "a valuetype that is only declared".to_owned());
                }
                if self.model.all_bases(def.id).len() > VALUE_BASES_MAX {
                    self.push(def.span, format!("a valuetype with more than {VALUE_BASES_MAX} bases"));
                }
                for state in &value.state {
                    self.ty(&state.member.ty, state.member.span);
                }
            }
            DefKind::Typedef(typedef) => self.ty(&typedef.ty, def.span),
            DefKind::ValueBox(value) => self.ty(&value.ty, def.span),
            DefKind::Bitset(_)
            | DefKind::Bitmask(_)
            | DefKind::Constant(_)
            | DefKind::Module(_)
            | DefKind::Enum(_)
            | DefKind::Enumerator { .. }
            | DefKind::Flag { .. }
            | DefKind::Annotation(_)
            | DefKind::Native => {}
        }
    }

    /// One use of a type.
    fn ty(&mut self, ty: &Type, span: Span) {
        match ty {
            Type::Fixed { spec: Some((_, ..0)) } => {
                self.push(span, "the type `fixed` with a negative scale".to_owned());
            }
            Type::Map { key, value, .. } => {
                self.ty(key, span);
                self.ty(value, span);
            }
            Type::Sequence { element, .. } | Type::Array { element, .. } => self.ty(element, span),
            Type::Named(id) => self.named(*id, span),
            Type::Void | Type::Basic(_) | Type::String { .. } | Type::WString { .. } | Type::Fixed { .. } => {
            }
        }
    }

    /// Reports a mistake in a definition without source text where the definition is used.
    fn named(&mut self, id: DefId, span: Span) {
        if self.is_offending(id) {
            self.push(span, format!("the type `{}`", self.model.scoped_name(id).join("::")));
        }
    }

    /// Whether a built-in definition, or one that it needs, is not generated yet.
    fn is_offending(&self, id: DefId) -> bool {
        if self.in_builtin || !is_builtin(self.model, id) {
            return false;
        }
        let mut needed = vec![id];
        let mut at = 0;
        while let Some(&id) = needed.get(at) {
            at += 1;
            for used in uses(self.model, id) {
                if !needed.contains(&used) {
                    needed.push(used);
                }
            }
        }
        needed.iter().any(|&id| {
            let mut within = Checker { model: self.model, in_builtin: true, found: Vec::new() };
            within.definition(self.model.get(id));
            !within.found.is_empty()
        })
    }

    fn push(&mut self, span: Span, what: String) {
        self.found.push(NotGenerated { span, what });
    }
}

/// Results are a tuple, and the support module has codecs for tuples of up to this many.
const RESULTS_MAX: usize = 32;

/// The most entries of the support module's lists.
const ARGUMENTS_MAX: usize = 32;

/// The most direct and indirect bases of an interface. Each interface lists all of its bases and their
/// operations, so a chain of n would take n² lines.
const BASES_MAX: usize = 256;

/// The most direct and indirect bases of a valuetype. Each lists all of them and their operations, as
/// interfaces do, and rustc takes far longer for it: a chain of 64 with an operation each takes some 15 s.
const VALUE_BASES_MAX: usize = 64;

/// The most levels of sequences, arrays and aliases in a type: far beyond real IDL, and easy for rustc.
const TYPE_LEVELS_MAX: u32 = 100;
