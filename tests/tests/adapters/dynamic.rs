//! Hand-written servants without generated code.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ironorb::poa::ObjectId;
use ironorb::{
    Call, CompletionStatus, MinorCode, ObjectRef, Poa, Replied, Servant, SystemException,
    SystemExceptionKind, TypedRef,
};
use ironorb_tests::testing::{Derived, DerivedRef, Probe, ProbeRef, UnrelatedRef, probe::RefuseError};
use ironorb_tests::{Deriving, Probing};

use super::{client, elsewhere, kind_of, server};

/// Serves the operations of `Probe` that the test needs, without generated types.
#[derive(Default)]
struct Dynamic {
    is_gone: AtomicBool,
}

impl Servant for Dynamic {
    fn repository_ids(&self) -> &[&'static str] {
        &[]
    }

    fn dispatch(&self, mut call: Call<'_>) -> Replied {
        match call.operation() {
            b"ping" | b"tick" => call.reply(|_| Ok(())),
            b"add" => {
                let read = |call: &mut Call<'_>| {
                    Ok((call.arguments().get::<i32>()?, call.arguments().get::<i32>()?))
                };
                match read(&mut call) {
                    Ok((a, b)) => call.reply(|w| w.put(&(a + b))),
                    Err(e) => call.refuse_arguments(e),
                }
            }
            b"echo" => match call.arguments().read_str() {
                Ok(text) => call.reply(|w| w.write_str(&text)),
                Err(e) => call.refuse_arguments(e),
            },
            b"shorten" => call.reply(|w| w.write_str("not to be sent: \0")),
            b"refuse" => match call.arguments().read_str() {
                Ok(why) => call.raise_user("IDL:testing/Refused:1.0", |w| w.write_str(&why)),
                Err(e) => call.refuse_arguments(e),
            },
            b"raise_system" => call.raise(&SystemException::new(
                SystemExceptionKind::NoPermission,
                MinorCode(7),
                CompletionStatus::Yes,
            )),
            b"fall_over" => panic!("as asked"),
            _ => call.standard_operation(&[]),
        }
    }

    fn is_a(&self, repository_id: &str) -> bool {
        repository_id.starts_with("IDL:testing/Probe:")
    }

    fn primary_interface(&self, id: &ObjectId, _: &Poa) -> Cow<'static, str> {
        assert!(!id.as_bytes().is_empty());
        ProbeRef::REPOSITORY_ID.into()
    }

    fn non_existent(&self) -> Result<bool, SystemException> {
        Ok(self.is_gone.load(Ordering::SeqCst))
    }
}

#[test]
fn a_dynamic_servant_serves_local_and_remote_clients() {
    let (server, client) = (server(), client());
    let poa = server.root_poa();
    let dynamic = Arc::new(Dynamic::default());
    let id = poa.activate_object(dynamic.clone()).unwrap();
    let reference = poa.id_to_reference(&id).unwrap();
    assert_eq!(reference.type_id(), ProbeRef::REPOSITORY_ID);
    let local: ProbeRef = reference.narrow().unwrap().unwrap();
    for probe in [elsewhere(&client, &local), local] {
        probe.ping().unwrap();
        probe.tick().unwrap();
        assert_eq!(probe.add(40, 2).unwrap(), 42);
        assert_eq!(probe.echo("Grüße").unwrap(), "Grüße");
        let RefuseError::Refused(refused) = probe.refuse("because").unwrap_err() else { panic!() };
        assert_eq!(refused.why, "because");
        assert_eq!(kind_of(probe.raise_system(7)).0, SystemExceptionKind::NoPermission);
        assert_eq!(kind_of(probe.fall_over()).0, SystemExceptionKind::Unknown);
        assert_eq!(probe.shorten("x").unwrap_err().minor, MinorCode::UNSENDABLE_RESULT);
        assert_eq!(probe.label().unwrap_err().minor, MinorCode::NO_SUCH_OPERATION);
        assert!(probe.object().is_a("IDL:testing/Probe:2.0").unwrap());
        assert!(!probe.object().is_a("IDL:testing/Derived:1.0").unwrap());
        assert!(probe.object().narrow::<UnrelatedRef>().unwrap().is_none());
        for gone in [true, false] {
            dynamic.is_gone.store(gone, Ordering::SeqCst);
            assert_eq!(probe.object().non_existent().unwrap(), gone);
        }
    }
}

/// Delegates to a generated servant and overrides what every object answers.
struct Disguised {
    inner: Arc<dyn Servant>,
    component: ObjectRef,
}

impl Servant for Disguised {
    fn repository_ids(&self) -> &[&'static str] {
        self.inner.repository_ids()
    }

    fn dispatch(&self, call: Call<'_>) -> Replied {
        match call.operation() {
            b"depth" => call.reply(|w| w.write_str("disguised")),
            _ => self.inner.dispatch(call),
        }
    }

    fn is_a(&self, repository_id: &str) -> bool {
        repository_id == "IDL:Disguised:1.0" || self.inner.is_a(repository_id)
    }

    fn component(&self) -> Result<Option<ObjectRef>, SystemException> {
        Ok(Some(self.component.clone()))
    }
}

#[test]
fn a_servant_overrides_the_operations_of_corba_object() {
    let (server, client) = (server(), client());
    let poa = server.root_poa();
    let component: ProbeRef = poa.activate(Probing::default()).unwrap();
    let inner = ironorb::servant::<DerivedRef, _>(Arc::new(Deriving::default()));
    let id =
        poa.activate_object(Arc::new(Disguised { inner, component: component.object().clone() })).unwrap();
    let local: DerivedRef = poa.id_to_reference(&id).unwrap().narrow_unchecked();
    let remote: DerivedRef =
        client.string_to_object(&local.object().to_ior_string()).unwrap().narrow_unchecked();
    for derived in [local, remote] {
        assert_eq!(derived.depth().unwrap(), "disguised");
        assert_eq!(derived.add(1, 2).unwrap(), 3);
        assert!(derived.object().is_a("IDL:Disguised:1.0").unwrap());
        assert!(derived.object().is_a(DerivedRef::REPOSITORY_ID).unwrap());
    }
    // Over the wire: clients of other ORBs ask so, and references have no method for some of these
    // operations.
    let ask = |operation: &str, object: &ObjectRef| {
        let address = server.published_addresses()[0].clone();
        ironorb_tests::raw::ask(&address, operation, object)
    };
    let plain: ProbeRef = poa.activate(Probing::default()).unwrap();
    let (status, body) = ask("_component", plain.object());
    assert_eq!((status, &body[..]), (0, &[1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0][..]), "nil");
    let disguised = poa.id_to_reference(&id).unwrap();
    let (status, body) = ask("_component", &disguised);
    assert_eq!(status, 0);
    assert!(body.windows(21).any(|window| window == b"IDL:testing/Probe:1.0"));
    let (status, body) = ask("_repository_id", &disguised);
    assert_eq!(status, 0);
    assert!(body.windows(23).any(|window| window == b"IDL:testing/Derived:1.0"));
    let (status, body) = ask("_interface", &disguised);
    assert_eq!(status, 2);
    assert!(body.windows(10).any(|window| window == b"INTF_REPOS"));
}
