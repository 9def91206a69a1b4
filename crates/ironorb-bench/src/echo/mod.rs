//! `ironorb bench echo`: the cost of a call beside a plain socket that carries as many bytes.

pub(crate) mod counts;
mod rows;

use std::hint::black_box;
use std::time::Duration;

use ironorb::{Orb, SystemException, TypedRef};
use ironorb_baseline::raw::Exchange;

use crate::contender::{self, Venue};
use crate::error::{BenchError, select};
use crate::generated::bench::{BinStruct, Echo, EchoRef};
use crate::machine::{Layout, Unpin, busy, pin};
use crate::measure::{Contest, Group, Label, Sample, Side};
use crate::options::Run;
use crate::plain::{self, Plain};
use crate::process::Process;
use crate::render::{Report, Table};
use crate::role::{Role, RoleArgs, serve};
use crate::row::{Measure, Parameters, Row, parameters};
use crate::settings::Settings;
use crate::variant::Transport;
use crate::watch::{self, Watch};
use rows::{EchoRow, ROWS};

/// `ironorb bench echo`
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct EchoOptions {
    /// Calls in one repetition; a quarter of it for rows of 64 KiB. Default 3,000.
    #[arg(long)]
    pub(crate) calls: Option<usize>,
    /// Run only these rows, separated by commas.
    #[arg(long, value_delimiter = ',')]
    pub(crate) rows: Vec<String>,
    /// Count system calls, instructions and heap allocations per call instead of measuring time. Needs strace
    /// and valgrind.
    #[arg(long)]
    pub(crate) counts: bool,
    /// Show how the time of a call divides into stages on both sides, instead of how long it is. Only rows
    /// that use a wire and a server thread of their own. Needs a build with the feature `probes`.
    #[arg(long, conflicts_with = "counts")]
    pub(crate) breakdown: bool,
    #[command(flatten)]
    pub(crate) run: Run,
}

pub(crate) const ROLES: &[Role] = &[Role { name: SERVER, run: server }, Role { name: CLIENT, run: client }];

const SERVER: &str = "echo-server";
const CLIENT: &str = "echo-client";

const NOTES: &str = "baseline: a plain blocking socket with as many bytes, in turns; for collocated, a call through a trait object. best: the\n\
    mean of the fastest repetition; median, p99: of all calls; cpu: processor time of both sides. over baseline: ratios of the\n\
    median calls of one repetition, their median and spread. oneway: a hundred calls, the last of which is answered; batched:\n\
    ten thousand.";

/// Runs `ironorb bench echo`. Pins the calling thread to one processor meanwhile.
pub(crate) fn measure(options: &EchoOptions) -> Result<Report, BenchError> {
    let rows = select(ROWS.to_vec(), &options.rows, |row| row.name.to_owned())?;
    let mut report = Report::new("echo", "single calls", &options.run);
    if options.counts {
        report.tables.push(counts::count(options, &rows)?);
        return Ok(report);
    }
    let _unpin = Unpin::later();
    if options.breakdown {
        report.tables.push(watch::table(watched(options, &rows)?, ""));
        return Ok(report);
    }
    let mut measured = Vec::new();
    for layout in Layout::possible() {
        for &row in &rows {
            crate::note(format_args!("measuring {} ({})", row.name, layout.name));
            measured.extend(match row.transport {
                Some(transport) => over_a_wire(row, transport, layout, options)?,
                None => in_this_process(row, layout, options)?,
            });
        }
    }
    report.tables.push(Table::new("latency", "single calls", measured).blocks(&["layout"]).notes(NOTES));
    Ok(report)
}

impl EchoOptions {
    fn calls(&self) -> usize {
        self.calls.unwrap_or(self.run.choose(200, 3000)).max(1)
    }
}

/// Measures a call to a server that lives only as long as its row, because its threads may spin.
fn over_a_wire(
    row: EchoRow,
    transport: Transport,
    layout: Layout,
    options: &EchoOptions,
) -> Result<Vec<Row>, BenchError> {
    let exchange = exchange(row)?;
    pin(layout.server)?;
    let plain = Plain::start(plain::server_of(transport))?;
    let venue = Venue { transport, ..Venue::tcp(Some(layout)) };
    let server = contender::ours("echo", Settings::known(row.settings), venue)?.started()?;
    let echo: EchoRef = server.object.clone().narrow_unchecked();
    let baseline = Busy { sample: plain.sample(exchange)?, server: Some(&plain.process) };
    let subject = Busy { sample: row.sample(echo), server: Some(&server.server) };
    let bytes = parameters![request_bytes = exchange.request_bytes, reply_bytes = exchange.reply_bytes];
    compare(row, layout, bytes, options, baseline, subject)
}

/// Measures a call within the process. Its baseline is a call through a trait object.
fn in_this_process(row: EchoRow, layout: Layout, options: &EchoOptions) -> Result<Vec<Row>, BenchError> {
    pin(layout.client)?;
    let orb = Orb::builder().no_endpoint().build()?;
    let plain: Box<dyn Echo> = Box::new(EchoServant);
    let virtual_calls = || (0..row.batch).try_for_each(|_| Ok(black_box(&plain).nothing()?));
    let baseline = Busy { sample: Box::new(virtual_calls), server: None };
    let subject = Busy { sample: row.sample(orb.root_poa().activate(EchoServant)?), server: None };
    let measured = compare(row, layout, Parameters::new(), options, baseline, subject);
    orb.shutdown(true)?;
    measured
}

fn compare(
    row: EchoRow,
    layout: Layout,
    bytes: Parameters,
    options: &EchoOptions,
    baseline: Busy<'_>,
    subject: Busy<'_>,
) -> Result<Vec<Row>, BenchError> {
    let (samples, repetitions) = (row.samples(options.calls()), options.run.repetitions(11));
    let contest = Contest { calls_per_sample: row.batch, ..Contest::of(samples, repetitions) };
    let parameters = [parameters![layout = layout.name, row = row.name], bytes].concat();
    let mut group = Group::new(parameters, Measure::MICROSECONDS, contest, baseline);
    group.enter(Label::ours(), Ok(Box::new(subject)));
    group.run()
}

/// Calls, with the server whose processor time is added to that of this process.
struct Busy<'a> {
    sample: Sample<'a>,
    server: Option<&'a Process>,
}

impl Side for Busy<'_> {
    fn each(&mut self, nanos: &mut [u64]) -> Result<(), BenchError> {
        self.sample.each(nanos)
    }

    fn busy(&self) -> Option<Duration> {
        Some(busy() + self.server.map_or(Duration::ZERO, Process::busy))
    }
}

/// The bytes of one sample of a row.
fn exchange(row: EchoRow) -> Result<Exchange, BenchError> {
    // A plain socket has no messages. It sends as many bytes in one piece as the ORB does.
    let requests = |bytes: usize| match row.is_batched() {
        true => bytes.div_ceil(ironorb::OnewayBatching::DEFAULT.bytes_max),
        false => row.batch,
    };
    plain::count(|poa| poa.activate(EchoServant), requests, |relayed| row.sample(relayed))
}

/// Measures the stages of rows that use a wire and are answered on the caller's thread. Other rows are left
/// out.
fn watched(options: &EchoOptions, rows: &[EchoRow]) -> Result<Vec<Row>, BenchError> {
    let mut watched = Vec::new();
    for layout in Layout::possible() {
        let server = contender::ours("echo", Settings::known(watch::SETTINGS), Venue::tcp(Some(layout)))?;
        let server = server.started()?;
        let watch = Watch::of(&server)?;
        let echo: EchoRef = server.object.clone().narrow_unchecked();
        let is_plain =
            |row: &&EchoRow| row.transport == Some(Transport::Tcp) && !row.settings.contains("pool");
        for row in rows.iter().filter(is_plain) {
            crate::note(format_args!("watching {} ({})", row.name, layout.name));
            let parameters = parameters![layout = layout.name, row = row.name];
            let (samples, repetitions) = (row.samples(options.calls()), options.run.repetitions(11));
            watched.extend(watch.calls(
                &parameters,
                samples,
                row.batch,
                repetitions,
                row.sample(echo.clone()),
            )?);
        }
    }
    Ok(watched)
}

/// Serves an echo. The first line has its reference, and that of the object that reports the probes' counts.
fn server(args: &RoleArgs) -> Result<(), BenchError> {
    serve(args.server()?, |orb| {
        let echo: EchoRef = orb.root_poa().activate(EchoServant)?;
        Ok(format!("{} {}", echo.object().to_ior_string(), watch::teller(orb)?))
    })
}

/// Takes samples of a row, for tools that count.
fn client(args: &RoleArgs) -> Result<(), BenchError> {
    let row = select(ROWS.to_vec(), std::slice::from_ref(&args.row), |row| row.name.to_owned())?[0];
    let orb = Settings::known(row.settings).builder().no_endpoint().build()?;
    let echo: EchoRef = match args.at.as_str() {
        "" => orb.root_poa().activate(EchoServant)?,
        url => orb.string_to_object(url)?.narrow_unchecked(),
    };
    let mut sample = row.sample(echo);
    (0..args.samples).try_for_each(|_| sample())?;
    orb.shutdown(false)?;
    Ok(())
}

/// A servant that returns its arguments.
#[derive(Debug)]
pub(crate) struct EchoServant;

impl Echo for EchoServant {
    fn nothing(&self) -> Result<(), SystemException> {
        Ok(())
    }

    fn forget(&self) -> Result<(), SystemException> {
        Ok(())
    }

    fn take_long(&self, value: i32) -> Result<i32, SystemException> {
        Ok(value)
    }

    fn take_string(&self, value: &str) -> Result<String, SystemException> {
        Ok(value.to_owned())
    }

    fn take_structs(&self, values: &[BinStruct]) -> Result<(), SystemException> {
        std::hint::black_box(values);
        Ok(())
    }

    fn take_octets(&self, values: &[u8]) -> Result<Vec<u8>, SystemException> {
        Ok(values.to_vec())
    }

    fn take_longs(&self, values: &[i32]) -> Result<Vec<i32>, SystemException> {
        Ok(values.to_vec())
    }

    fn take_doubles(&self, values: &[f64]) -> Result<Vec<f64>, SystemException> {
        Ok(values.to_vec())
    }
}
