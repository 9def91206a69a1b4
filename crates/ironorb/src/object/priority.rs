//! Priorities of calls (RTCORBA 1.2, 5.4 to 5.8): the ORB's numbers, the system's numbers, and how one becomes the other.

use std::cell::Cell;
use std::fmt;
use std::sync::Arc;

use ironorb_giop::exception::{CompletionStatus, SystemException, SystemExceptionKind};
use ironorb_giop::minor::MinorCode;
use ironorb_giop::real_time::{self, PriorityModelPolicy};

use super::ObjectRef;
use super::peers::{PeerLimits, PeerNetwork};
use super::timing::TimingFault;
use crate::base::scheduling::{self, Schedule, become_real_time};
use crate::base::spawner::{self, NativePriority};
use crate::base::watch::WatchConfig;

/// A priority by which ORBs of all systems agree, from 0 to 32,767 (`RTCORBA::Priority`; RTCORBA 1.2, 5.4). A higher number
/// is more urgent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Priority(i16);

impl Priority {
    /// The least urgent priority.
    pub const MIN: Priority = Priority(0);

    /// The most urgent priority.
    pub const MAX: Priority = Priority(i16::MAX);

    /// The priority with this number. `None` for a number below 0, which is no priority.
    pub const fn new(number: i16) -> Option<Priority> {
        if number >= 0 { Some(Priority(number)) } else { None }
    }

    /// The number, from 0 to 32,767.
    pub const fn number(self) -> i16 {
        self.0
    }
}

impl fmt::Display for Priority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The class in which the system schedules the threads of a real-time ORB (sched(7)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum SchedulingPolicy {
    /// SCHED_FIFO: a thread runs until it waits, or until a more urgent one wants to run.
    #[default]
    Fifo,
    /// SCHED_RR: as `Fifo`, but threads of equal priority take turns.
    RoundRobin,
    /// The system's ordinary class. Threads keep the priority that they have: CORBA priorities choose lanes and connections,
    /// and travel with requests, but the system gives no thread precedence. For hosts that grant no real-time priorities.
    Other,
}

/// How priorities become those of the system, and the other way around (`RTCORBA::PriorityMapping`; RTCORBA 1.2, 5.5).
///
/// Native priorities are those of SCHED_FIFO and SCHED_RR on Linux: from 1 to 99, where a higher number is more urgent. A
/// mapping should give the same priority again when it is asked back and forth. The ORB asks on threads of every priority,
/// so a mapping neither blocks nor allocates.
pub trait PriorityMapping: Send + Sync + 'static {
    /// The native priority for a CORBA priority. `None` if there is none: what asked then fails with DATA_CONVERSION.
    fn to_native(&self, priority: Priority) -> Option<i16>;

    /// The CORBA priority for a native priority. `None` if there is none.
    fn to_corba(&self, native: i16) -> Option<Priority>;
}

/// Spreads all priorities evenly over the native priorities from `min` to `max`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinearMapping {
    /// The native priority of 0.
    pub min: i16,
    /// The native priority of 32,767. Not below `min`.
    pub max: i16,
}

impl Default for LinearMapping {
    /// From 1 to 98. The most urgent native priority, 99, is left to the system's own threads.
    fn default() -> LinearMapping {
        LinearMapping { min: 1, max: 98 }
    }
}

impl LinearMapping {
    fn width(self) -> i64 {
        i64::from(self.max) - i64::from(self.min)
    }
}

impl PriorityMapping for LinearMapping {
    fn to_native(&self, priority: Priority) -> Option<i16> {
        let width = self.width();
        if width < 0 {
            return None;
        }
        let above = width * i64::from(priority.0) / i64::from(i16::MAX);
        i16::try_from(i64::from(self.min) + above).ok()
    }

    fn to_corba(&self, native: i16) -> Option<Priority> {
        let (above, width) = (i64::from(native) - i64::from(self.min), self.width());
        if !(0..=width).contains(&above) {
            return None;
        }
        // Rounded up, so that it leads back to the same native priority.
        let number = (above * i64::from(i16::MAX)).div_euclid(width.max(1))
            + i64::from(width > 0 && (above * i64::from(i16::MAX)) % width > 0);
        Priority::new(i16::try_from(number).ok()?)
    }
}

/// Takes priorities as native priorities, unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DirectMapping;

impl PriorityMapping for DirectMapping {
    fn to_native(&self, priority: Priority) -> Option<i16> {
        (1..=99).contains(&priority.0).then_some(priority.0)
    }

    fn to_corba(&self, native: i16) -> Option<Priority> {
        (1..=99).contains(&native).then_some(Priority(native))
    }
}

/// Counts native priorities from `min` on: 0 is `min`, 1 the next one, and so on, up to `max`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContinuousMapping {
    /// The native priority of 0.
    pub min: i16,
    /// The highest native priority. Not below `min`.
    pub max: i16,
}

impl Default for ContinuousMapping {
    /// From 1 to 98, as [`LinearMapping`] has it.
    fn default() -> ContinuousMapping {
        ContinuousMapping { min: 1, max: 98 }
    }
}

impl PriorityMapping for ContinuousMapping {
    fn to_native(&self, priority: Priority) -> Option<i16> {
        self.min.checked_add(priority.0).filter(|native| *native <= self.max)
    }

    fn to_corba(&self, native: i16) -> Option<Priority> {
        let is_ours = (self.min..=self.max).contains(&native);
        native.checked_sub(self.min).filter(|_| is_ours).and_then(Priority::new)
    }
}

/// Changes the priorities of requests on their way (`RTCORBA::PriorityTransform`; RTCORBA 1.2, 5.8).
pub trait PriorityTransform: Send + Sync + 'static {
    /// The priority at which the servant of a request runs, from that of the request. `object_id` is the id of the object.
    /// `None` fails the request with DATA_CONVERSION.
    fn inbound(&self, priority: Priority, object_id: &[u8]) -> Option<Priority>;

    /// The priority that a request tells, from that of the calling thread. `None` fails the call with DATA_CONVERSION.
    fn outbound(&self, priority: Priority, target: &ObjectRef) -> Option<Priority>;
}

/// How an ORB treats priorities; [`OrbBuilder::real_time`](crate::OrbBuilder::real_time) takes it.
#[derive(Clone)]
#[must_use]
pub struct RealTimeConfig {
    pub(crate) scheduling: SchedulingPolicy,
    pub(crate) mapping: Arc<dyn PriorityMapping>,
    pub(crate) transform: Option<Arc<dyn PriorityTransform>>,
    pub(crate) propagated_priority_max: Priority,
    pub(crate) peer_limits: PeerLimits,
    pub(crate) on_timing_fault: Option<TimingFaultHandler>,
    pub(crate) overrun_policy: OverrunPolicy,
    pub(crate) tao_endpoints: bool,
    /// `None` where nothing is watched.
    pub(crate) watch: Option<WatchConfig>,
}

/// What an ORB does about an upcall that runs longer than the `wcet` of its operation, as `@rt` in IDL gives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum OverrunPolicy {
    /// The ORB counts it, and tells the program, when the servant has returned.
    #[default]
    Count,
    /// The ORB ends it for its caller at once: the client gets TIMEOUT, minor code `UPCALL_OVERRUN`, COMPLETED_MAYBE, and the
    /// servant's thread has the lowest real-time priority of the system until the servant returns. The servant runs on, and its
    /// results are dropped; it may ask [`overrun`](crate::rt::overrun).
    ///
    /// Costs a thread a lane, one priority above the lane's threads. Each upcall of an operation with `wcet` takes a little
    /// memory. Oneways, calls within the process, servants that reply later and ORBs in virtual time are counted only.
    EndCall,
}

/// What the program does about timing faults.
pub(crate) type TimingFaultHandler = Arc<dyn Fn(&TimingFault<'_>) + Send + Sync>;

impl Default for RealTimeConfig {
    fn default() -> RealTimeConfig {
        RealTimeConfig {
            scheduling: SchedulingPolicy::default(),
            mapping: Arc::new(LinearMapping::default()),
            transform: None,
            propagated_priority_max: Priority::MAX,
            peer_limits: PeerLimits::default(),
            on_timing_fault: None,
            overrun_policy: OverrunPolicy::default(),
            tao_endpoints: true,
            watch: None,
        }
    }
}

impl fmt::Debug for RealTimeConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RealTimeConfig")
            .field("scheduling", &self.scheduling)
            .field("propagated_priority_max", &self.propagated_priority_max)
            .finish_non_exhaustive()
    }
}

impl RealTimeConfig {
    /// SCHED_FIFO, a [`LinearMapping`] over the native priorities from 1 to 98, no transform, and no limit.
    pub fn new() -> RealTimeConfig {
        RealTimeConfig::default()
    }

    /// Sets the class in which the system schedules the threads. Default: [`SchedulingPolicy::Fifo`].
    pub fn scheduling(mut self, policy: SchedulingPolicy) -> Self {
        self.scheduling = policy;
        self
    }

    /// Sets how priorities become those of the system. Default: [`LinearMapping`].
    pub fn mapping(mut self, mapping: impl PriorityMapping) -> Self {
        self.mapping = Arc::new(mapping);
        self
    }

    /// Sets how the priorities of requests change on their way. Default: not at all.
    pub fn transform(mut self, transform: impl PriorityTransform) -> Self {
        self.transform = Some(Arc::new(transform));
        self
    }

    /// Sets the highest priority that a client may give its requests. A higher one counts as this. Default:
    /// [`Priority::MAX`].
    pub fn propagated_priority_max(mut self, priority: Priority) -> Self {
        self.propagated_priority_max = priority;
        self
    }

    /// Sets the highest priority that these peers may give their requests. A higher one counts as this. What they connect to a
    /// lane with a higher priority is served by the lane for all priorities: the default lane, or the first of a
    /// [thread pool](crate::LaneConfig::threadpool); if that is above the limit, too, the connection is closed. Of several networks with a
    /// peer's address that with the longest prefix counts. Peers that come by a program's own transport are taken for local.
    /// Default: no limit but [`propagated_priority_max`](Self::propagated_priority_max).
    pub fn peer_priority_max(mut self, peers: PeerNetwork, priority: Priority) -> Self {
        self.peer_limits.set(peers, priority);
        self
    }

    /// Has the ORB tell a program of upcalls that do not keep to the timing of their operations, as `@rt` in IDL gives it.
    ///
    /// The upcall's thread calls `handler` when the servant has returned and the reply is on its way, with no lock held. It
    /// serves no other request meanwhile. Where the ORB ends upcalls ([`OverrunPolicy::EndCall`]), a thread that does this for
    /// the lane calls it while the servant still runs, so it must not block. A panic in it is dropped. Default: the ORB only counts.
    pub fn on_timing_fault(mut self, handler: impl Fn(&TimingFault<'_>) + Send + Sync + 'static) -> Self {
        self.on_timing_fault = Some(Arc::new(handler));
        self
    }

    /// Sets what the ORB does about upcalls that run too long. Default: [`OverrunPolicy::Count`].
    pub fn overrun_policy(mut self, policy: OverrunPolicy) -> Self {
        self.overrun_policy = policy;
        self
    }

    /// Sets whether references list the addresses of lanes with their priorities in TAO's component `0x54414F02`, and whether
    /// calls heed that of other servers. Without it calls reach the lane of their priority only by a reference of that lane,
    /// and the server learns bands from the connection (RTCORBA 1.2, 5.12). Default: true.
    pub fn tao_endpoints(mut self, are_used: bool) -> Self {
        self.tao_endpoints = are_used;
        self
    }

    /// Has the ORB watch its lanes: the parts of each request, switches and system calls of upcalls, and waits for what threads
    /// with lower priorities hold. `ironorb rt watch` shows it, and [`Orb::watched`](crate::Orb::watched). Needs the feature
    /// `watch`: without it the ORB is not built. Default: it does not, and calls pay nothing for it.
    pub fn watch(mut self, config: WatchConfig) -> Self {
        self.watch = Some(config);
        self
    }

    /// The native priority of threads with a priority; `None` where the system schedules them as ordinary threads.
    pub(crate) fn native(&self, priority: Priority) -> Result<Option<NativePriority>, Unmapped> {
        let native = self.mapping.to_native(priority).and_then(|native| u8::try_from(native).ok());
        match (self.scheduling, native) {
            (SchedulingPolicy::Other, _) => Ok(None),
            (policy, Some(native)) => {
                let native = NativePriority::new(native).ok_or(Unmapped)?;
                Ok(Some(match policy {
                    SchedulingPolicy::RoundRobin => native.of_round_robin(),
                    _ => native,
                }))
            }
            (_, None) => Err(Unmapped),
        }
    }
}

/// A priority that the ORB's mapping does not map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unmapped;

impl Unmapped {
    /// The exception for it (RTCORBA 1.2, 5.5): DATA_CONVERSION, minor 2.
    #[cold]
    pub(crate) fn exception(self) -> SystemException {
        SystemException::new(
            SystemExceptionKind::DataConversion,
            MinorCode::DATA_CONVERSION_PRIORITY,
            CompletionStatus::No,
        )
        .with_detail("the ORB's priority mapping has no native priority for it")
    }
}

/// Where the priority of an object's requests comes from (`RTCORBA::PriorityModelPolicy`; RTCORBA 1.2, 5.7).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PriorityModel {
    /// The request has it: that of the thread that calls (`CLIENT_PROPAGATED`).
    ClientPropagated {
        /// The priority of requests without one, as ORBs without real time send them.
        default: Priority,
    },
    /// The server has declared it (`SERVER_DECLARED`).
    ServerDeclared(Priority),
}

impl PriorityModel {
    /// The model as references tell it.
    pub(crate) fn to_policy(self) -> PriorityModelPolicy {
        let (model, priority) = match self {
            PriorityModel::ClientPropagated { default } => {
                (real_time::PriorityModel::ClientPropagated, default)
            }
            PriorityModel::ServerDeclared(priority) => (real_time::PriorityModel::ServerDeclared, priority),
        };
        PriorityModelPolicy { model, server_priority: priority.number() }
    }

    /// The model that a reference tells. A number that is no priority counts as 0.
    pub(crate) fn of_reference(policy: PriorityModelPolicy) -> PriorityModel {
        let priority = Priority::new(policy.server_priority).unwrap_or(Priority::MIN);
        match policy.model {
            real_time::PriorityModel::ClientPropagated => {
                PriorityModel::ClientPropagated { default: priority }
            }
            real_time::PriorityModel::ServerDeclared => PriorityModel::ServerDeclared(priority),
        }
    }
}

thread_local! {
    /// The priority of the calling thread; `None` if none has been set.
    static CURRENT: Cell<Option<Priority>> = const { Cell::new(None) };
    /// The native priority that this thread was last given for a CORBA priority.
    static NATIVE: Cell<Option<NativePriority>> = const { Cell::new(None) };
}

/// The priority of the calling thread; `None` if none has been set.
#[inline]
pub(crate) fn current_priority() -> Option<Priority> {
    CURRENT.get()
}

/// The native priority that the ORB has given the calling thread: for a CORBA priority, or for its lane.
pub(crate) fn native_priority_given() -> Option<NativePriority> {
    NATIVE.get().or_else(spawner::own_priority)
}

/// Takes back what a servant has set on the calling thread, which an ORB has made.
pub(crate) fn be_as_made() {
    CURRENT.set(None);
    if NATIVE.take().is_some() {
        spawner::schedule_as_made();
    }
}

/// Gives the calling thread a priority, and the system's that goes with it. Fails where the system refuses.
pub(crate) fn set_current_priority(
    priority: Priority,
    native: Option<NativePriority>,
) -> std::io::Result<()> {
    if let Some(native) = native
        && NATIVE.get() != Some(native)
    {
        become_real_time(native)?;
        NATIVE.set(Some(native));
    }
    CURRENT.set(Some(priority));
    Ok(())
}

/// The priority of the calling thread: that which has been set or, if the system has it in a real-time class, that which the
/// mapping has for its native one.
pub(crate) fn priority_of_thread(real_time: &RealTimeConfig) -> Option<Priority> {
    current_priority().or_else(|| real_time.mapping.to_corba(native_priority_of_thread()?))
}

/// The priority of the calling thread as the system has it; `None` without one of a real-time class.
pub(crate) fn native_priority_of_thread() -> Option<i16> {
    scheduling::own_schedule().ok()?.real_time_priority().map(i16::from)
}

/// The calling thread's stay at the priority of a request. Dropping it brings back the priority that the thread had.
#[derive(Debug)]
#[must_use = "the stay ends when this is dropped"]
pub(crate) struct AtPriority {
    _stay: AtLanePriority,
    native_before: Option<NativePriority>,
    schedule: Option<Schedule>,
}

impl AtPriority {
    /// Gives the calling thread the priority of a request. Without a `native` priority the system's stays: the thread's own
    /// is right already, or the system does not schedule by priorities.
    pub(crate) fn enter(priority: Priority, native: Option<NativePriority>) -> AtPriority {
        let native_before = NATIVE.get();
        let schedule = native.filter(|native| native_before != Some(*native)).and_then(|native| {
            let before = scheduling::own_schedule().ok()?;
            // Where the system refuses, the servant runs all the same, without.
            become_real_time(native).ok()?;
            NATIVE.set(Some(native));
            Some(before)
        });
        AtPriority { _stay: AtLanePriority::enter(priority), native_before, schedule }
    }

    /// As [`enter`](Self::enter), but fails where the system refuses: the thread then has what it had.
    pub(crate) fn try_enter(
        priority: Priority,
        native: Option<NativePriority>,
    ) -> std::io::Result<AtPriority> {
        let native_before = NATIVE.get();
        let schedule = match native.filter(|native| native_before != Some(*native)) {
            None => None,
            Some(native) => {
                let before = scheduling::own_schedule()?;
                become_real_time(native)?;
                NATIVE.set(Some(native));
                Some(before)
            }
        };
        Ok(AtPriority { _stay: AtLanePriority::enter(priority), native_before, schedule })
    }
}

/// The stay of a lane's thread at the priority of a request that is the lane's own. Dropping it brings back the priority that
/// the thread had.
#[derive(Debug)]
#[must_use = "the stay ends when this is dropped"]
pub(crate) struct AtLanePriority {
    before: Option<Priority>,
}

impl AtLanePriority {
    /// Has the calling thread run at the priority of its lane. The system gives it that already.
    #[inline(always)] // a step of every call with a priority
    pub(crate) fn enter(priority: Priority) -> AtLanePriority {
        AtLanePriority { before: CURRENT.replace(Some(priority)) }
    }
}

impl Drop for AtLanePriority {
    #[inline(always)] // a step of every call with a priority
    fn drop(&mut self) {
        CURRENT.set(self.before);
    }
}

impl Drop for AtPriority {
    fn drop(&mut self) {
        if let Some(schedule) = self.schedule.take() {
            NATIVE.set(self.native_before);
            let _refused_what_was_there_before = schedule.restore();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> impl Iterator<Item = Priority> {
        (0..=i16::MAX).filter_map(Priority::new)
    }

    /// What is mapped to the system and back is mapped to the same native priority, and grows with the priority.
    fn check(mapping: &dyn PriorityMapping) -> usize {
        let mut last = None;
        let mut mapped = 0;
        for priority in all() {
            let Some(native) = mapping.to_native(priority) else { continue };
            let back = mapping.to_corba(native).expect("a native priority of the mapping");
            assert_eq!(mapping.to_native(back), Some(native), "{priority}");
            assert!(last <= Some(native), "{priority}");
            (last, mapped) = (Some(native), mapped + 1);
        }
        mapped
    }

    #[test]
    fn mappings_are_idempotent_over_all_priorities() {
        for (min, max) in [(1, 98), (1, 99), (1, 1), (0, 32_767), (-20, 19), (i16::MIN, i16::MAX)] {
            let linear = LinearMapping { min, max };
            assert_eq!(check(&linear), 32_768, "{min} to {max}");
            assert_eq!(linear.to_native(Priority::MIN), Some(min));
            assert_eq!(linear.to_native(Priority::MAX), Some(max));
            for native in min..=max {
                let there = linear.to_corba(native).unwrap();
                let is_wider = i32::from(max) - i32::from(min) > i32::from(i16::MAX);
                assert!(linear.to_native(there) == Some(native) || is_wider, "{native}");
            }
        }
        assert_eq!(check(&DirectMapping), 99);
        assert_eq!(check(&ContinuousMapping { min: 5, max: 20 }), 16);
        assert_eq!(ContinuousMapping::default().to_native(Priority::MAX), None);
    }

    #[test]
    fn what_a_mapping_does_not_map_is_none() {
        let linear = LinearMapping::default();
        assert_eq!((linear.to_corba(0), linear.to_corba(99)), (None, None));
        assert_eq!((linear.to_corba(1), linear.to_corba(98)), (Some(Priority::MIN), Some(Priority::MAX)));
        assert_eq!(LinearMapping { min: 3, max: 2 }.to_native(Priority::MIN), None);
        assert_eq!((DirectMapping.to_native(Priority::MIN), DirectMapping.to_corba(100)), (None, None));
        assert_eq!((Priority::new(-1), Priority::new(i16::MIN)), (None, None));
        let direct = RealTimeConfig::new().mapping(DirectMapping);
        assert_eq!(direct.native(Priority::MAX), Err(Unmapped));
        assert_eq!(direct.native(Priority(7)), Ok(NativePriority::new(7)));
        assert_eq!(direct.scheduling(SchedulingPolicy::Other).native(Priority::MAX), Ok(None));
    }

    #[test]
    fn a_thread_is_at_the_priority_of_a_request_until_that_ends() {
        std::thread::spawn(|| {
            assert_eq!(current_priority(), None);
            set_current_priority(Priority(5), None).unwrap();
            let outer = AtPriority::enter(Priority(9), NativePriority::new(2));
            assert_eq!(current_priority(), Some(Priority(9)));
            let inner = AtPriority::enter(Priority(3), NativePriority::new(1));
            assert_eq!(current_priority(), Some(Priority(3)));
            let native = native_priority_of_thread();
            drop(inner);
            assert_eq!(current_priority(), Some(Priority(9)));
            // Where the system grants real-time priorities, they follow.
            assert_eq!((native, native_priority_of_thread()), (native.and(Some(1)), native.and(Some(2))));
            drop(outer);
            assert_eq!((current_priority(), native_priority_of_thread()), (Some(Priority(5)), None));
        })
        .join()
        .unwrap();
    }
}
