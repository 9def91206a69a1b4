//! Messages whose long runs of bytes stay in the caller's memory until they are sent.
//!
//! The body of such a message is written more than once. The first pass writes everything but the long runs
//! and notes their positions. So the size of the message is known, and nothing long has been copied. The
//! second pass hands over each run when it reaches it, with the bytes before it. The alternative is a list of
//! runs from generated code. It would take one more function per operation, and would not reach into structs.

use std::fmt;

use crate::cdr::{Run, RunSink, Writer};
use crate::error::Misuse;
use crate::message::MessageStart;
use crate::probe::{self, Stage};

/// A function that writes a body, and that may be called more than once.
pub type WriteBody<'a> = &'a dyn Fn(&mut Writer<'_>) -> Result<(), Misuse>;

/// A message that is complete but for the long runs of bytes.
#[derive(Debug)]
pub struct GatherMessage {
    /// The bytes that waited before the message, and the message without its runs.
    buf: Vec<u8>,
    /// Where in the buffer the unsent bytes start.
    from: usize,
    message: MessageStart,
    runs: Vec<Run>,
    /// Bytes that were sent before this value was made.
    left: usize,
}

/// A message at the end of a connection's buffer that is complete but for one run of bytes. It is not a
/// [`GatherMessage`] yet, because the system usually accepts all of it at once.
#[derive(Debug)]
#[must_use = "the message in the buffer is not complete"]
pub struct SparseMessage {
    pub(super) message: MessageStart,
    pub(super) run: Run,
}

impl GatherMessage {
    pub(super) fn new(buf: Vec<u8>, from: usize, message: MessageStart, runs: Vec<Run>, left: usize) -> Self {
        GatherMessage { buf, from, message, runs, left }
    }

    /// Bytes still to be sent: those of the message and those that waited before it.
    pub fn length(&self) -> usize {
        self.buf.len() - self.from + self.runs.iter().map(|run| run.length).sum::<usize>() - self.left
    }

    /// Passes all unsent bytes to `write` in order, up to three pieces at a time. The pieces are borrowed only
    /// while `write` runs. `body` is the function that wrote the message. Its new output is not compared
    /// with the old one, but its runs must be at the same positions. If they are not ([`Misuse::Unsteady`]),
    /// the caller must close the connection, because the message in the stream cannot be completed.
    pub fn write_unsent(
        &mut self,
        body: WriteBody<'_>,
        write: &mut dyn FnMut(&[&[u8]]),
    ) -> Result<(), Misuse> {
        let _probe = probe::enter(Stage::Marshal);
        let end = self.buf.len();
        let mut pieces = PieceWriter { runs: self.runs.iter(), from: self.from, end, left: self.left, write };
        let position = self.message.body_position();
        let written = {
            let mut w = Writer::replayed(&mut self.buf, position, self.message.encoding(), &mut pieces);
            body(&mut w)
        };
        let PieceWriter { runs, from, .. } = pieces;
        self.buf.truncate(end);
        match written {
            Ok(()) if runs.len() == 0 && from == end => Ok(()),
            _ => Err(Misuse::Unsteady),
        }
    }

    pub(super) fn into_buffer(self) -> Vec<u8> {
        self.buf
    }
}

struct PieceWriter<'r> {
    /// The runs that the second pass has not reached.
    runs: std::slice::Iter<'r, Run>,
    /// Where in the message the bytes start that have not been passed on.
    from: usize,
    end: usize,
    /// How many bytes of the next pieces have been sent already.
    left: usize,
    write: &'r mut dyn FnMut(&[&[u8]]),
}

impl PieceWriter<'_> {
    fn give(&mut self, pieces: &mut [&[u8]]) {
        for piece in &mut *pieces {
            let (left, rest) = piece.split_at(self.left.min(piece.len()));
            self.left -= left.len();
            *piece = rest;
        }
        (self.write)(pieces);
    }
}

impl RunSink for PieceWriter<'_> {
    fn put_run(&mut self, buf: &[u8], position: usize, bytes: &[u8]) {
        match self.runs.as_slice().first() {
            Some(run) if run.position == position && run.length == bytes.len() => {
                self.runs.next();
                let before = &buf[self.from..run.at];
                if self.runs.len() == 0 {
                    self.from = self.end;
                    self.give(&mut [before, bytes, &buf[run.at..self.end]]);
                } else {
                    self.from = run.at;
                    self.give(&mut [before, bytes]);
                }
            }
            // A run is out of place. The message stays unfinished, unless it is finished already.
            _ => self.runs = [].iter(),
        }
    }
}

impl fmt::Debug for PieceWriter<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PieceWriter({} runs)", self.runs.len())
    }
}

impl SparseMessage {
    /// Writes the body once more. When it reaches the run, calls `send` with the message around the run,
    /// including the bytes of the buffer from `from` on. Returns what `send` returns, or 0 if the body has no
    /// such run any more.
    pub(super) fn send_around(
        &self,
        buf: &mut Vec<u8>,
        from: usize,
        body: WriteBody<'_>,
        send: &mut dyn FnMut(&[&[u8]; 3]) -> usize,
    ) -> usize {
        let _probe = probe::enter(Stage::Marshal);
        let end = buf.len();
        let mut around = Around { run: self.run, from, end, sent: None, send };
        // It does not matter what else the body writes this time, or whether it fails.
        let _ = body(&mut Writer::replayed(
            buf,
            self.message.body_position(),
            self.message.encoding(),
            &mut around,
        ));
        let sent = around.sent.unwrap_or(0);
        buf.truncate(end);
        sent
    }
}

struct Around<'r> {
    run: Run,
    from: usize,
    end: usize,
    /// What `send` returned, once the run has been reached.
    sent: Option<usize>,
    send: &'r mut dyn FnMut(&[&[u8]; 3]) -> usize,
}

impl RunSink for Around<'_> {
    fn put_run(&mut self, buf: &[u8], position: usize, bytes: &[u8]) {
        let Run { at, position: expected, length } = self.run;
        if position == expected && length == bytes.len() && self.sent.is_none() {
            self.sent = Some((self.send)(&[&buf[self.from..at], bytes, &buf[at..self.end]]));
        }
    }
}

impl fmt::Debug for Around<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Around({:?})", self.run)
    }
}
