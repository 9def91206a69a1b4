//! The server of the demo: a sensor under a persistent reference, and plain sockets for comparison.

use std::net::{SocketAddr, TcpListener};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use clap::Args;
use ironorb::{Orb, PoaPolicies, SystemException};

use super::idl::demo::{self, OutOfRange, Reading, Readings, SensorRef};
use crate::cores::CorePin;
use crate::failure::Failure;
use crate::output;

/// Options for the demo itself, not for users.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[arg(long)]
    endpoint: String,
    #[arg(long)]
    naming: String,
    /// The core to stay on until the demo sends another line.
    #[arg(long)]
    core: Option<usize>,
}

/// The server's report that it serves.
pub(super) struct Ready {
    pub(super) address: SocketAddr,
    /// An address for each thread of the burst.
    pub(super) raw: Vec<SocketAddr>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    // This comes before the ORB starts threads: they stay on the core of the thread that starts them.
    let pinned = arguments.core.and_then(CorePin::on);
    let orb = Orb::builder()
        .endpoint(&arguments.endpoint)
        .map_err(Failure::new)?
        .initial_reference("NameService", &arguments.naming)
        .hold_requests()
        .build()
        .map_err(Failure::new)?;
    let root = orb.root_poa();
    let sensors = root
        .create_poa("Sensors", Some(root.manager().clone()), PoaPolicies::PERSISTENT)
        .map_err(Failure::new)?;
    let sensor: SensorRef = sensors.activate_with_id("main", Sensor::default()).map_err(Failure::new)?;
    orb.naming().map_err(Failure::new)?.rebind(super::NAME, &sensor).map_err(Failure::new)?;
    let raw = (0..BURST_THREADS).map(|_| serve_raw()).collect::<Result<Vec<_>, _>>();
    let raw = raw.map_err(|e| Failure::new(format!("cannot listen with a plain socket: {e}")))?;
    root.manager().activate().map_err(Failure::new)?;
    let raw: Vec<String> = raw.iter().map(SocketAddr::to_string).collect();
    output::announce(format_args!("ready {} {}", orb.published_addresses().join(","), raw.join(" ")));
    // The demo's process holds the pipe's write end. When that process is gone, the server ends.
    for line in std::io::stdin().lines().map_while(Result::ok) {
        if line == "spread" {
            pinned.iter().for_each(CorePin::spread);
            output::announce(format_args!("ready spread"));
        }
    }
    orb.shutdown(true).map_err(Failure::new)
}

fn serve_raw() -> std::io::Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    std::thread::spawn(move || ironorb_baseline::raw::serve(&listener));
    Ok(address)
}

impl Ready {
    pub(super) fn parse(line: &str) -> Option<Ready> {
        let mut words = line.split_whitespace();
        let address = words.next()?.parse().ok()?;
        let raw = words.map(str::parse).collect::<Result<Vec<_>, _>>().ok()?;
        (!raw.is_empty()).then_some(Ready { address, raw })
    }
}

#[derive(Default)]
struct Sensor {
    sum: AtomicU64,
    notes: AtomicU64,
    label: Mutex<String>,
}

impl demo::Sensor for Sensor {
    fn label(&self) -> Result<String, SystemException> {
        Ok(self.label.lock().unwrap_or_else(|e| e.into_inner()).clone())
    }

    fn set_label(&self, label: &str) -> Result<(), SystemException> {
        label.clone_into(&mut self.label.lock().unwrap_or_else(|e| e.into_inner()));
        Ok(())
    }

    fn notes(&self) -> Result<u64, SystemException> {
        Ok(self.notes.load(Ordering::Relaxed))
    }

    fn ping(&self) -> Result<(), SystemException> {
        Ok(())
    }

    fn add(&self, amount: u32) -> Result<u64, SystemException> {
        Ok(self.sum.fetch_add(amount.into(), Ordering::Relaxed) + u64::from(amount))
    }

    fn calibrate(&self, offset: f64) -> Result<(), demo::sensor::CalibrateError> {
        let (least, most) = (-5.0, 5.0);
        if (least..=most).contains(&offset) { Ok(()) } else { Err(OutOfRange { least, most }.into()) }
    }

    fn history(&self, count: u32) -> Result<Readings, SystemException> {
        let reading = |at: u32| Reading { at_us: i64::from(at) * 1000, value: f64::from(at) / 2.0 };
        Ok((0..count.min(READINGS_MAX)).map(reading).collect())
    }

    fn note(&self, _text: &str) -> Result<(), SystemException> {
        self.notes.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

const BURST_THREADS: usize = 8;
/// Most readings in one reply: a client's number must not decide how much memory the server takes.
const READINGS_MAX: u32 = 10_000;
