//! Debian packages that the tests and the guard of counts need.

use std::process::{Command, Stdio};

/// What applies patches; omniORB with its tools, and what compiles its C++ programs; the IDL files that the corpus is made
/// of; what fetches JacORB and compiles its Java programs; what counts instructions; what
/// agents share names through; and what reads captures.
const PACKAGES: &[&str] = &[
    "git",
    "g++",
    "make",
    "python3",
    "omniorb",
    "omniorb-nameserver",
    "omniidl",
    "libomniorb4-dev",
    "omniorb-idl",
    "libcos4-dev",
    "omniorb-doc",
    "default-jdk-headless",
    "maven",
    "valgrind",
    "etcd-server",
    "tshark",
];

/// Installs what is missing, as root or through a sudo that asks nothing; else says what to do.
pub(crate) fn install_missing() -> Result<(), String> {
    let missing: Vec<&str> = PACKAGES.iter().copied().filter(|package| !is_installed(package)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let by_hand = format!("sudo apt-get update && sudo apt-get install -y {}", missing.join(" "));
    let Some(prefix) = how_to_be_root() else {
        return Err(format!("the tests need Debian packages that are missing; run\n    {by_hand}"));
    };
    println!("== installing {}", missing.join(" "));
    let run = |arguments: &[&str]| {
        let mut words: Vec<&str> = prefix.to_vec();
        words.push("apt-get");
        words.extend(arguments);
        Command::new(words[0])
            .args(&words[1..])
            .env("DEBIAN_FRONTEND", "noninteractive")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .status()
            .is_ok_and(|status| status.success())
    };
    // An update that fails for one source may still leave what is needed; the installation tells.
    run(&["-q", "update"]);
    let mut install = vec!["-q", "install", "-y", "--no-install-recommends"];
    install.extend(&missing);
    if run(&install) && missing.iter().all(|package| is_installed(package)) {
        return Ok(());
    }
    Err(format!("installing Debian packages failed; run by hand\n    {by_hand}"))
}

fn is_installed(package: &str) -> bool {
    Command::new("dpkg-query")
        .args(["-W", "-f=${Status}", package])
        .stderr(Stdio::null())
        .output()
        .is_ok_and(|output| output.stdout == b"install ok installed")
}

fn how_to_be_root() -> Option<&'static [&'static str]> {
    let succeeds = |program: &str, arguments: &[&str]| {
        Command::new(program).args(arguments).stdin(Stdio::null()).stderr(Stdio::null()).output()
    };
    let id = succeeds("id", &["-u"]).ok()?;
    if id.stdout.trim_ascii() == b"0" {
        return Some(&[]);
    }
    succeeds("sudo", &["-n", "true"]).ok().filter(|o| o.status.success()).map(|_| ["sudo", "-n"].as_slice())
}
