//! Messages of which long runs of bytes stay where their owner has them until they are sent.
//!
//! What writes a message's body can be run more than once. The first time everything is written but those runs, whose
//! places are noted; so the message's size is known and nothing has been copied that is long. The second time each run
//! is handed over as it is reached, with what was written before it. The alternative, a list of runs that generated code
//! gives, would have been one function more for each operation, and would not have reached into structs.

use std::fmt;

use crate::cdr::{Run, TakeRun, Writer};
use crate::error::Misuse;
use crate::message::MessageStart;
use crate::probe::{self, Stage};

/// What writes a body, more than once.
pub type WriteBody<'a> = &'a dyn Fn(&mut Writer<'_>) -> Result<(), Misuse>;

/// A message that is whole but for runs of bytes that were left out.
#[derive(Debug)]
pub struct GatherMessage {
    /// What was waiting before the message, and the message without its runs.
    buf: Vec<u8>,
    /// Where in the buffer begins what has not been sent.
    from: usize,
    message: MessageStart,
    runs: Vec<Run>,
    /// Bytes that have been sent before it was lent.
    left: usize,
}

/// A message at the end of a connection's buffer that is whole but for one run of bytes: not lent yet, since mostly the system
/// takes it at once.
#[derive(Debug)]
#[must_use = "the message that is in the buffer lacks something"]
pub struct SparseMessage {
    pub(super) message: MessageStart,
    pub(super) run: Run,
}

impl GatherMessage {
    pub(super) fn new(buf: Vec<u8>, from: usize, message: MessageStart, runs: Vec<Run>, left: usize) -> Self {
        GatherMessage { buf, from, message, runs, left }
    }

    /// Bytes that are to leave of the message, and of what was waiting before it.
    pub fn length(&self) -> usize {
        self.buf.len() - self.from + self.runs.iter().map(|run| run.length).sum::<usize>() - self.left
    }

    /// Hands over everything in order that has not left, in up to three pieces at a time, which are gone when `hand_over` returns.
    /// `body` is what has written the message. What it writes is not compared, but its runs must be where they were; if
    /// not ([`Misuse::Unsteady`]) the connection is to be ended, for the stream can carry nothing else.
    pub fn hand_over(
        &mut self,
        body: WriteBody<'_>,
        hand_over: &mut dyn FnMut(&[&[u8]]),
    ) -> Result<(), Misuse> {
        let _probe = probe::enter(Stage::Marshal);
        let end = self.buf.len();
        let mut taker = Taker { runs: self.runs.iter(), from: self.from, end, left: self.left, hand_over };
        let position = self.message.body_position();
        let written = {
            let mut w = Writer::replayed(&mut self.buf, position, self.message.encoding(), &mut taker);
            body(&mut w)
        };
        let Taker { runs, from, .. } = taker;
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

struct Taker<'r> {
    /// Those that have not come.
    runs: std::slice::Iter<'r, Run>,
    /// What of the message has not been handed over.
    from: usize,
    end: usize,
    /// What of the next pieces has left.
    left: usize,
    hand_over: &'r mut dyn FnMut(&[&[u8]]),
}

impl Taker<'_> {
    fn give(&mut self, pieces: &mut [&[u8]]) {
        for piece in &mut *pieces {
            let (left, rest) = piece.split_at(self.left.min(piece.len()));
            self.left -= left.len();
            *piece = rest;
        }
        (self.hand_over)(pieces);
    }
}

impl TakeRun for Taker<'_> {
    fn take_run(&mut self, buf: &[u8], position: usize, bytes: &[u8]) {
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
            // Nothing that follows fits: the message stays unfinished, unless it is finished already.
            _ => self.runs = [].iter(),
        }
    }
}

impl fmt::Debug for Taker<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Taker({} runs)", self.runs.len())
    }
}

impl SparseMessage {
    /// Writes the body once more; `send` is given the message, from so far before it in the buffer, when its run is there.
    /// What it tells, or 0 where there is no such run any more.
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
        // What else it writes this time, or whether it fails, is of no concern.
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
    /// Once it has come.
    sent: Option<usize>,
    send: &'r mut dyn FnMut(&[&[u8]; 3]) -> usize,
}

impl TakeRun for Around<'_> {
    fn take_run(&mut self, buf: &[u8], position: usize, bytes: &[u8]) {
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
