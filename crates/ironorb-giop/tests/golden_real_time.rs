//! References and messages in the form in which TAO writes them, read, and compared with what is written here.
//!
//! A run with TAO 2.2.2 showed the form: the order and the encoding of components, policies and contexts. The bytes are made
//! up by hand in that form, in little-endian order: type, key, addresses and priorities are ours. Padding is `EE`, because
//! TAO leaves it undefined.

use ironorb_giop::framer::{Framer, FramerLimits};
use ironorb_giop::ior::{
    IiopProfile, Profile, TAG_POLICIES, TAG_TAO_ENDPOINTS, TAG_TAO_UIOP, TaggedComponent, TaoEndpoint,
    TaoUnixEndpoint,
};
use ironorb_giop::message::Message;
use ironorb_giop::real_time::{
    PriorityBand, PriorityModel, PriorityModelPolicy, RealTimePolicies, priority_of_context,
};
use ironorb_giop::service_context::{CODE_SETS, RT_CORBA_PRIORITY};
use ironorb_giop::{ByteOrder, Ior, Version};

/// The component 0x54414F02 of a reference to two lanes: an encapsulation with a sequence of host, port and priority.
const TWO_LANES: &str = "
    01 EE EE EE  02 00 00 00
    0A 00 00 00  31 32 37 2E 30 2E 30 2E 31 00  41 9C  E8 03 EE EE
    0A 00 00 00  31 32 37 2E 30 2E 30 2E 31 00  42 9C  00 40";

/// The same component where the profile's own address is the only one: TAO writes it with the priority -1.
const ONE_ADDRESS: &str = "
    01 EE EE EE  01 00 00 00
    0A 00 00 00  31 32 37 2E 30 2E 30 2E 31 00  42 9C  FF FF";

/// TAG_POLICIES with bands (45) and a propagated priority (40). Each value is an encapsulation itself.
const BANDS_AND_PROPAGATED: &str = "
    01 EE EE EE  02 00 00 00
    2D 00 00 00  10 00 00 00  01 EE EE EE  02 00 00 00  00 00  88 13  89 13  FF 7F
    28 00 00 00  0A 00 00 00  01 EE EE EE  00 00 00 00  02 01";

/// TAG_POLICIES with a declared priority.
const DECLARED: &str = "
    01 EE EE EE  01 00 00 00
    28 00 00 00  0A 00 00 00  01 EE EE EE  01 00 00 00  00 40";

/// A reference to 127.0.0.1:40001 with the components TAG_ORB_TYPE, 0x54414F02 and TAG_POLICIES, up to the data of the
/// second one.
const REFERENCE_TO_LANES: &str = "
    01 EE EE EE  0C 00 00 00  49 44 4C 3A 61 2F 42 3A 31 2E 30 00  01 00 00 00
    00 00 00 00  A2 00 00 00
    01 01 02 EE  0A 00 00 00  31 32 37 2E 30 2E 30 2E 31 00  41 9C  03 00 00 00  6B 65 79 EE
    03 00 00 00
    00 00 00 00  08 00 00 00  01 EE EE EE  00 4F 41 54
    02 4F 41 54  2E 00 00 00";

/// The tag and the length of TAG_POLICIES that follow.
const POLICIES_OF_LANES: &str = "EE EE  02 00 00 00  32 00 00 00";

/// A reference to 127.0.0.1:40002, up to the data of 0x54414F02.
const REFERENCE_TO_ONE: &str = "
    01 EE EE EE  0C 00 00 00  49 44 4C 3A 61 2F 42 3A 31 2E 30 00  01 00 00 00
    00 00 00 00  76 00 00 00
    01 01 02 EE  0A 00 00 00  31 32 37 2E 30 2E 30 2E 31 00  42 9C  03 00 00 00  6B 65 79 EE
    03 00 00 00
    00 00 00 00  08 00 00 00  01 EE EE EE  00 4F 41 54
    02 4F 41 54  1A 00 00 00";

/// The tag and the length of TAG_POLICIES that follow.
const POLICIES_OF_ONE: &str = "EE EE  02 00 00 00  1A 00 00 00";

/// TAO's profile of a Unix socket: version, path, key, and a component 0x54414F02 with two paths and their priorities.
const UNIX_PROFILE: &str = "
    01 01 02 EE  08 00 00 00  2F 74 6D 70 2F 73 31 00  03 00 00 00  6B 65 79 EE  01 00 00 00
    02 4F 41 54  26 00 00 00  01 EE EE EE  02 00 00 00
    08 00 00 00  2F 74 6D 70 2F 73 31 00  E8 03 EE EE
    08 00 00 00  2F 74 6D 70 2F 73 32 00  00 40";

/// A request `go` with the id 1 at the priority 0x0102. The context of the priority comes before that of the code sets.
const REQUEST: &str = "
    47 49 4F 50  01 02 01 00  48 00 00 00
    01 00 00 00  03 00 00 00  00 00 EE EE  03 00 00 00  6B 65 79 EE  03 00 00 00  67 6F 00 EE
    02 00 00 00
    0A 00 00 00  04 00 00 00  01 EE 02 01
    01 00 00 00  0C 00 00 00  01 EE EE EE  01 00 01 00  09 01 01 00
    EE EE EE EE  0D F0 AD 0B";

/// Its reply, which has the same context.
const REPLY: &str = "
    47 49 4F 50  01 02 01 01  20 00 00 00
    01 00 00 00  00 00 00 00
    01 00 00 00
    0A 00 00 00  04 00 00 00  01 EE 02 01
    EE EE EE EE  0D F0 AD 0B";

fn bytes(parts: &[&str]) -> Vec<u8> {
    let words = parts.iter().flat_map(|part| part.split_whitespace());
    words.map(|word| u8::from_str_radix(word, 16).unwrap()).collect()
}

/// A reference that is written in these parts.
fn reference(parts: &[&str]) -> Ior {
    let digits: String = bytes(parts).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("IOR:{digits}").parse().unwrap()
}

/// Port, endpoints and policies of a reference.
fn read(ior: &Ior) -> (u16, Vec<TaoEndpoint>, RealTimePolicies) {
    let profile = ior.iiop_profiles().next().unwrap();
    assert_eq!((profile.host(), profile.object_key()), ("127.0.0.1", &b"key"[..]));
    let endpoints = profile.components().find_map(|component| component.tao_endpoints()).unwrap();
    (profile.port(), endpoints.unwrap(), RealTimePolicies::read(profile.components()).unwrap())
}

fn at(port: u16, priority: i16) -> TaoEndpoint {
    TaoEndpoint { host: "127.0.0.1".into(), port, priority }
}

fn model(model: PriorityModel, server_priority: i16) -> Option<PriorityModelPolicy> {
    Some(PriorityModelPolicy { model, server_priority })
}

#[test]
fn references_of_tao_are_read() {
    let lanes = reference(&[REFERENCE_TO_LANES, TWO_LANES, POLICIES_OF_LANES, BANDS_AND_PROPAGATED]);
    let (port, endpoints, policies) = read(&lanes);
    assert_eq!((port, endpoints), (40_001, vec![at(40_001, 1_000), at(40_002, 16_384)]));
    assert_eq!(policies.priority_model, model(PriorityModel::ClientPropagated, 0x0102));
    let bands = [PriorityBand { low: 0, high: 5_000 }, PriorityBand { low: 5_001, high: 32_767 }];
    assert_eq!(policies.bands.as_deref(), Some(&bands[..]));
    let one = reference(&[REFERENCE_TO_ONE, ONE_ADDRESS, POLICIES_OF_ONE, DECLARED]);
    let (port, endpoints, policies) = read(&one);
    assert_eq!((port, endpoints), (40_002, vec![at(40_002, -1)]));
    assert_eq!(
        (policies.priority_model, policies.bands),
        (model(PriorityModel::ServerDeclared, 16_384), None)
    );
}

#[test]
fn components_are_written_as_tao_writes_them() {
    if ByteOrder::NATIVE == ByteOrder::Big {
        return;
    }
    let endpoints = |endpoints: &[TaoEndpoint]| TaggedComponent::new_tao_endpoints(endpoints).unwrap();
    let two = endpoints(&[at(40_001, 1_000), at(40_002, 16_384)]);
    assert_eq!((two.tag, &*two.data), (TAG_TAO_ENDPOINTS, &unpadded(TWO_LANES)[..]));
    assert_eq!(&*endpoints(&[at(40_002, -1)]).data, unpadded(ONE_ADDRESS));
    assert_eq!(&*written_again(DECLARED).data, unpadded(DECLARED));
    // Ours have the model before the bands, and each policy as TAO has it.
    let policies = |component: TaggedComponent<'_>| component.policies().unwrap().unwrap();
    let mut of_tao = policies(of_tao(BANDS_AND_PROPAGATED));
    of_tao.reverse();
    assert_eq!(policies(written_again(BANDS_AND_PROPAGATED)), of_tao);
}

/// A reference with this profile of a Unix socket alone.
fn unix_reference(profile: &[u8]) -> Ior {
    let length = u32::try_from(profile.len()).unwrap().to_le_bytes();
    let head = bytes(&["01 EE EE EE  01 00 00 00  00 EE EE EE  01 00 00 00  00 4F 41 54"]);
    let digits: String =
        [&head[..], &length, profile].concat().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("IOR:{digits}").parse().unwrap()
}

#[test]
fn profiles_of_tao_s_unix_sockets_are_read_and_written() {
    let data = bytes(&[UNIX_PROFILE]);
    let ior = unix_reference(&data);
    let profile = ior.iiop_profiles().next().unwrap();
    assert_eq!((ior.profiles[0].tag(), ior.profiles[0].data()), (TAG_TAO_UIOP, &data[..]));
    assert_eq!((profile.uiop_path(), profile.object_key()), (Some("/tmp/s1"), &b"key"[..]));
    // It names no machine, and has no address of TCP.
    assert_eq!(profile.unix_addresses().count(), 0);
    assert_eq!((profile.addresses().count(), profile.host(), profile.port()), (0, "", 0));
    let at = |path: &str, priority| TaoUnixEndpoint { path: path.into(), priority };
    let two = [at("/tmp/s1", 1_000), at("/tmp/s2", 16_384)];
    let read = profile.components().find_map(|component| component.tao_unix_endpoints()).unwrap();
    assert_eq!(read.as_deref(), Ok(&two[..]));
    let named = [TaggedComponent::new_unix_address("elsewhere", "/tmp/s1").unwrap()];
    let named = IiopProfile::new_uiop(Version::V1_2, "/tmp/s1", b"key", &named).unwrap();
    let hosts: Vec<_> = named.unix_addresses().map(|address| address.host.into_owned()).collect();
    assert_eq!(hosts, ["elsewhere"], "a profile that names a machine is for that one");
    // A part of it is no profile that can be used.
    for end in 0..data.len() {
        let cut = unix_reference(&data[..end]);
        assert!(matches!(&cut.profiles[0], Profile::Other(other) if other.tag == TAG_TAO_UIOP), "{end}");
    }
    if ByteOrder::NATIVE == ByteOrder::Little {
        let listed = [TaggedComponent::new_tao_unix_endpoints(&two).unwrap()];
        let written = IiopProfile::new_uiop(Version::V1_2, "/tmp/s1", b"key", &listed).unwrap();
        assert_eq!(Profile::Iiop(written).data(), unpadded(UNIX_PROFILE));
    }
}

fn of_tao(text: &str) -> TaggedComponent<'static> {
    TaggedComponent { tag: TAG_POLICIES, data: unpadded(text).into() }
}

/// What is written here of the policies that TAO has written.
fn written_again(text: &str) -> TaggedComponent<'static> {
    RealTimePolicies::read([of_tao(text)].into_iter()).unwrap().to_component().unwrap()
}

/// Bytes whose padding is zero, as ours is.
fn unpadded(text: &str) -> Vec<u8> {
    bytes(&[&text.replace("EE", "00")])
}

fn message(text: &str) -> Message {
    let mut framer = Framer::new(FramerLimits::default());
    framer.push(&bytes(&[text]));
    framer.next().unwrap().unwrap()
}

#[test]
fn a_priority_is_read_in_a_request_of_tao_and_in_its_reply() {
    let request = message(REQUEST);
    let request = request.parse_request().unwrap();
    assert_eq!(request.operation, b"go");
    assert_eq!(request.body.reader().read_u32(), Ok(0x0BAD_F00D));
    let contexts: Vec<_> = request.contexts.collect();
    assert_eq!(contexts.iter().map(|context| context.id).collect::<Vec<_>>(), [RT_CORBA_PRIORITY, CODE_SETS]);
    assert_eq!(priority_of_context(contexts[0].data), Some(0x0102));
    let reply = message(REPLY);
    let mut reply = reply.parse_reply().unwrap();
    let context = reply.contexts.next().unwrap();
    assert_eq!((context.id, priority_of_context(context.data)), (RT_CORBA_PRIORITY, Some(0x0102)));
}
