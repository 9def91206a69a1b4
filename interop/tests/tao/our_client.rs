//! IronORB's client with TAO's server.

use std::sync::{Arc, Mutex};

use ironorb::giop::ior::{IiopProfile, Ior};
use ironorb::giop::real_time::{PriorityBand, RealTimePolicies, priority_of_context};
use ironorb::interceptor::{ClientInterceptor, ClientRequestInfo};
use ironorb::rt::PriorityModel;
use ironorb::{Orb, SystemException, TypedRef as _};
use ironorb_interop::interop_rt::{NO_PRIORITY, Place, Witness as _, WitnessRef};
use ironorb_interop::process::free_port;
use ironorb_interop::tao::{ANY_PORT, Server};

use super::{LANES, PRIORITIES, native, priority, real_time};

/// Lanes of a server, and adapters without and with them.
const SERVER: [&str; 16] = [
    "--lanes",
    "1000+16384+30000",
    "--pool",
    "5000",
    "--serve",
    "name=none,model=none,pool=default",
    "--serve",
    "name=propagated,model=propagated,priority=7,pool=default",
    "--serve",
    "name=declared,model=declared,priority=12000,pool=default",
    "--serve",
    "name=flat,model=propagated,pool=flat",
    "--serve",
    "name=lanes,model=propagated,pool=lanes",
    "--serve",
    "name=lane,model=declared,priority=16384,pool=lanes",
];

pub(super) fn start(arguments: &[&str]) -> Server {
    Server::start(&[&ANY_PORT, arguments].concat())
}

pub(super) fn client() -> Orb {
    real_time().build().expect("the system grants real-time priorities")
}

pub(super) fn reference(client: &Orb, server: &Server, adapter: &str) -> WitnessRef {
    let printed = server.printed(adapter);
    client.string_to_object(printed).unwrap_or_else(|e| panic!("{printed}: {e}")).narrow_unchecked()
}

/// Where a servant is called from a thread with each of these priorities.
pub(super) fn places(client: &Orb, object: &WitnessRef, priorities: &[i16]) -> Vec<Place> {
    let current = client.rt_current().expect("the ORB is a real-time ORB");
    let at = |number: &i16| {
        current.set_priority(priority(*number)).expect("the system grants it");
        object.served_by().expect("the server answers")
    };
    std::thread::scope(|scope| {
        let calls = scope.spawn(|| priorities.iter().map(at).collect());
        calls.join().expect("no call fails")
    })
}

/// Has a thread with each of these priorities call a servant, which lets none go before all are inside.
pub(super) fn all_meet(client: &Orb, object: &WitnessRef, priorities: &[i16]) {
    let current = client.rt_current().expect("the ORB is a real-time ORB");
    let callers = u32::try_from(priorities.len()).expect("there are few");
    std::thread::scope(|scope| {
        let meet = |number: &i16| {
            let number = *number;
            let current = &current;
            scope.spawn(move || {
                current.set_priority(priority(number)).expect("the system grants it");
                object.meet(callers)
            })
        };
        let calls: Vec<_> = priorities.iter().map(meet).collect();
        for call in calls {
            assert_eq!(call.join().expect("no call fails"), Ok(true));
        }
    });
}

/// The priorities of the threads at which a servant ran, each with that of the system.
pub(super) fn priorities(places: &[Place]) -> Vec<(i16, i16)> {
    places.iter().map(|place| (place.priority, place.native_priority)).collect()
}

pub(super) fn with_native(numbers: &[i16]) -> Vec<(i16, i16)> {
    numbers.iter().map(|number| (*number, native(*number))).collect()
}

pub(super) fn profile<T>(printed: &str, of: impl FnOnce(&IiopProfile) -> T) -> T {
    let ior: Ior = printed.parse().expect("a reference");
    of(ior.iiop_profiles().next().expect("it has a profile"))
}

/// The priorities of the addresses in TAO's component, if the reference has it.
fn addresses(printed: &str) -> Option<Vec<i16>> {
    profile(printed, |profile| {
        let endpoints = profile.components().find_map(|component| component.tao_endpoints())?;
        Some(endpoints.expect("it can be read").iter().map(|endpoint| endpoint.priority).collect())
    })
}

/// What a reference says. Its bytes differ from run to run, because TAO leaves padding undefined.
fn facts(printed: &str) -> (String, u16, Vec<u8>, Option<Vec<i16>>) {
    let (host, port, key) = profile(printed, |profile| {
        (profile.host().to_owned(), profile.port(), profile.object_key().to_vec())
    });
    (host, port, key, addresses(printed))
}

#[test]
#[ignore = "needs TAO_TREE"]
fn references_tell_the_model_and_an_address_for_each_lane() {
    let server = start(&SERVER);
    let client = client();
    let model = |adapter| reference(&client, &server, adapter).object().priority_model();
    assert_eq!(model("none"), None);
    assert_eq!(model("propagated"), Some(PriorityModel::ClientPropagated { default: priority(7) }));
    assert_eq!(model("declared"), Some(PriorityModel::ServerDeclared(priority(12_000))));
    assert_eq!(model("lanes"), Some(PriorityModel::ClientPropagated { default: priority(0) }));
    assert_eq!(model("lane"), Some(PriorityModel::ServerDeclared(priority(16_384))));
    assert_eq!(addresses(server.printed("lanes")), Some(LANES.to_vec()));
    // One address, which is for no priority in particular.
    assert_eq!(addresses(server.printed("propagated")), Some(vec![-1]));
    assert_eq!(addresses(server.printed("lane")), Some(vec![-1]));
}

#[test]
#[ignore = "needs TAO_TREE"]
fn a_servant_of_tao_runs_at_our_priority_and_its_reply_tells_it() {
    let echoes = Echoes::default();
    let client = real_time().client_interceptor(echoes.clone()).build().expect("the system grants it");
    let server = start(&SERVER);
    let object = reference(&client, &server, "propagated");
    assert_eq!(priorities(&places(&client, &object, &PRIORITIES)), with_native(&PRIORITIES));
    assert_eq!(echoes.take(), PRIORITIES.map(Some));
    // In a pool without lanes, too.
    let object = reference(&client, &server, "flat");
    assert_eq!(priorities(&places(&client, &object, &PRIORITIES)), with_native(&PRIORITIES));
    assert_eq!(echoes.take(), PRIORITIES.map(Some));
}

#[test]
#[ignore = "needs TAO_TREE"]
fn a_declared_priority_of_tao_counts_whatever_ours_is() {
    let echoes = Echoes::default();
    let client = real_time().client_interceptor(echoes.clone()).build().expect("the system grants it");
    let server = start(&SERVER);
    let object = reference(&client, &server, "declared");
    assert_eq!(priorities(&places(&client, &object, &PRIORITIES)), with_native(&[12_000; 6]));
    assert_eq!(echoes.take(), [None; 6]);
}

#[test]
#[ignore = "needs TAO_TREE"]
fn an_object_of_tao_has_a_priority_of_its_own() {
    let server = start(&[
        "--lanes",
        "100+200",
        "--serve",
        "name=own,model=declared,priority=3000,pool=default,object=4000",
        "--serve",
        "name=lane,model=declared,priority=100,pool=lanes,object=200",
        "--serve",
        "name=wrong,model=declared,priority=100,pool=lanes,object=300",
    ]);
    assert_eq!(server.printed("wrong"), "IDL:omg.org/CORBA/BAD_PARAM:1.0");
    let client = client();
    for (adapter, number) in [("own", 4_000), ("lane", 200)] {
        let object = reference(&client, &server, adapter);
        assert_eq!(
            object.object().priority_model(),
            Some(PriorityModel::ServerDeclared(priority(number))),
            "{adapter}"
        );
        assert_eq!(
            priorities(&places(&client, &object, &PRIORITIES)),
            with_native(&[number; 6]),
            "{adapter}"
        );
    }
}

#[test]
#[ignore = "needs TAO_TREE"]
fn a_call_reaches_the_lane_of_its_priority_in_tao() {
    let server = start(&SERVER);
    let client = client();
    let object = reference(&client, &server, "lanes");
    let places = places(&client, &object, &[LANES, LANES].concat());
    assert_eq!(priorities(&places), with_native(&[LANES, LANES].concat()));
    let threads: Vec<i32> = places.iter().map(|place| place.thread).collect();
    assert_eq!(threads[..3], threads[3..]);
    assert!(threads[0] != threads[1] && threads[1] != threads[2] && threads[0] != threads[2], "{threads:?}");
    // The same thread serves the lane's declared priority.
    let object = reference(&client, &server, "lane");
    let places = self::places(&client, &object, &PRIORITIES);
    assert_eq!(priorities(&places), with_native(&[16_384; 6]));
    assert!(places.iter().all(|place| place.thread == threads[1]), "{places:?} {threads:?}");
}

#[test]
#[ignore = "needs TAO_TREE"]
fn a_priority_without_a_lane_of_tao_reaches_its_first_lane() {
    let server = start(&SERVER);
    let client = client();
    let object = reference(&client, &server, "lanes");
    assert_eq!(priorities(&places(&client, &object, &[0, 999, 20_000])), with_native(&[1_000; 3]));
}

#[test]
#[ignore = "needs TAO_TREE"]
fn without_real_time_we_are_served_at_tao_s_default() {
    let server = start(&SERVER);
    let plain = Orb::builder().build().expect("a plain ORB");
    let defaults = [("propagated", 7), ("declared", 12_000), ("flat", 0), ("lanes", 1_000), ("lane", 16_384)];
    for (adapter, number) in defaults {
        let place = reference(&plain, &server, adapter).served_by().expect("the server answers");
        assert_eq!(priorities(&[place]), with_native(&[number]), "{adapter}");
    }
    // The thread that served the first two has its own priority again, whatever ours is.
    let kept = places(&client(), &reference(&client(), &server, "none"), &[7, 32_000]);
    assert_eq!(priorities(&kept), [(NO_PRIORITY, 1); 2]);
}

#[test]
#[ignore = "needs TAO_TREE"]
fn bands_of_tao_are_read() {
    let server = start(&[
        "--lanes",
        "1000+30000",
        "--serve",
        "name=bands,model=propagated,pool=lanes,bands=0-5000+5001-32767",
        "--serve",
        "name=hole,model=propagated,pool=lanes,bands=0-5000+5001-6000",
    ]);
    let printed = server.printed("bands");
    let policies =
        profile(printed, |profile| RealTimePolicies::read(profile.components())).expect("they are read");
    let bands = [PriorityBand { low: 0, high: 5_000 }, PriorityBand { low: 5_001, high: 32_767 }];
    assert_eq!(policies.bands.as_deref(), Some(&bands[..]));
    // Bands that leave a lane out are TAO's to refuse.
    assert_eq!(server.printed("hole"), "IDL:omg.org/PortableServer/POA/InvalidPolicy:2.3");
    let client = client();
    let places = places(&client, &reference(&client, &server, "bands"), &[1_000, 30_000]);
    assert_eq!(priorities(&places), with_native(&[1_000, 30_000]));
}

#[test]
#[ignore = "needs TAO_TREE"]
fn a_reference_outlives_tao_s_server() {
    let ports: Vec<String> =
        std::iter::repeat_with(|| format!("iiop://127.0.0.1:{}", free_port())).take(3).collect();
    let start = || {
        let at = ["-ORBListenEndpoints", &ports[0], "-ORBLaneListenEndpoints", "1:0", &ports[1]];
        let lanes = ["-ORBLaneListenEndpoints", "1:1", &ports[2], "--lanes", "1000+16384"];
        let serve = ["--serve", "name=lanes,model=propagated,pool=lanes,persistent=yes"];
        Server::start(&[&at[..], &lanes, &serve].concat())
    };
    let client = client();
    let server = start();
    let (first, object) = (facts(server.printed("lanes")), reference(&client, &server, "lanes"));
    let ask = || priorities(&places(&client, &object, &[16_384, 1_000]));
    assert_eq!(ask(), with_native(&[16_384, 1_000]));
    server.process.kill();
    let server = start();
    assert_eq!(facts(server.printed("lanes")), first);
    assert_eq!(ask(), with_native(&[16_384, 1_000]));
}

#[test]
#[ignore = "needs TAO_TREE"]
fn several_threads_of_ours_are_inside_tao_at_once() {
    let server =
        start(&["--threads", "4", "--lanes", "1000", "--serve", "name=lane,model=propagated,pool=lanes"]);
    let client = client();
    let object = reference(&client, &server, "lane");
    all_meet(&client, &object, &[1_000; 4]);
}

/// Notes the priority that each reply tells.
#[derive(Debug, Clone, Default)]
struct Echoes(Arc<Mutex<Vec<Option<i16>>>>);

impl Echoes {
    fn take(&self) -> Vec<Option<i16>> {
        std::mem::take(&mut *self.0.lock().expect("no test fails while it holds this"))
    }
}

impl ClientInterceptor for Echoes {
    fn receive_reply(&self, request: &ClientRequestInfo) -> Result<(), SystemException> {
        let echo = request.reply_service_context(10).and_then(priority_of_context);
        self.0.lock().expect("no test fails while it holds this").push(echo);
        Ok(())
    }
}
