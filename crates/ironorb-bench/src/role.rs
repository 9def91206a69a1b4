//! Processes of a benchmark: this program, started again in a role that a suite has registered.

use std::io::{Read, Write};

use ironorb::{Orb, OrbBuilder};

use crate::error::BenchError;
use crate::host::LOOPBACK;
use crate::settings::Settings;
use crate::variant::{Bytes, Transport};

/// A role of a child process.
#[derive(Clone, Copy)]
pub(crate) struct Role {
    pub(crate) name: &'static str,
    pub(crate) run: fn(&RoleArgs) -> Result<(), BenchError>,
}

/// One process of a benchmark.
#[derive(Debug, clap::Args)]
pub(crate) struct RoleArgs {
    /// The role.
    role: String,
    /// The address at which an ORB's server listens.
    #[arg(long, default_value = "iiop://127.0.0.1:0")]
    pub(crate) endpoint: String,
    /// The address at which a plain server listens.
    #[arg(long, default_value = LOOPBACK)]
    pub(crate) host: String,
    /// The transport of a plain server.
    #[arg(long, value_enum, default_value = "tcp")]
    pub(crate) transport: Transport,
    /// Settings of the ORB, as `NAME=VALUE+NAME=VALUE`.
    #[arg(long, default_value = "")]
    pub(crate) settings: Settings,
    /// The address of a client's server: `host:port`, or a reference.
    #[arg(long, default_value = "")]
    pub(crate) at: String,
    /// The row that a client calls.
    #[arg(long, default_value = "void")]
    pub(crate) row: String,
    /// Samples of the row that a client takes.
    #[arg(long, default_value_t = 0)]
    pub(crate) samples: usize,
    /// The exchange of a client without an ORB: messages in a sample, bytes of each, bytes of the answer.
    #[arg(long, value_delimiter = ',')]
    pub(crate) exchange: Vec<usize>,
    /// Bytes of the system's queues of each connection. Default: the system's choice.
    #[arg(long)]
    pub(crate) queue: Option<Bytes>,
    /// What the processes of a real-time participant agree on, as text.
    #[arg(long, default_value = "")]
    pub(crate) setup: String,
}

/// Runs one process of a benchmark until it is done or its standard input ends.
pub(crate) fn run(roles: &[&[Role]], args: &RoleArgs) -> Result<(), BenchError> {
    let mut known = roles.iter().flat_map(|roles| roles.iter());
    let Some(role) = known.clone().find(|role| role.name == args.role) else {
        let known: Vec<&str> = known.by_ref().map(|role| role.name).collect();
        return Err(BenchError::UnknownRow { name: args.role.clone(), known: known.join(", ") });
    };
    (role.run)(args)
}

impl RoleArgs {
    /// A builder for a server's ORB.
    pub(crate) fn server(&self) -> Result<OrbBuilder, BenchError> {
        Ok(self.settings.builder().endpoint(&self.endpoint)?)
    }
}

/// Prints the result of the activation, and serves the objects until standard input ends.
pub(crate) fn serve(
    builder: OrbBuilder,
    activate: impl FnOnce(&Orb) -> Result<String, BenchError>,
) -> Result<(), BenchError> {
    let orb = builder.build()?;
    tell(&activate(&orb)?)?;
    wait_for_end()?;
    orb.shutdown(false)?;
    Ok(())
}

/// Sends a line to the process that started this one.
pub(crate) fn tell(line: &str) -> Result<(), BenchError> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).map_err(BenchError::io("tell a line"))
}

/// Waits until the process that started this one closes the standard input.
pub(crate) fn wait_for_end() -> Result<(), BenchError> {
    let mut rest = [0; 64];
    while std::io::stdin().read(&mut rest).map_err(BenchError::io("wait for the end"))? > 0 {}
    Ok(())
}
