//! The four ways to run a job: which messages it takes.

use std::sync::mpsc::Sender;
use std::time::Duration;

use ironorb::{PendingHandle, SystemException, with_timeout};
use ironorb_fan_out::{Attempt, Order, Quorum};

use crate::generated::iron_orb::JobDaemon as _;
use crate::generated::iron_orb::{JobDaemonAsync, JobPart, JobPlan, JobQuorum, PartReport, PartToken};
use crate::jobs::Shared;
use crate::run::{News, PartRun};
use crate::target::{Target, no_server};
use crate::wire;

/// How a job's requests travel. The paper on parallel architectures (2004) calls these S, HP, FP and SP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Architecture {
    /// One part after the other: a handle, its verification, the call (S).
    Sequential,
    /// All handles at once, and then all calls at once from here (HP).
    #[default]
    HandleDriven,
    /// The job goes to the daemon, which forwards its parts; the servers call this client with the results (FP).
    Forwarding,
    /// The job goes to the daemon, which makes all calls and answers with all results (SP).
    Synchronous,
    /// [`Synchronous`](Self::Synchronous), or [`HandleDriven`](Self::HandleDriven) where there is no daemon, or where all its threads
    /// are busy: it refuses the job then, which costs a round trip.
    Auto,
}

impl Architecture {
    pub(crate) fn order(self) -> Order {
        match self {
            Architecture::Sequential => Order::InTurn,
            _ => Order::AtOnce,
        }
    }
}

/// The way of one run.
#[derive(Debug, Clone)]
pub(crate) enum Way {
    Direct {
        verifies: bool,
    },
    Daemon {
        /// Parts that the daemon has not taken, and idempotent ones, go directly then.
        falls_back: bool,
        /// The daemon takes the job if a thread of its is free.
        at_once: bool,
    },
    Forwarded {
        falls_back: bool,
    },
}

impl Way {
    pub(crate) fn verifies(&self) -> bool {
        matches!(self, Way::Direct { verifies: true })
    }

    /// Whether parts go directly if the daemon fails.
    pub(crate) fn falls_back(&self) -> bool {
        matches!(self, Way::Daemon { falls_back: true, .. } | Way::Forwarded { falls_back: true })
    }

    /// How many servers a part has, of which its target knows `known`.
    pub(crate) fn servers(&self, known: usize) -> usize {
        match self {
            Way::Direct { .. } => known,
            Way::Daemon { falls_back, .. } | Way::Forwarded { falls_back } => {
                if *falls_back {
                    known.saturating_add(1)
                } else {
                    1
                }
            }
        }
    }
}

/// Asks for all handles that are needed from the beginning, at once.
pub(crate) fn prepare(shared: &Shared, (way, order): (&Way, Order), parts: &mut [PartRun]) {
    if !matches!(way, Way::Direct { .. }) || order == Order::InTurn {
        return;
    }
    let mut named: Vec<&mut PartRun> =
        parts.iter_mut().filter(|part| matches!(part.target, Target::Name(_))).collect();
    let names: Vec<String> = named
        .iter()
        .filter_map(|part| match &part.target {
            Target::Name(name) => Some(name.clone()),
            _ => None,
        })
        .collect();
    if names.is_empty() {
        return;
    }
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    for (part, found) in named.iter_mut().zip(shared.resolve(&names)) {
        // A name that is not known now is asked for again when its part starts.
        if let Ok(servers) = found {
            part.target = Target::Servers(crate::target::InTurn::anywhere(servers));
        }
    }
}

/// Nothing is told with these tokens any more.
pub(crate) fn forget(shared: &Shared, tokens: &[PartToken]) {
    if !tokens.is_empty()
        && let Ok(forwards) = shared.forwards()
    {
        forwards.forget(tokens);
    }
}

/// What has been begun at the daemon.
#[derive(Default)]
pub(crate) struct Sent {
    /// With which servers will tell their results.
    pub(crate) tokens: Vec<PartToken>,
    /// The request that the daemon answers.
    pub(crate) call: Option<PendingHandle>,
}

/// Sends parts to the daemon.
pub(crate) fn send(
    shared: &Shared,
    way: &Way,
    parts: &[PartRun],
    (attempts, plan): (&[Attempt], &JobPlan),
    news: &Sender<News>,
) -> Sent {
    let all = |e: &SystemException| {
        for attempt in attempts {
            let _the_run_waits = news.send(News::Told(*attempt, Err(e.clone())));
        }
        Sent::default()
    };
    let Some(daemon) = shared.daemon() else { return all(&no_server("the daemon")) };
    let listed: Result<Vec<JobPart>, SystemException> =
        attempts.iter().map(|attempt| listed(&parts[attempt.part])).collect();
    let listed = match listed {
        Ok(listed) => listed,
        Err(e) => return all(&e),
    };
    let limit = wire::limit(plan.within_us);
    let within = |begin: &mut dyn FnMut()| match limit {
        // The daemon answers when the time is over; a daemon that does not is given up a little later.
        Some(limit) => with_timeout(Some(limit + PATIENCE), begin),
        None => begin(),
    };
    if matches!(way, Way::Forwarded { .. }) {
        let forwards = match shared.forwards() {
            Ok(forwards) => forwards,
            Err(e) => return all(&e),
        };
        let tokens = forwards.expect(attempts, news);
        // First, so that a daemon that dies with the parts is noticed.
        forwards.attend(daemon);
        let mut sent = Ok(());
        within(&mut || sent = daemon.forward(&listed, plan, forwards.client(), &tokens));
        if let Err(e) = sent {
            forwards.forget(&tokens);
            return all(&e);
        }
        return Sent { tokens, call: None };
    }
    let (news, attempts) = (news.clone(), attempts.to_vec());
    let mut pending = None;
    within(&mut || pending = Some(daemon.run_async(&listed, plan)));
    let Some(pending) = pending else { return Sent::default() };
    let call = Some(pending.handle());
    pending.on_reply(move |answer| {
        let reports: Vec<Result<PartReport, SystemException>> = match answer {
            Ok(reports) => reports.into_iter().map(Ok).collect(),
            Err(e) => vec![Err(e); attempts.len()],
        };
        // A daemon that tells too little has not told the rest.
        let rest = std::iter::repeat_with(|| Err(no_report()));
        for (attempt, report) in attempts.into_iter().zip(reports.into_iter().chain(rest)) {
            let _the_run_waits = news.send(News::Told(attempt, report));
        }
    });
    Sent { tokens: Vec::new(), call }
}

/// How much longer than a job its daemon may take to say that the time is over.
const PATIENCE: Duration = Duration::from_millis(100);

fn listed(part: &PartRun) -> Result<JobPart, SystemException> {
    Ok(JobPart {
        target: part.target.text()?,
        operation: part.request.operation().to_owned(),
        idempotent: part.is_idempotent,
        within_us: wire::micros(part.within),
        arguments: wire::arguments(&part.request)?,
    })
}

/// A quorum as daemons are told it.
pub(crate) fn quorum(quorum: Quorum) -> (JobQuorum, u32) {
    match quorum {
        Quorum::All => (JobQuorum::AllParts, 0),
        Quorum::Any => (JobQuorum::SomeParts, 1),
        Quorum::AtLeast(count) => (JobQuorum::SomeParts, u32::try_from(count).unwrap_or(u32::MAX)),
        Quorum::BestEffort => (JobQuorum::BestEffort, 0),
    }
}

#[cold]
fn no_report() -> SystemException {
    SystemException::new(
        ironorb::SystemExceptionKind::CommFailure,
        ironorb::MinorCode::NONE,
        ironorb::CompletionStatus::Maybe,
    )
    .with_detail("the daemon has not told what has become of the part")
}
