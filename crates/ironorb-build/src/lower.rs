//! From the resolved model to the tree in the shape of Rust: every decision about names, types and what
//! is generated at all is made here. Prints nothing.
//!
//! The model has been found to hold no construct that is not generated (see `unsupported`).

mod constant;
mod interface;
mod types;

use ironorb_idl::model::{
    Case as IdlCase, DefId, DefKind, Definition, Enum, Member, Model, Module, Struct, Union,
};

use crate::config::Config;
use crate::layout::Layout;
use crate::names::{Names, Taken, camel, snake};
use crate::select::Selection;
use crate::tree;

/// Lowers what was selected.
pub(crate) fn lower(model: &Model, config: &Config, selection: &Selection) -> tree::File {
    let main = model.files().iter().find(|file| file.is_main);
    let source = main
        .and_then(|file| file.path.file_name())
        .map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let lowerer =
        Lowerer { model, config, selection, names: Names::assign(model), layout: Layout::of(model) };
    let items = lowerer.items(model.roots(), &Place::default());
    tree::File { source, support: config.support_path().to_owned(), items }
}

/// What lowering reads. It changes nothing.
struct Lowerer<'m> {
    model: &'m Model,
    config: &'m Config,
    selection: &'m Selection,
    names: Names,
    layout: Layout<'m>,
}

/// The Rust module whose contents are being lowered: the names from the top of the file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Place(Vec<String>);

impl Place {
    fn inside(&self, module: &str) -> Place {
        let mut path = self.0.clone();
        path.push(module.to_owned());
        Place(path)
    }
}

impl Lowerer<'_> {
    fn items(&self, ids: &[DefId], at: &Place) -> Vec<tree::Item> {
        ids.iter().flat_map(|&id| self.item(self.model.get(id), at)).collect()
    }

    /// The Rust items for one definition: none, one, or one and the module for what is inside it.
    fn item(&self, def: &Definition, at: &Place) -> Vec<tree::Item> {
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
            DefKind::Typedef(typedef) => {
                let name = self.names.of(def.id).own.clone();
                let alias = tree::ItemKind::Alias { name, ty: self.rust(&typedef.ty, at) };
                ("typedef", alias, [].as_slice())
            }
            DefKind::Native => {
                let name = self.names.of(def.id).own.clone();
                let alias = tree::ItemKind::Alias { name, ty: self.support("Native", at) };
                ("native type", alias, [].as_slice())
            }
            DefKind::Constant(constant) => ("constant", self.constant(def, constant, at), [].as_slice()),
            DefKind::Interface(interface) => return self.interface(def, interface, at),
            _ => return Vec::new(),
        };
        let mut items = vec![tree::Item { docs: self.docs(def, what), kind }];
        items.extend(self.inner_module(def, what, Vec::new(), inside, at));
        items
    }

    fn module(&self, def: &Definition, module: &Module, at: &Place) -> Option<tree::Item> {
        let name = self.names.of(def.id).own.clone();
        let items = self.items(&module.items, &at.inside(&name));
        let kind = tree::ItemKind::Module(tree::Module { name, items });
        (!kind.is_empty()).then(|| tree::Item { docs: self.docs(def, "module"), kind })
    }

    /// The module for what is declared inside something that is not a module in IDL.
    fn inner_module(
        &self,
        def: &Definition,
        what: &str,
        mut first: Vec<tree::Item>,
        inside: &[DefId],
        at: &Place,
    ) -> Option<tree::Item> {
        let name = self.names.of(def.id).inner.clone();
        first.extend(self.items(inside, &at.inside(&name)));
        if first.is_empty() {
            return None;
        }
        let docs = vec![format!("What belongs to the IDL {what} `{}`.", self.scoped(def))];
        Some(tree::Item { docs, kind: tree::ItemKind::Module(tree::Module { name, items: first }) })
    }

    fn structure(&self, def: &Definition, s: &Struct, at: &Place) -> tree::ItemKind {
        let is_exception = matches!(def.kind, DefKind::Exception(_));
        let mut names = Taken::default();
        let fields = s
            .members
            .iter()
            .map(|member| tree::Field {
                docs: doc_lines(&member.docs),
                name: names.take(snake(&member.name)),
                ty: self.rust(&member.ty, at),
                codec: self.codec(&member.ty, at),
            })
            .collect();
        tree::ItemKind::Struct(tree::Struct {
            name: self.names.of(def.id).own.clone(),
            derives: self.derives(def.id, is_exception),
            fields,
            exception: is_exception.then(|| (self.scoped(def), def.repository_id.clone())),
        })
    }

    fn enumeration(&self, def: &Definition, e: &Enum) -> tree::ItemKind {
        let variants = e.enumerators.iter().map(|&id| tree::Variant {
            docs: doc_lines(&self.model.get(id).docs),
            name: self.names.of(id).own.clone(),
        });
        tree::ItemKind::Enum(tree::Enum {
            name: self.names.of(def.id).own.clone(),
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
        })
    }

    fn union(&self, def: &Definition, u: &Union, at: &Place) -> tree::ItemKind {
        let labels = |case: &IdlCase| -> Vec<String> {
            case.labels.iter().map(|label| self.literal(label, at)).collect()
        };
        let mut names = Taken::default();
        let mut cases = Vec::new();
        for case in &u.cases {
            let Member { name, ty, docs, .. } = &case.member;
            let (ty, codec) = (self.rust(ty, at), self.codec(ty, at));
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
            cases.push(tree::Case { docs: doc_lines(docs), name: names.take(camel(name)), kind });
        }
        if !u.exhaustive && !u.cases.iter().any(|case| case.is_default) {
            cases.push(tree::Case {
                docs: vec!["A label that carries no value.".to_owned()],
                name: names.take("Unlisted".to_owned()),
                kind: tree::CaseKind::Rest { unless: u.cases.iter().flat_map(labels).collect() },
            });
        }
        tree::ItemKind::Union(tree::Union {
            name: self.names.of(def.id).own.clone(),
            derives: self.derives(def.id, false),
            discriminator: self.rust(&u.discriminator, at),
            cases,
        })
    }

    /// Errors are moved, not copied, so that adding a member to one breaks nobody.
    fn derives(&self, id: DefId, is_exception: bool) -> Vec<&'static str> {
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

    /// The comment above a definition, and what the definition is in IDL.
    fn docs(&self, def: &Definition, what: &str) -> Vec<String> {
        with_docs(&def.docs, format!("IDL {what} `{}`.", self.scoped(def)))
    }

    fn scoped(&self, def: &Definition) -> String {
        self.model.scoped_name(def.id).join("::")
    }
}

/// The comment above a definition, then one line of ours as its own paragraph.
fn with_docs(idl: &[String], line: String) -> Vec<String> {
    let mut lines = doc_lines(idl);
    if !lines.is_empty() {
        lines.push(String::new());
    }
    lines.push(line);
    lines
}

/// Comment lines made safe as Markdown: indented or fenced text would become code that `cargo test` runs.
fn doc_lines(idl: &[String]) -> Vec<String> {
    let mut lines: Vec<String> = idl
        .iter()
        .map(|line| {
            let line = line.trim();
            if line.starts_with("```") || line.starts_with("~~~") {
                format!("\\{line}")
            } else {
                line.to_owned()
            }
        })
        .collect();
    while lines.first().is_some_and(String::is_empty) {
        lines.remove(0);
    }
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    lines
}
