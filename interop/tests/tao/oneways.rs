//! Oneways: in each scope, in batches, and in which order a server serves those that wait.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use ironorb::interceptor::{Interrupt, ServerInterceptor, ServerRequestInfo};
use ironorb::rt::ClientPolicies;
use ironorb::{
    InvocationPolicies, OnewayBatching, RequestBuffering, RequestOrder, ServerConcurrency, SyncScope,
    ThreadPoolConfig, TypedRef as _,
};
use ironorb_interop::interop_rt::{Witness as _, WitnessRef};
use ironorb_interop::process::wait_until;
use ironorb_interop::tao::{client, lines_of, start_client};

use super::our_client::{client as our_client, reference, start};
use super::our_policies::with;
use super::their_client::{PROPAGATED, accepted, at_any_port, built, serve, with_lanes};
use super::{priority, real_time};

const SCOPES: [(SyncScope, &str); 4] = [
    (SyncScope::None, "none"),
    (SyncScope::WithTransport, "transport"),
    (SyncScope::WithServer, "server"),
    (SyncScope::WithTarget, "target"),
];

#[test]
#[ignore = "needs TAO_TREE"]
fn our_oneways_reach_tao_in_order_at_their_priority_in_each_scope() {
    const NOTICES: i32 = 20;
    let server = start(&[
        "--lanes",
        "1000+30000",
        "--serve",
        "name=default,model=propagated,pool=default",
        "--serve",
        "name=lanes,model=propagated,pool=lanes",
    ]);
    let orb = our_client();
    let current = orb.rt_current().expect("the ORB is a real-time ORB");
    let in_scope = |scope| InvocationPolicies { sync_scope: Some(scope), ..InvocationPolicies::NONE };
    let batches =
        OnewayBatching { count_max: 6, delay_max: Duration::from_secs(60), ..OnewayBatching::DEFAULT };
    let batched = InvocationPolicies { oneway_batching: Some(Some(batches)), ..InvocationPolicies::NONE };
    let alone = ClientPolicies { private_connection: Some(true), ..ClientPolicies::NONE };
    let all = SCOPES.map(|(scope, name)| (in_scope(scope), name)).into_iter().chain([(batched, "batched")]);
    let objects = ["default", "lanes"].map(|adapter| (adapter, reference(&orb, &server, adapter)));
    let calls = || {
        for ((policies, name), number) in all.flat_map(|it| [(it, 1_000), (it, 30_000)]) {
            current.set_priority(priority(number)).expect("the system grants it");
            for (adapter, object) in &objects {
                let oneways: WitnessRef = object.object().with_policies(policies).narrow_unchecked();
                for notice in 0..NOTICES {
                    oneways.notice(notice).expect("it is sent");
                }
                // What the servant has served is seen over another connection; else the call comes behind the oneways.
                let private = with(object, alone);
                let asked = if name == "target" { &private } else { &oneways };
                let notices = asked.served_notices().expect("the server answers");
                let notices: Vec<_> = notices.iter().map(|it| (it.number, it.priority)).collect();
                let expected: Vec<_> = (0..NOTICES).map(|notice| (notice, number)).collect();
                assert_eq!(notices, expected, "{name}, {adapter} at {number}");
            }
        }
    };
    std::thread::scope(|scope| scope.spawn(calls).join()).expect("no call fails");
}

/// Notes which requests ask for a response.
#[derive(Debug, Clone, Default)]
struct Responses(Arc<Mutex<Vec<bool>>>);

impl Responses {
    fn take(&self) -> Vec<bool> {
        std::mem::take(&mut *self.0.lock().expect("no test fails while it holds this"))
    }
}

impl ServerInterceptor for Responses {
    fn receive_request(&self, request: &mut ServerRequestInfo) -> Result<(), Interrupt> {
        self.0.lock().expect("no test fails while it holds this").push(request.response_expected());
        Ok(())
    }
}

/// What TAO's client prints of this many notices, which have been served at a priority.
fn printed(notices: usize, priority: &str) -> String {
    (1..=notices).fold("notices".to_owned(), |line, notice| format!("{line} {notice}@{priority}"))
}

#[test]
#[ignore = "needs TAO_TREE"]
fn oneways_of_tao_reach_us_in_order_at_their_priority_in_each_scope() {
    let responses = Responses::default();
    let plain = built(at_any_port(real_time()).server_interceptor(responses.clone()));
    let lanes = with_lanes();
    let both = [(&plain, true), (&lanes, false)].into_iter();
    for ((orb, is_watched), (_, scope)) in both.flat_map(|orb| SCOPES.map(|scope| (orb, scope))) {
        let served = serve(orb, scope, Some(PROPAGATED));
        for number in ["1000", "30000"] {
            let commands = ["use", &served.reference, "priority", number, "scope", scope];
            let lines = client(&[&commands[..], &["notice", "20", "notices"]].concat());
            assert_eq!(lines, ["notice 20", &printed(20, number)], "{scope}");
        }
        // TAO asks for the reply that the scope needs. The last of each client is the question.
        let asked = responses.take();
        let expected = [vec![scope == "target"; 20], vec![true]].concat().repeat(2);
        assert_eq!(asked, if is_watched { expected } else { vec![] }, "{scope}");
    }
}

#[test]
#[ignore = "needs TAO_TREE"]
fn tao_s_batches_of_oneways_are_taken_apart() {
    let orb = built(at_any_port(real_time()));
    let served = serve(&orb, "batches", Some(PROPAGATED));
    let commands = ["use", &served.reference, "priority", "1000", "scope", "none", "batch", "4"];
    let lines = client(&[&commands[..], &["notice", "10", "notices"]].concat());
    assert_eq!(lines, ["notice 10", &printed(10, "1000")]);
    assert_eq!(accepted(&orb), 1);
}

/// TAO's Priority_Inversion_With_Bands, cases (c) and (d): one thread for all, which is busy while low oneways come, and then
/// high ones. TAO serves them as they come.
#[test]
#[ignore = "needs TAO_TREE"]
fn high_oneways_of_tao_overtake_low_ones_in_a_pool_without_lanes() {
    let buffered = RequestBuffering::UpTo { requests_max: 64, bytes_max: 64 << 10 };
    let one = ThreadPoolConfig::new(1).order(RequestOrder::Priority);
    for (pool, bands) in [one, one.buffering(buffered)]
        .into_iter()
        .flat_map(|pool| [(pool, None), (pool, Some("0-5000+5001-32767"))])
    {
        let orb = built(at_any_port(real_time()).concurrency(ServerConcurrency::ThreadPool(pool)));
        let served = serve(&orb, "pool", Some(PROPAGATED));
        served.servant.hold();
        let bands = bands.map_or(vec![], |bands| vec!["bands", bands]);
        let first = start_client(&["use", &served.reference, "priority", "1000", "notice", "1", "where"]);
        wait_until("the first oneway is not inside", || served.servant.notices_begun() == 1);
        let oneways = ["priority", "1000", "notice", "5", "priority", "30000", "notice", "5", "where"];
        let client = start_client(&[&["use", &served.reference], &bands[..], &oneways].concat());
        assert_eq!([client.line(), client.line()], ["notice 5", "notice 10"]);
        let connections = if bands.is_empty() { 2 } else { 3 };
        wait_until("a connection is not accepted", || accepted(&orb) == connections);
        served.servant.release();
        // Each ends with an answer, and keeps its connection until then.
        assert_eq!([lines_of(first).len(), lines_of(client).len()], [2, 1]);
        wait_until("not all oneways have been served", || served.servant.notices_begun() == 11);
        let expected = [vec![1], (6..=10).collect(), (1..=5).collect()].concat();
        let expected: Vec<_> =
            expected.into_iter().map(|it| (it, if it > 5 { 30_000 } else { 1_000 })).collect();
        assert_eq!(served.servant.take_notices(), expected, "{pool:?} {bands:?}");
    }
}
