//! IDL that other projects ship: `ironorb idl compile` accepts every file of Debian's omniORB packages,
//! OMG's service IDL among them. The Rust of all definitions is one crate, which compiles without a
//! warning.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use ironorb_interop::process::ironorb_command;

/// The packages with IDL. libcos4-dev only has files generated from IDL.
const PACKAGES: &[&str] = &["omniorb-idl", "libcos4-dev", "omniorb-doc"];

/// Files that the compiler refuses, by the end of their path, and why.
const EXCEPTIONS: &[(&str, &str)] = &[];

/// Files with Rust that does not compile, and why.
const NOT_COMPILED: &[(&str, &str)] = &[];

/// Files that the front end provides itself, instead of the installed ones.
const BUILTIN: &[&str] = &["orb.idl", "corbaidl.idl", "boxes.idl"];

#[test]
fn the_idl_of_debian_becomes_rust_without_warnings() {
    let files = installed();
    let dirs: BTreeSet<&Path> = files.iter().filter_map(|file| file.parent()).collect();
    let dirs: Vec<&Path> = dirs.into_iter().filter(|dir| dir.starts_with("/usr/share/idl")).collect();
    let included: BTreeSet<String> = files.iter().flat_map(|file| includes(file)).collect();
    let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join("corpus");
    let rust = home.join("rust");
    let _ = std::fs::remove_dir_all(&rust);

    let mut failures = String::new();
    let mut modules = Vec::new();
    for (number, file) in files.iter().enumerate() {
        // One folder for each file, because several files have the same name.
        let out = rust.join(number.to_string());
        let mut compile = Command::new(ironorb_command());
        compile.args(["idl", "compile", "--out"]).arg(&out);
        dirs.iter().for_each(|dir| {
            compile.arg("-I").arg(dir);
        });
        let done = compile.arg(file).output().expect("ironorb can be started");
        let exception = EXCEPTIONS.iter().find(|(end, _)| file.ends_with(end));
        match (done.status.success(), exception) {
            (true, None) => {
                let name = file.file_name().expect("a file has a name");
                // The definitions of an included file are generated with the including file, so they are
                // compiled already.
                if !included.contains(&*name.to_string_lossy())
                    && !NOT_COMPILED.iter().any(|(end, _)| file.ends_with(end))
                {
                    modules.push((number, out.join(name).with_extension("rs")));
                }
            }
            (false, Some(_)) => {}
            (false, None) => {
                let errors = String::from_utf8_lossy(&done.stderr);
                let _ = writeln!(failures, "{} is refused:\n{errors}", file.display());
            }
            (true, Some((_, why))) => {
                let _ = writeln!(failures, "{} is no exception any more: {why}", file.display());
            }
        }
    }
    let own = home.join("own.idl");
    std::fs::create_dir_all(&home)
        .and_then(|()| std::fs::write(&own, own_idl()))
        .expect("a file can be written");
    let done =
        Command::new(ironorb_command()).args(["idl", "compile", "--out"]).arg(&rust).arg(&own).output();
    let done = done.expect("ironorb can be started");
    if !done.status.success() {
        let _ = writeln!(failures, "our own is refused:\n{}", String::from_utf8_lossy(&done.stderr));
    }
    modules.push((files.len(), rust.join("own.rs")));
    assert!(failures.is_empty(), "{failures}");
    compile_without_warnings(&home, &modules);
}

/// Files that contradict another file about a definition, by the end of their path.
const CONTRADICT: &[&str] = &[
    // Declares an interface as local. Another file declares it without `local`.
    "omniORB/poa_include.idl",
];

#[test]
fn the_idl_of_debian_fits_into_one_repository() {
    let files = installed();
    let dirs: BTreeSet<&Path> = files.iter().filter_map(|file| file.parent()).collect();
    let store = Path::new(env!("CARGO_TARGET_TMPDIR")).join("corpus.redb");
    let _ = std::fs::remove_file(&store);
    let load = |files: &[&PathBuf]| {
        let mut command = Command::new(ironorb_command());
        command.args(["ifr", "load", "--store"]).arg(&store);
        dirs.iter().filter(|dir| dir.starts_with("/usr/share/idl")).for_each(|dir| {
            command.arg("-I").arg(dir);
        });
        command.args(files).output().expect("ironorb can be started")
    };
    let (contradict, agree): (Vec<_>, Vec<_>) =
        files.iter().partition(|file| CONTRADICT.iter().any(|end| file.ends_with(end)));
    let mut added = 0;
    for again in [false, true] {
        let loaded = load(&agree);
        assert!(loaded.status.success(), "{}", String::from_utf8_lossy(&loaded.stderr));
        let report = String::from_utf8(loaded.stdout).expect("it writes UTF-8");
        assert_eq!(report.lines().count(), agree.len());
        for line in report.lines() {
            let (_, changes) = line.rsplit_once(": ").expect("a line names its file");
            let number: usize = changes.split(' ').next().and_then(|n| n.parse().ok()).expect("a number");
            added += number;
            assert!(!again || number == 0 && line.ends_with(" 0 removed"), "{line}");
        }
    }
    assert!(added > 2_000, "only {added} definitions");
    // The exported IDL has the same definitions.
    let exported = |store: &Path| {
        let exported = Command::new(ironorb_command()).args(["ifr", "export", "--store"]).arg(store).output();
        String::from_utf8(exported.expect("ironorb can be started").stdout).expect("it writes UTF-8")
    };
    let (text, again) = (store.with_extension("idl"), store.with_extension("again.redb"));
    let _ = std::fs::remove_file(&again);
    std::fs::write(&text, exported(&store)).expect("a file can be written");
    let loaded =
        Command::new(ironorb_command()).args(["ifr", "load", "--store"]).arg(&again).arg(&text).output();
    let loaded = loaded.expect("ironorb can be started");
    assert!(loaded.status.success(), "{}", String::from_utf8_lossy(&loaded.stderr));
    assert_eq!(said(&exported(&store)), said(&exported(&again)));
    for file in contradict {
        let loaded = load(&[file]);
        let errors = String::from_utf8_lossy(&loaded.stderr);
        assert!(errors.contains("under this id: remove it first"), "{errors}");
    }
}

/// The lines of a text that define something, sorted: without blank lines, modules, prefixes and forward
/// declarations.
fn said(text: &str) -> Vec<&str> {
    let is_declaration = |line: &str| {
        let words: Vec<&str> = line.trim_end_matches(';').split(' ').collect();
        matches!(words[..], [.., "interface" | "valuetype" | "struct" | "union", _]) && line.ends_with(';')
    };
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && *line != "};");
    let lines = lines.filter(|line| !line.starts_with("module ") && !line.starts_with("#pragma prefix"));
    let mut lines: Vec<&str> = lines.filter(|line| !is_declaration(line)).collect();
    lines.sort_unstable();
    lines
}

/// IDL that such files have little of: a hundred levels of inheritance, names that clash in Rust, names
/// that are words of Rust or of an older IDL.
fn own_idl() -> String {
    let mut text = String::from("module Deep {\n    interface Level0 { void level_0(); };\n");
    for level in 1..100 {
        let _ = writeln!(
            text,
            "    interface Level{level} : Level{} {{ long level_{level}(in long x); }};",
            level - 1
        );
    }
    text.push_str("};\nmodule Names {\n");
    for word in ["fn", "self", "crate", "super", "match", "type", "async", "dyn", "yield", "Option", "g"] {
        let _ = writeln!(text, "    module in_{word} {{\n        struct {word} {{ long x; }};");
        let _ = writeln!(
            text,
            "        interface holder {{ attribute long {word}; void f(in long {word}); }};\n    }};"
        );
    }
    text.push_str(
        "    struct some_thing { long URLString, url_string, urlString2; };\n    struct SomeThing2 { long _map, int8; };\n    \
         union map switch (long) { case 1: long some_case; case 2: long SomeCase2; default: string bitset; };\n    \
         enum bitmask { red_one, RedOne2, RED__ONE };\n    typedef map int32;\n};\n",
    );
    text
}

/// Every IDL file of the packages.
fn installed() -> Vec<PathBuf> {
    let mut files = BTreeSet::new();
    for package in PACKAGES {
        let listing = Command::new("dpkg").args(["-L", package]).output();
        let listing = listing.ok().filter(|listing| listing.status.success()).unwrap_or_else(|| {
            panic!("{package} is not installed; run: sudo apt-get install -y {}", PACKAGES.join(" "))
        });
        let paths = String::from_utf8(listing.stdout).expect("dpkg writes UTF-8");
        files.extend(paths.lines().filter(|path| path.ends_with(".idl")).map(PathBuf::from));
    }
    // Fewer files would mean that the packages have changed.
    assert!(files.len() >= 70, "only {} IDL files are installed", files.len());
    files.into_iter().collect()
}

/// The names of the files that a file includes, without those that the front end provides.
fn includes(file: &Path) -> Vec<String> {
    let text = std::fs::read(file).expect("an installed file can be read");
    let text = String::from_utf8_lossy(&text);
    let names = text.lines().filter_map(|line| {
        let header = line.trim_start().strip_prefix('#')?.trim_start().strip_prefix("include")?.trim();
        let name = header.get(1..)?.split(['"', '>']).next()?;
        Some(name.rsplit('/').next().unwrap_or(name).to_owned())
    });
    names.filter(|name| !BUILTIN.contains(&name.as_str())).collect()
}

/// Makes a crate of all the Rust, and lets Cargo check it with the workspace's sources.
fn compile_without_warnings(home: &Path, modules: &[(usize, PathBuf)]) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate lies in the workspace");
    let mut library = String::from("#![deny(warnings)]\n");
    for (number, path) in modules {
        let _ = writeln!(library, "pub mod file_{number} {{\n    include!({path:?});\n}}");
    }
    let ironorb = root.join("crates/ironorb");
    let manifest = format!(
        "[package]\nname = \"corpus\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n\
         [dependencies]\nironorb = {{ path = {ironorb:?} }}\n\n[workspace]\n"
    );
    std::fs::create_dir_all(home.join("src")).expect("the folder of the crate can be made");
    std::fs::write(home.join("Cargo.toml"), manifest).expect("the manifest can be written");
    std::fs::write(home.join("src/lib.rs"), library).expect("the crate can be written");
    // The workspace's versions, so that Cargo looks up and fetches nothing.
    std::fs::copy(root.join("Cargo.lock"), home.join("Cargo.lock")).expect("the lock file can be copied");
    let check = Command::new(env!("CARGO"))
        .args(["check", "--quiet", "--offline", "--target-dir"])
        .arg(home.join("target"))
        .current_dir(home)
        .env_remove("RUSTFLAGS")
        .output()
        .expect("Cargo can be started");
    let errors = String::from_utf8_lossy(&check.stderr);
    assert!(check.status.success(), "{} files do not compile:\n{errors}", modules.len());
}
