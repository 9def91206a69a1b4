//! What the references to the objects of one server have in common.
//!
//! Two references whose IORs differ in the object key alone share one [`ServerProfile`]. A million of them then hold a
//! key and a template of requests each, and nothing else. The table that finds it holds no profile alive, has a limit,
//! and hashes with keys that peers do not know: a peer that sends references that have nothing in common costs what it
//! sends.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::hash::BuildHasher;
use std::sync::{Arc, OnceLock, Weak};

use ironorb_giop::exception::{CompletionStatus, SystemException, SystemExceptionKind};
use ironorb_giop::ior::{
    CodeSetIncompatible, IiopProfile, Ior, OMNIORB_ORB_TYPE, Profile, TaoEndpoint, TaoUnixEndpoint,
};
use ironorb_giop::message::{AddressingDisposition, RequestTarget, TargetAddress};
use ironorb_giop::minor::MinorCode;
use ironorb_giop::real_time::{PriorityBand, PriorityModel, PriorityModelPolicy, RealTimePolicies};
use ironorb_giop::{CharSet, TransmissionCodeSets, Version};

use crate::base::config::{BareExceptions, Transport};
use crate::base::lane::LANES_MAX;
use crate::base::locks::{PARTS, Snapshot};
use crate::base::randomness::HashKeys;
use crate::base::time::Time;
use crate::object::WireProfile;
use crate::object::orb_shared::{OrbDriver, OrbHandle, OrbShared};
use crate::object::priority::Priority;
use crate::object::selection::Selections;
use crate::object::timing::is_timed_call;
use crate::object::wire_numbers::FOR_BEST_EFFORT;
use crate::transport::tcp::HostPort;
use crate::transport::{Address, CodePoint, TcpProperties};

/// An endpoint of servers, as routes know it. The driver that made it has its connections there.
pub(crate) trait ServerEndpoint: Any + fmt::Debug + Send + Sync {
    /// A number that no other endpoint of the process has.
    fn number(&self) -> u64;

    /// The server's address.
    fn address(&self) -> &Address;

    /// Whether its connections are for a band of priorities.
    fn is_of_band(&self) -> bool;

    /// Whether the calling thread's connection is a band's, and no request has told the server so.
    fn has_band_to_tell(&self) -> bool;

    /// True for a while after an attempt to connect has failed, if none has succeeded since.
    fn is_failing(&self, now: Time) -> bool;

    /// Notes that a connection has been made.
    fn note_connected(&self);

    /// Notes that an attempt to connect has failed.
    fn note_failed(&self, now: Time);

    /// Whether a connection has ever been made.
    fn was_connected(&self) -> bool;

    /// Counts oneways that waited to leave together, and were lost with a connection. The next flush reports them.
    fn note_lost_oneways(&self, count: usize);

    /// Whether the server writes exceptions in an `any` without their ids; `None` until one has come from it.
    fn sends_bare_exceptions(&self) -> Option<bool>;

    /// Notes whether the server writes exceptions in an `any` without their ids.
    fn note_bare_exceptions(&self, bare: bool);
}

/// What references to the objects of one server have in common.
#[derive(Debug)]
pub(crate) struct ServerProfile {
    orb: OrbHandle,
    /// The best address, where nearly every call goes, and the connections there.
    first: OnceLock<ServerTarget>,
    /// All addresses. Found out by the first call of a reference.
    targets: OnceLock<Result<Box<[ServerTarget]>, SystemException>>,
    /// How requests are written by each profile that can be used.
    forms: Result<Box<[Form]>, SystemException>,
    /// The reference, with zeros in the place of the object key unless it `is_whole`.
    ior: Ior,
    /// Whether the reference has no object key, or several.
    is_whole: bool,
    wire_profile: Option<WireProfile>,
    /// The policies of the reference that concern real time, if the ORB heeds them.
    real_time: RealTimePolicies,
    /// What calls of a real-time ORB make of the priorities of their threads.
    priority_use: PriorityUse,
    /// The addresses for calls of one priority each, in no order, and then that for calls that are not scheduled. Found out by the first call that could use one.
    lane_targets: OnceLock<Box<[LaneTarget]>>,
    /// The addresses with connections for calls that ask for more than their priority.
    selections: Selections,
}

/// An address of a server for some calls.
#[derive(Debug)]
struct LaneTarget {
    /// The priority of the calls; `None` for calls of operations without a timing.
    priority: Option<Priority>,
    target: ServerTarget,
}

/// What the calls of a real-time ORB make of the priority of their thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PriorityUse {
    /// They go to the first address and tell nothing.
    None,
    /// They go to the address for it, or else to the first one, and tell it as it is, and nothing else.
    Told,
    /// Each call finds it out.
    Any,
}

/// How requests by one IIOP profile are written.
#[derive(Debug, Clone, Copy)]
struct Form {
    /// The index of the profile in the reference.
    profile: usize,
    version: Version,
    code_sets: Option<TransmissionCodeSets>,
    /// Whether exceptions in an `any` are written without their ids, as long as the server has not shown its form.
    bare_exceptions: bool,
    /// Whether it is a profile of UIOP.
    is_uiop: bool,
}

/// An address of a server.
#[derive(Debug, Clone)]
pub(crate) struct ServerTarget {
    /// Which of the reference's profiles that can be used has the address.
    pub(crate) form: usize,
    /// The number of its server among those of the reference. The addresses of one profile are one server.
    pub(crate) server: usize,
    pub(crate) endpoint: Arc<dyn ServerEndpoint>,
    /// The endpoint's number, by which a thread finds its connection without the endpoint.
    pub(crate) number: u64,
}

impl ServerTarget {
    /// Whether an attempt to connect has failed a short while ago.
    #[inline]
    pub(crate) fn is_failing(&self, now: Time) -> bool {
        self.endpoint.is_failing(now)
    }

    /// Whether there has ever been a connection.
    pub(crate) fn was_connected(&self) -> bool {
        self.endpoint.was_connected()
    }

    /// The address, for messages.
    #[cold]
    pub(crate) fn address_text(&self) -> String {
        self.endpoint.address().to_string()
    }
}

impl ServerProfile {
    fn new(orb: &OrbHandle, ior: Ior, is_whole: bool, wire_profile: Option<WireProfile>) -> ServerProfile {
        let forms = forms(orb.shared(), &ior, wire_profile);
        let real_time = match orb.shared().real_time {
            Some(_) => real_time_policies(&ior),
            None => RealTimePolicies::default(),
        };
        let chooses_connections = real_time.bands.is_some() || real_time.client_protocols.is_some();
        orb.shared().client_policies.note_used(chooses_connections);
        let mut profile = ServerProfile {
            orb: orb.clone(),
            first: OnceLock::new(),
            targets: OnceLock::new(),
            forms,
            ior,
            is_whole,
            wire_profile,
            real_time,
            priority_use: PriorityUse::Any,
            lane_targets: OnceLock::new(),
            selections: Selections::new(),
        };
        profile.priority_use = profile.find_priority_use();
        profile
    }

    fn find_priority_use(&self) -> PriorityUse {
        let orb = self.orb.shared();
        let has_transform = orb.real_time.as_ref().is_none_or(|real_time| real_time.transform.is_some());
        if orb.deadline_clock.is_some() {
            return PriorityUse::Any;
        }
        if self.priority_model().is_none() {
            return PriorityUse::None;
        }
        let (form, lanes) = self.listed_lanes();
        let lists_best_effort = lanes.iter().any(|(priority, _)| priority.is_none());
        match self.propagates() {
            false if lanes.is_empty() => PriorityUse::None,
            // The straight way writes requests by the first profile.
            true if form == 0 && !has_transform && !lists_best_effort => PriorityUse::Told,
            _ => PriorityUse::Any,
        }
    }

    /// What calls of a real-time ORB make of the priorities of their threads, unless policies choose another address.
    #[inline(always)] // a step of every call with a priority
    pub(crate) fn priority_use(&self) -> PriorityUse {
        self.priority_use
    }

    /// The address for calls of one priority, or else the first one, once a call has found them out.
    #[inline(always)] // a step of every call with a priority
    pub(crate) fn known_target_for(&self, priority: Priority) -> Option<&ServerTarget> {
        match self.lane_targets.get()?.iter().find(|lane| lane.priority == Some(priority)) {
            Some(lane) => Some(&lane.target),
            None => self.first_target(),
        }
    }

    /// The address for a call that the thread makes at this priority, with its place among such addresses. `None` if the
    /// server has none: then calls go to an address that is for all. A call of an operation without a timing goes to the
    /// best-effort lane, if the server has one. Takes locks when it is first asked.
    #[inline(always)] // a step of every call with a priority
    pub(crate) fn lane_target(&self, priority: Option<Priority>) -> Option<(usize, &ServerTarget)> {
        self.priority_model()?;
        let targets = match self.lane_targets.get() {
            Some(targets) => targets,
            None => self.lane_targets.get_or_init(|| self.find_lane_targets()),
        };
        if let [.., last] = &**targets
            && last.priority.is_none()
            && !is_timed_call()
        {
            return Some((targets.len() - 1, &last.target));
        }
        let priority = priority.filter(|_| self.propagates())?;
        let place = targets.iter().position(|lane| lane.priority == Some(priority))?;
        Some((place, &targets.get(place)?.target))
    }

    /// The address with this place among those for one priority each.
    pub(crate) fn lane_target_at(&self, place: usize) -> Option<&ServerTarget> {
        Some(&self.lane_targets.get()?.get(place)?.target)
    }

    /// The addresses for one priority each, as far as a call has found them out.
    pub(super) fn known_lane_targets(&self) -> impl Iterator<Item = &ServerTarget> {
        self.lane_targets.get().into_iter().flatten().map(|lane| &lane.target)
    }

    #[inline(always)] // a step of every call with a priority
    fn propagates(&self) -> bool {
        self.priority_model().is_some_and(|policy| policy.model == PriorityModel::ClientPropagated)
    }

    #[cold]
    fn find_lane_targets(&self) -> Box<[LaneTarget]> {
        let (form, lanes) = self.listed_lanes();
        let target = |address| self.target_at(form, address, self.partition());
        let targets =
            lanes.into_iter().map(|(priority, address)| LaneTarget { priority, target: target(address) });
        let mut targets: Box<[LaneTarget]> = targets.collect();
        targets.sort_by_key(|lane| lane.priority.is_none());
        targets
    }

    /// The addresses of the server's lanes with their priorities, as its profiles list them, each with the number of the profile.
    pub(super) fn lanes(&self) -> Vec<(Priority, usize, Address)> {
        let of_form = |form| {
            let lanes = self.lanes_in(form).into_iter();
            lanes.filter_map(move |(priority, address)| Some((priority?, form, address)))
        };
        self.forms_of_first_server().flat_map(of_form).collect()
    }

    /// The addresses that the first profile with any lists for one priority each, and that for calls that are not scheduled, with
    /// the number of the profile.
    fn listed_lanes(&self) -> (usize, Vec<(Option<Priority>, Address)>) {
        let mut all = self.forms_of_first_server().map(|form| (form, self.lanes_in(form)));
        all.find(|(_, lanes)| !lanes.is_empty()).unwrap_or_default()
    }

    /// The first profile, and the first of the other kind, IIOP or UIOP, if it is for the same server.
    fn forms_of_first_server(&self) -> impl Iterator<Item = usize> {
        let forms = self.forms.as_deref().unwrap_or_default();
        let is_of_other_kind = |form: &Form| forms.first().is_some_and(|first| first.is_uiop != form.is_uiop);
        let other = forms.iter().position(is_of_other_kind).filter(|_| !self.is_whole);
        (0..forms.len().min(1)).chain(other)
    }

    /// The number of the server that a profile is for. A profile of UIOP is for that of the first profile of IIOP, if all have one
    /// key.
    fn server_of(&self, form: usize) -> usize {
        let forms = self.forms.as_deref().unwrap_or_default();
        match forms.get(form) {
            Some(Form { is_uiop: true, .. }) if !self.is_whole => {
                forms.iter().position(|form| !form.is_uiop).unwrap_or(0)
            }
            _ => form,
        }
    }

    fn lanes_in(&self, form: usize) -> Vec<(Option<Priority>, Address)> {
        if self.orb.shared().real_time.as_ref().is_none_or(|real_time| !real_time.tao_endpoints) {
            return Vec::new();
        }
        let form = self.forms.as_deref().unwrap_or_default().get(form);
        let Some(Profile::Iiop(profile)) = form.map(|form| &self.ior.profiles[form.profile]) else {
            return Vec::new();
        };
        let mut components = profile.components();
        let listed: Vec<(i16, Option<Address>)> = match profile.uiop_path() {
            // A profile of UIOP that can be used is one whose transport is used.
            Some(_) => {
                let listed = components.find_map(|component| component.tao_unix_endpoints()?.ok());
                let lane = |it: TaoUnixEndpoint| (it.priority, Address::unix(&it.path));
                listed.unwrap_or_default().into_iter().map(lane).collect()
            }
            None if !self.orb.shared().config.client_transports.contains(&Transport::Tcp) => Vec::new(),
            None => {
                let listed = components.find_map(|component| component.tao_endpoints()?.ok());
                let address = |host, port| Address::Tcp(HostPort { host, port });
                let lane = |it: TaoEndpoint| (it.priority, Some(address(it.host, it.port)));
                listed.unwrap_or_default().into_iter().map(lane).collect()
            }
        };
        let lane = |(number, address): (i16, Option<Address>)| {
            let priority = Priority::new(number);
            (priority.is_some() || number == FOR_BEST_EFFORT).then_some((priority, address?))
        };
        listed.into_iter().take(LANES_MAX + 1).filter_map(lane).collect()
    }

    /// The addresses for all, the best first, each with the number of the first profile that has it.
    pub(super) fn addresses(&self) -> Vec<(usize, Address)> {
        let orb = self.orb.shared();
        let mut known = BTreeSet::new();
        let of_form = |(form, Form { profile, .. }): (usize, &Form)| match &self.ior.profiles[*profile] {
            Profile::Iiop(profile) => addresses(orb, profile).map(|address| (form, address)).collect(),
            _ => Vec::new(),
        };
        let all = self.forms.as_deref().unwrap_or_default().iter().enumerate().flat_map(of_form);
        all.filter(|(_, address)| known.insert(address.clone())).collect()
    }

    /// An address with the connections of a partition.
    pub(super) fn target_at(&self, form: usize, address: Address, partition: Partition) -> ServerTarget {
        let endpoint = self.orb.driver().endpoint(address, partition);
        ServerTarget { form, server: self.server_of(form), number: endpoint.number(), endpoint }
    }

    /// The partition of calls that ask for nothing more.
    pub(super) fn partition(&self) -> Partition {
        Partition::of(self.wire_profile)
    }

    /// The policies of the reference that concern real time, if the ORB heeds them.
    pub(super) fn real_time(&self) -> &RealTimePolicies {
        &self.real_time
    }

    /// The addresses with connections for calls that ask for more than their priority.
    pub(super) fn selections(&self) -> &Selections {
        &self.selections
    }

    /// The priority model of the objects, if the ORB heeds it.
    #[inline]
    pub(crate) fn priority_model(&self) -> Option<PriorityModelPolicy> {
        self.real_time.priority_model
    }

    #[inline]
    pub(crate) fn orb(&self) -> &OrbHandle {
        &self.orb
    }

    pub(crate) fn wire_profile(&self) -> Option<WireProfile> {
        self.wire_profile
    }

    /// The reference, apart from the object key.
    pub(crate) fn without_key(&self) -> &Ior {
        &self.ior
    }

    /// The reference, if it is one without an object key, or with several. Then no other object shares the profile,
    /// unless its reference is the same.
    pub(crate) fn whole(&self) -> Option<&Ior> {
        self.is_whole.then_some(&self.ior)
    }

    /// The key by which an ORB of this process knows the object with this key, if it is an object of that ORB.
    pub(crate) fn local_key(&self, key: &[u8], driver: &dyn OrbDriver) -> Option<Vec<u8>> {
        self.ior.iiop_profiles().find_map(|profile| {
            let key = if self.is_whole { profile.object_key() } else { key };
            driver.is_local(key, profile).then(|| key.to_vec())
        })
    }

    /// The first address, once a call has found it out.
    #[inline]
    pub(crate) fn first_target(&self) -> Option<&ServerTarget> {
        self.first.get()
    }

    /// The addresses, at least one.
    pub(crate) fn targets(&self) -> Result<&[ServerTarget], SystemException> {
        match self.targets.get_or_init(|| self.find_targets()) {
            Ok(targets) => {
                self.first.get_or_init(|| targets[0].clone());
                Ok(targets)
            }
            Err(e) => Err(e.clone()),
        }
    }

    /// The addresses as far as a call has found them out.
    #[inline]
    pub(crate) fn known_targets(&self) -> &[ServerTarget] {
        match self.targets.get() {
            Some(Ok(targets)) => targets,
            _ => &[],
        }
    }

    /// Whether there is more than one address. False before the first call.
    #[inline]
    pub(crate) fn has_several_targets(&self) -> bool {
        self.known_targets().len() > 1
    }

    #[cold]
    fn find_targets(&self) -> Result<Box<[ServerTarget]>, SystemException> {
        self.forms.as_ref().map_err(Clone::clone)?;
        let target = |(form, address)| self.target_at(form, address, self.partition());
        let all: Box<[ServerTarget]> = self.addresses().into_iter().map(target).collect();
        if all.is_empty() { Err(no_address()) } else { Ok(all) }
    }

    /// The template of requests to the object with this key by the first profile. A reference that cannot be used gets
    /// one as well, which has its key.
    pub(crate) fn first_request(&self, key: &[u8]) -> RequestTarget {
        match self.forms.as_deref() {
            Ok([first, ..]) => RequestTarget::new(first.version, first.code_sets, self.key(key, first)),
            _ => RequestTarget::new(Version::V1_2, None, key),
        }
    }

    /// The templates of requests by the further profiles.
    pub(crate) fn further_requests(&self, key: &[u8]) -> Box<[RequestTarget]> {
        let further = self.forms.as_deref().ok().and_then(|forms| forms.get(1..)).unwrap_or_default();
        let request = |form: &Form| RequestTarget::new(form.version, form.code_sets, self.key(key, form));
        further.iter().map(request).collect()
    }

    /// The templates of requests that name the object in a certain way, for each profile. There is at least one. `ior`
    /// is the whole reference.
    #[cold]
    pub(crate) fn addressed_requests(
        &self,
        ior: &Ior,
        disposition: AddressingDisposition,
    ) -> Result<Box<[RequestTarget]>, SystemException> {
        let request = |form: &Form| {
            let tagged = &ior.profiles[form.profile];
            let address = match (disposition, tagged) {
                (AddressingDisposition::Key, Profile::Iiop(profile)) => {
                    TargetAddress::Key(profile.object_key())
                }
                (AddressingDisposition::Reference, _) => {
                    TargetAddress::Reference { ior, selected: form.profile as u32 }
                }
                _ => TargetAddress::Profile(tagged),
            };
            RequestTarget::addressed(form.version, form.code_sets, address).map_err(SystemException::from)
        };
        match &self.forms {
            Ok(forms) if forms.is_empty() => Err(no_address()),
            Ok(forms) => forms.iter().map(request).collect(),
            Err(e) => Err(e.clone()),
        }
    }

    /// Sets the form of exceptions in an `any` to what is known of the servers.
    #[cold]
    pub(crate) fn set_exception_forms<'r>(
        &self,
        targets: &[ServerTarget],
        requests: impl Iterator<Item = &'r RequestTarget>,
    ) {
        let forms = self.forms.as_deref().unwrap_or_default();
        for (index, (form, request)) in forms.iter().zip(requests).enumerate() {
            let shown = || {
                let mut its = targets.iter().filter(|target| target.form == index);
                its.find_map(|target| target.endpoint.sends_bare_exceptions())
            };
            request.set_bare_exceptions(match self.orb.shared().config.bare_exceptions {
                BareExceptions::Auto => shown().unwrap_or(form.bare_exceptions),
                BareExceptions::Yes => true,
                BareExceptions::No => false,
            });
        }
    }

    /// The key in a profile of the object that has this key.
    fn key<'k>(&'k self, key: &'k [u8], form: &Form) -> &'k [u8] {
        match &self.ior.profiles[form.profile] {
            Profile::Iiop(profile) if self.is_whole => profile.object_key(),
            _ => key,
        }
    }
}

/// The policies of a reference that concern real time: those of its first profile. A reference whose policies cannot be read
/// has none.
fn real_time_policies(ior: &Ior) -> RealTimePolicies {
    let first = ior.iiop_profiles().next();
    first.and_then(|profile| RealTimePolicies::read(profile.components()).ok()).unwrap_or_default()
}

/// The profiles of a reference that can be used.
fn forms(
    orb: &OrbShared,
    ior: &Ior,
    wire_profile: Option<WireProfile>,
) -> Result<Box<[Form]>, SystemException> {
    let mut incompatible = None;
    let mut forms = Vec::new();
    for (index, tagged) in ior.profiles.iter().enumerate() {
        let Profile::Iiop(profile) = tagged else { continue };
        let is_uiop = profile.uiop_path().is_some();
        // Of another machine, or for a transport that is not used.
        if is_uiop && addresses(orb, profile).next().is_none() {
            continue;
        }
        let chosen = match wire_profile {
            // The client that has chosen the code sets is responsible for the server's knowing them.
            Some(wire_profile) => Ok(wire_profile.code_sets),
            None => chosen_code_sets(orb, profile),
        };
        match chosen {
            Ok(code_sets) => {
                let version_max =
                    wire_profile.map_or(orb.config.giop_version, |wire_profile| wire_profile.version);
                forms.push(Form {
                    profile: index,
                    version: profile.version().min(version_max),
                    code_sets,
                    // The form that omniORB's C++ library expects. Its Python library has the same ORB type and is
                    // recognised by what it sends.
                    bare_exceptions: profile.orb_type() == Some(OMNIORB_ORB_TYPE),
                    is_uiop,
                });
            }
            Err(e) => incompatible = Some(e),
        }
    }
    match incompatible {
        Some(e) if forms.is_empty() => Err(no_code_set(&e)),
        _ => Ok(forms.into_boxed_slice()),
    }
}

#[cold]
fn no_code_set(e: &CodeSetIncompatible) -> SystemException {
    SystemException::new(
        SystemExceptionKind::CodesetIncompatible,
        MinorCode::CODESET_NEGOTIATION_FAILED,
        CompletionStatus::No,
    )
    .with_detail(e.to_string())
}

#[cold]
fn no_address() -> SystemException {
    SystemException::new(SystemExceptionKind::InvObjref, MinorCode::NO_USABLE_PROFILE, CompletionStatus::No)
        .with_detail("the reference has no IIOP address; did the ORB that made it ever listen?")
}

/// The code sets in which strings and wide characters are sent to a server; `None` when its reference names
/// none.
fn chosen_code_sets(
    orb: &OrbShared,
    profile: &IiopProfile,
) -> Result<Option<TransmissionCodeSets>, CodeSetIncompatible> {
    let chosen = profile.transmission_code_sets(&orb.config.code_sets())?;
    Ok(match profile.code_sets().filter(|_| orb.config.prefer_utf8) {
        Some(server) => chosen.map(|sets| sets.preferring(CharSet::Utf8, &server)),
        None => chosen,
    })
}

/// The addresses in a profile, the best first.
fn addresses(orb: &OrbShared, profile: &IiopProfile) -> impl Iterator<Item = Address> {
    let own = orb.config.client_transports.iter();
    Address::all_custom_in(profile, &orb.transports)
        .chain(own.flat_map(|transport| Address::all_in(profile, *transport)))
}

/// Which references to one address share its connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct Partition {
    /// A connection has one pair of code sets, so wire profiles with different code sets must not share connections.
    pub(crate) wire_profile: u8,
    /// The band of priorities whose calls have the connection (RTCORBA 1.2, PriorityBandedConnectionPolicy).
    pub(crate) band: Option<PriorityBand>,
    /// The properties of connections over TCP that the calls have asked for.
    pub(crate) tcp: Option<TcpProperties>,
    /// The mark of packets that the calls have asked for.
    pub(crate) code_point: Option<CodePoint>,
    /// Whether one reference alone has the connections (RTCORBA 1.2, PrivateConnectionPolicy).
    pub(crate) is_private: bool,
}

impl Partition {
    /// The shared connections of a wire profile.
    pub(super) fn of(wire_profile: Option<WireProfile>) -> Partition {
        let wire_profile = match wire_profile {
            None => 0,
            Some(WireProfile { code_sets: None, .. }) => 1,
            Some(WireProfile { code_sets: Some(sets), .. }) => 2 + sets.to_octet(),
        };
        Partition { wire_profile, ..Partition::default() }
    }

    /// Whether all threads of a lane share one connection to an endpoint.
    pub(crate) fn has_one_connection(&self) -> bool {
        self.is_private || self.band.is_some()
    }
}

/// Finds the profile of a reference's server, if a reference to one of its objects exists.
#[derive(Debug)]
pub(crate) struct ServerProfiles {
    hash_keys: HashKeys,
    /// By the lowest bits of the hash. A change copies one part.
    known: [Snapshot<Known>; PARTS],
}

/// Profiles by their hashes.
type Known = BTreeMap<u64, Weak<ServerProfile>>;

/// The most profiles that are shared. References to the objects of further servers each have one of their own.
const SHARED_MAX: usize = 16_384;

impl ServerProfiles {
    pub(crate) fn new(hash_keys: HashKeys) -> ServerProfiles {
        ServerProfiles { hash_keys, known: Default::default() }
    }

    /// Takes a reference apart: into what it has in common with others, and its object key, which is empty for a
    /// reference without one.
    pub(crate) fn take_apart(
        &self,
        orb: &OrbHandle,
        mut ior: Ior,
        wire_profile: Option<WireProfile>,
    ) -> (Arc<ServerProfile>, Vec<u8>) {
        match ior.take_object_key() {
            Some(key) => (self.shared(orb, ior, wire_profile), key),
            None => {
                let key = ior.iiop_profiles().next().map(|first| first.object_key().to_vec());
                (Arc::new(ServerProfile::new(orb, ior, true, wire_profile)), key.unwrap_or_default())
            }
        }
    }

    fn shared(&self, orb: &OrbHandle, ior: Ior, wire_profile: Option<WireProfile>) -> Arc<ServerProfile> {
        let hash = self.hash_keys.hash_one((&ior, wire_profile));
        let known = &self.known[hash as usize % PARTS];
        let find = |known: &Known| {
            let found = known.get(&hash)?.upgrade()?;
            (found.wire_profile == wire_profile && found.ior == ior).then_some(found)
        };
        if let Some(found) = known.with(|known| find(known?)) {
            return found;
        }
        let made = Arc::new(ServerProfile::new(orb, ior.clone(), false, wire_profile));
        let added = known.change(|known| {
            let held =
                || known.into_iter().flat_map(|known| known.iter()).filter(|(_, it)| it.strong_count() > 0);
            match known.and_then(|known| find(known)) {
                Some(found) => Err(found), // another thread was quicker
                None if held().count() >= SHARED_MAX / PARTS => Err(made.clone()),
                None => {
                    let made = (hash, Arc::downgrade(&made));
                    Ok(Some(held().map(|(hash, it)| (*hash, it.clone())).chain([made]).collect()))
                }
            }
        });
        added.map_or_else(|found| found, |_before| made)
    }
}
