//! `ironorb::Error`: the `?` operator converts the error of any call into it.

use std::error::Error as _;

use ironorb::{Orb, SystemExceptionKind};
use ironorb_tests::testing::{self, Probe, ProbeRef};
use ironorb_tests::{Probing, raw};

fn refused(probe: &ProbeRef) -> Result<(), ironorb::Error> {
    probe.ping()?;
    probe.refuse("no")?;
    unreachable!("it is refused")
}

fn failed(probe: &ProbeRef) -> Result<(), ironorb::Error> {
    let minor: u32 = "7".parse().unwrap_or_default();
    Ok(probe.raise_system(minor)?)
}

fn misspelt(orb: &Orb) -> Result<(), ironorb::Error> {
    orb.naming()?.resolve_object("")?;
    Ok(())
}

#[test]
fn errors_of_all_kinds_convert_to_ironorb_error() {
    let orb = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().build().unwrap();
    let probe: ProbeRef = orb.root_poa().activate(Probing::default()).unwrap();
    let e = refused(&probe).unwrap_err();
    assert!(
        matches!(e.user_error(), Some(testing::probe::RefuseError::Refused(refused)) if refused.why == "no")
    );
    let source = e.source().unwrap();
    assert!(source.downcast_ref::<testing::Refused>().is_some(), "the exception itself is the source");
    let e = failed(&probe).unwrap_err();
    assert_eq!(e.system_exception().unwrap().kind, SystemExceptionKind::NoPermission);
    let e = misspelt(&orb).unwrap_err();
    assert!(matches!(e, ironorb::Error::Naming(_)), "{e}");
    assert!(
        ironorb::Error::from(Orb::builder().endpoint("x:y:z").unwrap_err()).to_string().contains("x:y:z")
    );
}

/// The error says that the naming service cannot be reached, and how to give its address.
#[test]
fn an_unreachable_naming_service_is_named_in_the_error() {
    let (listener, port) = raw::listen();
    drop(listener);
    let url = format!("corbaloc::127.0.0.1:{port}/NameService");
    let orb = Orb::builder().no_endpoint().initial_reference("NameService", &url).build().unwrap();
    let by_naming = orb.naming().unwrap().resolve_object("bank").unwrap_err().to_string();
    let probe = ironorb_tests::Probing::default();
    let probe: ProbeRef = orb.root_poa().activate(probe).unwrap();
    let by_binding = orb.naming().unwrap().rebind("bank", &probe).unwrap_err().to_string();
    let by_url = orb.string_to_object(&format!("corbaname::127.0.0.1:{port}#bank")).unwrap_err().to_string();
    for text in [by_naming, by_binding, by_url] {
        for part in ["naming service", "initRef", "IRONORB_INIT_REF", "-ORBInitRef"] {
            assert!(text.contains(part), "{part} in: {text}");
        }
    }
}
