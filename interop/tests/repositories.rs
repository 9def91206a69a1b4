//! Clients of other ORBs with IronORB's interface repository. They read loaded definitions, build and
//! destroy definitions of their own, and ask an object for its interface.

use ironorb_interop::peer::{Peer, java};
use ironorb_interop::process::{Process, ironorb_command};
use ironorb_interop::results::{Side, case};

/// The output of every client, in C++ and Java.
const SEEN: &str = "\
operation union pay long:amount:0 struct:what:2 alias:said:1 raises Empty
operation objref next
operation void close
attribute alias keeper 0
attribute long served 1
base IDL:Shop/Counter:1.0
content 3 ::Shop::SHELVES = 7
content 9 ::Shop::Label is alias
content 10 ::Shop::Node is struct
content 12 ::Shop::Payment is other
content 11 ::Shop::Receipt is union
content 4 ::Shop::Empty
content 5 ::Shop::Counter
content 5 ::Shop::Till
made Bag of 2
made ::Made::I::fill
refused 1
refused 2
interface IDL:omg.org/CORBA/Repository:1.0
";

/// Starts a repository with the definitions of the shop and of `idl/ir.idl`. Returns it and its corbaloc.
fn serve() -> (Process, String) {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    let shop = format!("{root}/interop/idl/repository/shop.idl");
    let own = format!("{root}/idl/ir.idl");
    let server = Process::start(
        ironorb_command(),
        &["ifr", "serve", "--memory", "--endpoint", "iiop://127.0.0.1:0", "--load", &shop, "--load", &own],
    );
    loop {
        if let Some(url) = server.line().strip_prefix("ready ") {
            return (server, url.to_owned());
        }
    }
}

#[track_caller]
fn check(peer: Peer, start: impl FnOnce(&[&str]) -> Process) {
    case(peer, Side::Server, "repository", || {
        let (server, url) = serve();
        let seen = start(&["-ORBInitRef", &format!("InterfaceRepository={url}")]).finish();
        assert!(seen.status.success(), "{seen:?}");
        let expected: Vec<&str> = SEEN.lines().collect();
        assert_eq!(seen.lines, expected);
        assert!(server.terminate().status.success());
    });
}

#[test]
fn omniorb_reads_and_writes_our_repository() {
    check(Peer::OmniOrb, |arguments| Process::start(Peer::OmniOrb.build().join("repository"), arguments));
}

#[test]
fn jacorb_reads_and_writes_our_repository() {
    check(Peer::JacOrb, |arguments| java("peer.RepositoryClient", arguments));
}
