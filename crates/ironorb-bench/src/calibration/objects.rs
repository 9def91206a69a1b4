//! Calls by the number of objects among which they choose, and reads of them that a cache answers.

use std::hint::black_box;
use std::time::{Duration, Instant};

use ironorb::cache::ReadOptions;
use ironorb::{Orb, TypedRef as _};
use ironorb_model::profile::{CachedRow, CallRow, Kept};

use super::calls::Caller;
use super::seen::{More, Seen, TURNS, middle};
use crate::caching::stage::{Setup, Stage};
use crate::error::BenchError;
use crate::extents;
use crate::generated_cases::caching_cases::{Item as _, ItemRef};
use crate::generated_extents::extents::Echo as _;
use crate::machine::pin;
use crate::process::Process;
use crate::role::{Role, RoleArgs, serve};

pub(crate) const ROLES: &[Role] = &[Role { name: ELEMENTS, run: serve_elements }];

const ELEMENTS: &str = "elements-server";

/// How many calls ask with their requests after a read that had to ask: the setting `cacheCarriedProbes`.
const CARRIED: usize = 16;

impl Caller<'_> {
    /// Calls of random objects, by their number; and reads of them that a cache answers. What they take more than calls of one
    /// of the objects comes on top of `base`: the operation itself is another.
    pub(super) fn by_objects(
        &self,
        base: &Seen,
        counts: &[u64],
    ) -> Result<(Vec<CallRow>, Vec<CachedRow>), BenchError> {
        let (mut calls, mut cached) = (Vec::new(), Vec::new());
        for &count in counts {
            crate::note(format_args!("measuring calls of {count} objects ({})", self.layout.name));
            let stage = Stage::start(&Setup::of(count as usize, self.layout))?;
            pin(self.layout.client)?;
            let client = stage.client(0..count as usize)?;
            let mut random = fastrand::Rng::with_seed(11);
            let mut item = || &client.items[random.usize(..client.items.len())];
            let remote = ReadOptions::new().remote();
            let mut more = More::default();
            // Calls of one object have a row already.
            if count > 1 {
                let read = |item: &ItemRef| {
                    black_box(item.value_with(&remote)?);
                    Ok(())
                };
                let (mut of_all, mut of_one) = (|| read(item()), || read(&client.items[0]));
                more = More::of(self.calls(), &mut of_all, &mut of_one, stage.process())?;
                calls.push(self.row(&base.and(more), count, 1, more.server_ns.max(0.0)));
            }
            if self.layout.client == self.layout.server {
                client.hold(count as usize)?;
                let server = stage.process();
                let of_calls = [base.client_ns + more.client_ns, base.server_ns + more.server_ns];
                cached.push(self.cached(&client.items, server, of_calls)?);
            }
            client.end()?;
            stage.end()?;
        }
        Ok((calls, cached))
    }

    /// Reads of random objects that are held, and what writes of them cost their holder, beside calls that take so long at either side.
    fn cached(
        &self,
        items: &[ItemRef],
        server: &Process,
        [call_at_client, call_at_server]: [f64; 2],
    ) -> Result<CachedRow, BenchError> {
        let mut random = fastrand::Rng::with_seed(12);
        let mut place = || random.usize(..items.len());
        let remote = ReadOptions::new().remote();
        let call = |item: &ItemRef| -> Result<(), BenchError> {
            black_box(item.value_with(&remote)?);
            Ok(())
        };
        let read_ns = self.cached_read(&mut place, items, &call)?;
        // A read behind a write of the same client: all writes but each 17th carry the question of the read.
        let places: Vec<usize> = (0..self.calls()).map(|_| place()).collect();
        let mut next = places.iter().cycle();
        let mut write_and_read = || {
            let [written, read] = [(); 2].map(|()| *next.next().unwrap_or(&0));
            items[written].write(black_box(9))?;
            black_box(items[read].value()?);
            Ok(())
        };
        let mut others = places.iter().cycle();
        let mut calls = || call(&items[*others.next().unwrap_or(&0)]);
        let written = More::of(self.calls(), &mut write_and_read, &mut calls, server)?;
        // A read that must be new asks, and the calls behind it do so, too, where nothing has changed.
        let new = ReadOptions::new().lag(Duration::ZERO);
        let mut many = places.iter().cycle();
        let mut ask_and_call = || {
            black_box(items[*many.next().unwrap_or(&0)].value_with(&new)?);
            many.by_ref().take(CARRIED).try_for_each(|place| call(&items[*place]))
        };
        let mut only_call = || (0..=CARRIED).try_for_each(|_| calls());
        let asked = More::of(self.calls() / CARRIED, &mut ask_and_call, &mut only_call, server)?;
        let carry_ns = (asked.response_ns / (2 * CARRIED) as f64).max(0.0);
        let (apart, carried) = (1.0 / (CARRIED + 1) as f64, CARRIED as f64 / (CARRIED + 1) as f64);
        let rest = |more: f64, call: f64| tenth((more - carry_ns * carried - call * apart).max(0.0));
        Ok(CachedRow {
            objects: items.len() as u64,
            read_ns: tenth(read_ns),
            apply_ns: rest(written.client_ns - read_ns, call_at_client),
            tell_ns: rest(written.server_ns, call_at_server),
            carry_ns: tenth(carry_ns),
        })
    }

    /// Reads between calls, as programs make them: what these need of the processor's caches reads do not find there.
    fn cached_read(
        &self,
        place: &mut dyn FnMut() -> usize,
        items: &[ItemRef],
        call: &dyn Fn(&ItemRef) -> Result<(), BenchError>,
    ) -> Result<f64, BenchError> {
        let batch = self.options.choose(50, 1_000);
        let mut of_turns = Vec::new();
        for _ in 0..TURNS {
            (0..batch).try_for_each(|_| call(&items[place()]))?;
            let begun = Instant::now();
            for _ in 0..batch {
                black_box(items[place()].value()?);
            }
            of_turns.push(begun.elapsed().as_nanos() as f64 / f64::from(batch));
        }
        Ok(middle(of_turns, |ns| *ns))
    }

    /// Calls of random elements of an extent, by their number, on top of `base` as those of objects.
    pub(super) fn by_elements(&self, base: &Seen, counts: &[u64]) -> Result<Vec<CallRow>, BenchError> {
        let mut rows = Vec::new();
        for &count in counts {
            crate::note(format_args!("measuring calls of {count} elements ({})", self.layout.name));
            pin(self.layout.server)?;
            let mut server = Process::start(&[], ELEMENTS, &[format!("--samples={count}")])?;
            pin(self.layout.client)?;
            let orb = Orb::builder().no_endpoint().build()?;
            let range = extents::range_of(&orb, server.address()?.trim())?;
            let no_element = || BenchError::process(ELEMENTS, "serves no element");
            let call = |index| -> Result<(), BenchError> {
                black_box(range.get(index).ok_or_else(no_element)?.value()?);
                Ok(())
            };
            let mut random = fastrand::Rng::with_seed(13);
            let (mut of_all, mut of_one) = (|| call(random.u64(..count)), || call(0));
            let more = More::of(self.calls(), &mut of_all, &mut of_one, &server)?;
            let row = self.row(&base.and(more), count, 1, more.server_ns.max(0.0));
            rows.push(CallRow { kept: Kept::Elements, ..row });
            orb.shutdown(true)?;
            server.end()?;
        }
        Ok(rows)
    }
}

fn tenth(ns: f64) -> f64 {
    (ns * 10.0).round() / 10.0
}

/// Serves as many elements as `samples` says, and prints the reference to the first.
fn serve_elements(args: &RoleArgs) -> Result<(), BenchError> {
    serve(args.server()?, |orb| {
        let first = extents::serve_in_memory(orb, args.samples as u64)?;
        Ok(first.object().to_ior_string())
    })
}
