//! The fuzz targets. Each function takes any bytes and returns. A panic, an endless loop or memory out of
//! proportion is a finding.
//!
//! A target does not require that bytes are accepted. What is accepted must be written and read again as
//! the same.
//! same.

#![forbid(unsafe_code)]

pub mod mutate;
mod record;
pub mod seeds;
mod typecode;
mod value;

use ironorb_giop::cdr::{LongDouble, WString};
use ironorb_giop::connection::{
    CallState, ClientConnection, ConnectionConfig, Incoming, ServerConnection, Transmit,
};
use ironorb_giop::framer::{Framer, FramerLimits};
use ironorb_giop::ior::{CodeSetComponentInfo, IiopProfile, Profile, TaggedProfile};
use ironorb_giop::message::{HeaderTemplate, Message, MessageType, RequestTarget};
use ironorb_giop::service_context::ServiceContexts;
use ironorb_giop::{
    ByteOrder, CharSet, Encoding, Ior, Malformed, Marshal, ObjectUrl, Reader, SystemException,
    TransmissionCodeSets, Unmarshal, Version, Writer,
};

/// A fuzz target, its name, and the cost of a run.
pub struct Target {
    /// Its name for `cargo fuzz`.
    pub name: &'static str,
    /// The function that takes an input.
    pub run: fn(&[u8]),
    /// The cost of one input, in rough multiples of the cheapest target's. A bounded run divides the number
    /// of inputs by it.
    pub cost: u64,
}

/// All targets.
pub const TARGETS: &[Target] = &[
    Target { name: "cdr", run: cdr, cost: 1 },
    Target { name: "ior", run: ior, cost: 1 },
    Target { name: "url", run: url, cost: 1 },
    Target { name: "giop", run: giop, cost: 4 },
    Target { name: "typecode", run: typecode, cost: 2 },
    Target { name: "any", run: any, cost: 4 },
    Target { name: "fixed", run: fixed, cost: 1 },
    Target { name: "value", run: value, cost: 2 },
    Target { name: "idl", run: idl, cost: 10 },
    Target { name: "record", run: record, cost: 4 },
];

pub use record::record;
pub use typecode::{any, fixed, typecode};
pub use value::value;

/// Values by a plan: the first byte selects the encoding, the second the number of next bytes that select
/// types. The rest holds the values.
pub fn cdr(data: &[u8]) {
    let [encoding, steps, rest @ ..] = data else { return };
    let (plan, bytes) = rest.split_at(usize::from(steps % 16).min(rest.len()));
    let encoding = encoding_of(*encoding);
    let mut r = Reader::new(bytes, encoding);
    for step in plan {
        if read_step(*step, &mut r).is_err() {
            return;
        }
        assert!(r.position() <= bytes.len());
    }
}

fn encoding_of(byte: u8) -> Encoding {
    Encoding {
        order: if byte & 1 == 0 { ByteOrder::Big } else { ByteOrder::Little },
        version: [Version::V1_0, Version::V1_1, Version::V1_2, Version::V1_2][usize::from(byte >> 1 & 3)],
        char_set: if byte & 8 == 0 { CharSet::Latin1 } else { CharSet::Utf8 },
        wide_set: TransmissionCodeSets::from_octet(byte >> 4).wide_set,
        bare_exceptions: byte & 128 != 0,
    }
}

fn read_step(step: u8, r: &mut Reader<'_>) -> Result<(), Malformed> {
    match step % 20 {
        0 => again::<u8>(r),
        1 => again::<bool>(r),
        2 => again::<i16>(r),
        3 => again::<u32>(r),
        4 => again::<i64>(r),
        5 => again::<f32>(r),
        6 => again::<f64>(r),
        7 => again::<LongDouble>(r),
        8 => again::<char>(r),
        9 => again::<String>(r),
        10 => again::<WString>(r),
        11 => again::<Vec<u8>>(r),
        12 => again::<Vec<f64>>(r),
        13 => again::<Vec<LongDouble>>(r),
        14 => again::<Vec<Vec<String>>>(r),
        15 => again::<[[u16; 3]; 2]>(r),
        16 => r.read_numbers::<u32>().map(drop),
        17 => ServiceContexts::read(r).map(use_contexts),
        18 => again::<SystemException>(r),
        _ => read_step(step / 20, &mut r.read_encapsulation()?),
    }
}

/// Reads a value, writes it and reads the result. A second writing must give the bytes of the first.
fn again<T: Unmarshal + Marshal>(r: &mut Reader<'_>) -> Result<(), Malformed> {
    let encoding = r.encoding();
    let write = |value: &T| {
        let mut bytes = Vec::new();
        Writer::new(&mut bytes, encoding).put(value).map(|()| bytes)
    };
    // Some values can be read, but not be written in this encoding.
    let Ok(first) = write(&r.get::<T>()?) else { return Ok(()) };
    let mut reader = Reader::new(&first, encoding);
    let value = reader.get::<T>().expect("what was written can be read");
    assert_eq!(reader.remaining(), 0);
    assert_eq!(write(&value).expect("what was read can be written"), first);
    Ok(())
}

/// A reference as an encapsulation, and the same bytes as a profile.
pub fn ior(data: &[u8]) {
    if let Ok(mut r) = Reader::encapsulated(data, Encoding::NATIVE)
        && let Ok(ior) = r.get::<Ior>()
    {
        use_ior(&ior);
    }
    if let Ok(profile) = (TaggedProfile { tag: 0, data: data.to_vec() }).parse_iiop() {
        use_profile(&profile);
    }
    if let Some(Ok(components)) = (TaggedProfile { tag: 1, data: data.to_vec() }).components() {
        components.for_each(|component| {
            drop((component.code_sets(), component.orb_type()));
            drop((component.unix_address(), component.shared_memory_address()));
        });
    }
}

fn use_ior(ior: &Ior) {
    assert_eq!(ior.to_string().parse::<Ior>().as_ref(), Ok(ior));
    assert!(ior.is_equivalent(&ior.clone()));
    ior.key_hash();
    ior.iiop_profiles().for_each(use_profile);
    for profile in &ior.profiles {
        if let Profile::Other(other) = profile
            && let Some(Ok(components)) = other.components()
        {
            assert_eq!(components.len(), components.count());
        }
    }
}

fn use_profile(profile: &IiopProfile) {
    assert_eq!(profile.components().len(), profile.components().count());
    profile.addresses().for_each(|address| drop((address.to_string(), address.ip())));
    profile.unix_addresses().for_each(|address| drop(address.to_string()));
    profile.shared_memory_addresses().for_each(drop);
    let _ = (
        profile.object_key(),
        profile.orb_type(),
        profile.transmission_code_sets(&CodeSetComponentInfo::ironorb()),
    );
}

/// The text of a reference. Its bytes are tried after each scheme too.
pub fn url(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    for scheme in [
        "",
        "IOR:",
        "corbaloc:",
        "corbaloc::",
        "corbaloc:uiop:",
        "corbaloc:omniunix:/a",
        "corbaname::",
        "corbaname::h#",
    ] {
        let text = format!("{scheme}{text}");
        match text.parse::<ObjectUrl>() {
            Ok(url) => {
                let printed = url.to_string();
                assert_eq!(printed.parse::<ObjectUrl>().as_ref(), Ok(&url), "{printed}");
                match &url {
                    ObjectUrl::Ior(ior) => use_ior(ior),
                    ObjectUrl::Corbaloc(corbaloc) => {
                        drop((corbaloc.to_ior_on(Some("here")), corbaloc.initial_reference()));
                    }
                    ObjectUrl::Corbaname(corbaname) => drop(corbaname.context.to_ior()),
                }
            }
            Err(e) => assert!(e.at <= text.len() && !e.to_string().is_empty()),
        }
    }
}

/// A stream of messages: for a framer whole and in pieces (the first byte is their size), for a server, and
/// for a client that waits for replies.
pub fn giop(data: &[u8]) {
    let [piece, stream @ ..] = data else { return };
    let whole = frame(stream, stream.len().max(1));
    assert_eq!(
        whole,
        frame(stream, usize::from(*piece).max(1)),
        "the pieces of a stream change its messages"
    );
    serve(stream);
    call(stream);
}

/// The bytes of the messages, and whether an error ended them.
fn frame(stream: &[u8], piece: usize) -> (Vec<Vec<u8>>, bool) {
    let mut framer = Framer::new(FramerLimits { message_bytes_max: 1 << 20, assemblies_max: 3 });
    let mut messages = Vec::new();
    for piece in stream.chunks(piece) {
        framer.push(piece);
        loop {
            match framer.next() {
                Ok(Some(message)) => {
                    messages.push(message.bytes().to_vec());
                    parse(&message);
                    framer.recycle(message.into_buffer());
                }
                Ok(None) => break,
                Err(_) => return (messages, true),
            }
        }
    }
    (messages, false)
}

fn parse(message: &Message) {
    let mut again = Transmit::default();
    again.buffer().extend_from_slice(message.bytes());
    again.fragment(0, 64);
    again.take_all();
    match message.header().kind {
        MessageType::Request => {
            recognise(message);
            if let Ok(request) = message.parse_request() {
                use_contexts(request.contexts);
                let _ = request.body.reader().get::<Vec<String>>();
                let _ = request.body.with_code_sets(TransmissionCodeSets::NATIVE).reader().get::<WString>();
            }
        }
        MessageType::Reply => {
            if let Ok(reply) = message.parse_reply() {
                use_contexts(reply.contexts);
                let _ = reply.body.reader().get::<SystemException>();
                if let Ok(ior) = reply.body.reader().get::<Ior>() {
                    use_ior(&ior);
                }
            }
        }
        MessageType::LocateRequest => drop(message.parse_locate_request()),
        MessageType::LocateReply => {
            if let Ok(reply) = message.parse_locate_reply() {
                let _ = reply.body.reader().get::<Ior>();
            }
        }
        _ => drop(message.request_id()),
    }
}

/// A request is recognised by the template of itself, which reads it as the parser does.
fn recognise(message: &Message) {
    let Some(head) = HeaderTemplate::of(message, 8) else { return };
    let request = message.parse_request().expect("it has a template");
    let body_at = head.pass_over_contexts(message, |_| false).map(usize::from);
    assert_eq!(body_at.map(|at| at.min(message.bytes().len())), Some(request.body.position()));
    let contexts = head.contexts_of(message);
    for context in request.contexts.clone() {
        let first = request.contexts.find(context.id).map(|first| first.data);
        assert_eq!(contexts.find(context.id), first);
    }
    assert!(head.is_of(message) && request.contexts.eq(ServiceContexts::from(contexts)));
}

fn use_contexts(contexts: ServiceContexts<'_>) {
    assert_eq!(contexts.len(), contexts.clone().count());
    let _ = (contexts.code_sets(), contexts.exception_detail(), contexts.find(u32::MAX));
}

fn serve(stream: &[u8]) {
    let (mut server, mut framer) = ServerConnection::new(ConnectionConfig::default());
    framer.push(stream);
    loop {
        match ServerConnection::poll_incoming(&mut framer) {
            Ok(Some(Incoming::Request(message))) => {
                parse(&message);
                framer.recycle(message.into_buffer());
            }
            Ok(Some(Incoming::LocateRequest(message) | Incoming::Reply(message))) => parse(&message),
            Ok(Some(Incoming::CancelRequest(_))) => {}
            Ok(Some(Incoming::CloseConnection)) => return server.handle_end(),
            Ok(None) => return,
            Ok(Some(Incoming::TooLarge(refused))) => server.refuse(refused),
            Err(_) => return server.protocol_error(),
        }
    }
}

fn call(stream: &[u8]) {
    let mut client = ClientConnection::<usize>::new(ConnectionConfig::default());
    let target = RequestTarget::new(Version::V1_2, Some(TransmissionCodeSets::NATIVE), b"key");
    let calls: Vec<_> = (0..4)
        .map(|i| {
            let call = if i == 3 {
                client.begin_locate(&target)
            } else {
                client.begin_call(&target, "operation", |w| w.put(&i))
            };
            let call = call.expect("the connection is new");
            client.set_waker(call, i as usize);
            call
        })
        .collect();
    let Some(mut framer) = client.take_framer() else { return };
    framer.push(stream);
    let _ = client.handle_input(framer, |_| {});
    for call in calls {
        if let CallState::Answered(message) = client.poll_call(call) {
            // The kind of request decides how the reply is read, as in the runtime, and not the kind that
            // the peer claims.
            let _ = (message.parse_reply().is_ok(), message.parse_locate_reply().is_ok());
            parse(&message);
            client.recycle(message.into_buffer());
        }
    }
    client.handle_end(ironorb_giop::connection::ConnectionEnd::Lost, |_| {});
}

/// IDL text, parsed and turned into Rust. A zero byte separates a second file, `other.idl`.
pub fn idl(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let (main, other) = text.split_once('\0').unwrap_or((&text, ""));
    let files = ironorb_idl::MapLoader::new().with("main.idl", main).with("other.idl", other);
    let options = ironorb_idl::Options::default();
    let outcome = ironorb_idl::compile_with("main.idl".as_ref(), &options, &files);
    outcome.render(false);
    if let Some(model) = &outcome.model {
        ironorb_idl::dump(model);
        // The generator accepts correct IDL, or says why it does not.
        let _ = ironorb_build::generate_outcome(&outcome, &ironorb_build::Config::new());
    }
}
