//! Elements in files: what durability costs, how soon a large file is there after a restart, and calls to elements that are not
//! in memory.

use std::fs::File;
use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

use ironorb::{Durability, Elements, FileOptions, Orb};
use rustix::fs::{Advice, fadvise};

use super::{COUNTS, Extent, ExtentsOptions, State, remote};
use crate::error::BenchError;
use crate::generated_extents::extents::Echo as _;
use crate::machine::{Layout, pin};
use crate::measure::{Contest, Entrant, Group, Label, Side as _, batch};
use crate::options::Run;
use crate::render::Table;
use crate::row::{Figure, Measure, Row, parameters};

const UPDATES: &str = "An update of a random element of a thousand, by one thread. baseline: in memory. With durability power an update returns once it\n\
    is on the disk.";

const RESTART: &str = "create: the file is made, all its room is taken, and all elements are written to the disk. restart: the file is opened again\n\
    with its pages out of memory, up to the first read of an element.";

const PAGES: &str = "A call to a random element of a file whose other part is not in memory: the paper's page miss, 12,096 us beside 520.";

/// The tables of elements in files.
pub(super) fn tables(options: &ExtentsOptions) -> Result<Vec<Table>, BenchError> {
    let folder = match &options.folder {
        Some(folder) => tempfile::tempdir_in(folder)?,
        None => tempfile::tempdir()?,
    };
    let most = options.objects.unwrap_or(u64::MAX).min(options.run.choose(100_000, COUNTS[3]));
    let count = options.file_objects.unwrap_or(most).max(1);
    let updates = updates(folder.path(), &options.run)?;
    let path = folder.path().join("large");
    let restart = restart(&path, count)?;
    let pages = pages(&path, count, &options.run)?;
    Ok(vec![
        Table::new("durability", "updates of elements in files, nanoseconds each", updates).notes(UPDATES),
        Table::new("restart", "an extent in a file", restart).notes(RESTART),
        Table::new("pages", "calls by the part of the file that is in memory, microseconds", pages)
            .notes(PAGES),
    ])
}

fn unusable(e: impl std::fmt::Display) -> BenchError {
    BenchError::Unusable(e.to_string())
}

fn updates(folder: &Path, run: &Run) -> Result<Vec<Row>, BenchError> {
    const FEW: u64 = 1_000;
    let side = |elements: Elements<State>, size: usize| {
        let mut random = fastrand::Rng::with_seed(7);
        batch(size, move || {
            elements.update(random.u64(..FEW), |state| *state = black_box(9)).map_err(unusable)
        })
    };
    let mut rows = Vec::new();
    for durability in [Durability::None, Durability::Process, Durability::Power] {
        let name = format!("{durability:?}").to_lowercase();
        crate::note(format_args!("measuring updates with durability {name}"));
        let options = FileOptions::new(folder.join(&name)).durability(durability);
        let filed = Elements::in_file(&options, FEW, |_| 0).map_err(unusable)?;
        let in_memory = Elements::in_memory(FEW, |_| 0).map_err(unusable)?;
        let size = if durability == Durability::Power { 10 } else { 1_000 };
        let contest = Contest {
            calls_per_sample: size,
            time_max: Some(Duration::from_secs(30)),
            ..Contest::of(run.choose(2, 40), run.repetitions(9))
        };
        let parameters = parameters![durability = name];
        let mut group = Group::new(parameters, Measure::NANOSECONDS, contest, side(in_memory, size));
        let side = Ok(Box::new(side(filed, size)) as Box<_>);
        group.entrants.push(Entrant { label: Label::ours(), parameters: Vec::new(), side });
        rows.extend(group.run()?);
    }
    Ok(rows)
}

fn open(path: &Path, count: u64) -> Result<Elements<State>, BenchError> {
    Elements::in_file(&FileOptions::new(path), count, |index| index as State).map_err(unusable)
}

/// Has no page of a closed file in memory.
fn forget_pages(path: &Path) -> Result<(), BenchError> {
    fadvise(&File::open(path)?, 0, None, Advice::DontNeed).map_err(unusable)
}

fn restart(path: &Path, count: u64) -> Result<Vec<Row>, BenchError> {
    crate::note(format_args!("making a file of {count} objects"));
    let begun = Instant::now();
    let elements = open(path, count)?;
    let create = begun.elapsed().as_secs_f64();
    let bytes = elements.bytes() as f64;
    drop(elements);
    forget_pages(path)?;
    let begun = Instant::now();
    let elements = open(path, count)?;
    let last = elements.read(count - 1, |state| *state).map_err(unusable)?;
    let restart = begun.elapsed().as_secs_f64();
    if last != (count - 1) as State {
        return Err(unusable("the file has lost an element"));
    }
    let numbers = [("create_s", create), ("restart_s", restart), ("bytes", bytes)];
    Ok(vec![Row::of_numbers(parameters![objects = count], numbers)])
}

fn pages(path: &Path, count: u64, run: &Run) -> Result<Vec<Row>, BenchError> {
    let mut rows = Vec::new();
    for percent in [100, 50, 0] {
        crate::note(format_args!("measuring calls with {percent} % of the file in memory"));
        forget_pages(path)?;
        let extent = Extent { count, elements: open(path, count)? };
        for index in 0..count / 100 * percent {
            black_box(extent.elements.read(index, |state| *state).map_err(unusable)?);
        }
        rows.push(row_of_pages(&extent, percent, run)?);
    }
    Ok(rows)
}

/// Single calls, because the first call to an element brings its page into memory.
fn row_of_pages(extent: &Extent, percent: u64, run: &Run) -> Result<Row, BenchError> {
    let Some(layout) = Layout::possible().into_iter().next() else { return Err(unusable("no processor")) };
    pin(layout.server)?;
    let server = Orb::builder().endpoint("iiop://127.0.0.1:0")?.build()?;
    let one = remote::serve(&server, extent)?;
    pin(layout.client)?;
    let client = Orb::builder().no_endpoint().build()?;
    let range = remote::range(&client, &one)?;
    let mut random = fastrand::Rng::with_seed(7);
    let mut call = || {
        let echo = range.get(random.u64(..extent.count)).ok_or_else(|| unusable("no reference"))?;
        black_box(echo.value()?);
        Ok(())
    };
    let mut nanos = vec![0; run.choose(50, 5_000)];
    call.each(&mut nanos)?;
    client.shutdown(true)?;
    server.shutdown(true)?;
    nanos.sort_unstable();
    let at = |part: f64| Figure::Number(nanos[(nanos.len() as f64 * part) as usize] as f64 / 1e3);
    let mean = nanos.iter().sum::<u64>() as f64 / nanos.len() as f64 / 1e3;
    let figures =
        [("mean_us", Figure::Number(mean)), ("p50_us", at(0.5)), ("p90_us", at(0.9)), ("p99_us", at(0.99))];
    let figures = figures.map(|(name, figure)| (name.to_owned(), figure)).into();
    Ok(Row {
        parameters: parameters![objects = extent.count, in_memory_percent = percent],
        outcome: Ok(figures),
    })
}
