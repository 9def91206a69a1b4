//! The four ways to run a job: which messages it takes.

use std::sync::Arc;
use std::time::Duration;

use ironorb::{Pending, SystemException, with_timeout};
pub(crate) use ironorb_fan_out::Way;
use ironorb_fan_out::{Attempt, Order, Quorum, Token};

use crate::generated::iron_orb::JobDaemon as _;
use crate::generated::iron_orb::{JobDaemonAsync, JobPart, JobPlan, JobQuorum, PartReport, PartToken};
use crate::jobs::Shared;
use crate::run::{News, PartRun, Run};
use crate::target::{InTurn, Target, no_server};
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

/// Asks for the servers of the names of some parts, at once. Blocks if there are any.
pub(crate) fn resolve(shared: &Shared, which: impl Iterator<Item = usize>, parts: &mut [PartRun]) {
    let name = |part: &PartRun| match &part.target {
        Target::Name(name) => Some(name.clone()),
        Target::Object(_) | Target::Servers(_) => None,
    };
    let named: Vec<(usize, String)> = which.filter_map(|place| Some((place, name(&parts[place])?))).collect();
    if named.is_empty() {
        return;
    }
    let names: Vec<&str> = named.iter().map(|(_, name)| name.as_str()).collect();
    for ((place, _), found) in named.iter().zip(shared.resolve(&names)) {
        // A name that is not known now is asked for again by the next attempt.
        match found {
            Ok(servers) => parts[*place].target = Target::Servers(InTurn::anywhere(servers)),
            Err(e) => parts[*place].unknown = Some(e),
        }
    }
}

/// Nothing is told with these tokens any more.
pub(crate) fn forget(shared: &Shared, tokens: &[Token]) {
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
    pub(crate) tokens: Vec<Token>,
    /// The request that the daemon answers.
    pub(crate) asked: Option<Asked>,
}

/// A request of a job to the daemon.
pub(crate) type Asked = Pending<Vec<PartReport>, SystemException>;

/// Sends parts to the daemon.
pub(crate) fn send(
    (way, parts): (Way, &[PartRun]),
    (attempts, plan, time): (&[Attempt], &JobPlan, Option<Duration>),
    run: &Arc<Run>,
) -> Sent {
    let shared = &run.shared;
    let all = |e: &SystemException| {
        tell(run, attempts.to_vec(), Err(e.clone()));
        Sent::default()
    };
    let Some(daemon) = shared.daemon() else { return all(&no_server("the daemon")) };
    let listed: Result<Vec<JobPart>, SystemException> =
        attempts.iter().map(|attempt| listed(&parts[attempt.part])).collect();
    let listed = match listed {
        Ok(listed) => listed,
        Err(e) => return all(&e),
    };
    let within = |begin: &mut dyn FnMut()| match time {
        // The machine's time comes first.
        Some(time) => with_timeout(Some(time.saturating_add(PATIENCE)), begin),
        None => begin(),
    };
    if matches!(way, Way::Forwarded { .. }) {
        let forwards = match shared.forwards() {
            Ok(forwards) => forwards,
            Err(e) => return all(&e),
        };
        let tokens = forwards.expect(attempts, run);
        let carried: Vec<PartToken> = tokens.iter().copied().map(PartToken::from).collect();
        // First, so that a daemon that dies with the parts is noticed.
        let deaths = forwards.attend(daemon);
        let mut sent = Ok(());
        within(&mut || sent = daemon.forward(&listed, plan, forwards.client(), &carried));
        if let Err(e) = sent {
            forwards.forget(&tokens);
            return all(&e);
        }
        forwards.sent(&tokens, daemon, deaths);
        return Sent { tokens, asked: None };
    }
    let mut asked = None;
    within(&mut || asked = Some(daemon.run_async(&listed, plan)));
    Sent { tokens: Vec::new(), asked }
}

/// Tells a run what the daemon has answered.
pub(crate) fn tell(run: &Arc<Run>, attempts: Vec<Attempt>, answer: Result<Vec<PartReport>, SystemException>) {
    let (reports, e) = match answer {
        Ok(reports) => (reports, no_report()),
        Err(e) => (Vec::new(), e),
    };
    // A daemon that tells too little has not told the rest.
    let rest = std::iter::repeat_with(|| Err(e.clone()));
    for (attempt, report) in attempts.into_iter().zip(reports.into_iter().map(Ok).chain(rest)) {
        run.bring(News::Told(attempt, report));
    }
}

/// How much longer than a job a request to the daemon may take.
const PATIENCE: Duration = Duration::from_millis(1);

fn listed(part: &PartRun) -> Result<JobPart, SystemException> {
    Ok(JobPart {
        target: part.target.text()?,
        operation: part.request.operation().to_owned(),
        idempotent: part.is_idempotent,
        within_us: wire::micros(part.within),
        hedged: part.is_hedged,
        hedge_after_us: wire::micros(part.hedge_after),
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
