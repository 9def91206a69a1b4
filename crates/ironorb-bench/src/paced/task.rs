//! The tasks of a block and what was measured of them, as programs write them on lines of text.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// A client that calls its servant once in each period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Task {
    pub(crate) period: Duration,
    /// When its first period begins.
    pub(crate) phase: Duration,
    /// Processor time of its servant in each call.
    pub(crate) burn: Duration,
    /// How often it calls; 0 for as long as others do.
    pub(crate) calls: usize,
}

/// Tasks that begin together. The first one has the highest priority.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Block {
    /// After this time no task calls any more, even if it has not made all of its calls.
    pub(crate) time_max: Duration,
    pub(crate) tasks: Vec<Task>,
}

/// What was measured of a task.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Served {
    /// From the beginning of the first period to the end of the last one, or of the last call where that is later.
    pub(crate) elapsed: Duration,
    /// Nanoseconds of each call from the beginning of its period, and from the call.
    pub(crate) latencies: Vec<[u64; 2]>,
}

impl Served {
    /// Calls a second.
    pub(crate) fn rate(&self) -> f64 {
        self.latencies.len() as f64 / self.elapsed.as_secs_f64()
    }
}

impl fmt::Display for Block {
    /// `TIME_MAX PERIOD,PHASE,BURN,CALLS …`, in nanoseconds.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.time_max.as_nanos())?;
        for Task { period, phase, burn, calls } in &self.tasks {
            write!(f, " {},{},{},{calls}", period.as_nanos(), phase.as_nanos(), burn.as_nanos())?;
        }
        Ok(())
    }
}

impl FromStr for Block {
    type Err = String;

    fn from_str(text: &str) -> Result<Block, String> {
        let wrong = || format!("{text:?} is no block of tasks");
        let numbers = numbers_of::<u64>(text, [' ', ',']).ok_or_else(wrong)?;
        let [time_max, tasks @ ..] = &numbers[..] else { return Err(wrong()) };
        let (tasks, rest) = tasks.as_chunks::<4>();
        let nanos = Duration::from_nanos;
        let task = |&[period, phase, burn, calls]: &[u64; 4]| Task {
            period: nanos(period),
            phase: nanos(phase),
            burn: nanos(burn),
            calls: calls as usize,
        };
        let is_complete = rest.is_empty() && tasks.iter().all(|task| task[0] > 0);
        match is_complete {
            true => Ok(Block { time_max: nanos(*time_max), tasks: tasks.iter().map(task).collect() }),
            false => Err(wrong()),
        }
    }
}

/// An answer: `ELAPSED RELEASE CALL RELEASE CALL …` for each task, in nanoseconds, separated by `;`.
pub(crate) fn answer(served: &[Served]) -> String {
    let of_task = |served: &Served| {
        let latencies = served.latencies.iter().map(|[release, call]| format!(" {release} {call}"));
        format!("{}{}", served.elapsed.as_nanos(), latencies.collect::<String>())
    };
    served.iter().map(of_task).collect::<Vec<_>>().join(";")
}

/// Reads an answer.
pub(crate) fn parse_answer(text: &str) -> Option<Vec<Served>> {
    let of_task = |text: &str| {
        let numbers = numbers_of::<u64>(text, [' ', ' '])?;
        let [elapsed, latencies @ ..] = &numbers[..] else { return None };
        let (latencies, rest) = latencies.as_chunks::<2>();
        let elapsed = Duration::from_nanos(*elapsed);
        rest.is_empty().then(|| Served { elapsed, latencies: latencies.to_vec() })
    };
    text.split(';').map(of_task).collect()
}

fn numbers_of<T: FromStr>(text: &str, between: [char; 2]) -> Option<Vec<T>> {
    text.split(between).map(|word| word.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_and_answers_are_read_as_they_are_written() {
        let ms = Duration::from_millis;
        let task = Task { period: ms(100), phase: ms(3), burn: ms(1), calls: 7 };
        let block = Block { time_max: ms(900), tasks: vec![task, Task { calls: 0, ..task }] };
        assert_eq!(block.to_string(), "900000000 100000000,3000000,1000000,7 100000000,3000000,1000000,0");
        assert_eq!(block.to_string().parse(), Ok(block));
        for text in ["", "x", "1 2,3,4", "1 2,3,4,5,6", "1 0,0,0,1", "-1"] {
            assert!(text.parse::<Block>().is_err(), "{text}");
        }
        let served = [
            Served { elapsed: ms(500), latencies: vec![[3, 2], [5, 4]] },
            Served { elapsed: ms(1), latencies: vec![] },
        ];
        assert_eq!(parse_answer(&answer(&served)).unwrap(), served);
        assert_eq!(served[0].rate(), 4.0);
        for text in ["", "5 1", "5 1 x", "5;", "failed: COMM_FAILURE"] {
            assert_eq!(parse_answer(text), None, "{text}");
        }
    }
}
