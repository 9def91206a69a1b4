//! The disciplines that the ORB brings along.

use std::time::Duration;

use ironorb_giop::exception::{CompletionStatus, SystemException, SystemExceptionKind};
use ironorb_giop::minor::MinorCode;

use super::{DistributableThread, Scheduler, SchedulingParameter, SegmentTerms};
use crate::object::priority::Priority;
use crate::object::timing::Level;

/// Segments have the CORBA priority of their [parameter](SchedulingParameter::priority), which they need.
///
/// Servers run at it where their adapters have [`PriorityModel::ClientPropagated`](crate::rt::PriorityModel).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FixedPriority;

impl Scheduler for FixedPriority {
    fn scheduling_discipline_name(&self) -> &str {
        "FixedPriority"
    }

    fn begin_new_scheduling_segment(
        &self,
        _thread: &DistributableThread,
        _name: &str,
        parameter: Option<&SchedulingParameter>,
    ) -> Result<SegmentTerms, SystemException> {
        let parameter = parameter.copied().unwrap_or_default();
        let priority = parameter.priority.ok_or_else(|| unsupported(self, "priority"))?;
        // A deadline is no duty of this discipline, and the calls of a segment keep to it all the same.
        Ok(SegmentTerms { priority: Some(priority), deadline: parameter.deadline })
    }
}

/// How urgency becomes one of a few CORBA priorities.
///
/// A limit is a time: what must end, or begin, within it belongs to the limit's band. What is within no limit is in the
/// lowest band. The bands' priorities are spread evenly from `lowest` to `highest`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UrgencyBands {
    lowest: Priority,
    highest: Priority,
    /// From the shortest to the longest.
    limits: Vec<Duration>,
}

impl UrgencyBands {
    /// Bands with these limits, in any order, between two priorities. If `lowest` is above `highest`, they change places.
    pub fn new(lowest: Priority, highest: Priority, limits: &[Duration]) -> UrgencyBands {
        let mut limits = limits.to_vec();
        limits.sort_unstable();
        limits.dedup();
        UrgencyBands { lowest: lowest.min(highest), highest: lowest.max(highest), limits }
    }

    /// The priority of what has so much time, in one of `groups` groups of bands. Group 0 is the least urgent, and each of
    /// its bands below all those of the next.
    fn priority(&self, time: Duration, group: usize, groups: usize) -> Priority {
        let in_group = self.limits.len() + 1;
        let within = self.limits.iter().filter(|limit| time <= **limit).count();
        let (rank, last) = (group * in_group + within, (groups * in_group - 1).max(1));
        let (lowest, highest) = (i64::from(self.lowest.number()), i64::from(self.highest.number()));
        let number = lowest + (highest - lowest) * rank as i64 / last as i64;
        i16::try_from(number).ok().and_then(Priority::new).unwrap_or(self.lowest)
    }
}

/// Limits at 1, 10, 100 ms and 1 s, over all priorities.
impl Default for UrgencyBands {
    fn default() -> UrgencyBands {
        let limits = [1, 10, 100, 1_000].map(Duration::from_millis);
        UrgencyBands::new(Priority::MIN, Priority::MAX, &limits)
    }
}

/// Segments need a [deadline](SchedulingParameter::deadline): the sooner it is when they begin, the more urgent they are.
///
/// The deadline holds for the segment's calls, and travels where the ORB has
/// [`deadline_propagation`](crate::OrbBuilder::deadline_propagation). The thread has the priority of the deadline's band: the
/// system schedules by it, so two threads in one band do not preempt each other by their deadlines.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EarliestDeadline {
    bands: UrgencyBands,
}

impl EarliestDeadline {
    /// Makes deadlines priorities by these bands.
    pub fn new(bands: UrgencyBands) -> EarliestDeadline {
        EarliestDeadline { bands }
    }
}

impl Scheduler for EarliestDeadline {
    fn scheduling_discipline_name(&self) -> &str {
        "EarliestDeadline"
    }

    fn begin_new_scheduling_segment(
        &self,
        _thread: &DistributableThread,
        _name: &str,
        parameter: Option<&SchedulingParameter>,
    ) -> Result<SegmentTerms, SystemException> {
        let deadline = parameter.and_then(|it| it.deadline).ok_or_else(|| unsupported(self, "deadline"))?;
        let priority = self.bands.priority(deadline, 0, 1);
        Ok(SegmentTerms { priority: Some(priority), deadline: Some(deadline) })
    }
}

/// Segments need a [deadline](SchedulingParameter::deadline). A more critical one is always more urgent; among equally
/// critical ones, the one that can wait less: its deadline less its execution time.
///
/// A segment without a criticality is [`Level::Medium`]. The importance travels, and orders what waits in queues; bands are
/// too few for it. All else as [`EarliestDeadline`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MaximumUrgencyFirst {
    bands: UrgencyBands,
}

impl MaximumUrgencyFirst {
    /// Makes urgencies priorities by these bands: once for each of the five criticalities.
    pub fn new(bands: UrgencyBands) -> MaximumUrgencyFirst {
        MaximumUrgencyFirst { bands }
    }
}

impl Scheduler for MaximumUrgencyFirst {
    fn scheduling_discipline_name(&self) -> &str {
        "MaximumUrgencyFirst"
    }

    fn begin_new_scheduling_segment(
        &self,
        _thread: &DistributableThread,
        _name: &str,
        parameter: Option<&SchedulingParameter>,
    ) -> Result<SegmentTerms, SystemException> {
        let parameter = parameter.copied().unwrap_or_default();
        let laxity = parameter.laxity().ok_or_else(|| unsupported(self, "deadline"))?;
        let group = parameter.criticality.unwrap_or(Level::Medium) as usize;
        let priority = self.bands.priority(laxity, group, Level::VeryHigh as usize + 1);
        Ok(SegmentTerms { priority: Some(priority), deadline: parameter.deadline })
    }
}

/// The exception for a parameter that a discipline cannot do with (the standard's UNSUPPORTED_SCHEDULING_DISCIPLINE).
/// `needed` is what the parameter lacks.
#[cold]
pub fn unsupported(discipline: &dyn Scheduler, needed: &str) -> SystemException {
    let name = discipline.scheduling_discipline_name();
    let kind = SystemExceptionKind::BadParam;
    SystemException::new(kind, MinorCode::UNSUPPORTED_SCHEDULING_DISCIPLINE, CompletionStatus::No)
        .with_detail(format!(
            "the scheduling discipline {name} needs a parameter with `{needed}`: set it in the segment's"
        ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(bands: &UrgencyBands, groups: usize, times: &[Duration]) -> Vec<i16> {
        (0..groups)
            .flat_map(|group| times.iter().rev().map(move |time| (group, *time)))
            .map(|(group, time)| bands.priority(time, group, groups).number())
            .collect()
    }

    #[test]
    fn bands_spread_evenly_and_every_group_is_above_the_one_before() {
        let ms = Duration::from_millis;
        let times = [Duration::ZERO, ms(2), ms(20), ms(200)];
        let bands = UrgencyBands::new(Priority::new(300).unwrap(), Priority::MIN, &[ms(100), ms(1), ms(10)]);
        assert_eq!(numbers(&bands, 1, &times), [0, 100, 200, 300]);
        let five = numbers(&UrgencyBands::default(), 5, &times);
        assert!(five.is_sorted_by(|a, b| a < b), "{five:?}");
        let one = UrgencyBands::new(Priority::MAX, Priority::MAX, &[]);
        assert_eq!(numbers(&one, 1, &times), [i16::MAX; 4]);
        assert_eq!(UrgencyBands::default().priority(Duration::MAX, 0, 1), Priority::MIN);
        assert_eq!(UrgencyBands::default().priority(Duration::ZERO, 4, 5), Priority::MAX);
    }
}
