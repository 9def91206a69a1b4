//! ORBs and connections that have ended leave no descriptors and no threads behind. One test, because it
//! counts those of the whole process.

use ironorb::{Orb, TypedRef};
use ironorb_tests::testing::{Probe, ProbeAsync, ProbeRef};
use ironorb_tests::{Probing, eventually};

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").unwrap().count()
}

fn server() -> (Orb, ProbeRef) {
    let orb = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().build().unwrap();
    let probe = orb.root_poa().activate(Probing::default()).unwrap();
    (orb, probe)
}

#[test]
fn orbs_and_peers_leave_no_descriptors_and_threads_behind() {
    let client = Orb::builder().no_endpoint().build().unwrap();
    let before = descriptors();
    for round in 0..50 {
        let (orb, _probe) = server();
        if round % 2 == 0 {
            orb.shutdown(true).unwrap();
        }
    }
    eventually("the listening sockets are closed", || descriptors() <= before);

    const PEERS: usize = 300;
    for _ in 0..PEERS {
        let (orb, probe) = server();
        let remote: ProbeRef = client.resolve(&probe.object().to_ior_string()).unwrap();
        remote.ping().unwrap();
        orb.shutdown(true).unwrap();
    }
    // The ORB looks for dead connections when the number of endpoints has doubled.
    eventually("connections to peers that have gone are closed", || descriptors() < before + PEERS / 2);

    // Asynchronous clients have threads, which end with them.
    let (_orb, probe) = server();
    let url = format!("corbaloc:iiop:1.2@localhost:{}/none", port_of(&probe));
    probe.ping().unwrap();
    let (descriptors_before, threads_before) = (descriptors(), threads());
    for round in 0..30 {
        let client = Orb::builder().no_endpoint().build().unwrap();
        let remote: ProbeRef = client.resolve(&probe.object().to_ior_string()).unwrap();
        assert_eq!(remote.add_async(round, 1).wait().unwrap(), round + 1);
        remote.add_async(round, 1).on_reply(drop);
        drop(remote.echo_async("nobody waits"));
        let missing: ProbeRef = client.string_to_object(&url).unwrap().narrow_unchecked();
        missing.add_async(1, 1).wait().unwrap_err();
        if round % 2 == 0 {
            client.shutdown(true).unwrap();
        }
    }
    eventually("all threads and sockets of clients are gone", || {
        threads() <= threads_before && descriptors() <= descriptors_before
    });
}

fn port_of(probe: &ProbeRef) -> u16 {
    probe.object().ior().iiop_profiles().next().unwrap().port()
}
