//! Calls of the ORB in each situation.

use std::collections::VecDeque;
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use ironorb::cache::ReadOptions;
use ironorb::{Orb, Pending};
use ironorb_model::profile::{BodyRow, CachedRow, CallRow, Placement, Steps, Times};

use super::networks::Network;
use super::split::Split;
use super::{Calibrate, QUANTILES, samples_after};
use crate::caching::stage::{Setup, Stage};
use crate::contender::{self, Venue};
use crate::error::BenchError;
use crate::generated::bench::{BinStruct, Echo as _, EchoAsync as _, EchoRef};
use crate::generated_cases::caching_cases::{Item as _, ItemRef};
use crate::machine::{Layout, pin};
use crate::measure::{Sample, thread_nanos};
use crate::options::Sides;
use crate::paced::class::enter_idle;
use crate::process::Process;
use crate::sequences::{Calls, Server};
use crate::variant::{DataType, Mode};

/// Calls of this ORB in one placement.
pub(super) struct Caller<'a> {
    pub(super) layout: Layout,
    pub(super) placement: Placement,
    pub(super) options: &'a Calibrate,
    pub(super) split: Split,
    /// Where the server is, if not in this network.
    pub(super) network: Option<&'a Network>,
}

/// A server with one object, and a client's reference to it.
struct Served {
    echo: EchoRef,
    server: Process,
    orb: Orb,
}

impl Served {
    fn end(self) -> Result<(), BenchError> {
        self.orb.shutdown(true)?;
        self.server.end()
    }
}

/// How many calls a client has in flight where it does not wait for each.
const IN_FLIGHT: u32 = 32;

/// Octets of the bodies that tell what an octet takes.
const BODY: usize = 8 << 10;

/// Turns of calls one after another: the one in the middle counts, so that a disturbance of some does not.
const TURNS: usize = 11;

/// How many calls ask with their requests after a read that had to ask: the setting `cacheCarriedProbes`.
const CARRIED: usize = 16;

impl Caller<'_> {
    fn echo(&self) -> Result<Served, BenchError> {
        let (under, endpoint) = match self.network {
            Some(network) => (network.under(), Network::endpoint()),
            None => (Vec::new(), "iiop://127.0.0.1:0".to_owned()),
        };
        pin(self.layout.server)?;
        let mut server = Process::start(&under, "echo-server", &[format!("--endpoint={endpoint}")])?;
        pin(self.layout.client)?;
        let told = server.address()?;
        let orb = Orb::builder().no_endpoint().build()?;
        // The server tells another reference, too.
        let reference = told.split(' ').next().unwrap_or_default();
        let echo: EchoRef = orb.string_to_object(reference)?.narrow_unchecked();
        Ok(Served { echo, server, orb })
    }

    fn calls(&self) -> usize {
        self.options.choose(50, 5_000)
    }

    /// Calls after pauses of different lengths, and those without a pause as they were seen.
    pub(super) fn by_idle(&self, idles: &[Duration]) -> Result<(Vec<CallRow>, Seen), BenchError> {
        let served = self.echo()?;
        let Served { echo, server, .. } = &served;
        let mut rows = Vec::new();
        let mut without_pause = Seen::default();
        for idle in idles {
            crate::note(format_args!("measuring calls after {idle:?} ({})", self.layout.name));
            let mut call = || Ok(echo.nothing()?);
            let seen = match idle.is_zero() {
                true => Seen::one_after_another(self.calls(), 1, &mut call, server)?,
                false => Seen::after(*idle, samples_after(*idle, self.options), &mut call, server)?,
            };
            rows.push(self.row(&seen, 1, 1, 0.0));
            match idle.is_zero() {
                true => without_pause = seen,
                false => {
                    let busy = Busy::start([self.layout.client, self.layout.server]);
                    let seen = Seen::after(*idle, samples_after(*idle, self.options), &mut call, server)?;
                    busy.end()?;
                    rows.push(CallRow { is_busy: true, ..self.row(&seen, 1, 1, 0.0) });
                }
            }
        }
        served.end()?;
        Ok((rows, without_pause))
    }

    /// Calls of which many are in flight.
    pub(super) fn in_flight(&self) -> Result<Vec<CallRow>, BenchError> {
        crate::note(format_args!("measuring {IN_FLIGHT} calls in flight ({})", self.layout.name));
        let served = self.echo()?;
        let Served { echo, server, .. } = &served;
        let batch = 10 * IN_FLIGHT as usize;
        let mut pending = VecDeque::new();
        let mut calls = || -> Result<(), BenchError> {
            for _ in 0..batch {
                if pending.len() == IN_FLIGHT as usize
                    && let Some(first) = pending.pop_front()
                {
                    Pending::wait(first)?;
                }
                pending.push_back(echo.nothing_async());
            }
            Ok(pending.drain(..).try_for_each(Pending::wait)?)
        };
        let seen = Seen::one_after_another(self.calls() / batch + 2, batch, &mut calls, server)?;
        // No thread waits for one call: the side with more to do bounds the rate. What it waits for the other side is as if it worked.
        let bound = match self.placement {
            Placement::OneCore => seen.client_ns + seen.server_ns,
            Placement::CoreEach | Placement::Networks => seen.client_ns.max(seen.server_ns),
        };
        let longer = seen.response_ns() / bound;
        let mut row = self.row(&seen, 1, IN_FLIGHT, 0.0);
        row.steps = self.split.steps(seen.client_ns * longer, seen.server_ns * longer);
        row.thread_switch = Times::default();
        served.end()?;
        Ok(vec![row])
    }

    /// What an octet takes, in bodies of each kind.
    pub(super) fn bodies(&self) -> Result<Vec<BodyRow>, BenchError> {
        let served = self.echo()?;
        let Served { echo, server, .. } = &served;
        let octets = vec![0x5A; BODY];
        let longs = vec![0x5A5A; BODY / 4];
        let structs = vec![BinStruct { s: 1, c: b'c', l: 2, o: 3, d: 4.5 }; BODY / 24];
        // How often an octet is written and read in a call: the servant sends octets and longs back.
        let mut kinds: [(&str, f64, Sample<'_>); 3] = [
            ("octets", 4.0, Box::new(|| echo.take_octets(black_box(&octets)).map(drop).map_err(Into::into))),
            ("longs", 4.0, Box::new(|| echo.take_longs(black_box(&longs)).map(drop).map_err(Into::into))),
            ("structs", 2.0, Box::new(|| Ok(echo.take_structs(black_box(&structs))?))),
        ];
        let calls = self.calls() / 2;
        let mut rows = Vec::new();
        for (body, times, call) in &mut kinds {
            crate::note(format_args!("measuring bodies of {body} ({})", self.layout.name));
            let more = More::of(calls, call, &mut || Ok(echo.nothing()?), server)?;
            let per_kilo_octet_ns =
                (more.response_ns.max(0.0) / *times / (BODY as f64 / 1e3) * 10.0).round() / 10.0;
            rows.push(BodyRow { body: (*body).to_owned(), placement: self.placement, per_kilo_octet_ns });
        }
        drop(kinds);
        served.end()?;
        Ok(rows)
    }

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

    /// `lookup_ns` of the server's time is known to be spent on finding the object.
    fn row(&self, seen: &Seen, objects: u64, in_flight: u32, lookup_ns: f64) -> CallRow {
        let [of_client, of_server] = self.split.probes_ns;
        let seen = Seen {
            responses: seen.responses.iter().map(|ns| ns - of_client - of_server).collect(),
            client_ns: (seen.client_ns - of_client).max(0.0),
            server_ns: (seen.server_ns - of_server).max(0.0),
            ..*seen
        };
        let mut steps = self.split.steps(seen.client_ns, (seen.server_ns - lookup_ns).max(0.0));
        steps.find_object += lookup_ns;
        row(self.placement, &seen, steps, objects, in_flight)
    }
}

fn tenth(ns: f64) -> f64 {
    (ns * 10.0).round() / 10.0
}

/// Threads that keep processors busy whenever nothing else runs there.
struct Busy {
    is_over: Arc<AtomicBool>,
    threads: Vec<thread::JoinHandle<Result<(), BenchError>>>,
}

impl Busy {
    fn start(mut processors: [usize; 2]) -> Busy {
        processors.sort_unstable();
        let is_over = Arc::new(AtomicBool::new(false));
        let distinct = if processors[0] == processors[1] { &processors[..1] } else { &processors[..] };
        let threads = distinct.iter().map(|&processor| {
            let is_over = is_over.clone();
            thread::spawn(move || {
                pin(processor)?;
                enter_idle()?;
                while !is_over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
                Ok(())
            })
        });
        Busy { threads: threads.collect(), is_over }
    }

    fn end(self) -> Result<(), BenchError> {
        self.is_over.store(true, Ordering::Relaxed);
        self.threads.into_iter().try_for_each(|thread| {
            thread.join().map_err(|_| BenchError::process("busy thread", "has panicked"))?
        })
    }
}

/// Calls of another ORB, of which only the outside is seen.
pub(super) fn from_outside(
    options: &Calibrate,
    layout: Layout,
    placement: Placement,
) -> Result<Vec<CallRow>, BenchError> {
    let sides = Sides { peers: vec![options.peer], with: Vec::new() };
    let mut contenders = contender::start("latency", &sides, Venue::tcp(Some(layout)))?;
    let contender = contenders.pop().ok_or_else(|| BenchError::process("peer", "is not there"))?;
    let mut server = Server::new(contender);
    let unusable = |why: String| BenchError::Unusable(format!("{}: {why}", options.peer.title()));
    server.populate(1)?.map_err(unusable)?;
    let calls = Calls::of_one_object(Mode::Twoway, DataType::Void, 0);
    let data = calls.data();
    let samples = options.choose(50, 5_000);
    let (side, _) = server.side(0, calls, &data)?;
    let mut side = side.map_err(unusable)?;
    let mut nanos = vec![0; samples];
    side.each(&mut nanos)?;
    let before = busy(&server);
    let mut turns = Vec::new();
    for _ in 0..TURNS {
        side.each(&mut nanos)?;
        let responses = nanos.iter().map(|ns| *ns as f64).collect();
        turns.push(Seen { responses, ..Seen::default() });
    }
    let busy = busy(&server).saturating_sub(before).as_nanos() as f64 / (samples * TURNS) as f64;
    let seen = Seen { client_ns: busy, server_ns: busy, ..middle(turns, Seen::response_ns) };
    let steps =
        Steps { write_request: busy, read_request: busy / 2.0, write_reply: busy / 2.0, ..Steps::default() };
    Ok(vec![row(placement, &seen, steps, 1, 1)])
}

fn busy(server: &Server) -> Duration {
    server.contender.running.as_ref().map_or(Duration::ZERO, |running| running.server.busy())
}

fn row(placement: Placement, seen: &Seen, steps: Steps, objects: u64, in_flight: u32) -> CallRow {
    let response_ns = seen.response_ns();
    let switch_ns = ((response_ns - steps.sum()) / 2.0).max(least_switch(&seen.responses));
    // Two processors at work at the same time do more than one call waits for, and switches that vary take some time.
    let longest = response_ns - 2.0 * switch_ns;
    let steps = match steps.sum() > longest {
        true => Steps::of(steps.all().map(|step| step * longest / steps.sum())),
        false => steps,
    };
    CallRow {
        placement,
        idle_ns: seen.idle_ns,
        is_busy: false,
        objects,
        in_flight,
        calls: seen.responses.len() as u64,
        steps,
        thread_switch: switches(&seen.responses, switch_ns),
        response: Times::of(seen.responses.clone(), QUANTILES),
    }
}

/// The mean of a switch that can vary as the responses do: the fastest ones leave nothing of it. Steps are fixed, and percentiles
/// come from switches. Both switches leave some time to the steps, however the responses vary.
fn least_switch(responses: &[f64]) -> f64 {
    let mut ns = responses.to_vec();
    ns.sort_by(f64::total_cmp);
    let fast = ns.get(ns.len() / 100).copied().unwrap_or_default();
    let mean = mean(responses);
    ((mean - fast).max(0.0) / 2_f64.sqrt()).min(0.4 * mean)
}

/// Two switches of this mean, which vary as the responses do: each has half of their variance.
fn switches(responses: &[f64], mean_ns: f64) -> Times {
    let mean = mean(responses);
    let varied = responses.iter().map(|ns| (mean_ns + (ns - mean) / 2_f64.sqrt()).max(0.0));
    Times::of(varied.collect(), QUANTILES).with_mean(mean_ns)
}

/// What was seen of calls.
#[derive(Debug, Clone, Default)]
pub(super) struct Seen {
    /// Nanoseconds of each call.
    responses: Vec<f64>,
    /// The processor time of a call at either side, in nanoseconds.
    client_ns: f64,
    server_ns: f64,
    /// How long the client had slept before each call.
    idle_ns: f64,
}

impl Seen {
    fn response_ns(&self) -> f64 {
        mean(&self.responses)
    }

    /// Samples of so many calls each, one after another, in turns of which the one in the middle counts.
    fn one_after_another(
        samples: usize,
        batch: usize,
        call: Call<'_>,
        server: &Process,
    ) -> Result<Seen, BenchError> {
        (0..samples).try_for_each(|_| call())?; // to warm up
        let turns = (0..TURNS).map(|_| Seen::turn(samples, batch, call, server));
        Ok(middle(turns.collect::<Result<_, _>>()?, Seen::response_ns))
    }

    fn turn(samples: usize, batch: usize, call: Call<'_>, server: &Process) -> Result<Seen, BenchError> {
        let (client_before, server_before) = (thread_nanos(), server.busy());
        let mut responses = Vec::with_capacity(samples);
        let mut before = Instant::now();
        for _ in 0..samples {
            call()?;
            let after = Instant::now();
            responses.push((after - before).as_nanos() as f64 / batch as f64);
            before = after;
        }
        let calls = (samples * batch) as f64;
        Ok(Seen {
            responses,
            client_ns: (thread_nanos() - client_before) as f64 / calls,
            server_ns: server.busy().saturating_sub(server_before).as_nanos() as f64 / calls,
            idle_ns: 0.0,
        })
    }

    /// Calls that take more.
    fn and(&self, more: More) -> Seen {
        Seen {
            responses: self.responses.iter().map(|ns| (ns + more.response_ns).max(0.0)).collect(),
            client_ns: (self.client_ns + more.client_ns).max(0.0),
            server_ns: (self.server_ns + more.server_ns).max(0.0),
            idle_ns: self.idle_ns,
        }
    }

    /// Single calls, each after a sleep.
    fn after(idle: Duration, samples: usize, call: Call<'_>, server: &Process) -> Result<Seen, BenchError> {
        let (mut responses, mut client, mut slept) = (Vec::new(), 0.0, 0.0);
        let clock = clock_cost();
        call()?;
        let server_before = server.busy();
        let mut ended = Instant::now();
        for _ in 0..samples {
            thread::sleep(idle);
            let busy = thread_nanos();
            let begun = Instant::now();
            call()?;
            let now = Instant::now();
            client += (thread_nanos() - busy) as f64 - clock;
            slept += (begun - ended).as_nanos() as f64;
            responses.push((now - begun).as_nanos() as f64);
            ended = now;
        }
        let calls = samples.max(1) as f64;
        Ok(Seen {
            responses: trimmed(responses),
            client_ns: client.max(0.0) / calls,
            server_ns: server.busy().saturating_sub(server_before).as_nanos() as f64 / calls,
            idle_ns: (slept / calls).round(),
        })
    }
}

type Call<'a> = &'a mut dyn FnMut() -> Result<(), BenchError>;

/// What calls of one kind take more than those of another, in nanoseconds.
#[derive(Debug, Clone, Copy, Default)]
struct More {
    response_ns: f64,
    client_ns: f64,
    server_ns: f64,
}

impl More {
    /// Turns of both kinds alternate, so that what slows the machine for a while slows both.
    fn of(samples: usize, calls: Call<'_>, others: Call<'_>, server: &Process) -> Result<More, BenchError> {
        let mut all = [Vec::new(), Vec::new(), Vec::new()];
        for turn in 0..=TURNS {
            let one = Seen::turn(samples, 1, calls, server)?;
            let other = Seen::turn(samples, 1, others, server)?;
            let more = [
                one.response_ns() - other.response_ns(),
                one.client_ns - other.client_ns,
                one.server_ns - other.server_ns,
            ];
            // The first turn finds cold caches.
            if turn > 0 {
                all.iter_mut().zip(more).for_each(|(all, more)| all.push(more));
            }
        }
        let [response_ns, client_ns, server_ns] = all.map(|all| middle(all, |more| *more));
        Ok(More { response_ns, client_ns, server_ns })
    }
}

fn mean(ns: &[f64]) -> f64 {
    ns.iter().sum::<f64>() / ns.len().max(1) as f64
}

/// The one in the middle.
fn middle<T: Default>(mut all: Vec<T>, of: impl Fn(&T) -> f64) -> T {
    all.sort_by(|a, b| of(a).total_cmp(&of(b)));
    let place = all.len() / 2;
    all.into_iter().nth(place).unwrap_or_default()
}

/// Without the slowest 0.5 %: other work of the machine, which a single series cannot tell from calls.
fn trimmed(mut ns: Vec<f64>) -> Vec<f64> {
    ns.sort_by(f64::total_cmp);
    ns.truncate(ns.len() - ns.len() / 200);
    ns
}

/// What reading the clock of a thread's processor time adds to it.
fn clock_cost() -> f64 {
    let mut costs: Vec<u64> = (0..101)
        .map(|_| {
            let before = thread_nanos();
            thread_nanos() - before
        })
        .collect();
    costs.sort_unstable();
    costs[costs.len() / 2] as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(responses: &[f64]) -> Seen {
        Seen { responses: responses.to_vec(), client_ns: 4.0, server_ns: 3.0, idle_ns: 0.0 }
    }

    #[test]
    fn steps_and_switches_add_up_to_the_response() {
        let steps = Steps { write_request: 4_000.0, read_request: 3_000.0, ..Steps::default() };
        for response in [12_000.0, 7_000.0, 6_300.0] {
            let seen = seen(&[response - 500.0, response, response + 500.0]);
            let row = row(Placement::CoreEach, &seen, steps, 1, 1);
            let sum = row.steps.sum() + 2.0 * row.thread_switch.mean_ns;
            assert!((sum - response).abs() < 1.0, "{response}: {sum}");
            // So that the percentiles of the responses show, whatever processors did.
            assert!(row.thread_switch.mean_ns >= 500.0 / 2_f64.sqrt() - 1.0, "{row:?}");
        }
        // Few samples on a busy machine.
        let wild = row(Placement::CoreEach, &seen(&[100.0, 200.0, 90_000.0]), steps, 1, 1);
        assert!(wild.steps.all().iter().all(|step| *step >= 0.0), "{wild:?}");
    }

    #[test]
    fn switches_have_half_of_the_variance_of_responses() {
        let responses: Vec<f64> = (0..1_000).map(|n| 20_000.0 + f64::from(n % 100) * 10.0).collect();
        let times = switches(&responses, 5_000.0);
        let variance = |all: &[f64]| {
            let mean = all.iter().sum::<f64>() / all.len() as f64;
            all.iter().map(|one| (one - mean).powi(2)).sum::<f64>() / all.len() as f64
        };
        let part = variance(&times.quantiles_ns) / variance(&responses);
        assert!((0.48..0.52).contains(&part), "{part}");
        assert_eq!(times.mean_ns, 5_000.0);
        assert!(switches(&[1.0, 1e9], 10.0).quantiles_ns.iter().all(|ns| *ns >= 0.0));
    }

    #[test]
    fn a_disturbed_turn_does_not_count() {
        let turns = [[9e9, 2.0], [2.0, 3.0], [1.0, 2.0]].map(|turn| seen(&turn)).to_vec();
        assert_eq!(middle(turns, Seen::response_ns).responses, [2.0, 3.0]);
        assert_eq!(trimmed((0..400).map(f64::from).collect()).len(), 398);
    }
}
