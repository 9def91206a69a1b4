//! Structs, enums and unions.

use std::borrow::Cow;

use super::Printer;
use crate::tree::{Alias, Case, CaseKind, Described, Enum, Original, Struct, Text, TypeCode, Union};

impl Printer {
    pub(super) fn structure(&mut self, s: &Struct<'_>, support: &str) {
        self.put(&["#[derive(", &s.derives.join(", "), ")]"]);
        if s.way == Some("wire") {
            self.line("#[repr(C)]");
        }
        if s.fields.is_empty() {
            self.put(&["pub struct ", &s.name, " {}"]);
        } else {
            self.put(&["pub struct ", &s.name, " {"]);
            self.indented(|out| {
                for field in &s.fields {
                    out.docs(&field.docs);
                    out.put(&["pub ", &field.name, ": ", &field.ty, ","]);
                }
            });
            self.line("}");
        }
        if let Some(defaults) = &s.defaults {
            self.defaults(&s.name, s.fields.iter().map(|field| &field.name).zip(defaults));
        }
        let mut fields: Vec<String> = s
            .fields
            .iter()
            .map(|field| [&named(&field.name, field.idl.as_deref()), ": ", &described(&field.codec)].concat())
            .collect();
        let mut rest = &mut fields[..];
        for &count in &s.groups {
            let group = rest.split_off_mut(..count).unwrap_or_default();
            if let [first, ..] = group {
                first.insert(0, '[');
            }
            if let [.., last] = group {
                last.push(']');
            }
        }
        self.blank();
        match &s.exception {
            Some(idl) => {
                let head = format!("{}{}: {} = {idl:?},", way(s.way), s.name, s.type_code.name);
                self.macro_with(&[support, "::exception!"].concat(), &head, &s.type_code, &fields);
            }
            None => {
                let head = way(s.way) + &typed(&s.name, &s.type_code);
                self.macro_with(&[support, "::cdr_struct!"].concat(), &head, &s.type_code, &fields);
            }
        }
    }

    /// Prints the default values of fields, where the IDL gives them.
    pub(super) fn defaults<'n>(
        &mut self,
        name: &str,
        fields: impl Iterator<Item = (&'n Text<'n>, &'n Text<'n>)>,
    ) {
        self.blank();
        self.put(&["impl Default for ", name, " {"]);
        self.indented(|out| {
            out.line("fn default() -> Self {");
            out.indented(|out| {
                let fields: Vec<String> =
                    fields.map(|(field, default)| format!("{field}: {default}")).collect();
                if fields.join(", ").len() <= STRUCT_LITERAL_WIDTH {
                    out.put(&[name, " { ", &fields.join(", "), " }"]);
                } else {
                    out.put(&[name, " {"]);
                    out.indented(|out| fields.iter().for_each(|field| out.put(&[field, ","])));
                    out.line("}");
                }
            });
            out.line("}");
        });
        self.line("}");
    }

    pub(super) fn alias(&mut self, alias: &Alias<'_>, support: &str) {
        self.assignment(&["pub type ", &alias.name, " ="].concat(), &alias.ty);
        let head = typed(&alias.name, &alias.type_code);
        let id = quoted(&alias.type_code.repository_id);
        let (name, original) = match &alias.original {
            Original::Rust => ("alias", None),
            Original::Native => ("native", None),
            Original::Described(original) => ("alias", Some(described(original))),
        };
        let tail = original.as_ref().map_or_else(String::new, |original| [", ", original].concat());
        if self.put_if_fits(&[support, "::", name, "! { ", &head, " ", &id, &tail, " }"]) {
            return;
        }
        self.put(&[support, "::", name, "! {"]);
        self.indented(|out| {
            if out.put_if_fits(&[&head, " ", &id, &tail]) {
                return;
            }
            out.assignment_to(&head, &id, if original.is_some() { "," } else { "" });
            if let (Some(whole), Original::Described(original)) = (&original, &alias.original) {
                match &original.description {
                    Some(description) if !out.fits(whole) => {
                        out.line(&original.codec);
                        out.indented(|out| out.put(&["= ", description]));
                    }
                    _ => out.line(whole),
                }
            }
        });
        self.line("}");
    }

    pub(super) fn enumeration(&mut self, e: &Enum<'_>, support: &str) {
        self.put(&["#[derive(", &e.derives.join(", "), ")]"]);
        self.line("#[repr(u32)]");
        self.put(&["pub enum ", &e.name, " {"]);
        self.indented(|out| {
            for (at, variant) in e.variants.iter().enumerate() {
                out.docs(&variant.docs);
                if at == 0 {
                    out.line("#[default]");
                }
                out.put(&[&variant.name, ","]);
            }
        });
        self.line("}");
        self.blank();
        let variants: Vec<String> = e
            .variants
            .iter()
            .map(|variant| named(&variant.name, variant.idl.as_deref()).into_owned())
            .collect();
        let head = way(e.way) + &typed(&e.name, &e.type_code);
        self.macro_with(&[support, "::cdr_enum!"].concat(), &head, &e.type_code, &variants);
    }

    pub(super) fn union(&mut self, u: &Union<'_>, support: &str) {
        self.put(&["#[derive(", &u.derives.join(", "), ")]"]);
        self.put(&["pub enum ", &u.name, " {"]);
        // rustfmt writes all struct variants vertically as soon as one variant of several takes more than
        // one line and another does not.
        let is_tall = |case: &Case<'_>| {
            !case.docs.is_empty()
                || variant_fields(u, case)
                    .is_some_and(|fields| fields.join(", ").len() > STRUCT_VARIANT_WIDTH)
        };
        let mixed = u.cases.iter().any(is_tall) && !u.cases.iter().all(is_tall);
        self.indented(|out| {
            for case in &u.cases {
                out.docs(&case.docs);
                match (&case.kind, variant_fields(u, case)) {
                    (CaseKind::One { ty, .. }, _) => out.put(&[&case.name, "(", ty, "),"]),
                    (_, Some(fields)) if !mixed && fields.join(", ").len() <= STRUCT_VARIANT_WIDTH => {
                        out.put(&[&case.name, " { ", &fields.join(", "), " },"]);
                    }
                    (_, fields) => {
                        out.put(&[&case.name, " {"]);
                        out.indented(|out| {
                            fields.iter().flatten().for_each(|field| out.put(&[field, ","]));
                        });
                        out.line("},");
                    }
                }
            }
        });
        self.line("}");
        self.blank();
        self.union_codec(u, support);
    }

    fn union_codec(&mut self, u: &Union<'_>, support: &str) {
        let (mut one, mut many) = (Vec::new(), Vec::new());
        for case in &u.cases {
            match &case.kind {
                CaseKind::One { label, codec, .. } => {
                    one.push(["[", label, "] => ", &case.name, "(", codec, ")"].concat())
                }
                CaseKind::Many { labels, codec, .. } => {
                    many.push(["[", &labels.join(" | "), "] => ", &case.name, "(", codec, ")"].concat());
                }
                CaseKind::Default { .. } | CaseKind::Rest { .. } => {}
            }
        }
        self.put(&[support, "::cdr_union! {"]);
        self.indented(|out| {
            let head = way(u.way) + &typed(&u.name, &u.type_code);
            let id = quoted(&u.type_code.repository_id);
            let switch = ["switch ", &described(&u.discriminator), ";"].concat();
            if !out.put_if_fits(&[&head, " ", &id, " ", &switch]) {
                out.line(&head);
                out.put(&[&id, " ", &switch]);
            }
            for (head, cases) in [("one", &one), ("many", &many)] {
                if !cases.is_empty() {
                    out.braced(head, cases);
                }
            }
            for case in &u.cases {
                match &case.kind {
                    CaseKind::Default { unless, codec, .. } if unless.is_empty() => {
                        out.put(&["default { ", &case.name, "(", codec, ") }"]);
                    }
                    CaseKind::Default { unless, codec, .. } => {
                        let name = &case.name;
                        out.put(&["default { ", name, "(", codec, ") unless [", &unless.join(" | "), "] }"]);
                    }
                    CaseKind::Rest { unless } => {
                        out.put(&["rest { ", &case.name, " unless [", &unless.join(" | "), "] }"]);
                    }
                    CaseKind::One { .. } | CaseKind::Many { .. } => {}
                }
            }
            let labels: Vec<String> = u
                .labels
                .iter()
                .map(|(number, name, codec)| {
                    [&number.to_string(), " ", &quoted(name), " ", &described(codec)].concat()
                })
                .collect();
            let default = u.default_label.map_or_else(String::new, |at| format!(" default {at}"));
            out.filled("labels [", &labels, &format!("]{default};"));
            let first = if u.has_default { "initial " } else { "blank " };
            match &u.first {
                (variant, Some(label)) => out.put(&[first, "Many ", variant, " (", label, ");"]),
                (variant, None) => out.put(&[first, "One ", variant, ";"]),
            }
        });
        self.line("}");
    }

    /// `name! { head "id" { parts } }` on one line or on several.
    fn macro_with(
        &mut self,
        macro_name: &str,
        head: &str,
        type_code: &TypeCode<'_>,
        parts: &[impl AsRef<str>],
    ) {
        let id = quoted(&type_code.repository_id);
        let (open, close) = if parts.is_empty() { ("{", "}") } else { ("{ ", " }") };
        if self.put_list_if_fits(&[macro_name, " { ", head, " ", &id, " ", open], parts, &[close, " }"]) {
            return;
        }
        self.put(&[macro_name, " {"]);
        self.indented(|out| {
            // A long id does not push the parts below it.
            if out.put_list_if_fits(&[head, " ", &id, " ", open], parts, &[close]) {
                return;
            }
            if out.fits(&[&*head, " ", &id, " {"].concat()) {
                out.braced(&[&*head, " ", &id].concat(), parts);
            } else {
                out.line(head);
                out.braced(&id, parts);
            }
        });
        self.line("}");
    }

    pub(super) fn braced(&mut self, head: &str, parts: &[impl AsRef<str>]) {
        if parts.is_empty() {
            self.put(&[head, " {}"]);
            return;
        }
        if !self.put_list_if_fits(&[head, " { "], parts, &[" }"]) {
            self.filled_below(&[head, " {"].concat(), parts, "}");
        }
    }
}

/// A text in quotes.
pub(super) fn quoted(text: &str) -> String {
    // Only a pragma can set an id that needs escapes.
    match text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\') {
        true => ["\"", text, "\""].concat(),
        false => format!("{text:?}"),
    }
}

/// A Rust name, followed by the IDL name where that differs.
pub(super) fn named<'n>(name: &'n str, idl: Option<&str>) -> Cow<'n, str> {
    match idl {
        None => Cow::Borrowed(name),
        Some(idl) => Cow::Owned([name, " \"", idl, "\""].concat()),
    }
}

/// Up to the repository id: the type and the static that describes it.
pub(super) fn typed(name: &str, type_code: &TypeCode<'_>) -> String {
    [&named(name, type_code.idl.as_deref()), ": ", &type_code.name, " ="].concat()
}

/// The words before a type that does not marshal itself.
fn way(words: Option<&str>) -> String {
    words.map_or_else(String::new, |words| ["[", words, "] "].concat())
}

/// A codec, followed by its description if the codec does not imply it.
pub(super) fn described<'d>(it: &'d Described<'_>) -> Cow<'d, str> {
    match &it.description {
        Some(description) => Cow::Owned([&it.codec, " = ", description].concat()),
        None => Cow::Borrowed(&it.codec),
    }
}

/// The fields of a variant that stores its label.
fn variant_fields(u: &Union<'_>, case: &Case<'_>) -> Option<Vec<String>> {
    let label = ["label: ", &u.discriminator.codec].concat();
    match &case.kind {
        CaseKind::One { .. } => None,
        CaseKind::Many { ty, .. } | CaseKind::Default { ty, .. } => {
            Some(vec![label, ["value: ", ty].concat()])
        }
        CaseKind::Rest { .. } => Some(vec![label]),
    }
}

/// rustfmt's default `struct_variant_width`.
const STRUCT_VARIANT_WIDTH: usize = 35;

/// rustfmt's default `struct_lit_width`.
const STRUCT_LITERAL_WIDTH: usize = 18;
