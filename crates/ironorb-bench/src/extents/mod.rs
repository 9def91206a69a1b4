//! `ironorb bench extents`: objects that are elements of an extent, by their number: calls to random ones (the first test case
//! of MinORB's paper), the element within the process, how long it takes to make them, and elements in files.

mod access;
mod file;
mod remote;
mod rivals;

use std::time::Instant;

use ironorb::{Elements, Orb, Pages};

use crate::crowd::Rivals;
use crate::error::BenchError;
use crate::generated_extents::extents::EchoRef;
use crate::machine::Unpin;
use crate::options::Run;
use crate::render::{Report, Table};
use crate::row::{Row, parameters};
use crate::variant::Bytes;
pub(crate) use remote::range_of;

/// `ironorb bench extents`
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct ExtentsOptions {
    /// What to measure.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = Part::ALL)]
    pub(crate) parts: Vec<Part>,
    /// The most objects of an extent. Default: a billion, or as many as the free memory holds.
    #[arg(long)]
    pub(crate) objects: Option<u64>,
    /// The most objects of an extent in a file. Default 100,000,000, or what --objects says if that is less.
    #[arg(long)]
    pub(crate) file_objects: Option<u64>,
    /// The folder of the files. Default: the system's folder for such files.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) folder: Option<std::path::PathBuf>,
    #[command(flatten)]
    pub(crate) rivals: Rivals,
    /// The memory that the server of another ORB may take for its objects.
    #[arg(long, value_name = "BYTES", default_value_t = rivals::MEMORY)]
    pub(crate) peer_memory: Bytes,
    #[command(flatten)]
    pub(crate) run: Run,
}

/// A part of the suite. How long extents take to make is told with any of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Part {
    /// Elements within the process.
    Access,
    /// Calls to random elements.
    Calls,
    /// Calls to random objects of other ORBs.
    Rivals,
    /// Elements in files.
    Files,
}

impl Part {
    const ALL: [Part; 4] = [Part::Access, Part::Calls, Part::Rivals, Part::Files];
}

/// The numbers of objects. The first is what all others are compared with.
const COUNTS: [u64; 5] = [100, 10_000, 1_000_000, 100_000_000, 1_000_000_000];

/// Bytes of an element: those of the paper's object, its lock, and its mark.
const BYTES_EACH: u64 = 4 + 8;

/// A state: the four bytes of the paper's object.
type State = i32;

/// Elements, and how many.
struct Extent {
    count: u64,
    elements: Elements<State>,
}

/// Serves so many elements, and gives the reference to the first.
pub(crate) fn serve_in_memory(server: &Orb, count: u64) -> Result<EchoRef, BenchError> {
    let elements = Elements::in_memory(count, |index| index as State);
    let elements = elements.map_err(|e| BenchError::Unusable(e.to_string()))?;
    remote::serve(server, &Extent { count, elements })
}

/// Runs `ironorb bench extents`.
pub(crate) fn measure(options: &ExtentsOptions) -> Result<Report, BenchError> {
    let mut report = Report::new("extents", "objects by their number", &options.run);
    let _unpin = Unpin::later();
    let counts = counts(options);
    let (extents, created) = create(&counts)?;
    report
        .tables
        .push(Table::new("creation", "extents in memory, all of it taken at once", created).notes(CREATION));
    let is_asked = |part: Part| options.parts.contains(&part);
    if is_asked(Part::Access) {
        report.tables.push(access::table(&extents, &options.run)?);
    }
    if is_asked(Part::Calls) {
        report.tables.push(remote::table(&extents, &options.run)?);
    }
    if is_asked(Part::Rivals) {
        report.tables.push(rivals::table(&extents, options)?);
    }
    if is_asked(Part::Calls) {
        report.tables.push(remote::paper());
    }
    drop(extents);
    if is_asked(Part::Files) {
        report.tables.extend(file::tables(options)?);
    }
    Ok(report)
}

const CREATION: &str = "bytes each: of memory, beside the four of the state eight. pages: huge, or joined to such by the system.";

/// The numbers of objects that the options and the memory allow.
fn counts(options: &ExtentsOptions) -> Vec<u64> {
    let most = options.objects.unwrap_or(options.run.choose(1_000_000, COUNTS[COUNTS.len() - 1]));
    let mut counts: Vec<u64> = COUNTS.into_iter().filter(|count| *count <= most).collect();
    if counts.last() != Some(&most) {
        counts.push(most);
    }
    let needed: u64 = counts.iter().map(|count| count * BYTES_EACH).sum();
    crate::note(format_args!("extents of up to {most} objects need {:.1} GB of memory", needed as f64 / 1e9));
    counts
}

/// Makes the extents. Where the memory does not hold the largest, says so and goes on with the others.
fn create(counts: &[u64]) -> Result<(Vec<Extent>, Vec<Row>), BenchError> {
    let (mut extents, mut rows) = (Vec::new(), Vec::new());
    for count in counts.iter().copied() {
        let begun = Instant::now();
        let row = match Elements::in_memory(count, |index| index as State) {
            Ok(elements) => {
                let row = row_of_creation(&elements, begun.elapsed().as_secs_f64());
                extents.push(Extent { count, elements });
                row
            }
            Err(why) => Row { parameters: parameters![objects = count], outcome: Err(why.to_string()) },
        };
        rows.push(row);
    }
    Ok((extents, rows))
}

fn row_of_creation(elements: &Elements<State>, seconds: f64) -> Row {
    let pages = match elements.pages() {
        Pages::Huge => "huge",
        Pages::Joined => "joined",
        Pages::OfFile => "of a file",
    };
    let count = elements.len() as f64;
    let numbers = [
        ("seconds", seconds),
        ("objects_s", count / seconds),
        ("bytes_each", elements.bytes() as f64 / count.max(1.0)),
    ];
    Row::of_numbers(parameters![objects = elements.len(), pages = pages], numbers)
}
