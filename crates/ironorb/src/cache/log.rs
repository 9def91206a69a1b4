//! The server's half of an ORB's caches: the order of writes, who holds what, and the cells.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use ironorb_cache::{
    Answer, Due, Epoch, Fill, Filled, Members, Moment, Opened, Position, Probe, Server, ServerLimits,
    SessionId, Terms,
};

use super::cell::AnyCell;
use crate::base::locks::PiLock;

/// What answers to clients call a cell.
pub(crate) type CellNumber = u64;

/// The log of an ORB's cells. Its lock is taken with a cell's held, and never the other way round.
pub(crate) struct ServerCache {
    epoch: Epoch,
    log: PiLock<Log>,
    /// The end of the log, for replies: those who read it need no lock.
    head: AtomicU64,
}

#[derive(Default)]
struct Log {
    /// Made when the first client asks for something.
    server: Option<Server<CellNumber>>,
    cells: BTreeMap<CellNumber, Weak<dyn AnyCell>>,
    joined: u64,
}

impl ServerCache {
    /// A log without cells. No two have the same epoch.
    pub(crate) fn new(epoch: Epoch) -> ServerCache {
        ServerCache { epoch, log: PiLock::default(), head: AtomicU64::new(0) }
    }

    /// The life of the server that it is the log of.
    pub(crate) fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// The end of the log. A client that is told of it reads nothing from before.
    pub(crate) fn head(&self) -> Position {
        Position(self.head.load(Ordering::Acquire))
    }

    /// Asks the machine, and publishes the end of its log.
    fn with<T>(
        &self,
        log: &mut Log,
        now: Option<Moment>,
        ask: impl FnOnce(&mut Server<CellNumber>) -> T,
    ) -> Option<T> {
        if let (None, Some(now)) = (&log.server, now) {
            log.server = Some(Server::new(self.epoch, ServerLimits::default(), Terms::default(), now));
        }
        let server = log.server.as_mut()?;
        let answer = ask(server);
        self.head.store(server.head().0, Ordering::Release);
        Some(answer)
    }

    /// Takes a cell in, of which a client asks for the first time.
    pub(super) fn join(&self, cell: Arc<dyn AnyCell>) -> CellNumber {
        let mut log = self.log.lock();
        log.joined += 1;
        let number = log.joined;
        log.cells.insert(number, Arc::downgrade(&cell));
        number
    }

    /// A cell has been dropped.
    pub(super) fn leave(&self, cell: CellNumber) {
        let mut log = self.log.lock();
        log.cells.remove(&cell);
        self.with(&mut log, None, |server| server.remove(&cell));
    }

    pub(super) fn fill(
        &self,
        fill: &Fill,
        cell: CellNumber,
        known: Option<Position>,
        now: Moment,
    ) -> Filled<CellNumber> {
        let filled =
            self.with(&mut self.log.lock(), Some(now), |server| server.fill(fill, &cell, known, now));
        filled.unwrap_or(Filled::Unknown { of: fill.of })
    }

    /// Commits a write. `None` if no client holds the cell's state.
    pub(super) fn commit(&self, cell: CellNumber, changed: Members) -> Option<Position> {
        self.with(&mut self.log.lock(), None, |server| server.commit(&cell, changed))?
    }

    /// Has no client hold a cell's state.
    pub(super) fn remove(&self, cell: CellNumber) {
        self.with(&mut self.log.lock(), None, |server| server.remove(&cell));
    }

    /// Opens a session.
    pub(crate) fn open(&self, now: Moment) -> Opened {
        let opened = self.with(&mut self.log.lock(), Some(now), |server| server.open(now));
        opened.unwrap_or(Opened { epoch: self.epoch, session: SessionId(0) })
    }

    /// Ends all sessions.
    pub(crate) fn revoke(&self) {
        self.with(&mut self.log.lock(), None, Server::end_all);
    }

    /// Answers a probe. The states are read afterwards.
    pub(crate) fn probe(&self, probe: &Probe, now: Moment) -> Answer<CellNumber, Due> {
        let answer = self.with(&mut self.log.lock(), Some(now), |server| server.probe(probe, now));
        answer.unwrap_or(Answer::Unknown { of: probe.of })
    }

    /// A cell, if it is still there.
    pub(crate) fn cell(&self, number: CellNumber) -> Option<Arc<dyn AnyCell>> {
        self.log.lock().cells.get(&number)?.upgrade()
    }
}
