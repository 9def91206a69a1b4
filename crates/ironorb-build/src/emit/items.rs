//! Structs, enums and unions.

use super::Printer;
use crate::tree::{Case, CaseKind, Enum, Struct, Union};

impl Printer {
    pub(super) fn structure(&mut self, s: &Struct, support: &str) {
        self.line(&format!("#[derive({})]", s.derives.join(", ")));
        if s.fields.is_empty() {
            self.line(&format!("pub struct {} {{}}", s.name));
        } else {
            self.line(&format!("pub struct {} {{", s.name));
            self.indented(|out| {
                for field in &s.fields {
                    out.docs(&field.docs);
                    out.line(&format!("pub {}: {},", field.name, field.ty));
                }
            });
            self.line("}");
        }
        let fields: Vec<String> =
            s.fields.iter().map(|field| format!("{}: {}", field.name, field.codec)).collect();
        self.blank();
        match &s.exception {
            Some((idl, id)) => {
                let joined = match fields.as_slice() {
                    [] => "{}".to_owned(),
                    fields => format!("{{ {} }}", fields.join(", ")),
                };
                let whole = format!("{support}::exception! {{ {} = {idl:?}, {id:?} {joined} }}", s.name);
                if self.fits(&whole) {
                    self.line(&whole);
                    return;
                }
                self.line(&format!("{support}::exception! {{"));
                self.indented(|out| {
                    let head = format!("{} = {idl:?},", s.name);
                    if out.fits(&format!("{head} {id:?} {{ {} }}", fields.join(", "))) {
                        out.braced(&format!("{head} {id:?}"), &fields);
                    } else {
                        out.line(&head);
                        out.braced(&format!("{id:?}"), &fields);
                    }
                });
                self.line("}");
            }
            None => self.macro_line(&format!("{support}::cdr_struct!"), &s.name, &fields),
        }
    }

    pub(super) fn enumeration(&mut self, e: &Enum, support: &str) {
        self.line(&format!("#[derive({})]", e.derives.join(", ")));
        self.line("#[repr(u32)]");
        self.line(&format!("pub enum {} {{", e.name));
        self.indented(|out| {
            for (at, variant) in e.variants.iter().enumerate() {
                out.docs(&variant.docs);
                if at == 0 {
                    out.line("#[default]");
                }
                out.line(&format!("{},", variant.name));
            }
        });
        self.line("}");
        self.blank();
        let variants: Vec<String> = e.variants.iter().map(|variant| variant.name.clone()).collect();
        self.macro_line(&format!("{support}::cdr_enum!"), &e.name, &variants);
    }

    pub(super) fn union(&mut self, u: &Union, support: &str) {
        self.line(&format!("#[derive({})]", u.derives.join(", ")));
        self.line(&format!("pub enum {} {{", u.name));
        // rustfmt writes all struct variants vertically as soon as one variant of several takes more than
        // one line and another does not.
        let is_tall = |case: &Case| {
            !case.docs.is_empty()
                || variant_fields(u, case)
                    .is_some_and(|fields| fields.join(", ").len() > STRUCT_VARIANT_WIDTH)
        };
        let mixed = u.cases.iter().any(is_tall) && !u.cases.iter().all(is_tall);
        self.indented(|out| {
            for case in &u.cases {
                out.docs(&case.docs);
                match (&case.kind, variant_fields(u, case)) {
                    (CaseKind::One { ty, .. }, _) => out.line(&format!("{}({ty}),", case.name)),
                    (_, Some(fields)) if !mixed && fields.join(", ").len() <= STRUCT_VARIANT_WIDTH => {
                        out.line(&format!("{} {{ {} }},", case.name, fields.join(", ")));
                    }
                    (_, fields) => {
                        out.line(&format!("{} {{", case.name));
                        out.indented(|out| {
                            fields.iter().flatten().for_each(|field| out.line(&format!("{field},")));
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

    fn union_codec(&mut self, u: &Union, support: &str) {
        let (mut one, mut many) = (Vec::new(), Vec::new());
        for case in &u.cases {
            match &case.kind {
                CaseKind::One { label, codec, .. } => {
                    one.push(format!("[{label}] => {}({codec})", case.name))
                }
                CaseKind::Many { labels, codec, .. } => {
                    many.push(format!("[{}] => {}({codec})", labels.join(" | "), case.name));
                }
                CaseKind::Default { .. } | CaseKind::Rest { .. } => {}
            }
        }
        self.line(&format!("{support}::cdr_union! {{"));
        self.indented(|out| {
            out.line(&format!("{} switch {};", u.name, u.discriminator));
            for (head, cases) in [("one", &one), ("many", &many)] {
                if !cases.is_empty() {
                    out.braced(head, cases);
                }
            }
            for case in &u.cases {
                match &case.kind {
                    CaseKind::Default { unless, codec, .. } if unless.is_empty() => {
                        out.line(&format!("default {{ {}({codec}) }}", case.name));
                    }
                    CaseKind::Default { unless, codec, .. } => {
                        let name = &case.name;
                        out.line(&format!("default {{ {name}({codec}) unless [{}] }}", unless.join(" | ")));
                    }
                    CaseKind::Rest { unless } => {
                        out.line(&format!("rest {{ {} unless [{}] }}", case.name, unless.join(" | ")));
                    }
                    CaseKind::One { .. } | CaseKind::Many { .. } => {}
                }
            }
        });
        self.line("}");
    }

    /// `name! { Type { parts } }` on one line or on several.
    fn macro_line(&mut self, macro_name: &str, name: &str, parts: &[String]) {
        let whole = format!("{macro_name} {{ {name} {{ {} }} }}", parts.join(", "));
        if self.fits(&whole) {
            self.line(&whole);
        } else {
            self.line(&format!("{macro_name} {{"));
            self.indented(|out| out.braced(name, parts));
            self.line("}");
        }
    }

    fn braced(&mut self, head: &str, parts: &[String]) {
        if parts.is_empty() {
            self.line(&format!("{head} {{}}"));
            return;
        }
        let whole = format!("{head} {{ {} }}", parts.join(", "));
        if self.fits(&whole) {
            self.line(&whole);
        } else {
            self.filled(&format!("{head} {{"), parts, "}");
        }
    }
}

/// The fields of a variant that stores its label.
fn variant_fields(u: &Union, case: &Case) -> Option<Vec<String>> {
    let label = format!("label: {}", u.discriminator);
    match &case.kind {
        CaseKind::One { .. } => None,
        CaseKind::Many { ty, .. } | CaseKind::Default { ty, .. } => Some(vec![label, format!("value: {ty}")]),
        CaseKind::Rest { .. } => Some(vec![label]),
    }
}

/// rustfmt's default `struct_variant_width`.
const STRUCT_VARIANT_WIDTH: usize = 35;
