//! Mutexes of real-time ORBs (RTCORBA 1.2, 5.16).

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use ironorb::Orb;
use ironorb::rt::{RtMutex, RtOrb, priority_inheritance};
use ironorb_tests::real_time::real_time;

const FOR_LONG: Duration = Duration::from_secs(600);

fn rt_orb() -> RtOrb {
    let orb = Orb::builder().no_endpoint().real_time(real_time()).build().unwrap();
    orb.rt_orb().unwrap()
}

#[test]
fn only_a_real_time_orb_has_the_part_for_real_time() {
    assert!(Orb::builder().no_endpoint().build().unwrap().rt_orb().is_none());
    assert!(format!("{:?}", rt_orb()).contains("RtOrb"));
}

#[test]
fn a_mutex_excludes_threads() {
    const ROUNDS: usize = 2_000;
    let count = RtMutex::new(0_usize);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for round in 0..ROUNDS {
                    // Read and write apart, so that two threads at once would lose a count.
                    let mut held = match round % 3 {
                        0 => count.lock(),
                        1 => count.try_lock(FOR_LONG).unwrap(),
                        _ => loop {
                            match count.try_lock(Duration::ZERO) {
                                Some(held) => break held,
                                None => thread::yield_now(),
                            }
                        },
                    };
                    let seen = *held;
                    thread::yield_now();
                    *held = seen + 1;
                }
            });
        }
    });
    assert_eq!(*count.lock(), 4 * ROUNDS);
}

#[test]
fn a_wait_with_a_limit_ends_without_the_mutex_and_with_it() {
    let mutex = RtMutex::new(7);
    let held = mutex.lock();
    thread::scope(|scope| {
        scope.spawn(|| {
            for limit in [Duration::ZERO, Duration::from_millis(5)] {
                assert!(mutex.try_lock(limit).is_none(), "another thread holds it");
            }
        });
    });
    // The thread would wait for itself.
    assert!(mutex.try_lock(FOR_LONG).is_none());
    drop(held);
    assert_eq!(*mutex.try_lock(Duration::ZERO).unwrap(), 7);
    thread::scope(|scope| {
        let held = mutex.lock();
        let waiting = scope.spawn(|| mutex.try_lock(FOR_LONG).map(|held| *held));
        drop(held);
        assert_eq!(waiting.join().unwrap(), Some(7));
    });
}

#[test]
#[should_panic(expected = "waits for a lock that it holds")]
fn a_thread_that_locks_twice_is_told() {
    let mutex = RtMutex::new(());
    let _held = mutex.lock();
    let _again = mutex.lock();
}

#[test]
fn a_panic_releases_the_mutex() {
    let mutex = Arc::new(RtMutex::new(1));
    let theirs = mutex.clone();
    let panicked = thread::spawn(move || {
        let mut held = theirs.lock();
        *held = 2;
        panic!("on purpose");
    });
    assert!(panicked.join().is_err());
    assert_eq!(*mutex.lock(), 2);
}

#[test]
fn a_name_leads_to_one_mutex_until_it_is_forgotten() {
    let rt_orb = rt_orb();
    assert!(rt_orb.open_named_mutex("one").is_none(), "MutexNotFound");
    let (first, created) = rt_orb.create_named_mutex("one");
    assert!(created);
    let (second, created) = rt_orb.create_named_mutex("one");
    assert!(!created && Arc::ptr_eq(&first, &second));
    assert!(Arc::ptr_eq(&first, &rt_orb.clone().open_named_mutex("one").unwrap()));
    let held = first.lock();
    assert!(thread::spawn(move || second.try_lock(Duration::ZERO).is_none()).join().unwrap());
    assert!(rt_orb.destroy_named_mutex("one") && !rt_orb.destroy_named_mutex("one"));
    drop(held);
    let (third, created) = rt_orb.create_named_mutex("one");
    assert!(created && !Arc::ptr_eq(&first, &third));
}

/// Where the kernel lends priorities, the unit tests of the locks show that it does.
#[test]
fn what_the_kernel_lacks_is_told() {
    if let Err(why) = priority_inheritance() {
        assert!(why.contains("futex"), "{why}");
    }
}
