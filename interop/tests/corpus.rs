//! IDL that other projects ship: `ironorb idl compile` accepts every file of Debian's omniORB packages,
//! OMG's service IDL among them. The Rust of all definitions is one crate, which compiles without a
//! warning. The files of the services are one module of it, as in a program that uses several of them; so the Rust of each file
//! alone is generated, and not compiled. The compiler takes a minute and a half for all of them, so that the gate has it compile
//! those of some services.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use ironorb_interop::process::{ironorb_command, ironorb_library, programs};

/// The packages with IDL. libcos4-dev only has files generated from IDL.
const PACKAGES: &[&str] = &["omniorb-idl", "libcos4-dev", "omniorb-doc"];

/// Files that the compiler refuses, by the end of their path, and why.
const EXCEPTIONS: &[(&str, &str)] = &[];

/// Files with Rust that does not compile, and why.
const NOT_COMPILED: &[(&str, &str)] = &[];

/// Where the packages install IDL to use, beside that of their examples.
const SHARED: &str = "/usr/share/idl";

/// Files of that folder that define what another file of it defines: each is a module of its own.
const APART: &[&str] = &["omniORB/Naming.idl"];

/// Files that the front end provides itself, instead of the installed ones.
const BUILTIN: &[&str] = &["orb.idl", "corbaidl.idl", "boxes.idl"];

/// The services whose Rust the gate has compiled, with what they include: large and small ones, with valuetypes, `any` and deep
/// inheritance.
const SOME_SERVICES: &[&str] = &[
    "CosLifeCycle.idl",
    "CosNaming.idl",
    "CosNotifyChannelAdmin.idl",
    "CosPropertyService.idl",
    "CosTrading.idl",
];

#[test]
fn the_idl_of_debian_becomes_rust() {
    compiles("some", 10, |file| SOME_SERVICES.iter().any(|name| file.ends_with(name)));
}

#[test]
fn all_rust_of_the_idl_of_debian_has_no_warnings() {
    compiles("all", 100, |_| true);
}

/// Generates the Rust of all files, and compiles that of the chosen services with all else. Our own IDL has so many levels of
/// inheritance.
fn compiles(name: &str, levels: u32, is_chosen: impl Fn(&Path) -> bool) {
    let files = installed();
    let included: BTreeSet<String> = files.iter().flat_map(|file| includes(file)).collect();
    let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join("corpus").join(name);
    let rust = home.join("rust");
    let _ = std::fs::remove_dir_all(&rust);
    std::fs::create_dir_all(&home).expect("the folder of the crate can be made");

    let mut failures = String::new();
    let mut modules = Vec::new();
    let mut together = String::new();
    let mut chosen = 0;
    for (number, file) in files.iter().enumerate() {
        // One folder for each file, because several files have the same name.
        let done = compile(file, &rust.join(number.to_string()));
        let exception = EXCEPTIONS.iter().find(|(end, _)| file.ends_with(end));
        let generated = match (done, exception) {
            (Ok(generated), None) => generated,
            (Err(_), Some(_)) => continue,
            (Err(errors), None) => {
                let _ = writeln!(failures, "{} is refused:\n{errors}", file.display());
                continue;
            }
            (Ok(_), Some((_, why))) => {
                let _ = writeln!(failures, "{} is no exception any more: {why}", file.display());
                continue;
            }
        };
        if NOT_COMPILED.iter().any(|(end, _)| file.ends_with(end)) {
            continue;
        }
        let is_service = file.starts_with(SHARED) && !APART.iter().any(|end| file.ends_with(end));
        if is_service && is_chosen(file) {
            let _ = writeln!(together, "#include {file:?}");
            chosen += 1;
        } else if !is_service && !included.contains(&*file.file_name().unwrap_or_default().to_string_lossy())
        {
            // The definitions of an included file are generated with the including file.
            modules.push(generated);
        }
    }
    assert!(chosen >= SOME_SERVICES.len(), "only {chosen} services are compiled");
    for (name, text) in [("services.idl", together), ("own.idl", own_idl(levels))] {
        let file = home.join(name);
        std::fs::write(&file, text).expect("a file can be written");
        match compile(&file, &rust) {
            Ok(generated) => modules.push(generated),
            Err(errors) => {
                let _ = writeln!(failures, "{name} is refused:\n{errors}");
            }
        }
    }
    assert!(failures.is_empty(), "{failures}");
    compile_without_warnings(&home, &modules);
}

/// Generates the Rust of a file, and gives its path. Else what is wrong with the file.
fn compile(file: &Path, out: &Path) -> Result<PathBuf, String> {
    let mut compile = Command::new(ironorb_command());
    compile.args(["idl", "compile", "--out"]).arg(out);
    for dir in ["omniORB", "omniORB/COS"] {
        compile.arg("-I").arg(Path::new(SHARED).join(dir));
    }
    let done = compile.arg(file).output().expect("ironorb can be started");
    if !done.status.success() {
        return Err(String::from_utf8_lossy(&done.stderr).into_owned());
    }
    Ok(out.join(file.file_name().expect("a file has a name")).with_extension("rs"))
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
        dirs.iter().filter(|dir| dir.starts_with(SHARED)).for_each(|dir| {
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

/// IDL that such files have little of: many levels of inheritance, names that clash in Rust, names
/// that are words of Rust or of an older IDL.
fn own_idl(levels: u32) -> String {
    let mut text = String::from("module Deep {\n    interface Level0 { void level_0(); };\n");
    for level in 1..levels {
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

/// Makes a crate of all the Rust, and has the compiler check it.
fn compile_without_warnings(home: &Path, modules: &[PathBuf]) {
    let mut crate_text = String::from("#![deny(warnings)]\n");
    for (number, path) in modules.iter().enumerate() {
        let _ = writeln!(crate_text, "pub mod module_{number} {{\n    include!({path:?});\n}}");
    }
    let source = home.join("corpus.rs");
    std::fs::write(&source, crate_text).expect("the crate can be written");
    let ironorb = ironorb_library();
    let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    rustc.args(["--edition", "2024", "--crate-type", "lib", "--emit", "metadata", "--out-dir"]).arg(home);
    rustc.arg("-L").arg(format!("dependency={}", programs().join("deps").display()));
    rustc.arg("--extern").arg(format!("ironorb={}", ironorb.display())).arg(&source);
    let check = rustc.output().expect("the compiler can be started");
    let errors = String::from_utf8_lossy(&check.stderr);
    assert!(check.status.success(), "{} modules do not compile:\n{errors}", modules.len());
}
