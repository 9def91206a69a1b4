//! Turns the tree into the model: looks up names, evaluates constants and checks the rules.
//!
//! It makes one pass in the order of the text, because IDL declares names before their use. A faulty part is
//! reported and left out. A part that depends on one left out is not reported.

mod annotations;
mod bits;
mod caching;
mod constants;
mod fixed;
mod idempotence;
mod ids;
mod interfaces;
mod limits;
mod lookup;
mod parallel;
mod quad;
mod recursion;
mod redefinition;
mod scope;
mod timing;
mod types;
mod unions;
mod values;

use std::cell::Cell;
use std::collections::{HashMap, HashSet};

use crate::Options;
use crate::ast;
use crate::caching::Caching;
use crate::diagnostics::Diagnostics;
use crate::intern::{CounterMap, Name};
use crate::model::{
    Annotation, ConstValue, Constant, DefId, DefKind, Definition, FileInfo, Model, Module, Struct, Type,
    Typedef,
};
use crate::preprocess::Unit;
use crate::source::Span;

use ids::{IdState, Prefix};
use scope::{Entry, Scope, ScopeId, ScopeKind, What};

/// Resolves the whole unit. The caller may use the model only when no error was reported.
pub(crate) fn resolve<'a>(
    unit: &'a Unit,
    ast: &'a ast::Ast,
    options: &'a Options,
    diags: &'a mut Diagnostics,
) -> Model {
    let files = unit.sources.files().iter().enumerate();
    let files = files.map(|(index, file)| FileInfo {
        path: file.path().to_path_buf(),
        is_main: index == 0,
        is_builtin: file.is_builtin(),
        replaces_builtin: file.replaces_builtin(),
    });
    // These capacities suit real texts, so that large tables need not grow often.
    let expected = unit.tokens.len() / TOKENS_PER_DEFINITION;
    let definitions = Vec::with_capacity(expected);
    let model = Model { files: files.collect(), definitions, roots: Vec::new() };
    let mut resolver = Resolver {
        unit,
        options,
        diags,
        model,
        states: Vec::with_capacity(expected),
        scopes: vec![Scope::new(ScopeKind::File, None, None)],
        entries: CounterMap::with_capacity_and_hasher(2 * expected, Default::default()),
        prefixes: vec![Prefix::none()],
        prefix: 0,
        file_prefixes: Vec::new(),
        annotation_types: CounterMap::default(),
        named_like_types: CounterMap::default(),
        inherited: 0,
        lost: ast.lost.iter().copied().collect(),
        comments_passed: Cell::new(0),
        spent: limits::Spent::default(),
        seen_features: Vec::new(),
        last_annotations: (ast::Lead::NO_TOKEN, Vec::new()),
        timed: ast::Lead::NO_TOKEN,
        cached: ast::Lead::NO_TOKEN,
        idempotent: ast::Lead::NO_TOKEN,
        parallel: ast::Lead::NO_TOKEN..=ast::Lead::NO_TOKEN,
        caching_of_interface: None,
        supplement: redefinition::supplement(unit, ast),
    };
    resolver.items(&ast.items, ScopeId::FILE);
    resolver.finish()
}

struct Resolver<'a> {
    unit: &'a Unit,
    options: &'a Options,
    diags: &'a mut Diagnostics,
    model: Model,
    /// The facts about each definition beyond the model, by its index.
    states: Vec<DefinitionState>,
    scopes: Vec<Scope>,
    /// What a scope has under a folded name.
    entries: CounterMap<(ScopeId, Name), Entry>,
    prefixes: Vec<Prefix>,
    /// Index of the prefix in effect.
    prefix: u32,
    /// Prefixes of the including files.
    file_prefixes: Vec<u32>,
    /// Declared annotations by scope and folded name: they have names of their own kind.
    annotation_types: CounterMap<(ScopeId, Name), DefId>,
    /// Members, parameters, operations and attributes named like a type that is used in their scope.
    named_like_types: CounterMap<(ScopeId, Name), Entry>,
    /// Members that structs got from their bases so far.
    inherited: usize,
    lost: HashSet<Name>,
    /// Where the comments of the last definition end.
    comments_passed: Cell<usize>,
    spent: limits::Spent,
    /// Room for the check of inherited names, kept between its uses.
    seen_features: Vec<(ScopeId, DefId)>,
    /// The annotations of the last lead that had some: names of one declaration share them.
    last_annotations: (u32, Vec<Annotation>),
    /// The lead of the last operation or attribute with a timing.
    timed: u32,
    /// The lead of the last attribute or interface with `@cached`.
    cached: u32,
    /// The lead of the last operation or attribute with `@idempotent`.
    idempotent: u32,
    /// The leads of the last operation that is called remotely and of its parameters.
    parallel: std::ops::RangeInclusive<u32>,
    /// How the attributes of the interface that is being read may be cached.
    caching_of_interface: Option<Caching>,
    /// The items of module `CORBA` in the built-in file, by folded name, where another file is read in its
    /// place.
    supplement: HashMap<Name, &'a ast::Item>,
}

/// What the resolver records about a definition.
struct DefinitionState {
    name: Name,
    scope: Option<ScopeId>,
    ids: IdState,
    /// The definition behind a chain of plain typedefs; itself for all others.
    root: DefId,
    /// The type that names it.
    named: Type,
    /// Its body is being read.
    open: bool,
    /// Something refers to it.
    used: bool,
    /// A part of it failed, so what follows from it is not reported.
    broken: bool,
    /// It is or holds a local interface.
    local: bool,
    /// The native type that it is, or that a typedef holds.
    native: Option<DefId>,
    base_count: u32,
}

impl Resolver<'_> {
    fn items(&mut self, items: &[ast::Item], scope: ScopeId) {
        for item in items {
            if self.diags.is_full() {
                return;
            }
            if !self.is_repetition(item, scope) {
                self.item(item, scope);
            }
        }
    }

    fn item(&mut self, item: &ast::Item, scope: ScopeId) {
        let lead = &item.lead;
        match &item.kind {
            ast::ItemKind::Event(index) => self.event(*index, scope),
            ast::ItemKind::Module { name, items } => self.module(lead, *name, items, scope),
            ast::ItemKind::Interface(interface) => self.interface(lead, interface, scope),
            ast::ItemKind::Value(value) => self.value(lead, value, scope),
            ast::ItemKind::ValueBox { name, ty } => self.value_box(lead, *name, ty, scope),
            ast::ItemKind::Struct(structure) => {
                self.structure(lead, structure, scope);
            }
            ast::ItemKind::Union(union) => {
                self.union(lead, union, scope);
            }
            ast::ItemKind::Enum(enumeration) => {
                self.enumeration(lead, enumeration, scope);
            }
            ast::ItemKind::Exception(exception) => self.exception(lead, exception, scope),
            ast::ItemKind::Typedef { ty, declarators } => self.typedef(lead, ty, declarators, scope),
            ast::ItemKind::Const { ty, name, value } => self.constant(lead, ty, *name, value, scope),
            ast::ItemKind::Native(name) => {
                let id = self.define(lead, *name, scope, DefKind::Native);
                self.states[id.index()].native = Some(id);
            }
            ast::ItemKind::Operation(operation) => self.operation(lead, operation, scope),
            ast::ItemKind::Attribute(attribute) => self.attribute(lead, attribute, scope),
            // Read by the value itself.
            ast::ItemKind::State { .. } | ast::ItemKind::Factory(_) => {}
            ast::ItemKind::TypeId { name, id } => self.type_id(name, id, scope),
            ast::ItemKind::TypePrefix { name, prefix } => self.type_prefix(name, prefix, scope),
            ast::ItemKind::Import(name) => self.import(name, scope),
            ast::ItemKind::Bitset(body) => {
                self.bitset(lead, body, scope);
            }
            ast::ItemKind::Bitmask(body) => {
                self.bitmask(lead, body, scope);
            }
            ast::ItemKind::Annotation(body) => self.annotation_type(lead, body, scope),
        }
    }

    fn module(&mut self, lead: &ast::Lead, name: ast::Ident, items: &[ast::Item], scope: ScopeId) {
        let existing = self.own_definition(scope, name.name);
        let reopened = existing.filter(|&id| matches!(self.model.get(id).kind, DefKind::Module(_)));
        let id = match reopened {
            Some(id) => {
                self.check_spelling(id, name);
                let mut annotations = self.annotations(lead, scope);
                self.model.definitions[id.index()].annotations.append(&mut annotations);
                id
            }
            None => self.define(lead, name, scope, DefKind::Module(Module::default())),
        };
        let inner = match self.states[id.index()].scope {
            Some(inner) => inner,
            None => self.open_scope(ScopeKind::Module, id, scope),
        };
        if items.iter().all(|item| matches!(item.kind, ast::ItemKind::Event(_))) {
            let text = self.text(name.name).to_owned();
            self.diags.empty_module(name.span, &text);
        }
        let outer = self.enter_prefix(id);
        self.items(items, inner);
        self.prefix = outer;
    }

    fn exception(&mut self, lead: &ast::Lead, exception: &ast::Struct, scope: ScopeId) {
        let body =
            Struct { members: Vec::new(), base: None, items: Vec::new(), recursive: false, defined: true };
        let id = self.define(lead, exception.name, scope, DefKind::Exception(body));
        self.states[id.index()].open = true;
        let inner = self.open_scope(ScopeKind::Exception, id, scope);
        let members = self.members(exception.members.as_deref().unwrap_or_default(), inner);
        self.states[id.index()].open = false;
        if let DefKind::Exception(body) = &mut self.model.definitions[id.index()].kind {
            body.members = members;
        }
    }

    fn typedef(
        &mut self,
        lead: &ast::Lead,
        ty: &ast::TypeSpec,
        declarators: &[ast::Declarator],
        scope: ScopeId,
    ) {
        let base = self.ty(ty, scope);
        if let Some(base) = &base {
            self.require_complete(base, ty.span);
        }
        for declarator in declarators {
            let full = self.declared_type(base.as_ref(), declarator, scope);
            match full {
                Some(ty) => {
                    let root = match &ty {
                        Type::Named(id) => Some(self.states[id.index()].root),
                        _ => None,
                    };
                    let (local, native) = (self.is_local(&ty), self.native_in(&ty));
                    let id = self.define(lead, declarator.name, scope, DefKind::Typedef(Typedef { ty }));
                    self.states[id.index()].local = local;
                    self.states[id.index()].native = native;
                    if let Some(root) = root {
                        self.states[id.index()].root = root;
                    }
                }
                None => self.define_broken(declarator.name, scope),
            }
        }
    }

    fn constant(
        &mut self,
        lead: &ast::Lead,
        ty: &ast::TypeSpec,
        name: ast::Ident,
        value: &ast::Expr,
        scope: ScopeId,
    ) {
        let ty_span = ty.span;
        let ty = self.ty(ty, scope);
        let target = ty.as_ref().and_then(|ty| self.constant_target(ty, ty_span));
        let value = match target {
            Some(target) => self.evaluate(value, &target, scope),
            None => {
                // The names in it are still looked at.
                self.evaluate(value, &constants::Target::Anything, scope);
                None
            }
        };
        match (ty, value) {
            (Some(mut ty), Some(value)) => {
                if let (Type::Fixed { spec: spec @ None }, ConstValue::Fixed(text)) = (&mut ty, &value) {
                    *spec = Some(fixed::Fixed::parse(text).digits_and_scale());
                }
                if !self.may_copy(limits::value_bytes(&value), name.span) {
                    self.define_broken(name, scope);
                    return;
                }
                self.define(lead, name, scope, DefKind::Constant(Constant { ty, value }));
            }
            _ => self.define_broken(name, scope),
        }
    }

    // Definitions.

    /// Adds a definition and enters its name into the scope.
    fn define(&mut self, lead: &ast::Lead, name: ast::Ident, scope: ScopeId, kind: DefKind) -> DefId {
        let annotations = self.annotations(lead, scope);
        let docs = self.docs(lead.token);
        let docs = self.kept_docs(docs);
        let listed = !matches!(kind, DefKind::Enumerator { .. } | DefKind::Flag { .. });
        let id = DefId(self.model.definitions.len() as u32);
        let parent = self.scopes[scope.index()].def;
        self.model.definitions.push(Definition {
            id,
            name: self.text(name.name).to_owned(),
            parent,
            repository_id: String::new(),
            span: name.span,
            file: name.span.file,
            annotations,
            docs,
            kind,
        });
        self.states.push(DefinitionState {
            name: name.name,
            scope: None,
            ids: IdState::new(self.prefix),
            root: id,
            named: Type::Named(id),
            open: false,
            used: false,
            broken: false,
            local: false,
            native: None,
            base_count: 0,
        });
        if !self.scopes[scope.index()].ancestors.is_empty() {
            self.check_redefines_inherited(name, scope);
        }
        let is_new = match self.model.definitions[id.index()].kind {
            DefKind::Annotation(_) => self.declare_annotation(scope, name, id),
            _ => self.declare(scope, name, What::Definition(id)),
        };
        if is_new && listed {
            self.scopes[scope.index()].items.push(id);
        }
        id
    }

    /// Enters the name of a faulty definition, so that its uses are not reported as well.
    fn define_broken(&mut self, name: ast::Ident, scope: ScopeId) {
        self.declare(scope, name, What::Broken);
    }

    /// The comment directly above a token, without comment marks.
    fn docs(&self, token: u32) -> Vec<String> {
        if token == ast::Lead::NO_TOKEN {
            return Vec::new();
        }
        let comments = &self.unit.comments;
        // Definitions come in the order of the text, so the comments are mostly those behind the last ones.
        let mut end = self.comments_passed.get();
        let near = comments[end..].iter().take(NEAR).take_while(|comment| comment.before <= token).count();
        let in_order = end == 0 || comments[end - 1].before <= token;
        end = if in_order && near < NEAR {
            end + near
        } else {
            comments.partition_point(|comment| comment.before <= token)
        };
        self.comments_passed.set(end);
        if end == 0 || comments[end - 1].before != token {
            return Vec::new();
        }
        let mut below = self.unit.tokens[token as usize].span;
        let mut first = end;
        while first > 0 && comments[first - 1].before == token {
            let span = comments[first - 1].span;
            if !self.stands_above(span, below) {
                break;
            }
            below = span;
            first -= 1;
        }
        let mut lines = Vec::new();
        for comment in &comments[first..end] {
            comment_lines(self.unit.sources.text(comment.span), &mut lines);
        }
        lines
    }

    /// A comment that begins its line and ends on the line above, or before the token on its line.
    fn stands_above(&self, comment: Span, below: Span) -> bool {
        if comment.file != below.file || comment.end > below.start {
            return false;
        }
        let text = self.unit.sources.file(comment.file).text();
        let between = &text[comment.end as usize..below.start as usize];
        if between.bytes().filter(|&byte| byte == b'\n').count() > 1 || !between.trim().is_empty() {
            return false;
        }
        let before = &text[..comment.start as usize];
        before.trim_end_matches([' ', '\t']).bytes().next_back().is_none_or(|byte| byte == b'\n')
    }

    fn text(&self, name: Name) -> &str {
        self.unit.interner.text(name)
    }

    fn quietly<T>(&mut self, work: impl FnOnce(&mut Self) -> T) -> T {
        self.diags.begin_quiet();
        let result = work(self);
        self.diags.end_quiet();
        result
    }

    /// A definition's scoped name for messages.
    fn shown(&self, id: DefId) -> String {
        self.model.scoped_name(id).join("::")
    }

    /// Fills in the facts that are known only at the end.
    fn finish(mut self) -> Model {
        self.report_undefined();
        self.report_costly_inheritance();
        for scope in std::mem::take(&mut self.scopes) {
            let Some(id) = scope.def else {
                if scope.kind == ScopeKind::File {
                    self.model.roots = scope.items;
                }
                continue;
            };
            match &mut self.model.definitions[id.index()].kind {
                DefKind::Module(module) => module.items = scope.items,
                DefKind::Interface(interface) => interface.items = scope.items,
                DefKind::Value(value) => value.items = scope.items,
                DefKind::Struct(body) | DefKind::Exception(body) => body.items = scope.items,
                DefKind::Union(union) => union.items = scope.items,
                DefKind::Annotation(body) => body.items = scope.items,
                _ => {}
            }
        }
        if self.diags.is_ok() {
            recursion::mark(&mut self.model);
            self.assign_ids();
        }
        self.model
    }

    /// Reports forward declarations that nothing completes.
    fn report_undefined(&mut self) {
        for index in 0..self.model.definitions.len() {
            let definition = &self.model.definitions[index];
            let used = self.states[index].used;
            let span = definition.span;
            if self.states[index].broken {
                continue;
            }
            match &definition.kind {
                DefKind::Struct(body) if !body.defined => {
                    self.diags.never_completed(span, "struct", &definition.name, used);
                }
                DefKind::Union(body) if !body.defined => {
                    self.diags.never_completed(span, "union", &definition.name, used);
                }
                DefKind::Interface(interface) if !interface.defined && span.file.index() == 0 => {
                    self.diags.never_defined(span, "interface", &definition.name);
                }
                DefKind::Value(value) if !value.defined && span.file.index() == 0 => {
                    self.diags.never_defined(span, "valuetype", &definition.name);
                }
                _ => {}
            }
        }
    }
}

/// The bytes of text per definition in texts of many short definitions; other texts have more.
const TOKENS_PER_DEFINITION: usize = 12;

/// Comments looked at one by one before they are searched for.
const NEAR: usize = 8;

/// The lines of one comment without its marks.
fn comment_lines(text: &str, lines: &mut Vec<String>) {
    if let Some(line) = text.strip_prefix("//") {
        let line = line.trim_start_matches(['/', '!']);
        lines.push(line.strip_prefix(' ').unwrap_or(line).trim_end().to_owned());
        return;
    }
    let inner = text.strip_prefix("/*").unwrap_or(text);
    let inner = inner.strip_suffix("*/").unwrap_or(inner).trim_start_matches(['*', '!']);
    let mut block: Vec<&str> = Vec::new();
    for line in inner.lines() {
        let line = line.trim();
        let line = line.strip_prefix('*').unwrap_or(line);
        block.push(line.strip_prefix(' ').unwrap_or(line).trim_end());
    }
    let first = block.iter().position(|line| !line.is_empty()).unwrap_or(block.len());
    let last = block.iter().rposition(|line| !line.is_empty()).map_or(first, |last| last + 1);
    lines.extend(block[first..last].iter().map(|line| (*line).to_owned()));
}
