//! The ORB of a process, and references to objects of others.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use ironorb::giop::Writer;
use ironorb::poa::{
    IdAssignment, IdUniqueness, ImplicitActivation, Lifespan, ObjectId, RequestProcessing, ServantRetention,
};
use ironorb::rt::{Priority, PriorityModel, RealTimeConfig};
use ironorb::{
    CompletionStatus, LaneConfig, MinorCode, ObjectRef, Orb, OrbBuilder, PoaPolicies, RequestBuffering,
    ServerConcurrency, SystemException, SystemExceptionKind, ThreadPoolConfig, dynamic, engine,
};
use ironorb_model::scenario::{self, Arrivals};
use ironorb_model::{CycleDraws, Turns};
use ironorb_sim::Sender;

use crate::board::{CallerNumber, Left, Told};
use crate::deployment::{Deployment, Role};
use crate::servant::Bodies;

/// The interface of all objects of a scenario.
pub(crate) const REPOSITORY_ID: &str = "IDL:ironorb.sim/Body:1.0";

/// A reference to the first object of a process, as peers get it.
#[derive(Debug)]
pub(crate) struct OwnReference {
    ior: String,
    /// The object's key. Its id are the last octets.
    key: Vec<u8>,
}

/// A thread that makes calls.
pub(crate) struct Caller {
    deployment: Arc<Deployment>,
    orb: Orb,
    number: CallerNumber,
    process: u32,
    /// By process: the object id of the last call, and the reference to it.
    references: BTreeMap<u32, (u64, ObjectRef)>,
}

impl Deployment {
    /// The program of a server's process.
    pub(crate) fn serve(self: &Arc<Self>, process: u32) {
        let Role::Server { server, .. } = self.processes[process as usize].role else { return };
        let orb = self.orb(process);
        let policies = PoaPolicies {
            lifespan: Lifespan::Persistent,
            id_assignment: IdAssignment::User,
            id_uniqueness: IdUniqueness::Multiple,
            implicit_activation: ImplicitActivation::No,
            servant_retention: ServantRetention::NonRetain,
            request_processing: RequestProcessing::DefaultServant,
            priority_model: self
                .ranks
                .is_some()
                .then_some(PriorityModel::ClientPropagated { default: Priority::MIN }),
            ..PoaPolicies::default()
        };
        // Seven letters: with them keys are as long as at the other levels.
        let poa = orb.root_poa().create_poa(&format!("{process:07x}"), None, policies).expect("an adapter");
        let servant = Bodies::new(self.clone(), process, server, orb.clone());
        poa.set_default_servant(Arc::new(servant)).expect("an adapter with a default servant");
        poa.manager().activate().expect("a manager that has not ended");
        let id = ObjectId::from(&0_u64.to_be_bytes()[..]);
        let reference = poa.create_reference_with_id(id, REPOSITORY_ID).expect("a reference to an object");
        let key = engine::object_key(&reference).to_vec();
        let own = OwnReference { ior: reference.to_ior_string(), key };
        self.processes[process as usize].own.set(own).expect("a process starts once");
        orb.run().expect("an ORB that serves");
    }

    /// The ORB of a process.
    pub(crate) fn orb(&self, process: u32) -> Orb {
        let Deployment { scenario, processes, .. } = self;
        // Without the environment of the simulator's own process.
        let mut builder = OrbBuilder::default();
        let config = builder.config();
        // Levels that know no such ends and limits do without them, too.
        (config.server_idle_timeout, config.client_idle_timeout, config.call_timeout) = (None, None, None);
        (config.server_connections_max, config.client_connections_max) = (usize::MAX, usize::MAX);
        config.server_threads_max = usize::MAX;
        config.connection.calls_in_flight_max = usize::from(u16::MAX);
        config.connections_per_endpoint_max = self.connections_max();
        // The connection's thread serves all of its requests.
        config.threads_per_connection_max = 1;
        if let Some(ranks) = &self.ranks {
            builder = builder.real_time(RealTimeConfig::new().mapping(ranks.clone()));
        }
        let host = &self.hosts[processes[process as usize].host];
        builder = match processes[process as usize].role {
            Role::Clients { .. } => builder.no_endpoint(),
            Role::Server { server, port, .. } => {
                let server = &scenario.servers[server];
                let address = |lane: usize| {
                    let port = usize::from(port) + lane;
                    (format!("iiop://:{port}"), format!("{host}:{port}"))
                };
                let (listened, published) = address(0);
                builder = builder.endpoint(&listened).expect("an address").publish(&published);
                builder = builder.server_id(&format!("p{process}"));
                // What no other lane serves comes to the first one.
                let first = server.lanes.first().map(|lane| lane.threads).or(server.threads);
                builder = builder.concurrency(first.map_or(ServerConcurrency::ThreadPerConnection, pool));
                // Without priorities all calls go to the first lane.
                let others = server.lanes.iter().enumerate().skip(1).filter(|_| self.ranks.is_some());
                for (number, lane) in others {
                    let (listened, published) = address(number);
                    let priority = Priority::new(lane.priority).expect("priorities are in their range");
                    let config = LaneConfig::new(&format!("lane {}", lane.priority)).priority(priority);
                    let config = config.endpoint(&listened).publish(&published);
                    builder = builder.lane(config.concurrency(pool(lane.threads)));
                }
                builder
            }
        };
        builder.build().expect("the ORB of a process")
    }

    /// The most connections of a process to another one: one for each of its threads. The ORB spreads threads over connections by
    /// their numbers, which are those of all simulated processes.
    fn connections_max(&self) -> usize {
        const MOST: u64 = 1 << 16;
        let clients = self.scenario.classes.iter().map(|class| match class.arrivals {
            Arrivals::Closed { clients, .. } => u64::from(clients),
            // More come with more cycles at a time.
            Arrivals::Open { .. } | Arrivals::Trace(_) => {
                64 * u64::from(self.scenario.hosts[class.hosts].count)
            }
        });
        // Each may lead to a thread of each server.
        let callers = clients.sum::<u64>() * (1 + self.first_process.len() as u64);
        callers.clamp(64, MOST) as usize
    }
}

/// Threads that serve requests in the order of their arrival.
fn pool(threads: u32) -> ServerConcurrency {
    let buffering = RequestBuffering::UpTo { requests_max: 1 << 20, bytes_max: 1 << 32 };
    ServerConcurrency::ThreadPool(ThreadPoolConfig::new(threads.max(1) as usize).buffering(buffering))
}

impl Caller {
    pub(crate) fn new(deployment: Arc<Deployment>, orb: Orb, process: u32) -> Caller {
        let number = deployment.board().add_caller();
        Caller { deployment, orb, number, process, references: BTreeMap::new() }
    }

    /// Makes calls of a cycle or of a servant, one after the other, at the request of a class. `draws` is the stream of the cycle,
    /// and `turns` has which objects are called in turn. True if all have ended with results.
    pub(crate) fn call_all(
        &mut self,
        class: usize,
        calls: &[scenario::Call],
        draws: &mut CycleDraws,
        turns: &Mutex<Turns>,
    ) -> bool {
        let mut have_results = true;
        for call in calls {
            for _ in 0..call.times {
                have_results &= self.call(class, call, draws, turns);
            }
        }
        have_results
    }

    fn call(
        &mut self,
        class: usize,
        call: &scenario::Call,
        draws: &mut CycleDraws,
        turns: &Mutex<Turns>,
    ) -> bool {
        let deployment = self.deployment.clone();
        let drawn = {
            let mut turns = turns.lock().unwrap_or_else(PoisonError::into_inner);
            draws.call(&deployment.scenario, call, &mut turns)
        };
        let operation = &deployment.scenario.servers[call.server].operations[call.operation];
        let (from, to) = (self.process, deployment.first_process[call.server] + drawn.process);
        let of_call = if operation.is_oneway { draws.split() } else { draws.clone() };
        let number = deployment.board().count_call();
        if from != to {
            deployment.compute(from, drawn.steps.request);
        }
        let told = Told {
            number,
            class,
            from,
            to,
            operation: call.operation,
            drawn,
            sender: Sender::this(),
            draws: of_call,
        };
        deployment.board().tell(self.number, told);
        let outcome = self.send((call.server, to), drawn.object, operation);
        if outcome.is_err() {
            deployment.board().forget(self.number, number);
        }
        if operation.is_oneway {
            return outcome.is_ok();
        }
        let Some(Left { draws: left, has_results }) = deployment.board().take_left(self.number) else {
            return false;
        };
        *draws = left;
        if from != to {
            deployment.compute(from, drawn.steps.receive);
        }
        outcome.is_ok() && has_results
    }

    fn send(
        &mut self,
        to: (usize, u32),
        object: u64,
        operation: &scenario::Operation,
    ) -> Result<(), SystemException> {
        let object = self.reference(to, object)?;
        let arguments = |w: &mut Writer<'_>| {
            write_zeros(w, operation.request_octets as usize);
            Ok(())
        };
        match operation.is_oneway {
            true => dynamic::send_raw(&object, operation.wire_name(), &arguments),
            false => dynamic::call_raw(&object, operation.wire_name(), &arguments).map(drop),
        }
    }

    /// A reference to an object. Its id says whose call it is.
    fn reference(&mut self, (server, to): (usize, u32), object: u64) -> Result<ObjectRef, SystemException> {
        let Caller { deployment, orb, number, references, .. } = self;
        let id = object_id(&deployment.scenario.servers[server], *number, object)?;
        let own = deployment.processes[to as usize].own.get().ok_or_else(no_reference)?;
        if let Some((last, reference)) = references.get(&to)
            && *last == id
        {
            return Ok(reference.clone());
        }
        let any = match references.get(&to) {
            Some((_, reference)) => reference.clone(),
            None => orb.string_to_object(&own.ior).map_err(|_| no_reference())?,
        };
        let mut key = own.key.clone();
        let id_at = key.len() - size_of::<u64>();
        key[id_at..].copy_from_slice(&id.to_be_bytes());
        let reference = engine::reference_with_key(&any, &key).ok_or_else(no_reference)?;
        references.insert(to, (id, reference.clone()));
        Ok(reference)
    }
}

/// The id of an object as one caller has it.
fn object_id(
    server: &scenario::Server,
    CallerNumber(caller): CallerNumber,
    object: u64,
) -> Result<u64, SystemException> {
    let of_caller = caller.checked_mul(server.objects.max(1));
    of_caller.and_then(|first| first.checked_add(object)).ok_or_else(no_reference)
}

/// Whose call an id says it is, and of which object.
pub(crate) fn caller_and_object(server: &scenario::Server, id: u64) -> (CallerNumber, u64) {
    let objects = server.objects.max(1);
    (CallerNumber(id / objects), id % objects)
}

#[cold]
fn no_reference() -> SystemException {
    SystemException::new(SystemExceptionKind::Internal, MinorCode::NONE, CompletionStatus::No).with_detail(
        "there is no reference to this object: a defect of the simulator, or too many objects and callers",
    )
}

/// So many octets of arguments or results.
pub(crate) fn write_zeros(w: &mut Writer<'_>, octets: usize) {
    const ZEROS: [u8; 4096] = [0; 4096];
    let mut left = octets;
    while left > 0 {
        let piece = left.min(ZEROS.len());
        w.write_bytes(&ZEROS[..piece]);
        left -= piece;
    }
}
