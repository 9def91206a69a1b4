//! Threads that wait in one lane and are lent to a more urgent one (RTCORBA 1.2, 5.9.2: `allow_borrowing`).
//!
//! Threads that may be lent wait each at a place of its own: one, the leader, for connections, and the others until it
//! leaves. So the borrower can raise one thread before it wakes it.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use super::Shared;
use super::connection::Connection;
use super::pool::Next;
use crate::base::locks::PiLock;
use crate::base::monitor::Monitor;
use crate::base::spawner::{self, Lendable, Raised};

/// The waiting threads of a lane that lends. Threads of more urgent lanes take the lock for the moment in which they take a
/// thread.
pub(crate) struct Lender {
    idle: PiLock<Idle>,
    /// Ends the leader's wait for connections.
    leader_wake: OwnedFd,
}

#[derive(Default)]
struct Idle {
    leader: Option<Arc<Seat>>,
    followers: Vec<Arc<Seat>>,
    /// Lanes whose requests wait for a thread, the most urgent last.
    borrowers: Vec<Arc<Shared>>,
    /// The server stops. All threads wait for connections, and none is lent.
    is_closed: bool,
}

/// Where a thread waits that may be lent.
pub(super) struct Seat {
    thread: Lendable,
    given: PiLock<Option<Given>>,
    is_given: Monitor,
}

enum Given {
    /// The thread is the leader.
    Lead,
    Loan(Loan),
}

/// How a thread's wait ends.
pub(super) enum Turn {
    /// The thread was the leader, and its wait has ended with this.
    Led(Next),
    /// The thread is to work for another lane.
    Lent(Loan),
    /// The time is over.
    Late,
}

/// What a thread does for another lane.
pub(super) struct Loan {
    borrower: Arc<Shared>,
    /// A connection of the borrower with a request. Without one, the thread looks for what waits there.
    connection: Option<Arc<Connection>>,
    raised: Raised,
}

impl Lender {
    /// `leader_wake` ends the wait for connections of one thread of the pool.
    pub(super) fn new(leader_wake: &impl AsFd) -> io::Result<Lender> {
        let leader_wake = leader_wake.as_fd().try_clone_to_owned()?;
        Ok(Lender { idle: PiLock::default(), leader_wake })
    }

    /// Takes a waiting thread, gives it what threads of the borrower's lane have, and has it serve the connection. False if
    /// no thread waits. Does not wait but for the lock.
    pub(super) fn lend(&self, borrower: &Arc<Shared>, connection: &Arc<Connection>) -> bool {
        self.lend_waiting(&mut self.idle.lock(), borrower, Some(connection))
    }

    /// Has a thread that waits, or the next one that is about to, serve what waits in the borrower's lane.
    pub(super) fn ask(&self, borrower: &Arc<Shared>) {
        let mut idle = self.idle.lock();
        let asks = |other: &Arc<Shared>| Arc::ptr_eq(other, borrower);
        if !self.lend_waiting(&mut idle, borrower, None)
            && !idle.is_closed
            && !idle.borrowers.iter().any(asks)
        {
            idle.borrowers.push(borrower.clone());
            idle.borrowers.sort_by_key(|it| it.lane().priority);
        }
    }

    fn lend_waiting(
        &self,
        idle: &mut Idle,
        borrower: &Arc<Shared>,
        connection: Option<&Arc<Connection>>,
    ) -> bool {
        if idle.is_closed {
            return false;
        }
        let follower = idle.followers.pop();
        let is_leader = follower.is_none();
        let Some(seat) = follower.or_else(|| idle.leader.clone().filter(|seat| !seat.is_lent())) else {
            return false;
        };
        seat.give(Given::Loan(seat.raise_for(borrower, connection)));
        if is_leader {
            let _ = rustix::io::write(&self.leader_wake, &1u64.to_ne_bytes());
        }
        true
    }

    /// Waits by `lead` when no other thread does, and else until it is this thread's turn. A thread that is lent leaves
    /// either wait. What `lead` has found is given to `give_back` then.
    pub(super) fn wait(
        &self,
        seat: &Arc<Seat>,
        limit: Option<Duration>,
        lead: impl FnOnce() -> Next,
        give_back: impl FnOnce(&Arc<Connection>),
    ) -> Turn {
        match self.follow(seat, limit) {
            Some(Given::Lead) => {}
            Some(Given::Loan(loan)) => return Turn::Lent(loan),
            None => return Turn::Late,
        }
        let found = lead();
        let Some(Given::Loan(loan)) = self.idle.lock().leave(seat) else { return Turn::Led(found) };
        if let Next::Ready(connection) = found {
            give_back(&connection);
        }
        Turn::Lent(loan)
    }

    /// Waits until the thread is the leader or is lent; `None` when the time is over.
    fn follow(&self, seat: &Arc<Seat>, limit: Option<Duration>) -> Option<Given> {
        if let Some(given) = self.idle.lock().enter(seat) {
            return Some(given);
        }
        let _is_given_or_late = seat.is_given.wait(&|| seat.has_been_given(), limit);
        // Under the lock: what is given after this is for the next wait.
        let mut idle = self.idle.lock();
        if seat.is_lent() {
            return idle.leave(seat);
        }
        seat.take().or_else(|| {
            idle.followers.retain(|other| !Arc::ptr_eq(other, seat));
            None
        })
    }

    /// Has all threads wait for connections, because the server stops.
    pub(super) fn close(&self) {
        let mut idle = self.idle.lock();
        idle.is_closed = true;
        idle.borrowers.clear();
        for follower in std::mem::take(&mut idle.followers) {
            follower.give(Given::Lead);
        }
    }
}

impl Idle {
    /// Takes a thread in that is about to wait. Returns what it does at once.
    fn enter(&mut self, seat: &Arc<Seat>) -> Option<Given> {
        if self.is_closed {
            return Some(Given::Lead);
        }
        if let Some(borrower) = self.borrowers.pop() {
            return Some(Given::Loan(seat.raise_for(&borrower, None)));
        }
        if self.leader.is_none() {
            self.leader = Some(seat.clone());
            return Some(Given::Lead);
        }
        self.followers.push(seat.clone());
        None
    }

    /// Has the next follower lead if this thread did. Returns what the thread has been given meanwhile.
    fn leave(&mut self, seat: &Arc<Seat>) -> Option<Given> {
        if self.leader.as_ref().is_some_and(|leader| Arc::ptr_eq(leader, seat)) {
            self.leader = self.followers.pop();
            if let Some(next) = &self.leader {
                next.give(Given::Lead);
            }
        }
        seat.take()
    }
}

impl Seat {
    /// A place of the calling thread.
    pub(super) fn own() -> Arc<Seat> {
        Arc::new(Seat { thread: Lendable::own(), given: PiLock::default(), is_given: Monitor::default() })
    }

    /// Gives the thread what threads of the borrower's lane have.
    fn raise_for(&self, borrower: &Arc<Shared>, connection: Option<&Arc<Connection>>) -> Loan {
        let raised = self.thread.raise(borrower.lane);
        Loan { borrower: borrower.clone(), connection: connection.cloned(), raised }
    }

    fn give(&self, given: Given) {
        *self.given.lock() = Some(given);
        self.is_given.changed();
    }

    fn take(&self) -> Option<Given> {
        self.given.lock().take()
    }

    fn has_been_given(&self) -> bool {
        self.given.lock().is_some()
    }

    fn is_lent(&self) -> bool {
        matches!(*self.given.lock(), Some(Given::Loan(_)))
    }
}

impl Loan {
    /// Serves for the borrower, at its priority, until none of its requests waits for a thread. The calling thread is the one
    /// that was lent. It has its own priority again at the end.
    pub(super) fn carry_out(self, serve: impl FnOnce(&Arc<Shared>, Option<Arc<Connection>>)) {
        let Loan { borrower, connection, raised } = self;
        let lent = spawner::lend(borrower.lane, raised);
        serve(&borrower, connection);
        drop(borrower); // by a thread of its lane
        drop(lent);
    }
}
