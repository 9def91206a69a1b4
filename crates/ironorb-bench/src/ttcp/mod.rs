//! `ironorb bench ttcp`: CORBA-TTCP. Measures how many bytes per second calls of each kind carry, beside a
//! plain stream socket that carries as many, and how long single calls of each kind take.
//!
//! One placement, transport, mode, type and buffer form one group. In each repetition of a group the plain
//! stream and every kind of call send one total in turn. Each side consists of two processes, and sends one
//! message per buffer. Nothing is batched, except by the system and by the size of the receivers' spaces.

mod breakdown;
mod options;
mod paper;

use ironorb_baseline::stream::{Flow, StreamListener, StreamSender};

pub(crate) use options::TtcpOptions;
pub(crate) use paper::shares as shares_of_paper;

use crate::chart::{Axis, Chart, Plot, Scale};
use crate::contender::{self, Venue};
use crate::error::BenchError;
use crate::host::ServerHost;
use crate::machine::{Layout, Unpin, pin};
use crate::measure::{Contest, Group, Label, Sample};
use crate::plain::serve_until_end;
use crate::process::Process;
use crate::render::{Report, Table};
use crate::role::{Role, RoleArgs, tell};
use crate::row::{Measure, Row, parameters, partition};
use crate::sequences::{Calls, Server};
use crate::variant::{Bytes, DataType, Invocation, Mode, ServantKind, Transport, name};

pub(crate) const ROLES: &[Role] = &[Role { name: "ttcp-plain-server", run: plain_server }];

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
    let layouts = Layout::of(&options.placements);
    let of = layouts.len() * options.transports.len() * flows.len();
    let (mut number, mut rates, mut calls) = (0, Vec::new(), Vec::new());
    for layout in layouts {
        for &transport in &options.transports {
            let servers = Servers::start(layout, transport, options)?;
            let over = name(transport);
            for &(buffer, flow) in &flows {
                number += 1;
                let (what, mode) = (name(flow.ty), name(flow.mode));
                crate::note(format_args!(
                    "measuring {what}s, {buffer}, {mode} over {over} ({number} of {of})"
                ));
                rates.extend(servers.throughput(buffer, flow, options)?);
            }
            for (call, ty, elements) in CALLS.into_iter().filter(|_| !options.rates_only) {
                crate::note(format_args!("measuring single calls, {call} over {over}"));
                calls.extend(servers.calls(
                    call,
                    Calls::of_one_object(Mode::Twoway, ty, elements),
                    options,
                )?);
            }
        }
    }
    let (paper, twoway) = (paper::table(&rates), paper::twoway_over_oneway(&rates));
    let charts = charts(&rates);
    let rates = Table::new("rate", "Mbit/s", rates).notes(RATE_NOTES).charts(charts);
    report.tables.push(rates.blocks(&["mode", "transport", "layout", "queue_bytes"]));
    if !options.latency_only {
        report.tables.push(paper);
        report.tables.extend(twoway);
    }
    let calls = Table::new("latency", "microseconds a twoway call", calls);
    report.tables.push(calls.blocks(&["transport", "layout"]).notes(CALL_NOTES));
    Ok(report)
}

/// The largest buffer. With its headers it is well within the largest message of either ORB.
const BUFFER_BYTES_MAX: usize = 32 << 20;

/// The requested kinds of calls. Each fills a buffer, and its batch makes the total.
fn flows(options: &TtcpOptions) -> Result<Vec<(Bytes, Calls)>, BenchError> {
    let mut flows = Vec::new();
    for &mode in &options.modes {
        for &ty in &options.types {
            for buffer in options.buffers() {
                flows.push((buffer, flow(options, mode, ty, buffer)?));
            }
        }
    }
    Ok(flows)
}

fn flow(options: &TtcpOptions, mode: Mode, ty: DataType, buffer: Bytes) -> Result<Calls, BenchError> {
    let Bytes(bytes) = buffer;
    if ty == DataType::Void || !(ty.element_bytes()..=BUFFER_BYTES_MAX).contains(&bytes) {
        return Err(BenchError::Unusable(format!(
            "a buffer of {bytes} bytes holds no element of type {}, or is more than {BUFFER_BYTES_MAX} bytes",
            name(ty)
        )));
    }
    let batch = (options.total_bytes() / bytes).max(1);
    Ok(Calls { batch, ..Calls::of_one_object(mode, ty, bytes / ty.element_bytes()) })
}

/// Single calls: a name, a type and the number of elements.
const CALLS: [(&str, DataType, usize); 4] = [
    ("void", DataType::Void, 0),
    ("octet-1k", DataType::Octet, 1 << 10),
    ("octet-64k", DataType::Octet, 64 << 10),
    ("struct-1024", DataType::Struct, 1024),
];

/// Bytes of the plain message for a call without arguments: about the length of the request's header.
const VOID_REQUEST_BYTES: usize = 72;

const EVERY_INVOCATION: [Invocation; 4] =
    [Invocation::Sii, Invocation::DiiNew, Invocation::DiiReused, Invocation::DiiUnchanged];

/// The servers of one placement and transport.
struct Servers {
    layout: Layout,
    transport: Transport,
    queue: Option<Bytes>,
    plain: String,
    servers: Vec<Server>,
    _plain: Process,
    _folder: tempfile::TempDir,
}

impl Servers {
    /// Starts the servers, and pins the calling thread to the client's processor.
    fn start(layout: Layout, transport: Transport, options: &TtcpOptions) -> Result<Servers, BenchError> {
        let folder = tempfile::tempdir().map_err(BenchError::io("make a folder for sockets"))?;
        let queue = options.queue;
        pin(layout.server)?;
        let host = options.hosts.server_host.as_ref();
        let listening = format!("--host={}", ServerHost::address(host));
        let mut args = vec![format!("--transport={}", name(transport)), listening];
        args.extend(queue.map(|bytes| format!("--queue={bytes}")));
        let mut process = Process::start(ServerHost::command(host), "ttcp-plain-server", &args)?;
        let plain = process.address()?;
        let venue = venue(layout, options);
        let venue = Venue { transport, folder: folder.path(), ..venue };
        let mut servers: Vec<Server> =
            contender::start("latency", &options.sides, venue)?.into_iter().map(Server::new).collect();
        for server in &mut servers {
            server.populate(1)?.ok();
        }
        Ok(Servers { layout, transport, queue, plain, servers, _plain: process, _folder: folder })
    }

    /// Measures how many bytes per second each kind of call carries.
    fn throughput(&self, buffer: Bytes, flow: Calls, options: &TtcpOptions) -> Result<Vec<Row>, BenchError> {
        let payload = flow.units * flow.ty.element_bytes();
        let (sequences, repetitions) = (flow.batch, options.run.repetitions(10));
        let group = Group {
            parameters: parameters![
                layout = self.layout.name, transport = self.transport, mode = flow.mode, type = flow.ty,
                buffer_bytes = buffer, queue_bytes = options.queue, sequences_a_run = sequences,
                bytes_a_run = sequences * payload, elements_a_run = sequences * flow.units,
                repetitions = repetitions,
            ],
            measure: Measure::Rate("mbit_s", payload as f64 * 8.0),
            contest: Contest::of_batches(repetitions, sequences),
            baseline: Box::new(self.stream(flow.mode, payload, sequences)?),
            entrants: Vec::new(),
        };
        let rows = self.compare(group, flow, &options.invocations, &options.servants)?;
        let counted = |(mut row, elements): (Row, u64)| {
            row.add_number("elements_received", elements as f64);
            row
        };
        Ok(rows.into_iter().map(counted).collect())
    }

    /// Measures single twoway calls.
    fn calls(&self, call: &str, calls: Calls, options: &TtcpOptions) -> Result<Vec<Row>, BenchError> {
        let payload = (calls.units * calls.ty.element_bytes()).max(VOID_REQUEST_BYTES);
        let (samples, repetitions) = (options.run.choose(50, 1000), options.run.repetitions(10));
        let parameters = parameters![layout = self.layout.name, transport = self.transport, call = call];
        let baseline = self.stream(Mode::Twoway, payload, 1)?;
        let group =
            Group::new(parameters, Measure::MICROSECONDS, Contest::of(samples, repetitions), baseline);
        let rows = self.compare(group, calls, &EVERY_INVOCATION, &ServantKind::ALL)?;
        Ok(rows.into_iter().map(|(row, _)| row).collect())
    }

    /// Measures the calls by every ORB, in each of these ways. The second results are the elements that the
    /// server of each row has received.
    fn compare(
        &self,
        group: Group<'_>,
        calls: Calls,
        invocations: &[Invocation],
        servants: &[ServantKind],
    ) -> Result<Vec<(Row, u64)>, BenchError> {
        let data = calls.data();
        let mut group = group;
        let mut received = Vec::new();
        for server in &self.servers {
            let ways = servants.iter().flat_map(|servant| invocations.iter().map(move |it| (*servant, *it)));
            for (servant, invocation) in ways {
                let calls = Calls { servant, invocation, ..calls };
                let label = &server.contender.label;
                if calls.suits(label.peer) {
                    let (side, elements) = server.side(group.entrants.len(), calls, &data)?;
                    let ways = (Some(invocation), Some(servant));
                    group.enter(Label { invocation: ways.0, servant: ways.1, ..label.clone() }, side);
                    received.push(elements);
                }
            }
        }
        let rows = group.run()?;
        Ok(rows.into_iter().zip(received.iter().map(|elements| elements.get())).collect())
    }

    /// A plain stream that carries as much as a batch of calls, and is answered equally often.
    fn stream(&self, mode: Mode, buffer_bytes: usize, buffers: usize) -> Result<Sample<'static>, BenchError> {
        let flow = Flow { buffer_bytes, buffers_an_answer: if mode == Mode::Oneway { buffers } else { 1 } };
        let mut sender = StreamSender::connect(&self.plain, self.queue.map(|bytes| bytes.0), flow)
            .map_err(BenchError::io(format!("connect to {}", self.plain)))?;
        let failed = || BenchError::io("send to the plain server");
        Ok(Box::new(move || sender.run(buffers).map(drop).map_err(failed())))
    }
}

/// The place of this suite's servers. One sequence is served after another, even if the machine is so slow that
/// a servant seems to be blocked.
fn venue(layout: Layout, options: &TtcpOptions) -> Venue<'_> {
    let settings = "threadsPerConnectionMax=1";
    let host = options.hosts.server_host.as_ref();
    Venue { settings, queue: options.queue, host, ..Venue::tcp(Some(layout)) }
}

/// Charts of throughput by the size of a buffer.
fn charts(rows: &[Row]) -> Vec<Chart> {
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

/// Receives bytes over a plain stream until standard input ends. The first line has its address.
fn plain_server(args: &RoleArgs) -> Result<(), BenchError> {
    let path = std::env::temp_dir().join(format!("ironorb-ttcp-{}", std::process::id()));
    let (listener, address) =
        StreamListener::bind(&args.host, (args.transport == Transport::Unix).then_some(&path))
            .map_err(BenchError::io("listen"))?;
    tell(&address)?;
    let queue_bytes = args.queue.map(|bytes| bytes.0);
    let served = serve_until_end(move || listener.serve(queue_bytes));
    let _ = std::fs::remove_file(path);
    served
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A row of octets with a rate, which the plain stream has too.
    fn row(mode: &str, buffer: usize, rate: f64) -> Row {
        let parameters = parameters![
            layout = "one core", transport = "tcp", mode = mode, type = "octet", buffer_bytes = buffer,
            peer = "ironorb", settings = "", invocation = "sii", servant = "static",
        ];
        Row::of_numbers(parameters, [("subject", rate), ("raw", rate)])
    }

    #[test]
    fn twoway_is_compared_with_oneway() {
        let rows = [row("oneway", 128 << 10, 100.0), row("twoway", 128 << 10, 50.0)];
        let ratios = paper::twoway_over_oneway(&rows).unwrap().rows.remove(0);
        assert_eq!((ratios.median("least"), ratios.median("most")), (Some(0.5), Some(0.5)));
    }

    #[test]
    fn each_mode_has_a_plot_with_a_line_for_each_side() {
        let mut rows: Vec<Row> = [1 << 10, 64 << 10, 1000].map(|buffer| row("oneway", buffer, 90.0)).into();
        rows.push(row("twoway", 1 << 10, 50.0));
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
