//! The calls of the demo, and their cost beside a plain socket.

use std::sync::Barrier;
use std::time::{Duration, Instant};

use ironorb_baseline::raw::{Exchange, RawClient};

use super::RawAddress;
use super::failed;
use super::idl::demo::{Sensor as _, SensorRef, sensor::CalibrateError};
use super::statistics::Summary;
use crate::failure::Failure;
use crate::output;

/// A kind of call.
pub(super) struct Row {
    pub(super) name: &'static str,
    /// Requests in one sample: several where a single request has no reply to wait for.
    pub(super) requests: usize,
    /// Makes the calls of one sample, and checks and returns the answer.
    pub(super) sample: fn(&SensorRef) -> Result<Answer, Failure>,
}

/// The answer of a call. It becomes text outside of the measured time.
pub(super) enum Answer {
    Done,
    Number(u64),
    Text(String),
    Count(usize),
    OutOfRange(f64, f64),
}

/// Oneways sent before the client asks the server for their count.
const NOTES: usize = 99;
const LABEL: &str = "north mast";

impl Row {
    pub(super) const ADD: Row = Row {
        name: "add(1)",
        requests: 1,
        sample: |sensor| Ok(Answer::Number(sensor.add(1).map_err(failed("add(1)"))?)),
    };
}

/// The rows: twoways, attributes, an exception, a sequence and oneways.
pub(super) const ROWS: &[Row] = &[
    Row {
        name: "ping()",
        requests: 1,
        sample: |sensor| {
            sensor.ping().map_err(failed("ping()"))?;
            Ok(Answer::Done)
        },
    },
    Row::ADD,
    Row {
        name: "label = \"north mast\"",
        requests: 1,
        sample: |sensor| {
            sensor.set_label(LABEL).map_err(failed("setting the attribute label"))?;
            Ok(Answer::Done)
        },
    },
    Row {
        name: "label",
        requests: 1,
        sample: |sensor| {
            let label = sensor.label().map_err(failed("getting the attribute label"))?;
            if label == LABEL { Ok(Answer::Text(label)) } else { Err(wrong("label", &label)) }
        },
    },
    Row {
        name: "calibrate(100)",
        requests: 1,
        sample: |sensor| match sensor.calibrate(100.0) {
            Err(CalibrateError::OutOfRange(e)) => Ok(Answer::OutOfRange(e.least, e.most)),
            Err(e) => Err(failed("calibrate(100)")(e)),
            Ok(()) => Err(wrong("calibrate(100)", "no exception")),
        },
    },
    Row {
        name: "history(64)",
        requests: 1,
        sample: |sensor| {
            let readings = sensor.history(64).map_err(failed("history(64)"))?;
            match readings.last() {
                Some(last) if readings.len() == 64 && last.value == 31.5 => Ok(Answer::Count(readings.len())),
                _ => Err(wrong("history(64)", &format!("{} readings", readings.len()))),
            }
        },
    },
    Row {
        name: "note(\"calm\"), oneway",
        requests: NOTES + 1,
        sample: |sensor| {
            for _ in 0..NOTES {
                sensor.note("calm").map_err(failed("note(\"calm\")"))?;
            }
            // The connection is the same, so the server runs this call after them.
            Ok(Answer::Number(sensor.notes().map_err(failed("getting the attribute notes"))?))
        },
    },
];

/// A plain socket to the server's process.
pub(super) struct Baseline(RawClient);

impl Baseline {
    pub(super) fn connect(address: RawAddress, exchange: Exchange) -> Result<Baseline, Failure> {
        Ok(Baseline(RawClient::connect(address, exchange).map_err(failed("connecting a plain socket"))?))
    }

    fn exchange(&mut self) -> Result<(), Failure> {
        self.0.exchange().map_err(failed("a plain socket"))
    }
}

/// One row of the report.
pub(super) struct Measured {
    pub(super) result: String,
    calls: Summary,
    socket: Summary,
}

/// Takes calls and exchanges in turns, so that both meet the same load of the machine.
pub(super) fn compare(
    row: &Row,
    sensor: &SensorRef,
    baseline: &mut Baseline,
    calls: usize,
) -> Result<Measured, Failure> {
    let each = (calls / row.requests / TURNS).max(2);
    for _ in 0..each {
        baseline.exchange()?;
        (row.sample)(sensor)?;
    }
    let (mut calls_took, mut socket_took) = (Vec::new(), Vec::new());
    let mut last = Answer::Done;
    for _ in 0..TURNS {
        for _ in 0..each {
            let begun = Instant::now();
            baseline.exchange()?;
            socket_took.push(begun.elapsed());
        }
        for _ in 0..each {
            let begun = Instant::now();
            let answer = (row.sample)(sensor)?;
            calls_took.push(begun.elapsed());
            last = answer;
        }
    }
    Ok(Measured {
        result: last.in_words(row, sensor)?,
        calls: Summary::of(&mut calls_took).per(row.requests),
        socket: Summary::of(&mut socket_took).per(row.requests),
    })
}

/// Runs a thread for each plain socket: first all exchanges at once, then all calls at once.
pub(super) fn burst(
    sensor: &SensorRef,
    raw: &[RawAddress],
    exchange: Exchange,
    each: usize,
) -> Result<Measured, Failure> {
    let mut socket_took = at_once(
        raw,
        |address| {
            let mut baseline = Baseline::connect(*address, exchange)?;
            Ok(move || baseline.exchange())
        },
        each,
    )?;
    let mut calls_took =
        at_once(raw, |_| Ok(move || sensor.add(1).map(drop).map_err(failed("add(1) in the burst"))), each)?;
    Ok(Measured {
        result: String::new(),
        calls: Summary::of(&mut calls_took),
        socket: Summary::of(&mut socket_took),
    })
}

fn at_once<T: Sync, F: FnMut() -> Result<(), Failure>>(
    seeds: &[T],
    prepare: impl Fn(&T) -> Result<F, Failure> + Sync,
    each: usize,
) -> Result<Vec<Duration>, Failure> {
    let barrier = Barrier::new(seeds.len());
    std::thread::scope(|scope| {
        let work = |seed| {
            let prepared = prepare(seed);
            // Waits even after a failure: the other threads wait for this thread.
            barrier.wait();
            let mut call = prepared?;
            let mut samples = Vec::with_capacity(each);
            for _ in 0..each {
                let begun = Instant::now();
                call()?;
                samples.push(begun.elapsed());
            }
            Ok(samples)
        };
        let threads: Vec<_> = seeds.iter().map(|seed| scope.spawn(move || work(seed))).collect();
        let mut all = Vec::new();
        for thread in threads {
            all.extend(thread.join().map_err(|_| Failure::new("a thread of the burst panicked"))??);
        }
        Ok(all)
    })
}

impl Answer {
    fn in_words(self, row: &Row, sensor: &SensorRef) -> Result<String, Failure> {
        Ok(match self {
            Answer::Done => "done".to_owned(),
            Answer::Number(number) if row.requests > 1 => {
                let arrived = sensor.notes().map_err(failed("getting the attribute notes"))?;
                match arrived == number && number % NOTES as u64 == 0 {
                    true => format!("all {number} arrived"),
                    false => return Err(wrong(row.name, &format!("{arrived} notes"))),
                }
            }
            Answer::Number(number) => number.to_string(),
            Answer::Text(text) => format!("\"{text}\""),
            Answer::Count(count) => format!("{count} structs"),
            Answer::OutOfRange(least, most) => format!("OutOfRange {{ {least}, {most} }}"),
        })
    }
}

pub(super) fn print_head() -> Result<(), Failure> {
    output::line(format_args!(
        "  {:<22} {:<26} {:>10} {:>10} {:>10} {:>6}",
        "call", "result", "median", "p99", "socket", "ratio"
    ))
}

impl Measured {
    pub(super) fn print(&self, name: &str) -> Result<(), Failure> {
        let us = |number: f64| format!("{number:.1} us");
        output::line(format_args!(
            "  {:<22} {:<26} {:>10} {:>10} {:>10} {:>6.2}",
            name,
            self.result,
            us(self.calls.median_us),
            us(self.calls.p99_us),
            us(self.socket.median_us),
            self.calls.median_us / self.socket.median_us
        ))
    }
}

fn wrong(call: &str, got: &str) -> Failure {
    Failure::new(format!("{call} gave {got}, which is not what the server should answer"))
}

/// Number of alternations. It is large because the scheduler moves the processes between cores.
const TURNS: usize = 50;
