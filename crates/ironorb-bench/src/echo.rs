//! `ironorb bench echo`: what a call costs beside a plain socket that carries the same bytes.
//!
//! Repetitions of baseline and subject alternate, so that whatever disturbs the machine disturbs both.

use std::hint::black_box;
use std::time::Duration;

use ironorb::{Orb, TypedRef};

use crate::breakdown;
use crate::counts;
use crate::error::BenchError;
use crate::generated::bench::{Echo, EchoRef};
use crate::machine::{Layout, Machine, Unpin, busy, load, pin};
use crate::options::EchoOptions;
use crate::process::Process;
use crate::report::{EchoReport, LatencyRow};
use crate::role::raw_sample;
use crate::rows::{Row, Sample, Server};
use crate::servant::EchoServant;
use crate::settings::Settings;
use crate::sizes;
use crate::statistics::{Collector, each};
use ironorb_baseline::raw::Exchange;

/// Measures the rows that were asked for, and writes the file that was asked for. Takes a minute or so; tells
/// its progress on standard error. Keeps the calling thread on one processor meanwhile.
pub fn echo(options: &EchoOptions) -> Result<EchoReport, BenchError> {
    let rows = Row::select(&options.rows)?;
    let mut report = EchoReport::new(Machine::this());
    if options.counts {
        report.counts = counts::count(options, &rows)?;
    } else if options.breakdown {
        let _unpin = Unpin::later();
        report.breakdowns = breakdown::calls(options, &rows)?;
    } else {
        let _unpin = Unpin::later();
        for layout in Layout::possible() {
            let bench = Bench::start(layout)?;
            for row in &rows {
                eprintln!("measuring {} ({})", row.name, layout.name);
                report.latencies.push(bench.measure(*row, options)?);
            }
        }
    }
    if let Some(file) = &options.json {
        report.write_json(file)?;
    }
    Ok(report)
}

/// The servers of one layout.
struct Bench {
    layout: Layout,
    raw: Served,
    raw_unix: Served,
    raw_ring: Served,
    tcp: Served,
    pool: Served,
    unix_socket: Served,
    shared_memory: Served,
    orb: Orb,
}

struct Served {
    address: String,
    process: Process,
}

impl Served {
    fn start(role: &str, core: usize) -> Result<Served, BenchError> {
        Served::start_with(role, core, "")
    }

    fn start_with(role: &str, core: usize, settings: &str) -> Result<Served, BenchError> {
        let args = ["--core".to_owned(), core.to_string(), "--settings".to_owned(), settings.to_owned()];
        let mut process = Process::start(&[], role, &args)?;
        Ok(Served { address: process.address()?, process })
    }
}

impl Bench {
    fn start(layout: Layout) -> Result<Bench, BenchError> {
        let bench = Bench {
            layout,
            raw: Served::start("raw-server", layout.server)?,
            tcp: Served::start("orb-server", layout.server)?,
            pool: Served::start("pool-server", layout.server)?,
            unix_socket: Served::start("unix-server", layout.server)?,
            shared_memory: Served::start("shm-server", layout.server)?,
            raw_unix: Served::start("raw-unix-server", layout.server)?,
            raw_ring: Served::start("raw-ring-server", layout.server)?,
            orb: Orb::builder().no_endpoint().build()?,
        };
        pin(layout.client)?;
        Ok(bench)
    }

    fn measure(&self, row: Row, options: &EchoOptions) -> Result<LatencyRow, BenchError> {
        let (server, raw) = match row.server {
            Server::Tcp => (&self.tcp, &self.raw),
            Server::Pool => (&self.pool, &self.raw),
            Server::UnixSocket => (&self.unix_socket, &self.raw_unix),
            Server::SharedMemory => (&self.shared_memory, &self.raw_ring),
            Server::Collocated => return self.measure_collocated(row, options),
        };
        // Counted over TCP: the bytes are the same.
        let exchange = sizes::of(row, &self.tcp.address)?;
        let mut baseline: Sample<'_> = raw_sample(&raw.address, exchange)?;
        // One with settings of its own lasts no longer than its row: its threads may look for calls all the time.
        let own = match row.settings {
            "" => None,
            settings => Some((
                Served::start_with("orb-server", self.layout.server, settings)?,
                Settings::known(settings).over(Orb::builder()).no_endpoint().build()?,
            )),
        };
        let (server, orb) = own.as_ref().map_or((server, &self.orb), |(server, orb)| (server, orb));
        let echo: EchoRef = orb.string_to_object(&server.address)?.narrow_unchecked();
        let mut subject = row.sample(echo);
        let servers = [Some(&raw.process), Some(&server.process)];
        let measured = self.alternate(row, Some(exchange), options, servers, &mut baseline, &mut subject);
        drop(subject);
        if let Some((_, orb)) = own {
            orb.shutdown(true)?;
        }
        measured
    }

    /// The baseline of a call within the process is a call through a trait object.
    fn measure_collocated(&self, row: Row, options: &EchoOptions) -> Result<LatencyRow, BenchError> {
        let plain: Box<dyn Echo> = Box::new(EchoServant);
        let mut baseline: Sample<'_> = Box::new(|| {
            for _ in 0..row.calls_per_sample() {
                black_box(&plain).nothing()?;
            }
            Ok(())
        });
        let echo: EchoRef = self.orb.root_poa().activate(EchoServant)?;
        let mut subject = row.sample(echo.clone());
        let measured = self.alternate(row, None, options, [None; 2], &mut baseline, &mut subject);
        drop(subject);
        let poa = self.orb.root_poa();
        poa.deactivate(&poa.reference_to_id(echo.object())?)?;
        measured
    }

    fn alternate(
        &self,
        row: Row,
        exchange: Option<Exchange>,
        options: &EchoOptions,
        [of_raw, of_orb]: [Option<&Process>; 2],
        baseline: &mut Sample<'_>,
        subject: &mut Sample<'_>,
    ) -> Result<LatencyRow, BenchError> {
        let samples = row.samples(options.calls());
        let mut nanos = vec![0; samples];
        let mut of_baseline = Collector::new(row.calls_per_sample());
        let mut of_subject = Collector::new(row.calls_per_sample());
        let load_before = load();
        each(&mut nanos, &mut *baseline)?; // to warm up
        each(&mut nanos, &mut *subject)?;
        for _ in 0..options.repetitions() {
            let busy_before = busy_with(of_raw);
            each(&mut nanos, &mut *baseline)?;
            of_baseline.add(&nanos);
            of_baseline.add_busy(busy_with(of_raw).saturating_sub(busy_before));
            let busy_before = busy_with(of_orb);
            each(&mut nanos, &mut *subject)?;
            of_subject.add(&nanos);
            of_subject.add_busy(busy_with(of_orb).saturating_sub(busy_before));
        }
        Ok(LatencyRow::new(self.layout.name, row, exchange, &of_baseline, &of_subject, load_before))
    }
}

/// Processor time that this process and a server have taken.
fn busy_with(server: Option<&Process>) -> Duration {
    busy() + server.map_or(Duration::ZERO, Process::busy)
}
