//! `ironorb bench overhead`: the processor time that calls between a client and a server cost, over calls of the same servant
//! within the process (RT-99, figures 8 to 10).
//!
//! Client and server are two threads of one process on one processor. One ORB, without collocation, calls its own object over
//! loopback; another, with it, calls directly. A thread of the lowest priority, the scavenger, runs whenever neither of them does.

use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clap::ValueEnum;
use ironorb::rt::{Priority, PriorityModel};
use ironorb::{LaneConfig, Orb, PoaPolicies, TypedRef};
use ironorb_baseline::paced::{CubeClient, cube, serve as serve_cubes};

use crate::error::BenchError;
use crate::generated_realtime::realtime::{Cubing, CubingRef};
use crate::machine::on_one_core;
use crate::options::Run;
use crate::paced::class::{Class, PRIORITY_MAX, enter_idle};
use crate::paced::orb::{CubingServant, exchange};
use crate::paced::setup::{Kind, Setup, Way};
use crate::process::Process;
use crate::render::{Report, Table};
use crate::role::{Role, RoleArgs, tell};
use crate::row::{Figure, Row, parameters};
use crate::samples::{deviation, mean};
use crate::statistics::turns;
use crate::variant::{Transport, name};

/// `ironorb bench overhead`
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct OverheadOptions {
    /// Calls in a run. Default 200,000.
    #[arg(long)]
    pub(crate) calls: Option<usize>,
    /// Make as many calls in a run as the paper: 10,000,000. Takes hours.
    #[arg(long)]
    pub(crate) full: bool,
    /// The scheduling class of client and server.
    #[arg(long, value_enum, default_value_t = Class::Fifo)]
    pub(crate) class: Class,
    #[command(flatten)]
    pub(crate) run: Run,
}

pub(crate) const ROLES: &[Role] = &[Role { name: ROLE, run: caller }];

const ROLE: &str = "overhead";

/// A way to call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum How {
    /// Client and server: two threads and loopback, in one ORB that has collocation off.
    ClientServer,
    /// Calls within the process, on one thread.
    Collocated,
    /// Plain sockets between two threads, with as many bytes.
    Plain,
}

const NOTES: &str = "All on one processor. scavenger: how often a thread below client and server got the processor, for each hundred calls, and for how\n\
    long: with priorities that the system keeps, never. Plain sockets carry as many bytes between two threads, without an ORB.";

const DIFFERENCE_NOTES: &str = "T CS - T CO is what ORB and system cost; T plain - T CO is the system's part, without any ORB. Deviations are over runs.";

const PAPER_NOTES: &str = "The paper calls this the difference in per cent of the time of a collocated call. It gives no times from which the per cent follow: a\n\
    collocated call takes 20 ns there and a call between client and server some 250 us, of which the difference is far more than\n\
    100 per cent. So no figure here can stand beside these.";

/// Runs `ironorb bench overhead`.
pub(crate) fn measure(options: &OverheadOptions) -> Result<Report, BenchError> {
    let mut report = Report::new("overhead", "processor time of calls", &options.run);
    let usual = if options.full { 10_000_000 } else { 200_000 };
    let calls = options.calls.unwrap_or(options.run.choose(200, usual)).max(1);
    let setup = Setup { kind: Kind::Lanes, way: Way::Tcp, class: options.class, servants: 1 };
    let mut process = on_one_core(|| Process::start(&[], ROLE, &[format!("--setup={setup}")]))?;
    let mut measured: Vec<Vec<Measured>> = vec![Vec::new(); How::value_variants().len()];
    let runs = options.run.repetitions(10);
    for (number, place) in turns(measured.len() - 1, runs).enumerate() {
        let how = How::value_variants()[place];
        crate::note(format_args!("run {} of {}: {}", number + 1, runs * measured.len(), name(how)));
        let answer = process.ask(&format!("{} {calls}", name(how)))?;
        let wrong = || BenchError::process(ROLE, format!("answered {answer:?}"));
        measured[place].push(Measured::parse(&answer).ok_or_else(wrong)?);
    }
    process.end()?;
    report.tables.extend(tables(&measured, calls, options.class));
    Ok(report)
}

/// What one run took.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Measured {
    time: Duration,
    /// How often the scavenger got the processor.
    stints: u64,
    /// Its processor time.
    scavenged: Duration,
}

impl Measured {
    fn parse(line: &str) -> Option<Measured> {
        let numbers: Option<Vec<u64>> = line.split(' ').map(|word| word.parse().ok()).collect();
        let [time, stints, scavenged] = numbers?[..] else { return None };
        let nanos = Duration::from_nanos;
        Some(Measured { time: nanos(time), stints, scavenged: nanos(scavenged) })
    }
}

/// The times of each way to call, and their differences.
fn tables(measured: &[Vec<Measured>], calls: usize, class: Class) -> [Table; 3] {
    let seconds = |how: How| measured[how as usize].iter().map(|run| run.time.as_secs_f64());
    let of = |what: &str| parameters![layout = "one core", class = name(class), what = what, calls = calls];
    let each = |seconds: f64| seconds / calls as f64 * 1e6;
    let time = |&how: &How| {
        let runs = &measured[how as usize];
        let stints = runs.iter().map(|run| run.stints as f64 * 100.0 / calls as f64);
        let scavenged = runs.iter().map(|run| run.scavenged.as_secs_f64() * 1e3);
        let numbers = [
            ("runs", runs.len() as f64),
            ("seconds", mean(seconds(how))),
            ("sd_seconds", deviation(seconds(how))),
            ("us_each", each(mean(seconds(how)))),
            ("scavenger_runs_per_100", mean(stints)),
            ("scavenger_ms", mean(scavenged)),
        ];
        Row::of_numbers(of(&name(how)), numbers)
    };
    let difference = |(what, how): (&str, How)| {
        let pairs = seconds(how).zip(seconds(How::Collocated)).map(|(calls, direct)| calls - direct);
        let numbers = [
            ("seconds", mean(pairs.clone())),
            ("sd_seconds", deviation(pairs.clone())),
            ("us_each", each(mean(pairs))),
        ];
        Row::of_numbers(of(what), numbers)
    };
    let differences = [("T_CS - T_CO", How::ClientServer), ("T_plain - T_CO", How::Plain)].map(difference);
    let times = How::value_variants().iter().map(time).collect();
    [
        Table::new("time", "time of runs", times).blocks(&["layout", "class"]).notes(NOTES),
        Table::new("difference", "differences of the times of runs", differences.into())
            .blocks(&["layout", "class"])
            .notes(DIFFERENCE_NOTES),
        paper(),
    ]
}

/// The paper's figures.
fn paper() -> Table {
    let of = |(system, percent): (&str, f64)| Row {
        outcome: Ok(vec![("percent".to_owned(), Figure::Number(percent))]),
        parameters: parameters![system = system],
    };
    let told = [
        ("Windows NT 4.0", 2.61),
        ("LynxOS 3.0", 5.73),
        ("Linux 2.0.34", 7.17),
        ("Solaris 2.6", 8.75),
        ("VxWorks 5.3.1", 17.6),
    ];
    Table::new("paper", "overhead in the paper (figure 10)", told.map(of).into())
        .elsewhere(crate::realtime::PAPER_MACHINE)
        .notes(PAPER_NOTES)
}

/// Makes as many calls as each line of standard input asks for, and answers with what they took.
fn caller(args: &RoleArgs) -> Result<(), BenchError> {
    let setup: Setup = args.setup.parse().map_err(BenchError::Unusable)?;
    let mut ways = Ways::start(setup)?;
    for line in std::io::stdin().lines() {
        let line = line.map_err(BenchError::io("hear how many calls to make"))?;
        let wrong = || BenchError::Unusable(format!("{line:?} is no way to call with a number of calls"));
        let (how, calls) = line.split_once(' ').ok_or_else(wrong)?;
        let how = How::from_str(how, false).map_err(BenchError::Unusable)?;
        let calls: usize = calls.parse().map_err(|_| wrong())?;
        // Also connects.
        ways.call(how, 100)?;
        // It ends with the run, lest it starve ordinary threads for longer.
        let scavenger = Scavenger::start(setup.class)?;
        let before = scavenger.seen();
        let begin = Instant::now();
        ways.call(how, calls)?;
        let time = begin.elapsed().as_nanos();
        let after = scavenger.seen();
        tell(&format!("{time} {} {}", after.0 - before.0, after.1 - before.1))?;
    }
    Ok(())
}

/// A thread that runs whenever no other one does.
struct Scavenger {
    /// The system's file about its time.
    file: String,
    is_over: Arc<AtomicBool>,
}

/// The lowest priority of the real-time classes.
const LOWEST: i16 = 1;

impl Scavenger {
    fn start(class: Class) -> Result<Scavenger, BenchError> {
        let (report, begun) = std::sync::mpsc::channel();
        let is_over = Arc::new(AtomicBool::new(false));
        let over = is_over.clone();
        std::thread::spawn(move || {
            let entered = if class == Class::Other { enter_idle() } else { class.enter(LOWEST) };
            let is_entered = entered.is_ok();
            // The other end waits for it.
            let _ = report.send(entered.map(|()| rustix::thread::gettid()));
            while is_entered && !over.load(Ordering::Relaxed) {
                std::hint::black_box(cube(7));
            }
        });
        let thread = begun.recv().map_err(|_| BenchError::process("the scavenger", "ended early"))??;
        let file = format!("/proc/self/task/{}/schedstat", thread.as_raw_nonzero());
        Ok(Scavenger { file, is_over })
    }

    /// How often it has got the processor, and for how many nanoseconds in all.
    fn seen(&self) -> (u64, u64) {
        let text = std::fs::read_to_string(&self.file).unwrap_or_default();
        let mut numbers = text.split_whitespace().map(|word| word.parse().unwrap_or(0));
        let time = numbers.next().unwrap_or(0);
        (numbers.nth(1).unwrap_or(0), time)
    }
}

impl Drop for Scavenger {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

/// The servants of this process.
struct Ways {
    collocated: CubingRef,
    remote: CubingRef,
    plain: CubeClient<TcpStream>,
    _orbs: [Orb; 2],
}

impl Ways {
    /// Starts the servers, and puts the calling thread, the client, into the class.
    fn start(setup: Setup) -> Result<Ways, BenchError> {
        let missing = || BenchError::process(ROLE, "lacks a lane that it was given");
        let priority = Priority::new(PRIORITY_MAX).ok_or_else(missing)?;
        let lane = || LaneConfig::new("calls").priority(priority);
        let endpoint = Transport::Tcp.endpoint();
        let orb = |collocation| {
            let builder = Orb::builder().endpoint(endpoint)?.client_transports(vec![ironorb::Transport::Tcp]);
            let builder = builder.real_time(setup.real_time()).collocation(collocation);
            Ok::<Orb, BenchError>(builder.lane(lane().endpoint(endpoint)).build()?)
        };
        let [apart, direct] = [orb(false)?, orb(true)?];
        let model = PriorityModel::ClientPropagated { default: priority };
        let policies = PoaPolicies { priority_model: Some(model), ..PoaPolicies::default() };
        let poa = apart.root_poa().create_poa("calls", None, policies)?;
        poa.manager().activate()?;
        let served: CubingRef = poa.activate(CubingServant::default())?;
        let remote = apart.lane("calls").ok_or_else(missing)?.reference(served.object())?.narrow_unchecked();
        let collocated = direct.root_poa().activate(CubingServant::default())?;
        let plain = plain(setup.class)?;
        apart.rt_current().ok_or_else(missing)?.set_priority(priority)?;
        Ok(Ways { collocated, remote, plain, _orbs: [apart, direct] })
    }

    fn call(&mut self, how: How, calls: usize) -> Result<(), BenchError> {
        let plain = &mut self.plain;
        match how {
            How::ClientServer => each(calls, |value| Ok(self.remote.cube(value)?)),
            How::Collocated => each(calls, |value| Ok(self.collocated.cube(value)?)),
            How::Plain => each(calls, |value| plain.cube(value).map_err(BenchError::io("exchange bytes"))),
        }
    }
}

fn each(calls: usize, mut call: impl FnMut(u8) -> Result<u8, BenchError>) -> Result<(), BenchError> {
    for number in 0..calls {
        let value = std::hint::black_box(number as u8);
        if call(value)? != cube(value) {
            return Err(BenchError::process("the servant", "gave what is no cube"));
        }
    }
    Ok(())
}

/// A connection to a thread of this process that cubes octets, in the class.
fn plain(class: Class) -> Result<CubeClient<TcpStream>, BenchError> {
    let exchange = exchange()?;
    let connect = || BenchError::io("connect to a thread of this process");
    let listener = TcpListener::bind("127.0.0.1:0").map_err(connect())?;
    let client = listener.local_addr().and_then(TcpStream::connect).map_err(connect())?;
    let (server, _) = listener.accept().map_err(connect())?;
    for end in [&client, &server] {
        end.set_nodelay(true).map_err(connect())?;
    }
    let (report, begun) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        // The other end waits for it.
        let _ = report.send(class.enter(PRIORITY_MAX));
        serve_cubes(server, exchange)
    });
    begun.recv().map_err(|_| BenchError::process("the plain server", "ended early"))??;
    Ok(CubeClient::new(client, exchange))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(times_ms: [u64; 3]) -> Vec<Measured> {
        let ms = Duration::from_millis;
        times_ms.map(|time| Measured { time: ms(time), stints: 4, scavenged: ms(1) }).into()
    }

    #[test]
    fn differences_are_between_runs_of_one_turn() {
        let measured = [runs([1010, 1020, 1030]), runs([10, 10, 10]), runs([510, 510, 540])];
        let [times, differences, paper] = tables(&measured, 1_000, Class::Fifo);
        let of = |table: &Table, row: usize, name| table.rows[row].median(name).unwrap();
        assert!((of(&times, 0, "seconds") - 1.02).abs() < 1e-9);
        assert!((of(&times, 0, "scavenger_runs_per_100") - 0.4).abs() < 1e-9);
        assert!((of(&differences, 0, "seconds") - 1.01).abs() < 1e-9);
        assert!((of(&differences, 0, "sd_seconds") - 0.01).abs() < 1e-9);
        assert!((of(&differences, 0, "us_each") - 1_010.0).abs() < 1e-6);
        assert!((of(&differences, 1, "seconds") - 0.51).abs() < 1e-9);
        assert_eq!(paper.rows.len(), 5);
    }

    #[test]
    fn answers_are_three_numbers() {
        assert_eq!(
            Measured::parse("1000000 4 1000"),
            Some(Measured { time: Duration::from_millis(1), stints: 4, scavenged: Duration::from_micros(1) })
        );
        for text in ["", "1 2", "1 2 x", "1 2 3 4"] {
            assert_eq!(Measured::parse(text), None, "{text}");
        }
    }
}
