//! IronORB's client with IronORB's server. A case that passes here and fails with another ORB is a
//! difference in reading the standard.

use std::sync::Arc;

use ironorb::giop::Version;
use ironorb::{Orb, ServerConcurrency};
use ironorb_interop::cases::{self, Target};
use ironorb_interop::interop::SuiteRef;
use ironorb_interop::suite::{SuiteServant, create_forwarder, register_values};

fn orb(version: Version, concurrency: ServerConcurrency) -> Orb {
    let builder = Orb::builder().giop_version(version).concurrency(concurrency);
    builder.endpoint("iiop://127.0.0.1:0").expect("an address").build().expect("the machine has a port")
}

fn serve(orb: &Orb) -> SuiteRef {
    create_forwarder(&orb.root_poa()).expect("the adapter is new");
    register_values(orb);
    orb.root_poa().activate_shared(Arc::new(SuiteServant::default())).expect("the servant is new")
}

#[track_caller]
fn check(version: Version, concurrency: ServerConcurrency) {
    use ironorb::TypedRef;
    let (server, client) = (orb(version, concurrency), orb(version, concurrency));
    let ior = serve(&server).object().to_ior_string();
    let target =
        Target { suite: client.resolve(&ior).expect("a suite"), orb: client, version, code_sets: true };
    let report = cases::run(&target, &[]);
    assert!(report.failed.is_empty(), "{:#?}", report.failed);
}

const POOL: ServerConcurrency = ServerConcurrency::LeaderFollowers { threads: 8 };

#[test]
fn thread_per_connection_in_giop_1_2() {
    check(Version::V1_2, ServerConcurrency::ThreadPerConnection);
}

#[test]
fn thread_per_connection_in_giop_1_1() {
    check(Version::V1_1, ServerConcurrency::ThreadPerConnection);
}

#[test]
fn thread_per_connection_in_giop_1_0() {
    check(Version::V1_0, ServerConcurrency::ThreadPerConnection);
}

#[test]
fn leader_followers_in_giop_1_2() {
    check(Version::V1_2, POOL);
}

#[test]
fn leader_followers_in_giop_1_0() {
    check(Version::V1_0, POOL);
}
