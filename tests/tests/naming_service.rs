//! The naming service over the wire, as a process: exceptions, iterators, persistence, other naming
//! services.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use ironorb::naming::Name;
use ironorb::naming::cos_naming::naming_context::{
    AlreadyBound, BindContextError, BindError, BindNewContextError, DestroyError, InvalidName, NotEmpty,
    NotFound, NotFoundReason, RebindContextError, RebindError, ResolveError, UnbindError,
};
use ironorb::naming::cos_naming::naming_context_ext::{
    InvalidAddress, ToNameError, ToStringError, ToUrlError,
};
use ironorb::naming::cos_naming::{
    Binding, BindingIterator, BindingType, NameComponent, NamingContext, NamingContextExt, NamingContextRef,
};
use ironorb::{ObjectRef, Orb, SystemExceptionKind, TypedRef as _, with_timeout};
use ironorb_tests::command::NamingProcess;
use ironorb_tests::eventually;

fn client() -> Orb {
    Orb::builder().no_endpoint().call_timeout(Some(Duration::from_secs(20))).build().unwrap()
}

fn name(text: &str) -> Vec<NameComponent> {
    Name::parse(text).unwrap().into_components().into_iter().map(Into::into).collect()
}

fn object(orb: &Orb, key: &str) -> ObjectRef {
    orb.string_to_object(&format!("corbaloc::1.2@192.0.2.1:2809/{key}")).unwrap()
}

fn not_found(why: NotFoundReason, rest: &str) -> NotFound {
    NotFound { why, rest_of_name: name(rest) }
}

fn in_memory() -> NamingProcess {
    NamingProcess::start_with(&["--memory"], "127.0.0.1:0")
}

#[test]
fn exceptions_name_the_failing_component() {
    use NotFoundReason::{MissingNode, NotContext, NotObject};
    let (service, orb) = (in_memory(), client());
    let root = service.root(&orb);
    let thing = object(&orb, "thing");
    let ctx = root.bind_new_context(&name("ctx")).unwrap().unwrap();
    root.bind(&name("ctx/obj.kind"), Some(&thing)).unwrap();

    assert_eq!(root.resolve(&name("no")), Err(not_found(MissingNode, "no").into()));
    assert_eq!(root.resolve(&name("ctx/no/more")), Err(not_found(MissingNode, "no/more").into()));
    assert_eq!(root.resolve(&name("ctx/obj.kind/more")), Err(not_found(NotContext, "obj.kind/more").into()));
    assert_eq!(root.resolve_str("ctx/obj"), Err(not_found(MissingNode, "obj").into()));
    assert_eq!(root.unbind(&name("ctx/no")), Err(UnbindError::NotFound(not_found(MissingNode, "no"))));
    let bound = root.bind(&name("ctx/obj.kind"), Some(&thing));
    assert_eq!(bound, Err(BindError::AlreadyBound(AlreadyBound {})));
    let bound = root.bind_context(&name("ctx"), Some(&ctx));
    assert_eq!(bound, Err(BindContextError::AlreadyBound(AlreadyBound {})));
    let made = root.bind_new_context(&name("ctx"));
    assert_eq!(made, Err(BindNewContextError::AlreadyBound(AlreadyBound {})));
    let made = root.bind_new_context(&name("no/ctx"));
    assert_eq!(made, Err(BindNewContextError::NotFound(not_found(MissingNode, "no/ctx"))));
    let rebound = root.rebind(&name("ctx"), Some(&thing));
    assert_eq!(rebound, Err(RebindError::NotFound(not_found(NotObject, "ctx"))));
    let rebound = root.rebind_context(&name("ctx/obj.kind"), Some(&ctx));
    assert_eq!(rebound, Err(RebindContextError::NotFound(not_found(NotContext, "obj.kind"))));
    assert_eq!(root.resolve(&[]), Err(ResolveError::InvalidName(InvalidName {})));
    assert_eq!(ctx.destroy(), Err(DestroyError::NotEmpty(NotEmpty {})));

    // Names and URLs.
    assert_eq!(root.to_string(&name("a.b/c")).unwrap(), "a.b/c");
    assert_eq!(root.to_string(&[]), Err(ToStringError::InvalidName(InvalidName {})));
    assert_eq!(root.to_name("a.b/c").unwrap(), name("a.b/c"));
    assert_eq!(root.to_name("a//b"), Err(ToNameError::InvalidName(InvalidName {})));
    assert_eq!(root.to_url(":host:2809", "a b/c").unwrap(), "corbaname::host:2809#a%20b/c");
    assert_eq!(root.to_url("host port", "a"), Err(ToUrlError::InvalidAddress(InvalidAddress {})));
    assert_eq!(root.to_url(":host", "/a"), Err(ToUrlError::InvalidName(InvalidName {})));

    // Errors that are system exceptions.
    let kind = |e: Result<(), BindError>| match e {
        Err(BindError::System(e)) => e.kind,
        other => panic!("{other:?}"),
    };
    assert_eq!(kind(root.bind(&name("nil"), None)), SystemExceptionKind::BadParam);
    match root.destroy() {
        Err(DestroyError::System(e)) => assert_eq!(e.kind, SystemExceptionKind::NoPermission),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_destroyed_context_does_not_exist_and_names_through_it_cannot_proceed() {
    let (service, orb) = (in_memory(), client());
    let root = service.root(&orb);
    let ctx = root.bind_new_context(&name("ctx")).unwrap().unwrap();
    let gone = root.bind_new_context(&name("ctx/gone")).unwrap().unwrap();
    gone.destroy().unwrap();
    match gone.list(1) {
        Err(e) => assert_eq!(e.kind, SystemExceptionKind::ObjectNotExist),
        other => panic!("{other:?}"),
    }
    assert!(gone.object().non_existent().unwrap());
    match root.resolve(&name("ctx/gone/x")) {
        Err(ResolveError::CannotProceed(e)) => {
            assert_eq!(e.rest_of_name, name("gone/x"));
            // The client continues where the service stopped.
            let cxt = e.cxt.expect("the context with the dangling binding");
            assert!(cxt.object().is_equivalent(ctx.object()));
            cxt.unbind(&name("gone")).unwrap();
        }
        other => panic!("{other:?}"),
    }
    ctx.destroy().unwrap();
}

#[test]
fn the_service_recognises_its_own_contexts_when_they_are_bound() {
    let (service, orb) = (in_memory(), client());
    let root = service.root(&orb);
    let loose = root.new_context().unwrap().unwrap();
    root.bind_context(&name("bound"), Some(&loose)).unwrap();
    // By the plain key too: the root is bound in itself.
    let by_key: NamingContextRef = root.object().narrow_unchecked();
    loose.bind_context(&name("up"), Some(&by_key)).unwrap();
    root.bind(&name("bound/up/bound/up/thing"), Some(&object(&orb, "thing"))).unwrap();
    let found = root.resolve_str("thing").unwrap().unwrap();
    assert!(found.is_equivalent(&object(&orb, "thing")));
    let found = root.resolve_str("bound/up").unwrap().unwrap();
    assert_eq!(found.type_id(), "IDL:omg.org/CosNaming/NamingContextExt:1.0");
}

#[test]
fn iterators_give_each_binding_once() {
    let (service, orb) = (in_memory(), client());
    let root = service.root(&orb);
    let mut expected = BTreeMap::new();
    for number in 0..25 {
        let id = format!("n{number:02}");
        if number % 5 == 0 {
            root.bind_new_context(&name(&id)).unwrap();
            expected.insert(id, BindingType::Ncontext);
        } else {
            root.bind(&name(&id), Some(&object(&orb, &id))).unwrap();
            expected.insert(id, BindingType::Nobject);
        }
    }
    let (all, iterator) = root.list(25).unwrap();
    assert!(iterator.is_none(), "the list is complete");
    assert_eq!(seen(&all), expected);

    let (first, iterator) = root.list(3).unwrap();
    let iterator = iterator.expect("the list has more bindings");
    assert_eq!(first.len(), 3);
    let mut pages = first;
    let (is_one, one) = iterator.next_one().unwrap();
    assert!(is_one);
    pages.push(one);
    loop {
        let (more, bindings) = iterator.next_n(4).unwrap();
        assert!(bindings.len() <= 4);
        pages.extend(bindings);
        if !more {
            break;
        }
    }
    assert_eq!((pages.len(), seen(&pages)), (25, expected));
    assert_eq!(iterator.next_one().unwrap(), (false, Binding::default()));
    assert_eq!(iterator.next_n(0).unwrap_err().kind, SystemExceptionKind::BadParam);
    iterator.destroy().unwrap();
    assert_eq!(iterator.next_one().unwrap_err().kind, SystemExceptionKind::ObjectNotExist);

    let (none, iterator) = root.list(0).unwrap();
    assert!(none.is_empty());
    assert_eq!(iterator.expect("all are left").next_n(100).unwrap().1.len(), 25);
}

#[test]
fn forgotten_iterators_make_room_for_new_ones() {
    let (service, orb) = (in_memory(), client());
    let root = service.root(&orb);
    root.bind(&name("a"), Some(&object(&orb, "a"))).unwrap();
    let forgotten = root.list(0).unwrap().1.expect("one is left");
    // One iterator more than the service keeps.
    let many: Vec<_> = (0..1000).map(|_| root.list(0).unwrap().1.expect("one is left")).collect();
    assert_eq!(forgotten.next_one().unwrap_err().kind, SystemExceptionKind::ObjectNotExist);
    assert!(many.iter().all(|iterator| iterator.next_one().unwrap().0));
}

#[test]
fn references_to_contexts_survive_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("names.redb");
    // At an address at which no other test takes the port before the service is there again.
    let service = NamingProcess::start(&store, "127.0.79.10:0");
    let orb = client();
    let root = service.root(&orb);
    let ctx = root.bind_new_context(&name("ctx")).unwrap().unwrap();
    let text = ctx.object().to_ior_string();
    ctx.bind(&name("thing"), Some(&object(&orb, "thing"))).unwrap();

    let address = service.address.clone();
    service.kill();
    let service = NamingProcess::start(&store, &address);
    assert_eq!(service.address, address);

    // A second client has the reference as text.
    let other = client();
    let context: NamingContextRef = other.string_to_object(&text).unwrap().narrow_unchecked();
    let found = context.resolve(&name("thing")).unwrap().unwrap();
    assert!(found.is_equivalent(&object(&orb, "thing")));
    // The first client finds its connection broken. Its first call may fail, and its second reaches the new
    // process.
    let _ = ctx.resolve(&name("thing"));
    assert!(ctx.resolve(&name("thing")).unwrap().unwrap().is_equivalent(&found));
    assert_eq!(service.terminate(), Some(0));
}

/// What a client of the kill test knows of a name.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Known {
    Bound,
    Unbound,
    /// The last operation got no reply.
    Unknown,
}

#[test]
fn acknowledged_bindings_survive_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("names.redb");
    let orb = client();
    let mut address = "127.0.79.11:0".to_owned();
    let known = Mutex::new(BTreeMap::new());
    for round in 0..3 {
        let service = NamingProcess::start(&store, &address);
        address.clone_from(&service.address);
        let acknowledged = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let root = service.root(&orb);
                let (orb, known, acknowledged) = (&orb, &known, &acknowledged);
                scope.spawn(move || {
                    // Each thread has its own names, so no other thread changes what is bound to them.
                    for number in 0.. {
                        let id = format!("r{round}t{thread}n{number}");
                        let note = |what| known.lock().unwrap().insert(id.clone(), what);
                        note(Known::Unknown);
                        if root.bind(&name(&id), Some(&object(orb, &id))).is_err() {
                            return;
                        }
                        note(Known::Bound);
                        if number % 3 == 0 {
                            note(Known::Unknown);
                            if root.unbind(&name(&id)).is_err() {
                                return;
                            }
                            note(Known::Unbound);
                        }
                        acknowledged.fetch_add(1, Ordering::SeqCst);
                    }
                });
            }
            eventually("some names are bound", || acknowledged.load(Ordering::SeqCst) >= 40);
            service.kill();
        });
    }
    let service = NamingProcess::start(&store, &address);
    let root = service.root(&orb);
    for (id, known) in known.into_inner().unwrap() {
        let found = root.resolve(&name(&id));
        match known {
            Known::Bound => {
                let found = found.unwrap_or_else(|e| panic!("{id} was acknowledged: {e}")).unwrap();
                assert!(found.is_equivalent(&object(&orb, &id)), "{id}");
            }
            Known::Unbound => assert!(found.is_err(), "{id} was unbound"),
            Known::Unknown => {}
        }
    }
}

#[test]
fn names_lead_through_other_naming_services() {
    let (here, there, orb) = (in_memory(), in_memory(), client());
    let (root, far) = (here.root(&orb), there.root(&orb));
    let far_ctx = far.bind_new_context(&name("ctx")).unwrap().unwrap();
    // Its object key is one of ours too. Only the address distinguishes the two.
    root.bind_context(&name("far"), Some(&far_ctx)).unwrap();

    root.bind(&name("far/thing"), Some(&object(&orb, "thing"))).unwrap();
    assert!(far.resolve_str("ctx/thing").unwrap().is_some());
    assert!(root.resolve_str("thing").is_err());
    assert!(root.resolve_str("far/thing").unwrap().unwrap().is_equivalent(&object(&orb, "thing")));
    let made = root.bind_new_context(&name("far/made")).unwrap().unwrap();
    assert!(far.resolve_str("ctx/made").unwrap().unwrap().is_equivalent(made.object()));
    assert_eq!(
        root.resolve(&name("far/no/more")),
        Err(not_found(NotFoundReason::MissingNode, "no/more").into())
    );
    let bound = root.bind(&name("far/thing"), Some(&object(&orb, "thing")));
    assert_eq!(bound, Err(BindError::AlreadyBound(AlreadyBound {})));
    root.unbind(&name("far/thing")).unwrap();
    assert!(far.resolve_str("ctx/thing").is_err());

    there.kill();
    match root.resolve(&name("far/made/x")) {
        Err(ResolveError::CannotProceed(e)) => {
            assert_eq!(e.rest_of_name, name("made/x"));
            assert!(e.cxt.expect("where to go on").object().is_equivalent(far_ctx.object()));
        }
        // The client found the connection broken during the call, which may have been executed.
        Err(ResolveError::System(e)) => assert_eq!(e.kind, SystemExceptionKind::CommFailure),
        other => panic!("{other:?}"),
    }
    match root.resolve(&name("far/made/x")) {
        Err(ResolveError::CannotProceed(e)) => assert_eq!(e.rest_of_name, name("made/x")),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_starting_server_holds_requests_for_adapters_that_do_not_exist_yet() {
    let server = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().hold_requests().build().unwrap();
    let address = &server.published_addresses()[0];
    let client = client();
    let late = client.string_to_object(&format!("corbaloc::1.2@{address}/late")).unwrap();
    // The request is held, and does not fail with OBJECT_NOT_EXIST.
    let held = with_timeout(Some(Duration::from_millis(200)), || late.is_a("IDL:x:1.0")).unwrap_err();
    assert_eq!(held.kind, SystemExceptionKind::Timeout, "{held}");
    server.root_poa().manager().activate().unwrap();
    let gone = late.is_a("IDL:x:1.0").unwrap_err();
    assert_eq!(gone.kind, SystemExceptionKind::ObjectNotExist, "{gone}");
}

fn seen(bindings: &[Binding]) -> BTreeMap<String, BindingType> {
    bindings.iter().map(|binding| (binding.binding_name[0].id.clone(), binding.binding_type)).collect()
}
