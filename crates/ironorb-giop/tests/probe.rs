//! What probes count. Tests may assert counts, but times only relative to each other.
//!
//! A program of its own, which the gate builds once more with the feature `probes`.

use std::time::Duration;

#[cfg(not(feature = "probes"))]
use ironorb_giop::probe::Guard;
#[cfg(feature = "probes")]
use ironorb_giop::probe::{COPY_BYTES_MIN, copying};
use ironorb_giop::probe::{
    ENABLED, Overhead, Snapshot, Stage, StageTimes, enter, overhead, snapshot, thread_snapshot,
};

#[test]
fn stages_have_their_numbers_and_names() {
    for (number, stage) in Stage::ALL.into_iter().enumerate() {
        assert_eq!(stage as usize, number);
        assert_eq!(Stage::named(stage.name()), Some(stage));
    }
    assert_eq!(Stage::named("nothing"), None);
}

fn times(count: u64, self_us: u64, entered_within: u64) -> StageTimes {
    let time = Duration::from_micros(self_us);
    StageTimes { count, self_time: time, total_time: time, entered_within }
}

#[test]
fn the_cost_of_probes_moves_to_their_own_stage() {
    let elapsed = Duration::from_millis(1);
    let stages = [(Stage::Call, times(10, 500, 20)), (Stage::Write, times(20, 2, 0))];
    let snapshot = Snapshot::from_parts(elapsed, stages);
    let cleared = snapshot.without(Overhead { inside_ns: 200.0, outside_ns: 1000.0 });
    assert_eq!(cleared.stage(Stage::Call).self_time, Duration::from_micros(500 - 2 - 20));
    assert_eq!(cleared.stage(Stage::Write).self_time, Duration::ZERO, "a self time is never negative");
    assert_eq!(cleared.stage(Stage::Probes).self_time, Duration::from_micros(2 + 20 + 2));
    assert_eq!(cleared.accounted(), snapshot.accounted());
    assert_eq!(cleared.elapsed(), elapsed);
}

#[test]
fn a_difference_has_the_counts_between_two_snapshots() {
    let before = Snapshot::from_parts(Duration::from_secs(1), [(Stage::Read, times(3, 30, 1))]);
    let after = Snapshot::from_parts(Duration::from_secs(3), [(Stage::Read, times(5, 70, 1))]);
    let between = after.since(&before);
    assert_eq!(between.elapsed(), Duration::from_secs(2));
    assert_eq!(between.stage(Stage::Read), times(2, 40, 0));
    let mut twice = between.clone();
    twice += &between;
    assert_eq!(twice.elapsed(), Duration::from_secs(4));
    assert_eq!(twice.stage(Stage::Read), times(4, 80, 0));
}

#[cfg(not(feature = "probes"))]
#[test]
fn without_the_feature_nothing_is_counted() {
    assert_eq!(size_of::<Guard>(), 0);
    assert!(!std::mem::needs_drop::<Guard>());
    const { assert!(!ENABLED) };
    let _probe = enter(Stage::Marshal);
    assert_eq!((thread_snapshot(), snapshot()), (Snapshot::default(), Snapshot::default()));
    assert_eq!(overhead(), Overhead::default());
}

#[cfg(feature = "probes")]
mod enabled {
    use super::*;

    #[test]
    fn stages_nest_and_their_times_add_up() {
        const { assert!(ENABLED) };
        let before = thread_snapshot();
        for _ in 0..100 {
            let _call = enter(Stage::Call);
            for _ in 0..3 {
                let _marshal = enter(Stage::Marshal);
                drop(copying(COPY_BYTES_MIN));
                drop(copying(COPY_BYTES_MIN - 1));
            }
            drop(enter(Stage::Write));
        }
        let counted = thread_snapshot().since(&before);
        let counts: Vec<(u64, u64)> = [Stage::Call, Stage::Marshal, Stage::Copy, Stage::Write]
            .map(|stage| counted.stage(stage))
            .map(|times| (times.count, times.entered_within))
            .to_vec();
        assert_eq!(counts, [(100, 400), (300, 300), (300, 0), (100, 0)]);
        // All of it was within calls, so it equals their total.
        assert_eq!(counted.accounted(), counted.stage(Stage::Call).total_time);
        assert!(counted.accounted() <= counted.elapsed());
        let (marshal, copy) = (counted.stage(Stage::Marshal), counted.stage(Stage::Copy));
        assert_eq!(marshal.total_time, marshal.self_time + copy.self_time);
        assert_eq!(copy.total_time, copy.self_time);
    }

    #[test]
    fn a_stage_within_itself_is_not_counted_twice() {
        let before = thread_snapshot();
        let outer = enter(Stage::Upcall);
        let call = enter(Stage::Call);
        drop(enter(Stage::Upcall));
        drop(call);
        drop(outer);
        let counted = thread_snapshot().since(&before);
        assert_eq!(counted.stage(Stage::Upcall).count, 2);
        assert_eq!(counted.stage(Stage::Upcall).total_time, counted.accounted());
    }

    #[test]
    fn time_can_be_given_to_another_stage() {
        let before = thread_snapshot();
        let wait = enter(Stage::Wait);
        let burnt = std::time::Instant::now();
        while burnt.elapsed() < Duration::from_micros(50) {}
        wait.shift(Stage::Read, Duration::from_micros(20));
        wait.shift(Stage::Write, Duration::from_secs(1000)); // limited to the time that there is
        drop(wait);
        let counted = thread_snapshot().since(&before);
        assert_eq!(counted.stage(Stage::Read), times(1, 20, 0));
        assert_eq!(counted.stage(Stage::Write).count, 1);
        assert!(counted.stage(Stage::Write).self_time >= Duration::from_micros(30));
        assert!(counted.accounted() <= counted.elapsed());
    }

    #[test]
    fn the_process_knows_its_threads_also_when_they_have_ended() {
        // No other test enters this stage.
        let count = || snapshot().stage(Stage::OperationLookup).count;
        let (to_main, from_thread) = std::sync::mpsc::channel();
        let (to_thread, from_main) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            let lookup = enter(Stage::OperationLookup);
            to_main.send(()).unwrap();
            from_main.recv().unwrap();
            drop(lookup);
        });
        from_thread.recv().unwrap();
        let first = snapshot().stage(Stage::OperationLookup);
        let second = snapshot().stage(Stage::OperationLookup);
        assert_eq!((first.count, second.count), (1, 1));
        assert!(second.self_time > first.self_time, "a stage that is still running counts");
        to_thread.send(()).unwrap();
        thread.join().unwrap();
        assert_eq!(count(), 1);
        assert_eq!(thread_snapshot().stage(Stage::OperationLookup).count, 0);
    }

    #[test]
    fn measuring_the_overhead_leaves_no_trace() {
        let guard = enter(Stage::Serve);
        let before = thread_snapshot();
        let overhead = overhead();
        let counted = thread_snapshot().since(&before);
        drop(guard);
        assert!(overhead.inside_ns > 0.0 && overhead.outside_ns > 0.0, "{overhead:?}");
        assert_eq!(counted.stages().map(|(_, times)| times.count).sum::<u64>(), 0);
        assert_eq!(thread_snapshot().stage(Stage::Upcall).count, 0);
    }
}
