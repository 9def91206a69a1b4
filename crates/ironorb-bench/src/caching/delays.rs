//! The corners of the paper's third case over networks of several round-trip times, by a relay that holds each message back.

use std::time::Duration;

use ironorb_baseline::relay::RelayPort;

use super::shares::Mix;
use super::stage::{Setup, free_port};
use crate::error::BenchError;
use crate::machine::{Layout, Placement};
use crate::options::Run;
use crate::render::Table;
use crate::row::parameters;

/// Round-trip times in milliseconds, and how many calls are one sample.
const ROUND_TRIPS: [(u64, usize); 3] = [(0, 1_000), (1, 100), (20, 10)];
const ROUND_TRIPS_QUICK: [(u64, usize); 2] = [(0, 20), (1, 5)];

/// Few objects, because the client fills its places one after another.
const OBJECTS: usize = 100;

/// Nothing, or everything.
const CORNERS: [usize; 2] = [0, 100];

const NOTES: &str = "As case 3, with 100 objects. A relay holds each message back for half the round-trip time; with 0 ms it only passes it on.\n\
    baseline: a read by a call over such a network, of a client that holds nothing, in turns.";

pub(super) fn table(run: &Run) -> Result<Table, BenchError> {
    let title = "case 3 over networks: a call by round-trip time, share of reads and of cached objects";
    let mut table = Table::new("delays", title, Vec::new()).notes(NOTES);
    let Some(layout) = Layout::of(&[Placement::OneCore]).pop() else { return Ok(table) };
    let objects = run.choose(OBJECTS / 10, OBJECTS);
    for (rtt_ms, batch) in run.choose(&ROUND_TRIPS_QUICK[..], &ROUND_TRIPS) {
        let mix = Mix { batch: *batch, ..Mix::of(run, objects) };
        for cached in CORNERS {
            let (port, listened) = (RelayPort::listen().map_err(BenchError::io("listen"))?, free_port()?);
            let published = port.number().map_err(BenchError::io("listen"))?;
            let setup = Setup { ports: Some((listened, published)), ..Setup::of(objects, layout) };
            let one_way = Duration::from_millis(*rtt_ms) / 2;
            let _relay = port.to(("127.0.0.1", listened), one_way).map_err(BenchError::io("relay calls"))?;
            table.rows.extend(mix.rows(&parameters![rtt_ms = rtt_ms], layout, &setup, cached, &CORNERS)?);
        }
    }
    Ok(table)
}
