//! `ironorb sim calibrate`: what the steps of calls take on this machine, as a profile for scenarios.
//!
//! Each call is one measurement of three: its response, and the processor time of either side. What no processor did meanwhile is the
//! switch to the thread that was woken, half at either side. How a side's time divides into steps is what the ORB's probes
//! say, where a build has them, with their cost taken off; else what plain sockets and a call within the process say.
//!
//! Placements are pinned. `ironorb sim validate` has other numbers of objects, other mixes of operations and other numbers of clients.

mod calls;
mod networks;
mod objects;
mod seen;
mod sockets;
mod split;

use std::path::PathBuf;
use std::time::Duration;

use ironorb_model::check_outputs;
use ironorb_model::profile::{
    BodyRow, CachedRow, CallRow, Kept, Placement, Profile, ProfileOrigin, Times, WakeUpRow,
};

use crate::error::BenchError;
use crate::machine::{CORE_EACH, Layout, Machine, Unpin, load, pin};
use crate::variant::Peer;
use calls::Caller;
use networks::Network;
pub(crate) use objects::ROLES;

/// `ironorb sim calibrate`
#[derive(Debug, Clone, clap::Args)]
pub struct Calibrate {
    /// The file to write the profile to, as TOML.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// The ORB whose calls are measured. Of another one than this, only responses and the server's processor time are seen from
    /// outside: its client is taken to need as much.
    #[arg(long, value_enum, default_value_t = Peer::Ironorb)]
    pub(crate) peer: Peer,
    /// The most objects among which calls choose. Default 1,000,000 servants, and 10,000,000 elements of an extent.
    #[arg(long)]
    pub(crate) objects: Option<u64>,
    /// Measure little: enough to show that the command works, not to predict anything.
    #[arg(long)]
    pub(crate) quick: bool,
}

/// How long the client sleeps before a call, while the processors sleep, too, or are busy with other threads.
const IDLE: [Duration; 6] = [
    Duration::ZERO,
    Duration::from_micros(10),
    Duration::from_micros(100),
    Duration::from_millis(1),
    Duration::from_millis(10),
    Duration::from_millis(100),
];

/// Among how many objects calls choose.
const OBJECTS: [u64; 4] = [1, 100, 10_000, 1_000_000];

/// Among how many elements of an extent calls choose.
const ELEMENTS: [u64; 3] = [1_000, 100_000, 10_000_000];

/// How many quantiles a distribution has: the last one stands for the slowest 2 %, so that percentiles up to 99 show.
const QUANTILES: usize = 50;

/// What other programs may take of a processor meanwhile, in per cent: more shows in the means.
const OTHERS_PERCENT_MAX: f64 = 2.0;

/// What a simulation by a profile leaves out.
const NOT_MODELLED: [&str; 6] = [
    "where the kernel places threads that are not pinned, and when it moves them",
    "interrupts, other processes, and the time that a hypervisor takes",
    "the frequency of processors, other than by how long they have slept",
    "that several programs share caches of memory: objects are those of one server",
    "that the two ends of a call work at the same time for a moment: it shortens the switch",
    "which of the two switches of a call is the longer one: each is half of both",
];

/// Measures this machine, and writes the profile. Blocks; pins the calling thread meanwhile.
///
/// # Errors
/// A process, a call or the file failed.
pub fn calibrate(options: &Calibrate) -> Result<Profile, BenchError> {
    check_outputs([], [&*options.file]).map_err(BenchError::output)?;
    let _unpin = Unpin::later();
    let layouts = Layout::possible();
    if let Some(layout) = layouts.last().filter(|_| options.peer != Peer::Ironorb) {
        calls::check(options.peer, *layout)?;
    }
    let mut machine = Machine::this();
    let mut profile = new_profile(options, machine.clone());
    crate::note(format_args!("measuring how late threads wake up that sleep"));
    profile.sleep = Some(sockets::sleeps(options));
    for layout in layouts.iter().copied() {
        let placement = placement_of(layout);
        profile.wake_ups.extend(wake_ups(layout, placement, options)?);
        if options.peer != Peer::Ironorb {
            profile.calls.extend(calls::from_outside(options, layout, placement)?);
            continue;
        }
        let split = split::of(layout, options)?;
        split.method.clone_into(&mut profile.origin.method);
        let caller = Caller { layout, placement, options, split, network: None };
        let (calls, without_pause) = caller.by_idle(idles(options))?;
        profile.calls.extend(calls);
        profile.calls.extend(caller.in_flight()?);
        profile.bodies.extend(caller.bodies()?);
        let (calls, cached): (Vec<CallRow>, Vec<CachedRow>) =
            caller.by_objects(&without_pause, &counts(options, &OBJECTS))?;
        profile.calls.extend(calls);
        profile.calls.extend(caller.by_elements(&without_pause, &counts(options, &ELEMENTS))?);
        if profile.cached_reads.is_empty() {
            profile.cached_reads = cached;
        }
    }
    if let Some(layout) = layouts.last().filter(|_| options.peer == Peer::Ironorb) {
        profile.calls.extend(over_networks(*layout, options)?);
    }
    machine.end();
    profile.origin.others_percent = (machine.others_percent() * 10.0).round() / 10.0;
    std::fs::write(&options.file, profile.write())
        .map_err(BenchError::io(format!("write {}", options.file.display())))?;
    Ok(profile)
}

/// Calls to a server in a network of its own, and the same through a relay; none where the system does not permit one.
fn over_networks(layout: Layout, options: &Calibrate) -> Result<Vec<CallRow>, BenchError> {
    let network = match Network::start() {
        Ok(network) => network,
        Err(why) => {
            crate::note(format_args!("no calls between two networks: {why}"));
            return Ok(Vec::new());
        }
    };
    let split = split::of(layout, options)?;
    let mut all = Vec::new();
    for (placement, title) in
        [(Placement::Networks, "two networks"), (Placement::Relayed, "two networks and a relay")]
    {
        crate::note(format_args!("{title}"));
        let caller = Caller { layout, placement, options, split, network: Some(&network) };
        all.extend(caller.by_idle(idles(options))?.0);
        all.extend(caller.in_flight()?);
    }
    Ok(all)
}

impl Calibrate {
    fn choose<T>(&self, quick: T, usual: T) -> T {
        if self.quick { quick } else { usual }
    }
}

fn idles(options: &Calibrate) -> &'static [Duration] {
    options.choose(&IDLE[..2], &IDLE)
}

/// As many of these numbers as are wanted.
fn counts(options: &Calibrate, all: &[u64]) -> Vec<u64> {
    let most = options.objects.unwrap_or(options.choose(1_000, u64::MAX));
    all.iter().copied().filter(|count| *count <= most).collect()
}

fn placement_of(layout: Layout) -> Placement {
    if layout.name == CORE_EACH { Placement::CoreEach } else { Placement::OneCore }
}

fn new_profile(options: &Calibrate, machine: Machine) -> Profile {
    let origin = ProfileOrigin {
        load: load(),
        orb: options.peer.title().to_owned(),
        method: "responses and the server's processor time, from outside".to_owned(),
        is_quick: options.quick,
        ..machine.origin()
    };
    Profile {
        not_modelled: NOT_MODELLED.map(str::to_owned).to_vec(),
        origin,
        sleep: None,
        calls: Vec::new(),
        bodies: Vec::<BodyRow>::new(),
        cached_reads: Vec::new(),
        wake_ups: Vec::new(),
    }
}

fn wake_ups(layout: Layout, placement: Placement, options: &Calibrate) -> Result<Vec<WakeUpRow>, BenchError> {
    pin(layout.client)?;
    let mut rows = Vec::new();
    for idle in idles(options) {
        crate::note(format_args!("measuring wake-ups after {idle:?} ({})", layout.name));
        let (wake_up, send, waited) = sockets::wake_ups(layout, *idle, samples_after(*idle, options))?;
        let times = |ns| Times::of(ns, QUANTILES);
        rows.push(WakeUpRow { placement, idle_ns: waited, wake_up: times(wake_up), send: times(send) });
    }
    Ok(rows)
}

/// How many samples after a sleep of this length: at most some ten seconds.
fn samples_after(idle: Duration, options: &Calibrate) -> usize {
    let affordable = 10_000_000_000 / (idle.as_nanos() as usize + 100_000);
    affordable.min(options.choose(20, 2_000))
}

/// What the profile says, for people.
pub fn summary(profile: &Profile) -> String {
    use std::fmt::Write as _;
    let origin = &profile.origin;
    let mut text = format!(
        "profile of {} ({} usable processors), kernel {}, commit {}, {}\ncalls of {}; steps by {}\n\n",
        origin.processor,
        origin.processors,
        origin.kernel,
        origin.commit,
        origin.date,
        origin.orb,
        origin.method
    );
    let _ = writeln!(
        text,
        "{:<10} {:>11} {:<4} {:>9} {:>9} {:>12} {:>9} {:>12} {:>9}",
        "placement",
        "idle us",
        "",
        "objects",
        "in flight",
        "response us",
        "p99 us",
        "processor us",
        "switch us"
    );
    for row in &profile.calls {
        let us = |ns: f64| ns / 1e3;
        let _ = writeln!(
            text,
            "{:<10} {:>11.1} {:<4} {:>9} {:>9} {:>12.2} {:>9.2} {:>12.2} {:>9.2}",
            match row.placement {
                Placement::OneCore => "one-core",
                Placement::CoreEach => "core-each",
                Placement::Networks => "networks",
                Placement::Relayed => "relayed",
            },
            us(row.idle_ns),
            match (row.is_busy, row.kept) {
                (true, _) => "busy",
                (false, Kept::Elements) => "elem",
                (false, Kept::Servants) => "",
            },
            row.objects,
            row.in_flight,
            us(row.response.mean_ns),
            us(row.response.quantiles_ns.last().copied().unwrap_or_default()),
            us(row.steps.sum()),
            us(row.thread_switch.mean_ns),
        );
    }
    text.push_str("\nnot modelled:\n");
    profile.not_modelled.iter().for_each(|what| {
        let _ = writeln!(text, "- {what}");
    });
    if origin.others_percent > OTHERS_PERCENT_MAX {
        let _ = writeln!(
            text,
            "\nother programs had {:.1} % of a processor meanwhile, so that calls look slower than they are: measure again while nothing \
             else runs",
            origin.others_percent
        );
    }
    if origin.is_quick {
        text.push_str("\nquick: it shows that the command works; predict nothing by it\n");
    }
    text
}
