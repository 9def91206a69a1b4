//! Policies from numbers and values (`ORB::create_policy`), and which of them a client may override. A test for each row of
//! the standard's exceptions.

use std::time::Duration;

use ironorb::giop::cdr::{Reader, Writer};
use ironorb::giop::real_time::{self, PriorityModelPolicy};
use ironorb::giop::version::Encoding;
use ironorb::poa::{
    IdAssignment, IdUniqueness, ImplicitActivation, Lifespan, PoaPolicy, RequestProcessing, ServantRetention,
    ThreadModel,
};
use ironorb::rt::{self, ClientPolicies, PriorityBand, PriorityBands, PriorityModel, Protocols};
use ironorb::{
    Any, InvocationPolicies, LaneConfig, MinorCode, ObjectRef, Orb, Policy, PolicyErrorCode, Rebind,
    SyncScope, SystemExceptionKind, Transport, TypeCode, set_thread_policy_overrides,
};
use ironorb_tests::raw;
use ironorb_tests::real_time::{priority, real_time, server_of};
use ironorb_tests::testing::{Probe, ProbeRef};

use PolicyErrorCode::{BadPolicy, BadPolicyType, BadPolicyValue, UnsupportedPolicy, UnsupportedPolicyValue};

/// The profile ids of IIOP, of TAO's protocol of Unix sockets and of shared memory.
const PROFILES: [u32; 3] = [0, 0x5441_4F00, 0x494F_5201];

fn orb() -> Orb {
    let lane = |name: &str| LaneConfig::new(name).endpoint("iiop://127.0.0.1:0").threadpool(name);
    server_of(real_time()).lane(lane("a")).lane(lane("b")).build().unwrap()
}

fn any<T: ironorb::Typed + ironorb::giop::cdr::Marshal + ?Sized>(value: &T) -> Any {
    Any::new(value).unwrap()
}

/// The type of an enum with this many enumerators.
fn enum_type(id: &str, count: usize) -> TypeCode {
    let names: Vec<_> = (0..count).map(|n| format!("e{n}")).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    TypeCode::create_enum(id, "", &names).unwrap()
}

fn enumerator(id: &str, count: usize, number: u32) -> Any {
    Any::with_type(enum_type(id, count), &number).unwrap()
}

fn band(low: i16, high: i16) -> PriorityBand {
    PriorityBand { low, high }
}

fn model(model: real_time::PriorityModel, server_priority: i16) -> Any {
    any(&PriorityModelPolicy { model, server_priority })
}

/// The enums of PortableServer, with the policies of their enumerators.
fn enums() -> Vec<(u32, &'static str, Vec<PoaPolicy>)> {
    use PoaPolicy as P;
    vec![
        (
            16,
            "Thread",
            [ThreadModel::OrbControl, ThreadModel::SingleThread, ThreadModel::MainThread]
                .map(P::Thread)
                .into(),
        ),
        (17, "Lifespan", [Lifespan::Transient, Lifespan::Persistent].map(P::Lifespan).into()),
        (18, "IdUniqueness", [IdUniqueness::Unique, IdUniqueness::Multiple].map(P::IdUniqueness).into()),
        (19, "IdAssignment", [IdAssignment::User, IdAssignment::System].map(P::IdAssignment).into()),
        (
            20,
            "ImplicitActivation",
            [ImplicitActivation::Yes, ImplicitActivation::No].map(P::ImplicitActivation).into(),
        ),
        (
            21,
            "ServantRetention",
            [ServantRetention::Retain, ServantRetention::NonRetain].map(P::ServantRetention).into(),
        ),
        (
            22,
            "RequestProcessing",
            [
                RequestProcessing::ActiveObjectMapOnly,
                RequestProcessing::DefaultServant,
                RequestProcessing::ServantManager,
            ]
            .map(P::RequestProcessing)
            .into(),
        ),
    ]
}

fn id_of(name: &str) -> String {
    format!("IDL:omg.org/PortableServer/{name}PolicyValue:1.0")
}

/// A value of each type, with the policy that it stands for.
fn good(orb: &Orb) -> Vec<(u32, Any, Policy)> {
    let mut good = Vec::new();
    for (number, name, policies) in enums() {
        for (index, policy) in policies.iter().enumerate() {
            good.push((number, enumerator(&id_of(name), policies.len(), index as u32), Policy::Poa(*policy)));
        }
    }
    let rebinds = [Rebind::Transparent, Rebind::NoRebind, Rebind::NoReconnect];
    let scopes = [SyncScope::None, SyncScope::WithTransport, SyncScope::WithServer, SyncScope::WithTarget];
    good.extend((0i16..).zip(rebinds).map(|(n, rebind)| (23, any(&n), Policy::Rebind(rebind))));
    good.extend((0i16..).zip(scopes).map(|(n, scope)| (24, any(&n), Policy::SyncScope(scope))));
    for (time, timeout) in [
        (0u64, Duration::ZERO),
        (25_000_001, Duration::from_nanos(2_500_000_100)),
        (u64::MAX, Duration::new(u64::MAX / 10_000_000, 955_161_500)),
    ] {
        good.push((32, any(&time), Policy::RoundtripTimeout(timeout)));
    }
    let propagated = PriorityModel::ClientPropagated { default: priority(7) };
    let declared = PriorityModel::ServerDeclared(priority(i16::MAX));
    let propagated = (real_time::PriorityModel::ClientPropagated, 7, propagated);
    for (kind, number, expected) in
        [propagated, (real_time::PriorityModel::ServerDeclared, i16::MAX, declared)]
    {
        good.push((40, model(kind, number), Policy::Poa(PoaPolicy::PriorityModel(expected))));
    }
    for name in ["a", "b"] {
        let pool = orb.rt_orb().unwrap().threadpool(name).unwrap();
        good.push((41, any(&pool.number()), Policy::Poa(PoaPolicy::Threadpool(pool))));
    }
    let protocols = [Transport::Tcp, Transport::Unix, Transport::SharedMemory].map(Into::into);
    let protocols = Protocols::new(&protocols).unwrap();
    good.push((42, any(&PROFILES[..]), Policy::Poa(PoaPolicy::ServerProtocol(protocols))));
    good.push((43, any(&PROFILES[..]), Policy::Poa(PoaPolicy::ClientProtocol(protocols))));
    let void = Any::read_value(TypeCode::for_type::<()>(), &mut Reader::new(&[], Encoding::NATIVE)).unwrap();
    for (value, is_private) in
        [(Any::default(), true), (void, true), (any(&true), true), (any(&false), false)]
    {
        good.push((44, value, Policy::PrivateConnection(is_private)));
    }
    let list = [band(0, 0), band(5, i16::MAX)];
    let bands = PoaPolicy::PriorityBandedConnection(PriorityBands::new(&list).unwrap());
    good.push((45, any(&list[..]), Policy::Poa(bands)));
    good
}

#[test]
fn each_type_made_from_an_any_is_the_typed_policy() {
    let orb = orb();
    let good = good(&orb);
    for (number, value, expected) in &good {
        let made = orb.create_policy(*number, value).unwrap();
        assert_eq!((made, made.policy_type()), (*expected, *number));
    }
    let numbers: std::collections::BTreeSet<_> = good.iter().map(|(number, ..)| *number).collect();
    assert_eq!(
        numbers.into_iter().collect::<Vec<_>>(),
        [16, 17, 18, 19, 20, 21, 22, 23, 24, 32, 40, 41, 42, 43, 44, 45]
    );
}

/// Other ORBs leave out names and ids, and typedefs say nothing of the value.
#[test]
fn types_of_values_count_by_equivalence() {
    let orb = orb();
    let alias = |of: &TypeCode| TypeCode::create_alias("IDL:some/Alias:1.0", "Alias", of).unwrap();
    for (number, value, expected) in good(&orb) {
        let of = value.type_code();
        let types = match value.is_empty() {
            true => vec![],
            false => vec![alias(&alias(of)), of.compact()],
        };
        for other in types {
            let value = value.retyped(other).unwrap();
            assert_eq!(orb.create_policy(number, &value), Ok(expected), "{:?}", value.type_code());
        }
    }
    for (number, _, policies) in enums() {
        let value = enumerator("", policies.len(), 1);
        assert_eq!(orb.create_policy(number, &value), Ok(Policy::Poa(policies[1])));
    }
    // A struct of the program's own, with its own names, is the value of a priority model.
    let members = [("m", enum_type("", 2)), ("p", alias(&TypeCode::for_type::<i16>()))];
    let of = TypeCode::create_struct("IDL:program/Model:1.0", "Model", &members).unwrap();
    let value = PriorityModelPolicy { model: real_time::PriorityModel::ServerDeclared, server_priority: 3 };
    let declared = Policy::Poa(PoaPolicy::PriorityModel(PriorityModel::ServerDeclared(priority(3))));
    assert_eq!(orb.create_policy(40, &Any::with_type(of, &value).unwrap()), Ok(declared));
    let bands = [band(1, 2)];
    let of = TypeCode::create_struct(
        "",
        "",
        &[("", TypeCode::for_type::<i16>()), ("", TypeCode::for_type::<i16>())],
    );
    let of = alias(&TypeCode::create_sequence(&of.unwrap(), 0).unwrap());
    let banded = PoaPolicy::PriorityBandedConnection(PriorityBands::new(&bands).unwrap());
    let value = Any::with_type(of, &bands[..]).unwrap();
    assert_eq!(orb.create_policy(45, &value), Ok(Policy::Poa(banded)));
}

/// The reason why there is no policy of a type from a value. The error says what to do.
fn refused(orb: &Orb, number: u32, value: &Any) -> PolicyErrorCode {
    let error = orb.create_policy(number, value).expect_err("it is wrong");
    assert_eq!(error.policy_type, number);
    let (reason, text) = (error.reason, error.to_string());
    let mends = ["its value is", "`Orb::create_policy` lists", "`OrbBuilder::real_time`"];
    assert_eq!(mends.iter().filter(|mend| text.contains(**mend)).count(), 1, "{text}");
    assert!(text.contains(&format!("type {number} cannot be made ({reason:?})")), "{text}");
    assert_eq!(ironorb::Error::from(error).to_string(), text);
    reason
}

#[test]
fn reasons_have_the_numbers_of_the_standard() {
    let reasons = [BadPolicy, UnsupportedPolicy, BadPolicyType, BadPolicyValue, UnsupportedPolicyValue];
    assert_eq!(reasons.map(|reason| reason as i16), [0, 1, 2, 3, 4]);
}

#[test]
fn an_unknown_type_is_a_bad_policy() {
    let orb = orb();
    let known: Vec<_> = good(&orb).iter().map(|(number, ..)| *number).collect();
    let unknown = (0..100).chain([u32::MAX, 0x494F_5210]).filter(|number| !known.contains(number));
    for number in unknown {
        assert_eq!(refused(&orb, number, &any(&0u32)), BadPolicy);
    }
}

#[test]
fn a_value_of_another_type_has_a_bad_type() {
    let orb = orb();
    let all = good(&orb);
    let strange = [any("text"), any(&7u8), any(&1.5f64), any(&Any::default()), any(&[7u8][..])];
    for (number, own, _) in &all {
        let others = all.iter().filter(|(_, other, _)| !own.type_code().equivalent(other.type_code()));
        for other in others.map(|(_, other, _)| other).chain(&strange) {
            let is_private =
                |it: &Any| it.is_empty() || it.type_code().equivalent(&TypeCode::for_type::<bool>());
            if *number != 44 || !is_private(other) {
                assert_eq!(refused(&orb, *number, other), BadPolicyType, "{other:?}");
            }
        }
    }
    // The id says that it is another enum, though it has as many enumerators.
    let lifespan = enumerator(&id_of("Lifespan"), 2, 0);
    assert_eq!(refused(&orb, 18, &lifespan), BadPolicyType);
    assert!(orb.create_policy(17, &lifespan).is_ok());
}

#[test]
fn a_value_out_of_its_range_is_a_bad_value() {
    let orb = orb();
    for (number, name, policies) in enums() {
        // A later version of the standard might have more enumerators.
        let count = policies.len();
        assert_eq!(refused(&orb, number, &enumerator(&id_of(name), count + 1, count as u32)), BadPolicyValue);
    }
    let propagated = real_time::PriorityModel::ClientPropagated;
    let wrong_model =
        [("m", enum_type("IDL:omg.org/RTCORBA/PriorityModel:1.0", 3)), ("p", TypeCode::for_type::<i16>())];
    let wrong_model = TypeCode::create_struct("", "", &wrong_model).unwrap();
    let mut bytes = Vec::new();
    let mut w = Writer::new(&mut bytes, Encoding::NATIVE);
    w.write_u32(2);
    w.put(&0i16).unwrap();
    let wrong_model = Any::read_value(wrong_model, &mut Reader::new(&bytes, Encoding::NATIVE)).unwrap();
    for (number, value) in [
        (23, any(&3i16)),
        (23, any(&-1i16)),
        (24, any(&4i16)),
        (24, any(&i16::MIN)),
        (40, model(propagated, -1)),
        (40, model(real_time::PriorityModel::ServerDeclared, i16::MIN)),
        (40, wrong_model),
        (41, any(&2u32)),
        (41, any(&u32::MAX)),
        (42, any(&[0u32, 0][..])),
        (43, any(&[PROFILES[1], PROFILES[0], PROFILES[1]][..])),
        (45, any::<[PriorityBand]>(&[])),
        (45, any(&[band(0, 10), band(30, 20)][..])),
        (45, any(&[band(-1, 10)][..])),
        (45, any(&[band(0, 10), band(-9, -1)][..])),
    ] {
        assert_eq!(refused(&orb, number, &value), BadPolicyValue, "{value:?}");
    }
    for (number, value) in [
        (42, any(&[0u32, 99][..])),
        (43, any(&[77u32][..])),
        (45, any(&[band(0, 1); PriorityBands::MAX + 1][..])),
    ] {
        assert_eq!(refused(&orb, number, &value), UnsupportedPolicyValue, "{value:?}");
    }
    assert!(orb.create_policy(45, &any(&[band(0, 1); PriorityBands::MAX][..])).is_ok());
}

#[test]
fn an_orb_without_real_time_does_not_support_its_policies() {
    let plain = Orb::builder().no_endpoint().build().unwrap();
    for (number, value, expected) in good(&orb()) {
        match number {
            40.. => assert_eq!(refused(&plain, number, &value), UnsupportedPolicy),
            _ => assert_eq!(plain.create_policy(number, &value), Ok(expected)),
        }
    }
}

#[test]
fn a_thread_pool_that_has_ended_is_a_bad_value() {
    let orb = orb();
    let rt_orb = orb.rt_orb().unwrap();
    let pool =
        rt_orb.create_threadpool("late", [LaneConfig::new("late").endpoint("iiop://127.0.0.1:0")]).unwrap();
    let number = any(&pool.number());
    assert_eq!(orb.create_policy(41, &number), Ok(Policy::Poa(PoaPolicy::Threadpool(pool))));
    rt_orb.destroy_threadpool(pool).unwrap();
    assert_eq!(refused(&orb, 41, &number), BadPolicyValue);
}

/// Values come from peers: whatever their bytes are, there is a policy or an error.
#[test]
fn no_bytes_of_an_any_panic() {
    let orb = orb();
    let mut values = 0;
    for (_, value, _) in good(&orb) {
        let mut bytes = Vec::new();
        Writer::new(&mut bytes, Encoding::NATIVE).put(&value).unwrap();
        for at in 0..bytes.len() {
            for change in [1, 0x80, 0xFF] {
                let mut bytes = bytes.clone();
                bytes[at] ^= change;
                let Ok(value) = Reader::new(&bytes, Encoding::NATIVE).get::<Any>() else { continue };
                values += 1;
                for number in 16..46 {
                    let _either = orb.create_policy(number, &value);
                }
            }
        }
    }
    assert!(values > 1_000, "{values} changed bytes are values");
}

#[test]
fn an_adapter_is_made_from_such_policies() {
    let orb = orb();
    let pool = orb.rt_orb().unwrap().threadpool("a").unwrap();
    let values = [
        (17, enumerator(&id_of("Lifespan"), 2, 1)),
        (19, enumerator(&id_of("IdAssignment"), 2, 0)),
        (40, model(real_time::PriorityModel::ClientPropagated, 3)),
        (41, any(&pool.number())),
    ];
    let list: Vec<_> =
        values.iter().map(|(number, value)| orb.create_policy(*number, value).unwrap()).collect();
    let of_adapter = |policy: &Policy| match policy {
        Policy::Poa(policy) => Some(*policy),
        _ => None,
    };
    let list: Vec<_> = list.iter().filter_map(of_adapter).collect();
    let policies = ironorb::PoaPolicies::from_list(&list).unwrap();
    let expected = ironorb::PoaPolicies {
        priority_model: Some(PriorityModel::ClientPropagated { default: priority(3) }),
        threadpool: Some(pool),
        ..ironorb::PoaPolicies::PERSISTENT
    };
    assert_eq!(policies, expected);
    let poa = orb.root_poa().create_poa("from data", None, policies).unwrap();
    assert_eq!(*poa.policies(), expected);
}

fn object(orb: &Orb) -> ObjectRef {
    orb.string_to_object("corbaloc::127.0.0.1:1/x").unwrap()
}

/// Policies of a client from a list, with what they are as fields.
fn overriding() -> (Vec<Policy>, InvocationPolicies, ClientPolicies) {
    let bands = PriorityBands::new(&[band(0, 9)]).unwrap();
    let protocols = Protocols::new(&[Transport::Tcp.into()]).unwrap();
    let list = vec![
        Policy::Rebind(Rebind::NoRebind),
        Policy::SyncScope(SyncScope::WithServer),
        Policy::RoundtripTimeout(Duration::from_secs(5)),
        Policy::PrivateConnection(true),
        Policy::Poa(PoaPolicy::PriorityBandedConnection(bands)),
        Policy::Poa(PoaPolicy::ClientProtocol(protocols)),
    ];
    let calls = InvocationPolicies {
        rebind: Some(Rebind::NoRebind),
        sync_scope: Some(SyncScope::WithServer),
        roundtrip_timeout: Some(Some(Duration::from_secs(5))),
        ..InvocationPolicies::NONE
    };
    let connections = ClientPolicies {
        bands: Some(bands),
        private_connection: Some(true),
        protocols: Some(protocols),
        ..ClientPolicies::NONE
    };
    (list, calls, connections)
}

#[test]
fn overrides_of_a_reference_are_added_to_those_it_has() {
    let orb = orb();
    let object = object(&orb);
    let (list, calls, connections) = overriding();
    let all = object.set_policy_overrides(&list).unwrap();
    assert_eq!((all.policies(), all.client_policies()), (calls, connections));
    assert_eq!(
        (object.policies(), object.client_policies()),
        (InvocationPolicies::NONE, ClientPolicies::NONE)
    );
    let mut one_by_one = object.clone();
    for policy in &list {
        one_by_one = one_by_one.set_policy_overrides(std::slice::from_ref(policy)).unwrap();
    }
    let typed = object.with_policies(calls).with_client_policies(connections);
    for other in [one_by_one, typed, all.set_policy_overrides(&[]).unwrap()] {
        assert_eq!((other.policies(), other.client_policies()), (calls, connections));
    }
    let later = all.set_policy_overrides(&[Policy::Rebind(Rebind::Transparent)]).unwrap();
    assert_eq!(later.policies(), InvocationPolicies { rebind: Some(Rebind::Transparent), ..calls });
}

/// A timeout of nothing ends a call to a server that never answers, whichever level has it.
#[test]
fn calls_follow_overrides_of_each_level() {
    let (_listener, port) = raw::listen();
    let orb = Orb::builder().no_endpoint().call_timeout(None).build().unwrap();
    let object = orb.string_to_object(&format!("corbaloc::127.0.0.1:{port}/x")).unwrap();
    let nothing = [orb.create_policy(32, &any(&0u64)).unwrap()];
    let ends = |object: &ObjectRef| {
        let probe: ProbeRef = ironorb::TypedRef::from_object(object.clone());
        assert_eq!(probe.ping().unwrap_err().kind, SystemExceptionKind::Timeout);
    };
    ends(&object.set_policy_overrides(&nothing).unwrap());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            set_thread_policy_overrides(&nothing).unwrap();
            ends(&object);
        });
    });
    orb.set_policy_overrides(&nothing).unwrap();
    ends(&object);
}

#[test]
fn overrides_of_an_orb_and_a_thread_replace_those_they_had() {
    let orb = orb();
    let (list, calls, connections) = overriding();
    let one = [Policy::SyncScope(SyncScope::None)];
    let of_one = InvocationPolicies { sync_scope: Some(SyncScope::None), ..InvocationPolicies::NONE };
    orb.set_policy_overrides(&list).unwrap();
    assert_eq!((orb.policies(), orb.client_policies()), (calls, connections));
    orb.set_policy_overrides(&one).unwrap();
    assert_eq!((orb.policies(), orb.client_policies()), (of_one, ClientPolicies::NONE));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let now = || (ironorb::thread_policies(), rt::thread_policies());
            set_thread_policy_overrides(&list).unwrap();
            assert_eq!(now(), (calls, connections));
            set_thread_policy_overrides(&[list[0], list[0]]).unwrap_err();
            assert_eq!(now(), (calls, connections), "a refused list changes nothing");
            set_thread_policy_overrides(&one).unwrap();
            assert_eq!(now(), (of_one, ClientPolicies::NONE));
        });
    });
}

#[test]
fn no_client_overrides_a_policy_of_servers() {
    let orb = orb();
    let object = object(&orb);
    let clients = [23, 24, 32, 43, 44, 45];
    let (mut allowed, mut refused) = (0, 0);
    for (number, value, _) in good(&orb) {
        let policy = orb.create_policy(number, &value).unwrap();
        let list = [policy];
        let results = [
            object.set_policy_overrides(&list).map(|_| ()),
            orb.set_policy_overrides(&list),
            std::thread::scope(|scope| scope.spawn(|| set_thread_policy_overrides(&list)).join().unwrap()),
        ];
        for result in results {
            match clients.contains(&number) {
                true => {
                    result.unwrap();
                    allowed += 1;
                }
                false => {
                    let e = result.unwrap_err();
                    assert_eq!(e.kind, SystemExceptionKind::NoPermission);
                    assert!(e.to_string().contains("give it to an adapter"), "{e}");
                    refused += 1;
                }
            }
        }
    }
    assert_eq!((allowed, refused), (3 * 16, 3 * 21));
}

#[test]
fn a_list_has_each_type_once() {
    let orb = orb();
    let object = object(&orb);
    let (list, ..) = overriding();
    for policy in &list {
        let twice = [list.clone(), vec![*policy]].concat();
        let e = object.set_policy_overrides(&twice).unwrap_err();
        assert_eq!((e.kind, e.minor), (SystemExceptionKind::BadParam, MinorCode::BAD_PARAM_POLICY_TWICE));
        assert_eq!(e.minor.0, 0x4F4D_0000 | 30);
    }
    let different = [Policy::SyncScope(SyncScope::None), Policy::SyncScope(SyncScope::WithServer)];
    assert_eq!(object.set_policy_overrides(&different).unwrap_err().kind, SystemExceptionKind::BadParam);
}
