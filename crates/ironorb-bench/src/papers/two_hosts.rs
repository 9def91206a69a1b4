//! Two hosts on one machine: two network namespaces with a virtual cable between them.
//!
//! Each is held by a process that does nothing, and ends with it. Without the rights of an administrator both are made in a user
//! namespace of their own, where the system permits that.

use std::ffi::OsString;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, Stdio};

/// The two hosts.
#[derive(Debug)]
pub(super) struct TwoHosts {
    client: Namespace,
    server: Namespace,
    mtu: u32,
    /// Whether the cable carries no packet larger than the MTU. Otherwise the system passes large ones on whole.
    has_small_packets: bool,
}

/// The addresses of both ends, in a network that nothing else has here.
const CLIENT: &str = "10.193.7.1";
const SERVER: &str = "10.193.7.2";

impl TwoHosts {
    /// Makes both.
    ///
    /// # Errors
    /// Why the system does not permit it.
    pub(super) fn make(mtu: u32) -> Result<TwoHosts, String> {
        let [plain, as_user] = [&[][..], &["--user", "--map-root-user"]];
        let made = Namespace::make(&[], plain).and_then(|client| TwoHosts::join(client, false, mtu));
        made.or_else(|why| {
            let again = Namespace::make(&[], as_user).and_then(|client| TwoHosts::join(client, true, mtu));
            again.map_err(|too| format!("{why}; in a user namespace: {too}"))
        })
    }

    fn join(mut client: Namespace, as_user: bool, mtu: u32) -> Result<TwoHosts, String> {
        client.as_user = as_user;
        // Within the same user namespace.
        let mut server = Namespace::make(&client.command(), &[])?;
        server.as_user = as_user;
        let (size, id) = (mtu.to_string(), server.holder.id().to_string());
        let both = ["link", "add", "iron0", "type", "veth", "peer", "name", "iron1"];
        client.ip(&both)?;
        client.ip(&["link", "set", "iron1", "netns", &id])?;
        let mut small = true;
        for (host, cable, address) in [(&client, "iron0", CLIENT), (&server, "iron1", SERVER)] {
            host.ip(&["link", "set", cable, "mtu", &size])?;
            small &= host.ip(&["link", "set", cable, "gso_max_segs", "1"]).is_ok();
            host.ip(&["addr", "add", &format!("{address}/30"), "dev", cable])?;
            host.ip(&["link", "set", cable, "up"])?;
            host.ip(&["link", "set", "lo", "up"])?;
        }
        Ok(TwoHosts { client, server, mtu, has_small_packets: small })
    }

    /// The command under which a client's programs start.
    pub(super) fn client(&self) -> Vec<OsString> {
        self.client.command()
    }

    /// The address of servers, and the command under which the client starts them, as `--server-host` takes it.
    pub(super) fn server(&self) -> String {
        // The client's programs are in the user namespace already, if there is one.
        format!("{SERVER}=nsenter -t {} -n", self.server.holder.id())
    }
}

impl std::fmt::Display for TwoHosts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "two network namespaces, MTU {}", self.mtu)?;
        let whole = if self.has_small_packets { "" } else { ", larger packets passed on whole" };
        f.write_str(whole)
    }
}

/// A network namespace, and the process that holds it.
#[derive(Debug)]
struct Namespace {
    holder: Child,
    as_user: bool,
}

impl Namespace {
    /// Makes one under a command, with further options of unshare(1).
    fn make(under: &[OsString], options: &[&str]) -> Result<Namespace, String> {
        let words: Vec<OsString> = under.iter().cloned().chain(["unshare".into()]).collect();
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).args(options).args(["--net", "cat"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let holder = command.spawn().map_err(|e| format!("unshare cannot be started: {e}"))?;
        let mut namespace = Namespace { holder, as_user: false };
        if namespace.is_there() {
            return Ok(namespace);
        }
        let mut why = String::new();
        if let Some(errors) = namespace.holder.stderr.take() {
            let _ = BufReader::new(errors).read_line(&mut why);
        }
        Err(format!("the system permits no network namespace ({})", why.trim()))
    }

    /// The holder repeats a line once it is in its namespace.
    fn is_there(&mut self) -> bool {
        let Some(stdin) = &mut self.holder.stdin else { return false };
        let asked = writeln!(stdin, "there").is_ok();
        let mut answer = String::new();
        let heard =
            self.holder.stdout.as_mut().is_some_and(|out| BufReader::new(out).read_line(&mut answer).is_ok());
        asked && heard && answer == "there\n"
    }

    /// The command under which programs start here.
    fn command(&self) -> Vec<OsString> {
        let id = self.holder.id().to_string();
        let user: &[&str] = if self.as_user { &["-U", "--preserve-credentials"] } else { &[] };
        let words = ["nsenter", "-t", &id, "-n"].into_iter().chain(user.iter().copied());
        words.map(OsString::from).collect()
    }

    fn ip(&self, arguments: &[&str]) -> Result<(), String> {
        let words = self.command();
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).arg("ip").args(arguments).stdin(Stdio::null());
        let done = command.output().map_err(|e| format!("nsenter cannot be started: {e}"))?;
        let why = || String::from_utf8_lossy(&done.stderr).trim().to_owned();
        if done.status.success() { Ok(()) } else { Err(format!("ip {}: {}", arguments.join(" "), why())) }
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // The holder reads to the end of its input, which this closes.
        drop(self.holder.stdin.take());
        let _ = self.holder.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a program prints on a host.
    fn on(command: &[OsString], program: &[&str]) -> String {
        let output = Command::new(&command[0]).args(&command[1..]).args(program).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    }

    #[test]
    fn two_hosts_have_the_ends_of_one_cable_or_the_system_says_why_not() {
        match TwoHosts::make(9_180) {
            Ok(hosts) => {
                for (host, cable, address) in
                    [(&hosts.client, "iron0", CLIENT), (&hosts.server, "iron1", SERVER)]
                {
                    let seen = on(&host.command(), &["ip", "-o", "addr", "show", "dev", cable]);
                    assert!(seen.contains(address), "{seen}");
                    let links = on(&host.command(), &["ip", "-o", "link", "show"]);
                    let is_it = |line: &&str| {
                        line.contains(cable) && line.contains("mtu 9180") && line.contains(",UP")
                    };
                    assert_eq!(links.lines().filter(is_it).count(), 1, "{links}");
                    assert_eq!(links.lines().count(), 2, "the cable and loopback: {links}");
                }
                assert!(hosts.to_string().starts_with("two network namespaces, MTU 9180"));
            }
            Err(why) => assert!(!why.is_empty()),
        }
    }
}
