//! `ironorb bench caching`: reads of cached attributes beside the reading of the clock that each needs, calls beside such
//! reads, writes that a client is told of beside those of which nobody is, and the cases of the paper on MinORB.

mod delays;
mod fan_out;
mod lags;
mod paper;
mod pipeline;
mod rivals;
mod shares;
pub(crate) mod stage;
mod throughput;

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use ironorb::cache::{Cell, CellRef, ReadOptions, Source};
use ironorb::{Orb, OrbConfig, SystemException, TypedRef};
use rustix::time::{ClockId, clock_gettime};

use crate::crowd::Rivals;
use crate::error::BenchError;
use crate::generated_caching::caching::{
    Echo, EchoRef, EchoState, Gauge, GaugeRef, GaugeState, Lever, LeverRef, LeverState, Person, PersonRef,
    PersonState,
};
use crate::machine::{Layout, Placement, Unpin, pin};
use crate::measure::{Contest, Group, Label, Sample, batch};
use crate::options::Run;
use crate::render::{Report, Table};
use crate::role::Role;
use crate::row::{Measure, Row, parameters};

/// `ironorb bench caching`
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct CachingOptions {
    /// What to measure.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = Part::ALL)]
    pub(crate) parts: Vec<Part>,
    /// How many objects the server of the paper's cases has. Default 100,000.
    #[arg(long)]
    pub(crate) objects: Option<usize>,
    /// Pin the clients and servers of case 2. By default they run anywhere.
    #[arg(long, value_enum, value_delimiter = ',')]
    pub(crate) placements: Vec<Placement>,
    /// Lags of the reader in case 4, in microseconds.
    #[arg(long, value_delimiter = ',', default_values_t = [100, 1_000, 10_000])]
    pub(crate) lags: Vec<u64>,
    #[command(flatten)]
    pub(crate) rivals: Rivals,
    #[command(flatten)]
    pub(crate) run: Run,
}

/// A part of the suite.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Part {
    /// Single reads, writes and calls.
    Single,
    /// Case 2: writes a second of clients with many calls in flight.
    Throughput,
    /// Case 3: latency by the share of reads and of cached objects.
    Shares,
    /// Case 3 over networks with round-trip times of 0, 1 and 20 ms.
    Delays,
    /// Case 4: writes and messages by the lag of a client that reads.
    Lags,
    /// Many caching clients of one object: whether reads keep to their bound, and how many need no message.
    FanOut,
    /// Hits and writes beside Redis with the cache of its client.
    Redis,
}

impl Part {
    const ALL: [Part; 7] =
        [Part::Single, Part::Throughput, Part::Shares, Part::Delays, Part::Lags, Part::FanOut, Part::Redis];
}

/// The processes of the cases.
pub(crate) const ROLES: &[Role] = &[stage::ROLE, lags::ROLE, fan_out::ROLE, pipeline::ROLE];

const NOTES: &str = "Samples are batches of a thousand. read-long, read-string: baseline: a reading of the clock that goes on while the system sleeps;\n\
    every cached read has one. call-long: a call of the same attribute over loopback; baseline: the cached read. write-told: a\n\
    write of a cell whose state a client holds; baseline: of one that nobody holds. write-and-read: a call that writes and a cached read;\n\
    write-alone, call-alone: only the calls; baseline: the same of a client whose calls carry no probes (cacheCarriedProbes 0). push-held: a call that writes what the server pushes\n\
    to another client, which reads it; baseline: a call that writes what nobody holds. linearizable-held: a call that writes what another\n\
    client holds, and that client's reads until it holds it again; baseline: a call that writes what nobody holds, and a call\n\
    that reads it. These two rows use all processors. In the paper a cached read takes 4 to 6 us on\n\
    its machines, and a call a hundred times as long.";

/// Calls in one sample.
const BATCH: usize = 1_000;

struct EchoServant(Cell<EchoState>);

impl Echo for EchoServant {
    fn cell(&self) -> CellRef<'_, EchoState> {
        (&self.0).into()
    }

    fn write(&self, value: i32) -> Result<(), SystemException> {
        self.0.update(|mut state| state.set_value(value));
        Ok(())
    }
}

struct PersonServant(Cell<PersonState>);

impl Person for PersonServant {
    fn cell(&self) -> CellRef<'_, PersonState> {
        (&self.0).into()
    }
}

struct GaugeServant(Cell<GaugeState>);

impl Gauge for GaugeServant {
    fn cell(&self) -> CellRef<'_, GaugeState> {
        (&self.0).into()
    }

    fn write(&self, value: i32) -> Result<(), SystemException> {
        self.0.update(|mut state| state.set_value(value));
        Ok(())
    }
}

struct LeverServant(Cell<LeverState>);

impl Lever for LeverServant {
    fn cell(&self) -> CellRef<'_, LeverState> {
        (&self.0).into()
    }

    fn write(&self, value: i32) -> Result<(), SystemException> {
        self.0.update(|mut state| state.set_value(value));
        Ok(())
    }
}

/// Runs `ironorb bench caching`.
pub(crate) fn measure(options: &CachingOptions) -> Result<Report, BenchError> {
    let mut report = Report::new("caching", "cached attributes", &options.run);
    let objects = options.objects.unwrap_or(options.run.choose(100, 100_000)).max(1);
    for part in &options.parts {
        let tables = match part {
            Part::Single => single(&options.run).map(|table| vec![table]),
            Part::Shares => shares::table(&options.run, &options.rivals, objects)
                .map(|table| vec![table, paper::shares()]),
            Part::Throughput => {
                throughput::table(&options.run, &options.rivals, &options.placements, objects)
                    .map(|table| vec![table, paper::throughput()])
            }
            Part::Delays => delays::table(&options.run).map(|table| vec![table]),
            Part::Lags => {
                lags::table(&options.run, objects, &options.lags).map(|table| vec![table, paper::lags()])
            }
            Part::Redis => rivals::table(&options.run).map(|table| vec![table]),
            Part::FanOut => fan_out::table(&options.run).map(|table| vec![table]),
        };
        report.tables.extend(tables?);
    }
    Ok(report)
}

fn single(run: &Run) -> Result<Table, BenchError> {
    let table = Table::new("row", "cached attributes, nanoseconds each", Vec::new()).notes(NOTES);
    let unpin = Unpin::later();
    let Some(layout) = Layout::of(&[Placement::OneCore]).pop() else { return Ok(table) };
    pin(layout.client)?;
    let server = Orb::builder().endpoint("iiop://127.0.0.1:0")?.build()?;
    let client = Orb::builder().no_endpoint().build()?;
    let [told, untold] = [(); 2].map(|()| Cell::new(EchoState { value: 7 }));
    let local: EchoRef = server.root_poa().activate(EchoServant(told.clone()))?;
    let echo: EchoRef = elsewhere(&client, &local)?;
    let named = PersonServant(Cell::new(PersonState { name: "Ada Lovelace".to_owned() }));
    let local: PersonRef = server.root_poa().activate(named)?;
    let person: PersonRef = elsewhere(&client, &local)?;
    for _ in 0..3 {
        echo.value()?;
        person.name()?;
    }
    let remote = ReadOptions::new().remote();
    let clock = || {
        black_box(clock_gettime(ClockId::Boottime));
        Ok(())
    };
    let read = || {
        black_box(black_box(&echo).value()?);
        Ok(())
    };
    let read_string = || {
        black_box(black_box(&person).name()?);
        Ok(())
    };
    let call = || {
        black_box(echo.value_with(&remote)?);
        Ok(())
    };
    let mut rows = Vec::new();
    let compared: [(&str, usize, Sample<'_>, Sample<'_>); 3] = [
        ("read-long", 200, batch(BATCH, clock), batch(BATCH, read)),
        ("read-string", 200, batch(BATCH, clock), batch(BATCH, read_string)),
        ("call-long", 4, batch(BATCH, read), batch(BATCH, call)),
    ];
    for (name, samples, baseline, ours) in compared {
        rows.extend(compare(name, samples, baseline, ours, run)?);
    }
    let write = |cell: Cell<EchoState>| {
        batch(BATCH, move || {
            cell.update(|mut state| state.set_value(black_box(9)));
            Ok(())
        })
    };
    rows.extend(compare("write-told", 200, write(untold), write(told), run)?);
    client.shutdown(true)?;
    server.shutdown(true)?;
    rows.extend(calls_that_ask(run)?);
    drop(unpin);
    rows.extend(writes_of_what_is_held(run)?);
    Ok(Table { rows, ..table })
}

/// Calls of a client that asks what has changed with them, beside those of one that asks by messages alone.
fn calls_that_ask(run: &Run) -> Result<Vec<Row>, BenchError> {
    let server = Orb::builder().endpoint("iiop://127.0.0.1:0")?.build()?;
    let local: EchoRef = server.root_poa().activate(EchoServant(Cell::new(EchoState { value: 7 })))?;
    let client = |probes| Orb::builder().no_endpoint().cache_carried_probes(probes).build();
    let clients = [client(0)?, client(OrbConfig::default().cache_carried_probes)?];
    let echoes = [elsewhere(&clients[0], &local)?, elsewhere(&clients[1], &local)?];
    echoes.iter().try_for_each(|echo: &EchoRef| (0..3).try_for_each(|_| echo.value().map(drop)))?;
    let remote = ReadOptions::new().remote();
    let write_and_read = |echo: &EchoRef| {
        echo.write(black_box(9))?;
        black_box(echo.value()?);
        Ok(())
    };
    let write = |echo: &EchoRef| Ok(echo.write(black_box(9))?);
    let call = |echo: &EchoRef| {
        black_box(echo.value_with(&remote)?);
        Ok(())
    };
    type Once<'o> = &'o dyn Fn(&EchoRef) -> Result<(), BenchError>;
    let compared: [(&str, Once<'_>); 3] =
        [("write-and-read", &write_and_read), ("write-alone", &write), ("call-alone", &call)];
    let mut rows = Vec::new();
    for (name, once) in compared {
        let [apart, carried] = echoes.each_ref().map(|echo| batch(BATCH, move || once(echo)));
        rows.extend(compare(name, 4, apart, carried, run)?);
    }
    clients.iter().chain([&server]).try_for_each(|orb| orb.shutdown(true))?;
    Ok(rows)
}

/// Calls that write what another client holds.
fn writes_of_what_is_held(run: &Run) -> Result<Vec<Row>, BenchError> {
    let server = Orb::builder().endpoint("iiop://127.0.0.1:0")?.build()?;
    let [writer, holder] = [(); 2].map(|()| Orb::builder().no_endpoint().build());
    let (writer, holder) = (writer?, holder?);
    let poa = server.root_poa();
    let gauge = || poa.activate(GaugeServant(Cell::new(GaugeState { value: 7 })));
    let gauges: [GaugeRef; 2] = [gauge()?, gauge()?];
    let lever = || poa.activate(LeverServant(Cell::new(LeverState { value: 7 })));
    let levers: [LeverRef; 2] = [lever()?, lever()?];
    let held: GaugeRef = elsewhere(&holder, &gauges[0])?;
    let [pushed, unheld] = [elsewhere(&writer, &gauges[0])?, elsewhere(&writer, &gauges[1])?];
    let is_over = AtomicBool::new(false);
    let mut rows = thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                let _read = black_box(held.value());
                thread::sleep(Duration::from_millis(20));
            }
        });
        let write = |gauge: GaugeRef| batch(BATCH, move || Ok(gauge.write(black_box(9))?));
        let rows = compare("push-held", 4, write(unheld), write(pushed), run);
        is_over.store(true, Ordering::Relaxed);
        rows
    })?;
    let remote = ReadOptions::new().remote();
    let [read, unheld]: [LeverRef; 2] = [elsewhere(&holder, &levers[1])?, elsewhere(&writer, &levers[1])?];
    let [held, written]: [LeverRef; 2] = [elsewhere(&holder, &levers[0])?, elsewhere(&writer, &levers[0])?];
    // The first writes wait for the terms of a life of the server before this one.
    unheld.write(1)?;
    written.write(1)?;
    let plain = batch(BATCH, || {
        black_box(read.value_with(&remote)?);
        Ok(unheld.write(black_box(9))?)
    });
    let linearizable = batch(BATCH, || {
        while held.value_with(&ReadOptions::new())?.source != Source::Cache {}
        Ok(written.write(black_box(9))?)
    });
    rows.extend(compare("linearizable-held", 4, plain, linearizable, run)?);
    [writer, holder, server].iter().try_for_each(|orb| orb.shutdown(true))?;
    Ok(rows)
}

fn compare<'a>(
    name: &str,
    samples: usize,
    baseline: Sample<'a>,
    ours: Sample<'a>,
    run: &Run,
) -> Result<Vec<Row>, BenchError> {
    crate::note(format_args!("measuring {name}"));
    let contest = Contest {
        calls_per_sample: BATCH,
        time_max: Some(Duration::from_secs(30)),
        ..Contest::of(run.choose(2, samples), run.repetitions(15))
    };
    let mut group = Group::new(parameters![row = name], Measure::NANOSECONDS, contest, baseline);
    group.enter(Label::ours(), Ok(Box::new(ours)));
    group.run()
}

fn elsewhere<R: TypedRef>(client: &Orb, local: &R) -> Result<R, BenchError> {
    Ok(client.string_to_object(&local.object().to_ior_string())?.narrow_unchecked())
}
