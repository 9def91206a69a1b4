//! Calls that carry sequences, for the suites `latency` and `ttcp`: objects that count what they receive, and
//! clients that call them in every way, with every type.
//!
//! Each turn of a side ends with a check that the server received what was sent.

mod order;
mod server;
mod types;

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ironorb::dynamic::{DynamicError, OperationDescription, Request};
use ironorb::{ObjectRef, TypedRef};
use ironorb_baseline::raw::Exchange;

pub(crate) use order::Algorithm;
pub(crate) use server::ROLES;
pub(crate) use types::Data;

use crate::contender::{Client, Contender, Running};
use crate::error::BenchError;
use crate::generated_latency::latency::{
    Directory, DirectoryRef, Populated, Tally, TtcpSequence, TtcpSequenceRef,
};
use crate::measure::{Entry, Sample, Side};
use crate::plain;
use crate::variant::{DataType, Invocation, Mode, Peer, ServantKind, name};
use crate::watch::Watch;
use order::Order;
use server::Sequence;

/// The calls of one side.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Calls {
    pub(crate) mode: Mode,
    pub(crate) ty: DataType,
    /// The length of the sequence; 0 for calls without a parameter.
    pub(crate) units: usize,
    pub(crate) invocation: Invocation,
    pub(crate) servant: ServantKind,
    pub(crate) algorithm: Algorithm,
    pub(crate) objects: usize,
    /// Calls of one object before a train moves on.
    pub(crate) iterations: usize,
    /// The calls of a sample. After oneways a twoway follows, which is answered once all have been carried out.
    pub(crate) batch: usize,
}

impl Calls {
    /// Stub calls of one object, one in each sample.
    pub(crate) fn of_one_object(mode: Mode, ty: DataType, units: usize) -> Calls {
        let (invocation, servant, algorithm) = (Invocation::Sii, ServantKind::Static, Algorithm::Robin);
        Calls { mode, ty, units, invocation, servant, algorithm, objects: 1, iterations: 1, batch: 1 }
    }

    pub(crate) fn data(&self) -> Data {
        Data::of(self.ty, self.units)
    }

    /// The calls of a sample, with the one that ends a batch of oneways.
    pub(crate) fn a_sample(&self) -> usize {
        match self.mode {
            Mode::Twoway => self.batch,
            Mode::Oneway => self.batch + 1,
        }
    }

    /// Whether an ORB can make these calls.
    pub(crate) fn suits(&self, peer: Peer) -> bool {
        let sends_again = matches!(self.invocation, Invocation::DiiReused | Invocation::DiiUnchanged);
        match peer {
            // A request for each of many objects would take too much memory.
            Peer::Ironorb => !(sends_again && self.objects > 10_000),
            // Requests of these ORBs cannot be sent twice.
            Peer::Omniorb => !sends_again,
            // JacORB's program has no dynamic servant. TAO's makes none of these calls, and each row says so.
            Peer::Jacorb | Peer::Tao => !sends_again && self.servant == ServantKind::Static,
        }
    }

    /// The command for a peer's client.
    fn command(&self, slot: usize) -> String {
        let Calls { mode, ty, units, invocation, servant, algorithm, objects, iterations, batch } = *self;
        let (mode, ty, invocation) = (name(mode), name(ty), name(invocation));
        let (servant, algorithm) = (name(servant), name(algorithm));
        format!(
            "calls {slot} {mode} {ty} {units} {invocation} {servant} {algorithm} {objects} {iterations} {batch}"
        )
    }

    /// A sample of the calls, on this process's references.
    fn sample<'a>(self, objects: &'a [TtcpSequenceRef], data: &'a Data) -> Result<Sample<'a>, BenchError> {
        let mut order = Order::new(self.algorithm, self.objects, self.iterations);
        let mut call = self.call(objects, data)?;
        Ok(Box::new(move || {
            for _ in 0..self.batch {
                call(order.next())?;
            }
            match self.mode {
                Mode::Twoway => Ok(()),
                Mode::Oneway => Ok(objects[order.next()].send_no_params_2way()?),
            }
        }))
    }

    /// The call that a sample repeats.
    fn call<'a>(self, objects: &'a [TtcpSequenceRef], data: &'a Data) -> Result<Call<'a>, BenchError> {
        let mode = self.mode;
        if self.invocation == Invocation::Sii {
            return Ok(Box::new(move |object| Ok(data.call(&objects[object], mode)?)));
        }
        let operation = Arc::new(operation(self.ty, mode));
        let request = move |object: &'a TtcpSequenceRef| Request::new(object.object(), operation.clone());
        if self.invocation == Invocation::DiiNew {
            return Ok(Box::new(move |object| {
                let mut request = request(&objects[object]);
                data.fill(&mut request)?;
                Ok(send(&mut request, mode)?)
            }));
        }
        let mut requests: Vec<Request<'a>> = objects.iter().take(self.objects).map(request).collect();
        requests.iter_mut().try_for_each(|request| data.fill(request))?;
        let sets_anew = self.invocation == Invocation::DiiReused;
        Ok(Box::new(move |object| {
            let request = &mut requests[object];
            if sets_anew {
                data.fill(request)?;
            }
            Ok(send(request, mode)?)
        }))
    }

    /// Bytes on the wire of one sample.
    pub(crate) fn exchange(self) -> Result<Exchange, BenchError> {
        let data = self.data();
        let requests = |_| self.a_sample();
        plain::count(
            |poa| poa.activate(Sequence::default()),
            requests,
            |relayed: TtcpSequenceRef| {
                let objects = vec![relayed];
                Box::new(move || self.sample(&objects, &data)?())
            },
        )
    }
}

/// A call of the object of an index.
type Call<'a> = Box<dyn FnMut(usize) -> Result<(), BenchError> + 'a>;

/// The description of an operation, for clients and dynamic servants.
fn operation(ty: DataType, mode: Mode) -> OperationDescription {
    let (name, sequence) = types::described(ty);
    let operation = match mode {
        Mode::Oneway => OperationDescription::new(format!("send{name}_1way")).oneway(),
        Mode::Twoway => OperationDescription::new(format!("send{name}_2way")),
    };
    match sequence {
        Some(sequence) => operation.parameter(types::PARAMETER.0, types::PARAMETER.1, sequence),
        None => operation,
    }
}

/// Sends a request in one of the modes. A twoway waits for its reply.
fn send(request: &mut Request<'_>, mode: Mode) -> Result<(), DynamicError> {
    match mode {
        Mode::Oneway => request.send_oneway(),
        Mode::Twoway => request.invoke().map(drop),
    }
}

/// A server of objects, and the references of one of its clients.
pub(crate) struct Server {
    pub(crate) contender: Contender,
    objects: Vec<TtcpSequenceRef>,
    dynamic: Vec<TtcpSequenceRef>,
    activated: usize,
}

/// References requested in one call.
const REFERENCES_A_CALL: usize = 1000;

/// Most objects of JacORB, which takes 90 us and 10 kB for each, and of a linear search.
const OBJECTS_MAX: usize = 10_000;

impl Server {
    pub(crate) fn new(contender: Contender) -> Server {
        Server { contender, objects: Vec::new(), dynamic: Vec::new(), activated: 0 }
    }

    /// Ensures that the server has so many objects and the client knows them. Returns the server's report on
    /// new objects, or why there are fewer.
    pub(crate) fn populate(&mut self, count: usize) -> Result<Result<Option<Populated>, String>, BenchError> {
        let running = match &self.contender.running {
            Ok(running) => running,
            Err(why) => return Ok(Err(why.clone())),
        };
        let settings = self.contender.label.settings.as_str();
        if count > OBJECTS_MAX
            && (self.contender.label.peer == Peer::Jacorb || settings.contains("objectLookup=linear"))
        {
            return Ok(Err(format!("left out: it is slow with more than {OBJECTS_MAX} objects")));
        }
        let directory = directory(running);
        let mut populated = None;
        if count > self.activated {
            populated = Some(directory.populate(count as u32)?);
            self.activated = count;
        }
        match &running.client {
            Client::Theirs(client) => client.borrow_mut().tell(&format!("objects {count}"))?,
            Client::Ours => {
                while self.objects.len() < count {
                    let first = self.objects.len();
                    let some =
                        directory.references(first as u32, REFERENCES_A_CALL.min(count - first) as u32)?;
                    if some.is_empty() {
                        return Err(BenchError::process("latency-server", "has too few objects"));
                    }
                    self.objects.extend(some.into_iter().flatten());
                }
                if self.dynamic.is_empty() {
                    self.dynamic.extend(directory.dynamic_object()?);
                }
            }
        }
        Ok(Ok(populated))
    }

    /// The side of a group that makes these calls. Each side of a group has its own slot in a peer's client.
    /// The second result counts the elements that the server has received from it.
    pub(crate) fn side<'a>(
        &'a self,
        slot: usize,
        calls: Calls,
        data: &'a Data,
    ) -> Result<(Entry<'a>, Rc<Cell<u64>>), BenchError> {
        let received: Rc<Cell<u64>> = Rc::default();
        let side =
            self.contender.side(slot, |_| Ok(Box::new(self.sample(calls, data)?)), || calls.command(slot))?;
        let running = self.contender.running.as_ref();
        let entry = side.and_then(|side| {
            let directory = directory(running.map_err(String::clone)?);
            Ok(Box::new(Checked { side, directory, calls, received: received.clone() }) as Box<dyn Side + 'a>)
        });
        Ok((entry, received))
    }

    pub(crate) fn watch(&self) -> Result<Watch, BenchError> {
        match &self.contender.running {
            Ok(running) => Watch::of(running),
            Err(why) => Err(BenchError::process("server", why)),
        }
    }

    /// A sample of this process's client.
    pub(crate) fn sample<'a>(&'a self, calls: Calls, data: &'a Data) -> Result<Sample<'a>, BenchError> {
        let objects = if calls.servant == ServantKind::Dsi { &self.dynamic } else { &self.objects };
        calls.sample(objects, data)
    }
}

fn directory(running: &Running) -> DirectoryRef {
    let directory: ObjectRef = running.object.clone();
    directory.narrow_unchecked()
}

/// A side whose turns are errors unless the server received everything that was sent.
struct Checked<'a> {
    side: Box<dyn Side + 'a>,
    directory: DirectoryRef,
    calls: Calls,
    received: Rc<Cell<u64>>,
}

/// Longest time for a server to carry out its outstanding oneways.
const SETTLING_MAX: Duration = Duration::from_secs(10);

impl Side for Checked<'_> {
    fn each(&mut self, nanos: &mut [u64]) -> Result<(), BenchError> {
        self.directory.taken()?;
        self.side.each(nanos)?;
        let calls = (nanos.len() * self.calls.a_sample()) as u64;
        let elements = (nanos.len() * self.calls.batch * self.calls.units) as u64;
        // Where several threads serve a connection, a call may be answered before earlier oneways are done.
        let begun = Instant::now();
        let mut tally = self.directory.taken()?;
        while tally.calls < calls && begun.elapsed() < SETTLING_MAX {
            let more = self.directory.taken()?;
            tally = Tally {
                calls: tally.calls + more.calls,
                elements: tally.elements + more.elements,
                wrong: tally.wrong + more.wrong,
            };
        }
        self.received.set(self.received.get() + tally.elements);
        match (tally.calls, tally.elements, tally.wrong) == (calls, elements, 0) {
            true => Ok(()),
            false => Err(BenchError::Unusable(format!(
                "{calls} calls with {elements} elements in all were sent, but the receiver counted {tally:?}"
            ))),
        }
    }

    fn is_peer(&self) -> bool {
        self.side.is_peer()
    }
}
