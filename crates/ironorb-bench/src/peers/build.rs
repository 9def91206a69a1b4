//! Builds the peers' programs from texts in this program, once for each text.

use std::collections::hash_map::DefaultHasher;
use std::ffi::OsString;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A text, and its file name.
type Text = (&'static str, &'static str);

const LATENCY_IDL: Text = ("latency.idl", include_str!("../../idl/latency.idl"));
const CUBIT_IDL: Text = ("cubit.idl", include_str!("../../idl/cubit.idl"));
const EXTENTS_IDL: Text = ("extents.idl", include_str!("../../idl/extents.idl"));
const CALLS: Text = ("calls.hh", include_str!("../../../../guard/peers/calls.hh"));
const OMNIORB_CALLS: Text = ("calls.cc", include_str!("../../../../guard/peers/omniorb/calls.cc"));
const OMNIORB_CASES: Text = ("cases.hh", include_str!("../../../../guard/peers/omniorb/cases.hh"));
const REALTIME_IDL: Text = ("realtime.idl", include_str!("../../idl/realtime.idl"));
const PACED: Text = ("paced.hh", include_str!("../../../../guard/peers/paced.hh"));
const OMNIORB_PACED: Text = ("paced.cc", include_str!("../../../../guard/peers/omniorb/paced.cc"));
const TAO_PACED: Text = ("paced.cc", include_str!("../../../../guard/peers/tao/paced.cc"));
const TAO_CALLS: Text = ("calls.cc", include_str!("../../../../guard/peers/tao/calls.cc"));
/// How programs of TAO are built.
const TAO_MAKE: [Text; 3] = [
    ("anys.hh", include_str!("../../../../guard/peers/tao/anys.hh")),
    ("tree.mk", include_str!("../../../../guard/peers/tao/tree.mk")),
    ("Makefile", include_str!("../../../../guard/peers/tao/Makefile")),
];
const JACORB_CALLS: Text = ("Calls.java", include_str!("../../../../guard/peers/jacorb/Calls.java"));
const JACORB_POM: Text = ("pom.xml", include_str!("../../../../guard/peers/jacorb/pom.xml"));

/// The required files, and the Debian packages that have them.
const OMNIORB_NEEDS: [(&str, &str); 3] = [
    ("/usr/bin/g++", "g++"),
    ("/usr/bin/omniidl", "omniidl"),
    ("/usr/include/omniORB4/CORBA.h", "libomniorb4-dev"),
];

const JACORB_NEEDS: [(&str, &str); 2] =
    [("/usr/bin/mvn", "maven"), ("/usr/bin/javac", "default-jdk-headless")];

const CLASSES: &str = "classes";
const CLASS_PATH: &str = "classpath";

/// Builds omniORB's program for the suites of calls unless it exists. Takes a quarter of a minute.
pub(super) fn omniorb() -> Result<PathBuf, String> {
    let idl = [LATENCY_IDL, CUBIT_IDL, EXTENTS_IDL];
    omniorb_program("omniorb_calls", &idl, &[OMNIORB_CALLS, CALLS, OMNIORB_CASES])
}

/// Builds omniORB's program for the suites of real time unless it exists.
pub(super) fn omniorb_paced() -> Result<PathBuf, String> {
    omniorb_program("omniorb_paced", &[REALTIME_IDL], &[OMNIORB_PACED, PACED])
}

/// The variable that names a built tree of ACE and TAO: the folder `ACE_wrappers`.
const TAO_TREE: &str = "TAO_TREE";

/// The tree of TAO, if it is named.
pub(super) fn tao_tree() -> Option<PathBuf> {
    std::env::var_os(TAO_TREE).filter(|tree| !tree.is_empty()).map(PathBuf::from)
}

/// Builds TAO's program for the suites of calls unless it exists.
pub(super) fn tao() -> Result<PathBuf, String> {
    tao_program("tao_calls", &[TAO_CALLS, CALLS, CUBIT_IDL])
}

/// Builds TAO's program for the suites of real time unless it exists.
pub(super) fn tao_paced() -> Result<PathBuf, String> {
    tao_program("tao_paced", &[TAO_PACED, PACED, REALTIME_IDL])
}

/// A program fits this build of the tree alone.
fn tao_program(name: &str, sources: &[Text]) -> Result<PathBuf, String> {
    let tree = tao_tree().ok_or("TAO_TREE does not name the tree of a built TAO")?;
    let part = |name: &str| tree.join(name).display().to_string();
    let parts = ["bin/tao_idl", "bin/ace_gperf", "lib/libTAO_RTPortableServer.so"].map(part);
    if let Some(missing) = parts.iter().find(|path| !Path::new(path).exists()) {
        return Err(format!("TAO_TREE names no built tree with TAO_RTCORBA: {missing} is missing"));
    }
    let tools: Vec<(&str, &str)> = parts.iter().map(|path| (path.as_str(), "")).collect();
    let texts = [sources, &TAO_MAKE].concat();
    let place = Place::of(name, &texts, &[&tools[..], &OMNIORB_NEEDS[..1]].concat())?;
    let program = place.0.join(name);
    if program.exists() {
        return Ok(program);
    }
    let scratch = place.scratch(&texts)?;
    make(scratch.path(), "make", &["-s", &format!("{TAO_TREE}={}", tree.display()), name])?;
    place.finish(scratch)?;
    Ok(program)
}

/// The first of the sources is compiled; the others are headers.
fn omniorb_program(name: &str, idl: &[Text], sources: &[Text]) -> Result<PathBuf, String> {
    needs(&OMNIORB_NEEDS)?;
    let texts = [idl, sources].concat();
    let place = Place::of(name, &texts, &OMNIORB_NEEDS)?;
    let program = place.0.join(name);
    if program.exists() {
        return Ok(program);
    }
    let scratch = place.scratch(&texts)?;
    let mut parts: Vec<String> = sources.iter().take(1).map(|(file, _)| (*file).to_owned()).collect();
    for (file, _) in idl {
        // Clients make calls without waiting by the paper's cases alone.
        let waits = ["-bcxx", "-Wba", file];
        let arguments = if *file == EXTENTS_IDL.0 { &["-bcxx", "-Wba", "-Wbami", file] } else { &waits[..] };
        make(scratch.path(), "omniidl", arguments)?;
        let unit = file.trim_end_matches(".idl");
        parts.extend([format!("{unit}SK.cc"), format!("{unit}DynSK.cc")]);
    }
    let mut arguments = vec!["-O2", "-w", "-o", name];
    arguments.extend(parts.iter().map(String::as_str));
    arguments.extend(["-lomniORB4", "-lomniDynamic4", "-lomnithread", "-lpthread"]);
    make(scratch.path(), "g++", &arguments)?;
    place.finish(scratch)?;
    Ok(program)
}

/// The class path of a Java program.
#[derive(Debug, Clone)]
pub(super) struct Java(PathBuf);

impl Java {
    /// Arguments for the virtual machine to run a class.
    pub(super) fn arguments(&self, class: &str) -> Vec<OsString> {
        let jars = std::fs::read_to_string(self.0.join(CLASS_PATH)).unwrap_or_default();
        let class_path = format!("{}:{}", self.0.join(CLASSES).display(), jars.trim());
        ["-Xss512k", "-Djacorb.log.default.verbosity=1", "-cp", &class_path, class]
            .map(OsString::from)
            .to_vec()
    }
}

/// JacORB's program, if it has been built.
pub(super) fn jacorb_if_built() -> Result<Java, String> {
    needs(&JACORB_NEEDS)?;
    let place = jacorb_place()?;
    let jars = std::fs::read_to_string(place.0.join(CLASS_PATH)).unwrap_or_default();
    // Maven's repository may have been emptied since.
    let has_jars = jars.trim().split(':').all(|jar| Path::new(jar).exists());
    match place.0.join(CLASSES).exists() && has_jars {
        true => Ok(Java(place.0)),
        false => Err("not built; run: ironorb bench peers".to_owned()),
    }
}

/// Builds JacORB's program unless it exists. Maven downloads JacORB the first time.
pub(super) fn jacorb() -> Result<Java, String> {
    if let Ok(java) = jacorb_if_built() {
        return Ok(java);
    }
    needs(&JACORB_NEEDS)?;
    let place = jacorb_place()?;
    // What has lost its class path, if anything.
    let _nothing_there = std::fs::remove_dir_all(&place.0);
    let scratch = place.scratch(&[LATENCY_IDL, CUBIT_IDL, JACORB_CALLS, JACORB_POM])?;
    let folder = scratch.path();
    let output = format!("-Dmdep.outputFile={}", folder.join(CLASS_PATH).display());
    make(folder, "mvn", &["-B", "-q", "-f", "pom.xml", "dependency:build-classpath", &output])?;
    let jars = std::fs::read_to_string(folder.join(CLASS_PATH)).map_err(|e| format!("no class path: {e}"))?;
    let jars = jars.trim();
    for (file, _) in [LATENCY_IDL, CUBIT_IDL] {
        let compiler = ["-cp", jars, "org.jacorb.idl.parser", "-all", "-notimestamps", "-d", "stubs", file];
        make(folder, "java", &compiler)?;
    }
    let mut sources = vec!["Calls.java".to_owned()];
    find_java(&folder.join("stubs"), &mut sources).map_err(|e| format!("no stubs were made: {e}"))?;
    let mut arguments = vec!["-nowarn", "-Xlint:none", "-cp", jars, "-d", CLASSES];
    arguments.extend(sources.iter().map(String::as_str));
    make(folder, "javac", &arguments)?;
    place.finish(scratch)?;
    Ok(Java(place.0))
}

fn jacorb_place() -> Result<Place, String> {
    Place::of("jacorb_calls", &[LATENCY_IDL, CUBIT_IDL, JACORB_CALLS, JACORB_POM], &JACORB_NEEDS)
}

fn find_java(folder: &Path, sources: &mut Vec<String>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            find_java(&path, sources)?;
        } else if path.extension().is_some_and(|extension| extension == "java") {
            sources.push(path.display().to_string());
        }
    }
    Ok(())
}

fn needs(needed: &[(&str, &str)]) -> Result<(), String> {
    let missing: Vec<&str> =
        needed.iter().filter(|(path, _)| !Path::new(path).exists()).map(|(_, package)| *package).collect();
    match missing.is_empty() {
        true => Ok(()),
        false => Err(format!("not installed; on Debian: apt-get install {}", missing.join(" "))),
    }
}

/// The place for the results built from certain texts.
struct Place(PathBuf);

impl Place {
    /// In the user's folder for caches, where no other user can have put something, or beside this program where the user
    /// has no home. Another version of a tool has another place.
    fn of(name: &str, texts: &[Text], tools: &[(&str, &str)]) -> Result<Place, String> {
        let mut hasher = DefaultHasher::new();
        texts.hash(&mut hasher);
        for (path, _) in tools {
            let metadata = std::fs::metadata(path).map_err(|e| format!("{path} cannot be read: {e}"))?;
            (metadata.len(), metadata.modified().ok()).hash(&mut hasher);
        }
        let place = format!("{name}-{:016x}", hasher.finish());
        Ok(Place(cache()?.join("bench-peers").join(place)))
    }

    /// Creates a temporary folder beside the place, with the texts in it.
    fn scratch(&self, texts: &[Text]) -> Result<tempfile::TempDir, String> {
        let parent = self.0.parent().ok_or("it has no place")?;
        crate::note(format_args!("making {}", self.0.display()));
        std::fs::create_dir_all(parent).map_err(|e| format!("{} cannot be made: {e}", parent.display()))?;
        let scratch = tempfile::tempdir_in(parent).map_err(|e| format!("no folder can be made: {e}"))?;
        for (file, text) in texts {
            std::fs::write(scratch.path().join(file), text)
                .map_err(|e| format!("its text cannot be written: {e}"))?;
        }
        Ok(scratch)
    }

    /// Moves the complete result to its place. A concurrent run thus sees a whole result, or may have been
    /// faster.
    fn finish(&self, scratch: tempfile::TempDir) -> Result<(), String> {
        match std::fs::rename(scratch.keep(), &self.0) {
            Err(_) if self.0.exists() => Ok(()),
            Err(e) => Err(format!("{} cannot be made: {e}", self.0.display())),
            Ok(()) => Ok(()),
        }
    }
}

/// `$IRONORB_BENCH_CACHE`, or `ironorb` in the folder that the system has for caches.
fn cache() -> Result<PathBuf, String> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let found = set("IRONORB_BENCH_CACHE")
        .or_else(|| set("XDG_CACHE_HOME").map(|cache| cache.join("ironorb")))
        .or_else(|| set("HOME").map(|home| home.join(".cache/ironorb")));
    if let Some(folder) = found {
        return Ok(folder);
    }
    let this = std::env::current_exe().map_err(|e| format!("this program cannot be found: {e}"))?;
    Ok(this.parent().ok_or("this program lies in no folder")?.to_path_buf())
}

fn make(folder: &Path, program: &str, args: &[&str]) -> Result<(), String> {
    let output = Command::new(program).args(args).current_dir(folder).stdin(Stdio::null()).output();
    let output = output.map_err(|e| format!("{program} cannot be started: {e}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = [output.stderr, output.stdout].concat();
    let said = String::from_utf8_lossy(&said);
    Err(format!("{program} failed ({}): {}", output.status, said.lines().next().unwrap_or_default()))
}
