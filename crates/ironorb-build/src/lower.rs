//! From the resolved model to the tree in the shape of Rust: every decision about names, types and what
//! is generated at all is made here. Prints nothing.
//!
//! The model has been found to hold no construct that is not generated (see `unsupported`).

mod constant;
mod interface;
mod types;
mod value;

use std::collections::HashSet;

use ironorb_idl::model::{
    Basic, Bitmask, Bitset, Case as IdlCase, ConstValue, DefId, DefKind, Definition, Enum, Member, Model,
    Module, Struct, Type, Union,
};

use crate::config::Config;
use crate::layout::Layout;
use crate::marshalling::{Choice, Ways};
use crate::names::{Names, camel, side_by_side, snake};
use crate::select::Selection;
use crate::tree::{self, Text};
use crate::wire;
use types::joined;

/// The input of lowering. Lowering changes nothing in it, so several threads may lower parts of a file.
pub(crate) struct Lowerer<'m> {
    model: &'m Model,
    config: &'m Config,
    selection: &'m Selection,
    names: Names,
    layout: Layout<'m>,
    ways: Ways,
}

/// The Rust module whose contents are being lowered.
#[derive(Debug, Clone, Default)]
struct Place<'a> {
    /// The IDL definition of the module; none at the top of the file.
    owner: Option<DefId>,
    /// The names from the top of the file.
    path: Vec<&'a str>,
}

impl<'a> Place<'a> {
    fn inside(&self, owner: DefId, name: &'a str) -> Place<'a> {
        let mut path = Vec::with_capacity(self.path.len() + 1);
        path.extend_from_slice(&self.path);
        path.push(name);
        Place { owner: Some(owner), path }
    }
}

impl<'a> Lowerer<'a> {
    pub(crate) fn new(
        model: &'a Model,
        config: &'a Config,
        choice: &Choice,
        selection: &'a Selection,
    ) -> Self {
        let layout = Layout::of(model);
        let ways = Ways::of(model, choice, &layout);
        Lowerer { model, config, selection, names: Names::assign(model), layout, ways }
    }

    /// The file without its items.
    pub(crate) fn file(&'a self) -> tree::File<'a> {
        let main = self.model.files().iter().find(|file| file.is_main);
        let source = main
            .and_then(|file| file.path.file_name())
            .map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        tree::File { source, support: self.config.support_path().to_owned(), items: Vec::new() }
    }

    /// Lowers the selected definitions of one of the model's roots. Also returns the valuetypes in it.
    pub(crate) fn root(&'a self, root: DefId) -> (Vec<tree::Item<'a>>, Registered<'a>) {
        let items = self.items(&[root], &Place::default());
        let registered = Registered::of(&items);
        (items, registered)
    }
}

impl<'a> Lowerer<'a> {
    fn items(&'a self, ids: &[DefId], at: &Place<'a>) -> Vec<tree::Item<'a>> {
        ids.iter().flat_map(|&id| self.item(self.model.get(id), at)).collect()
    }

    /// The Rust items for one definition: none, one, or one and the module for what is inside it.
    fn item(&'a self, def: &'a Definition, at: &Place<'a>) -> Vec<tree::Item<'a>> {
        if let DefKind::Module(module) = &def.kind {
            return self.module(def, module, at).into_iter().collect();
        }
        if !self.selection.contains(def.id) {
            return Vec::new();
        }
        let (what, kind, inside) = match &def.kind {
            DefKind::Struct(s) => ("struct", self.structure(def, s, at), s.items.as_slice()),
            DefKind::Exception(s) => ("exception", self.structure(def, s, at), s.items.as_slice()),
            DefKind::Union(u) => ("union", self.union(def, u, at), u.items.as_slice()),
            DefKind::Enum(e) => ("enum", self.enumeration(def, e), [].as_slice()),
            DefKind::Typedef(typedef) => ("typedef", self.alias(def, &typedef.ty, at), [].as_slice()),
            DefKind::Native => {
                let alias = tree::Alias {
                    name: self.names.of(def.id).own.as_str().into(),
                    ty: self.support("Native", at),
                    type_code: self.type_code(def),
                    original: tree::Original::Native,
                };
                ("native type", tree::ItemKind::Alias(alias), [].as_slice())
            }
            DefKind::Constant(constant) => ("constant", self.constant(def, constant, at), [].as_slice()),
            DefKind::Interface(interface) => return self.interface(def, interface, at),
            DefKind::Value(value) => return self.value(def, value, at),
            DefKind::Bitset(bitset) => ("bitset", self.bitset(def, bitset, at), [].as_slice()),
            DefKind::Bitmask(mask) => ("bitmask", self.bitmask(def, mask, at), [].as_slice()),
            DefKind::ValueBox(value) => ("boxed valuetype", self.value_box(def, value, at), [].as_slice()),
            _ => return Vec::new(),
        };
        let mut items = vec![tree::Item { docs: self.docs(def, what), kind }];
        items.extend(self.inner_module(def, what, Vec::new(), inside, at));
        items
    }

    fn module(&'a self, def: &'a Definition, module: &'a Module, at: &Place<'a>) -> Option<tree::Item<'a>> {
        let name = self.names.of(def.id).own.as_str();
        let mut items = self.items(&module.items, &at.inside(def.id, name));
        items.extend(Registered::of(&items).item("register_values".into()));
        let kind = tree::ItemKind::Module(tree::Module { name: name.into(), items });
        (!kind.is_empty()).then(|| tree::Item { docs: self.docs(def, "module"), kind })
    }

    /// The module for the declarations inside a definition that is no module in IDL.
    fn inner_module(
        &'a self,
        def: &'a Definition,
        what: &str,
        mut first: Vec<tree::Item<'a>>,
        inside: &[DefId],
        at: &Place<'a>,
    ) -> Option<tree::Item<'a>> {
        let name = self.names.of(def.id).inner.as_str();
        first.extend(self.items(inside, &at.inside(def.id, name)));
        if first.is_empty() {
            return None;
        }
        let docs = vec![joined(&["What belongs to the IDL ", what, " `", &self.scoped(def), "`."])];
        let module = tree::Module { name: name.into(), items: first };
        Some(tree::Item { docs, kind: tree::ItemKind::Module(module) })
    }

    fn structure(&'a self, def: &'a Definition, s: &'a Struct, at: &Place<'a>) -> tree::ItemKind<'a> {
        let is_exception = matches!(def.kind, DefKind::Exception(_));
        let mut names = side_by_side(s.members.iter().map(|member| member.name.as_str()), snake).into_iter();
        let mut field = |member: &'a Member| {
            let name = names.next().unwrap_or_default();
            tree::Field {
                docs: doc_lines(&member.docs),
                idl: unlike(&member.name, &name),
                name,
                ty: self.element(&member.ty, at),
                codec: self.described(&member.ty, at),
            }
        };
        let mut derives = self.derives(def.id, is_exception);
        let defaults = self.defaults(s.members.iter(), at).filter(|_| derives.contains(&"Default"));
        if defaults.is_some() {
            derives.retain(|&derive| derive != "Default");
        }
        let is_compiled = self.way(def.id).is_none();
        let groups = if is_compiled && !is_exception { self.groups(s) } else { Vec::new() };
        let way = match self.way(def.id) {
            None if self.is_as_on_the_wire(def) => Some("wire"),
            None if groups.is_empty() && !is_exception && !self.is_alike(s) => Some("variable"),
            way => way,
        };
        tree::ItemKind::Struct(tree::Struct {
            name: self.names.of(def.id).own.as_str().into(),
            type_code: self.type_code(def),
            derives,
            fields: s.members.iter().map(&mut field).collect(),
            defaults,
            groups,
            exception: is_exception.then(|| self.scoped(def).into()),
            way,
        })
    }

    /// Groups members: those between members of variable size form a block. A struct of one such group is a
    /// block as a whole.
    fn groups(&self, s: &Struct) -> Vec<usize> {
        let is_alike = |member: &Member| self.layout.facts(&member.ty).alike;
        let groups: Vec<usize> =
            s.members.chunk_by(|one, next| is_alike(one) && is_alike(next)).map(<[Member]>::len).collect();
        if groups.len() > 1 && groups.iter().any(|&fields| fields > 1) { groups } else { Vec::new() }
    }

    /// Whether all members have a fixed size.
    fn is_alike(&self, s: &Struct) -> bool {
        s.members.iter().all(|member| self.layout.facts(&member.ty).alike)
    }

    fn is_as_on_the_wire(&self, def: &Definition) -> bool {
        matches!(def.kind, DefKind::Struct(_))
            && wire::is_as_on_the_wire(self.model, self.config, &self.ways, def.id)
    }

    /// The words for how a type is marshalled.
    fn way(&self, id: DefId) -> Option<&'static str> {
        self.ways.of_definition(id).words(!self.layout.definition(id).unbounded)
    }

    /// The default values of members, if `@default` gives one of them.
    fn defaults(
        &'a self,
        members: impl Iterator<Item = &'a Member>,
        at: &Place<'a>,
    ) -> Option<Vec<Text<'a>>> {
        let given = |member: &'a Member| {
            let default = member.annotations.iter().find(|annotation| annotation.name == "default")?;
            let value = &default.parameters.first()?.value;
            Some(self.default_value(&member.ty, value, at))
        };
        let defaults: Vec<Option<Text<'a>>> = members.map(given).collect();
        let other = || "Default::default()".into();
        defaults
            .iter()
            .any(Option::is_some)
            .then(|| defaults.into_iter().map(|default| default.unwrap_or_else(other)).collect())
    }

    fn alias(&'a self, def: &'a Definition, ty: &'a Type, at: &Place<'a>) -> tree::ItemKind<'a> {
        // The alias of a valuetype: some uses hold a `Value` and others a `Link`.
        let (rust, described) = match self.value_type(ty, at) {
            Some(value) => {
                let description = self.description(ty, at);
                (value.clone(), tree::Described { codec: value, description: Some(description) })
            }
            None => (self.element(ty, at), self.described(ty, at)),
        };
        let original = if described.description.is_none() && described.codec == rust {
            tree::Original::Rust
        } else {
            tree::Original::Described(described)
        };
        let name = self.names.of(def.id).own.as_str().into();
        tree::ItemKind::Alias(tree::Alias { name, ty: rust, type_code: self.type_code(def), original })
    }

    /// How a definition is described at run time.
    fn type_code(&'a self, def: &'a Definition) -> tree::TypeCode<'a> {
        let names = self.names.of(def.id);
        tree::TypeCode {
            name: names.type_code.as_str().into(),
            idl: unlike(&def.name, &names.own),
            repository_id: def.repository_id.as_str().into(),
        }
    }

    fn enumeration(&'a self, def: &'a Definition, e: &'a Enum) -> tree::ItemKind<'a> {
        let variants = e.enumerators.iter().map(|&id| tree::Variant {
            docs: doc_lines(&self.model.get(id).docs),
            name: self.names.of(id).own.as_str().into(),
            idl: unlike(&self.model.get(id).name, &self.names.of(id).own),
        });
        tree::ItemKind::Enum(tree::Enum {
            name: self.names.of(def.id).own.as_str().into(),
            type_code: self.type_code(def),
            derives: vec![
                "Debug",
                "Clone",
                "Copy",
                "PartialEq",
                "Eq",
                "PartialOrd",
                "Ord",
                "Hash",
                "Default",
            ],
            variants: variants.collect(),
            way: self.way(def.id),
        })
    }

    fn bitset(&'a self, def: &'a Definition, bitset: &'a Bitset, at: &Place<'a>) -> tree::ItemKind<'a> {
        let names = side_by_side(bitset.fields.iter().map(|field| field.name.as_str()), snake);
        let fields = bitset.fields.iter().zip(names).map(|(field, name)| tree::Bitfield {
            docs: doc_lines(&field.docs),
            name,
            ty: self.basic(field.ty, at),
            offset: field.offset,
            bits: field.bits,
        });
        tree::ItemKind::Bitset(tree::Bitset {
            name: self.names.of(def.id).own.as_str().into(),
            type_code: self.type_code(def),
            storage: self.basic(bitset.storage, at),
            fields: fields.collect(),
        })
    }

    fn bitmask(&'a self, def: &'a Definition, mask: &'a Bitmask, at: &Place<'a>) -> tree::ItemKind<'a> {
        let flags = mask.flags.iter().filter_map(|&id| {
            let flag = self.model.get(id);
            let DefKind::Flag { position } = flag.kind else { return None };
            let name = self.names.of(id).own.as_str();
            let idl = unlike(&flag.name, name);
            Some((tree::Variant { docs: doc_lines(&flag.docs), name: name.into(), idl }, position))
        });
        tree::ItemKind::Bitmask(tree::Bitmask {
            name: self.names.of(def.id).own.as_str().into(),
            type_code: self.type_code(def),
            storage: self.basic(mask.storage, at),
            flags: flags.collect(),
        })
    }

    fn union(&'a self, def: &'a Definition, u: &'a Union, at: &Place<'a>) -> tree::ItemKind<'a> {
        let labels = |case: &'a IdlCase| -> Vec<Text<'a>> {
            case.labels.iter().map(|label| self.literal(label, at)).collect()
        };
        let members = u.cases.iter().map(|case| case.member.name.as_str());
        let names = side_by_side(members, camel);
        let mut unlisted = "Unlisted".to_owned();
        while names.iter().any(|name| *name == unlisted) {
            unlisted.push('_');
        }
        let mut names = names.into_iter();
        // In a TypeCode, `int8` is `octet`, which has no value -1.
        let is_small = matches!(self.model.unaliased(&u.discriminator), Type::Basic(Basic::Int8));
        let in_type_code = |label: &'a ConstValue| match self.number(label) {
            number if is_small => number & 0xFF,
            number => number,
        };
        let mut cases = Vec::new();
        let mut numbers = Vec::new();
        let mut default_label = None;
        for case in &u.cases {
            let Member { name: idl, ty: idl_type, docs, .. } = &case.member;
            let (ty, codec) = (self.element(idl_type, at), self.codec(idl_type, at));
            for label in &case.labels {
                // A label beside `default` adds nothing to it.
                if !case.is_default {
                    numbers.push((in_type_code(label), idl.as_str().into(), self.described(idl_type, at)));
                }
            }
            if case.is_default {
                default_label = Some(numbers.len());
                numbers.push((0, idl.as_str().into(), self.described(idl_type, at)));
            }
            let kind = if case.is_default {
                let others = u.cases.iter().filter(|other| !other.is_default);
                tree::CaseKind::Default { unless: others.flat_map(labels).collect(), ty, codec }
            } else {
                let mut labels = labels(case);
                match labels.len() {
                    1 => tree::CaseKind::One { label: labels.remove(0), ty, codec },
                    _ => tree::CaseKind::Many { labels, ty, codec },
                }
            };
            cases.push(tree::Case { docs: doc_lines(docs), name: names.next().unwrap_or_default(), kind });
        }
        if !u.exhaustive && default_label.is_none() {
            cases.push(tree::Case {
                docs: vec!["A label that carries no value.".into()],
                name: unlisted.into(),
                kind: tree::CaseKind::Rest { unless: u.cases.iter().flat_map(labels).collect() },
            });
        }
        tree::ItemKind::Union(tree::Union {
            name: self.names.of(def.id).own.as_str().into(),
            type_code: self.type_code(def),
            derives: {
                let mut derives = self.derives(def.id, false);
                derives.retain(|&derive| derive != "Default"); // the macro knows which variant
                derives
            },
            discriminator: self.described(&u.discriminator, at),
            first: self.first_of(u, &cases, at),
            has_default: self.layout.definition(def.id).default,
            cases,
            labels: numbers,
            default_label,
            way: self.way(def.id),
        })
    }

    /// The first variant of a union, that of its default value, and its label where it stores one.
    fn first_of(
        &'a self,
        u: &'a Union,
        cases: &[tree::Case<'a>],
        at: &Place<'a>,
    ) -> (Text<'a>, Option<Text<'a>>) {
        let (Some(first), Some(idl)) = (cases.first(), u.cases.first()) else { return Default::default() };
        let label = match &first.kind {
            tree::CaseKind::One { .. } => None,
            tree::CaseKind::Many { labels, .. } => labels.first().cloned(),
            tree::CaseKind::Default { .. } | tree::CaseKind::Rest { .. } => self.unlisted_label(u, idl, at),
        };
        (first.name.clone(), label)
    }

    /// A label that stands for the default case: one beside it, or the first value that no other case has.
    fn unlisted_label(&'a self, u: &'a Union, case: &'a IdlCase, at: &Place<'a>) -> Option<Text<'a>> {
        if let Some(label) = case.labels.first() {
            return Some(self.literal(label, at));
        }
        let taken: HashSet<i64> =
            u.cases.iter().flat_map(|case| &case.labels).map(|label| self.number(label)).collect();
        let free = (0..).find(|n| !taken.contains(n))?;
        match self.model.unaliased(&u.discriminator) {
            Type::Basic(Basic::Boolean) => Some((free != 0).to_string().into()),
            Type::Basic(Basic::WChar) => {
                Some(format!("{:?}", char::from_u32(u32::try_from(free).ok()?)?).into())
            }
            Type::Named(id) => match &self.model.get(*id).kind {
                DefKind::Enum(e) => {
                    let id = *e.enumerators.get(usize::try_from(free).ok()?)?;
                    Some(self.literal(&ConstValue::Enumerator(id), at))
                }
                _ => None,
            },
            _ => Some(free.to_string().into()),
        }
    }

    /// Errors are not `Copy`, so that adding a member to one breaks no user.
    fn derives(&'a self, id: DefId, is_exception: bool) -> Vec<&'static str> {
        let facts = self.layout.definition(id);
        let mut derives = vec!["Debug", "Clone"];
        if facts.copy && !is_exception {
            derives.push("Copy");
        }
        derives.push("PartialEq");
        if facts.eq {
            derives.extend(["Eq", "Hash"]);
        }
        if facts.default {
            derives.push("Default");
        }
        derives
    }

    fn add_scoped(&self, def: &Definition, whole: &mut String) {
        // The recursion is as deep as the front end lets scopes nest.
        if let Some(parent) = def.parent {
            self.add_scoped(self.model.get(parent), whole);
            whole.push_str("::");
        }
        whole.push_str(&def.name);
    }

    /// The comment above a definition, and what the definition is in IDL.
    fn docs(&'a self, def: &'a Definition, what: &str) -> Vec<Text<'a>> {
        with_docs(&def.docs, joined(&["IDL ", what, " `", &self.scoped(def), "`."]))
    }

    fn scoped(&self, def: &Definition) -> String {
        let mut whole = String::with_capacity(64);
        self.add_scoped(def, &mut whole);
        whole
    }
}

/// The valuetypes among some items, and the functions that register those of inner modules.
#[derive(Debug, Default)]
pub(crate) struct Registered<'a> {
    values: Vec<Text<'a>>,
    others: Vec<Text<'a>>,
}

impl<'a> Registered<'a> {
    fn of(items: &[tree::Item<'a>]) -> Self {
        let mut found = Registered::default();
        for item in items {
            match &item.kind {
                tree::ItemKind::Value(value) => found.values.push(value.name.clone()),
                tree::ItemKind::ValueBox(value) => found.values.push(value.name.clone()),
                tree::ItemKind::Module(module) => {
                    if let Some(tree::ItemKind::RegisterValues(inner)) =
                        module.items.last().map(|item| &item.kind)
                    {
                        found.others.push(format!("{}::{}", module.name, inner.name).into());
                    }
                }
                _ => {}
            }
        }
        found
    }

    pub(crate) fn join(&mut self, next: Registered<'a>) {
        self.values.extend(next.values);
        self.others.extend(next.others);
    }

    /// The function that registers all valuetypes of a file. Several files may be included in one module, so
    /// its name contains that of the file.
    pub(crate) fn item_of_file(self, source: &str) -> Option<tree::Item<'a>> {
        let stem = source.split('.').next().unwrap_or_default();
        let stem = stem.replace(|c: char| !c.is_ascii_alphanumeric(), "_");
        self.item(format!("register_{}_values", snake(&stem)).into())
    }

    fn item(self, name: Text<'a>) -> Option<tree::Item<'a>> {
        let Registered { values, others } = self;
        if values.is_empty() && others.is_empty() {
            return None;
        }
        let docs = vec![
            "Makes the valuetypes of this module and of those inside it known to an ORB, so that their values may".into(),
            "arrive where a base of theirs is asked for.".into(),
        ];
        Some(tree::Item {
            docs,
            kind: tree::ItemKind::RegisterValues(tree::RegisterValues { name, values, others }),
        })
    }
}

/// An IDL name, where it is not the Rust name.
fn unlike<'a>(idl: &'a str, rust: &str) -> Option<Text<'a>> {
    (idl != rust).then_some(idl.into())
}

/// The comment above a definition, then one line of ours as its own paragraph.
fn with_docs<'a>(idl: &'a [String], line: Text<'a>) -> Vec<Text<'a>> {
    let mut lines = doc_lines(idl);
    if !lines.is_empty() {
        lines.push(Text::default());
    }
    lines.push(line);
    lines
}

/// Comment lines made safe as Markdown: indented or fenced text would become code that `cargo test` runs.
fn doc_lines<'a>(idl: &'a [String]) -> Vec<Text<'a>> {
    let mut lines: Vec<Text<'a>> = idl
        .iter()
        .map(|line| {
            let line = line.trim();
            if line.starts_with("```") || line.starts_with("~~~") {
                format!("\\{line}").into()
            } else {
                line.into()
            }
        })
        .collect();
    while lines.first().is_some_and(|line| line.is_empty()) {
        lines.remove(0);
    }
    while lines.last().is_some_and(|line| line.is_empty()) {
        lines.pop();
    }
    lines
}
