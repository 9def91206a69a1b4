//! Bitsets and bitmasks.

use super::Printer;
use super::items::{named, typed};
use crate::tree::{Bitmask, Bitset};

impl Printer {
    pub(super) fn bitset(&mut self, bitset: &Bitset, support: &str) {
        self.line("#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]");
        if bitset.fields.is_empty() {
            self.put(format_args!("pub struct {} {{}}", bitset.name));
        } else {
            self.put(format_args!("pub struct {} {{", bitset.name));
            self.indented(|out| {
                for field in &bitset.fields {
                    out.docs(&field.docs);
                    out.put(format_args!("pub {}: {},", field.name, field.ty));
                }
            });
            self.line("}");
        }
        self.blank();
        let head = typed(&bitset.name, &bitset.type_code);
        let id = format!("{:?} {}", bitset.type_code.repository_id, bitset.storage);
        let field = |f: &crate::tree::Bitfield| format!("{}: {} = {}, {}", f.name, f.ty, f.offset, f.bits);
        let fields: Vec<String> = bitset.fields.iter().map(field).collect();
        self.put(format_args!("{support}::bitset! {{"));
        self.indented(|out| {
            let whole = format!("{head} {id} {{ {} }}", fields.join("; "));
            if out.fits(&whole) {
                out.line(&whole);
                return;
            }
            out.put(format_args!("{head} {id} {{"));
            out.indented(|out| fields.iter().for_each(|field| out.put(format_args!("{field};"))));
            out.line("}");
        });
        self.line("}");
    }

    pub(super) fn bitmask(&mut self, mask: &Bitmask, support: &str) {
        self.line("#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]");
        self.put(format_args!("pub struct {}(pub {});", mask.name, mask.storage));
        self.blank();
        let head = typed(&mask.name, &mask.type_code);
        let id = format!("{:?} {}", mask.type_code.repository_id, mask.storage);
        self.put(format_args!("{support}::bitmask! {{"));
        self.indented(|out| {
            if mask.flags.iter().all(|(flag, _)| flag.docs.is_empty()) {
                let flag = |(flag, position): &(crate::tree::Variant, u8)| {
                    format!("{} = {position}", named(&flag.name, flag.idl.as_deref()))
                };
                let flags: Vec<String> = mask.flags.iter().map(flag).collect();
                out.braced(&format!("{head} {id}"), &flags);
                return;
            }
            out.put(format_args!("{head} {id} {{"));
            out.indented(|out| {
                for (flag, position) in &mask.flags {
                    out.docs(&flag.docs);
                    if !flag.docs.is_empty() {
                        out.line("///");
                    }
                    out.put(format_args!("{} = {position},", named(&flag.name, flag.idl.as_deref())));
                }
            });
            out.line("}");
        });
        self.line("}");
    }
}
