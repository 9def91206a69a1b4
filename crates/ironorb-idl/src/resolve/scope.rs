//! Scopes and the names in them.

use std::rc::Rc;

use super::Resolver;
use crate::ast::Ident;
use crate::intern::Name;
use crate::model::{DefId, DefKind};
use crate::source::Span;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct ScopeId(u32);

impl ScopeId {
    pub(super) const FILE: ScopeId = ScopeId(0);

    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ScopeKind {
    File,
    Module,
    Interface,
    Value,
    Struct,
    Union,
    Exception,
    Bitset,
    Bitmask,
    Annotation,
    /// The parameters of an operation or factory.
    Operation,
}

pub(super) struct Scope {
    pub(super) kind: ScopeKind,
    pub(super) def: Option<DefId>,
    pub(super) parent: Option<ScopeId>,
    /// Scopes of the direct bases.
    pub(super) bases: Vec<ScopeId>,
    /// All scopes inherited from, each once, near ones first.
    pub(super) ancestors: Rc<[ScopeId]>,
    /// Imported scopes, whose names are visible here if no other scope has them.
    pub(super) imports: Vec<ScopeId>,
    pub(super) items: Vec<DefId>,
}

impl Scope {
    pub(super) fn new(kind: ScopeKind, def: Option<DefId>, parent: Option<ScopeId>) -> Self {
        Self {
            kind,
            def,
            parent,
            bases: Vec::new(),
            ancestors: Rc::from([]),
            imports: Vec::new(),
            items: Vec::new(),
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    /// The spelling of the declaration.
    pub(super) name: Name,
    pub(super) span: Span,
    pub(super) what: What,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    Definition(DefId),
    /// A member, parameter or factory, which other names cannot refer to.
    Member,
    /// A name of an enclosing or base scope that was used here, and so keeps its meaning here.
    Introduced(DefId),
    /// The name of the scope itself.
    ScopeName(DefId),
    /// A definition that failed.
    Broken,
}

impl Resolver<'_> {
    /// Opens the scope of a definition.
    pub(super) fn open_scope(&mut self, kind: ScopeKind, def: DefId, parent: ScopeId) -> ScopeId {
        let id = self.push_scope(Scope::new(kind, Some(def), Some(parent)));
        self.states[def.index()].scope = Some(id);
        let name = self.states[def.index()].name;
        let span = self.model.get(def).span;
        let entry = Entry { name, span, what: What::ScopeName(def) };
        self.entries.insert((id, self.unit.interner.fold(name)), entry);
        id
    }

    /// Opens a scope for parameters.
    pub(super) fn open_parameter_scope(&mut self, parent: ScopeId) -> ScopeId {
        self.push_scope(Scope::new(ScopeKind::Operation, None, Some(parent)))
    }

    pub(super) fn push_scope(&mut self, scope: Scope) -> ScopeId {
        let id = ScopeId(self.scopes.len() as u32);
        self.scopes.push(scope);
        id
    }

    /// Enters a name; false when it clashes, which is reported.
    pub(super) fn declare(&mut self, scope: ScopeId, name: Ident, what: What) -> bool {
        let fold = self.unit.interner.fold(name.name);
        let entry = Entry { name: name.name, span: name.span, what };
        let Some(old) = self.entries.insert((scope, fold), entry) else { return true };
        self.entries.insert((scope, fold), old);
        let text = self.unit.interner.text(name.name).to_owned();
        let old_text = self.unit.interner.text(old.name).to_owned();
        match old.what {
            What::Broken => {}
            What::ScopeName(_) if what == What::Member && text != old_text => {
                let kind = self.scope_word(scope);
                self.diags.member_like_scope(name.span, &text, &old_text, kind, old.span);
                return true;
            }
            What::ScopeName(_) => {
                let kind = self.scope_word(scope);
                self.diags.same_name_as_scope(name.span, &text, kind, old.span);
            }
            What::Introduced(def) if self.is_no_scope_or_type(what) => {
                return self.declare_like_type(scope, name, what, def, old.span);
            }
            What::Introduced(def) => {
                let defined = self.model.get(def).span;
                let full = self.shown(def);
                self.diags.clashes_with_use(name.span, &text, &full, old.span, defined);
            }
            What::Definition(_) | What::Member => {
                let kind = match old.what {
                    What::Definition(def) => self.kind_word(def),
                    _ => "a member",
                };
                if text == old_text {
                    let builtin = self.unit.sources.file(old.span.file).is_builtin();
                    self.diags.redefinition(name.span, &text, kind, old.span, builtin);
                } else {
                    self.diags.differs_only_in_case(name.span, &text, &old_text, old.span);
                }
            }
        }
        false
    }

    /// True for a member, parameter, operation or attribute, which names no type or constant.
    fn is_no_scope_or_type(&self, what: What) -> bool {
        match what {
            What::Member => true,
            What::Definition(id) => self.is_feature(id),
            _ => false,
        }
    }

    /// Enters a member, parameter, operation or attribute with the name of a type that was used in its scope.
    /// The standard forbids that, but other compilers accept it. The type keeps its name, and a second such
    /// name is a clash.
    fn declare_like_type(
        &mut self,
        scope: ScopeId,
        name: Ident,
        what: What,
        used: DefId,
        place: Span,
    ) -> bool {
        let key = (scope, self.unit.interner.fold(name.name));
        let entry = Entry { name: name.name, span: name.span, what };
        let text = self.text(name.name).to_owned();
        if let Some(&first) = self.named_like_types.get(&key) {
            let kind = match first.what {
                What::Definition(id) => self.kind_word(id),
                _ => "a member",
            };
            if first.name == name.name {
                self.diags.redefinition(name.span, &text, kind, first.span, false);
            } else {
                let first_text = self.text(first.name).to_owned();
                self.diags.differs_only_in_case(name.span, &text, &first_text, first.span);
            }
            return false;
        }
        self.named_like_types.insert(key, entry);
        let full = self.shown(used);
        let kind = match what {
            What::Definition(id) => self.kind_word(id).trim_start_matches("an "),
            _ if self.scopes[scope.index()].kind == ScopeKind::Operation => "parameter",
            _ => "member",
        };
        self.diags.named_like_type(name.span, kind, &text, &full, place);
        true
    }

    /// The scope's own definition of a name, in any case of letters.
    pub(super) fn own_definition(&self, scope: ScopeId, name: Name) -> Option<DefId> {
        match self.entries.get(&(scope, self.unit.interner.fold(name)))?.what {
            What::Definition(id) => Some(id),
            _ => None,
        }
    }

    /// Reports a name that is not spelled as in its declaration.
    pub(super) fn check_spelling(&mut self, id: DefId, used: Ident) {
        let declared = self.states[id.index()].name;
        if declared != used.name {
            let span = self.model.get(id).span;
            let (used_text, declared) = (self.text(used.name).to_owned(), self.text(declared).to_owned());
            self.diags.wrong_case(used.span, &used_text, &declared, span);
        }
    }

    /// "a struct", "an interface": the kind of a definition in words.
    pub(super) fn kind_word(&self, id: DefId) -> &'static str {
        match &self.model.get(id).kind {
            DefKind::Module(_) => "a module",
            DefKind::Interface(_) => "an interface",
            DefKind::Operation(_) => "an operation",
            DefKind::Attribute(_) => "an attribute",
            DefKind::Struct(_) => "a struct",
            DefKind::Union(_) => "a union",
            DefKind::Enum(_) => "an enum",
            DefKind::Enumerator { .. } => "an enumerator",
            DefKind::Typedef(_) => "a typedef",
            DefKind::Constant(_) => "a constant",
            DefKind::Exception(_) => "an exception",
            DefKind::Value(_) => "a valuetype",
            DefKind::ValueBox(_) => "a boxed valuetype",
            DefKind::Native => "a native type",
            DefKind::Bitset(_) => "a bitset",
            DefKind::Bitmask(_) => "a bitmask",
            DefKind::Flag { .. } => "a flag",
            DefKind::Annotation(_) => "an annotation",
        }
    }

    fn scope_word(&self, scope: ScopeId) -> &'static str {
        match self.scopes[scope.index()].kind {
            ScopeKind::File => "file",
            ScopeKind::Module => "module",
            ScopeKind::Interface => "interface",
            ScopeKind::Value => "valuetype",
            ScopeKind::Struct => "struct",
            ScopeKind::Union => "union",
            ScopeKind::Exception => "exception",
            ScopeKind::Bitset => "bitset",
            ScopeKind::Bitmask => "bitmask",
            ScopeKind::Annotation => "annotation",
            ScopeKind::Operation => "operation",
        }
    }
}
