//! The paper's fourth case: what a write takes, and how many messages tell a second client of it, by the lag that this client
//! allows.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ironorb::cache::ReadOptions;
use ironorb_baseline::relay::{Relay, RelayPort};

use super::paper;
use super::stage::{Client, Setup, Stage, free_port};
use crate::chart::{Axis, Chart, Plot, Scale};
use crate::error::BenchError;
use crate::generated_cases::caching_cases::{Item as _, ItemRef};
use crate::machine::{Layout, Placement, Unpin, cores, pin};
use crate::measure::{Contest, Entrant, Group, Label, Side};
use crate::options::Run;
use crate::process::Process;
use crate::render::Table;
use crate::role::{Role, RoleArgs, tell};
use crate::row::{Measure, Row, parameters};

pub(super) const ROLE: Role = Role { name: READER, run: reader };

const READER: &str = "caching-reader";

/// How long the first answer after a pause takes at most, which tells of all writes of the other turns.
const SETTLING: Duration = Duration::from_millis(20);

/// The name of the layout.
const LAYOUT: &str = "writer and server on one core";

const NOTES: &str = "Writes of random objects, one after another, while a second client holds all objects and reads random ones without a pause.\n\
    Writer and server share a processor, the reader has another. baseline: such writes where no client holds anything, in turns.\n\
    messages per write: probes and answers, counted by a relay between the reader and the server. In the paper the server sends\n\
    one message for several updates: its writes per message are writes per answer here.";

pub(super) fn table(run: &Run, objects: usize, lags_us: &[u64]) -> Result<Table, BenchError> {
    if lags_us.contains(&0) {
        return Err(BenchError::Unusable("--lags has 0, with which no read is of what is held".to_owned()));
    }
    let title = "case 4: a write by the lag of the client that reads";
    let table = Table::new("lags", title, Vec::new()).blocks(&["layout"]).notes(NOTES);
    let Some(layout) = Layout::of(&[Placement::OneCore]).pop() else { return Ok(table) };
    crate::note(format_args!("measuring writes beside a client that reads"));
    let _unpin = Unpin::later();
    let alone = Stage::start(&Setup::of(objects, layout))?;
    let (port, listened) = (RelayPort::listen().map_err(BenchError::io("listen"))?, free_port()?);
    let ports = Some((listened, port.number().map_err(BenchError::io("listen"))?));
    let told = Stage::start(&Setup { ports, ..Setup::of(objects, layout) })?;
    cores().last().map_or(Ok(()), |last| pin(*last))?;
    let relay = port.to(("127.0.0.1", listened), Duration::ZERO).map_err(BenchError::io("relay calls"))?;
    let reader = Reader::start(&told.reference, objects, relay)?;
    pin(layout.client)?;
    let writers = [alone.client(0..objects)?, told.client(0..objects)?.directly(listened)?];
    let rows = rows(run, &writers, &Rc::new(RefCell::new(reader)), lags_us)?;
    let [one, other] = writers;
    one.end()?;
    other.end()?;
    told.end()?;
    alone.end()?;
    let charts = charts(&rows);
    Ok(Table { rows, ..table }.charts(charts))
}

fn rows(
    run: &Run,
    [alone, told]: &[Client; 2],
    reader: &Rc<RefCell<Reader>>,
    lags_us: &[u64],
) -> Result<Vec<Row>, BenchError> {
    let batch = run.choose(200, 5_000);
    let contest = Contest::of_batches(run.repetitions(15), batch);
    let mut group =
        Group::new(parameters![layout = LAYOUT], Measure::MICROSECONDS, contest, writes(alone, batch));
    let mut tallies = Vec::new();
    for lag in lags_us.iter().copied().map(Duration::from_micros) {
        let tally = Rc::new(RefCell::new(Tally::default()));
        tallies.push(tally.clone());
        let write = Box::new(writes(told, batch));
        let side = Told { write, lag, batch, reader: reader.clone(), tally };
        let parameters = parameters![lag_us = lag.as_micros() as u64];
        group.entrants.push(Entrant { label: Label::ours(), parameters, side: Ok(Box::new(side)) });
    }
    let mut rows = group.run()?;
    for (row, tally) in rows.iter_mut().zip(tallies) {
        tally.borrow().add_to(row);
    }
    Ok(rows)
}

fn writes(client: &Client, batch: usize) -> impl FnMut() -> Result<(), BenchError> {
    let mut random = fastrand::Rng::with_seed(4);
    move || {
        for _ in 0..batch {
            let place = random.usize(..client.items.len());
            client.items[place].write(random.i32(..))?;
        }
        Ok(())
    }
}

/// Writes while the second client reads with a lag.
struct Told<'a> {
    write: Box<dyn FnMut() -> Result<(), BenchError> + 'a>,
    lag: Duration,
    batch: usize,
    reader: Rc<RefCell<Reader>>,
    tally: Rc<RefCell<Tally>>,
}

impl Side for Told<'_> {
    fn each(&mut self, nanos: &mut [u64]) -> Result<(), BenchError> {
        let mut reader = self.reader.borrow_mut();
        for nanos in nanos {
            reader.begin(self.lag)?;
            let ([messages, bytes], begun) = (reader.passed(), Instant::now());
            (self.write)()?;
            *nanos = begun.elapsed().as_nanos() as u64;
            let after = reader.passed();
            let reads = reader.end()?;
            self.tally.borrow_mut().add([self.batch, after[0] - messages, after[1] - bytes, reads]);
        }
        Ok(())
    }
}

/// Writes, messages, bytes and reads of all turns.
#[derive(Debug, Default)]
struct Tally([usize; 4]);

impl Tally {
    fn add(&mut self, more: [usize; 4]) {
        self.0.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
    }

    fn add_to(&self, row: &mut Row) {
        let [writes, messages, bytes, reads] = self.0.map(|sum| sum as f64);
        row.add_number("messages_per_write", messages / writes);
        // Not a number where a quick run is over before the first message.
        let per_message = if messages > 0.0 { writes / messages } else { f64::NAN };
        row.add_number("writes_per_message", per_message);
        row.add_number("writes_per_answer", 2.0 * per_message);
        row.add_number("bytes_per_write", bytes / writes);
        row.add_number("reads_per_write", reads / writes);
    }
}

/// A client in a process of its own. It holds all objects, and reads them while it is asked to.
struct Reader {
    process: Process,
    relay: Relay,
}

impl Reader {
    fn start(stage: &str, objects: usize, relay: Relay) -> Result<Reader, BenchError> {
        let args = [format!("--at={stage}"), format!("--samples={objects}")];
        let mut process = Process::start(&[], READER, &args)?;
        process.address()?;
        Ok(Reader { process, relay })
    }

    /// The messages and bytes that have passed between it and the server.
    fn passed(&self) -> [usize; 2] {
        let of_both = |(requests, replies): (usize, usize)| requests + replies;
        [of_both(self.relay.messages()), of_both(self.relay.bytes())]
    }

    /// Has it read with a lag from now on, and lets it learn of all that was written while it did not.
    fn begin(&mut self, lag: Duration) -> Result<(), BenchError> {
        self.process.ask(&lag.as_nanos().to_string())?;
        std::thread::sleep(lag + SETTLING);
        Ok(())
    }

    /// Has it stop. Returns how often it has read.
    fn end(&mut self) -> Result<usize, BenchError> {
        let wrong = |_| BenchError::process(READER, "tells no number of reads");
        self.process.ask("0")?.parse().map_err(wrong)
    }
}

/// Reads with the lag that a line of its standard input tells, in nanoseconds. 0 stops it: it answers how often it has read.
fn reader(args: &RoleArgs) -> Result<(), BenchError> {
    let client = Client::of(&args.at, 0..args.samples)?;
    client.hold(args.samples)?;
    let shared = Arc::new((AtomicU64::new(0), AtomicU64::new(0)));
    let (items, orders) = (client.items.clone(), shared.clone());
    std::thread::spawn(move || read_on(&items, &orders));
    tell("ready")?;
    let (lag, reads) = &*shared;
    for line in std::io::stdin().lines() {
        let line = line.map_err(BenchError::io("hear how to read"))?;
        lag.store(line.trim().parse().unwrap_or(0), Ordering::SeqCst);
        tell(&reads.swap(0, Ordering::SeqCst).to_string())?;
    }
    lag.store(STOP, Ordering::SeqCst);
    client.end()
}

/// A lag that ends the reading thread.
const STOP: u64 = u64::MAX;

/// How often the reader sees at least one of its orders; it counts its reads in such steps.
const READS_PER_LOOK: u64 = 16;

fn read_on(items: &[ItemRef], (lag, reads): &(AtomicU64, AtomicU64)) {
    let mut random = fastrand::Rng::new();
    loop {
        match lag.load(Ordering::SeqCst) {
            STOP => return,
            0 => std::thread::sleep(Duration::from_micros(100)),
            nanos => {
                let options = ReadOptions::new().lag(Duration::from_nanos(nanos));
                for _ in 0..READS_PER_LOOK {
                    // A failure shows as fewer reads, and ends the writes too.
                    let _ = items[random.usize(..items.len())].value_with(&options);
                }
                reads.fetch_add(READS_PER_LOOK, Ordering::SeqCst);
            }
        }
    }
}

fn charts(rows: &[Row]) -> Vec<Chart> {
    let lag = Axis { name: "lag in us", scale: Scale::Log10, text: |lag| format!("{lag:.0}") };
    let plot = |title, y, name, baseline| Plot {
        title,
        apart: &[],
        x: ("lag_us", lag),
        y: (y, Axis { name, scale: Scale::Log10, text: crate::row::digits }),
        baseline,
        lines: &["peer"],
    };
    let write = "case 4: a write, by the lag of the reader";
    let mut charts = plot(write, "subject", "us", Some("nobody holds")).charts(rows);
    charts.iter_mut().for_each(paper::add_lags);
    let fewer = "case 4: writes for each message between the reader and the server";
    charts.extend(plot(fewer, "writes_per_message", "writes", None).charts(rows));
    charts
}
