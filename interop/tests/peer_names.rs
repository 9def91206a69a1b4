//! IronORB's programs with the naming services of omniORB and JacORB. Each test is a case of the matrix.

use ironorb::naming::cos_naming::naming_context::{BindError, DestroyError, NotFoundReason, ResolveError};
use ironorb::naming::cos_naming::{
    BindingIterator, BindingType, NameComponent, NamingContext, NamingContextExt, NamingContextExtRef,
};
use ironorb::naming::{Naming, NamingError};
use ironorb::{Orb, TypedRef};
use ironorb_interop::interop::{Suite, SuiteRef};
use ironorb_interop::names::PeerNames;
use ironorb_interop::ours::{passes, serve};
use ironorb_interop::peer::Peer;
use ironorb_interop::results::{Side, case};

fn client() -> Orb {
    Orb::builder().no_endpoint().build().expect("an ORB without endpoint can be built")
}

fn name(text: &str) -> Vec<NameComponent> {
    let component = |part: &str| match part.split_once('.') {
        Some((id, kind)) => NameComponent { id: id.to_owned(), kind: kind.to_owned() },
        None => NameComponent { id: part.to_owned(), kind: String::new() },
    };
    text.split('/').map(component).collect()
}

#[test]
fn every_operation_of_cos_naming_works() {
    for peer in Peer::ALL {
        case(peer, Side::Client, "naming/every_operation", || {
            let orb = client();
            let names = PeerNames::start(peer, &orb);
            let root: NamingContextExtRef =
                orb.resolve(&names.url).expect("the service has NamingContextExt");
            let some = root.object();

            root.bind_new_context(&name("a")).unwrap().expect("a context is never nil");
            root.bind(&name("a/first.kind"), Some(some)).unwrap();
            assert!(matches!(root.bind(&name("a/first.kind"), Some(some)), Err(BindError::AlreadyBound(_))));
            root.rebind(&name("a/first.kind"), Some(some)).unwrap();
            assert_eq!(root.resolve(&name("a/first.kind")).unwrap().as_ref(), Some(some));
            assert_eq!(root.resolve_str("a/first.kind").unwrap().as_ref(), Some(some));

            match root.resolve(&name("a/absent/below")) {
                Err(ResolveError::NotFound(e)) => {
                    assert_eq!((e.why, e.rest_of_name), (NotFoundReason::MissingNode, name("absent/below")));
                }
                other => panic!("{other:?}"),
            }
            match root.resolve(&name("a/first.kind/below")) {
                // JacORB reports a binding that is no context as missing.
                Err(ResolveError::NotFound(e)) if peer == Peer::JacOrb => {
                    assert_eq!(e.why, NotFoundReason::MissingNode);
                }
                Err(ResolveError::NotFound(e)) => assert_eq!(e.why, NotFoundReason::NotContext),
                other => panic!("{other:?}"),
            }
            assert!(matches!(root.resolve(&[]), Err(ResolveError::InvalidName(_))));

            assert_eq!(root.to_string(&name("a/first.kind")).unwrap(), "a/first.kind");
            assert_eq!(root.to_name("a/first.kind").unwrap(), name("a/first.kind"));
            // The standard has an address here, and JacORB has a whole URL.
            let at = if peer == Peer::JacOrb { names.url.clone() } else { format!(":{}", names.address) };
            let url = root.to_url(&at, "a/first.kind").unwrap();
            assert_eq!(orb.string_to_object(&url).unwrap(), *some);

            for i in 0..25 {
                root.bind(&name(&format!("a/many{i:02}")), Some(some)).unwrap();
            }
            let below = root.resolve(&name("a")).unwrap().unwrap();
            let below: NamingContextExtRef = below.narrow().unwrap().expect("it is a context");
            let (mut seen, iterator) = below.list(5).unwrap();
            assert_eq!(seen.len(), 5);
            let iterator = iterator.expect("there are more");
            let (more, binding) = iterator.next_one().unwrap();
            assert!(more);
            seen.push(binding);
            while let (true, bindings) = iterator.next_n(7).unwrap() {
                seen.extend(bindings);
            }
            iterator.destroy().unwrap();
            seen.sort_by(|a, b| a.binding_name[0].id.cmp(&b.binding_name[0].id));
            assert_eq!(seen.len(), 26);
            assert_eq!(
                (&seen[0].binding_name, seen[0].binding_type),
                (&name("first.kind"), BindingType::Nobject)
            );
            let (bindings, iterator) = root.list(10).unwrap();
            assert_eq!((bindings[0].binding_type, iterator), (BindingType::Ncontext, None));

            assert!(matches!(below.destroy(), Err(DestroyError::NotEmpty(_))));
            for binding in seen {
                below.unbind(&binding.binding_name).unwrap();
            }
            below.destroy().unwrap();
            root.unbind(&name("a")).unwrap();
            assert_eq!(root.list(10).unwrap(), (vec![], None));
        });
    }
}

#[test]
fn names_written_as_text_work() {
    for peer in Peer::ALL {
        case(peer, Side::Client, "naming/names_of_text", || {
            let orb = client();
            let names = PeerNames::start(peer, &orb);
            let root: NamingContextExtRef =
                orb.resolve(&names.url).expect("the service has NamingContextExt");
            let naming = Naming::of(root.clone().into());
            naming.bind("deep/in/café.kind", &root).unwrap();
            let again: NamingContextExtRef = naming.resolve("deep/in/café.kind").unwrap();
            assert_eq!(again, root);
            assert!(matches!(naming.bind("deep/in/café.kind", &root), Err(NamingError::AlreadyBound { .. })));
            let url = format!("corbaname:iiop:1.2@{}#deep/in/caf%c3%a9.kind", names.address);
            assert_eq!(orb.resolve::<NamingContextExtRef>(&url).unwrap(), root);
            naming.unbind("deep/in/café.kind").unwrap();
            assert!(matches!(naming.resolve_object("deep/in/café.kind"), Err(NamingError::NotFound { .. })));
        });
    }
}

#[test]
fn servers_of_both_register_and_are_resolved() {
    for peer in Peer::ALL {
        case(peer, Side::Client, "naming/servers_of_both", || {
            let orb = client();
            let names = PeerNames::start(peer, &orb);
            let initial = format!("NameService={}", names.url);
            let _ours = serve(&["-ORBInitRef", &initial, "--name", "ours/suite"]);
            let _theirs = peer.start_server(&["-ORBInitRef", &initial, "--name", "theirs/suite"]);
            for (path, orb_name) in [("ours/suite", "IronORB"), ("theirs/suite", peer.name())] {
                // A corbaname without a version uses GIOP 1.0 for the naming service.
                let url = format!("corbaname::{}#{path}", names.address);
                let suite: SuiteRef = orb.resolve(&url).unwrap();
                assert_eq!(suite.orb_name().unwrap(), orb_name);
                passes(peer, &["echo_long", "echo_string"], &[&url]);
            }
        });
    }
}
