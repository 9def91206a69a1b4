//! The paper's second case: writes a second of several clients, each with many calls in flight.

use std::collections::VecDeque;
use std::ops::Range;

use ironorb::cache::Cell;
use ironorb::{Pending, SystemException};
use ironorb_baseline::raw::Exchange;

use super::paper;
use super::pipeline::{Pipeline, Writes};
use super::stage::{Client, Item, Setup, Stage};
use crate::chart::{Axis, Chart, Plot, Scale};
use crate::concurrency::{ANYWHERE, threads};
use crate::crowd::{Crowd, Rivals};
use crate::error::BenchError;
use crate::generated_cases::caching_cases::{Item as _, ItemAsync as _, ItemRef, ItemState};
use crate::machine::{Layout, Placement, Unpin, pin};
use crate::measure::{Contest, Entrant, Group, Label, SendSample};
use crate::options::Run;
use crate::plain;
use crate::render::Table;
use crate::row::{Measure, Row, parameters};

const CLIENTS: [usize; 9] = [1, 2, 3, 4, 5, 6, 7, 8, 9];

/// Calls of each client in flight.
const IN_FLIGHT: usize = 32;

const NOTES: &str = "Writes of random objects; nobody caches. Each client is a thread with an ORB and a connection of its own and 32 calls in\n\
    flight; the clients share the objects out among them. baseline: plain sockets with as many bytes, as many messages in flight\n\
    and a thread for each connection, which write each message by itself; in turns. together: plain sockets that write all\n\
    that they can at once. asynchronous: omniORB's own asynchronous calls (AMI), as many in flight; it makes each on a thread\n\
    of a pool, with up to 64 connections. synchronous: as many client threads of omniORB, each of which waits for each call.\n\
    Threads are pinned where --placements says so. of baseline: the fraction of its rate in the same repetition.";

pub(super) fn table(
    run: &Run,
    rivals: &Rivals,
    placements: &[Placement],
    objects: usize,
) -> Result<Table, BenchError> {
    let exchange = plain::count(
        |poa| poa.activate(Item(Cell::new(ItemState { value: 0 }))),
        |_| 1,
        |item: ItemRef| Box::new(move || Ok(item.write(1)?)),
    )?;
    let pinned = Layout::of(placements).into_iter().map(Some);
    let layouts: Vec<_> = if placements.is_empty() { vec![None] } else { pinned.collect() };
    let mut rows = Vec::new();
    for layout in layouts {
        rows.extend(of_layout(run, rivals, layout, exchange, objects)?);
    }
    let charts = charts(&rows);
    let title = "case 2: writes a second of clients with many calls in flight";
    Ok(Table::new("throughput", title, rows).blocks(&["layout"]).notes(NOTES).charts(charts))
}

/// The rows of clients and servers that stay on these processors, or on none.
fn of_layout(
    run: &Run,
    rivals: &Rivals,
    layout: Option<Layout>,
    exchange: Exchange,
    objects: usize,
) -> Result<Vec<Row>, BenchError> {
    let _unpin = Unpin::later();
    let core = layout.map(|layout| layout.server);
    // The server of plain sockets stays where this thread is when it starts.
    core.map_or(Ok(()), pin)?;
    let (stage, plain) = (Stage::start(&Setup { objects, core, ..Setup::default() })?, Pipeline::start()?);
    // So do the threads of clients.
    layout.map_or(Ok(()), |layout| pin(layout.client))?;
    let crowds = rivals.of_activated(objects, layout)?;
    let calls = run.choose(200, 20_000);
    let place = layout.map_or(ANYWHERE, |layout| layout.name);
    let mut rows = Vec::new();
    for clients in run.choose(&CLIENTS[..2], &CLIENTS) {
        crate::note(format_args!("measuring {clients} clients with {IN_FLIGHT} calls in flight, {place}"));
        let sides = (&stage, &plain, &crowds[..]);
        rows.extend(group(run, sides, (place, exchange), (*clients, calls, objects))?);
    }
    plain.end()?;
    stage.end()?;
    Ok(rows)
}

fn group(
    run: &Run,
    (stage, plain, crowds): (&Stage, &Pipeline, &[Crowd]),
    (place, exchange): (&str, Exchange),
    (clients, calls, objects): (usize, usize, usize),
) -> Result<Vec<Row>, BenchError> {
    let burst = (calls / clients).max(1);
    let sockets = |writes| threads(clients, 1, || plain.sample(exchange, writes, (burst, IN_FLIGHT)));
    let mut number = 0;
    let ours = threads(clients, 1, || {
        number += 1;
        orb(stage, (number - 1) * objects / clients..number * objects / clients, burst)
    })?;
    let contest = Contest::of_batches(run.repetitions(9), burst * clients);
    let mut group = Group::new(
        parameters![layout = place, clients = clients],
        Measure::CALLS,
        contest,
        sockets(Writes::Each)?,
    );
    for (name, side) in [("ironorb", ours), ("together", sockets(Writes::Together)?)] {
        let parameters = parameters![side = name];
        group.entrants.push(Entrant { label: Label::ours(), parameters, side: Ok(Box::new(side)) });
    }
    for crowd in crowds {
        for (slot, (name, in_flight)) in
            [("asynchronous", IN_FLIGHT), ("synchronous", 1)].into_iter().enumerate()
        {
            let side = crowd.side(slot, &format!("writers {slot} {clients} {burst} {in_flight}"))?;
            group.entrants.push(Entrant { label: crowd.label(), parameters: parameters![side = name], side });
        }
    }
    group.run()
}

/// A client's sample of writes.
fn orb(stage: &Stage, items: Range<usize>, calls: usize) -> Result<SendSample, BenchError> {
    let client = OwnOrb(Some(stage.client(items)?));
    let (mut random, mut pending) = (fastrand::Rng::with_seed(2), VecDeque::with_capacity(IN_FLIGHT));
    Ok(Box::new(move || {
        let Some(Client { items, .. }) = &client.0 else { return Ok(()) };
        for _ in 0..calls {
            if pending.len() == IN_FLIGHT
                && let Some(first) = pending.pop_front()
            {
                wait(first)?;
            }
            pending.push_back(items[random.usize(..items.len())].write_async(random.i32(..)));
        }
        pending.drain(..).try_for_each(wait)
    }))
}

fn wait(pending: Pending<(), SystemException>) -> Result<(), BenchError> {
    Ok(pending.wait()?)
}

/// A client whose ORB ends with it.
struct OwnOrb(Option<Client>);

impl Drop for OwnOrb {
    fn drop(&mut self) {
        // The rates have been measured by then.
        let _ended = self.0.take().map(Client::end);
    }
}

fn charts(rows: &[Row]) -> Vec<Chart> {
    let mut charts = Plot {
        title: "case 2: writes a second of clients with 32 calls in flight",
        apart: &["layout"],
        x: ("clients", Axis { name: "clients", scale: Scale::Linear, text: |it| format!("{it:.0}") }),
        y: ("subject", Axis { name: "writes/s", scale: Scale::Linear, text: |rate| format!("{rate:.0}") }),
        baseline: Some("plain sockets"),
        lines: &["peer", "side"],
    }
    .charts(rows);
    charts.iter_mut().for_each(paper::add_throughput);
    charts
}
