//! Generated code and the compiler: its messages for typical mistakes, and several IDL files in one program.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use ironorb_build::Config;

/// Messages differ between versions of rustc. So the test looks only for the lines of the reviewed file, in
/// the messages about the mistake's module.
#[test]
fn mistakes_are_reported_with_their_mend() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/mistakes");
    let source = std::fs::read_to_string(dir.join("mistakes.rs")).unwrap();
    let expected = std::fs::read_to_string(dir.join("mistakes.stderr")).unwrap();
    let (succeeded, reported) = checked(&dir.join("mistakes.rs"), &[]);
    assert!(!succeeded);
    let mut mistakes = 0;
    for paragraph in expected.split("\n\n").filter(|paragraph| !paragraph.starts_with('#')) {
        let (module, lines) = paragraph.split_once(":\n").unwrap();
        let reported = about(module, &source, &reported);
        for line in lines.lines() {
            assert!(reported.contains(line), "{module}: no line has `{line}`:\n{reported}");
        }
        mistakes += 1;
    }
    assert_eq!(mistakes, source.lines().filter(|line| line.starts_with("mod ")).count());
}

/// The messages whose first location is in a module of the source.
fn about(module: &str, source: &str, reported: &str) -> String {
    let head = format!("mod {module} {{");
    let first = source.lines().position(|line| line == head).unwrap() + 1;
    let last = first + source.lines().skip(first).position(|line| line == "}").unwrap() + 1;
    let is_inside = |message: &&str| {
        let place = message.split("mistakes.rs:").nth(1);
        let line = place.and_then(|place| place.split(':').next()?.parse::<usize>().ok());
        line.is_some_and(|line| (first..=last).contains(&line))
    };
    reported.split("\n\n").filter(is_inside).collect::<Vec<_>>().join("\n\n")
}

#[test]
fn files_that_include_a_common_one_are_one_set_of_types() {
    let idl = Idl::new(&[
        (
            "common.idl",
            "#ifndef COMMON\n#define COMMON\nmodule shop { struct Item { long id; }; };\n#endif\n",
        ),
        ("a.idl", "#include \"common.idl\"\nmodule shop { interface Seller { Item sell(); }; };\n"),
        ("b.idl", "#include \"common.idl\"\nmodule shop { interface Buyer { void buy(in Item it); }; };\n"),
        ("near/b.idl", "module around { struct Near { long x; }; };\n"),
        ("far/b.idl", "module away { struct Far { long x; }; };\n"),
    ]);
    let both = "fn pass(seller: &shop::SellerRef, buyer: &shop::BuyerRef) -> Result<(), ironorb::SystemException> {\n    \
                use shop::{Buyer as _, Seller as _};\n    buyer.buy(&seller.sell()?)\n}\n";
    let beside = |name: &str| format!("include!(concat!(env!(\"OUT_DIR\"), \"/{name}.rs\"));\n");

    let files = idl.compile(Config::new(), &["a.idl", "b.idl"]).unwrap();
    assert_eq!(files.len(), 2);
    idl.check(&[&*beside("a"), &beside("b"), both].concat()).unwrap();
    // In separate modules the code of `b` does not find that of `a`. The error names the remedy.
    let apart = format!("mod x {{ {} }}\nmod y {{ {} }}\n", beside("a"), beside("b"));
    assert!(idl.check(&apart).unwrap_err().contains("Config::module tells where it is"));

    idl.compile(Config::new().module("crate::x"), &["a.idl", "b.idl"]).unwrap();
    let used =
        both.replace("shop::BuyerRef", "y::shop::BuyerRef").replace("shop::SellerRef", "x::shop::SellerRef");
    idl.check(&[&*apart, &used.replace("use shop::{", "use x::shop::{")].concat()).unwrap();

    let files = idl.compile(Config::new(), &["near/b.idl", "far/b.idl"]);
    let names = files.unwrap();
    assert!(names[0].ends_with("near/b.rs") && names[1].ends_with("far/b.rs"), "{names:?}");
    idl.check(&[beside("near/b"), beside("far/b")].concat()).unwrap();
}

/// The lines of the other interfaces must not move when an operation is added, so that the compiler checks
/// little again.
#[test]
fn the_interfaces_of_a_large_file_are_files_of_their_own() {
    let interfaces = |count: usize, added: &str| {
        let one = |at: usize| {
            let added = if at == 3 { added } else { "" };
            let base = if at == 4 { ": I3" } else { "" };
            format!(
                "exception E{at} {{}};\ninterface I{at}{base} {{ void ask{at}() raises (E{at}); {added} }};\n"
            )
        };
        let all: String = (0..count).map(one).collect();
        format!(
            "interface AtRoot {{ void ask(); }};\nmodule m {{ {all} module inner {{ interface I3 {{}}; }}; }};\n"
        )
    };
    let idl = Idl::new(&[("bank.idl", &interfaces(12, ""))]);
    let texts = || {
        let parts = std::fs::read_dir(idl.dir.path().join("out/bank.parts")).into_iter().flatten();
        let mut paths: Vec<_> = parts.map(|part| part.unwrap().path()).collect();
        paths.push(idl.dir.path().join("out/bank.rs"));
        paths.sort();
        let read = |path: PathBuf| {
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            (name, std::fs::read_to_string(path).unwrap())
        };
        paths.into_iter().map(read).collect::<Vec<_>>()
    };
    let files = idl.compile(Config::new(), &["bank.idl"]).unwrap();
    assert_eq!(files.len(), 1);
    let before = texts();
    assert_eq!(before.len(), 15);
    assert!(before.iter().any(|(name, text)| name == "m.inner.i3.rs" && text.contains("pub trait I3")));
    // Wherever the file is included, it finds the others.
    let source = "pub mod deep { include!(concat!(env!(\"OUT_DIR\"), \"/bank.rs\")); }\n\
                  pub fn ask(i: &deep::m::I4Ref, root: &deep::AtRootRef) -> Result<(), deep::m::i3::Ask3Error> {\n    \
                  use deep::{AtRoot as _, m::I3 as _};\n    root.ask()?;\n    i.ask3()\n}\n";
    idl.check(source).unwrap();

    std::fs::write(idl.dir.path().join("bank.idl"), interfaces(12, "void more();")).unwrap();
    idl.compile(Config::new(), &["bank.idl"]).unwrap();
    let changed: Vec<String> =
        before.iter().zip(texts()).filter(|(old, new)| **old != *new).map(|(old, _)| old.0.clone()).collect();
    assert_eq!(changed, ["m.i3.rs", "m.i4.rs"], "the interface, and the one that derives from it");

    // What the generator did not write stays.
    let other = idl.dir.path().join("out/bank.parts/notes.rs");
    std::fs::write(&other, "// mine\n").unwrap();
    std::fs::write(idl.dir.path().join("bank.idl"), interfaces(2, "")).unwrap();
    idl.compile(Config::new(), &["bank.idl"]).unwrap();
    let names: Vec<String> = texts().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["notes.rs", "bank.rs"]);
}

#[test]
fn a_servant_may_leave_out_operations_with_servant_defaults() {
    let idl = Idl::new(&[(
        "bank.idl",
        "interface Bank { long count(in string name); void close(); };\n\
                                       interface Other { void ask(); };\n",
    )]);
    let source = "include!(concat!(env!(\"OUT_DIR\"), \"/bank.rs\"));\nstruct Teller;\nimpl Bank for Teller {}\n\
                  impl Other for Teller { fn ask(&self) -> Result<(), ironorb::SystemException> { Ok(()) } }\n";
    idl.compile(Config::new(), &["bank.idl"]).unwrap();
    assert!(idl.check(source).unwrap_err().contains("missing: `count`, `close`"));
    idl.compile(Config::new().servant_defaults_of("Other"), &["bank.idl"]).unwrap();
    assert!(idl.check(source).is_err());
    idl.compile(Config::new().servant_defaults_of("Bank"), &["bank.idl"]).unwrap();
    idl.check(source).unwrap();
    idl.compile(Config::new().servant_defaults(), &["bank.idl"]).unwrap();
    idl.check(&source.replace("{ fn ask(&self) -> Result<(), ironorb::SystemException> { Ok(()) } }", "{}"))
        .unwrap();
}

/// IDL files in a directory.
struct Idl {
    dir: tempfile::TempDir,
}

impl Idl {
    fn new(files: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = dir.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        Idl { dir }
    }

    fn compile(&self, config: Config, files: &[&str]) -> Result<Vec<PathBuf>, ironorb_build::Errors> {
        config
            .out_dir(self.dir.path().join("out"))
            .compile(files.iter().map(|file| self.dir.path().join(file)))
    }

    /// The errors of the compiler for a program that uses the Rust files.
    fn check(&self, source: &str) -> Result<(), String> {
        let path = self.dir.path().join("source.rs");
        std::fs::write(&path, source).unwrap();
        let out = self.dir.path().join("out");
        match checked(&path, &[("OUT_DIR", &out)]) {
            (true, _) => Ok(()),
            (false, reported) => Err(reported),
        }
    }
}

/// Runs the compiler on a library that uses `ironorb`.
fn checked(source: &Path, variables: &[(&str, &Path)]) -> (bool, String) {
    let ironorb = ironorb();
    let deps = ironorb.parent().expect("it lies in a folder");
    let out = tempfile::tempdir().unwrap();
    let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    rustc.args(["--edition", "2024", "--crate-type", "lib", "--emit", "metadata", "--cap-lints", "allow"]);
    rustc.arg("--out-dir").arg(out.path()).arg("-L").arg(format!("dependency={}", deps.display()));
    rustc.arg("--extern").arg(format!("ironorb={}", ironorb.display())).arg(source);
    rustc.envs(variables.iter().map(|&(name, value)| (name, value)));
    let output = rustc.output().unwrap();
    (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// The metadata of the library. A target folder may hold several, of other features or older sources, so Cargo tells which
/// one it is: `cargo xtask` has heard it when it built this test, else Cargo is asked here.
fn ironorb() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY
        .get_or_init(|| std::env::var_os("IRONORB_TEST_LIBRARY").map_or_else(library_by_cargo, PathBuf::from))
}

/// Asks for what `cargo test -p ironorb-build` builds, of which nothing is left to do then.
fn library_by_cargo() -> PathBuf {
    let this = std::env::current_exe().unwrap();
    // TARGET/PROFILE/deps/test-0123
    let profile_dir = this.ancestors().nth(2).expect("Cargo keeps tests two folders down");
    let target_dir = profile_dir.parent().expect("Cargo keeps profiles in the target folder");
    let mut build = Command::new(env!("CARGO"));
    build.args(["test", "--no-run", "--quiet", "--locked", "--package=ironorb-build", "--test=all"]);
    build.args(["--message-format=json", "--target-dir"]).arg(target_dir);
    if profile_dir.ends_with("release") {
        build.arg("--release");
    }
    let output = build.current_dir(env!("CARGO_MANIFEST_DIR")).output().expect("Cargo can be started");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let messages = String::from_utf8(output.stdout).unwrap();
    let is_library = |message: &&str| {
        message.contains(r#""reason":"compiler-artifact""#)
            && message.contains(r#""kind":["lib"]"#)
            && message.contains(r#""name":"ironorb""#)
    };
    let message = messages.lines().find(is_library).expect("this test depends on it");
    let files = message.split('"').filter(|text| text.ends_with(".rmeta"));
    files.map(PathBuf::from).next().expect("a library has metadata")
}
