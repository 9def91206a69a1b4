//! `ironorb bench echo`: the cost of a call beside a plain socket that carries as many bytes.

mod counts;
mod rows;

use std::hint::black_box;
use std::time::Duration;

use ironorb::{Orb, SystemException, TypedRef};
use ironorb_baseline::raw::Exchange;

use crate::error::BenchError;
use crate::generated::bench::{BinStruct, Echo, EchoRef};
use crate::goal::Goal;
use crate::machine::{Layout, ONE_CORE, Unpin, busy, pin};
use crate::measure::{Contest, Group, Label, Sample, Side};
use crate::options::Run;
use crate::plain::{self, Plain};
use crate::process::Process;
use crate::render::{Report, Table};
use crate::role::{Role, RoleArgs, serve};
use crate::row::{Measure, Row, parameters};
use crate::settings::Settings;
use crate::watch::{self, Watch};
use rows::{EchoRow, Server};

/// `ironorb bench echo`
#[derive(Debug, Clone, clap::Args)]
pub struct EchoOptions {
    /// Calls in one repetition; a quarter of it for rows of 64 KiB. Default 3,000.
    #[arg(long)]
    pub calls: Option<usize>,
    /// Run only these rows, separated by commas.
    #[arg(long, value_delimiter = ',')]
    pub rows: Vec<String>,
    /// Count system calls, instructions and heap allocations per call instead of measuring time. Needs strace
    /// and valgrind.
    #[arg(long)]
    pub counts: bool,
    /// Show how the time of a call divides into stages on both sides, instead of how long it is. Only rows
    /// that use a wire and a server thread of their own. Needs a build with the feature `probes`.
    #[arg(long, conflicts_with = "counts")]
    pub breakdown: bool,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub run: Run,
}

pub(crate) const ROLES: &[Role] = &[Role { name: SERVER, run: server }, Role { name: CLIENT, run: client }];

const SERVER: &str = "echo-server";
const CLIENT: &str = "echo-client";

/// The pool's setting.
const POOL: &str = "concurrency=pool:4";

const NOTES: &str = "baseline: a plain blocking socket with as many bytes, in turns; for collocated, a call through a trait object. best: the\n\
    mean of the fastest repetition; median, p99: of all calls; cpu: processor time of both sides. over baseline: ratios of the\n\
    median calls of one repetition, their median and spread. oneway: a hundred calls, the last of which is answered; batched:\n\
    ten thousand.";

/// Runs `ironorb bench echo`. Pins the calling thread to one processor meanwhile.
pub(crate) fn measure(options: &EchoOptions) -> Result<Report, BenchError> {
    let rows = EchoRow::select(&options.rows)?;
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
        let bench = Bench::start(layout)?;
        for row in &rows {
            crate::note(format_args!("measuring {} ({})", row.name, layout.name));
            measured.extend(bench.measure(*row, options)?);
        }
    }
    report.goals = goals(&measured);
    let (title, blocks) = ("single calls", &["layout"][..]);
    report.tables.push(Table {
        kind: "latency",
        title,
        rows: measured,
        blocks,
        notes: NOTES,
        ..Table::default()
    });
    Ok(report)
}

impl EchoOptions {
    fn calls(&self) -> usize {
        self.calls.unwrap_or(self.run.choose(200, 3000)).max(1)
    }
}

/// A process that answers calls, on the server's processor.
struct Served {
    reference: String,
    teller: String,
    process: Process,
}

impl Served {
    fn start(endpoint: &str, settings: &str) -> Result<Served, BenchError> {
        let args = [format!("--endpoint={endpoint}"), format!("--settings={settings}")];
        let mut process = Process::start(&[], SERVER, &args)?;
        let line = process.address()?;
        let (reference, teller) = line.split_once(' ').ok_or_else(|| BenchError::Process {
            role: SERVER.to_owned(),
            what: format!("printed {line:?} instead of two references"),
        })?;
        Ok(Served { reference: reference.to_owned(), teller: teller.to_owned(), process })
    }
}

const TCP: &str = "iiop://127.0.0.1:0";

/// The servers of one layout.
struct Bench {
    layout: Layout,
    plain: [Plain; 3],
    tcp: Served,
    pool: Served,
    unix: Served,
    shared_memory: Served,
    orb: Orb,
}

impl Bench {
    fn start(layout: Layout) -> Result<Bench, BenchError> {
        pin(layout.server)?;
        let bench = Bench {
            layout,
            plain: [Plain::start(plain::TCP)?, Plain::start(plain::UNIX)?, Plain::start(plain::RINGS)?],
            tcp: Served::start(TCP, "")?,
            pool: Served::start(TCP, POOL)?,
            unix: Served::start("uiop://", "")?,
            shared_memory: Served::start("shm://", "")?,
            orb: Orb::builder().no_endpoint().build()?,
        };
        pin(layout.client)?;
        Ok(bench)
    }

    fn measure(&self, row: EchoRow, options: &EchoOptions) -> Result<Vec<Row>, BenchError> {
        let [tcp, unix, rings] = &self.plain;
        let (server, plain) = match row.server {
            Server::Tcp => (&self.tcp, tcp),
            Server::Pool => (&self.pool, tcp),
            Server::UnixSocket => (&self.unix, unix),
            Server::SharedMemory => (&self.shared_memory, rings),
            Server::Collocated => return self.measure_collocated(row, options),
        };
        let exchange = exchange(row)?;
        // A server with settings lives only as long as its row, because its threads may spin.
        let own = match row.settings {
            "" => None,
            settings => {
                pin(self.layout.server)?;
                let server = Served::start(TCP, settings)?;
                pin(self.layout.client)?;
                Some((server, Settings::known(settings).builder().no_endpoint().build()?))
            }
        };
        let (server, orb) = own.as_ref().map_or((server, &self.orb), |(server, orb)| (server, orb));
        let echo: EchoRef = orb.string_to_object(&server.reference)?.narrow_unchecked();
        let baseline = Busy { sample: plain.sample(exchange)?, server: Some(&plain.process) };
        let subject = Busy { sample: row.sample(echo), server: Some(&server.process) };
        let bytes = parameters![request_bytes = exchange.request_bytes, reply_bytes = exchange.reply_bytes];
        let measured = self.compare(row, bytes, options, baseline, subject);
        if let Some((_, orb)) = &own {
            orb.shutdown(true)?;
        }
        measured
    }

    /// Measures a call within the process. Its baseline is a call through a trait object.
    fn measure_collocated(&self, row: EchoRow, options: &EchoOptions) -> Result<Vec<Row>, BenchError> {
        let plain: Box<dyn Echo> = Box::new(EchoServant);
        let baseline: Sample<'_> = Box::new(|| {
            for _ in 0..row.calls_per_sample() {
                black_box(&plain).nothing()?;
            }
            Ok(())
        });
        let echo: EchoRef = self.orb.root_poa().activate(EchoServant)?;
        let baseline = Busy { sample: baseline, server: None };
        let subject = Busy { sample: row.sample(echo.clone()), server: None };
        let measured = self.compare(row, Vec::new(), options, baseline, subject);
        let poa = self.orb.root_poa();
        poa.deactivate(&poa.reference_to_id(echo.object())?)?;
        measured
    }

    fn compare(
        &self,
        row: EchoRow,
        bytes: Vec<(&'static str, serde_json::Value)>,
        options: &EchoOptions,
        baseline: Busy<'_>,
        subject: Busy<'_>,
    ) -> Result<Vec<Row>, BenchError> {
        let samples = row.samples(options.calls());
        let contest = Contest {
            samples,
            repetitions: options.run.repetitions(11),
            calls_per_sample: row.calls_per_sample(),
            warm_up: samples,
            time_max: None,
        };
        let mut parameters = parameters![layout = self.layout.name, row = row.name];
        parameters.extend(bytes);
        let baseline = Box::new(baseline);
        let mut group =
            Group { parameters, measure: Measure::MICROSECONDS, contest, baseline, entrants: Vec::new() };
        group.enter(Label::ours(), Ok(Box::new(subject)));
        group.run()
    }
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
        false => row.requests_per_sample(),
    };
    let activate = |orb: &Orb| Ok(orb.root_poa().activate::<EchoRef, _>(EchoServant)?.object().clone());
    plain::count(activate, requests, |relayed| Ok(row.sample(relayed.narrow_unchecked())))
}

/// Measures the stages of rows that use a wire and are answered on the caller's thread. Other rows are left
/// out.
fn watched(options: &EchoOptions, rows: &[EchoRow]) -> Result<Vec<Row>, BenchError> {
    let mut watched = Vec::new();
    for layout in Layout::possible() {
        pin(layout.server)?;
        let server = Served::start(TCP, watch::SETTINGS)?;
        pin(layout.client)?;
        let orb = Orb::builder().no_endpoint().build()?;
        let watch = Watch::new(orb.string_to_object(&server.teller)?)?;
        let echo: EchoRef = orb.string_to_object(&server.reference)?.narrow_unchecked();
        for row in rows.iter().filter(|row| row.server == Server::Tcp) {
            crate::note(format_args!("watching {} ({})", row.name, layout.name));
            let parameters = parameters![layout = layout.name, row = row.name];
            let (samples, repetitions) = (row.samples(options.calls()), options.run.repetitions(11));
            let sample = row.sample(echo.clone());
            watched.extend(watch.calls(&parameters, samples, row.calls_per_sample(), repetitions, sample)?);
        }
        server.process.end()?;
    }
    Ok(watched)
}

/// The goals, judged by the fastest repetitions.
fn goals(rows: &[Row]) -> Vec<Goal> {
    let mut goals = Vec::new();
    for row in rows {
        let (name, layout) = (row.text("row"), row.text("layout"));
        let best = |row: &Row| row.best("subject");
        let over_plain = row.best("over_raw");
        let unix =
            rows.iter().find(|other| other.is(&[("row", "void-unix"), ("layout", &layout)])).and_then(best);
        let plain = "plain socket, best of repetitions";
        goals.extend(match (name.as_str(), layout == ONE_CORE) {
            ("void" | "void-unix", true) => {
                over_plain.map(|figure| Goal::at_most(&layout, format!("{name} / {plain}"), figure, 1.10))
            }
            ("void", false) => {
                over_plain.map(|figure| Goal::at_most(&layout, format!("{name} / {plain}"), figure, 1.05))
            }
            ("void-adaptive", false) => {
                over_plain.map(|figure| Goal::at_most(&layout, format!("{name} / {plain}"), figure, 0.6))
            }
            ("void-shm", true) => best(row).zip(unix).map(|(ours, unix)| {
                Goal::at_most(&layout, "void-shm / void-unix, best of repetitions", ours / unix, 1.0)
            }),
            ("void-shm", false) => {
                best(row).map(|us| Goal::at_most(&layout, "void-shm, us, best of repetitions", us, 1.0))
            }
            ("oneway-batched", false) => best(row).map(|us| {
                let what = "oneways a second, batched, millions, best of repetitions";
                Goal::at_least(&layout, what, 1.0 / us, 5.0)
            }),
            _ => None,
        });
    }
    goals
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
    let row = EchoRow::find(&args.row)?;
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
