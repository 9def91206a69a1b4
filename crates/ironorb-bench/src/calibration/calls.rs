//! Calls of the ORB in each situation.

use std::collections::VecDeque;
use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use ironorb::{Orb, Pending};
use ironorb_baseline::relay::Relay;
use ironorb_model::profile::{BodyRow, CallRow, Kept, Placement, Steps, Times};

use super::networks::Network;
use super::seen::{More, Seen, TURNS, mean, middle};
use super::split::Split;
use super::{Calibrate, QUANTILES, samples_after};
use crate::contender::{self, Venue};
use crate::error::BenchError;
use crate::generated::bench::{BinStruct, Echo as _, EchoAsync as _, EchoRef};
use crate::machine::{Layout, pin};
use crate::measure::Sample;
use crate::options::Sides;
use crate::paced::class::enter_idle;
use crate::process::Process;
use crate::sequences::{Calls, Server};
use crate::variant::{DataType, Mode, Peer};

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
    /// What passes all on, if there is one.
    _relay: Option<Relay>,
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
        let mut object = orb.string_to_object(reference)?;
        let io = || BenchError::io("relay calls");
        let is_relayed = self.placement == Placement::Relayed;
        let relay = is_relayed.then(|| Relay::to(&object)).transpose().map_err(io())?;
        if let Some(relay) = &relay {
            object = orb.string_to_object(&relay.reference_to(&object).map_err(io())?.to_string())?;
        }
        Ok(Served { echo: object.narrow_unchecked(), server, orb, _relay: relay })
    }

    pub(super) fn calls(&self) -> usize {
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
            Placement::CoreEach | Placement::Networks | Placement::Relayed => {
                seen.client_ns.max(seen.server_ns)
            }
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

    /// `lookup_ns` of the server's time is known to be spent on finding the object.
    pub(super) fn row(&self, seen: &Seen, objects: u64, in_flight: u32, lookup_ns: f64) -> CallRow {
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
    let server = server_of(options.peer, layout)?;
    let calls = Calls::of_one_object(Mode::Twoway, DataType::Void, 0);
    let data = calls.data();
    let samples = options.choose(50, 5_000);
    let (side, _) = server.side(0, calls, &data)?;
    let mut side = side.map_err(|why| unusable(options.peer, &why))?;
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

/// Whether a peer can be measured, before that takes minutes.
///
/// # Errors
/// Its programs are not there, or have no call for it.
pub(super) fn check(peer: Peer, layout: Layout) -> Result<(), BenchError> {
    let server = server_of(peer, layout)?;
    let calls = Calls::of_one_object(Mode::Twoway, DataType::Void, 0);
    let data = calls.data();
    server.side(0, calls, &data)?.0.map(drop).map_err(|why| unusable(peer, &why))
}

/// A peer's server with one object.
fn server_of(peer: Peer, layout: Layout) -> Result<Server, BenchError> {
    let sides = Sides { peers: vec![peer], with: Vec::new() };
    let mut contenders = contender::start("latency", &sides, Venue::tcp(Some(layout)))?;
    let contender = contenders.pop().ok_or_else(|| BenchError::process("peer", "is not there"))?;
    let mut server = Server::new(contender);
    server.populate(1)?.map_err(|why| unusable(peer, &why))?;
    Ok(server)
}

fn unusable(peer: Peer, why: &str) -> BenchError {
    BenchError::Unusable(format!("{}: {why}", peer.title()))
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
        kept: Kept::Servants,
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
}
