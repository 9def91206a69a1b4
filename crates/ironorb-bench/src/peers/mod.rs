//! Other ORBs in the suites: programs of ours for each, which serve and call the IDL of the suites.
//!
//! A server tells its reference in its first line and ends with its standard input. A client answers each line of its
//! standard input with one line: `ok`, or numbers.

use std::path::Path;

use crate::error::BenchError;
use crate::process::Process;
use crate::variant::{Peer, Transport};

/// What serves and calls for another ORB.
#[derive(Debug)]
pub(crate) enum Program {}

impl Program {
    /// The program, or why there is none.
    pub(crate) fn find(_peer: Peer) -> Result<Program, String> {
        Err("takes no part in this suite".to_owned())
    }

    pub(crate) fn start_server(
        &self,
        _suite: &str,
        _transport: Transport,
        _folder: &Path,
    ) -> Result<Process, BenchError> {
        match *self {}
    }

    pub(crate) fn start_client(&self, _suite: &str, _arguments: &[String]) -> Result<PeerClient, BenchError> {
        match *self {}
    }
}

/// A peer's client, which waits for commands.
#[derive(Debug)]
pub(crate) struct PeerClient {
    process: Process,
    name: &'static str,
}

impl PeerClient {
    /// Tells it something that it does.
    pub(crate) fn tell(&mut self, command: &str) -> Result<(), BenchError> {
        match self.process.ask(command)?.as_str() {
            "ok" => Ok(()),
            other => Err(self.fault(format!("answered {other:?} to {command:?}"))),
        }
    }

    /// The nanoseconds of each of so many samples of what was prepared in a slot.
    pub(crate) fn each(&mut self, slot: usize, nanos: &mut [u64]) -> Result<(), BenchError> {
        let told = self.numbers(&format!("each {slot} {}", nanos.len()))?;
        if told.len() != nanos.len() {
            return Err(self.fault(format!("told {} times instead of {}", told.len(), nanos.len())));
        }
        nanos.copy_from_slice(&told);
        Ok(())
    }

    /// The numbers that it answers.
    pub(crate) fn numbers(&mut self, command: &str) -> Result<Vec<u64>, BenchError> {
        let answer = self.process.ask(command)?;
        let numbers: Option<Vec<u64>> = answer.split_whitespace().map(|word| word.parse().ok()).collect();
        numbers.ok_or_else(|| self.fault(format!("answered {answer:?} to {command:?}")))
    }

    fn fault(&self, what: String) -> BenchError {
        BenchError::Process { role: format!("{}'s client", self.name), what }
    }
}
