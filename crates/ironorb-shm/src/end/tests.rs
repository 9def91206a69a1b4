use super::*;
use crate::area::Heap;

/// Two ends over one area, whose positions wrap around soon.
#[cfg(not(loom))]
type Shared = std::sync::Arc<Heap>;
#[cfg(loom)]
type Shared = loom::sync::Arc<Heap>;

impl Area for Shared {
    fn control(&self) -> &crate::area::Control {
        (**self).control()
    }

    fn ring(&self, writer: Side) -> &[crate::sync::AtomicUsize] {
        (**self).ring(writer)
    }

    fn sleep(&self, word: &crate::sync::AtomicU32, value: u32, at_most: Duration) {
        (**self).sleep(word, value, at_most);
    }

    fn wake(&self, word: &crate::sync::AtomicU32) {
        (**self).wake(word);
    }
}

#[cfg(not(loom))]
const WORD: usize = size_of::<usize>();

fn pair(words: usize, position: u32) -> (End<Shared>, End<Shared>) {
    let area = Shared::new(Heap::new(words, position));
    (End::at(area.clone(), Side::Server, position), End::at(area, Side::Client, position))
}

/// Writes everything, and sleeps while there is no room.
fn write_all(end: &End<Shared>, mut bytes: &[u8]) {
    while !bytes.is_empty() {
        match end.write(bytes).unwrap().bytes {
            0 => end.sleep(Wanted::Room, LONG, || false),
            count => bytes = &bytes[count..],
        }
    }
}

/// Reads until `space` is full, and sleeps while there is nothing to read.
fn read_all(end: &End<Shared>, space: &mut [u8]) {
    let mut filled = 0;
    while filled < space.len() {
        match end.read(&mut space[filled..]).unwrap().bytes {
            0 => end.sleep(Wanted::Bytes, LONG, || false),
            count => filled += count,
        }
    }
}

const LONG: Duration = Duration::from_secs(60);

/// Few enough rounds for an interpreter.
#[cfg(not(loom))]
const ROUNDS: usize = if cfg!(miri) { 20 } else { 2000 };

#[cfg(not(loom))]
mod plain {
    use std::thread;

    use super::*;

    #[test]
    fn bytes_come_out_in_order_however_they_are_cut() {
        for position in [0, u32::MAX - 20] {
            let (a, b) = pair(4, position);
            let sent: Vec<u8> = (0..ROUNDS * 8).map(|i| (i % 251) as u8).collect();
            let (mut written, mut got) = (0, Vec::new());
            for step in 1.. {
                let upto = sent.len().min(written + step % 37);
                written += a.write(&sent[written..upto]).unwrap().bytes;
                let mut space = vec![0; step % 29];
                let count = b.read(&mut space).unwrap().bytes;
                got.extend_from_slice(&space[..count]);
                if got.len() == sent.len() {
                    break;
                }
            }
            assert_eq!(got, sent);
        }
    }

    #[test]
    fn a_write_moves_no_more_than_there_is_room_for() {
        let (a, b) = pair(2, u32::MAX - 3);
        assert!(!a.is_ready(Wanted::Bytes) && a.is_ready(Wanted::Room) && a.is_ready(Wanted::Any));
        assert_eq!(a.write(&[1; 100]).unwrap().bytes, 2 * WORD);
        assert_eq!(a.write(&[1; 100]).unwrap().bytes, 0);
        assert!(!a.is_ready(Wanted::Room) && b.is_ready(Wanted::Bytes));
        let mut space = [0; 100];
        assert_eq!(b.read(&mut space).unwrap().bytes, 2 * WORD);
        assert!(a.is_ready(Wanted::Room) && !b.is_ready(Wanted::Bytes));
        assert_eq!(a.write(&[1; 3]).unwrap().bytes, 3);
        assert_eq!(a.write(&[]).unwrap().bytes, 0);
        assert_eq!(b.read(&mut []).unwrap().bytes, 0);
    }

    #[test]
    fn both_directions_at_once_with_threads_that_sleep() {
        let (a, b) = pair(4, u32::MAX - 100);
        thread::scope(|scope| {
            scope.spawn(|| {
                for round in 0..ROUNDS {
                    let mut space = [0; 50];
                    read_all(&b, &mut space);
                    assert_eq!(space, [round as u8; 50]);
                    write_all(&b, &space);
                }
            });
            for round in 0..ROUNDS {
                write_all(&a, &[round as u8; 50]);
                let mut space = [0; 50];
                read_all(&a, &mut space);
                assert_eq!(space, [round as u8; 50]);
            }
        });
    }

    #[test]
    fn the_bell_is_asked_for_once_for_each_time_it_was_wanted() {
        let (a, b) = pair(2, 0);
        assert!(!a.write(&[1]).unwrap().ring_bell);
        assert!(b.want_bell(Wanted::Bytes)); // there are bytes already
        assert!(a.write(&[2]).unwrap().ring_bell);
        assert!(!b.is_bell_wanted(Wanted::Bytes));
        assert!(!a.write(&[3]).unwrap().ring_bell);
        assert_eq!(a.write(&[0; 100]).unwrap().bytes, 2 * WORD - 3);
        assert!(!a.want_bell(Wanted::Room));
        let mut space = [0; 64];
        let read = b.read(&mut space).unwrap();
        assert_eq!((read.bytes, read.ring_bell), (2 * WORD, true));
        assert!(!b.want_bell(Wanted::Bytes) && b.is_bell_wanted(Wanted::Bytes));
    }

    #[test]
    fn a_sleeper_is_woken_by_the_end() {
        let (a, _b) = pair(2, 0);
        let is_over = std::sync::atomic::AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Acquire) {
                    a.sleep(Wanted::Bytes, LONG, || is_over.load(Ordering::Acquire));
                }
            });
            is_over.store(true, Ordering::Release);
            a.wake_all();
        });
    }

    /// The words that the client publishes and the server reads.
    fn published(area: &Heap) -> &crate::area::Published {
        area.control().published_by(Side::Client)
    }

    #[test]
    fn impossible_positions_are_reported_and_nothing_else_happens() {
        let capacity = 4 * WORD as u32;
        for position in [0, u32::MAX - 5] {
            let fresh = || {
                let area = Shared::new(Heap::new(4, position));
                (End::at(area.clone(), Side::Server, position), area)
            };
            let mut space = [0; 100];
            // Written: more than the ring holds, or less than before.
            for ahead in [capacity + 1, capacity + 7, u32::MAX / 2, u32::MAX] {
                let (end, area) = fresh();
                published(&area).written.0.store(position.wrapping_add(ahead), Ordering::Relaxed);
                assert_eq!(end.read(&mut space), Err(Broken), "{ahead}");
            }
            let (end, area) = fresh();
            published(&area).written.0.store(position.wrapping_add(9), Ordering::Relaxed);
            assert_eq!(end.read(&mut space[..4]).unwrap().bytes, 4);
            published(&area).written.0.store(position.wrapping_add(8), Ordering::Relaxed);
            assert_eq!(end.read(&mut space), Err(Broken));
            // Taken: more than was written, or less than before.
            for ahead in [5, capacity, u32::MAX / 2, u32::MAX] {
                let (end, area) = fresh();
                assert_eq!(end.write(&[7; 4]).unwrap().bytes, 4);
                published(&area).taken.0.store(position.wrapping_add(ahead), Ordering::Relaxed);
                assert_eq!(end.write(&[7; 100]), Err(Broken), "{ahead}");
            }
        }
    }

    #[test]
    fn a_hostile_peer_cannot_make_a_read_exceed_the_ring() {
        let area = Shared::new(Heap::new(4, 0));
        let end = End::new(area.clone(), Side::Server);
        let stop = std::sync::atomic::AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut seed = 1u32;
                while !stop.load(Ordering::Relaxed) {
                    seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    let published =
                        area.control().published_by(if seed & 64 == 0 { Side::Server } else { Side::Client });
                    match seed % 5 {
                        0 => published.written.0.store(seed >> 20, Ordering::Relaxed),
                        1 => published.taken.0.store(seed >> 20, Ordering::Relaxed),
                        2 => published.sleep.0.wanted.store(seed >> 16, Ordering::Relaxed),
                        3 => published.sleep.0.signal.store(seed, Ordering::Relaxed),
                        _ => area.ring(Side::Client)[seed as usize >> 30]
                            .store(seed as usize, Ordering::Relaxed),
                    }
                }
            });
            let mut space = [0; 4096];
            for _ in 0..ROUNDS {
                let read = end.read(&mut space).map_or(0, |moved| moved.bytes);
                let written = end.write(&space).map_or(0, |moved| moved.bytes);
                assert!(read.max(written) <= 4 * WORD);
                end.sleep(Wanted::Any, Duration::from_micros(1), || false);
            }
            stop.store(true, Ordering::Relaxed);
        });
    }
}

/// Every order of the steps of two threads, up to a number of switches.
#[cfg(loom)]
mod model {
    use loom::sync::Notify;
    use loom::sync::atomic::AtomicBool;
    use loom::thread;

    use super::*;

    fn check(body: impl Fn() + Sync + Send + 'static) {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(body);
    }

    #[test]
    fn bytes_arrive_in_order_around_the_ring_and_no_thread_sleeps_forever() {
        check(|| {
            let (a, b) = pair(1, u32::MAX - 3);
            let writer = thread::spawn(move || write_all(&a, &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]));
            let mut space = [0; 10];
            read_all(&b, &mut space);
            assert_eq!(space, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
            writer.join().unwrap();
        });
    }

    #[test]
    fn two_writes_of_which_one_may_fill_the_ring() {
        check(|| {
            let (a, b) = pair(1, 0);
            let writer = thread::spawn(move || {
                write_all(&a, &[1, 2, 3, 4, 5]);
                write_all(&a, &[6, 7, 8, 9, 10]);
            });
            let mut space = [0; 10];
            read_all(&b, &mut space[..3]);
            read_all(&b, &mut space[3..]);
            assert_eq!(space, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
            writer.join().unwrap();
        });
    }

    #[test]
    fn a_request_and_its_reply() {
        check(|| {
            let (a, b) = pair(1, 0);
            let server = thread::spawn(move || {
                let mut space = [0; 2];
                read_all(&b, &mut space);
                write_all(&b, &[space[0] + 1]);
            });
            write_all(&a, &[7, 8]);
            let mut space = [0; 1];
            read_all(&a, &mut space);
            assert_eq!(space, [8]);
            server.join().unwrap();
        });
    }

    #[test]
    fn a_bell_is_rung_unless_bytes_are_there_already() {
        check(|| {
            let (a, b) = pair(1, 0);
            let bell = loom::sync::Arc::new(Notify::new());
            let ringing = bell.clone();
            let writer = thread::spawn(move || {
                for byte in [1, 2] {
                    if a.write(&[byte]).unwrap().ring_bell {
                        ringing.notify();
                    }
                }
            });
            let mut got = Vec::new();
            while got.len() < 2 {
                let mut space = [0; 2];
                match b.read(&mut space).unwrap().bytes {
                    0 if !b.want_bell(Wanted::Bytes) => bell.wait(),
                    count => got.extend_from_slice(&space[..count]),
                }
            }
            assert_eq!(got, [1, 2]);
            writer.join().unwrap();
        });
    }

    #[test]
    fn a_thread_that_sleeps_at_the_end_is_woken() {
        check(|| {
            let (a, b) = pair(1, 0);
            let over = loom::sync::Arc::new(AtomicBool::new(false));
            let ends = over.clone();
            let ending = thread::spawn(move || {
                ends.store(true, Ordering::Release);
                b.wake_all();
            });
            while !over.load(Ordering::Acquire) {
                a.sleep(Wanted::Bytes, LONG, || over.load(Ordering::Acquire));
            }
            ending.join().unwrap();
        });
    }
}
