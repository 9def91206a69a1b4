//! Parts that a daemon forwards: the client that servers call with the results, and the servers that do so.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use ipnet::IpNet;
use ironorb::dynamic::RawReply;
use ironorb::giop::ior::TaggedComponent;
use ironorb::giop::{ByteOrder, Encoding, Malformed, Reader, Writer};
use ironorb::interceptor::{ForwardedRequest, ForwardedRequests, IorInfo, IorInterceptor};
use ironorb::{
    CompletionStatus, MinorCode, ObjectRef, Orb, OrbBuilder, SystemException, SystemExceptionKind, TypedRef,
    with_timeout,
};
use ironorb_fan_out::Attempt;

use crate::daemon::report;
use crate::generated::iron_orb::{
    JobClient, JobClientRef, JobDaemonAsync as _, JobDaemonRef, PartReport, PartToken,
};
use crate::part::Done;
use crate::run::{Ending, News, Run};
use crate::threads::Threads;

/// Who waits for the results of which parts, by tokens that nobody can guess.
#[derive(Debug)]
pub(crate) struct Forwards {
    expected: Expected,
    /// Whether the daemon has a request that fails when it dies.
    attends: Arc<Mutex<bool>>,
    client: String,
    _reference: JobClientRef,
}

type Expected = Arc<Mutex<BTreeMap<(u64, u64), (Attempt, Arc<Run>)>>>;

impl Forwards {
    /// Makes the object that servers call, of the client's ORB.
    pub(crate) fn new(orb: &Orb) -> Result<Forwards, SystemException> {
        let expected = Expected::default();
        let servant = Waiting(expected.clone());
        let reference: JobClientRef = orb.root_poa().activate(servant).map_err(|e| {
            SystemException::new(
                ironorb::SystemExceptionKind::Initialize,
                ironorb::MinorCode::NONE,
                ironorb::CompletionStatus::No,
            )
            .with_detail(format!("no object for the results of forwarded parts: {e}"))
        })?;
        let client = reference.object().to_ior_string();
        Ok(Forwards { expected, attends: Arc::default(), client, _reference: reference })
    }

    /// Has the parts that wait end when the daemon dies: servers may have been told of them, or not.
    pub(crate) fn attend(&self, daemon: &JobDaemonRef) {
        let mut attends = self.attends.lock().unwrap_or_else(PoisonError::into_inner);
        if !std::mem::replace(&mut *attends, true) {
            drop(attends);
            attend(&self.expected, &self.attends, daemon);
        }
    }

    pub(crate) fn client(&self) -> &str {
        &self.client
    }

    /// Has these attempts wait. Gives a token for each.
    pub(crate) fn expect(&self, attempts: &[Attempt], run: &Arc<Run>) -> Vec<PartToken> {
        let mut expected = self.expected.lock().unwrap_or_else(PoisonError::into_inner);
        let random = random_number;
        attempts
            .iter()
            .map(|attempt| {
                let token = PartToken { high: random(), low: random() };
                expected.insert((token.high, token.low), (*attempt, run.clone()));
                token
            })
            .collect()
    }

    /// How many parts wait.
    pub(crate) fn awaited(&self) -> usize {
        self.expected.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Nothing comes for these.
    pub(crate) fn forget(&self, tokens: &[PartToken]) {
        let mut expected = self.expected.lock().unwrap_or_else(PoisonError::into_inner);
        for token in tokens {
            expected.remove(&(token.high, token.low));
        }
    }
}

/// Asks the daemon, and again as long as parts wait.
fn attend(expected: &Expected, attends: &Arc<Mutex<bool>>, daemon: &JobDaemonRef) {
    let (expected, attends, again) = (expected.clone(), attends.clone(), daemon.clone());
    with_timeout(None, || daemon.attend_async()).on_reply(move |answer| {
        let mut asked = attends.lock().unwrap_or_else(PoisonError::into_inner);
        let mut waiting = expected.lock().unwrap_or_else(PoisonError::into_inner);
        *asked = answer == Ok(false) && !waiting.is_empty();
        let lost = match &answer {
            Err(e) if has_died(e) => std::mem::take(&mut *waiting),
            _ => BTreeMap::new(),
        };
        let asks_again = *asked;
        drop((waiting, asked));
        if asks_again {
            attend(&expected, &attends, &again);
        }
        for (attempt, run) in lost.into_values() {
            run.bring(News::Told(attempt, Err(daemon_died())));
        }
    });
}

/// Whether an exception says that the daemon, or the way to it, is gone.
fn has_died(e: &SystemException) -> bool {
    matches!(e.kind, SystemExceptionKind::CommFailure | SystemExceptionKind::Transient)
}

#[cold]
fn daemon_died() -> SystemException {
    SystemException::new(SystemExceptionKind::CommFailure, MinorCode::NONE, CompletionStatus::Maybe)
        .with_detail("the daemon has gone, and may have passed the part on")
}

struct Waiting(Expected);

impl JobClient for Waiting {
    fn part_done(&self, token: &PartToken, report: &PartReport) -> Result<(), SystemException> {
        let mut expected = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = expected.remove(&(token.high, token.low));
        drop(expected);
        if let Some((attempt, run)) = known {
            run.bring(News::Told(attempt, Ok(report.clone())));
        }
        Ok(())
    }
}

/// A number that nobody can guess.
fn random_number() -> u64 {
    let mut bytes = [0; 8];
    // It fails only before the system has gathered any randomness, and then waits.
    let got = rustix::rand::getrandom(&mut bytes[..], rustix::rand::GetRandomFlags::empty());
    assert!(got == Ok(bytes.len()), "the system has no random numbers: {got:?}");
    u64::from_ne_bytes(bytes)
}

/// The component of references whose server tells results to whom it is asked to; without data.
pub(crate) const TAKES_FORWARDED: u32 = 0x494F_5208;

/// The data of the context that says who waits for the results.
pub(crate) fn encoded(client: &str, token: &PartToken) -> Result<Vec<u8>, SystemException> {
    let mut data = vec![u8::from(ByteOrder::NATIVE == ByteOrder::Little)];
    let mut w = Writer::continuing(&mut data, 0, Encoding::NATIVE);
    w.write_str(client).map_err(SystemException::from)?;
    w.put(token).map_err(SystemException::from)?;
    drop(w);
    Ok(data)
}

fn decoded(data: &[u8]) -> Result<(String, PartToken), Malformed> {
    let mut r = Reader::encapsulated(data, Encoding::NATIVE)?;
    Ok((r.read_str()?.into_owned(), r.get()?))
}

/// Where clients are that may be called with results. Whoever sends a forwarded request names a client; a server that called just
/// any would make connections for strangers.
#[derive(Debug, Clone, Default)]
pub struct Networks {
    nets: Vec<IpNet>,
    any: bool,
}

impl Networks {
    /// This machine alone.
    pub fn local() -> Networks {
        let nets = ["127.0.0.0/8", "::1/128"].map(|net| net.parse().expect("it is a network"));
        Networks { nets: nets.to_vec(), any: false }
    }

    /// Anywhere.
    pub fn any() -> Networks {
        Networks { any: true, ..Networks::default() }
    }

    /// These networks too, as `10.1.0.0/16`.
    #[must_use]
    pub fn and(mut self, net: IpNet) -> Networks {
        self.nets.push(net);
        self
    }

    /// Whether all addresses of a reference are allowed. A host name is not, because it may be another one when it is called.
    fn allow(&self, client: &ObjectRef) -> bool {
        let is_allowed = |host: &str| {
            let address = host.parse::<std::net::IpAddr>();
            address.is_ok_and(|address| self.nets.iter().any(|net| net.contains(&address)))
        };
        let mut profiles = client.ior().iiop_profiles().peekable();
        self.any || (profiles.peek().is_some() && profiles.all(|profile| is_allowed(profile.host())))
    }
}

/// The client that a forwarded request names, if it may be called.
pub(crate) fn client_at(
    orb: &Orb,
    client: &str,
    networks: &Networks,
) -> Result<JobClientRef, SystemException> {
    let object = orb.string_to_object(client)?;
    match networks.allow(&object) {
        true => Ok(object.narrow_unchecked()),
        false => Err(SystemException::new(
            SystemExceptionKind::NoPermission,
            MinorCode::NONE,
            CompletionStatus::No,
        )
        .with_detail("the client of a forwarded request is in no network that is allowed")),
    }
}

/// How many tokens a server remembers: a request that comes again with one of them is not carried out again.
const TOKENS_KEPT: usize = 65_536;

/// Has an ORB tell results to whom it is asked to, if they are in these networks. Its references say so.
pub fn accept_forwarded(builder: OrbBuilder, networks: Networks) -> OrbBuilder {
    let forwarding = Forwarding { networks, threads: Threads::default(), seen: Mutex::default() };
    builder.forwarded_requests(forwarding).ior_interceptor(Tells)
}

/// Adds the component to references.
struct Tells;

impl IorInterceptor for Tells {
    fn establish_components(&self, adapter: &mut IorInfo<'_>) {
        adapter.add_component(TaggedComponent { tag: TAKES_FORWARDED, data: Cow::Borrowed(&[]) });
    }
}

/// Carries out forwarded requests, and tells their clients.
struct Forwarding {
    networks: Networks,
    threads: Threads,
    seen: Mutex<Seen>,
}

/// The last tokens.
#[derive(Debug, Default)]
struct Seen {
    tokens: BTreeSet<(u64, u64)>,
    order: VecDeque<(u64, u64)>,
}

impl Seen {
    /// Whether a token is new.
    fn note(&mut self, token: &PartToken) -> bool {
        let token = (token.high, token.low);
        if !self.tokens.insert(token) {
            return false;
        }
        self.order.push_back(token);
        if self.order.len() > TOKENS_KEPT
            && let Some(oldest) = self.order.pop_front()
        {
            self.tokens.remove(&oldest);
        }
        true
    }
}

impl ForwardedRequests for Forwarding {
    fn serve(&self, forwarded: ForwardedRequest<'_>) {
        let ForwardedRequest { object, request, data } = forwarded;
        let Ok((client, token)) = decoded(data) else { return };
        // Before it is carried out: nobody would learn of the results.
        let Ok(client) = client_at(&object.orb(), &client, &self.networks) else { return };
        if !self.seen.lock().unwrap_or_else(PoisonError::into_inner).note(&token) {
            return;
        }
        let (threads, begun) = (self.threads.clone(), Instant::now());
        let then = move |answer: Result<RawReply, SystemException>| {
            threads.run(move || {
                let ending =
                    Ending { done: Done::Answered, answer: Some(answer), took: begun.elapsed(), attempts: 1 };
                // A client that has gone, or has another object there, is not told.
                if client.object().locate() == Ok(true) {
                    let _it_waits_no_longer = client.part_done(&token, &report(ending));
                }
            });
        };
        let _it_wants_results = request.passing_to(&object).begin(then);
    }
}
