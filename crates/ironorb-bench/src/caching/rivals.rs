//! Redis with the cache of its client beside cached attributes: a hit, and the time from a write until another client reads it.
//!
//! Redis's client is a program of its own, `ironorb-bench-redis`, which lies beside this one once it is built. So no library of it
//! comes into this program.

use std::cell::RefCell;
use std::hint::black_box;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::rc::Rc;
use std::time::{Duration, Instant};

use ironorb::cache::ReadOptions;

use super::stage::{Client, Setup, Stage, free_port};
use crate::error::BenchError;
use crate::generated_cases::caching_cases::Item as _;
use crate::machine::{Layout, ONE_CORE, Placement, Unpin, pin};
use crate::measure::{Contest, Entrant, Group, Label, Side};
use crate::options::Run;
use crate::process::{Process, find_program};
use crate::render::Table;
use crate::row::{Measure, Row, parameters};

const NOTES: &str = "baseline: Redis over loopback, RESP3, with the client-side cache of the crate redis, in turns; all on one processor. hit: a read\n\
    of a value that the client's cache holds. call: a read by a request to the server. visible: from the begin of a write until\n\
    another client, which reads without a pause, has read it; Redis's server tells that client at once, this ORB's client asks\n\
    once its lag is over.";

/// The lags of the reader that waits for a write.
const LAGS: [Duration; 3] = [Duration::from_micros(10), Duration::from_micros(100), Duration::from_millis(1)];

pub(super) fn table(run: &Run) -> Result<Table, BenchError> {
    let title = "Redis with its client's cache, and cached attributes";
    let table = Table::new("redis", title, Vec::new()).blocks(&["layout"]).notes(NOTES);
    let Some(layout) = Layout::of(&[Placement::OneCore]).pop() else { return Ok(table) };
    crate::note(format_args!("measuring Redis with its client's cache"));
    let _unpin = Unpin::later();
    pin(layout.client)?;
    let rows = match Redis::start() {
        Ok(redis) => rows(run, layout, redis)?,
        Err(BenchError::Unusable(why)) => {
            vec![Row { parameters: parameters![row = "redis"], outcome: Err(why) }]
        }
        Err(e) => return Err(e),
    };
    Ok(Table { rows, ..table })
}

fn rows(run: &Run, layout: Layout, redis: Redis) -> Result<Vec<Row>, BenchError> {
    let stage = Stage::start(&Setup::of(1, layout))?;
    let (writer, reader) = (stage.client(0..1)?, stage.client(0..1)?);
    reader.hold(1)?;
    let redis = Rc::new(RefCell::new(redis));
    let ours = Ours { writer: &writer, reader: &reader };
    let mut rows = Vec::new();
    rows.extend(ours.compare(run, &redis, "hit", (run.choose(100, 20_000), Ours::hits))?);
    rows.extend(ours.compare(run, &redis, "call", (run.choose(20, 2_000), Ours::calls))?);
    rows.extend(ours.compare_visible(run, &redis, run.choose(10, 300))?);
    drop(redis);
    reader.end()?;
    writer.end()?;
    stage.end()?;
    Ok(rows)
}

/// What makes so many calls.
type Batch<'a> = fn(Ours<'a>, usize) -> Result<(), BenchError>;

/// A writer and a reader of one item.
#[derive(Clone, Copy)]
struct Ours<'a> {
    writer: &'a Client,
    reader: &'a Client,
}

impl<'a> Ours<'a> {
    fn compare(
        self,
        run: &Run,
        redis: &Rc<RefCell<Redis>>,
        row: &'static str,
        (batch, ours): (usize, Batch<'a>),
    ) -> Result<Vec<Row>, BenchError> {
        let contest = Contest::of_batches(run.repetitions(15), batch);
        let mut group = Group::new(
            parameters![layout = ONE_CORE, row = row],
            Measure::MICROSECONDS,
            contest,
            theirs(redis, row, batch),
        );
        group.enter(Label::ours(), Ok(Box::new(move || ours(self, batch))));
        group.run()
    }

    fn compare_visible(
        self,
        run: &Run,
        redis: &Rc<RefCell<Redis>>,
        batch: usize,
    ) -> Result<Vec<Row>, BenchError> {
        let contest = Contest::of_batches(run.repetitions(15), batch);
        let baseline = theirs(redis, "visible", batch);
        let mut group = Group::new(
            parameters![layout = ONE_CORE, row = "visible"],
            Measure::MICROSECONDS,
            contest,
            baseline,
        );
        for (place, lag) in (0..).zip(LAGS) {
            let mut next = place << 24;
            let side = Box::new(move || self.visible(lag, batch, &mut next));
            let parameters = parameters![lag_us = lag.as_micros() as u64];
            group.entrants.push(Entrant { label: Label::ours(), parameters, side: Ok(side) });
        }
        group.run()
    }

    fn hits(self, batch: usize) -> Result<(), BenchError> {
        (0..batch).try_for_each(|_| {
            black_box(black_box(&self.reader.items[0]).value()?);
            Ok(())
        })
    }

    fn calls(self, batch: usize) -> Result<(), BenchError> {
        (0..batch).try_for_each(|_| {
            black_box(self.writer.items[0].value_with(&ReadOptions::new().remote())?);
            Ok(())
        })
    }

    /// Writes values that no other side writes, and waits for each.
    fn visible(self, lag: Duration, batch: usize, next: &mut i32) -> Result<(), BenchError> {
        let options = ReadOptions::new().lag(lag);
        for _ in 0..batch {
            *next += 1;
            self.writer.items[0].write(*next)?;
            while self.reader.items[0].value_with(&options)?.value != *next {}
        }
        Ok(())
    }
}

/// A side that the program of Redis's client measures.
struct Theirs {
    redis: Rc<RefCell<Redis>>,
    order: String,
}

fn theirs(redis: &Rc<RefCell<Redis>>, row: &str, batch: usize) -> Theirs {
    let order = match row {
        "visible" => format!("visible {batch}"),
        row => format!("{row}s {batch}"),
    };
    Theirs { redis: redis.clone(), order }
}

impl Side for Theirs {
    fn each(&mut self, nanos: &mut [u64]) -> Result<(), BenchError> {
        for nanos in nanos {
            let told = self.redis.borrow_mut().client.ask(&self.order)?;
            *nanos = told.parse().map_err(|_| BenchError::process(CLIENT, "tells no nanoseconds"))?;
        }
        Ok(())
    }
}

const CLIENT: &str = "ironorb-bench-redis";

/// A Redis server that keeps nothing on disk, and its client.
struct Redis {
    client: Process,
    _server: Server,
}

impl Redis {
    /// [`BenchError::Unusable`] says what is not installed or not built.
    fn start() -> Result<Redis, BenchError> {
        let (server, client) = (find_program("redis-server", "redis-server")?, client_program()?);
        let port = free_port()?;
        let address = format!("127.0.0.1:{port}");
        let server = Server::start(&server, port)?;
        let begun = Instant::now();
        while TcpStream::connect(&address).is_err() {
            if begun.elapsed() > STARTING_MAX {
                return Err(BenchError::process("redis-server", "does not listen"));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let mut client = Process::start_program(CLIENT, &client, &[&address])?;
        client.address()?;
        Ok(Redis { client, _server: server })
    }
}

/// The longest time for a server to listen.
const STARTING_MAX: Duration = Duration::from_secs(10);

fn client_program() -> Result<PathBuf, BenchError> {
    let this = std::env::current_exe().map_err(BenchError::io("find this program"))?;
    let program = this.with_file_name(CLIENT);
    let missing = "the client of Redis is not built; in the profile of this program: cargo build -p ironorb-bench-redis";
    program.is_file().then_some(program).ok_or_else(|| BenchError::Unusable(missing.to_owned()))
}

struct Server(Child);

impl Server {
    fn start(program: &Path, port: u16) -> Result<Server, BenchError> {
        let port = port.to_string();
        let args =
            ["--port", &port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--daemonize", "no"];
        let mut command = Command::new(program);
        command.args(args).stdin(Stdio::null()).stdout(Stdio::null()).current_dir(std::env::temp_dir());
        Ok(Server(command.spawn().map_err(BenchError::io("start redis-server"))?))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It has nothing to save.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
