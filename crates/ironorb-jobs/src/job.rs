//! A job, as programs make it.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use ironorb::dynamic::{WrittenCall, write_down};
use ironorb::{ObjectRef, SystemException, TypedRef};
use ironorb_fan_out::{Part, Plan, Quorum, Verdict};

use crate::counts::JobWay;
use crate::jobs::Jobs;
use crate::part::{And, Done, PartDone, PartOptions, Replies, Reply};
use crate::run::{Ending, News, Over, PartRun, Run};
use crate::target::{Servers, Target, no_server};
use crate::way::{Architecture, Way};

/// Several independent calls that are made as one.
///
/// Each part is a call that its closure begins; the request is written down, and sent when the job runs. How many parts are
/// enough, how long the job may take, and on which way its requests travel is the job's.
pub struct Job<P> {
    jobs: Jobs,
    parts: Vec<Entry>,
    replies: P,
    options: Options,
}

#[derive(Debug, Clone, Copy)]
struct Options {
    quorum: Quorum,
    within: Option<Duration>,
    architecture: Architecture,
    verifies: bool,
    falls_back: bool,
}

/// A part: its call, where it goes, and what may be done for it.
struct Entry {
    /// `None` for a call that has ended when it began.
    written: Option<WrittenCall>,
    target: Target,
    options: PartOptions,
}

/// What a job has come to.
#[derive(Debug)]
#[non_exhaustive]
pub struct JobEnd<E> {
    /// Why it is over.
    pub verdict: Verdict,
    /// How each part has ended, in the order in which they were added.
    pub parts: E,
    /// How long each took from the beginning of the job on, and how many requests.
    pub times: Vec<PartTime>,
}

/// What a part has taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartTime {
    /// From the beginning of the job until the part had ended.
    pub took: Duration,
    /// How many requests were sent for it.
    pub attempts: usize,
}

impl<E> JobEnd<E> {
    /// Whether the quorum is met.
    pub fn is_met(&self) -> bool {
        self.verdict == Verdict::Met
    }
}

impl Job<()> {
    /// A job without parts, and with nothing in common with others. See [`Jobs`] for names, daemons and budgets.
    #[allow(clippy::new_without_default)] // a job without parts is of no use by itself
    pub fn new() -> Job<()> {
        Job::of(Jobs::without_orb())
    }

    /// A job of several calls of one kind.
    pub fn all<R: Reply>(calls: impl IntoIterator<Item = impl FnOnce() -> R>) -> Job<Vec<R>> {
        Job::new().and_all(calls)
    }

    /// The same of [`Jobs`].
    pub fn and_all<R: Reply>(self, calls: impl IntoIterator<Item = impl FnOnce() -> R>) -> Job<Vec<R>> {
        calls.into_iter().fold(self.list(), Job::call)
    }

    /// A job to which any number of calls of one kind may be added, in a loop.
    pub fn list<R: Reply>(self) -> Job<Vec<R>> {
        let Job { jobs, parts, options, .. } = self;
        Job { jobs, parts, replies: Vec::new(), options }
    }

    pub(crate) fn of(jobs: Jobs) -> Job<()> {
        let options = Options {
            quorum: Quorum::All,
            within: None,
            architecture: Architecture::default(),
            verifies: false,
            falls_back: false,
        };
        Job { jobs, parts: Vec::new(), replies: (), options }
    }
}

impl<P> Job<P> {
    /// Adds a call, which `begin` begins: `job.call(|| account.deposit_async(5))`.
    pub fn call<R: Reply>(self, begin: impl FnOnce() -> R) -> Job<P::With>
    where
        P: And<R>,
    {
        self.call_as(PartOptions::new(), begin)
    }

    /// The same with options.
    pub fn call_as<R: Reply>(mut self, options: PartOptions, begin: impl FnOnce() -> R) -> Job<P::With>
    where
        P: And<R>,
    {
        let reply = self.add(None, options, begin);
        self.and(reply)
    }

    /// Adds a call that any of some servers may carry out: `begin` gets a reference that stands for whichever it will be.
    pub fn call_any<T: TypedRef, R: Reply>(
        mut self,
        servers: Arc<dyn Servers>,
        options: PartOptions,
        begin: impl FnOnce(&T) -> R,
    ) -> Job<P::With>
    where
        P: And<R>,
    {
        let stands_for = self.anybody().or_else(|| servers.choose(&[]).map(|chosen| chosen.object));
        let reply = match stands_for {
            Some(object) => {
                let target = Some(Target::Servers(servers));
                self.add(target, options, || begin(&object.narrow_unchecked()))
            }
            // Without an ORB there is nothing that could stand for them.
            None => panic!("a call of servers of which there are none needs Jobs of an ORB"),
        };
        self.and(reply)
    }

    /// Adds a call of the object with a name, which is resolved when the job runs, by the handles of the client or by the daemon.
    ///
    /// # Panics
    /// If the job is not one of [`Jobs`].
    pub fn call_named<T: TypedRef, R: Reply>(
        mut self,
        name: &str,
        options: PartOptions,
        begin: impl FnOnce(&T) -> R,
    ) -> Job<P::With>
    where
        P: And<R>,
    {
        let anybody =
            self.anybody().expect("a call of a name needs Jobs, which know where names are resolved");
        let target = Some(Target::Name(name.to_owned()));
        let reply = self.add(target, options, || begin(&anybody.narrow_unchecked()));
        self.and(reply)
    }

    /// How many parts are enough. Default: all.
    #[must_use]
    pub fn quorum(mut self, quorum: Quorum) -> Self {
        self.options.quorum = quorum;
        self
    }

    /// How long the job may take. Default: as long as its parts.
    #[must_use]
    pub fn within(mut self, time: Duration) -> Self {
        self.options.within = Some(time);
        self
    }

    /// On which way its requests travel. Default: at once, from here.
    #[must_use]
    pub fn architecture(mut self, architecture: Architecture) -> Self {
        self.options.architecture = architecture;
        self
    }

    /// Whether servers are asked if they have the object before they are called (a LocateRequest each), where this client calls them. Default: no:
    /// leases say it.
    #[must_use]
    pub fn verified(mut self, verifies: bool) -> Self {
        self.options.verifies = verifies;
        self
    }

    /// Whether parts go from here if the daemon fails: those that it has certainly not taken, and idempotent ones. Default: no.
    #[must_use]
    pub fn falls_back(mut self, falls_back: bool) -> Self {
        self.options.falls_back = falls_back;
        self
    }

    /// A reference that is never called.
    fn anybody(&self) -> Option<ObjectRef> {
        self.jobs.0.orb()?.string_to_object("corbaloc:iiop:1.2@0.0.0.0:1/anybody").ok()
    }

    fn and<R>(self, reply: R) -> Job<P::With>
    where
        P: And<R>,
    {
        let Job { jobs, parts, replies, options } = self;
        Job { jobs, parts, replies: replies.and(reply), options }
    }

    /// Whether the call of each part has been written down. One that has not has ended when it began.
    pub(crate) fn written(&self) -> Vec<bool> {
        self.parts.iter().map(|part| part.written.is_some()).collect()
    }

    fn add<R>(&mut self, target: Option<Target>, options: PartOptions, begin: impl FnOnce() -> R) -> R {
        let mut options = options;
        let (reply, mut written) = write_down(begin);
        // A closure that begins several calls has made a mistake: all of them end unsent.
        let written = if written.len() == 1 { written.pop() } else { None };
        // The IDL may say so, too.
        options.is_idempotent |= written.as_ref().is_some_and(WrittenCall::is_idempotent);
        let own = || written.as_ref().map(|written| Target::Object(written.target().clone()));
        let target = target.or_else(own).unwrap_or_else(|| Target::Name(String::new()));
        self.parts.push(Entry { written, target, options });
        reply
    }
}

impl<P: Replies> Job<P> {
    /// Runs the job. Blocks until it is over.
    pub fn run(self) -> JobEnd<P::Ends> {
        let Job { jobs, parts, replies, options } = self;
        let (run, calls) = prepare(&jobs, parts, &options);
        let over = run.run();
        calls.end(over).with(replies)
    }

    /// Runs the job while the caller goes on. Dropping what this returns gives the job up: what is under way is cancelled.
    pub fn begin(self) -> Running<P> {
        let Job { jobs, parts, replies, options } = self;
        let (run, calls) = prepare(&jobs, parts, &options);
        let end = Arc::new(Mutex::new(Shown { ended: None, waker: None }));
        let shown = end.clone();
        run.begin(move |over| {
            let ended = calls.end(over);
            let mut shown = lock(&shown);
            shown.ended = Some(ended);
            if let Some(waker) = shown.waker.take() {
                drop(shown);
                waker.wake();
            }
        });
        Running { run, end, replies: Some(replies) }
    }
}

/// The end of a run, before the replies are read.
struct Ended {
    verdict: Verdict,
    done: Vec<PartDone>,
    times: Vec<PartTime>,
}

impl Ended {
    fn with<P: Replies>(self, replies: P) -> JobEnd<P::Ends> {
        let Ended { verdict, done, times } = self;
        JobEnd { verdict, parts: replies.ends(done), times }
    }
}

struct Shown {
    ended: Option<Ended>,
    waker: Option<Waker>,
}

fn lock(shown: &Mutex<Shown>) -> std::sync::MutexGuard<'_, Shown> {
    shown.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A job that runs: a future of its end.
#[must_use = "dropping it gives the job up"]
pub struct Running<P: Replies> {
    run: Arc<Run>,
    end: Arc<Mutex<Shown>>,
    replies: Option<P>,
}

impl<P: Replies> Running<P> {
    /// Ends the job now: what is under way is cancelled, and the end says so. Does not block.
    pub fn give_up(&self) {
        self.run.bring(News::GivenUp);
    }
}

impl<P: Replies + Unpin> Future for Running<P> {
    type Output = JobEnd<P::Ends>;

    /// # Panics
    /// When it is polled again after it was ready.
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut shown = lock(&self.end);
        match shown.ended.take() {
            None => {
                shown.waker = Some(context.waker().clone());
                Poll::Pending
            }
            Some(ended) => {
                drop(shown);
                let replies = self.replies.take().expect("a job was polled after it was ready");
                Poll::Ready(ended.with(replies))
            }
        }
    }
}

impl<P: Replies> Drop for Running<P> {
    fn drop(&mut self) {
        if self.replies.is_some() {
            self.give_up();
        }
    }
}

impl<P: Replies> fmt::Debug for Running<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running").field("is_over", &lock(&self.end).ended.is_some()).finish_non_exhaustive()
    }
}

impl<P> fmt::Debug for Job<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Job")
            .field("parts", &self.parts.len())
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

/// The calls of a job that runs.
struct Calls {
    jobs: Jobs,
    architecture: Architecture,
    way: Way,
    entries: Vec<Entry>,
    /// Which part of the run each is. Calls that had ended when they began take no part.
    places: Vec<Option<usize>>,
}

/// Makes the run of a job.
fn prepare(jobs: &Jobs, entries: Vec<Entry>, options: &Options) -> (Arc<Run>, Calls) {
    let shared = &jobs.0;
    shared.counts.jobs.add();
    shared.counts.parts.add_many(entries.len());
    let way = way_of(jobs, options);
    let (mut places, mut parts, mut runs) = (Vec::new(), Vec::new(), Vec::new());
    for Entry { written, target, options } in &entries {
        places.push(written.as_ref().map(|_| runs.len()));
        let Some(written) = written else { continue };
        let mut run = PartRun::new(written.request().clone(), target.clone());
        run.is_idempotent = options.is_idempotent;
        run.within = options.within;
        run.is_hedged = options.is_hedged;
        run.hedge_after = options.hedge_after;
        parts.push(Part {
            time: options.within,
            may_be_repeated: options.is_idempotent,
            servers: u32::try_from(way.servers(target.servers())).unwrap_or(u32::MAX),
            hedge_after: run.hedges_after(shared),
        });
        runs.push(run);
    }
    let plan =
        Plan { parts, quorum: options.quorum, order: options.architecture.order(), time: options.within };
    let (jobs, architecture) = (jobs.clone(), options.architecture);
    let calls = Calls { jobs, architecture, way, entries, places };
    (Run::new(shared, plan, runs, way), calls)
}

impl Calls {
    /// Ends the calls of a run.
    fn end(self, over: Over) -> Ended {
        let Over { verdict, parts, has_fallen_back } = over;
        let way = JobWay::of(self.architecture, &self.way, has_fallen_back);
        self.jobs.0.counts.over(way, verdict);
        let mut endings: Vec<Option<Ending>> = parts.into_iter().map(Some).collect();
        let (mut done, mut times) = (Vec::new(), Vec::new());
        for (entry, place) in self.entries.into_iter().zip(self.places) {
            let ending = place.and_then(|place| endings.get_mut(place)?.take());
            let Some(Ending { done: how, answer, took, attempts }) = ending else {
                done.push(PartDone(Done::Answered));
                times.push(PartTime { took: Duration::ZERO, attempts: 0 });
                continue;
            };
            if let Some(written) = entry.written {
                written.end(answer.unwrap_or_else(|| Err(no_answer(&how))));
            }
            done.push(PartDone(how));
            times.push(PartTime { took, attempts });
        }
        Ended { verdict, done, times }
    }
}

fn way_of(jobs: &Jobs, options: &Options) -> Way {
    let Options { architecture, verifies, falls_back, .. } = *options;
    match architecture {
        Architecture::Sequential | Architecture::HandleDriven => Way::Direct { verifies },
        Architecture::Synchronous => Way::Daemon { falls_back, at_once: false },
        Architecture::Forwarding => Way::Forwarded { falls_back },
        Architecture::Auto => match jobs.0.daemon() {
            Some(_) => Way::Daemon { falls_back: true, at_once: true },
            None => Way::Direct { verifies },
        },
    }
}

/// The end of a call whose part has no answer: nobody reads it.
fn no_answer(done: &Done) -> SystemException {
    match done {
        Done::Unknown(e) => e.clone(),
        Done::Answered | Done::Cancelled { .. } => no_server("a part that was cancelled"),
    }
}
