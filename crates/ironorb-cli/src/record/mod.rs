//! `ironorb record`: records the calls that go to a server, by a bridge before it, and shows recordings.

mod scenario;
mod show;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use ironorb::{Orb, ServerConcurrency};
use ironorb_dynamic::bridge::{Bridge, BridgeOptions};
use ironorb_model::record::Recording;
use ironorb_record::Recorder;

use crate::bridge;
use crate::failure::Failure;
use crate::files::check_files;
use crate::output;
use crate::seconds::seconds;
use crate::serving;

/// Record what the calls of clients to a server look like, for the simulator.
///
/// A bridge before the server passes calls of any interface on, and writes for each of them the operation, the
/// object (as a hash), the octets of arguments and results, when it began, how long the server took, which client's
/// connection it came over and how it ended. Clients use the bridge's address in place of the server's. A call never
/// waits for the disk. What could not be written is counted, in the recording and at the end. SIGTERM or
/// SIGINT ends the recording after the calls in progress.
///
/// A program of IronORB records itself, nested calls too, if it calls `ironorb_record::install` and the setting
/// `recording` names a file or a folder: `IRONORB_RECORDING=calls/ program`.
#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "Examples:\n  \
        ironorb record --listen iiop://:2810 --to inside:2809 --output calls.jsonl\n  \
        ironorb record --output calls.jsonl bank=corbaname::inside#bank/main\n  \
        ironorb record show calls.jsonl\n  \
        ironorb record show calls/ --chrome trace.json\n  \
        ironorb record scenario calls/ --arrivals closed --output recorded.toml"
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    /// An object, as `IOR:…`, `corbaloc:…`, `corbaname:…`, or `file:PATH` of a file with one of these. NAME is the
    /// object key that clients use; by default it is the object's own key.
    #[arg(value_name = "[NAME=]TARGET", required_unless_present = "to")]
    targets: Vec<String>,
    /// Where to listen; may be given several times. Port 0 lets the system choose.
    #[arg(long, visible_alias = "endpoint", value_name = "ADDRESS", default_value = "iiop://:2810")]
    listen: Vec<String>,
    /// The address that references carry, where it differs from the address listened at. May be given several times.
    #[arg(long, value_name = "HOST[:PORT]")]
    publish: Vec<String>,
    /// Pass requests for all other object keys on to this server, with the keys unchanged.
    #[arg(long, value_name = "HOST:PORT", value_parser = bridge::host_and_port)]
    to: Option<(String, u16)>,
    /// The file to which calls are added, or a folder, in which the recording gets a file of its own.
    #[arg(long, short, value_name = "PATH", default_value = "calls.jsonl")]
    output: PathBuf,
    /// Record the bodies of requests and replies too, up to 64 KiB of each. They are what people sent one another: keep
    /// the file accordingly.
    #[arg(long)]
    bodies: bool,
    /// How long the server may take to answer, in seconds. Fractions are allowed.
    #[arg(long, value_name = "SECONDS", default_value = "300", value_parser = seconds)]
    timeout: Duration,
    /// Which thread takes a request: see `ironorb bridge --help`.
    #[arg(long, value_name = "MODE", default_value = "thread-per-connection")]
    concurrency: ServerConcurrency,
    /// End when standard input ends, as it does when the parent process is gone.
    #[arg(long, hide = true)]
    with_parent: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Show what recordings hold: operations, octets and times.
    Show(show::Arguments),
    /// Make a scenario of recordings, for `ironorb sim run`.
    Scenario(scenario::Arguments),
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    match &arguments.command {
        Some(Command::Show(arguments)) => show::run(arguments),
        Some(Command::Scenario(arguments)) => scenario::run(arguments),
        None => arguments.record(),
    }
}

impl Arguments {
    fn record(&self) -> Result<(), Failure> {
        let mut signals = serving::signals()?;
        let cannot = |e| Failure::new(format!("cannot record to {}: {e}", self.output.display()));
        let recorder = Recorder::begin_bridge(&self.output).map_err(cannot)?;
        let builder = Orb::builder().concurrency(self.concurrency).hold_requests();
        let orb = serving::orb(builder, "--listen", &self.listen, &self.publish)?;
        let options = BridgeOptions {
            call_timeout: Some(self.timeout),
            observer: Some(recorder.observer(self.bodies)),
            ..BridgeOptions::default()
        };
        let bridge = Bridge::new(&orb, options).map_err(Failure::new)?;
        let mut published = String::new();
        for target in &self.targets {
            let (key, reference) = bridge::publish(&orb, &bridge, target)?;
            published.push_str(&format!("{key} {}\n", reference.to_ior_string()));
        }
        if let Some((host, port)) = &self.to {
            bridge.pass_others_to(host, *port);
        }
        // Requests are held until every target is published. No client may hear that a target is unknown.
        orb.root_poa().manager().activate().map_err(Failure::new)?;
        output::announce(format_args!(
            "{published}recording to {}\nready {}",
            recorder.path().display(),
            orb.published_addresses().join(", ")
        ));
        serving::wait_for_end(&mut signals, self.with_parent);
        orb.shutdown(true).map_err(Failure::new)?;
        recorder.flush();
        let totals = recorder.totals();
        output::note(format_args!("{} calls recorded, {} dropped", totals.written, totals.dropped));
        Ok(())
    }
}

/// Reads recordings, which the file that is to be written must be none of.
fn read(paths: &[PathBuf], written: Option<&PathBuf>) -> Result<Recording, Failure> {
    let files = Recording::files(paths).map_err(Failure::new)?;
    check_files(files.iter().map(PathBuf::as_path), [written])?;
    Recording::read_files(&files).map_err(Failure::new)
}
