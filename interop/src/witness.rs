//! IronORB's servant of the tests of real time: it tells which thread serves it.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ironorb::rt::RtCurrent;
use ironorb::{Orb, SystemException};

use crate::interop_rt::{self, NO_PRIORITY, Notice, Place};

/// How long callers wait for one another, which only bounds a hang.
const MEETING_TIMEOUT: Duration = Duration::from_secs(30);

/// Tells which thread serves it, and notes the lane of each request.
#[derive(Debug)]
pub struct WitnessServant {
    orb: Orb,
    current: RtCurrent,
    lanes: Mutex<Vec<String>>,
    inside: Mutex<u32>,
    entered: Condvar,
    notices: Mutex<Vec<Notice>>,
    is_held: Mutex<bool>,
    released: Condvar,
}

impl WitnessServant {
    /// A servant in a real-time ORB.
    ///
    /// # Panics
    ///
    /// If the ORB is none.
    pub fn new(orb: &Orb) -> WitnessServant {
        let current = orb.rt_current().expect("the ORB is a real-time ORB");
        WitnessServant {
            orb: orb.clone(),
            current,
            lanes: Mutex::default(),
            inside: Mutex::default(),
            entered: Condvar::new(),
            notices: Mutex::default(),
            is_held: Mutex::new(false),
            released: Condvar::new(),
        }
    }

    /// Has each notice that is served from now on wait for [`release`](Self::release).
    pub fn hold(&self) {
        *locked(&self.is_held) = true;
    }

    /// Ends [`hold`](Self::hold).
    pub fn release(&self) {
        *locked(&self.is_held) = false;
        self.released.notify_all();
    }

    /// The notices that have begun since the last call of this, each with the CORBA priority of its thread.
    pub fn take_notices(&self) -> Vec<(i32, i16)> {
        let notices = std::mem::take(&mut *locked(&self.notices));
        notices.iter().map(|notice| (notice.number, notice.priority)).collect()
    }

    /// How many notices [`take_notices`](Self::take_notices) would give.
    pub fn notices_begun(&self) -> usize {
        locked(&self.notices).len()
    }

    /// The names of the lanes that have served it since the last call of this.
    pub fn take_lanes(&self) -> Vec<String> {
        std::mem::take(&mut *locked(&self.lanes))
    }

    /// How many callers have come to meet others.
    pub fn inside(&self) -> u32 {
        *locked(&self.inside)
    }
}

impl interop_rt::Witness for WitnessServant {
    fn served_by(&self) -> Result<Place, SystemException> {
        let lane = self.orb.current_lane().name().to_owned();
        locked(&self.lanes).push(lane);
        Ok(place(&self.current))
    }

    fn meet(&self, callers: u32) -> Result<bool, SystemException> {
        let mut inside = locked(&self.inside);
        *inside += 1;
        self.entered.notify_all();
        let wait = self.entered.wait_timeout_while(inside, MEETING_TIMEOUT, |inside| *inside < callers);
        Ok(!wait.unwrap_or_else(PoisonError::into_inner).1.timed_out())
    }

    fn notice(&self, number: i32) -> Result<(), SystemException> {
        let priority = place(&self.current).priority;
        locked(&self.notices).push(Notice { number, priority });
        let held = locked(&self.is_held);
        drop(self.released.wait_timeout_while(held, MEETING_TIMEOUT, |is_held| *is_held));
        Ok(())
    }

    fn served_notices(&self) -> Result<Vec<Notice>, SystemException> {
        Ok(std::mem::take(&mut *locked(&self.notices)))
    }
}

/// A test that has failed while it held this has been told of.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the calling thread has.
pub fn place(current: &RtCurrent) -> Place {
    let priority = current.priority().map_or(NO_PRIORITY, |priority| priority.number());
    let (thread, native) = thread();
    Place { priority, native_priority: native, thread }
}

/// The system's number of the calling thread, and its priority in a real-time class (0 in another class).
fn thread() -> (i32, i16) {
    let stat = std::fs::read_to_string("/proc/thread-self/stat").expect("the system has /proc");
    let number = |text: Option<&str>| text.and_then(|text| text.parse().ok()).expect("a number");
    let (id, rest) = stat.split_once(' ').expect("the number comes first");
    // The 40th field, counted from the one behind the name, which is in parentheses.
    let fields = rest.rsplit_once(')').expect("the name comes second").1;
    let native = number(fields.split_whitespace().nth(37));
    (number(Some(id)), i16::try_from(native).expect("priorities end at 99"))
}
