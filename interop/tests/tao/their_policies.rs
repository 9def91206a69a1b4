//! TAO's client follows policies in references of IronORB's server: bands and protocols.

use ironorb::rt::{PriorityBand, PriorityBands, Protocol, Protocols, TcpProperties};
use ironorb::{PoaPolicies, Transport};
use ironorb_interop::tao::client;

use super::real_time;
use super::their_client::{
    PROPAGATED, accepted, asked, asking, at_any_port, built, names, serve_as, told, with_lanes, words,
};

fn banded(ends: &[(i16, i16)]) -> PoaPolicies {
    let bands: Vec<_> = ends.iter().map(|&(low, high)| PriorityBand { low, high }).collect();
    PoaPolicies {
        priority_model: Some(PROPAGATED),
        priority_bands: PriorityBands::new(&bands),
        ..PoaPolicies::default()
    }
}

const BANDS: [(i16, i16); 3] = [(0, 5_000), (5_001, 20_000), (20_001, 31_000)];

#[test]
#[ignore = "needs TAO_TREE"]
fn bands_of_ours_choose_our_lanes() {
    let orb = with_lanes();
    let served = serve_as(&orb, "bands", banded(&BANDS));
    let lines = asked(&asking(&served.reference, &[], &words(&[10, 5_000, 5_001, 20_001, 31_000])));
    let lanes = [1_000, 1_000, 16_384, 30_000, 30_000];
    assert_eq!((lines, served.servant.take_lanes()), (told(&lanes), names(&lanes)));
    // In no band, and bands of both sides.
    assert_eq!(asked(&asking(&served.reference, &[], &words(&[31_001]))), ["INV_POLICY 0"]);
    assert_eq!(asked(&asking(&served.reference, &["bands", "0-32767"], &words(&[10]))), ["INV_POLICY 0"]);
    assert_eq!(served.servant.take_lanes(), [""; 0]);
}

#[test]
#[ignore = "needs TAO_TREE"]
fn bands_of_ours_without_lanes_serve_tao_at_its_priorities() {
    let orb = built(at_any_port(real_time()));
    let served = serve_as(&orb, "bands", banded(&BANDS));
    let numbers = [10, 5_000, 16_384, 30_000];
    assert_eq!(asked(&asking(&served.reference, &[], &words(&numbers))), told(&numbers));
    // TAO has a connection for each band, too.
    assert_eq!(accepted(&orb), 3);
}

fn offering(protocols: &[Protocol]) -> PoaPolicies {
    PoaPolicies {
        priority_model: Some(PROPAGATED),
        client_protocols: Protocols::new(protocols),
        ..PoaPolicies::default()
    }
}

#[test]
#[ignore = "needs TAO_TREE"]
fn tao_follows_the_protocols_in_our_reference() {
    let orb = built(at_any_port(real_time()));
    let tcp = Protocol { transport: Transport::Tcp, tcp: None };
    let with_properties = Protocol { tcp: Some(TcpProperties::default()), ..tcp };
    for (name, list) in [
        ("one", vec![tcp]),
        ("properties", vec![with_properties]),
        ("two", vec![Protocol { transport: Transport::Unix, tcp: None }, tcp]),
    ] {
        let served = serve_as(&orb, name, offering(&list));
        let lines = asked(&asking(&served.reference, &["validate"], &words(&[1_000])));
        assert_eq!(lines, [vec!["validate true".to_owned()], told(&[1_000])].concat(), "{name}");
        // Protocols of both sides.
        let both = client(&["use", &served.reference, "priority", "5", "protocols", "0", "where"]);
        assert_eq!(both, ["INV_POLICY 0"], "{name}");
    }
}
