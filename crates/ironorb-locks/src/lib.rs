//! What the ORB's locks are made of: a word that says which thread has a lock, so that the kernel can lend that thread the
//! priority of those that wait (futex(2), priority inheritance), and so that a program can tell who it was.
//!
//! A thread takes and releases a free lock by one atomic operation each. How threads wait for one that is taken is chosen for
//! each lock: [`Waits`].
//!
//! ```
//! use ironorb_locks::{Condition, Locked, Waits};
//!
//! let (queue, filled) = (Locked::new(Waits::Lending, Vec::new()), Condition::new());
//! std::thread::scope(|scope| {
//!     scope.spawn(|| {
//!         queue.lock(()).push(1);
//!         filled.notify_one();
//!     });
//!     let mut guard = queue.lock(());
//!     while guard.is_empty() {
//!         guard = filled.wait(guard, ());
//!     }
//! });
//! ```
//!
//! No lock knows poison: what a thread leaves half changed in a panic stays so.
//!
//! Without Linux threads wait without inheritance.

mod condition;
mod locked;
mod pi_turn;
pub mod system;
mod turn;

pub use condition::Condition;
pub use locked::{LockGuard, Locked};
pub use pi_turn::{HeldTurn, PiTurn};
pub use turn::{Circle, TimedTurn, Waits, Watch, forget_thread_id, lends_priorities, thread_id};
