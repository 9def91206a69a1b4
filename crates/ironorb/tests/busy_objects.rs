//! An engine has one thread. What a request would wait for can only come while the engine does something else, so the
//! engine must not wait: it announces the request again, or the request is refused.

use std::sync::{Arc, Mutex};

use ironorb::dynamic::{DynamicError, OperationDescription, Request};
use ironorb::engine::{ConnectionId, ServerAction, ServerEngine, ServerEvent, Time, UpcallNumber};
use ironorb::generated::{Call, Replied, Reply, SystemException};
use ironorb::giop::connection::{ClientConnection, ConnectionConfig};
use ironorb::giop::message::RequestTarget;
use ironorb::poa::{
    IdAssignment, ImplicitActivation, Lifespan, ManagerState, ObjectId, Poa, RequestProcessing,
    ServantActivator, Unavailable,
};
use ironorb::{ObjectRef, Orb, PoaPolicies, Servant, SystemExceptionKind, Version};

const CONNECTION: ConnectionId = ConnectionId(0);

/// A server engine with one client.
struct Server {
    engine: ServerEngine,
    client: ClientConnection<()>,
}

impl Server {
    fn new(orb: &Orb) -> Server {
        let mut engine = ServerEngine::new(orb);
        engine.handle(ServerEvent::Accepted { connection: CONNECTION }, Time::ZERO);
        Server { engine, client: ClientConnection::new(ConnectionConfig::default()) }
    }

    /// Sends a request and returns its announcement.
    fn request(&mut self, object: &ObjectRef, operation: &'static str) -> UpcallNumber {
        let key = object.ior().iiop_profiles().next().unwrap().object_key().to_vec();
        let target = RequestTarget::new(Version::V1_2, None, &key);
        assert!(self.client.begin_call(&target, operation, |_| Ok(())).is_ok());
        let bytes = self.client.transmit().take_all();
        self.engine.handle(ServerEvent::Received { connection: CONNECTION, bytes: &bytes }, Time::ZERO);
        self.announced().expect("the request has come")
    }

    fn announced(&mut self) -> Option<UpcallNumber> {
        match self.engine.poll_action() {
            Some(ServerAction::Upcall { upcall, .. }) => Some(upcall),
            None => None,
            other => panic!("{other:?}"),
        }
    }

    fn carry_out(&mut self, upcall: UpcallNumber) {
        self.engine.handle(ServerEvent::CarryOut { upcall }, Time::ZERO);
    }

    fn replies(&mut self) -> bool {
        matches!(self.engine.poll_action(), Some(ServerAction::Transmit { .. }))
    }
}

type Replies = Arc<Mutex<Vec<Reply<(), SystemException>>>>;

/// Keeps its first request until the test answers it.
struct Keeper(Replies);

impl Servant for Keeper {
    fn repository_ids(&self) -> &[&'static str] {
        &["IDL:ironorb.test/Keeper:1.0"]
    }

    fn dispatch(&self, call: Call<'_>) -> Replied {
        match call.operation() {
            b"keep" => {
                call.deferred(|_| Ok(()), |(), reply| self.0.lock().unwrap().push(reply), |_, ()| Ok(()))
            }
            _ => call.reply(|_| Ok(())),
        }
    }
}

/// Incarnates and etherealises keepers.
#[derive(Default)]
struct Keepers {
    replies: Replies,
    seen: Arc<Mutex<Vec<&'static str>>>,
}

impl ServantActivator for Keepers {
    fn incarnate(&self, _: &ObjectId, _: &Poa) -> Result<Arc<dyn Servant>, Unavailable> {
        self.seen.lock().unwrap().push("incarnated");
        Ok(Arc::new(Keeper(self.replies.clone())))
    }

    fn etherealize(&self, _: &ObjectId, _: &Poa, _: Arc<dyn Servant>, _: bool, _: bool) {
        self.seen.lock().unwrap().push("etherealised");
    }
}

#[test]
fn a_request_to_an_object_that_is_being_etherealised_is_announced_again() {
    let orb = Orb::builder().no_endpoint().publish("server:2810").build().unwrap();
    let policies = PoaPolicies {
        lifespan: Lifespan::Persistent,
        id_assignment: IdAssignment::User,
        implicit_activation: ImplicitActivation::No,
        request_processing: RequestProcessing::ServantManager,
        ..PoaPolicies::default()
    };
    let poa = orb.root_poa().create_poa("keepers", None, policies).unwrap();
    let keepers = Keepers::default();
    let (replies, seen) = (keepers.replies.clone(), keepers.seen.clone());
    poa.set_servant_activator(Arc::new(keepers)).unwrap();
    let id = ObjectId::from("keeper");
    let keeper = poa.create_reference_with_id(id.clone(), "IDL:ironorb.test/Keeper:1.0").unwrap();
    let mut server = Server::new(&orb);
    let kept = server.request(&keeper, "keep");
    server.carry_out(kept);
    poa.deactivate(&id).unwrap();
    // The object ends with its last request, which is not answered yet.
    let waiting = server.request(&keeper, "other");
    server.carry_out(waiting);
    assert_eq!(server.announced(), None);
    assert_eq!(*seen.lock().unwrap(), ["incarnated"]);
    let reply = replies.lock().unwrap().pop().unwrap();
    reply.send(Ok(()));
    assert_eq!(server.announced(), Some(waiting));
    assert!(server.replies());
    server.carry_out(waiting);
    assert!(server.replies());
    assert_eq!(*seen.lock().unwrap(), ["incarnated", "etherealised", "incarnated"]);
}

/// Calls another object of its ORB.
struct Caller {
    other: ObjectRef,
    failed: Arc<Mutex<Option<SystemExceptionKind>>>,
}

impl Servant for Caller {
    fn repository_ids(&self) -> &[&'static str] {
        &["IDL:ironorb.test/Caller:1.0"]
    }

    fn dispatch(&self, call: Call<'_>) -> Replied {
        let mut request = Request::new(&self.other, OperationDescription::new("other"));
        if let Err(DynamicError::System(e)) = request.invoke() {
            *self.failed.lock().unwrap() = Some(e.kind);
        }
        call.reply(|_| Ok(()))
    }
}

#[test]
fn a_servant_that_calls_an_object_which_is_held_gets_transient() {
    let orb = Orb::builder().no_endpoint().publish("server:2810").build().unwrap();
    let root = orb.root_poa();
    let held = root.create_poa("held", None, PoaPolicies::default()).unwrap();
    let activated = |poa: &Poa, servant: Arc<dyn Servant>| {
        let id = poa.activate_object(servant).unwrap();
        poa.id_to_reference(&id).unwrap()
    };
    let other = activated(&held, Arc::new(Keeper(Arc::default())));
    let failed = Arc::default();
    let caller = activated(&root, Arc::new(Caller { other, failed: Arc::clone(&failed) }));
    held.manager().hold_requests(false).unwrap();
    let mut server = Server::new(&orb);
    let upcall = server.request(&caller, "call");
    server.carry_out(upcall);
    assert!(server.replies());
    assert_eq!(*failed.lock().unwrap(), Some(SystemExceptionKind::Transient));
    assert_eq!(held.manager().state(), ManagerState::Holding);
}
