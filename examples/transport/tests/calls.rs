//! Calls over the transport of this crate.

use std::sync::{Arc, Condvar, Mutex};

use ironorb::interceptor::{Interrupt, ServerInterceptor, ServerRequestInfo};
use ironorb::transport::CustomTransport;
use ironorb::{Orb, OrbBuilder, ServerConcurrency, SystemException, SystemExceptionKind, TypedRef, Waiting};
use ironorb_example_transport::{Pipes, TAG_PIPE};

use pinboard::{Board, BoardRef};

ironorb::include_idl!("pinboard");

#[derive(Default)]
struct Wall {
    last: Mutex<String>,
    posted: Condvar,
}

impl Board for Wall {
    fn echo(&self, data: &[u8]) -> Result<Vec<u8>, SystemException> {
        Ok(data.to_vec())
    }

    fn post(&self, text: &str) -> Result<(), SystemException> {
        text.clone_into(&mut self.last.lock().unwrap());
        self.posted.notify_all();
        Ok(())
    }

    /// Waits until something has been posted.
    fn last(&self) -> Result<String, SystemException> {
        let last = self.posted.wait_while(self.last.lock().unwrap(), |last| last.is_empty()).unwrap();
        Ok(last.clone())
    }
}

fn orb(pipes: &Pipes) -> OrbBuilder {
    OrbBuilder::default().transport(Arc::new(pipes.clone()))
}

fn serving(orb: &Orb) -> String {
    let board: BoardRef = orb.root_poa().activate(Wall::default()).unwrap();
    orb.object_to_string(board.object()).unwrap()
}

fn client(pipes: &Pipes) -> Orb {
    orb(pipes).no_endpoint().build().unwrap()
}

fn server(pipes: &Pipes, name: &str) -> Orb {
    orb(pipes).endpoint(&format!("pipe://{name}")).unwrap().build().unwrap()
}

#[test]
fn calls_of_all_kinds_go_over_it_in_every_model_of_concurrency() {
    for concurrency in [
        ServerConcurrency::default(),
        ServerConcurrency::ThreadPerConnection,
        ServerConcurrency::LeaderFollowers { threads: 2 },
        ServerConcurrency::Reactor,
    ] {
        for waiting in [Waiting::Block, Waiting::Spin] {
            let pipes = Pipes::default();
            let builder = orb(&pipes).endpoint("pipe://wall").unwrap();
            let server = builder.concurrency(concurrency).server_waiting(waiting).build().unwrap();
            assert_eq!(server.published_addresses(), ["pipe://wall"]);
            let client = orb(&pipes).no_endpoint().client_waiting(waiting).build().unwrap();
            let board: BoardRef = client.resolve(&serving(&server)).unwrap();
            assert_eq!(board.echo(b"small").unwrap(), b"small");
            let large: Vec<u8> = (0..1 << 20).map(|i: u32| i.to_le_bytes()[1]).collect();
            assert!(board.echo(&large).unwrap() == large);
            board.post("by a oneway").unwrap();
            assert_eq!(board.last().unwrap(), "by a oneway");
            server.shutdown(true).unwrap();
        }
    }
}

#[test]
fn both_orbs_call_each_other() {
    let pipes = Pipes::default();
    let (one, two) = (server(&pipes, "one"), server(&pipes, "two"));
    let (at_one, at_two) = (serving(&one), serving(&two));
    let boards: [BoardRef; 2] = [two.resolve(&at_one).unwrap(), one.resolve(&at_two).unwrap()];
    for board in boards {
        assert_eq!(board.echo(b"there").unwrap(), b"there");
    }
}

struct Forwarding(BoardRef);

impl ServerInterceptor for Forwarding {
    fn receive_request(&self, _request: &mut ServerRequestInfo) -> Result<(), Interrupt> {
        Err(Interrupt::Forward(self.0.object().clone()))
    }
}

#[test]
fn a_server_forwards_to_another() {
    let pipes = Pipes::default();
    let (refuge, client) = (server(&pipes, "refuge"), client(&pipes));
    let there: BoardRef = refuge.resolve(&serving(&refuge)).unwrap();
    there.post("refuge").unwrap();
    let builder = orb(&pipes).endpoint("pipe://first").unwrap();
    let first = builder.server_interceptor(Forwarding(there)).build().unwrap();
    let board: BoardRef = client.resolve(&serving(&first)).unwrap();
    assert_eq!(board.last().unwrap(), "refuge");
}

#[test]
fn a_call_goes_on_to_the_next_address() {
    let pipes = Pipes::default();
    let builder = orb(&pipes).publish("pipe://nobody").endpoint("pipe://somebody").unwrap();
    let server = builder.build().unwrap();
    assert_eq!(server.published_addresses(), ["pipe://nobody", "pipe://somebody"]);
    let board: BoardRef = client(&pipes).resolve(&serving(&server)).unwrap();
    assert_eq!(board.echo(b"found").unwrap(), b"found");
}

#[test]
fn a_client_without_the_transport_uses_another_address() {
    let builder = orb(&Pipes::default()).endpoint("iiop://127.0.0.1:0").unwrap();
    let server = builder.endpoint("pipe://wall").unwrap().build().unwrap();
    let stranger = OrbBuilder::default().no_endpoint().build().unwrap();
    let board: BoardRef = stranger.resolve(&serving(&server)).unwrap();
    assert_eq!(board.echo(b"by TCP").unwrap(), b"by TCP");
}

#[test]
fn the_end_of_a_server_is_noticed_and_its_name_is_free() {
    let pipes = Pipes::default();
    let client = client(&pipes);
    let first = server(&pipes, "wall");
    let board: BoardRef = client.resolve(&serving(&first)).unwrap();
    board.echo(b"there").unwrap();
    first.shutdown(true).unwrap();
    assert_eq!(board.echo(b"gone").unwrap_err().kind, SystemExceptionKind::Transient);
    let second = server(&pipes, "wall");
    let board: BoardRef = client.resolve(&serving(&second)).unwrap();
    assert_eq!(board.echo(b"back").unwrap(), b"back");
}

#[test]
fn a_name_has_one_server() {
    let pipes = Pipes::default();
    let _first = server(&pipes, "wall");
    let second = orb(&pipes).endpoint("pipe://wall").unwrap().build().unwrap_err();
    assert!(second.to_string().contains("cannot listen at pipe://wall"), "{second}");
}

#[test]
fn schemes_are_known_once_their_transport_is() {
    assert!(OrbBuilder::default().endpoint("pipe://wall").is_err());
    assert!(orb(&Pipes::default()).endpoint("tube://wall").is_err());
    assert!(orb(&Pipes::default()).endpoint(&format!("pipe://{}", "x".repeat(1025))).is_err());
}

#[test]
fn components_that_cannot_be_read_are_skipped() {
    let pipes = Pipes::default();
    assert_eq!(pipes.component_tag(), TAG_PIPE);
    assert_eq!(pipes.address(&pipes.component("wall").unwrap()).unwrap(), "wall");
    for bytes in [&b""[..], b"PIP", b"PIPE", b"PIPE\xff", b"TUBEwall"] {
        assert_eq!(pipes.address(bytes), None);
    }
}
