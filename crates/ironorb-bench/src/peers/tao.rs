//! Options of TAO's command line.

use super::paced::PacedOptions;
use crate::paced::class::Class;

/// A thread of TAO's client reads its reply itself, from a connection that no other thread uses meanwhile: without it, threads
/// take turns to wait for all replies.
const CLIENT: &str =
    "static Client_Strategy_Factory \"-ORBClientConnectionHandler RW -ORBTransportMuxStrategy EXCLUSIVE\"";

const SERVER: &str = "static Server_Strategy_Factory \"-ORBConcurrency thread-per-connection\"";

/// Any port of this machine.
const ADDRESS: &str = "iiop://127.0.0.1:0";

fn directive(text: &str) -> [String; 2] {
    ["-ORBSvcConfDirective", text].map(str::to_owned)
}

/// A server with a thread for each connection.
pub(super) fn server() -> Vec<String> {
    [["-ORBListenEndpoints", ADDRESS].map(str::to_owned), directive(SERVER)].concat()
}

/// A client with a connection for each thread.
pub(super) fn client() -> Vec<String> {
    directive(CLIENT).to_vec()
}

/// Priorities are the system's, in this class. All lanes listen.
pub(super) fn paced(class: Class) -> PacedOptions {
    let policy = if class == Class::Rr { "SCHED_RR" } else { "SCHED_FIFO" };
    let settings = format!("-ORBSchedPolicy {policy} -ORBScopePolicy SYSTEM -ORBPriorityMapping direct");
    let real_time = directive(&format!("static RT_ORB_Loader \"{settings}\""));
    let address = ["-ORBListenEndpoints", ADDRESS, "-ORBLaneListenEndpoints", "*:*", ADDRESS];
    PacedOptions {
        server: [&address.map(str::to_owned)[..], &real_time].concat(),
        client: [&real_time[..], &directive(CLIENT)].concat(),
    }
}
