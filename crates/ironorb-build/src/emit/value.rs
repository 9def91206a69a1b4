//! Valuetypes.

use super::Printer;
use super::items::{described, named, quoted, typed};
use crate::tree::{AbstractValue, Method, Operations, RegisterValues, Text, Value, ValueBox, ValueFactory};

impl Printer {
    pub(super) fn value(&mut self, value: &Value<'_>, support: &str) {
        self.put(&["#[derive(", &value.derives.join(", "), ")]"]);
        if value.base.is_none() && value.fields.is_empty() {
            self.put(&["pub struct ", &value.name, " {}"]);
        } else {
            self.put(&["pub struct ", &value.name, " {"]);
            self.indented(|out| {
                if let Some((field, ty, _)) = &value.base {
                    out.line("/// The state that is inherited.");
                    out.put(&["pub ", field, ": ", ty, ","]);
                }
                for (field, _) in &value.fields {
                    out.docs(&field.docs);
                    out.put(&["pub ", &field.name, ": ", &field.ty, ","]);
                }
            });
            self.line("}");
        }
        if let Some(defaults) = &value.defaults {
            let base = value.base.iter().map(|(field, ..)| field);
            let fields = base.chain(value.fields.iter().map(|(field, _)| &field.name));
            self.defaults(&value.name, fields.zip(defaults));
        }
        self.blank();
        self.put(&[support, "::valuetype! {"]);
        self.indented(|out| {
            let head = typed(&value.name, &value.type_code);
            let id = format!("{} {:?}", value.modifier, value.type_code.repository_id);
            out.assignment(&head, &id);
            if let Some((field, ty, description)) = &value.base {
                out.put(&["base ", field, ": ", ty, " = ", description, ";"]);
            }
            let abstract_bases: Vec<String> = value
                .abstract_bases
                .iter()
                .map(|(path, empty)| format!("{} {path}", if *empty { "mark" } else { "dyn" }))
                .collect();
            let views: Vec<String> = value.views.iter().map(|path| format!("dyn {path}")).collect();
            let lists = [
                (
                    format!("bases({}) [", value.truncatable),
                    value.bases.iter().map(ToString::to_string).collect(),
                ),
                ("abstract [".to_owned(), abstract_bases),
                ("views [".to_owned(), views),
            ];
            let whole: Vec<String> =
                lists.iter().map(|(head, parts)| format!("{head}{}];", parts.join(", "))).collect();
            if out.fits(&whole.join(" ")) {
                out.line(&whole.join(" "));
            } else {
                lists.iter().for_each(|(head, parts)| out.filled(head, parts, "];"));
            }
            let fields: Vec<String> = value
                .fields
                .iter()
                .map(|(field, public)| {
                    let visibility = if *public { "public" } else { "private" };
                    let name = named(&field.name, field.idl.as_deref());
                    format!("{visibility} {name}: {}", described(&field.codec))
                })
                .collect();
            out.braced("state", &fields);
        });
        self.line("}");
        if let Some(operations) = &value.operations {
            self.blank();
            self.operations(operations, &value.name, support);
        }
    }

    pub(super) fn abstract_value(&mut self, value: &AbstractValue<'_>, support: &str) {
        let name = &value.operations.name;
        self.operations(&value.operations, &format!("dyn {name}"), support);
        self.blank();
        let head = format!("dyn {}", typed(name, &value.type_code));
        let bases: Vec<String> = value.bases.iter().map(|path| format!("dyn {path}")).collect();
        let id = quoted(&value.type_code.repository_id);
        let whole = format!("{support}::abstract_value! {{ {head} {id} [{}] }}", bases.join(", "));
        if self.fits(&whole) {
            self.line(&whole);
            return;
        }
        self.put(&[support, "::abstract_value! {"]);
        self.indented(|out| {
            if out.fits(&format!("{head} {id} [")) {
                out.filled(&format!("{head} {id} ["), &bases, "]");
            } else {
                out.line(&head);
                out.filled(&format!("{id} ["), &bases, "]");
            }
        });
        self.line("}");
    }

    /// The trait of operations, and calls of them by a handle.
    fn operations(&mut self, operations: &Operations<'_>, formal: &str, support: &str) {
        self.docs(&operations.docs);
        self.trait_with_methods(&operations.name, &operations.supertraits, &operations.methods);
        if operations.methods.is_empty() && !formal.starts_with("dyn") {
            return;
        }
        self.blank();
        self.put(&[support, "::value_operations! {"]);
        self.indented(|out| {
            let bases: Vec<String> =
                operations.supertraits.iter().map(|path| format!("dyn {path}")).collect();
            out.filled(&format!("{} for {formal} [", operations.name), &bases, "];");
            operations.methods.iter().for_each(|method| out.value_operation(method));
        });
        self.line("}");
    }

    fn value_operation(&mut self, method: &Method<'_>) {
        let parameters: Vec<String> =
            method.parameters.iter().map(|p| format!("{}: {}", p.name, p.ty)).collect();
        let result = match method.results.as_slice() {
            [one] => Text::Borrowed(&**one),
            results => format!("({})", results.join(", ")).into(),
        };
        let end = format!("-> {result}, {};", method.error);
        let head = format!("fn {}(", method.name);
        let whole = format!("{head}{}) {end}", parameters.join(", "));
        if self.fits(&whole) {
            self.line(&whole);
        } else if self.fits(&format!(") {end}")) && !parameters.is_empty() {
            self.filled(&head, &parameters, &format!(") {end}"));
        } else {
            self.filled(&head, &parameters, ")");
            self.indented(|out| match method.results.len() {
                2.. => out.filled("-> (", &method.results, &format!("), {};", method.error)),
                _ => out.line(&end),
            });
        }
    }

    pub(super) fn value_factory(&mut self, factory: &ValueFactory<'_>) {
        self.put(&["pub trait ", &factory.name, " {"]);
        self.methods(&factory.methods);
        self.line("}");
    }

    pub(super) fn value_box(&mut self, value: &ValueBox<'_>, support: &str) {
        self.put(&["#[derive(", &value.derives.join(", "), ")]"]);
        self.assignment_to(&format!("pub struct {}(pub", value.name), &value.ty, ");");
        self.blank();
        let head = typed(&value.name, &value.type_code);
        let id = quoted(&value.type_code.repository_id);
        let content = described(&value.content);
        let whole = format!("{support}::value_box! {{ {head} {id}, {content} }}");
        if self.fits(&whole) {
            self.line(&whole);
            return;
        }
        self.put(&[support, "::value_box! {"]);
        self.indented(|out| {
            if out.fits(&format!("{head} {id}, {content}")) {
                out.put(&[&head, " ", &id, ", ", &content]);
            } else {
                out.assignment_to(&head, &id, ",");
                out.line(&content);
            }
        });
        self.line("}");
    }

    pub(super) fn register_values(&mut self, register: &RegisterValues<'_>, support: &str) {
        self.put(&["pub fn ", &register.name, "(orb: &", support, "::Orb) {"]);
        self.indented(|out| {
            register.values.iter().for_each(|value| out.put(&["orb.register_value::<", value, ">();"]));
            register.others.iter().for_each(|other| out.put(&[other, "(orb);"]));
        });
        self.line("}");
    }
}
