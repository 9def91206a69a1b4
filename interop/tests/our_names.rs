//! Programs of omniORB and JacORB with IronORB's naming service. Each test is a case of the matrix.

use ironorb::{Orb, TypedRef};
use ironorb_interop::interop::{Suite, SuiteRef};
use ironorb_interop::names::{jacorb_lister, nameclt};
use ironorb_interop::ours::passes;
use ironorb_interop::peer::Peer;
use ironorb_interop::process::{Process, free_port, ironorb_command, programs};
use ironorb_interop::results::{Side, case};
use tempfile::TempDir;

/// A running `ironorb naming serve`, and the `corbaloc:` of its root context.
fn serve(arguments: &[&str]) -> (Process, String) {
    let mut all = vec!["naming", "serve"];
    all.extend(arguments);
    let process = Process::start(ironorb_command(), &all);
    loop {
        if let Some(url) = process.line().strip_prefix("ready ") {
            return (process, url.to_owned());
        }
    }
}

/// Runs `nameclt`, which must succeed, and returns its output.
#[track_caller]
fn succeed(service: &str, arguments: &[&str]) -> Vec<String> {
    let finished = nameclt(service, arguments);
    assert!(finished.status.success(), "nameclt {arguments:?}: {finished:?}");
    finished.lines
}

/// Runs `nameclt`, which must fail with a message that contains `why`.
#[track_caller]
fn fail(service: &str, arguments: &[&str], why: &str) {
    let finished = nameclt(service, arguments);
    let said = format!("{}{}", finished.lines.join("\n"), finished.errors);
    assert!(said.contains(why), "nameclt {arguments:?}: {finished:?}");
}

#[test]
fn every_command_of_nameclt_works() {
    case(Peer::OmniOrb, Side::Server, "naming/every_command", || {
        let (_service, url) = serve(&["--memory", "--endpoint", "iiop://127.0.0.1:0"]);
        let (_server, ior) = Peer::OmniOrb.start_server(&[]);
        let url = url.as_str();
        assert_eq!(succeed(url, &["list"]), Vec::<String>::new());
        assert!(succeed(url, &["bind_new_context", "a"])[0].starts_with("IOR:"));
        succeed(url, &["bind", "a/suite.kind", &ior]);
        assert_eq!(succeed(url, &["resolve", "a/suite.kind"]), [ior.as_str()]);
        fail(url, &["bind", "a/suite.kind", &ior], "AlreadyBound");
        succeed(url, &["rebind", "a/suite.kind", &ior]);
        assert_eq!(succeed(url, &["list", "a"]), ["suite.kind"]);
        assert_eq!(succeed(url, &["list"]), ["a/"]);
        fail(url, &["resolve", "a/absent"], "NotFound");
        fail(url, &["remove_context", "a"], "NotEmpty");
        let context = succeed(url, &["new_context"]).remove(0);
        succeed(url, &["bind_context", "a/b", &context]);
        succeed(url, &["rebind_context", "a/b", &context]);
        succeed(url, &["unbind", "a/suite.kind"]);
        succeed(url, &["remove_context", "a/b"]);
        succeed(url, &["remove_context", "a"]);
        assert_eq!(succeed(url, &["list"]), Vec::<String>::new());
    });
}

#[test]
fn a_long_list_comes_by_iterator() {
    case(Peer::OmniOrb, Side::Server, "naming/iterator", || {
        let (_service, url) = serve(&["--memory", "--endpoint", "iiop://127.0.0.1:0"]);
        let orb = Orb::builder().no_endpoint().build().expect("an ORB without endpoint can be built");
        let root: ironorb::naming::cos_naming::NamingContextRef =
            orb.resolve(&url).expect("the server answers");
        let naming = ironorb::naming::Naming::of(root.clone());
        let expected: Vec<String> = (0..250).map(|i| format!("many{i:03}")).collect();
        expected.iter().for_each(|name| naming.bind(name, &root).expect("the name is free"));
        let mut listed = succeed(&url, &["list"]);
        listed.sort();
        assert_eq!(listed, expected);
    });
}

#[test]
fn servers_of_both_register_and_are_resolved() {
    for peer in Peer::ALL {
        case(peer, Side::Server, "naming/servers_of_both", || {
            let (_service, url) = serve(&["--memory", "--endpoint", "iiop://127.0.0.1:0"]);
            let initial = format!("NameService={url}");
            let ours = programs().join("interop-server");
            let ours = Process::start(ours, &["-ORBInitRef", &initial, "--name", "ours/suite"]);
            ours.line();
            let _theirs = peer.start_server(&["-ORBInitRef", &initial, "--name", "theirs/suite.kind"]);
            assert_eq!(succeed(&url, &["list", "theirs"]), ["suite.kind"]);
            let orb = Orb::builder().no_endpoint().initial_reference("NameService", &url);
            let orb = orb.build().expect("an ORB without endpoint can be built");
            for (path, orb_name) in [("ours/suite", "IronORB"), ("theirs/suite.kind", peer.name())] {
                let direct = format!("{}#{path}", url.replacen("corbaloc:", "corbaname:", 1));
                for name in [format!("corbaname:rir:#{path}"), direct] {
                    passes(peer, &["echo_long"], &["-ORBInitRef", &initial, &name]);
                    let suite: SuiteRef = orb.resolve(&name).expect("the name is bound");
                    assert_eq!(suite.orb_name().expect("the server answers"), orb_name);
                }
            }
        });
    }
}

#[test]
fn clients_of_both_resolve_what_an_agent_knows() {
    for peer in Peer::ALL {
        case(peer, Side::Server, "naming/agent", || {
            let agent =
                Process::start(ironorb_command(), &["agent", "serve", "--endpoint", "iiop://127.0.0.1:0"]);
            let url = loop {
                if let Some(url) = agent.line().strip_prefix("ready ") {
                    break url.to_owned();
                }
            };
            let (_server, ior) = peer.start_server(&[]);
            let register = ["agent", "register", "--agent", &url, "servers/suite.kind", &ior];
            let registered = Process::start(ironorb_command(), &register);
            assert_eq!(registered.line(), "ready servers/suite.kind");
            let names = url.replace("IronORBAgent", "NameService");
            assert_eq!(succeed(&names, &["list"]), ["servers/"]);
            assert_eq!(succeed(&names, &["list", "servers"]), ["suite.kind"]);
            fail(&names, &["resolve", "servers/absent"], "NotFound");
            fail(&names, &["unbind", "servers/suite.kind"], "NO_PERMISSION");
            let initial = format!("NameService={names}");
            passes(peer, &["echo_long"], &["-ORBInitRef", &initial, "corbaname:rir:#servers/suite.kind"]);
        });
    }
}

#[test]
fn jacorb_lists_all_contexts() {
    case(Peer::JacOrb, Side::Server, "naming/lister", || {
        let (_service, url) = serve(&["--memory", "--endpoint", "iiop://127.0.0.1:0"]);
        let orb = Orb::builder().no_endpoint().build().expect("an ORB without endpoint can be built");
        let root: ironorb::naming::cos_naming::NamingContextRef =
            orb.resolve(&url).expect("the server answers");
        let naming = ironorb::naming::Naming::of(root.clone());
        // More bindings than the lister asks for at a time.
        for i in 0..250 {
            naming.bind(&format!("deep/in/many{i}.kind"), &root.clone()).expect("the name is free");
        }
        let finished = jacorb_lister(&url);
        let listed = finished.lines.iter().filter(|line| line.contains("many")).count();
        assert_eq!(listed, 250, "{finished:?}");
    });
}

#[test]
fn bindings_of_nameclt_survive_kill_9() {
    case(Peer::OmniOrb, Side::Server, "naming/kill_9", || {
        let folder = TempDir::new().expect("the machine has a folder for temporary files");
        let store = folder.path().join("names.redb");
        let store = store.to_str().expect("its name is text");
        let endpoint = format!("iiop://127.0.0.1:{}", free_port());
        let (service, url) = serve(&["--store", store, "--endpoint", &endpoint]);
        let (_server, ior) = Peer::OmniOrb.start_server(&[]);
        let context = succeed(&url, &["bind_new_context", "kept"]).remove(0);
        succeed(&url, &["bind", "kept/suite", &ior]);
        service.kill();

        let (_service, again) = serve(&["--store", store, "--endpoint", &endpoint]);
        assert_eq!(again, url);
        assert_eq!(succeed(&url, &["resolve", "kept/suite"]), [ior.as_str()]);
        // The reference to the context is still valid.
        let orb = Orb::builder().no_endpoint().build().expect("an ORB without endpoint can be built");
        let context: ironorb::naming::cos_naming::NamingContextRef = orb.resolve(&context).expect("it lives");
        assert!(!context.object().non_existent().expect("the server answers"));
        let found: SuiteRef =
            ironorb::naming::Naming::of(context).resolve("suite").expect("the name is bound");
        assert_eq!(found.orb_name().expect("the server answers"), "omniORB");
    });
}
