//! The folders of `ironorb` form layers, and each uses only what stands below it. Below the drivers no code names
//! a thread, a clock, a wait or a system call. Outside `base` and `transport` no code names a lock of the system.
//!
//! `crates/ironorb/layers.txt` lists the layers, and what breaks these two rules today, with a count. A count may not
//! grow. When it falls, the test asks for the new list, so that it cannot grow again.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use syn::visit::{self, Visit};

/// The crate's folder.
fn crate_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/ironorb")
}

/// The variable that has the test write the list.
const WRITE: &str = "IRONORB_WRITE_LAYERS";

/// What a line of the list says, but for its count.
type Breach = String;

/// What the list has above its breaches.
struct Layers {
    text: String,
    /// The layer of each folder and file, and its height.
    places: BTreeMap<String, (String, usize)>,
    /// The height of the drivers.
    drivers: usize,
}

impl Layers {
    fn parse(text: &str) -> Layers {
        let lines: Vec<&str> = text.lines().filter(|line| line.starts_with("layer ")).collect();
        let mut places = BTreeMap::new();
        let mut drivers = None;
        for (below, line) in lines.iter().rev().enumerate() {
            let (name, modules) = line["layer ".len()..].split_once(": ").expect("layer NAME: MODULES");
            places.extend(modules.split(' ').map(|module| (module.to_owned(), (name.to_owned(), below))));
            if name == "driver" {
                drivers = Some(below);
            }
        }
        let head = text.split_inclusive('\n').take_while(|line| !line.starts_with("breach ")).collect();
        Layers { text: head, places, drivers: drivers.expect("a layer is called driver") }
    }

    fn place(&self, module: &str) -> (&str, usize) {
        let place = self.places.get(module);
        let (name, height) = place.unwrap_or_else(|| panic!("layers.txt: in which layer is {module}?"));
        (name, *height)
    }
}

/// The breaches that the list has, with their counts.
fn listed(text: &str) -> BTreeMap<Breach, usize> {
    let breaches = text.lines().filter_map(|line| line.strip_prefix("breach "));
    breaches
        .map(|line| {
            let (breach, count) = line.rsplit_once(' ').expect("breach WHAT COUNT");
            (breach.to_owned(), count.parse().expect("breach WHAT COUNT"))
        })
        .collect()
}

/// One source file, and the module that it is.
struct Source {
    module: Vec<String>,
    file: syn::File,
}

/// Reads all sources below a folder. `module` is the folder's module.
fn read(folder: &Path, module: &[String], sources: &mut Vec<Source>) {
    for entry in fs::read_dir(folder).expect("a folder of sources").flatten() {
        let path = entry.path();
        let name = path.file_stem().and_then(|name| name.to_str()).expect("a plain name").to_owned();
        let inner = [module, std::slice::from_ref(&name)].concat();
        if name.ends_with("tests") {
            continue;
        }
        if path.is_dir() {
            read(&path, &inner, sources);
        } else {
            let text = fs::read_to_string(&path).expect("a text");
            let file = syn::parse_file(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
            let module = if matches!(&*name, "lib" | "mod") { module.to_vec() } else { inner };
            sources.push(Source { module, file });
        }
    }
}

/// What the sources name: paths from the crate's root (`crate::…`), and paths of other crates.
struct Names<'s> {
    module: Vec<String>,
    /// What `lib.rs` gives out under another path: the name and its module.
    roots: &'s BTreeMap<String, String>,
    own: Vec<String>,
    foreign: Vec<Vec<String>>,
}

impl Names<'_> {
    fn note(&mut self, path: &[String]) {
        let from_root = match path {
            [first, rest @ ..] if first == "crate" => rest.to_vec(),
            [first, ..] if first == "super" || first == "self" => {
                let ups = path.iter().take_while(|name| *name == "super").count();
                let rest = path.iter().skip_while(|name| *name == "super" || *name == "self");
                let kept = self.module.len().saturating_sub(ups);
                self.module[..kept].iter().chain(rest).cloned().collect()
            }
            _ => {
                self.foreign.push(path.to_vec());
                return;
            }
        };
        if let Some(first) = from_root.first() {
            self.own.push(self.roots.get(first).unwrap_or(first).clone());
        }
    }

    fn note_tree(&mut self, prefix: &[String], tree: &syn::UseTree) {
        let with = |name: &syn::Ident| [prefix, &[name.to_string()]].concat();
        match tree {
            syn::UseTree::Path(path) => self.note_tree(&with(&path.ident), &path.tree),
            syn::UseTree::Name(name) => self.note(&with(&name.ident)),
            syn::UseTree::Rename(name) => self.note(&with(&name.ident)),
            syn::UseTree::Glob(_) => self.note(prefix),
            syn::UseTree::Group(group) => group.items.iter().for_each(|tree| self.note_tree(prefix, tree)),
        }
    }
}

fn is_for_tests(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        syn::Meta::List(list) if list.path.is_ident("cfg") => {
            let condition = list.tokens.to_string();
            condition == "test" || condition.starts_with("all (test") || condition == "debug_assertions"
        }
        _ => false,
    })
}

impl<'ast> Visit<'ast> for Names<'_> {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if !is_for_tests(&item.attrs) {
            self.module.push(item.ident.to_string());
            visit::visit_item_mod(self, item);
            self.module.pop();
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        if !is_for_tests(&item.attrs) {
            self.note_tree(&[], &item.tree);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        if names.len() > 1 {
            self.note(&names);
        }
        visit::visit_path(self, path);
    }
}

/// What no code below the drivers may name. `transport` calls the system for its own sockets and memory, and `base`
/// has locks, the clock and all that makes threads.
fn machinery(layer: &str, path: &[String]) -> Option<&'static str> {
    let names: Vec<&str> = path.iter().map(String::as_str).collect();
    let what = match names[..] {
        ["std", "thread", ..] | ["thread", "spawn" | "park" | "sleep" | "current", ..] => Some("threads"),
        ["std", "time", "Instant" | "SystemTime", ..] | ["Instant", "now", ..] => Some("clocks"),
        ["std", "sync", "Condvar" | "Barrier" | "mpsc", ..] => Some("waits"),
        ["rustix" | "libc" | "socket2", ..] => Some(SYSTEM_CALLS),
        _ => None,
    };
    what.filter(|&what| layer != "base" && !(layer == "transport" && what == SYSTEM_CALLS))
}

const SYSTEM_CALLS: &str = "system-calls";

/// Locks that do not say which threads may wait for one another. `base` has those that do, and `transport` locks what
/// belongs to one socket.
fn is_lock_of_the_system(path: &[String]) -> bool {
    let names: Vec<&str> = path.iter().map(String::as_str).collect();
    match names[..] {
        // All of the module, by which its locks could be named.
        ["std", "sync"] | ["std", "sync", "self"] => true,
        ["std", "sync", name, ..] | ["sync", name, ..] => {
            let is_guard = name.starts_with("Mutex") || name.starts_with("RwLock");
            is_guard || matches!(name, "Condvar" | "ReentrantLock" | "poison" | "nonpoison")
        }
        _ => false,
    }
}

const LOCKS: &str = "locks-of-the-system";

/// Finds all breaches, each with the number of its places.
fn find(layers: &Layers, sources: &[Source]) -> BTreeMap<Breach, usize> {
    let mut roots = BTreeMap::new();
    let modules: BTreeSet<&String> = sources.iter().filter_map(|source| source.module.first()).collect();
    let root = sources.iter().find(|source| source.module.is_empty()).expect("lib.rs");
    for item in &root.file.items {
        if let Some((module, names)) = re_exported(item)
            && modules.contains(&module)
        {
            roots.extend(names.into_iter().map(|name| (name, module.clone())));
        }
    }
    let mut breaches = BTreeMap::new();
    for source in sources.iter().filter(|source| !source.module.is_empty()) {
        let mut names =
            Names { module: source.module.clone(), roots: &roots, own: Vec::new(), foreign: Vec::new() };
        names.visit_file(&source.file);
        let from = &source.module[0];
        let (layer, height) = layers.place(from);
        for to in names.own.iter().filter(|to| modules.contains(to) && *to != from) {
            if layers.place(to).1 > height {
                *breaches.entry(format!("{from} uses {to}")).or_default() += 1;
            }
        }
        if !matches!(layer, "base" | "transport") {
            for _ in names.foreign.iter().filter(|path| is_lock_of_the_system(path)) {
                *breaches.entry(format!("{from} names {LOCKS}")).or_default() += 1;
            }
        }
        if height < layers.drivers {
            for what in names.foreign.iter().filter_map(|path| machinery(layer, path)) {
                *breaches.entry(format!("{from} names {what}")).or_default() += 1;
            }
        }
    }
    breaches
}

/// What an item of `lib.rs` gives out under another path: the module that has it, and the new names. An inline module
/// gives out the module of its only `use`.
fn re_exported(item: &syn::Item) -> Option<(String, Vec<String>)> {
    match item {
        syn::Item::Use(item) => match &item.tree {
            syn::UseTree::Path(path) => Some((path.ident.to_string(), leaves(&path.tree))),
            _ => None,
        },
        syn::Item::Mod(module) => match &*module.content.as_ref()?.1 {
            [syn::Item::Use(syn::ItemUse { tree: syn::UseTree::Path(path), .. })]
                if path.ident == "crate" =>
            {
                let syn::UseTree::Path(inner) = &*path.tree else { return None };
                Some((inner.ident.to_string(), vec![module.ident.to_string()]))
            }
            _ => None,
        },
        _ => None,
    }
}

fn leaves(tree: &syn::UseTree) -> Vec<String> {
    match tree {
        syn::UseTree::Path(path) => leaves(&path.tree),
        syn::UseTree::Name(name) => vec![name.ident.to_string()],
        syn::UseTree::Rename(name) => vec![name.rename.to_string()],
        syn::UseTree::Glob(_) => Vec::new(),
        syn::UseTree::Group(group) => group.items.iter().flat_map(leaves).collect(),
    }
}

#[test]
fn no_folder_uses_more_of_what_stands_above_it() {
    let list = crate_folder().join("layers.txt");
    let text = fs::read_to_string(&list).expect("layers.txt");
    let layers = Layers::parse(&text);
    let mut sources = Vec::new();
    read(&crate_folder().join("src"), &[], &mut sources);
    assert!(sources.len() > 100, "the sources have been found");
    let found = find(&layers, &sources);
    if std::env::var_os(WRITE).is_some() {
        let mut text = layers.text;
        for (breach, count) in &found {
            writeln!(text, "breach {breach} {count}").expect("a string takes all");
        }
        fs::write(&list, text).expect("layers.txt can be written");
        return;
    }
    let listed = listed(&text);
    let mut said = String::new();
    for breach in found.keys().chain(listed.keys()).collect::<BTreeSet<_>>() {
        let (now, before) = (found.get(breach).unwrap_or(&0), listed.get(breach).unwrap_or(&0));
        if now > before {
            writeln!(said, "{breach} in {now} places, {before} are allowed").expect("a string takes all");
        } else if now < before {
            writeln!(said, "{breach} in {now} places only: run this test with {WRITE}=1")
                .expect("it takes all");
        }
    }
    assert!(said.is_empty(), "crates/ironorb/layers.txt:\n{said}");
}

/// A crate of two files, in which `low` stands below `high`.
fn found_in(low: &str) -> BTreeMap<Breach, usize> {
    found_below("poa", low)
}

/// What is found in a crate of two files whose lower one stands in a layer of this name.
fn found_below(layer: &str, low: &str) -> BTreeMap<Breach, usize> {
    let layers = Layers::parse(&format!("layer driver: high\nlayer {layer}: low\n"));
    let source = |module: &[&str], text: &str| Source {
        module: module.iter().map(|&name| name.to_owned()).collect(),
        file: syn::parse_file(text).expect("Rust"),
    };
    let sources = [
        source(
            &[],
            "mod high; mod low; pub use high::{Upper as Renamed, other}; pub mod tall { pub use crate::high::*; }",
        ),
        source(&["high"], "use crate::low::A; use std::thread;"),
        source(&["low"], low),
    ];
    find(&layers, &sources)
}

#[test]
fn breaches_are_found_in_every_form() {
    let uses = |low: &str, count| {
        let expected = BTreeMap::from([("low uses high".to_owned(), count)]);
        assert_eq!(found_in(low), expected, "{low}");
    };
    uses("use crate::high::{A, b::C};", 2);
    uses("fn f() -> crate::high::A { crate::high::a() }", 2);
    uses("mod inner { use super::super::high; }", 1);
    uses("use crate::Renamed; pub use crate::other;", 2);
    uses("use crate::tall::A;", 1);
    uses("impl<T: crate::high::A> B for T {}", 1);
    let names = |low: &str, what: &str| {
        assert_eq!(found_in(low), BTreeMap::from([(format!("low names {what}"), 1)]), "{low}");
    };
    names("use std::{sync::Arc, thread};", "threads");
    names("use std::time::{Duration, Instant};", "clocks");
    names("use std::sync::{Arc, Barrier};", "waits");
    names("use std::sync::{Arc, RwLockReadGuard as Held};", LOCKS);
    names("use std::sync;", LOCKS);
    names("struct S(std::sync::Mutex<u8>);", LOCKS);
    let both = [("low names waits".to_owned(), 1), (format!("low names {LOCKS}"), 1)];
    assert_eq!(found_in("use std::sync::Condvar;"), BTreeMap::from(both));
    let in_base = |text: &str| found_below("base", text);
    assert_eq!(in_base("use std::sync::{Mutex, Condvar};"), BTreeMap::new());
    names("use rustix::net;", "system-calls");
    for fine in [
        "use std::time::Duration; use crate::low::A; use self::inner::B; mod inner {}",
        "#[cfg(test)] mod tests { use crate::high::A; use std::thread; }",
        "// crate::high in a comment\nconst A: &str = \"crate::high\";",
    ] {
        assert_eq!(found_in(fine), BTreeMap::new(), "{fine}");
    }
}
