//! The server's half of an ORB's caches: the order of writes, who holds what, and the cells.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use ironorb_cache::{
    Answer, Epoch, Fill, Filled, Members, Moment, Opened, Position, Probe, Server, ServerCounts,
    ServerLimits, SessionId, Terms, WriteId,
};
use ironorb_giop::service_context::{EncodedContexts, ServiceContext, ServiceContextList};
use ironorb_giop::{Encoding, Misuse};

use super::cell::{AnyCell, StateDue, Waits};
use super::wire::{CarriedProbe, LogQuestion, UNIT_BYTES_MIN, encapsulated, encoded_end};
use crate::base::locks::{LockGuard, PiLock};
use crate::object::wire_numbers::CACHE_CONTEXT;

/// What answers to clients call a cell.
pub(crate) type CellNumber = u64;

/// What the log needs of threads and clocks.
pub(crate) trait LogHost: fmt::Debug + Send + Sync {
    /// The moment now, on the clock that goes on while the system sleeps.
    fn now(&self) -> Moment;

    /// Has the waiting probes of these sessions answered, by a thread of the host.
    fn answer(&self, sessions: Vec<SessionId>);

    /// Answers the waiting probes of these sessions, for a thread that has to wait for their clients. Waits for no connection.
    fn answer_here(&self, sessions: Vec<SessionId>);

    /// Blocks until `look` gives no moment. It is called again at the moment that it has given, and after each [`wake`](Self::wake).
    fn block(&self, look: &mut dyn FnMut(Moment) -> Option<Moment>);

    /// Has blocked threads look again.
    fn wake(&self);
}

/// The log of an ORB's cells. Its lock is taken with a cell's held, and never the other way round.
pub(crate) struct ServerCache {
    host: Arc<dyn LogHost>,
    epoch: Epoch,
    limits: ServerLimits,
    log: PiLock<Log>,
    /// The end of the log, for replies: those who read it need no lock.
    head: AtomicU64,
    answered: Answered,
}

#[derive(Default)]
struct Log {
    /// Made when the first client asks for something.
    server: Option<Server<CellNumber>>,
    /// When the first cell became that of an active object whose writes may wait: the terms of the server's last life were
    /// given before.
    begun: Option<Moment>,
    cells: BTreeMap<CellNumber, KnownCell>,
    joined: u64,
}

/// A cell of which clients have asked.
struct KnownCell {
    cell: Weak<dyn AnyCell>,
    /// The most octets that its values have taken in a message.
    octets: usize,
}

/// How many questions of clients have been answered, and what else the log has seen.
#[derive(Debug, Default)]
pub(crate) struct Answered {
    /// States that were given to clients to hold.
    pub(crate) fills: AtomicU64,
    pub(crate) probes: AtomicU64,
    /// The same of probes that calls carried.
    pub(crate) carried: AtomicU64,
    /// Changed states in answers to probes.
    pub(crate) updates: AtomicU64,
    /// Writes of states that clients held.
    pub(crate) writes: AtomicU64,
}

/// Why a probe has no answer.
enum Unanswered {
    /// A state cannot be written.
    Misuse(Misuse),
    /// The lock of a cell is not free.
    Busy,
}

impl Answered {
    /// Counts an answer, as one of this kind.
    fn note_answer<V>(&self, answer: &Answer<CellNumber, V>, kind: &AtomicU64) {
        if let Answer::Changes { units, .. } = answer {
            kind.fetch_add(1, Ordering::Relaxed);
            self.updates.fetch_add(units.len() as u64, Ordering::Relaxed);
        }
    }

    /// Counts a write, with the log's lock held. So that it needs no atomic addition.
    fn note_write(&self, committed: Option<Position>) {
        let writes = self.writes.load(Ordering::Relaxed) + u64::from(committed.is_some());
        self.writes.store(writes, Ordering::Relaxed);
    }
}

impl ServerCache {
    /// A log without cells. No two have the same epoch.
    pub(crate) fn new(epoch: Epoch, host: Arc<dyn LogHost>, held_max: usize) -> ServerCache {
        ServerCache {
            host,
            epoch,
            limits: ServerLimits { held_max, ..ServerLimits::default() },
            log: PiLock::default(),
            head: AtomicU64::new(0),
            answered: Answered::default(),
        }
    }

    /// The life of the server that it is the log of.
    pub(crate) fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// The end of the log. A client that is told of it reads nothing from before.
    pub(crate) fn head(&self) -> Position {
        Position(self.head.load(Ordering::Acquire))
    }

    /// Asks the machine, publishes the end of its log, and has the probes answered that need not wait any more. With a moment the
    /// machine is made if it is not there.
    fn with<T>(&self, now: Option<Moment>, ask: impl FnOnce(&mut Server<CellNumber>) -> T) -> Option<T> {
        self.with_cells(now, |server, _| ask(server))
    }

    /// The same with the cells at hand.
    fn with_cells<T>(
        &self,
        now: Option<Moment>,
        ask: impl FnOnce(&mut Server<CellNumber>, &BTreeMap<CellNumber, KnownCell>) -> T,
    ) -> Option<T> {
        let (answer, due) = self.with_due(now, ask)?;
        self.have_answered(due);
        Some(answer)
    }

    fn have_answered(&self, due: Vec<SessionId>) {
        if !due.is_empty() {
            self.host.answer(due);
        }
    }

    /// Asks the machine, publishes the end of its log, and gives the sessions whose probes need not wait any more.
    fn with_due<T>(
        &self,
        now: Option<Moment>,
        ask: impl FnOnce(&mut Server<CellNumber>, &BTreeMap<CellNumber, KnownCell>) -> T,
    ) -> Option<(T, Vec<SessionId>)> {
        let mut locked = self.log.lock();
        let log = &mut *locked;
        if let (None, Some(now)) = (&log.server, now) {
            let begun = log.begun.unwrap_or(now);
            log.server = Some(Server::new(self.epoch, self.limits, Terms::DEFAULT, begun));
        }
        let answer = ask(log.server.as_mut()?, &log.cells);
        Some((answer, self.publish(locked)))
    }

    /// Publishes the end of the log, unlocks it, and gives the sessions whose probes need not wait any more.
    fn publish(&self, mut log: LockGuard<'_, Log>) -> Vec<SessionId> {
        let Some(server) = &mut log.server else { return Vec::new() };
        self.head.store(server.head().0, Ordering::Release);
        let (due, has_writes) = (server.take_due(), server.has_writes());
        drop(log);
        if has_writes {
            self.host.wake();
        }
        due
    }

    /// Takes a cell in, of which a client asks for the first time, or whose writes may wait.
    pub(super) fn join(&self, cell: Arc<dyn AnyCell>) -> CellNumber {
        let mut log = self.log.lock();
        log.joined += 1;
        let number = log.joined;
        log.cells.insert(number, KnownCell { cell: Arc::downgrade(&cell), octets: 0 });
        number
    }

    /// The object of a cell whose writes may wait is active.
    pub(super) fn begin(&self) {
        let now = self.host.now();
        self.log.lock().begun.get_or_insert(now);
    }

    /// A cell has been dropped.
    pub(super) fn leave(&self, cell: CellNumber) {
        self.log.lock().cells.remove(&cell);
        self.remove(cell);
    }

    pub(super) fn fill(
        &self,
        fill: &Fill,
        cell: CellNumber,
        known: Option<Position>,
        now: Moment,
    ) -> Filled<CellNumber> {
        let filled = self.with(Some(now), |server| server.fill(fill, &cell, known, now));
        self.answered
            .fills
            .fetch_add(u64::from(matches!(filled, Some(Filled::State { .. }))), Ordering::Relaxed);
        filled.unwrap_or(Filled::Unknown { of: fill.of })
    }

    /// Commits a write. `None` if no client holds the cell's state.
    pub(super) fn commit(&self, cell: CellNumber, changed: Members, is_news: bool) -> Option<Position> {
        let mut log = self.log.lock();
        let server = log.server.as_mut()?;
        let committed = match is_news {
            true => server.publish(&cell, changed),
            false => server.commit(&cell, changed),
        };
        self.answered.note_write(committed);
        match server.has_due() || server.has_writes() {
            true => self.have_answered(self.publish(log)),
            // As most writes find it: no probe and no write waits for this one.
            false => self.head.store(server.head().0, Ordering::Release),
        }
        committed
    }

    /// Begins a write, and blocks until no client would miss more than `missed_max` writes of the cell: at most for a session's
    /// term after its beginning, and after the writes of the cell that have begun before. No lock may be held.
    pub(super) fn begin_write(&self, cell: CellNumber, missed_max: u32) -> WriteId {
        let begun = self.with_due(Some(self.host.now()), |server, _| server.begin_write(&cell, missed_max));
        let (write, due) = begun.expect("the log has been made for this moment");
        self.host.answer_here(due);
        self.host.block(&mut |now| self.log.lock().server.as_mut()?.waits_until(write, now));
        write
    }

    /// Ends a write: these members have changed. `None` if no client holds the cell's state.
    pub(super) fn finish_write(&self, write: WriteId, changed: Members) -> Option<Position> {
        self.with(None, |server| {
            let committed = server.finish_write(write, changed);
            self.answered.note_write(committed);
            committed
        })?
    }

    /// Has no client hold a cell's state.
    pub(super) fn remove(&self, cell: CellNumber) {
        self.with(None, |server| server.remove(&cell));
    }

    /// Opens a session. Nobody else must guess its name: it would be asked for, and answered, in the place of its client.
    pub(crate) fn open(&self, id: SessionId, now: Moment) -> Opened {
        let opened = self.with(Some(now), |server| server.open_as(id, now));
        opened.unwrap_or(Opened { epoch: self.epoch, session: SessionId(0) })
    }

    /// Ends all sessions. Returns how many there were.
    pub(crate) fn revoke(&self) -> usize {
        let end_all = |server: &mut Server<CellNumber>| {
            let sessions = server.sessions();
            server.end_all();
            sessions
        };
        self.with(None, end_all).unwrap_or(0)
    }

    /// What it keeps for clients.
    pub(crate) fn counts(&self) -> ServerCounts {
        self.log.lock().server.as_ref().map(Server::counts).unwrap_or_default()
    }

    /// What it has done for clients.
    pub(crate) fn answered(&self) -> &Answered {
        &self.answered
    }

    /// Takes a probe that waits for news. `park` keeps it if it may wait, before any news can come.
    pub(crate) fn wait(&self, probe: &Probe, now: Moment, park: impl FnOnce()) {
        self.with(Some(now), |server| {
            if server.wait(probe) {
                park();
            }
        });
    }

    /// Answers a probe. Takes the locks of cells whose values are due, one after another.
    pub(crate) fn answer(
        &self,
        probe: &Probe,
        now: Moment,
        encoding: Encoding,
    ) -> Result<Answer<CellNumber, Vec<u8>>, Misuse> {
        let answer = self.answer_if_free(probe, now, encoding, Waits::ForCells);
        let answer = answer.map_err(|unanswered| match unanswered {
            Unanswered::Misuse(misuse) => misuse,
            Unanswered::Busy => unreachable!("it waits for the locks of cells"),
        })?;
        self.answered.note_answer(&answer, &self.answered.probes);
        Ok(answer)
    }

    /// Adds to a reply what its request has asked of the log.
    pub(crate) fn tell(&self, question: &LogQuestion, encoding: Encoding, to: &mut ServiceContextList) {
        let answer = match question {
            LogQuestion::End => None,
            LogQuestion::Changes(probe) => self.answer_carried(probe, encoding),
        };
        match answer {
            // It is short: there is room for it.
            Some(data) => drop(to.push(ServiceContext { id: CACHE_CONTEXT, data: &data })),
            None => to.append(EncodedContexts::new(1, &encoded_end(self.epoch, self.head()))),
        }
    }

    /// The data of a reply's context that tells the end of the log, and answers the probe that has come with the request. `None` where
    /// that cannot be answered beside the reply: it is too long, or the lock of a cell is not free. A reply waits for no cell: its
    /// thread may hold what the cell's writer waits for.
    fn answer_carried(&self, probe: &CarriedProbe, encoding: Encoding) -> Option<Vec<u8>> {
        let probe = probe.at(self.epoch);
        // Before the answer: a client that reads what the answer proves does not go behind it.
        let head = self.head();
        let answer = self.answer_if_free(&probe, self.host.now(), encoding, Waits::ForNothing).ok()?;
        let data = CarriedProbe::encoded_answer((self.epoch, head), &probe, &answer, encoding).ok()??;
        self.answered.note_answer(&answer, &self.answered.carried);
        Some(data)
    }

    fn answer_if_free(
        &self,
        probe: &Probe,
        now: Moment,
        encoding: Encoding,
        waits: Waits,
    ) -> Result<Answer<CellNumber, Vec<u8>>, Unanswered> {
        let answer = self.with_cells(Some(now), |server, cells| {
            let octets_of = |cell: &CellNumber| cells.get(cell).map_or(0, |cell| cell.octets);
            server.probe_part(probe, now, |cell, _| UNIT_BYTES_MIN + octets_of(cell))
        });
        let answer = answer.unwrap_or(Answer::Unknown { of: probe.of });
        let (mut failed, mut longer) = (Ok(()), Vec::new());
        let answer = answer.with_values(|number, due| {
            let (cell, known) = self.cell(*number)?;
            let mut read = None;
            let written = cell.due(due, waits, &mut |version, members, write| match encapsulated(
                members, write, encoding,
            ) {
                Ok(octets) => {
                    if octets.len() > known {
                        longer.push((*number, octets.len()));
                    }
                    read = Some((version, members, octets));
                }
                Err(misuse) => failed = Err(Unanswered::Misuse(misuse)),
            });
            if written == StateDue::Busy {
                failed = Err(Unanswered::Busy);
            }
            read
        });
        longer.into_iter().for_each(|(number, octets)| self.note_octets(number, octets));
        failed.map(|()| answer)
    }

    /// Notes how many octets the values of a cell have taken in a message.
    pub(crate) fn note_octets(&self, number: CellNumber, octets: usize) {
        if let Some(known) = self.log.lock().cells.get_mut(&number) {
            known.octets = known.octets.max(octets);
        }
    }

    /// A cell, if it is still there, and how many octets its values have taken.
    fn cell(&self, number: CellNumber) -> Option<(Arc<dyn AnyCell>, usize)> {
        let log = self.log.lock();
        let KnownCell { cell, octets } = log.cells.get(&number)?;
        Some((cell.upgrade()?, *octets))
    }
}
