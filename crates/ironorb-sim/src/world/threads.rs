//! Threads: which run, which wait, and which goes on next.

use std::sync::Arc;
use std::time::Duration;

use ironorb_model::Time;

use super::descriptors::FileId;
use super::{Answer, Condition, Event, HostId, Invariants, State};
use crate::calls::Baton;

/// A thread of the simulation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ThreadId(pub(crate) usize);

/// Why a thread that waited goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Why {
    /// What it waited for has happened, or may have.
    Happened,
    /// Its time was over.
    TimeOver,
}

pub(crate) struct Thread {
    pub(crate) host: HostId,
    pub(crate) name: String,
    pub(crate) baton: Arc<Baton>,
    state: ThreadState,
    /// Counts waits, so that the timer of an earlier one has no effect.
    wait: u64,
    why: Why,
    polls: Polls,
    /// Files by whose changes it is woken.
    files: Vec<FileId>,
    /// The thread that waits for its end.
    joiner: Option<ThreadId>,
    /// When what it has sent last arrives.
    last_arrival: Time,
    /// What it waits for, for people.
    pub(crate) doing: &'static str,
    /// The scheduling attributes that the program has given it.
    pub(crate) scheduling: Scheduling,
    /// The number by which the system knows it.
    pub(crate) kernel_id: i32,
    /// The C library's handle of it.
    pub(crate) handle: u64,
}

/// How often a thread has asked for what was not there without waiting.
#[derive(Default)]
struct Polls {
    /// Since which of its waits.
    wait: u64,
    count: u32,
    last: Option<Time>,
}

/// What `sched_setattr` or `sched_setscheduler` said.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Scheduling {
    pub(crate) policy: u32,
    pub(crate) nice: i32,
    pub(crate) priority: u32,
}

impl Scheduling {
    /// In the policy: threads that the thread makes are in the ordinary class.
    pub(crate) const RESET_ON_FORK: u32 = libc::SCHED_RESET_ON_FORK as u32;

    /// That of a thread which a thread with this one makes.
    fn inherited(self) -> Scheduling {
        match self.policy & Scheduling::RESET_ON_FORK {
            0 => self,
            _ => Scheduling::default(),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ThreadState {
    Ready,
    Running,
    Waiting,
    Ended,
    /// Its process is gone. It never runs again.
    Dead,
}

impl Thread {
    pub(super) fn waits_for(&self, wait: u64) -> bool {
        self.state == ThreadState::Waiting && self.wait == wait
    }

    pub(crate) fn has_ended(&self) -> bool {
        matches!(self.state, ThreadState::Ended | ThreadState::Dead)
    }

    pub(crate) fn is_waiting(&self) -> bool {
        self.state == ThreadState::Waiting
    }
}

impl State {
    /// Adds a thread that is ready to run.
    pub(crate) fn add_thread(&mut self, host: HostId) -> ThreadId {
        let id = ThreadId(self.threads.len());
        self.threads.push(Thread {
            host,
            name: String::new(),
            baton: Arc::new(Baton::default()),
            state: ThreadState::Ready,
            wait: 0,
            why: Why::Happened,
            polls: Polls::default(),
            files: Vec::new(),
            joiner: None,
            last_arrival: Time::ZERO,
            doing: "",
            scheduling: Scheduling::default(),
            kernel_id: 0,
            handle: 0,
        });
        self.ready.push_back(id);
        self.note(3, self.now().as_ns(), id.0 as u64);
        id
    }

    /// Adds a thread of a host that the running thread makes.
    pub(crate) fn add_thread_of(&mut self, host: HostId) -> ThreadId {
        let inherited = match host == self.here() {
            true => self.threads[self.running.0].scheduling.inherited(),
            false => Scheduling::default(),
        };
        let id = self.add_thread(host);
        self.threads[id.0].scheduling = inherited;
        id
    }

    /// Makes the first thread the one that runs.
    pub(crate) fn begin(&mut self) {
        let first = self.add_thread(HostId(0));
        self.ready.clear();
        self.running = first;
        self.threads[first.0].state = ThreadState::Running;
    }

    /// Has the running thread wait: for one of these files to change, for its end of time, for a
    /// [`wake`](Self::wake).
    pub(crate) fn block(&mut self, doing: &'static str, files: &[FileId], until: Option<Time>) {
        let me = self.running;
        let thread = &mut self.threads[me.0];
        if thread.has_ended() {
            return; // its process was killed meanwhile: nothing wakes it
        }
        thread.wait += 1;
        thread.state = ThreadState::Waiting;
        thread.doing = doing;
        thread.files.extend_from_slice(files);
        let wait = thread.wait;
        for &file in files {
            self.files.add_waiter(file, me);
        }
        if let Some(at) = until.filter(|at| *at != Time::NEVER) {
            self.enter(at, Event::Timeout { thread: me, wait });
        }
    }

    /// Has the running thread wait for what a descriptor names to change. One that names nothing does not wake it.
    pub(crate) fn block_for(&mut self, descriptor: i32, doing: &'static str, until: Option<Time>) {
        let file = self.file_of(descriptor).ok();
        self.block(doing, file.as_slice(), until);
    }

    /// Lets a thread that waits go on.
    pub(crate) fn wake(&mut self, thread: ThreadId, why: Why) {
        let woken = &mut self.threads[thread.0];
        if woken.state != ThreadState::Waiting {
            return;
        }
        woken.state = ThreadState::Ready;
        woken.why = why;
        for file in std::mem::take(&mut woken.files) {
            self.files.remove_waiter(file, thread);
        }
        self.ready.push_back(thread);
    }

    /// Why the running thread went on.
    pub(crate) fn why(&self) -> Why {
        self.threads[self.running.0].why
    }

    /// Lets others run before the running thread goes on.
    pub(crate) fn yield_now(&mut self) {
        let me = self.running;
        if self.threads[me.0].has_ended() {
            return;
        }
        self.threads[me.0].state = ThreadState::Ready;
        self.ready.push_back(me);
    }

    /// The running thread has asked for what is not there, and does not wait. True if it does so in a loop: again at the same time,
    /// or often since its last wait. Those that ask before they wait, once or for as long as a spin takes, go on at once.
    pub(crate) fn polls_in_a_loop(&mut self) -> bool {
        let now = self.now();
        let Thread { wait, polls, .. } = &mut self.threads[self.running.0];
        let count = if polls.wait == *wait { polls.count + 1 } else { 1 };
        let last = std::mem::replace(polls, Polls { wait: *wait, count, last: Some(now) }).last;
        last == Some(now) || count > POLLS_MAX
    }

    /// The running thread has sent what arrives then.
    pub(super) fn note_arrival(&mut self, at: Time) {
        self.threads[self.running.0].last_arrival = at;
    }

    /// When what a thread has sent last arrives, or has arrived.
    pub(crate) fn last_arrival(&self, thread: ThreadId) -> Time {
        self.threads[thread.0].last_arrival
    }

    /// Whether others could run now.
    pub(crate) fn others_are_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Chooses the thread that goes on, after what must happen first. `None`: nothing is left to happen.
    pub(crate) fn choose(&mut self) -> Option<ThreadId> {
        let place = loop {
            let able = |state: &State| state.ready.iter().filter(|&&it| state.may_run(it)).count();
            match able(self) {
                0 if !self.happen() => return None,
                0 => {}
                1 => break 0,
                several => break self.order.below(several as u64) as usize,
            }
        };
        let place = (0..self.ready.len()).filter(|&it| self.may_run(self.ready[it])).nth(place)?;
        let next = self.ready.remove(place)?;
        self.threads[next.0].state = ThreadState::Running;
        if next != self.running {
            self.counts.switches += 1;
        }
        self.running = next;
        self.note(4, self.now().as_ns(), next.0 as u64);
        Some(next)
    }

    fn may_run(&self, thread: ThreadId) -> bool {
        !self.hosts[self.threads[thread.0].host.0].is_paused
    }

    /// As [`choose`](Self::choose). If nothing is left to happen, the run has failed, and the first thread runs to tell of it. If
    /// that waits for others itself, the process ends.
    pub(crate) fn choose_or_fail(&mut self) -> ThreadId {
        let is_long_ago = |at: Time| self.now().since(at) > FAILED_MAX;
        if !self.test_listens
            && self.failed_at.is_some_and(is_long_ago)
            && let Some(failure) = &self.failure
        {
            crate::calls::end_process_with(failure);
        }
        self.choose().unwrap_or_else(|| {
            let waiting = self.who_waits();
            let stands = format!("nothing is left to happen, and threads wait:\n{waiting}");
            let failure = self.failure.get_or_insert(stands);
            if !self.test_listens {
                crate::calls::end_process_with(failure);
            }
            self.choose_first();
            ThreadId(0)
        })
    }

    /// What is to be looked at after this step.
    pub(crate) fn conditions(&mut self) -> Option<(Option<Condition>, Invariants)> {
        if self.goal.is_none() && self.invariants.is_empty() || self.failure.is_some() {
            return None;
        }
        Some((self.goal.clone(), self.invariants.clone()))
    }

    /// The run has failed: the test's thread hears of it.
    pub(crate) fn fail(&mut self, failure: String) {
        if self.failure.is_none() {
            self.failed_at = Some(self.now());
        }
        self.failure.get_or_insert(failure);
        self.tell_test();
    }

    /// Wakes the test's thread, if it lets others run. If it waits for something else it is not disturbed.
    pub(super) fn tell_test(&mut self) {
        if self.test_listens {
            self.wake(ThreadId(0), Why::Happened);
        }
    }

    /// Whether the process of the running thread has been killed or paused while the thread was in a call.
    pub(crate) fn is_stopped(&self) -> bool {
        self.threads[self.running.0].has_ended() || !self.may_run(self.running)
    }

    /// Whether the running thread gives way at a call that does not wait.
    pub(crate) fn is_preempted(&mut self) -> bool {
        self.is_stopped() || self.others_are_ready() && self.order.is_so(self.preempts)
    }

    /// The first thread runs although it waits: the test hears what came of it.
    pub(crate) fn choose_first(&mut self) {
        let first = ThreadId(0);
        self.wake(first, Why::Happened);
        self.ready.retain(|&thread| thread != first);
        self.threads[first.0].state = ThreadState::Running;
        self.running = first;
    }

    /// Ends the running thread.
    pub(crate) fn end_thread(&mut self) {
        let me = self.running;
        self.threads[me.0].state = ThreadState::Ended;
        self.note(5, self.now().as_ns(), me.0 as u64);
        if let Some(joiner) = self.threads[me.0].joiner {
            self.wake(joiner, Why::Happened);
        }
    }

    /// Has the running thread wait for another's end. False if that has ended.
    pub(crate) fn block_for_end_of(&mut self, handle: u64) -> bool {
        let Some(other) = self.threads.iter().rposition(|thread| thread.handle == handle) else {
            return false;
        };
        if self.threads[other].has_ended() {
            return false;
        }
        self.threads[other].joiner = Some(self.running);
        self.block("joining a thread", &[], None);
        true
    }

    /// The threads of a host never run again.
    pub(super) fn end_threads_of(&mut self, host: HostId) {
        for index in 0..self.threads.len() {
            let thread = &mut self.threads[index];
            if thread.host == host && !thread.has_ended() {
                thread.state = ThreadState::Dead;
                for file in std::mem::take(&mut thread.files) {
                    self.files.remove_waiter(file, ThreadId(index));
                }
                self.ready.retain(|&ready| ready.0 != index);
                self.stop_computing(ThreadId(index));
            }
        }
        self.tell_test();
    }

    pub(crate) fn scheduling_of(&self, kernel_id: i32) -> Option<Scheduling> {
        self.thread_called(kernel_id).map(|thread| self.threads[thread.0].scheduling)
    }

    pub(crate) fn set_scheduling(&mut self, kernel_id: i32, scheduling: Scheduling) -> Answer<()> {
        let thread = self.thread_called(kernel_id).ok_or(libc::ESRCH)?;
        self.threads[thread.0].scheduling = scheduling;
        Ok(())
    }

    /// The thread with this number of the system; 0 is the one that runs.
    fn thread_called(&self, kernel_id: i32) -> Option<ThreadId> {
        match kernel_id {
            0 => Some(self.running),
            id => self.threads.iter().position(|thread| thread.kernel_id == id).map(ThreadId),
        }
    }

    /// The end of a wait of this long that begins now.
    pub(crate) fn after(&self, time: Duration) -> Time {
        self.now() + time
    }

    /// What each thread that has not ended waits for.
    pub(crate) fn who_waits(&self) -> String {
        let waiting = self.threads.iter().filter(|thread| thread.is_waiting());
        let lines = waiting.map(|thread| {
            let host = &self.hosts[thread.host.0].name;
            let name = if thread.name.is_empty() { "a thread" } else { &thread.name };
            format!("  {host}: {name} is {}\n", thread.doing)
        });
        lines.collect()
    }
}

/// How long a run goes on after something has failed, if the test's thread waits for something else.
const FAILED_MAX: Duration = Duration::from_secs(86_400);

/// A thread that looks at the clock while it polls moves time by itself. It lets others run after so many polls.
const POLLS_MAX: u32 = 16;
