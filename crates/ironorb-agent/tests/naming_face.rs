//! Clients that know only CosNaming find the same servers.

use std::collections::BTreeSet;

use ironorb::naming::Name;
use ironorb::naming::cos_naming::naming_context::{BindError, NotFoundReason, ResolveError};
use ironorb::naming::cos_naming::{
    BindingIterator as _, BindingType, NameComponent, NamingContext as _, NamingContextExt as _,
    NamingContextExtRef, NamingContextRef,
};
use ironorb::{ObjectRef, Orb, SystemExceptionKind};
use ironorb_agent::{Agent, AgentClient};

use crate::{Served, client};

fn object(client: &AgentClient, key: &str) -> ObjectRef {
    client.orb().string_to_object(&format!("corbaloc::1.2@192.0.2.1:2810/{key}")).unwrap()
}

fn name(text: &str) -> Vec<NameComponent> {
    Name::parse(text).unwrap().into_components().into_iter().map(Into::into).collect()
}

fn root(orb: &Orb, served: &Served) -> NamingContextExtRef {
    orb.resolve(&format!("corbaloc::1.2@{}/NameService", served.address())).unwrap()
}

#[test]
fn names_are_resolved_in_turn_and_paths_are_contexts() {
    let served = Served::start(Agent::builder());
    let client = client(&[&served]);
    let register = |name: &str, key: &str| {
        let server: NamingContextRef = object(&client, key).narrow_unchecked();
        client.register(name, &server).unwrap().start().unwrap()
    };
    let _registrations = [
        register("bank/accounts", "a"),
        register("bank/accounts", "b"),
        register("bank/clock.utc", "c"),
        register("top", "t"),
    ];
    let orb = Orb::builder().no_endpoint().build().unwrap();
    let root = root(&orb, &served);
    let found: Vec<_> = (0..4).map(|_| root.resolve(&name("bank/accounts")).unwrap().unwrap()).collect();
    assert!(found[0].is_equivalent(&found[2]) && !found[0].is_equivalent(&found[1]));
    let clock = root.resolve_str("bank/clock.utc").unwrap().unwrap();
    assert!(clock.is_equivalent(&object(&client, "c")));
    let by_url = orb.string_to_object(&format!("corbaname::1.2@{}#top", served.address())).unwrap();
    assert!(by_url.is_equivalent(&object(&client, "t")));

    let bank: NamingContextRef = root.resolve(&name("bank")).unwrap().unwrap().narrow().unwrap().unwrap();
    let clock = bank.resolve(&name("clock.utc")).unwrap().unwrap();
    assert!(clock.is_equivalent(&object(&client, "c")));
    match bank.resolve(&name("no")) {
        Err(ResolveError::NotFound(e)) => {
            assert_eq!((e.why, e.rest_of_name), (NotFoundReason::MissingNode, name("no")));
        }
        other => panic!("{other:?}"),
    }
    match bank.bind(&name("new"), Some(&object(&client, "n"))) {
        Err(BindError::System(e)) => assert_eq!(e.kind, SystemExceptionKind::NoPermission),
        other => panic!("{other:?}"),
    }
}

#[test]
fn contexts_are_listed_in_pages() {
    let served = Served::start(Agent::builder());
    let client = client(&[&served]);
    let server: NamingContextRef = object(&client, "o").narrow_unchecked();
    let names = ["a", "b/1", "b/2", "b-c", "b", "c/d/e"];
    let offerings = names.map(|name| client.register(name, &server).unwrap()).to_vec();
    let _registrations = client.register_all(offerings).unwrap();
    let orb = Orb::builder().no_endpoint().build().unwrap();
    let root = root(&orb, &served);
    let (first, iterator) = root.list(1).unwrap();
    let iterator = iterator.unwrap();
    let (more, rest) = iterator.next_n(100).unwrap();
    assert!(more);
    assert!(!iterator.next_one().unwrap().0);
    iterator.destroy().unwrap();
    assert!(iterator.next_one().is_err());
    let listed: BTreeSet<_> = first
        .into_iter()
        .chain(rest)
        .map(|binding| (binding.binding_name[0].id.clone(), binding.binding_type == BindingType::Ncontext))
        .collect();
    let expected = [("a", false), ("b", false), ("b-c", false), ("c", true)];
    assert_eq!(listed, expected.map(|(id, is_context)| (id.to_owned(), is_context)).into());
    let (all, none) = root.list(100).unwrap();
    assert!(all.len() == 4 && none.is_none());
}
