//! The interfaces of a large unit in files of their own.
//!
//! To the compiler, what a macro or a derive makes has changed when the line of its call has moved. So with
//! all of a unit in one file, one more operation would make an incremental build check nearly all of the unit
//! again. The unit's file includes a file for each interface instead, whose lines do not depend on the others.

use super::{Printer, head, uses_support};
use crate::tree::{File, Item, ItemKind};

/// A file with an interface.
#[derive(Debug)]
pub(crate) struct Piece {
    /// The file's name, without `.rs`. No two differ only in case.
    pub(crate) name: String,
    pub(crate) text: String,
}

/// The files with interfaces that a unit's file includes.
#[derive(Debug)]
pub(crate) struct Pieces {
    /// The directory of the files, beside the unit's file.
    directory: String,
    /// The modules around the place of printing.
    modules: Vec<String>,
    /// The files printed so far.
    pub(crate) done: Vec<Piece>,
}

impl Pieces {
    pub(crate) fn new(directory: &str) -> Self {
        Pieces { directory: directory.to_owned(), modules: Vec::new(), done: Vec::new() }
    }
}

impl Printer {
    /// Notes the beginning of a module.
    pub(super) fn enter(&mut self, module: &str) {
        if let Some(pieces) = &mut self.pieces {
            pieces.modules.push(in_one_case(module));
        }
    }

    /// Notes the end of a module.
    pub(super) fn leave(&mut self) {
        if let Some(pieces) = &mut self.pieces {
            pieces.modules.pop();
        }
    }

    /// The number of items, from the first on, that belong in a file of their own: an interface, and the module
    /// with what it contains. 0 if the first does not.
    pub(super) fn piece_length(&self, items: &[Item<'_>]) -> usize {
        let Some(pieces) = &self.pieces else { return 0 };
        match items {
            [Item { kind: ItemKind::Interface(interface), .. }, rest @ ..] => {
                if file_name(&pieces.modules, &interface.name).len() > NAME_BYTES_MAX {
                    return 0;
                }
                1 + usize::from(rest.first().is_some_and(|next| !has_interface(next) && is_module(next)))
            }
            _ => 0,
        }
    }

    /// Prints items, of which the first is an interface, into a file of their own, and its inclusion here.
    /// Returns whether they name the support module.
    pub(super) fn piece(&mut self, items: &[Item<'_>], file: &File<'_>, attribute: Option<&str>) -> bool {
        let mut out = Printer { text: head(file), depth: 0, pieces: None };
        for item in items {
            out.blank();
            out.item(item, file, attribute);
        }
        let is_supported = uses_support(&out.text, 0);
        if let (Some(pieces), ItemKind::Interface(interface)) = (&mut self.pieces, &items[0].kind) {
            let name = file_name(&pieces.modules, &interface.name);
            let path = format!("{:?}", format!("{}/{name}.rs", pieces.directory));
            pieces.done.push(Piece { name, text: out.text });
            self.put(&["include!(", &path, ");"]);
        }
        is_supported
    }
}

fn is_module(item: &Item<'_>) -> bool {
    matches!(item.kind, ItemKind::Module(_))
}

fn has_interface(item: &Item<'_>) -> bool {
    match &item.kind {
        ItemKind::Interface(_) => true,
        ItemKind::Module(module) => module.items.iter().any(has_interface),
        _ => false,
    }
}

/// `cf.file-system` for `cf::FileSystem`. The path follows from the name, also where the file system ignores case.
fn file_name(modules: &[String], interface: &str) -> String {
    let interface = in_one_case(interface);
    // `=` stands where the name does not begin with the usual capital.
    let interface = match interface.strip_prefix('-') {
        Some(usual) => usual.to_owned(),
        None => format!("={interface}"),
    };
    modules.iter().map(|module| &**module).chain([&*interface]).collect::<Vec<_>>().join(".")
}

/// A Rust name with `-` before what were capitals.
fn in_one_case(name: &str) -> String {
    let mut text = String::with_capacity(name.len() + 8);
    for c in name.trim_start_matches("r#").chars() {
        if c.is_uppercase() {
            text.push('-');
        }
        text.extend(c.to_lowercase());
    }
    text
}

/// The longest name of a file. File systems take 255 bytes.
const NAME_BYTES_MAX: usize = 200;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_are_distinct_without_regard_to_case() {
        let name = |module: &str, interface: &str| file_name(&[in_one_case(module)], interface);
        assert_eq!(name("cf", "FileSystem"), "cf.file-system");
        assert_eq!(name("r#mod", "Filesystem"), "mod.filesystem");
        assert_eq!(name("cf", "filesystem"), "cf.=filesystem");
        assert_eq!(file_name(&[], "Bank"), "bank");
    }
}
