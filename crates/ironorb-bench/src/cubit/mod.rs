//! `ironorb bench cubit`: IDL_Cubit of the paper on TAO 1.0 on five systems (RT-99, figure 7). The client asks for cubes of each type as fast as it can, and checks every result.

pub(crate) mod rows;

use ironorb::TypedRef;
use ironorb_baseline::raw::Exchange;

use crate::contender::{self, Contender, Running, Venue};
use crate::error::{BenchError, select};
use crate::generated_cubit::idl_cubit::CubitRef;
use crate::machine::{Layout, Placement, Unpin, pin};
use crate::measure::{Contest, Group, Side};
use crate::options::{Run, Sides};
use crate::plain::{self, Plain};
use crate::realtime::PAPER_MACHINE;
use crate::render::{Report, Table};
use crate::role::{Role, RoleArgs, serve};
use crate::row::{Measure, Row, parameters};
use crate::variant::{Mode, Transport, name};
use rows::{CubitRow, CubitServant, VALUES};

/// `ironorb bench cubit`
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct CubitOptions {
    /// Run only these rows, separated by commas: `void`, `octet`, `short`, `long`, `many`, `longs-4`,
    /// `manies-1024`…
    #[arg(long, value_delimiter = ',')]
    pub(crate) rows: Vec<String>,
    /// Whether the client waits.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = Mode::ALL)]
    pub(crate) modes: Vec<Mode>,
    #[command(flatten)]
    pub(crate) sides: Sides,
    /// The processors that client and server are pinned to.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [Placement::OneCore])]
    pub(crate) placements: Vec<Placement>,
    #[command(flatten)]
    pub(crate) run: Run,
}

pub(crate) const ROLES: &[Role] = &[Role { name: "cubit-server", run: server }];

const NOTES: &str = "baseline: a plain blocking socket with as many bytes, in turns with the others. us: of a call; for oneways a hundredth of a\n\
    batch whose last call is answered. over baseline: ratios of the median calls of one repetition, their median and spread.\n\
    paper: figure 7. The paper's machine has a Pentium II of 450 MHz (section 3.1.1); this page once said 300 MHz.";

/// Runs `ironorb bench cubit`.
pub(crate) fn measure(options: &CubitOptions) -> Result<Report, BenchError> {
    let values = select(VALUES.to_vec(), &options.rows, |value| value.name())?;
    let mut report = Report::new("cubit", "IDL_Cubit", &options.run);
    let mut rows = Vec::new();
    let _unpin = Unpin::later();
    for layout in Layout::of(&options.placements) {
        pin(layout.server)?;
        let plain = Plain::start(plain::server_of(Transport::Tcp))?;
        let contenders = contender::start("cubit", &options.sides, Venue::tcp(Some(layout)))?;
        for row in CubitRow::all(&values, &options.modes) {
            crate::note(format_args!("measuring {} {} ({})", row.value.name(), name(row.mode), layout.name));
            rows.extend(one(row, layout, &plain, &contenders, &options.run)?);
        }
    }
    let table = Table::new("row", "IDL_Cubit, microseconds a call", rows);
    report.tables.push(table.blocks(&["layout"]).notes(NOTES));
    report.tables.push(paper());
    Ok(report)
}

/// What the text of the paper tells of its figure 7.
fn paper() -> Table {
    let rows = [
        ("Linux 2.0.34", "void", Mode::Twoway, 236.0),
        ("Linux 2.0.34", "long", Mode::Twoway, 236.0),
        ("LynxOS 3.0", "void", Mode::Twoway, 259.0),
        ("LynxOS 3.0", "long", Mode::Twoway, 262.0),
        ("LynxOS 3.0", "void (about)", Mode::Oneway, 72.0),
        ("Solaris 2.6", "void, long (about)", Mode::Twoway, 400.0),
        ("Solaris 2.6", "void (about)", Mode::Oneway, 175.0),
        ("VxWorks 5.3.1", "void", Mode::Twoway, 234.0),
        ("VxWorks 5.3.1", "long", Mode::Twoway, 239.0),
        ("Windows NT 4.0", "void (about)", Mode::Twoway, 310.0),
        ("Windows NT 4.0", "long", Mode::Twoway, 320.0),
    ];
    let row = |(system, row, mode, us)| {
        Row::of_numbers(parameters![system = system, row = row, mode = mode], [("us", us)])
    };
    Table::new("paper", "IDL_Cubit in the paper (figure 7), microseconds a call", rows.map(row).into())
        .elsewhere(PAPER_MACHINE)
}

fn one(
    row: CubitRow,
    layout: Layout,
    plain: &Plain,
    contenders: &[Contender],
    run: &Run,
) -> Result<Vec<Row>, BenchError> {
    let calls_per_sample = row.calls_per_sample();
    let calls: usize = run.choose(200, 3_000);
    let samples = calls.div_ceil(calls_per_sample);
    let contest =
        Contest { calls_per_sample, warm_up: samples.min(300), ..Contest::of(samples, run.repetitions(7)) };
    let parameters = parameters![layout = layout.name, row = row.value.name(), mode = row.mode];
    let mut group = Group::new(parameters, Measure::MICROSECONDS, contest, plain.sample(exchange(row)?)?);
    for contender in contenders {
        let command = || format!("cubit 0 {} {} {}", name(row.mode), row.value.words(), rows::ONEWAYS);
        let ours = |running: &Running| {
            Ok(Box::new(row.sample(running.object.clone().narrow_unchecked())) as Box<dyn Side>)
        };
        group.enter(contender.label.clone(), contender.side(0, ours, command)?);
    }
    group.run()
}

/// Bytes on the wire of one sample.
pub(crate) fn exchange(row: CubitRow) -> Result<Exchange, BenchError> {
    let requests = |_| row.calls_per_sample();
    plain::count(|poa| poa.activate(CubitServant), requests, |relayed| row.sample(relayed))
}

/// Serves a cubit until standard input ends. Its first line is the reference.
fn server(args: &RoleArgs) -> Result<(), BenchError> {
    plain::raise_descriptors();
    let mut builder = args.server()?;
    // The suites measure the cost of connections, so the limit on their number must not interfere.
    builder.config().server_connections_max = 100_000;
    serve(builder, |orb| {
        let cubit: CubitRef = orb.root_poa().activate(CubitServant)?;
        Ok(cubit.object().to_ior_string())
    })
}
