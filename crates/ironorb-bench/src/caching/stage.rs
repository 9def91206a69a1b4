//! The server of the cases, in a process of its own, and clients of it.

use std::net::TcpListener;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use ironorb::cache::{Cell, CellRef};
use ironorb::{Orb, SystemException, TypedRef as _};
use ironorb_baseline::relay::redirected;
use rustix::time::{ClockId, clock_gettime};

use crate::error::BenchError;
use crate::generated_cases::caching_cases as idl;
use crate::generated_cases::caching_cases::Stage as _;
use crate::generated_cases::caching_cases::{
    ItemRef, ItemState, Life, StageRef as StageObject, StampRef, StampState,
};
use crate::machine::{Layout, Unpin, pin};
use crate::plain::raise_descriptors;
use crate::process::Process;
use crate::role::{Role, RoleArgs, serve};

pub(super) const ROLE: Role = Role { name: NAME, run: server };

const NAME: &str = "caching-server";

/// References in one reply: some 300 KiB.
const REFERENCES_PER_CALL: u32 = 1_000;

/// What a server has, and where it is.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Setup {
    /// How many items it has.
    pub(super) objects: usize,
    /// How often a thread of it writes its stamp in a second; 0 for never.
    pub(super) updates_hz: u32,
    /// The processor that it stays on.
    pub(super) core: Option<usize>,
    /// The port at which it listens and the port that its references name, where a relay stands between.
    pub(super) ports: Option<(u16, u16)>,
}

impl Setup {
    /// A server of items.
    pub(crate) fn of(objects: usize, layout: Layout) -> Setup {
        Setup { objects, core: Some(layout.server), ..Setup::default() }
    }
}

/// A server that runs.
pub(crate) struct Stage {
    process: Process,
    pub(super) reference: String,
}

impl Stage {
    pub(crate) fn start(setup: &Setup) -> Result<Stage, BenchError> {
        let _unpin = Unpin::later();
        setup.core.map_or(Ok(()), pin)?;
        let mut args = vec![format!("--samples={}", setup.objects), format!("--setup={}", setup.updates_hz)];
        if let Some((listened, published)) = setup.ports {
            args.push(format!("--endpoint=iiop://127.0.0.1:{listened}"));
            args.push(format!("--at=127.0.0.1:{published}"));
        }
        let mut process = Process::start(&[], NAME, &args)?;
        let reference = process.address()?;
        Ok(Stage { process, reference })
    }

    pub(crate) fn client(&self, items: Range<usize>) -> Result<Client, BenchError> {
        Client::of(&self.reference, items)
    }

    /// The server.
    pub(crate) fn process(&self) -> &Process {
        &self.process
    }

    pub(crate) fn end(self) -> Result<(), BenchError> {
        self.process.end()
    }
}

/// A client with an ORB of its own.
pub(crate) struct Client {
    orb: Orb,
    pub(super) stage: StageObject,
    pub(crate) items: Vec<ItemRef>,
}

impl Client {
    /// A client of the stage with this reference, with these of its items.
    pub(super) fn of(stage: &str, items: Range<usize>) -> Result<Client, BenchError> {
        let orb = Orb::builder().no_endpoint().build()?;
        let stage: StageObject = orb.string_to_object(stage)?.narrow_unchecked();
        let mut client = Client { orb, stage, items: Vec::with_capacity(items.len()) };
        let (mut next, end) = (items.start as u32, items.end as u32);
        while next < end {
            let count = REFERENCES_PER_CALL.min(end - next);
            client.items.extend(client.stage.find_items(next, count)?.into_iter().flatten());
            next += count;
        }
        Ok(client)
    }

    /// Has the client hold its first items.
    pub(crate) fn hold(&self, count: usize) -> Result<(), BenchError> {
        let held = &self.items[..count];
        // The first read of all opens the session, the second one fills the place.
        held.first().into_iter().chain(held).try_for_each(|item| item.value().map(drop))?;
        Ok(())
    }

    /// Has the items be called at this port, past the relay that their references name.
    pub(super) fn directly(mut self, port: u16) -> Result<Client, BenchError> {
        for item in &mut self.items {
            let (reference, _) = redirected(item.object(), port).map_err(BenchError::io("pass the relay"))?;
            *item = self.orb.ior_to_object(reference)?.narrow_unchecked();
        }
        Ok(self)
    }

    pub(crate) fn end(self) -> Result<(), BenchError> {
        Ok(self.orb.shutdown(true)?)
    }
}

/// A port that is free now.
pub(super) fn free_port() -> Result<u16, BenchError> {
    let listener = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    Ok(listener.map_err(BenchError::io("find a port"))?.port())
}

/// Nanoseconds of the steady clock, which all processes of the machine read alike.
pub(super) fn steady_nanos() -> i64 {
    let time = clock_gettime(ClockId::Boottime);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// A servant of the paper's object.
pub(super) struct Item(pub(super) Cell<ItemState>);

impl idl::Item for Item {
    fn cell(&self) -> CellRef<'_, ItemState> {
        (&self.0).into()
    }

    fn write(&self, value: i32) -> Result<(), SystemException> {
        self.0.update(|mut state| state.set_value(value));
        Ok(())
    }
}

struct Stamp(Cell<StampState>);

impl idl::Stamp for Stamp {
    fn cell(&self) -> CellRef<'_, StampState> {
        (&self.0).into()
    }
}

type Lives = Arc<Mutex<Vec<Life>>>;

struct Objects {
    items: Vec<ItemRef>,
    stamp: StampRef,
    lives: Lives,
}

impl idl::Stage for Objects {
    fn find_items(&self, first: u32, count: u32) -> Result<idl::Items, SystemException> {
        let wanted = self.items.iter().skip(first as usize).take(count as usize);
        Ok(wanted.cloned().map(Some).collect())
    }

    fn find_stamp(&self) -> Result<Option<StampRef>, SystemException> {
        Ok(Some(self.stamp.clone()))
    }

    fn ended_lives(&self) -> Result<idl::Lives, SystemException> {
        Ok(self.lives.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }
}

fn server(args: &RoleArgs) -> Result<(), BenchError> {
    raise_descriptors();
    let mut builder = args.server()?;
    if !args.at.is_empty() {
        builder = builder.publish(&args.at);
    }
    let updates_hz: u32 = args.setup.parse().unwrap_or(0);
    serve(builder, |orb| {
        let poa = orb.root_poa();
        let item = |_| poa.activate(Item(Cell::new(ItemState { value: 0 })));
        let items = (0..args.samples).map(item).collect::<Result<Vec<ItemRef>, _>>()?;
        let cell = Cell::new(StampState { written_at: steady_nanos() });
        let (stamp, lives) = (poa.activate(Stamp(cell.clone()))?, Lives::default());
        if updates_hz > 0 {
            let (lives, period) = (lives.clone(), Duration::from_secs(1) / updates_hz);
            std::thread::spawn(move || update(&cell, period, &lives));
        }
        let stage: StageObject = poa.activate(Objects { items, stamp, lives })?;
        Ok(stage.object().to_ior_string())
    })
}

/// Writes the moment of each write, until the process ends.
fn update(cell: &Cell<StampState>, period: Duration, lives: &Lives) {
    let mut written_at = cell.read(|state| state.written_at);
    let mut next = Instant::now();
    loop {
        next += period;
        std::thread::sleep(next.saturating_duration_since(Instant::now()));
        let now = steady_nanos();
        cell.update(|mut state| state.set_written_at(now));
        let life = Life { written_at, replaced_by: steady_nanos() };
        lives.lock().unwrap_or_else(PoisonError::into_inner).push(life);
        written_at = now;
    }
}
