//! The processes of the suite: who receives, and who sends when a run is looked at from outside.

use std::path::PathBuf;

use ironorb::{ObjectRef, Orb, OrbConfig, TypedRef};
use serde::Serialize;

use super::Data;
use super::receiver::{DynamicReceiver, StaticReceiver};
use super::sender::{Sender, Way};
use super::stream::StreamListener;
use crate::breakdown;
use crate::error::BenchError;
use crate::generated_ttcp::ttcp::{TtcpSequence2wayRef, TtcpSequenceRef};
use crate::role::{Place, tell, wait_for_end};
use crate::variant::{Bytes, DataType, Invocation, Mode, ServantKind, Transport};

/// What the roles of the suite are told.
#[derive(Debug, clap::Args)]
pub(crate) struct TtcpRoleArgs {
    /// Bytes of the system's queues of each connection; its own choice if not given.
    #[arg(long)]
    queue: Option<Bytes>,
    /// What the elements are; of an operation without parameters nothing.
    #[arg(long = "type", value_enum)]
    ty: Option<DataType>,
    /// Bytes of a sequence.
    #[arg(long, default_value_t = Bytes(64 << 10))]
    buffer: Bytes,
    /// Sequences to send.
    #[arg(long, default_value_t = 1)]
    sequences: usize,
    /// How to call.
    #[arg(long, value_enum, default_value = "sii")]
    invocation: Invocation,
    /// Whether to wait.
    #[arg(long, value_enum, default_value = "twoway")]
    mode: Mode,
}

/// Serves both interfaces by both kinds of servant until standard input ends. Its first line is [`References`].
pub(crate) fn server(args: &TtcpRoleArgs, place: &Place) -> Result<(), BenchError> {
    let mut builder = Orb::builder().endpoint(&place.endpoint()?).map_err(ironorb::BuildError::from)?;
    // One sequence after the other, also where the machine is so slow that a servant seems to be blocked.
    builder.config().threads_per_connection_max = 1;
    set_queues(builder.config(), args.queue.map(|bytes| bytes.0));
    let orb = builder.build()?;
    let poa = orb.root_poa();
    let mut references = Vec::new();
    for mode in Mode::ALL {
        let fixed = match mode {
            Mode::Oneway => poa.activate::<TtcpSequenceRef, _>(StaticReceiver::default())?.object().clone(),
            Mode::Twoway => {
                poa.activate::<TtcpSequence2wayRef, _>(StaticReceiver::default())?.object().clone()
            }
        };
        references.push(fixed.to_ior_string());
        let servant = ironorb::dynamic::servant(std::sync::Arc::new(DynamicReceiver::new(mode)));
        let id = poa.activate_object(servant)?;
        references.push(poa.id_to_reference(&id)?.to_ior_string());
    }
    references.push(breakdown::teller(&orb)?);
    tell(&references.join(" "))?;
    wait_for_end()?;
    orb.shutdown(false)?;
    Ok(())
}

/// Gives the connections of an ORB queues of so many bytes.
pub(super) fn set_queues(config: &mut OrbConfig, bytes: Option<usize>) {
    config.send_queue_bytes = bytes;
    config.receive_queue_bytes = bytes;
}

/// Where the objects of a server are: one for each interface and kind of servant, and the one that tells what its probes
/// count.
#[derive(Debug, Clone)]
pub(super) struct References(Vec<String>);

impl References {
    /// From the line that a server tells.
    pub(super) fn parse(line: &str) -> Result<References, BenchError> {
        let references: Vec<String> = line.split(' ').map(str::to_owned).collect();
        match references.len() {
            // Only our own server tells what it counts.
            4 | 5 => Ok(References(references)),
            count => Err(BenchError::Process {
                role: "ttcp-server".to_owned(),
                what: format!("told {count} references instead of 4 or 5"),
            }),
        }
    }

    pub(super) fn of(&self, mode: Mode, servant: ServantKind) -> &str {
        &self.0[2 * mode as usize + servant as usize]
    }

    /// Who tells what the server's probes count, if anybody does.
    pub(super) fn teller(&self) -> Option<&str> {
        self.0.get(4).map(String::as_str)
    }
}

/// Takes bytes over a plain stream until standard input ends. Its first line is its address.
pub(crate) fn raw_server(args: &TtcpRoleArgs, place: &Place) -> Result<(), BenchError> {
    let folder = match place.transport {
        Transport::Tcp => PathBuf::new(),
        Transport::Unix => place.folder()?,
    };
    let (listener, address) =
        StreamListener::bind(place.transport, &folder).map_err(BenchError::io("listen"))?;
    tell(&address)?;
    let queue_bytes = args.queue.map(|bytes| bytes.0);
    std::thread::spawn(move || match listener.serve(queue_bytes) {
        Ok(()) => {}
        Err(e) => eprintln!("the plain server stops: {e}"),
    });
    wait_for_end()
}

/// Sends one run to the object at a reference and tells what it was, as a line of JSON.
pub(crate) fn client(args: &TtcpRoleArgs, transport: Transport, at: &str) -> Result<(), BenchError> {
    let mut builder = Orb::builder().no_endpoint();
    set_queues(builder.config(), args.queue.map(|bytes| bytes.0));
    let orb = builder.build()?;
    let object: ObjectRef = orb.string_to_object(at)?;
    let data = args.ty.map_or(Data::Nothing, |ty| Data::filling(ty, args.buffer.0));
    let way = Way { mode: args.mode, invocation: args.invocation, data: &data };
    let run = Sender::new(&object, way)?.run(args.sequences)?;
    let told = Told {
        transport,
        ty: args.ty,
        buffer: args.buffer,
        mode: args.mode,
        invocation: args.invocation,
        sequences: run.tally.sequences,
        elements: run.tally.elements,
        sender_nanos: run.sender_nanos,
        receiver_nanos: run.tally.nanoseconds,
    };
    tell(&serde_json::to_string(&told).map_err(|e| BenchError::io("tell the run")(e.into()))?)?;
    orb.shutdown(false)?;
    Ok(())
}

#[derive(Serialize)]
struct Told {
    transport: Transport,
    #[serde(rename = "type")]
    ty: Option<DataType>,
    buffer: Bytes,
    mode: Mode,
    invocation: Invocation,
    sequences: u64,
    elements: u64,
    sender_nanos: u64,
    receiver_nanos: u64,
}
