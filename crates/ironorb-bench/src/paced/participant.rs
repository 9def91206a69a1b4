//! The processes of a block: a server and a client.
//!
//! A foreign ORB takes part with two programs that keep to these rules:
//!
//! - The server prints one line: for each servant a reference to an object of `realtime::Cubing`, separated by blanks. It
//!   ends with its standard input.
//! - The client reads this line, and then a line for each block, as [`Block`] writes them. A thread for each task takes
//!   the priority of its place (80 for the first, one less for each further one), makes a few calls, has its servant burn
//!   as the block says, and waits for the others. All begin at one time; each calls once in each of its periods.
//! - The client answers each block with one line, as [`parse_answer`] reads it, or with `failed` and the reason.

use super::class::enter_idle;
use super::setup::Setup;
use super::task::{Block, Served, parse_answer};
use super::{BURNER, CLIENT, SERVER};
use crate::error::BenchError;
use crate::machine::cores;
use crate::process::Process;
use crate::role::{RoleArgs, tell, wait_for_end};

/// The two processes of a way to call.
#[derive(Debug)]
pub(crate) struct Participant {
    client: Process,
    // Dropped after the client, which is connected to it.
    _server: Process,
}

impl Participant {
    /// Starts both processes. They run on the processors of the calling thread.
    pub(crate) fn start(setup: Setup) -> Result<Participant, BenchError> {
        let args = [format!("--setup={setup}")];
        Participant::of(Process::start(&[], SERVER, &args)?, || Process::start(&[], CLIENT, &args))
    }

    /// A server that prints addresses, and a client that reads them.
    pub(crate) fn of(
        mut server: Process,
        client: impl FnOnce() -> Result<Process, BenchError>,
    ) -> Result<Participant, BenchError> {
        let addresses = server.address()?;
        let mut client = client()?;
        client.tell(&addresses)?;
        Ok(Participant { client, _server: server })
    }

    /// Runs a block, and returns what was measured of each task. Blocks.
    pub(crate) fn run(&mut self, block: &Block) -> Result<Vec<Served>, BenchError> {
        let answer = self.client.ask(&block.to_string())?;
        let served = parse_answer(&answer).filter(|served| served.len() == block.tasks.len());
        served.ok_or_else(|| {
            let said: String = answer.chars().take(200).collect();
            BenchError::process("of a client", format!("answered {said:?} to a block of tasks"))
        })
    }
}

/// Keeps all processors of the calling thread from sleeping, until it is dropped.
pub(crate) fn never_idle() -> Result<Process, BenchError> {
    let mut burner = Process::start(&[], BURNER, &[])?;
    burner.address()?;
    Ok(burner)
}

/// Computes on every processor while no other thread wants to, until standard input ends.
pub(super) fn burner(_: &RoleArgs) -> Result<(), BenchError> {
    let mut threads = Vec::new();
    for core in cores() {
        let (report, begun) = std::sync::mpsc::channel();
        threads.push(begun);
        std::thread::spawn(move || {
            let entered = crate::machine::pin(core).and_then(|()| enter_idle());
            let is_entered = entered.is_ok();
            // The other end waits for it.
            let _ = report.send(entered);
            if is_entered {
                burn_forever();
            }
        });
    }
    let ended = |_| BenchError::process(BURNER, "lost a thread");
    threads.into_iter().try_for_each(|begun| begun.recv().map_err(ended)?)?;
    tell("burning")?;
    wait_for_end()
}

/// Computes as long as the process lives.
fn burn_forever() -> ! {
    let mut turns = 0u64;
    loop {
        turns = std::hint::black_box(turns.wrapping_add(1));
    }
}
