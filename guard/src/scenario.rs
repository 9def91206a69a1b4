//! The scenarios: two ORBs in this process, over TCP, each on a thread of its own.
//!
//! Everything that depends on a clock is off or avoided, so that equal code gives equal counts.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};

use ironorb::dynamic::{OperationDescription, Request};
use ironorb::poa::{PoaError, PoaPolicies};
use ironorb::{Orb, OrbBuilder, ServerConcurrency, SystemException, TypedRef};

mod idl {
    ironorb::include_idl!("guard");
}

use idl::guard::{BinStruct, Counted, CountedRef};

/// A kind of call that is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scenario {
    /// A call without parameters.
    Void,
    /// A long in both directions.
    Long,
    /// 1 KiB of octets in both directions.
    Octets,
    /// 64 structs of five members.
    Structs,
    /// 2,000 structs of five members: borrowed from a message that is large and yet arrives with one receive.
    ManyStructs,
    /// 48 KiB of octets: sent by a gather write, and borrowed.
    ManyOctets,
    /// A oneway call.
    Oneway,
    /// Oneway calls that leave in batches.
    BatchedOneway,
    /// A collocated call without parameters.
    Collocated,
    /// A call without parameters by a new request for each call.
    Dii,
    /// Calls without parameters to a hundred objects in turn.
    Robin(Population),
}

/// The places of objects that are called in turn. The cost of finding them must not depend on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Population {
    is_persistent: bool,
    /// Whether each object has an adapter of its own, with further ones beside it and far below the root.
    /// Otherwise one adapter has all objects.
    is_spread: bool,
}

impl Scenario {
    pub(crate) const ALL: [Scenario; 14] = [
        Scenario::Void,
        Scenario::Long,
        Scenario::Octets,
        Scenario::Structs,
        Scenario::ManyStructs,
        Scenario::ManyOctets,
        Scenario::Oneway,
        Scenario::BatchedOneway,
        Scenario::Collocated,
        Scenario::Dii,
        Scenario::Robin(Population { is_persistent: false, is_spread: false }),
        Scenario::Robin(Population { is_persistent: false, is_spread: true }),
        Scenario::Robin(Population { is_persistent: true, is_spread: false }),
        Scenario::Robin(Population { is_persistent: true, is_spread: true }),
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Scenario::Void => "void",
            Scenario::Long => "long",
            Scenario::Octets => "octet-1k",
            Scenario::Structs => "struct64",
            Scenario::ManyStructs => "struct2000",
            Scenario::ManyOctets => "octet-48k",
            Scenario::Oneway => "oneway",
            Scenario::BatchedOneway => "oneway-batched",
            Scenario::Collocated => "collocated",
            Scenario::Dii => "dii-void",
            Scenario::Robin(Population { is_persistent, is_spread }) => match (is_persistent, is_spread) {
                (false, false) => "robin",
                (false, true) => "robin-spread",
                (true, false) => "persistent",
                (true, true) => "persistent-spread",
            },
        }
    }

    /// Calls between the markers.
    pub(crate) fn calls(self) -> usize {
        match self {
            // As many as the system queues for a server that does not read.
            Scenario::Oneway | Scenario::BatchedOneway => 500,
            Scenario::Collocated => 10_000,
            _ => 1_000,
        }
    }

    fn is_oneway(self) -> bool {
        matches!(self, Scenario::Oneway | Scenario::BatchedOneway)
    }

    /// Whether a server thread takes part.
    pub(crate) fn has_server(self) -> bool {
        self != Scenario::Collocated
    }

    /// Warms up, and makes the calls between the markers.
    pub(crate) fn run(self) -> Result<(), String> {
        let (go_on, held) = channel();
        let mut builder = orb_with(&WAITING).endpoint("iiop://127.0.0.1:0").map_err(|e| e.to_string())?;
        // One thread counts all calls of the connection, even where another thread would help, and however
        // long the pauses.
        builder.config().threads_per_connection_max = 1;
        let server =
            builder.concurrency(ServerConcurrency::ThreadPerConnection).build().map_err(|e| e.to_string())?;
        let servant = Servant::new(held);
        let served: CountedRef = server.root_poa().activate(servant).map_err(|e| e.to_string())?;
        // A second ORB does not know that the object is in this process.
        let client = match self {
            Scenario::BatchedOneway => orb_with(&[WAITING[0], WAITING[1], BATCHING]),
            _ => orb_with(&WAITING),
        };
        let client = client.no_endpoint().build().map_err(|e| e.to_string())?;
        let object = match self {
            Scenario::Collocated => served,
            _ => client
                .string_to_object(&served.object().to_ior_string())
                .map_err(|e| e.to_string())?
                .narrow_unchecked(),
        };
        let mut others = Vec::new();
        if let Scenario::Robin(population) = self {
            let strings = population.make(&server).map_err(|e| e.to_string())?;
            for reference in strings {
                let object = client.string_to_object(&reference).map_err(|e| e.to_string())?;
                others.push(object.narrow_unchecked());
            }
        }
        self.calls_on(&object, others, &go_on).map_err(|e| e.to_string())?;
        client.shutdown(false).map_err(|e| e.to_string())?;
        server.shutdown(false).map_err(|e| e.to_string())
    }

    fn calls_on(
        self,
        object: &CountedRef,
        others: Vec<CountedRef>,
        go_on: &Sender<()>,
    ) -> Result<(), Failure> {
        let mut call = self.call(object.clone(), others);
        // Two rounds: the first fills caches that the second uses.
        for is_counted in [false, true] {
            if is_counted && self.has_server() {
                object.begin()?;
            }
            if self.is_oneway() {
                // The server reads only once all requests have arrived, so that it always reads equally many
                // at once.
                object.hold()?;
            }
            if is_counted {
                client_begins();
            }
            for _ in 0..self.calls() {
                call()?;
            }
            if is_counted {
                client_ends();
            }
            if self.is_oneway() {
                // The servant waits for this signal.
                let _ = go_on.send(());
            }
            if is_counted && self.has_server() {
                object.end()?;
            } else {
                object.nothing()?;
            }
        }
        Ok(())
    }

    fn call(self, object: CountedRef, others: Vec<CountedRef>) -> Box<dyn FnMut() -> Result<(), Failure>> {
        match self {
            Scenario::Void | Scenario::Collocated => Box::new(move || Ok(object.nothing()?)),
            Scenario::Long => Box::new(move || {
                black_box(object.take_long(black_box(42))?);
                Ok(())
            }),
            Scenario::Octets => {
                let octets = vec![0x5A; 1 << 10];
                Box::new(move || {
                    black_box(object.take_octets(black_box(&octets))?);
                    Ok(())
                })
            }
            Scenario::Structs | Scenario::ManyStructs => {
                let count = if self == Scenario::Structs { 64 } else { 2_000 };
                let structs = vec![BinStruct { s: 1, c: b'c', l: 2, o: 3, d: 4.5 }; count];
                Box::new(move || Ok(object.take_structs(black_box(&structs))?))
            }
            Scenario::ManyOctets => {
                let octets = vec![0x5A; 48 << 10];
                Box::new(move || Ok(object.see_octets(black_box(&octets))?))
            }
            Scenario::Oneway | Scenario::BatchedOneway => Box::new(move || Ok(object.forget()?)),
            Scenario::Robin(_) => {
                let mut next = 0;
                Box::new(move || {
                    next = (next + 1) % others.len();
                    Ok(others[next].nothing()?)
                })
            }
            Scenario::Dii => {
                let operation = Arc::new(OperationDescription::new("nothing"));
                Box::new(move || {
                    let mut request = Request::new(object.object(), operation.clone());
                    request.invoke()?;
                    Ok(())
                })
            }
        }
    }
}

impl Population {
    /// Creates a hundred objects, and returns their references.
    fn make(self, server: &Orb) -> Result<Vec<String>, PoaError> {
        let Population { is_persistent, is_spread } = self;
        let policies = if is_persistent { PoaPolicies::PERSISTENT } else { PoaPolicies::default() };
        let mut parent = server.root_poa();
        for level in 1..if is_spread { LEVELS } else { 1 } {
            parent = parent.create_poa(&format!("level {level}"), None, policies)?;
        }
        let mut adapters = Vec::new();
        for number in 0..if is_spread { ADAPTERS } else { 1 } {
            adapters.push(parent.create_poa(&format!("adapter {number}"), None, policies)?);
        }
        let mut references = Vec::new();
        for number in 0..OBJECTS {
            let poa = &adapters[number * (adapters.len() / OBJECTS).max(1) % adapters.len()];
            let servant = Servant::new(channel().1);
            let served: CountedRef = match is_persistent {
                true => poa.activate_with_id(format!("object {number}"), servant)?,
                false => poa.activate(servant)?,
            };
            references.push(served.object().to_ior_string());
        }
        Ok(references)
    }
}

const OBJECTS: usize = 100;
const ADAPTERS: usize = 1_000;
const LEVELS: usize = 50;

/// Blocking waits. A thread that spins before it sleeps would spin as long as the clock allows.
const WAITING: [&str; 2] = ["-ORBclientWaiting=block", "-ORBserverWaiting=block"];

/// Batching by number alone: neither bytes nor the clock end a batch of a hundred early.
const BATCHING: &str = "-ORBonewayBatching=64KiB,100,60s";

fn orb_with(settings: &[&str]) -> OrbBuilder {
    let mut settings = settings.iter().map(|setting| (*setting).to_owned()).collect();
    OrbBuilder::default().arguments(&mut settings)
}

/// Why a call failed.
type Failure = Box<dyn std::error::Error>;

/// Returns its arguments. The markers of the server's thread are in its upcalls.
struct Servant {
    held: &'static Mutex<Receiver<()>>,
}

impl Servant {
    /// Dropping it needs no work, as with most servants.
    fn new(held: Receiver<()>) -> Servant {
        Servant { held: Box::leak(Box::new(Mutex::new(held))) }
    }
}

impl Counted for Servant {
    fn nothing(&self) -> Result<(), SystemException> {
        Ok(())
    }

    fn take_long(&self, value: i32) -> Result<i32, SystemException> {
        Ok(value)
    }

    fn take_octets(&self, values: &[u8]) -> Result<Vec<u8>, SystemException> {
        Ok(values.to_vec())
    }

    fn see_octets(&self, values: &[u8]) -> Result<(), SystemException> {
        black_box(values);
        Ok(())
    }

    fn take_structs(&self, values: &[BinStruct]) -> Result<(), SystemException> {
        black_box(values);
        Ok(())
    }

    fn forget(&self) -> Result<(), SystemException> {
        Ok(())
    }

    fn hold(&self) -> Result<(), SystemException> {
        // The wait also ends when the sender is dropped.
        let _ = self.held.lock().unwrap_or_else(PoisonError::into_inner).recv();
        Ok(())
    }

    fn begin(&self) -> Result<(), SystemException> {
        server_begins();
        Ok(())
    }

    fn end(&self) -> Result<(), SystemException> {
        server_ends();
        Ok(())
    }
}

// Callgrind finds these functions by name. Their bodies differ, so that the compiler does not merge them.

#[inline(never)]
fn client_begins() {
    black_box(1);
}

#[inline(never)]
fn client_ends() {
    black_box(2);
}

#[inline(never)]
fn server_begins() {
    black_box(3);
}

#[inline(never)]
fn server_ends() {
    black_box(4);
}
