//! Where test files must be named. Cargo finds none by itself: each crate has one program of most of its tests.

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};

    use crate::root;

    /// Folders with a `tests/main.rs` that lists the crate's tests.
    fn packages() -> Vec<PathBuf> {
        let crates = fs::read_dir(root().join("crates")).expect("it is there").flatten();
        let others = ["tests", "interop"].map(|name| root().join(name));
        let all = crates.map(|entry| entry.path()).chain(others);
        all.filter(|folder| folder.join("tests/main.rs").exists()).collect()
    }

    /// Names of the files and folders in `tests/` that have tests: a folder has a `main.rs`.
    fn in_folder(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).expect("it is there").flatten().map(|entry| entry.path());
        let mut names = Vec::new();
        for path in entries {
            let is_file = path.extension().is_some_and(|extension| extension == "rs");
            if !path.ends_with("main.rs") && (is_file || path.join("main.rs").exists()) {
                names.push(path.file_stem().expect("it has a name").to_string_lossy().into_owned());
            }
        }
        names
    }

    #[test]
    fn every_file_of_tests_is_built() {
        let packages = packages();
        assert!(packages.len() >= 8, "{packages:?}");
        for package in packages {
            let main = fs::read_to_string(package.join("tests/main.rs")).expect("it is there");
            let manifest = fs::read_to_string(package.join("Cargo.toml")).expect("it is there");
            assert!(manifest.contains("autotests = false"), "{}", package.display());
            for name in in_folder(&package.join("tests")) {
                let is_listed = main.lines().any(|line| line == format!("mod {name};"));
                let is_target = manifest.contains(&format!("[[test]]\nname = \"{name}\"\n"));
                assert!(
                    is_listed != is_target,
                    "{}/tests/{name}.rs: add `mod {name};` to tests/main.rs there, or, if it needs a process of its \
                     own, `[[test]] name = \"{name}\"` to Cargo.toml",
                    package.display()
                );
            }
        }
    }

    /// `cargo run` hands what a build script sets to the program, too, where the ORB takes it for a setting and refuses it.
    #[test]
    fn what_build_scripts_set_is_no_unknown_setting() {
        let folders = ["crates", "examples", "fuzz", "guard", "interop", "tests", "xtask"];
        let within = |folder: &str| fs::read_dir(root().join(folder)).expect("it is there").flatten();
        let scripts = folders.into_iter().flat_map(|folder| {
            let own = root().join(folder).join("build.rs");
            within(folder).map(|entry| entry.path().join("build.rs")).chain([own]).collect::<Vec<_>>()
        });
        let reserved = ["BENCH_", "INTEROP_", "SIM_", "TEST_"];
        let mut count = 0;
        for script in scripts.filter(|script| script.is_file()) {
            let text = fs::read_to_string(&script).expect("it is there");
            for name in text.split("rustc-env=IRONORB_").skip(1) {
                count += 1;
                let line = name.lines().next().unwrap_or_default();
                assert!(
                    reserved.iter().any(|prefix| name.starts_with(prefix)),
                    "{}: IRONORB_{line}: begin the name with IRONORB_ and one of {reserved:?}",
                    script.display()
                );
            }
        }
        assert!(count >= 5, "only {count} variables were found");
    }
}
