//! Bitsets and bitmasks.

use super::Printer;
use super::items::{named, typed};
use crate::tree::{Bitmask, Bitset};

impl Printer {
    pub(super) fn bitset(&mut self, bitset: &Bitset<'_>, support: &str) {
        self.line("#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]");
        if bitset.fields.is_empty() {
            self.put(&["pub struct ", &bitset.name, " {}"]);
        } else {
            self.put(&["pub struct ", &bitset.name, " {"]);
            self.indented(|out| {
                for field in &bitset.fields {
                    out.docs(&field.docs);
                    out.put(&["pub ", &field.name, ": ", &field.ty, ","]);
                }
            });
            self.line("}");
        }
        self.blank();
        let head = typed(&bitset.name, &bitset.type_code);
        let id = format!("{:?} {}", bitset.type_code.repository_id, bitset.storage);
        let field =
            |f: &crate::tree::Bitfield<'_>| format!("{}: {} = {}, {}", f.name, f.ty, f.offset, f.bits);
        let fields: Vec<String> = bitset.fields.iter().map(field).collect();
        self.put(&[support, "::bitset! {"]);
        self.indented(|out| {
            let whole = format!("{head} {id} {{ {} }}", fields.join("; "));
            if out.fits(&whole) {
                out.line(&whole);
                return;
            }
            out.put(&[&head, " ", &id, " {"]);
            out.indented(|out| fields.iter().for_each(|field| out.put(&[field, ";"])));
            out.line("}");
        });
        self.line("}");
    }

    pub(super) fn bitmask(&mut self, mask: &Bitmask<'_>, support: &str) {
        self.line("#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]");
        self.put(&["pub struct ", &mask.name, "(pub ", &mask.storage, ");"]);
        self.blank();
        let head = typed(&mask.name, &mask.type_code);
        let id = format!("{:?} {}", mask.type_code.repository_id, mask.storage);
        self.put(&[support, "::bitmask! {"]);
        self.indented(|out| {
            if mask.flags.iter().all(|(flag, _)| flag.docs.is_empty()) {
                let flag = |(flag, position): &(crate::tree::Variant<'_>, u8)| {
                    format!("{} = {position}", named(&flag.name, flag.idl.as_deref()))
                };
                let flags: Vec<String> = mask.flags.iter().map(flag).collect();
                out.braced(&format!("{head} {id}"), &flags);
                return;
            }
            out.put(&[&head, " ", &id, " {"]);
            out.indented(|out| {
                for (flag, position) in &mask.flags {
                    out.docs(&flag.docs);
                    if !flag.docs.is_empty() {
                        out.line("///");
                    }
                    out.put(&[&named(&flag.name, flag.idl.as_deref()), " = ", &position.to_string(), ","]);
                }
            });
            out.line("}");
        });
        self.line("}");
    }
}
