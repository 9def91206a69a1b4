//! `ironorb bench ttcp`: CORBA-TTCP. Measures how many bytes per second calls of each kind carry, beside a
//! plain stream socket that carries as many, and how long single calls of each kind take.
//!
//! One placement, transport, mode, type and buffer form one group. In each repetition of a group the plain
//! stream and every kind of call send one total in turn. Each side consists of two processes, and sends one
//! message per buffer. Nothing is batched, except by the system and by the size of the receivers' spaces. At
//! the end of every run the receiver reports its count, and it is an error if that is not what was sent.

mod breakdown;
mod options;
mod paper;
mod peer;
mod receiver;
mod sender;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use ironorb::{Orb, OrbConfig, TypedRef};
use ironorb_baseline::stream::{Flow, StreamListener, StreamSender};
use serde_json::json;

pub use options::TtcpOptions;

use crate::chart::{Axis, Plot, Scale};
use crate::error::BenchError;
use crate::generated_ttcp::ttcp::{PerfStruct, TtcpSequence2wayRef, TtcpSequenceRef};
use crate::goal::Goal;
use crate::machine::{Layout, Unpin, pin};
use crate::measure::{Contest, Entry, Group, Label, Side};
use crate::plain::serve_until_end;
use crate::process::Process;
use crate::render::{Report, Table};
use crate::role::{Role, RoleArgs, serve, tell};
use crate::row::{Measure, Row, parameters, partition};
use crate::settings::Settings;
use crate::variant::{Bytes, DataType, Invocation, Mode, Peer, ServantKind, Transport, name};
use crate::watch;
use peer::{Call, OmniOrb, PeerClient};
use receiver::{DynamicReceiver, StaticReceiver};
use sender::{SendPlan, Sender};

pub(crate) const ROLES: &[Role] = &[
    Role { name: "ttcp-server", run: server },
    Role { name: "ttcp-plain-server", run: plain_server },
    Role { name: "ttcp-client", run: client },
];

/// The data to send.
type Data = crate::data::Data<PerfStruct>;

const RATE_NOTES: &str = "Mbit/s of the sequences' contents at the sender. baseline: a plain stream socket with as many bytes, in turns with the\n\
    others. of baseline: the fraction of its rate in the same repetition. oneway: a run's sequences, then one answer. dii-new:\n\
    a new request for each call; dii-reused: one request, its data set anew for each call. omniORB's cannot be sent again.";

const CALL_NOTES: &str = "baseline: as many bytes over a plain socket, and 24 back. Ratios are of the median calls of one repetition. over sii: to the\n\
    static call of the same servant; over static: to the same call of a static skeleton.";

/// Runs `ironorb bench ttcp`. Pins the calling thread to one processor meanwhile.
pub(crate) fn measure(options: &TtcpOptions) -> Result<Report, BenchError> {
    let mut report = Report::new("ttcp", "throughput", &options.run);
    let _unpin = Unpin::later();
    if options.breakdown {
        report.tables.push(breakdown::measure(options)?);
        return Ok(report);
    }
    let flows = if options.latency_only { Vec::new() } else { flows(options)? };
    let omniorb = OmniOrb::prepare(options.peers.contains(&Peer::Omniorb));
    let layouts = Layout::of(&options.placements);
    let of = layouts.len() * options.transports.len() * flows.len();
    let (mut number, mut rates, mut calls) = (0, Vec::new(), Vec::new());
    for layout in layouts {
        for &transport in &options.transports {
            let servers = Servers::start(layout, transport, omniorb.clone(), options)?;
            let over = name(transport);
            for &(mode, ty, buffer) in &flows {
                number += 1;
                crate::note(format_args!(
                    "measuring {}s, {buffer}, {} over {over} ({number} of {of})",
                    name(ty),
                    name(mode)
                ));
                rates.extend(servers.throughput(mode, ty, buffer, options)?);
            }
            for call in CALLS {
                crate::note(format_args!("measuring single calls, {} over {over}", call.0));
                calls.extend(servers.calls(call, options)?);
            }
        }
    }
    report.goals = [rate_goals(&rates), call_goals(&calls)].concat();
    let (paper, twoway) = (paper::table(&rates), paper::twoway_over_oneway(&rates));
    let (charts, title) = (charts(&rates), "Mbit/s");
    let blocks = &["mode", "transport", "layout", "queue_bytes"][..];
    let rates =
        Table { kind: "rate", title, rows: rates, blocks, notes: RATE_NOTES, charts, ..Table::default() };
    report.tables.push(rates);
    if !options.latency_only {
        report.tables.push(paper);
        report.tables.extend(twoway);
    }
    let (title, blocks) = ("microseconds a twoway call", &["transport", "layout"][..]);
    report.tables.push(Table {
        kind: "latency",
        title,
        rows: calls,
        blocks,
        notes: CALL_NOTES,
        ..Table::default()
    });
    Ok(report)
}

/// The largest buffer. With its headers it is well within the largest message of either ORB.
const BUFFER_BYTES_MAX: usize = 32 << 20;

fn flows(options: &TtcpOptions) -> Result<Vec<(Mode, DataType, Bytes)>, BenchError> {
    let mut flows = Vec::new();
    for &mode in &options.modes {
        for &ty in &options.types {
            for bytes in options.buffers() {
                flows.push((mode, ty, Bytes(checked_bytes(ty, bytes)?)));
            }
        }
    }
    Ok(flows)
}

/// A number of bytes that holds at least one element.
fn checked_bytes(ty: DataType, bytes: usize) -> Result<usize, BenchError> {
    match (ty.element_bytes()..=BUFFER_BYTES_MAX).contains(&bytes) {
        true => Ok(bytes),
        false => Err(BenchError::Buffer { bytes, ty: name(ty), most: BUFFER_BYTES_MAX }),
    }
}

/// Single calls: a name, a type if there is a parameter, and the number of elements.
const CALLS: [(&str, Option<DataType>, usize); 4] = [
    ("void", None, 0),
    ("octet-1k", Some(DataType::Octet), 1 << 10),
    ("octet-64k", Some(DataType::Octet), 64 << 10),
    ("struct-1024", Some(DataType::Struct), 1024),
];

/// Bytes of the plain message for a call without arguments: about the length of the request's header.
const VOID_REQUEST_BYTES: usize = 72;

const EVERY_INVOCATION: [Invocation; 4] =
    [Invocation::Sii, Invocation::DiiNew, Invocation::DiiReused, Invocation::DiiUnchanged];

/// Every way to call that exists. omniORB's requests cannot be sent twice.
fn labels(peers: &[Peer], invocations: &[Invocation], servants: &[ServantKind]) -> Vec<Label> {
    let mut labels = Vec::new();
    for &peer in peers {
        for &servant in servants {
            for &invocation in invocations {
                if peer == Peer::Ironorb || matches!(invocation, Invocation::Sii | Invocation::DiiNew) {
                    let (invocation, servant) = (Some(invocation), Some(servant));
                    labels.push(Label { invocation, servant, ..Label::of(peer, Settings::default()) });
                }
            }
        }
    }
    labels
}

/// The servers of one placement and transport.
struct Servers {
    layout: Layout,
    transport: Transport,
    queue: Option<Bytes>,
    plain: String,
    orb: Orb,
    ironorb: References,
    omniorb: Option<References>,
    program: OmniOrb,
    _processes: Vec<Process>,
    _folder: tempfile::TempDir,
}

impl Servers {
    /// Starts the servers, and pins the calling thread to the client's processor.
    fn start(
        layout: Layout,
        transport: Transport,
        program: OmniOrb,
        options: &TtcpOptions,
    ) -> Result<Servers, BenchError> {
        let folder = tempfile::tempdir().map_err(BenchError::io("make a folder for sockets"))?;
        let queue_bytes = options.queue_bytes();
        pin(layout.server)?;
        let mut args =
            vec![format!("--transport={}", name(transport)), format!("--endpoint={}", transport.endpoint())];
        args.extend(options.queue.map(|bytes| format!("--queue={bytes}")));
        let mut plain = Process::start(&[], "ttcp-plain-server", &args)?;
        let plain_address = plain.address()?;
        let mut server = Process::start(&[], "ttcp-server", &args)?;
        let ironorb = References::parse(&server.address()?)?;
        let mut processes = vec![plain, server];
        let mut omniorb = None;
        if let Some(mut server) = program.start_server(layout, transport, folder.path(), queue_bytes)? {
            omniorb = Some(References::parse(&server.address()?)?);
            processes.push(server);
        }
        let mut builder = Orb::builder().no_endpoint();
        set_queues(builder.config(), options.queue);
        let orb = builder.build()?;
        pin(layout.client)?;
        Ok(Servers {
            layout,
            transport,
            queue: options.queue,
            plain: plain_address,
            orb,
            ironorb,
            omniorb,
            program,
            _processes: processes,
            _folder: folder,
        })
    }

    /// Measures how many bytes per second each kind of call carries.
    fn throughput(
        &self,
        mode: Mode,
        ty: DataType,
        buffer: Bytes,
        options: &TtcpOptions,
    ) -> Result<Vec<Row>, BenchError> {
        let sequences = (options.total_bytes() / buffer.0).max(1);
        let data = Data::filling(ty, buffer.0);
        let payload = data.len() * ty.element_bytes();
        let repetitions = options.repetitions();
        let mut plain = self.connect_plain(flow(mode, payload, sequences))?;
        let run = move || {
            plain.run(sequences).map(|nanos| (nanos, 0)).map_err(BenchError::io("send to the plain server"))
        };
        let mut group = Group {
            parameters: parameters![
                layout = self.layout.name, transport = self.transport, mode = mode, type = ty,
                buffer_bytes = buffer, queue_bytes = options.queue, sequences_a_run = sequences,
                bytes_a_run = sequences * payload, elements_a_run = sequences * data.len(),
                repetitions = repetitions,
            ],
            measure: Measure::Rate("mbit_s", payload as f64 * 8.0),
            contest: Contest::of_batches(repetitions, sequences),
            baseline: Box::new(Runs { run, received: Rc::default(), is_peer: false }),
            entrants: Vec::new(),
        };
        let mut received = Vec::new();
        for label in labels(&options.peers, &options.invocations, &options.servants) {
            let elements: Rc<RefCell<Vec<u64>>> = Rc::default();
            received.push(elements.clone());
            let is_peer = label.peer != Peer::Ironorb;
            let side: Entry<'_> = self.sender(&label, mode, Some(ty), &data)?.map(|mut sender| {
                Box::new(Runs { run: move || sender.run(sequences), received: elements, is_peer }) as Box<_>
            });
            group.enter(label, side);
        }
        let mut rows = group.run()?;
        for (row, received) in rows.iter_mut().zip(received) {
            // The first run was the warm-up.
            row.add_number("elements_received", received.borrow().iter().skip(1).sum::<u64>() as f64);
        }
        Ok(rows)
    }

    /// Measures single twoway calls.
    fn calls(
        &self,
        (call, ty, elements): (&str, Option<DataType>, usize),
        options: &TtcpOptions,
    ) -> Result<Vec<Row>, BenchError> {
        let data = ty.map_or(Data::Nothing, |ty| Data::of(ty, elements));
        let payload = ty.map_or(VOID_REQUEST_BYTES, |ty| elements * ty.element_bytes());
        let mut plain = self.connect_plain(flow(Mode::Twoway, payload, 1))?;
        let (samples, repetitions) = (options.calls(), options.repetitions());
        let contest = Contest { samples, repetitions, calls_per_sample: 1, warm_up: samples, time_max: None };
        let mut group = Group {
            parameters: parameters![layout = self.layout.name, transport = self.transport, call = call],
            measure: Measure::MICROSECONDS,
            contest,
            baseline: Box::new(move || plain.exchange().map_err(BenchError::io("exchange bytes"))),
            entrants: Vec::new(),
        };
        for label in labels(&options.peers, &EVERY_INVOCATION, &ServantKind::ALL) {
            let sender = self.sender(&label, Mode::Twoway, ty, &data)?;
            group.enter(label, sender.map(|sender| Box::new(sender) as Box<_>));
        }
        group.run()
    }

    fn connect_plain(&self, flow: Flow) -> Result<StreamSender, BenchError> {
        StreamSender::connect(&self.plain, self.queue.map(|bytes| bytes.0), flow)
            .map_err(BenchError::io(format!("connect to {}", self.plain)))
    }

    /// A client that is ready to call, or why there is none.
    fn sender<'a>(
        &self,
        label: &Label,
        mode: Mode,
        ty: Option<DataType>,
        data: &'a Data,
    ) -> Result<Result<AnySender<'a>, String>, BenchError> {
        let invocation = label.invocation.unwrap_or(Invocation::Sii);
        let servant = label.servant.unwrap_or(ServantKind::Static);
        match (label.peer, &self.omniorb) {
            (Peer::Ironorb, _) => {
                let object = self.orb.string_to_object(self.ironorb.of(mode, servant))?;
                Ok(Ok(AnySender::Ironorb(Sender::new(&object, SendPlan { mode, invocation, data })?)))
            }
            (Peer::Jacorb, _) => Ok(Err("takes no part in this suite".to_owned())),
            (Peer::Omniorb, None) => Ok(Err(self.program.missing())),
            (Peer::Omniorb, Some(references)) => {
                let reference = references.of(mode, servant);
                let call = Call { mode, ty, elements: data.len(), invocation, reference };
                let client = self.program.start_client(self.layout, self.queue.map(|bytes| bytes.0), call)?;
                Ok(client.map(AnySender::Omniorb).ok_or_else(|| self.program.missing()))
            }
        }
    }
}

/// A plain stream that carries as much as the calls of a mode, and is answered equally often.
fn flow(mode: Mode, buffer_bytes: usize, buffers: usize) -> Flow {
    Flow { buffer_bytes, buffers_an_answer: if mode == Mode::Oneway { buffers } else { 1 } }
}

/// A client of either ORB.
enum AnySender<'a> {
    Ironorb(Sender<'a>),
    Omniorb(PeerClient),
}

impl AnySender<'_> {
    /// Sends `sequences` sequences. Returns the sender's nanoseconds, and the elements that the receiver
    /// counted.
    fn run(&mut self, sequences: usize) -> Result<(u64, u64), BenchError> {
        match self {
            AnySender::Ironorb(sender) => {
                sender.run(sequences).map(|run| (run.sender_nanos, run.tally.elements))
            }
            AnySender::Omniorb(client) => client.run(sequences),
        }
    }
}

impl Side for AnySender<'_> {
    fn each(&mut self, nanos: &mut [u64]) -> Result<(), BenchError> {
        match self {
            AnySender::Ironorb(sender) => sender.each(nanos),
            AnySender::Omniorb(client) => client.each(nanos),
        }
    }

    fn is_peer(&self) -> bool {
        matches!(self, AnySender::Omniorb(_))
    }
}

/// A side whose samples are runs. A run returns its nanoseconds and the number of received elements.
struct Runs<F> {
    run: F,
    received: Rc<RefCell<Vec<u64>>>,
    is_peer: bool,
}

impl<F: FnMut() -> Result<(u64, u64), BenchError>> Side for Runs<F> {
    fn each(&mut self, nanos: &mut [u64]) -> Result<(), BenchError> {
        for nanos in nanos {
            let (taken, received) = (self.run)()?;
            *nanos = taken;
            self.received.borrow_mut().push(received);
        }
        Ok(())
    }

    fn is_peer(&self) -> bool {
        self.is_peer
    }
}

/// Charts of throughput by the size of a buffer.
fn charts(rows: &[Row]) -> Vec<crate::chart::Chart> {
    let apart = &["type", "mode", "transport", "layout"][..];
    let buffer =
        Axis { name: "buffer", scale: Scale::Log2, text: |size| Bytes(size.round() as usize).to_string() };
    let mut charts = Plot {
        title: "sequences, by the bytes of a buffer",
        apart,
        x: ("buffer_bytes", buffer),
        y: ("subject", Axis { name: "Mbit/s", scale: Scale::Log10, text: |rate| format!("{rate}") }),
        baseline: Some("plain stream"),
        lines: &["peer", "invocation", "servant"],
    }
    .charts(rows);
    let parts = partition(rows, |row| apart.iter().map(|name| row.text(name)).collect::<Vec<_>>());
    charts.iter_mut().zip(parts).for_each(|(chart, rows)| paper::add_crosses(chart, rows[0]));
    charts
}

/// From this buffer size on, calls should be about as fast as the plain stream.
const LARGE_BUFFER_BYTES: usize = 64 << 10;

/// Goals for large sequences over static skeletons, beside the plain stream: octets by every invocation,
/// other types by stubs.
fn rate_goals(rows: &[Row]) -> Vec<Goal> {
    let bound = |row: &Row| match (row.text("type").as_str(), row.text("invocation").as_str()) {
        ("octet", invocation) if invocation != "dii-unchanged" => Some(0.95),
        ("long" | "double", "sii") => Some(0.95),
        ("struct", "sii") => Some(0.90),
        _ => None,
    };
    let counts = |row: &&Row| {
        row.is(&[("peer", "ironorb"), ("servant", "static")])
            && row.count("buffer_bytes") >= Some(LARGE_BUFFER_BYTES as f64)
            && row.median("of_raw").is_some()
            && bound(row).is_some()
    };
    let key = |row: &Row| ["layout", "transport", "mode", "type", "invocation"].map(|name| row.text(name));
    let goal = |rows: Vec<&Row>| {
        let part = |row: &Row| row.median("of_raw").unwrap_or(f64::NAN);
        let worst = rows.into_iter().min_by(|a, b| part(a).total_cmp(&part(b)))?;
        let [layout, transport, mode, ty, invocation] = key(worst);
        let buffer = Bytes(worst.count("buffer_bytes")? as usize);
        let what = format!(
            "{ty}s from 64K on, {mode} over {transport}, {invocation} / plain stream (worst: {buffer})"
        );
        Some(Goal::at_least(&layout, what, part(worst), bound(worst)?))
    };
    partition(rows.iter().filter(counts), key).into_iter().filter_map(goal).collect()
}

/// Goals that compare ways to call.
fn call_goals(rows: &[Row]) -> Vec<Goal> {
    let goal = |row: &Row| {
        let [call, transport, layout, invocation, servant] =
            ["call", "transport", "layout", "invocation", "servant"].map(|name| row.text(name));
        let is_struct = call == "struct-1024";
        let (what, ratio, bound) = match (invocation.as_str(), servant.as_str()) {
            ("dii-reused", "static") => ("dii-reused / sii", "over_sii", if is_struct { 1.5 } else { 1.1 }),
            ("dii-new", "static") => ("dii-new / sii", "over_sii", if is_struct { 2.0 } else { 1.25 }),
            ("sii", "dsi") if call.starts_with("octet") => ("dsi / static", "over_static", 1.2),
            _ => return None,
        };
        Some(Goal::at_most(&layout, format!("{call} over {transport}, {what}"), row.median(ratio)?, bound))
    };
    rows.iter().filter(|row| row.text("peer") == "ironorb").filter_map(goal).collect()
}

/// Serves both interfaces by both kinds of servant until standard input ends. The first line has the
/// [`References`].
fn server(args: &RoleArgs) -> Result<(), BenchError> {
    let mut builder = args.server()?;
    // One sequence after another, even if the machine is so slow that a servant seems to be blocked.
    builder.config().threads_per_connection_max = 1;
    set_queues(builder.config(), args.queue);
    serve(builder, |orb| {
        let poa = orb.root_poa();
        let mut references = Vec::new();
        for mode in Mode::ALL {
            let fixed = StaticReceiver::default();
            let fixed = match mode {
                Mode::Oneway => poa.activate::<TtcpSequenceRef, _>(fixed)?.object().clone(),
                Mode::Twoway => poa.activate::<TtcpSequence2wayRef, _>(fixed)?.object().clone(),
            };
            references.push(fixed.to_ior_string());
            let servant = ironorb::dynamic::servant(Arc::new(DynamicReceiver::new(mode)));
            let id = poa.activate_object(servant)?;
            references.push(poa.id_to_reference(&id)?.to_ior_string());
        }
        references.push(watch::teller(orb)?);
        Ok(references.join(" "))
    })
}

/// Sets the size of an ORB's socket queues.
fn set_queues(config: &mut OrbConfig, bytes: Option<Bytes>) {
    config.send_queue_bytes = bytes.map(|bytes| bytes.0);
    config.receive_queue_bytes = bytes.map(|bytes| bytes.0);
}

/// The references of a server's objects: one for each interface and kind of servant, and the object that
/// reports the probes' counts.
#[derive(Debug, Clone)]
struct References(Vec<String>);

impl References {
    /// Parses a server's first line.
    fn parse(line: &str) -> Result<References, BenchError> {
        let references: Vec<String> = line.split(' ').map(str::to_owned).collect();
        match references.len() {
            // Only this ORB's server reports probes.
            4 | 5 => Ok(References(references)),
            count => Err(fault(format!("printed {count} references instead of 4 or 5"))),
        }
    }

    fn of(&self, mode: Mode, servant: ServantKind) -> &str {
        &self.0[2 * mode as usize + servant as usize]
    }

    fn teller(&self) -> Result<&str, BenchError> {
        self.0.get(4).map(String::as_str).ok_or_else(|| fault("does not report its counts".to_owned()))
    }
}

fn fault(what: String) -> BenchError {
    BenchError::Process { role: "ttcp-server".to_owned(), what }
}

/// Receives bytes over a plain stream until standard input ends. The first line has its address.
fn plain_server(args: &RoleArgs) -> Result<(), BenchError> {
    let path = std::env::temp_dir().join(format!("ironorb-ttcp-{}", std::process::id()));
    let (listener, address) = StreamListener::bind((args.transport == Transport::Unix).then_some(&path))
        .map_err(BenchError::io("listen"))?;
    tell(&address)?;
    let queue_bytes = args.queue.map(|bytes| bytes.0);
    let served = serve_until_end(move || listener.serve(queue_bytes));
    let _ = std::fs::remove_file(path);
    served
}

/// Sends one run to an object, and prints its result as a line of JSON.
fn client(args: &RoleArgs) -> Result<(), BenchError> {
    let mut builder = Orb::builder().no_endpoint();
    set_queues(builder.config(), args.queue);
    let orb = builder.build()?;
    let object = orb.string_to_object(&args.at)?;
    let data = args.ty.map_or(Data::Nothing, |ty| Data::filling(ty, args.buffer.0));
    let run = Sender::new(&object, SendPlan { mode: args.mode, invocation: args.invocation, data: &data })?
        .run(args.sequences)?;
    let result = json!({
        "transport": args.transport, "type": args.ty, "buffer": args.buffer, "mode": args.mode,
        "invocation": args.invocation, "sequences": run.tally.sequences, "elements": run.tally.elements,
        "sender_nanos": run.sender_nanos, "receiver_nanos": run.tally.nanoseconds,
    });
    tell(&result.to_string())?;
    orb.shutdown(false)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::goal::Verdict;
    use crate::row::Figure;
    use crate::statistics::Ratio;

    #[test]
    fn omniorb_takes_no_part_in_what_it_cannot_do() {
        let labels = labels(&[Peer::Ironorb, Peer::Omniorb], &EVERY_INVOCATION, &ServantKind::ALL);
        assert_eq!(labels.len(), 2 * 4 + 2 * 2);
        let reuse = |label: &Label| label.invocation >= Some(Invocation::DiiReused);
        assert!(labels.iter().all(|label| label.peer == Peer::Ironorb || !reuse(label)));
    }

    /// A row of octets with a rate, and its fraction of the plain stream's.
    fn row(mode: &str, buffer: usize, rate: f64, part: f64) -> Row {
        let parameters = parameters![
            layout = "one core", transport = "tcp", mode = mode, type = "octet", buffer_bytes = buffer,
            peer = "ironorb", settings = "", invocation = "sii", servant = "static",
        ];
        let of_raw = Ratio { of_bests: part, of_medians: part, median: part, min: part, max: part };
        let subject = Figure::Spread { unit: "mbit_s", best: rate, median: rate, tail: ("worst", rate) };
        let figures = vec![("subject".to_owned(), subject), ("raw".to_owned(), subject)];
        let figures = [figures, vec![("of_raw".to_owned(), Figure::Ratio(of_raw))]].concat();
        Row { parameters, outcome: Ok(figures) }
    }

    #[test]
    fn the_worst_large_buffer_decides_whether_the_goal_is_met() {
        let rows = [
            row("oneway", 1 << 10, 100.0, 0.1),
            row("oneway", 64 << 10, 100.0, 0.97),
            row("oneway", 128 << 10, 100.0, 0.94),
            row("twoway", 128 << 10, 50.0, 0.98),
        ];
        let goals = rate_goals(&rows);
        let found: Vec<(f64, Verdict)> =
            goals.iter().map(|goal| (goal.figure, goal.verdict(false))).collect();
        assert_eq!(found, [(0.94, Verdict::Missed), (0.98, Verdict::Met)]);
        assert!(goals[0].target.contains("worst: 128K"), "{goals:?}");
        let ratios = paper::twoway_over_oneway(&rows).unwrap().rows.remove(0);
        assert_eq!((ratios.median("least"), ratios.median("most")), (Some(0.5), Some(0.5)));
    }

    #[test]
    fn each_mode_has_a_plot_with_a_line_for_each_side() {
        let mut rows: Vec<Row> =
            [1 << 10, 64 << 10, 1000].map(|buffer| row("oneway", buffer, 90.0, 0.9)).into();
        rows.push(row("twoway", 1 << 10, 50.0, 0.9));
        rows.push(Row { outcome: Err("omniORB: not <installed>".to_owned()), ..rows[3].clone() });
        let plots: Vec<String> = charts(&rows).iter().map(|chart| chart.html().unwrap()).collect();
        assert_eq!(plots.len(), 2);
        // A line of three points, and one for the plain stream. The paper's figures are crosses of two lines
        // each.
        assert_eq!(plots[0].matches("<circle").count(), 6, "{}", plots[0]);
        assert_eq!(plots[1].matches("<circle").count(), 2, "{}", plots[1]);
        assert!(plots[0].contains("Orbix 2.0, dii-new to static, 14.8 Mbit/s"));
        assert!(plots[1].contains("omniORB: not &lt;installed&gt;"));
        let sizes: Vec<f64> = charts(&rows)[0].lines[1].points.iter().map(|point| point.0).collect();
        assert_eq!(sizes, [1000.0, 1024.0, 65536.0], "from left to right");
    }
}
