//! Clients with a period each, and a servant with a lane each: what `realtime` and `hartstone` measure.
//!
//! A participant is a server process and a client process. The suite tells the client one block after another: which
//! tasks to run, how often each calls, and how long its servant computes. The client answers with all latencies.
//! Participants differ only in how an octet gets to its servant. What another ORB's programs must do is written at
//! [`participant`].

pub(crate) mod class;
mod client;
mod clock;
pub(crate) mod orb;
pub(crate) mod participant;
pub(crate) mod setup;
pub(crate) mod task;
mod twin;

use crate::error::BenchError;
use crate::role::{Role, RoleArgs};
use setup::{Kind, Setup};

pub(crate) const ROLES: &[Role] = &[
    Role { name: SERVER, run: server },
    Role { name: CLIENT, run: client },
    Role { name: BURNER, run: participant::burner },
];

const SERVER: &str = "paced-server";
const CLIENT: &str = "paced-client";
const BURNER: &str = "paced-burner";

fn setup_of(args: &RoleArgs) -> Result<Setup, BenchError> {
    args.setup.parse().map_err(BenchError::Unusable)
}

/// Serves the cubes of a setup until standard input ends. Its first line has an address for each servant.
fn server(args: &RoleArgs) -> Result<(), BenchError> {
    let setup = setup_of(args)?;
    match setup.kind {
        Kind::Twin => twin::serve(setup),
        _ => orb::serve(setup),
    }
}

/// Runs the blocks that lines of standard input describe. The first line has the server's addresses.
fn client(args: &RoleArgs) -> Result<(), BenchError> {
    let setup = setup_of(args)?;
    let mut lines = std::io::stdin().lines();
    let hear = || BenchError::io("hear what to do");
    let Some(addresses) = lines.next() else { return Ok(()) };
    let addresses = addresses.map_err(hear())?;
    let blocks = lines.map(|line| line.map_err(hear()));
    match setup.kind {
        Kind::Twin => client::run_blocks(setup.class, &twin::Sockets::to(setup, &addresses)?, blocks),
        _ => client::run_blocks(setup.class, &orb::Calls::to(setup, &addresses)?, blocks),
    }
}
