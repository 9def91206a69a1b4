//! `ironorb demo`: what the ORB does, shown with three processes on this machine.
//!
//! This process is the client. The naming service and the server are further runs of this program. Every step
//! is checked, and the first failure ends the demo with a message. However the demo ends, the other processes
//! and the temporary folder go too: the processes end when this one does.

mod bytes;
mod guard;
mod measure;
mod process;
mod server;
mod statistics;

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use clap::Args;
use ironorb::{Orb, TypedRef as _};

use crate::failure::Failure;
use crate::output;
use guard::Guard;
use idl::demo::{Sensor as _, SensorRef};
use measure::{Baseline, Row};
use process::Process;
pub(crate) use server::{Arguments as ServerArguments, run as run_server};

/// Generated from `idl/demo.idl` by the build script.
#[allow(missing_docs)]
mod idl {
    ironorb::include_idl!("demo");
}

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Make few calls: enough to show that they work, not to measure them.
    #[arg(long, conflicts_with = "calls")]
    quick: bool,
    /// How many calls of each kind to measure.
    #[arg(long, value_name = "N", default_value_t = 4000, value_parser = clap::value_parser!(u32).range(100..=1_000_000))]
    calls: u32,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let calls = if arguments.quick { 200 } else { arguments.calls as usize };
    let begun = Instant::now();
    let guard = Guard::new(Duration::from_secs(60) + Duration::from_millis(5) * calls as u32)?;
    let mut stage = Stage::set(&guard)?;
    stage.introduce()?;
    let sensor = stage.resolve()?;
    stage.calls(&sensor, calls)?;
    stage.burst(&sensor, calls)?;
    stage.restart(&sensor)?;
    stage.strike()?;
    output::line(format_args!("\nAll steps done in {:.1} s.", begun.elapsed().as_secs_f64()))
}

/// The processes of the demo, and their addresses.
struct Stage {
    orb: Orb,
    naming: Process,
    naming_url: String,
    server: Process,
    ready: server::Ready,
    /// The core on which the demo compares calls.
    core: Option<usize>,
}

impl Stage {
    fn set(guard: &Guard) -> Result<Stage, Failure> {
        let store = guard.folder().join("names.redb");
        let store = store.to_string_lossy();
        let naming_args =
            ["naming", "serve", "--endpoint", "iiop://127.0.0.1:0", "--store", &store, "--with-parent"];
        let mut naming = Process::start("the naming service", &naming_args)?;
        let naming_url = naming.ready_line()?;
        let core = crate::cores::choose();
        let (server, ready) = start_server(&naming_url, "127.0.0.1:0", core)?;
        let orb = Orb::builder()
            .no_endpoint()
            .call_timeout(Some(Duration::from_secs(10)))
            .build()
            .map_err(Failure::new)?;
        Ok(Stage { orb, naming, naming_url, server, ready, core })
    }

    fn introduce(&self) -> Result<(), Failure> {
        output::line(format_args!(
            "IronORB {} demo: three processes on this machine",
            env!("CARGO_PKG_VERSION")
        ))?;
        output::line(format_args!("  naming service  process {}, {}", self.naming.id(), self.naming_url))?;
        output::line(format_args!(
            "  server          process {}, iiop://{}",
            self.server.id(),
            self.ready.address
        ))?;
        output::line(format_args!("  client          process {}, this one", std::process::id()))?;
        if cfg!(debug_assertions) {
            output::line(format_args!(
                "  This is no release build: what calls cost here says nothing about IronORB."
            ))?;
        }
        Ok(())
    }

    fn resolve(&self) -> Result<SensorRef, Failure> {
        output::line(format_args!("\nResolve by name"))?;
        let context = self.naming_url.trim_start_matches("corbaloc:").trim_end_matches("/NameService");
        let url = format!("corbaname:{context}#{NAME}");
        let begun = Instant::now();
        let sensor: SensorRef =
            self.orb.resolve(&url).map_err(|e| Failure::new(format!("resolving {url}: {e}")))?;
        let took = begun.elapsed();
        output::line(format_args!("  {url}"))?;
        output::line(format_args!(
            "  is {} at {} ({:.1} ms, two connections included)",
            sensor.object().type_id(),
            self.ready.address,
            1000.0 * took.as_secs_f64()
        ))?;
        Ok(sensor)
    }

    fn calls(&mut self, sensor: &SensorRef, calls: usize) -> Result<(), Failure> {
        let pinned = self.core.and_then(crate::cores::CorePin::on);
        let place = if pinned.is_some() { "both processes on one core" } else { "the processes on any core" };
        output::line(format_args!(
            "\nCalls: {calls} of each, one thread, {place}; beside them a plain socket with the same bytes"
        ))?;
        measure::print_head()?;
        for row in measure::ROWS {
            let exchange = bytes::of(row, sensor)?;
            let mut baseline = Baseline::connect(self.ready.raw[0], exchange)?;
            measure::compare(row, sensor, &mut baseline, calls)?.print(row.name)?;
        }
        drop(pinned);
        self.server.send_line("spread")?;
        self.server.ready_line().map(drop)
    }

    /// Calls from several threads at once, and checks that the server counted every call once.
    fn burst(&self, sensor: &SensorRef, calls: usize) -> Result<(), Failure> {
        let threads = self.ready.raw.len();
        let each = calls.div_ceil(threads);
        output::line(format_args!("\nBurst: {threads} threads at once, {each} calls each"))?;
        measure::print_head()?;
        let exchange = bytes::of(&Row::ADD, sensor)?;
        let before = sensor.add(0).map_err(failed("add(0)"))?;
        let mut measured = measure::burst(sensor, &self.ready.raw, exchange, each)?;
        let counted = sensor.add(0).map_err(failed("add(0)"))? - before;
        let expected = (threads * each) as u64;
        if counted != expected {
            return Err(Failure::new(format!(
                "{expected} calls were made in the burst, and the server counted {counted}"
            )));
        }
        measured.result = format!("{counted} calls, {counted} counted");
        measured.print("add(1)")
    }

    fn restart(&mut self, sensor: &SensorRef) -> Result<(), Failure> {
        output::line(format_args!(
            "\nRestart: the server is killed and started again; the client keeps its reference"
        ))?;
        self.server.kill()?;
        output::line(format_args!("  killed          process {}", self.server.id()))?;
        match sensor.ping() {
            Ok(()) => return Err(Failure::new("a call was answered though the server had been killed")),
            Err(e) => output::line(format_args!("  ping()          {}", short(&e)))?,
        }
        let (server, ready) = start_server(&self.naming_url, &self.ready.address.to_string(), None)?;
        (self.server, self.ready) = (server, ready);
        output::line(format_args!(
            "  started again   process {}, iiop://{}",
            self.server.id(),
            self.ready.address
        ))?;
        let begun = Instant::now();
        sensor.ping().map_err(failed("ping() after the restart"))?;
        let took = begun.elapsed();
        output::line(format_args!(
            "  ping()          done through the old reference ({:.1} ms, a connection included)",
            1000.0 * took.as_secs_f64()
        ))?;
        let sum = sensor.add(1).map_err(failed("add(1) after the restart"))?;
        if sum != 1 {
            return Err(Failure::new(format!("the new server should have counted 1 call, not {sum}")));
        }
        output::line(format_args!("  add(1)          {sum}: the new process counts from 0"))?;
        Ok(())
    }

    /// Ends all processes in order, and checks that each ended well.
    fn strike(self) -> Result<(), Failure> {
        self.orb.shutdown(true).map_err(Failure::new)?;
        self.server.end()?;
        self.naming.end()
    }
}

fn start_server(
    naming: &str,
    address: &str,
    core: Option<usize>,
) -> Result<(Process, server::Ready), Failure> {
    let endpoint = format!("iiop://{address}");
    let mut args = vec!["demo-server".to_owned(), "--endpoint".to_owned(), endpoint];
    args.extend(["--naming".to_owned(), naming.to_owned()]);
    args.extend(core.map(|core| format!("--core={core}")));
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let mut server = Process::start("the server", &args)?;
    let line = server.ready_line()?;
    let ready = server::Ready::parse(&line)
        .ok_or_else(|| Failure::new(format!("the server said {line:?} where its addresses were expected")))?;
    Ok((server, ready))
}

/// The exception's name and completion status, without its detail.
fn short(e: &ironorb::SystemException) -> String {
    let done = match e.completed {
        ironorb::CompletionStatus::Yes => "carried out",
        ironorb::CompletionStatus::No => "not carried out",
        ironorb::CompletionStatus::Maybe => "perhaps carried out",
    };
    format!("{}, {done}: {}", e.kind.name(), e.minor)
}

fn failed<E: std::fmt::Display>(what: &str) -> impl FnOnce(E) -> Failure + '_ {
    move |e| Failure::new(format!("{what}: {e}"))
}

/// The name that the server binds.
const NAME: &str = "demo/sensor";

/// Where the server answers on a plain socket.
type RawAddress = SocketAddr;
