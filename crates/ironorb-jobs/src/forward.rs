//! Parts that a daemon forwards: the client that servers call with the results, and the servers that do so.

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ipnet::IpNet;
use ironorb::dynamic::RawReply;
use ironorb::giop::ior::TaggedComponent;
use ironorb::giop::{ByteOrder, Encoding, Malformed, Reader, Writer};
use ironorb::interceptor::{ForwardedRequest, ForwardedRequests, IorInfo, IorInterceptor};
use ironorb::{
    CompletionStatus, MinorCode, ObjectRef, Orb, OrbBuilder, SystemException, SystemExceptionKind, TypedRef,
    with_timeout,
};
use ironorb_agent::unguessable;
use ironorb_fan_out::{Attempt, Attendance, Attended, Deaths, Expected, SeenTokens, Token};

use crate::daemon::report;
use crate::generated::iron_orb::{
    JobClient, JobClientRef, JobDaemonAsync as _, JobDaemonRef, PartReport, PartToken,
};
use crate::part::Done;
use crate::references::{is_reference, no_reference};
use crate::run::{Ending, News, Run};
use crate::threads::Threads;

/// Who waits for the results of which parts, by tokens that nobody can guess.
#[derive(Debug)]
pub(crate) struct Forwards {
    expected: Waits,
    client: String,
    _reference: JobClientRef,
}

type Waits = Arc<Mutex<Expected<Awaited>>>;

/// Tells a part's job what has become of it. The job is behind a pointer of any type: it holds what holds this.
struct Awaited(Box<dyn FnOnce(Result<PartReport, SystemException>) + Send>);

impl Awaited {
    fn of(attempt: Attempt, run: &Arc<Run>) -> Awaited {
        let run = run.clone();
        Awaited(Box::new(move |report| run.bring(News::Told(attempt, report))))
    }
}

impl fmt::Debug for Awaited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Awaited").finish_non_exhaustive()
    }
}

impl Forwards {
    /// Makes the object that servers call, of the client's ORB.
    pub(crate) fn new(orb: &Orb) -> Result<Forwards, SystemException> {
        let expected = Waits::default();
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
        Ok(Forwards { expected, client, _reference: reference })
    }

    /// Parts are about to go to the daemon: they end when it dies. Gives how often it has died.
    pub(crate) fn attend(&self, daemon: &JobDaemonRef) -> Deaths {
        let mut expected = lock(&self.expected);
        let (deaths, asks) = (expected.deaths(), expected.must_attend());
        drop(expected);
        if asks {
            attend(&self.expected, daemon);
        }
        deaths
    }

    /// The daemon has been sent these parts, after so many deaths.
    pub(crate) fn sent(&self, tokens: &[Token], daemon: &JobDaemonRef, deaths: Deaths) {
        let attended = lock(&self.expected).sent(tokens, deaths);
        follow(&self.expected, daemon, attended);
    }

    pub(crate) fn client(&self) -> &str {
        &self.client
    }

    /// Has these attempts wait. Gives a token for each.
    pub(crate) fn expect(&self, attempts: &[Attempt], run: &Arc<Run>) -> Vec<Token> {
        let mut expected = lock(&self.expected);
        let token = |attempt: &Attempt| loop {
            let number = unguessable();
            let token = Token { high: (number >> 64) as u64, low: number as u64 };
            if expected.expect(token, Awaited::of(*attempt, run)) {
                return token;
            }
        };
        attempts.iter().map(token).collect()
    }

    /// How many parts wait.
    pub(crate) fn awaited(&self) -> usize {
        lock(&self.expected).len()
    }

    /// Nothing comes for these.
    pub(crate) fn forget(&self, tokens: &[Token]) {
        lock(&self.expected).forget(tokens);
    }
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Asks the daemon, and again as long as parts wait.
fn attend(expected: &Waits, daemon: &JobDaemonRef) {
    let (expected, again) = (expected.clone(), daemon.clone());
    with_timeout(None, || daemon.attend_async()).on_reply(move |answer| {
        let how = match answer {
            Ok(true) => Attendance::Over,
            Ok(false) => Attendance::Again,
            Err(e) if does_not_know(&e) => Attendance::Over,
            // Also where this ORB is shut down: nobody can tell the parts any more.
            Err(_) => Attendance::Died,
        };
        let attended = lock(&expected).attended(how);
        follow(&expected, &again, attended);
    });
}

fn follow(expected: &Waits, daemon: &JobDaemonRef, attended: Attended<Awaited>) {
    if attended.asks {
        attend(expected, daemon);
    }
    for part in attended.lost {
        (part.0)(Err(daemon_died()));
    }
}

/// Whether an exception says that the daemon does not know the request.
fn does_not_know(e: &SystemException) -> bool {
    matches!(e.kind, SystemExceptionKind::BadOperation | SystemExceptionKind::NoImplement)
}

#[cold]
fn daemon_died() -> SystemException {
    SystemException::new(SystemExceptionKind::CommFailure, MinorCode::NONE, CompletionStatus::Maybe)
        .with_detail("the daemon has gone, and may have passed the part on")
}

struct Waiting(Waits);

impl JobClient for Waiting {
    fn part_done(&self, token: &PartToken, report: &PartReport) -> Result<(), SystemException> {
        let known = lock(&self.0).told(token.into());
        if let Some(part) = known {
            (part.0)(Ok(report.clone()));
        }
        Ok(())
    }
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
        self.any
            || (profiles.peek().is_some()
                && profiles.all(|profile| {
                    is_allowed(profile.host()) && profile.addresses().all(|it| is_allowed(&it.host))
                }))
    }
}

/// The client that a forwarded request names, if it may be called.
pub(crate) fn client_at(
    orb: &Orb,
    client: &str,
    networks: &Networks,
) -> Result<JobClientRef, SystemException> {
    // Others would call whoever they name before that is checked.
    if !is_reference(client) {
        return Err(no_reference());
    }
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

/// How long a call may take that tells a client of a part. A client that does not answer keeps a thread so long.
pub(crate) const TELLING_MAX: Duration = Duration::from_secs(5);

/// The most threads that tell clients.
pub(crate) const TELLERS_MAX: usize = 32;

/// How many tokens a server remembers: a request that comes again with one of them is not carried out again.
const TOKENS_KEPT: usize = 65_536;

/// Has an ORB tell results to whom it is asked to, if they are in these networks. Its references say so.
pub fn accept_forwarded(builder: OrbBuilder, networks: Networks) -> OrbBuilder {
    let forwarding = Forwarding {
        networks,
        threads: Threads::at_most(TELLERS_MAX),
        seen: Mutex::new(SeenTokens::new(TOKENS_KEPT)),
    };
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
    seen: Mutex<SeenTokens>,
}

impl ForwardedRequests for Forwarding {
    fn serve(&self, forwarded: ForwardedRequest<'_>) {
        let ForwardedRequest { object, request, data } = forwarded;
        let Ok((client, token)) = decoded(data) else { return };
        // Before it is carried out: nobody would learn of the results.
        let Ok(client) = client_at(&object.orb(), &client, &self.networks) else { return };
        if !lock(&self.seen).note((&token).into()) {
            return;
        }
        let (threads, begun) = (self.threads.clone(), Instant::now());
        let then = move |answer: Result<RawReply, SystemException>| {
            threads.run(move || {
                let ending =
                    Ending { done: Done::Answered, answer: Some(answer), took: begun.elapsed(), attempts: 1 };
                with_timeout(Some(TELLING_MAX), || {
                    // A client that has gone, or has another object there, is not told.
                    if client.object().locate() == Ok(true) {
                        let _it_waits_no_longer = client.part_done(&token, &report(ending));
                    }
                });
            });
        };
        let _it_wants_results = request.passing_to(&object).begin(then);
    }
}
