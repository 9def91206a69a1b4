//! `examples/number-portability`: questions of front ends, a clerk beside them, and a registry that is opened again.

use std::time::{Duration, Instant};

use ironorb::{ExtentRange, Orb, TypedRef};
use ironorb_tests::eventually;
use number_portability::front_end::{self, Ledger};
use number_portability::portability::{Subscriber as _, SubscriberRef};
use number_portability::registry;

fn server() -> Orb {
    Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().build().unwrap()
}

#[test]
fn front_ends_answer_from_their_caches_and_never_too_old() {
    let server = server();
    let registry = registry::open(&server.root_poa(), 10_000, None).unwrap();
    let text = registry.reference::<SubscriberRef>(0).unwrap().object().to_ior_string();
    let (opened, ledger) = (Instant::now(), Ledger::default());
    let range = || {
        let client = Orb::builder().no_endpoint().build().unwrap();
        let first: SubscriberRef = client.string_to_object(&text).unwrap().narrow_unchecked();
        (client, ExtentRange::of(&first).unwrap())
    };
    std::thread::scope(|scope| {
        let front_ends = [1, 2].map(|seed| {
            let (range, ledger) = (range(), &ledger);
            let run = move || front_end::run(&range.1, 50, Duration::from_millis(700), seed, ledger);
            scope.spawn(run)
        });
        let (_client, subscribers) = range();
        for number in 0..50 {
            front_end::port(&subscribers, number, opened, &ledger).unwrap();
            std::thread::sleep(Duration::from_millis(5));
        }
        for front_end in front_ends {
            let tally = front_end.join().unwrap().unwrap();
            assert_eq!(tally.stale, 0, "{tally:?}");
            assert!(tally.asked > 0, "{tally:?}");
        }
    });
}

#[test]
fn what_is_held_is_answered_here_and_the_file_keeps_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("numbers");
    {
        let server = server();
        let registry = registry::open(&server.root_poa(), 2_000, Some(file.clone())).unwrap();
        let client = Orb::builder().no_endpoint().build().unwrap();
        let text = registry.reference::<SubscriberRef>(0).unwrap().object().to_ior_string();
        let first: SubscriberRef = client.string_to_object(&text).unwrap().narrow_unchecked();
        let subscriber = ExtentRange::of(&first).unwrap().get(999).unwrap();
        (0..3).for_each(|_| assert!(subscriber.is_barred().unwrap()));
        subscriber.port_to(12).unwrap();
        assert_eq!(subscriber.network().unwrap(), 12, "a client reads its own write");
        registry.elements().update(999, |entry| entry.network = 13).unwrap();
        eventually("the lag is over", || subscriber.network().unwrap() == 13);
        server.shutdown(true).unwrap();
    }
    let server = server();
    let registry = registry::open(&server.root_poa(), 2_000, Some(file)).unwrap();
    assert_eq!(registry.elements().read(999, |entry| (entry.network, entry.is_barred)).unwrap(), (13, 1));
}
