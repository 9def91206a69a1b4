//! The client process: a thread for each task, which begin together.

use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use ironorb_baseline::paced::cube;

use super::class::Class;
use super::clock::{now, sleep_until};
use super::task::{Block, Served, Task, answer};
use crate::error::BenchError;
use crate::role::tell;

/// A servant as its client's thread sees it.
pub(super) trait Servant {
    /// Asks for a cube, and waits for it.
    fn cube(&mut self, value: u8) -> Result<u8, BenchError>;

    /// Sets how much processor time each cube takes from now on.
    fn burn(&mut self, time: Duration) -> Result<(), BenchError>;
}

/// What leads threads to their servants.
pub(super) trait Connect: Sync {
    /// Gives the calling thread the priority of this place, and a connection to the servant there.
    fn connect(&self, place: usize) -> Result<Box<dyn Servant + '_>, BenchError>;
}

/// Calls before a block, so that all connections are there and have carried something.
const WARM_UP: u8 = 5;

/// Time between the barrier and the beginning of the first periods, for all threads to fall asleep.
const LEAD: Duration = Duration::from_millis(20);

/// Runs a block for each line, and answers it by a line.
pub(super) fn run_blocks(
    class: Class,
    servants: &dyn Connect,
    lines: impl Iterator<Item = Result<String, BenchError>>,
) -> Result<(), BenchError> {
    for line in lines {
        let block: Block = line?.parse().map_err(BenchError::Unusable)?;
        tell(&answer(&run(class, &block, servants)?))?;
    }
    Ok(())
}

/// What the threads of a block share.
struct Start {
    /// All threads are connected.
    ready: Barrier,
    /// The time of the beginning is known.
    set: Barrier,
    begin_nanos: AtomicU64,
    /// Tasks with a number of calls that have not made all of them.
    unfinished: AtomicUsize,
}

fn run(class: Class, block: &Block, servants: &dyn Connect) -> Result<Vec<Served>, BenchError> {
    let threads = block.tasks.len() + 1;
    let start = Start {
        ready: Barrier::new(threads),
        set: Barrier::new(threads),
        begin_nanos: AtomicU64::new(0),
        unfinished: AtomicUsize::new(block.tasks.iter().filter(|task| task.calls > 0).count()),
    };
    std::thread::scope(|scope| {
        let begin = |(place, task)| {
            let start = &start;
            scope.spawn(move || client((class, place), task, block.time_max, servants, start))
        };
        let clients: Vec<_> = block.tasks.iter().enumerate().map(begin).collect();
        start.ready.wait();
        start.begin_nanos.store((now() + LEAD).as_nanos() as u64, Ordering::Relaxed);
        start.set.wait();
        let ended = |_| BenchError::process("a client thread", "ended early");
        clients.into_iter().map(|client| client.join().map_err(ended)?).collect()
    })
}

fn client(
    (class, place): (Class, usize),
    task: &Task,
    time_max: Duration,
    servants: &dyn Connect,
    start: &Start,
) -> Result<Served, BenchError> {
    let connected = servants.connect(place).and_then(|mut servant| {
        servant.burn(Duration::ZERO)?;
        (0..WARM_UP).try_for_each(|value| servant.cube(value).map(drop))?;
        servant.burn(task.burn)?;
        Ok((class.enter_periods(task.period)?, servant))
    });
    // A thread that cannot call must not keep the others from beginning.
    start.ready.wait();
    start.set.wait();
    let begin = Duration::from_nanos(start.begin_nanos.load(Ordering::Relaxed));
    let served = connected.and_then(|(_stay, mut servant)| {
        periods(task, begin, begin + time_max, &mut *servant, &start.unfinished)
    });
    if task.calls > 0 {
        start.unfinished.fetch_sub(1, Ordering::Relaxed);
    }
    served
}

/// Calls once in each period. A call that takes longer than its period delays the next ones, and their latencies from the
/// beginning of their periods tell so.
fn periods(
    task: &Task,
    begin: Duration,
    end: Duration,
    servant: &mut dyn Servant,
    unfinished: &AtomicUsize,
) -> Result<Served, BenchError> {
    let first = begin + task.phase;
    let expected = match task.calls {
        0 => (end - begin).as_nanos() / task.period.as_nanos() + 1,
        calls => calls as u128,
    };
    let mut latencies: Vec<[u64; 2]> = Vec::with_capacity(expected as usize);
    let mut release = first;
    let mut finished = first;
    while task.calls == 0 || latencies.len() < task.calls {
        sleep_until(release);
        let called = now();
        if called >= end || (task.calls == 0 && unfinished.load(Ordering::Relaxed) == 0) {
            break;
        }
        let value = latencies.len() as u8;
        let cubed = servant.cube(value)?;
        finished = now();
        if cubed != cube(value) {
            return Err(BenchError::process("the servant", "gave what is no cube"));
        }
        latencies.push([release, called].map(|since| (finished - since).as_nanos() as u64));
        release += task.period;
    }
    // A client that could not make its calls has been unserved until the end.
    let finished = if latencies.len() < task.calls { finished.max(end) } else { finished.max(release) };
    Ok(Served { elapsed: finished - first, latencies })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A servant that is in the client's own thread.
    struct Near(Duration);

    impl Servant for Near {
        fn cube(&mut self, value: u8) -> Result<u8, BenchError> {
            sleep_until(now() + self.0);
            Ok(cube(value))
        }

        fn burn(&mut self, time: Duration) -> Result<(), BenchError> {
            self.0 = time;
            Ok(())
        }
    }

    struct Nearby;

    impl Connect for Nearby {
        fn connect(&self, place: usize) -> Result<Box<dyn Servant + '_>, BenchError> {
            match place {
                9 => Err(BenchError::Unusable("no such servant".to_owned())),
                _ => Ok(Box::new(Near(Duration::ZERO))),
            }
        }
    }

    fn task(period_ms: u64, burn_ms: u64, calls: usize) -> Task {
        let ms = Duration::from_millis;
        Task { period: ms(period_ms), phase: ms(1), burn: ms(burn_ms), calls }
    }

    fn block(tasks: Vec<Task>) -> Block {
        Block { time_max: Duration::from_secs(60), tasks }
    }

    #[test]
    fn a_task_without_a_number_of_calls_calls_as_long_as_others() {
        let served = run(Class::Other, &block(vec![task(1, 0, 0), task(200, 0, 5)]), &Nearby).unwrap();
        assert_eq!(served[1].latencies.len(), 5);
        // It has called during four periods of the other one, unless the machine stood still.
        assert!(!served[0].latencies.is_empty());
        assert!(served[1].elapsed >= Duration::from_millis(1_000), "{:?}", served[1].elapsed);
    }

    #[test]
    fn a_late_call_delays_the_next_ones_and_their_latencies_tell_so() {
        let served = run(Class::Other, &block(vec![task(1, 20, 3)]), &Nearby).unwrap();
        let [first, _, last] = served[0].latencies[..] else { panic!("three calls: {served:?}") };
        assert!(first[1] >= 20_000_000 && last[1] >= 20_000_000);
        assert!(last[0] >= 58_000_000, "two calls and the third, less two periods: {last:?}");
    }

    #[test]
    fn a_client_that_has_not_made_its_calls_by_the_end_counts_the_whole_time() {
        let short = Block { time_max: Duration::from_millis(30), ..block(vec![task(1, 20, 100)]) };
        let served = run(Class::Other, &short, &Nearby).unwrap();
        assert!(served[0].latencies.len() < 100);
        assert!(served[0].elapsed >= Duration::from_millis(29));
    }

    #[test]
    fn a_thread_that_cannot_connect_ends_the_block_with_its_error() {
        let error = run(Class::Other, &block(vec![task(1, 0, 1); 10]), &Nearby).unwrap_err();
        assert!(error.to_string().contains("no such servant"), "{error}");
    }
}
