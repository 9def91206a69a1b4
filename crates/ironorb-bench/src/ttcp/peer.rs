//! omniORB in the suite: a program written for it that serves and calls the suite's IDL. It is built where
//! omniORB is installed.
//!
//! omniORB's requests cannot be sent again, so it takes part with the static interface and with new requests.

use std::path::{Path, PathBuf};

use crate::error::BenchError;
use crate::machine::Layout;
use crate::peers::omniorb_ttcp;
use crate::process::Process;
use crate::variant::{DataType, Invocation, Mode, Transport, name};

/// The program, if omniORB is installed, or why there is none.
#[derive(Debug, Clone)]
pub(super) struct OmniOrb(Result<PathBuf, String>);

impl OmniOrb {
    /// Builds the program if it is requested and has not been built from the same text before. Takes a
    /// quarter of a minute.
    pub(super) fn prepare(is_wanted: bool) -> OmniOrb {
        OmniOrb(if is_wanted { omniorb_ttcp() } else { Err("not asked for".to_owned()) })
    }

    /// Why omniORB cannot take part.
    pub(super) fn missing(&self) -> String {
        self.0.as_ref().err().cloned().unwrap_or_else(|| "not started".to_owned())
    }

    pub(super) fn start_server(
        &self,
        layout: Layout,
        transport: Transport,
        folder: &Path,
        queue_bytes: Option<usize>,
    ) -> Result<Option<Process>, BenchError> {
        let Ok(program) = &self.0 else { return Ok(None) };
        let endpoint = match transport {
            Transport::Tcp => "giop:tcp:127.0.0.1:".to_owned(),
            Transport::Unix => format!("giop:unix:{}", folder.join("omniorb").display()),
        };
        let mut args = vec!["server".to_owned(), layout.server.to_string()];
        // One sequence after another, as in this ORB's server.
        args.extend(["-ORBendPoint", &endpoint, "-ORBmaxServerThreadPerConnection", "1"].map(str::to_owned));
        args.extend(common(queue_bytes));
        Process::start_program("omniORB's server", program, &args).map(Some)
    }

    /// Starts a client for an object of omniORB's server.
    pub(super) fn start_client(
        &self,
        layout: Layout,
        queue_bytes: Option<usize>,
        call: Call<'_>,
    ) -> Result<Option<PeerClient>, BenchError> {
        let Ok(program) = &self.0 else { return Ok(None) };
        let mut args = vec![
            "client".to_owned(),
            layout.client.to_string(),
            name(call.mode),
            call.ty.map_or("nothing".to_owned(), name),
            call.elements.to_string(),
            name(call.invocation),
            call.reference.to_owned(),
        ];
        args.extend(common(queue_bytes));
        let process = Process::start_program("omniORB's client", program, &args)?;
        Ok(Some(PeerClient { process, elements: call.elements }))
    }
}

/// The call that a client repeats.
#[derive(Debug, Clone, Copy)]
pub(super) struct Call<'a> {
    pub(super) mode: Mode,
    pub(super) ty: Option<DataType>,
    pub(super) elements: usize,
    pub(super) invocation: Invocation,
    pub(super) reference: &'a str,
}

/// omniORB's client, which waits for commands.
#[derive(Debug)]
pub(super) struct PeerClient {
    process: Process,
    elements: usize,
}

impl PeerClient {
    /// Sends `sequences` sequences. Returns the nanoseconds, and the elements that the receiver counted,
    /// which are those that were sent.
    pub(super) fn run(&mut self, sequences: usize) -> Result<(u64, u64), BenchError> {
        let answer = self.process.ask(&format!("run {sequences}"))?;
        let numbers = numbers(&answer);
        let sent = [sequences as u64, (sequences * self.elements) as u64, 0];
        match numbers[..] {
            [nanos, ref tally @ ..] if *tally == sent => Ok((nanos, sent[1])),
            _ => Err(BenchError::Lost { sent: sent[0], elements: sent[1], tally: answer }),
        }
    }

    /// Stores the nanoseconds of each of several calls.
    pub(super) fn each(&mut self, nanos: &mut [u64]) -> Result<(), BenchError> {
        let answer = self.process.ask(&format!("each {}", nanos.len()))?;
        let times = numbers(&answer);
        if times.len() != nanos.len() {
            let what = format!("returned {} times instead of {}", times.len(), nanos.len());
            return Err(BenchError::Process { role: "omniORB's client".to_owned(), what });
        }
        nanos.copy_from_slice(&times);
        Ok(())
    }
}

fn numbers(line: &str) -> Vec<u64> {
    line.split_whitespace().map_while(|word| word.parse().ok()).collect()
}

fn common(queue_bytes: Option<usize>) -> Vec<String> {
    // The default limit of 2 MiB would refuse the largest buffers. omniORB has a setting for only one of the
    // two queues.
    let mut args = vec!["-ORBgiopMaxMsgSize".to_owned(), (64 << 20).to_string()];
    if let Some(bytes) = queue_bytes {
        args.extend(["-ORBsocketSendBuffer".to_owned(), bytes.to_string()]);
    }
    args
}
