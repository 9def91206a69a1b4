//! `ironorb bench cubit`: IDL_Cubit of TAO's paper on real-time ORBs ("Evaluating ... ORB endsystems", RT-99): the client
//! asks for cubes of each type as fast as it can, and looks at every one that it is given.

pub(crate) mod contender;
pub(crate) mod rows;
pub(crate) mod servant;

use ironorb::Orb;

pub use contender::Sides;
pub(crate) use contender::server;

use crate::contest::{Contest, RawSide, Side};
use crate::error::BenchError;
use crate::generated_cubit::idl_cubit::CubitRef;
use crate::machine::{Layout, Placement, Unpin, load, pin};
use crate::process::Process;
use crate::suite::{Files, Measure, Suite, SuiteReport, rows};
use crate::variant::{Mode, Peer};
use contender::{Asked, Client, Contender, Ours, start};
use ironorb_baseline::raw::Exchange;
use ironorb_baseline::relay::Relay;
use rows::{CubitRow, VALUES};

/// `ironorb bench cubit`
#[derive(Debug, Clone, clap::Args)]
pub struct CubitOptions {
    /// Only these rows, separated by commas: `void`, `octet`, `short`, `long`, `many`, `longs-4`, `manies-1024`…
    #[arg(long, value_delimiter = ',')]
    pub rows: Vec<String>,
    /// Whether the client waits.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = Mode::ALL)]
    pub modes: Vec<Mode>,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub sides: Sides,
    /// Which processors client and server are kept on.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [Placement::OneCore])]
    pub placements: Vec<Placement>,
    /// Turns that each side has in a row. Default 7.
    #[arg(long)]
    pub repetitions: Option<usize>,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub files: Files,
    /// Few calls: shows that it works, not what it costs.
    #[arg(long)]
    pub quick: bool,
}

const SUITE: Suite = Suite {
    name: "cubit",
    title: "IDL_Cubit, microseconds a call",
    measure: Measure::Micros,
    notes: "baseline: a plain blocking socket with the same bytes, in turn. us: the median call; of oneways a hundredth of a batch\n\
            whose last call is answered. ratio: over the baseline of the same repetition, their median and spread.\n\
            In the paper (TAO 1.0, Pentium II of 300 MHz): 236 us for void and long on Linux, 259 and 262 on LynxOS, about 400 on\n\
            Solaris, 234 and 239 on VxWorks, about 310 and 320 on NT; oneways 72 on LynxOS, 175 on Solaris.",
};

/// Carries out `ironorb bench cubit`.
pub fn cubit(options: &CubitOptions) -> Result<SuiteReport, BenchError> {
    let chosen = chosen(options)?;
    let mut report = SuiteReport::new(SUITE);
    let _unpin = Unpin::later();
    for layout in Layout::of(&options.placements) {
        pin(layout.server)?;
        let mut raw = Process::start(&[], "raw-server", &[])?;
        let raw_address = raw.address()?;
        // Of the calls' bytes: not one of those who are measured.
        let mut counted = Process::start(&[], "cubit-server", &[])?;
        let counted = (counted.address()?, counted);
        let contenders = start(&options.sides, Some(layout))?;
        for row in &chosen {
            eprintln!("measuring {} ({})", row.title(), layout.name);
            let exchange = exchange(*row, &counted.0)?;
            report.rows.extend(measure(*row, layout, &raw_address, exchange, &contenders, options)?);
        }
        for peer in [Peer::Omniorb, Peer::Jacorb] {
            report.goal_ahead(layout.name, peer);
        }
    }
    report.write(&options.files)?;
    Ok(report)
}

fn chosen(options: &CubitOptions) -> Result<Vec<CubitRow>, BenchError> {
    let known = || VALUES.map(|value| value.name());
    if let Some(name) = options.rows.iter().find(|name| !known().contains(name)) {
        return Err(BenchError::UnknownRow { name: name.clone(), known: known().join(", ") });
    }
    let values: Vec<_> = VALUES
        .into_iter()
        .filter(|value| options.rows.is_empty() || options.rows.contains(&value.name()))
        .collect();
    Ok(CubitRow::all(&values, &options.modes))
}

fn measure(
    row: CubitRow,
    layout: Layout,
    raw: &str,
    exchange: Exchange,
    contenders: &[Contender],
    options: &CubitOptions,
) -> Result<Vec<crate::suite::SuiteRow>, BenchError> {
    let calls_per_sample = row.calls_per_sample();
    let calls: usize = if options.quick { 200 } else { 3_000 };
    let contest = Contest {
        samples: calls.div_ceil(calls_per_sample),
        repetitions: options.repetitions.unwrap_or(if options.quick { 2 } else { 7 }).max(1),
        calls_per_sample,
        warm_up: calls.div_ceil(calls_per_sample).min(300),
        time_max: None,
    };
    let load = load();
    let mut sides: Vec<Option<Box<dyn Side + '_>>> = vec![Some(Box::new(RawSide::connect(raw, exchange)?))];
    for contender in contenders {
        sides.push(match contender.running.as_ref().map(|running| &running.client) {
            None => None,
            Some(Client::Ours { cubit, .. }) => Some(Box::new(Ours(row.sample(cubit)))),
            Some(Client::Theirs(client)) => {
                let mode = crate::variant::name(row.mode);
                let command = format!("cubit 0 {mode} {} {}", row.value.words(), rows::ONEWAYS);
                Some(Box::new(Asked::prepared(client, &command)?))
            }
        });
    }
    let results = contest.run(&mut sides)?;
    let who: Vec<_> = contenders.iter().map(|contender| contender.who.clone()).collect();
    Ok(rows(layout.name, &row.title(), &who, &results, load))
}

/// Bytes on the wire of one sample, in the steady state.
pub(crate) fn exchange(row: CubitRow, reference: &str) -> Result<Exchange, BenchError> {
    let orb = Orb::builder().no_endpoint().build()?;
    let relay = Relay::to(&orb.string_to_object(reference)?).map_err(BenchError::io("relay calls"))?;
    let cubit: CubitRef = orb.ior_to_object(relay.reference().clone())?.narrow_unchecked();
    let mut sample = row.sample(&cubit);
    // The first call tells the code sets.
    sample()?;
    let (requests_before, replies_before) = relay.counted();
    sample()?;
    let (requests_after, replies_after) = relay.counted();
    drop(sample);
    orb.shutdown(false)?;
    let requests = row.calls_per_sample();
    Ok(Exchange {
        requests,
        request_bytes: (requests_after - requests_before) / requests,
        reply_bytes: replies_after - replies_before,
    })
}
