//! In which order a lane serves the requests that wait. No clock: what changes while requests wait changes for all alike.

use std::time::Duration;

use crate::base::thread_pool_config::RequestOrder;
use crate::object::scheduling_facts::SchedulingFacts;
use crate::object::timing::Level;

/// How urgent a waiting request is. The smaller one is served first. It never changes, because orders by time compare moments
/// and not what is left until then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Urgency([u64; 3]);

impl Urgency {
    /// The urgency of a request in this order.
    pub(crate) fn of(facts: &SchedulingFacts, order: RequestOrder) -> Urgency {
        Urgency(match order {
            RequestOrder::Arrival => [0; 3],
            RequestOrder::Priority => {
                let number = facts.priority.map_or(-1, |priority| i64::from(priority.number()));
                [most_first(number), 0, 0]
            }
            RequestOrder::EarliestDeadline => [deadline(facts), 0, 0],
            RequestOrder::LeastLaxity => [latest_start(facts), 0, 0],
            RequestOrder::UrgencyFirst => {
                [level(facts.criticality), latest_start(facts), level(facts.importance)]
            }
        })
    }
}

fn deadline(facts: &SchedulingFacts) -> u64 {
    facts.deadline.at().map_or(u64::MAX, |at| at.as_nanos())
}

/// The moment after which a request cannot end in time. The laxity is what is left until then, and now is the same for all
/// that wait: so the order of these moments is the order of laxities.
fn latest_start(facts: &SchedulingFacts) -> u64 {
    let wcet = facts.wcet.unwrap_or(Duration::ZERO);
    facts.deadline.at().map_or(u64::MAX, |at| at.back(wcet).as_nanos())
}

/// A request without a level comes after those with the lowest.
fn level(level: Option<Level>) -> u64 {
    most_first(level.map_or(-1, |level| level as i64))
}

fn most_first(number: i64) -> u64 {
    ((1_i64 << 32) - number) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::time::Time;
    use crate::object::deadline::Deadline;
    use crate::object::priority::Priority;

    fn facts(priority: i16, due: u64, wcet: u64, levels: [Option<Level>; 2]) -> SchedulingFacts {
        SchedulingFacts {
            priority: Priority::new(priority),
            deadline: Deadline::at_time((due > 0).then(|| Time::from_nanos(due))),
            wcet: Some(Duration::from_nanos(wcet)),
            criticality: levels[0],
            importance: levels[1],
        }
    }

    #[test]
    fn each_order_has_its_own_first_request() {
        let high = Some(Level::High);
        let requests = [
            facts(9, 500, 1, [None; 2]),
            facts(1, 300, 1, [None; 2]),
            facts(1, 400, 350, [None; 2]),
            facts(1, 900, 1, [high, None]),
            facts(1, 900, 1, [high, high]),
            facts(1, 0, 0, [None; 2]),
        ];
        let sorted = |order| {
            let mut places: Vec<usize> = (0..requests.len()).collect();
            places.sort_by_key(|place| Urgency::of(&requests[*place], order));
            places
        };
        assert_eq!(sorted(RequestOrder::Arrival), [0, 1, 2, 3, 4, 5]);
        assert_eq!(sorted(RequestOrder::Priority), [0, 1, 2, 3, 4, 5]);
        assert_eq!(sorted(RequestOrder::EarliestDeadline), [1, 2, 0, 3, 4, 5]);
        assert_eq!(sorted(RequestOrder::LeastLaxity), [2, 1, 0, 3, 4, 5]);
        assert_eq!(sorted(RequestOrder::UrgencyFirst), [4, 3, 2, 1, 0, 5]);
    }

    #[test]
    fn what_is_not_known_comes_last() {
        for order in [
            RequestOrder::Priority,
            RequestOrder::EarliestDeadline,
            RequestOrder::LeastLaxity,
            RequestOrder::UrgencyFirst,
        ] {
            let least = facts(0, u64::MAX - 1, 0, [Some(Level::VeryLow); 2]);
            assert!(Urgency::of(&least, order) < Urgency::of(&SchedulingFacts::NOTHING, order), "{order:?}");
        }
    }
}
