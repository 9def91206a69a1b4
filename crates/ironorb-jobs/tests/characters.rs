//! Characters of parts whose servers are not known when the arguments are written.

use std::borrow::Cow;
use std::time::Duration;

use ironorb::giop::CharSet;
use ironorb::giop::ior::{IiopProfile, Ior, TaggedComponent};
use ironorb::{CompletionStatus, Orb, SystemExceptionKind, TypedRef, Version};
use ironorb_jobs::{Architecture, InTurn, Networks, PartEnd, PartOptions, accept_forwarded};
use ironorb_tests::Probing;
use ironorb_tests::testing::{Probe as _, ProbeAsync, ProbeRef};

use crate::stage::{Stage, server};

const TEXT: &str = "caf\u{e9} \u{a3}";

/// A server that works in ISO 8859-1, and converts UTF-8.
fn latin1() -> (Orb, ProbeRef) {
    let mut builder = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap();
    builder.config().native_char_set = CharSet::Latin1;
    let orb = accept_forwarded(builder, Networks::local()).build().unwrap();
    let probe = orb.root_poa().activate(Probing::default()).unwrap();
    (orb, probe)
}

/// An echo passes even if the bytes are taken for other characters on the way there and back; a label that the server's own
/// program reads does not.
#[test]
fn servers_read_the_characters_that_were_written() {
    let stage = Stage::of([latin1(), server()], 4);
    for architecture in crate::architectures::ALL {
        for name in ["a", "b"] {
            let end = stage
                .jobs
                .job()
                .call_named(name, PartOptions::new(), |probe: &ProbeRef| probe.set_label_async(TEXT))
                .architecture(architecture)
                .within(Duration::from_secs(20))
                .run();
            assert!(matches!(end.parts, (PartEnd::Result(()),)), "{architecture:?}: {:?}", end.parts);
            let (_, probe) = &stage.servers[usize::from(name == "b")];
            assert_eq!(probe.label().unwrap(), TEXT, "{architecture:?} {name}");
            probe.set_label("").unwrap();
            // Results are in what the server has been told, or in what its connection has.
            let end = stage
                .jobs
                .job()
                .call_named(name, PartOptions::new(), |probe: &ProbeRef| probe.echo_async(TEXT))
                .architecture(architecture)
                .within(Duration::from_secs(20))
                .run();
            let (PartEnd::Result(text),) = end.parts else { panic!("{architecture:?}: {:?}", end.parts) };
            assert_eq!(text, TEXT, "{architecture:?} {name}");
        }
    }
}

/// The reference without its code sets, or with those of a server that has ISO 8859-1 alone.
fn offering(orb: &Orb, probe: &ProbeRef, component: Option<TaggedComponent<'_>>) -> ProbeRef {
    let ior = probe.object().to_ior();
    let profile = ior.iiop_profiles().next().unwrap();
    let address = profile.addresses().next().unwrap();
    let components: Vec<_> = component.into_iter().collect();
    let (host, port, key) = (address.host, address.port, profile.object_key());
    let profile = IiopProfile::new(Version::V1_2, &host, port, key, &components).unwrap();
    orb.ior_to_object(Ior::with_profile("", profile)).unwrap().narrow_unchecked()
}

/// CodeSetComponentInfo in an encapsulation: ISO 8859-1 for strings, nothing for wide ones.
const LATIN1_ALONE: [u8; 20] = [0, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

#[test]
fn what_a_server_cannot_read_is_refused_and_not_sent() {
    let stage = Stage::new();
    let (_server, probe) = latin1();
    let alone = TaggedComponent { tag: 1, data: Cow::Borrowed(&LATIN1_ALONE) };
    for (component, reads) in [(None, true), (Some(alone), false)] {
        let object = offering(&stage.client, &probe, component);
        let servers = InTurn::new([object.object().clone()]);
        for architecture in [Architecture::HandleDriven, Architecture::Forwarding, Architecture::Synchronous]
        {
            probe.set_label("").unwrap();
            let end = stage
                .jobs
                .job()
                .call_any(servers.clone(), PartOptions::new(), |probe: &ProbeRef| probe.set_label_async(TEXT))
                .architecture(architecture)
                .run();
            match end.parts {
                (PartEnd::Result(()),) if reads => assert_eq!(probe.label().unwrap(), TEXT),
                (PartEnd::Exception(e),) if !reads => {
                    let kind = SystemExceptionKind::CodesetIncompatible;
                    assert_eq!((e.kind, e.completed), (kind, CompletionStatus::No), "{e}");
                    assert_eq!(probe.label().unwrap(), "");
                }
                other => panic!("{architecture:?}, {reads}: {other:?}"),
            }
            // Numbers mean the same everywhere, whatever their bytes look like.
            let end = stage
                .jobs
                .job()
                .call_any(servers.clone(), PartOptions::new(), |probe: &ProbeRef| probe.add_async(-1, -1))
                .call_any(servers.clone(), PartOptions::new(), |probe: &ProbeRef| probe.echo_async("ascii"))
                .architecture(architecture)
                .run();
            match end.parts {
                (PartEnd::Result(-2), PartEnd::Result(text)) => assert_eq!(text, "ascii"),
                other => panic!("{architecture:?}, {reads}: {other:?}"),
            }
        }
    }
}
