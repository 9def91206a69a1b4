//! Where a message of GIOP 1.1 may be cut into fragments.
//!
//! No primitive may be split, and the data of each fragment is aligned by its place in the fragment, of which the
//! header takes 12 bytes (9.4.9); but there are ORBs that join the data first and align it by its place in the whole.
//! A fragment that begins 4 bytes behind a multiple of 8 of the whole is the same for both. All cuts are at such
//! places. They split no primitive of 1, 2 or 4 bytes, for these lie between two multiples of 4; so numbers of 8 bytes
//! are all that must be known, and the padding before them, at which omniORB 4.2 expects no joint. It does not survive
//! another kind of joint: the last 4 bytes of a fragment that it has not read as a whole - its buffer has 8 KiB - while
//! it copies a run of octets or numbers that goes on in the next one. So a fragment is longer than that only where
//! nothing else will do, as in an array of doubles, and then ends before or behind a number, not in a run.
//!
//! Whether a cut is needed is known only when the message has become too long, and what is marshalled cannot be
//! marshalled again. Four ways were weighed:
//!
//! - Notes taken by the writer of every message: two instructions for each number.
//! - Arguments that can be marshalled twice, first whole and then with known lengths: what invokes and answers takes
//!   them once, and values that marshal themselves need not do the same twice.
//! - A type parameter of the writer: twice the code for every type that is marshalled.
//! - A writer that is told beforehand to take notes, and looks for that where it looks whether numbers must be
//!   swapped anyway: one look for both. That is this one. Only writers of GIOP 1.1 with fragments are told.
//!
//! What is kept is one number a fragment: the notes of what lies together are used up as they come.

use crate::message::HEADER_BYTES;

/// Decides where fragments begin while their message is being written. Positions count from its start.
#[derive(Debug)]
pub(crate) struct Cuts {
    /// Bytes of data that a fragment shall have at most, as its data would be without its own header.
    data_bytes_max: usize,
    /// Where fragments begin, from the second on.
    begins: Vec<u32>,
    /// Cuts may be anywhere from here on, as far as is known.
    free_from: usize,
    /// The last place where the fragment can end that is being written.
    candidate: Option<usize>,
    /// The first place beside a number where it can end once it is too long.
    edge: Option<usize>,
}

/// A fragment is longer than omniORB's buffer only where it has to.
const FRAGMENT_BYTES_MAX: usize = 8192;

impl Cuts {
    /// For fragments of about `fragment_bytes` bytes each, headers included, of which none begins before `body_at`.
    pub(crate) fn new(fragment_bytes: usize, body_at: usize) -> Self {
        let data_bytes_max = fragment_bytes.min(FRAGMENT_BYTES_MAX) - HEADER_BYTES;
        Cuts { data_bytes_max, begins: Vec::new(), free_from: body_at, candidate: None, edge: None }
    }

    /// From `at` to `end` there is a number of at most 4 bytes, or a run of such.
    pub(super) fn note_edges(&mut self, at: usize, end: usize) {
        let reach = self.reach();
        if end > reach && self.edge.is_none_or(|edge| edge <= reach) {
            self.edge = [at, end].into_iter().find(|place| is_place(*place)).or(self.edge);
        }
    }

    /// No cut may be at `from`, nor between it and `to`.
    pub(super) fn keep_together(&mut self, from: usize, to: usize) {
        self.pass(from);
        self.edge = self.edge.filter(|edge| *edge < from || *edge >= to);
        self.free_from = self.free_from.max(to);
    }

    /// What was written from `position` on is taken back.
    pub(super) fn truncate(&mut self, position: usize) {
        self.begins.retain(|&begin| (begin as usize) < position);
        self.candidate = self.candidate.filter(|place| *place < position);
        self.edge = self.edge.filter(|place| *place < position);
        // Of what is before it may have been forgotten what lies together.
        self.free_from = self.free_from.min(position);
    }

    /// Where fragments begin, from the second on, of a message that ends at `end`.
    pub(crate) fn finish(mut self, end: usize) -> Vec<u32> {
        self.pass(end);
        self.begins
    }

    /// The last place where the fragment that is being written should end.
    fn reach(&self) -> usize {
        self.begun() + self.data_bytes_max
    }

    /// Where the data begins of the fragment that is being written.
    fn begun(&self) -> usize {
        self.begins.last().map_or(HEADER_BYTES, |begin| *begin as usize)
    }

    /// There are cuts wherever they are needed before `end`. What is free before it, is known.
    fn pass(&mut self, end: usize) {
        loop {
            let reach = self.reach();
            let from = self.free_from.max(self.begun() + 1);
            self.candidate = last_place(from, end.min(reach + 1)).or(self.candidate);
            if end <= reach {
                return;
            }
            let edge = self.edge.filter(|edge| *edge < end);
            let Some(Ok(cut)) = self.candidate.take().or(edge).map(u32::try_from) else { return };
            self.begins.push(cut);
            self.edge = self.edge.filter(|edge| *edge > cut as usize);
        }
    }
}

/// Whether both ways to align agree about a fragment that begins here.
fn is_place(position: usize) -> bool {
    position % 8 == HEADER_BYTES % 8
}

/// The last such place at or after `from` and before `end`.
fn last_place(from: usize, end: usize) -> Option<usize> {
    let before_place = end.checked_sub(1 + HEADER_BYTES % 8)?;
    let place = before_place / 8 * 8 + HEADER_BYTES % 8;
    (place >= from).then_some(place)
}
