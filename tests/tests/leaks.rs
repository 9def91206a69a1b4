//! What has ended leaves no descriptors behind. One test, because it counts those of the whole process.

use ironorb::{Orb, TypedRef};
use ironorb_tests::testing::{Probe, ProbeRef};
use ironorb_tests::{Probing, eventually};

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

fn server() -> (Orb, ProbeRef) {
    let orb = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().build().unwrap();
    let probe = orb.root_poa().activate(Probing::default()).unwrap();
    (orb, probe)
}

#[test]
fn orbs_and_peers_come_and_go() {
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
    // Dead connections are looked for when the number of endpoints has doubled.
    eventually("connections to peers that have gone are closed", || descriptors() < before + PEERS / 2);
}
