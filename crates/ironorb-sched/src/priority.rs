//! Gives each task its CORBA priority.

use std::cmp::Reverse;
use std::collections::HashMap;

use crate::check::TaskSet;
use crate::description::*;

/// The CORBA priority of each task by the set's rule. Audsley's search starts from these and is elsewhere: it needs
/// the analysis.
pub(crate) fn assign(set: &TaskSet) -> Vec<u16> {
    let all = set.description();
    let stated = stated_priorities(all);
    let mut order: Vec<usize> = (0..all.tasks.len()).filter(|&task| stated[task].is_none()).collect();
    let rule = all.assignment;
    order.sort_by_key(|&index| {
        let task = &all.tasks[index];
        let time = if rule == Assignment::RateMonotonic { task.period } else { task.deadline() };
        (Reverse(time), task.criticality, task.importance, Reverse(index))
    });
    let mut priorities: Vec<u16> = stated.iter().map(|stated| stated.unwrap_or_default()).collect();
    for (rank, &task) in order.iter().enumerate() {
        priorities[task] = spread(rank, order.len(), all.priorities);
    }
    priorities
}

/// What the description states: a task's own priority, or else its lane's.
pub(crate) fn stated_priorities(all: &Description) -> Vec<Option<u16>> {
    let lanes: HashMap<&str, Option<u16>> =
        all.lanes.iter().map(|lane| (lane.name.as_str(), lane.priority)).collect();
    let of_home = |home: &Home| match home {
        Home::Lane(name) => lanes.get(name.as_str()).copied().flatten(),
        Home::Processor { .. } => None,
    };
    all.tasks.iter().map(|task| task.priority.or_else(|| of_home(&task.home))).collect()
}

/// The priority of a rank from 0 (lowest) to `count - 1`, spread evenly over a range. Ranks keep their order. They
/// share priorities only if there are more ranks than priorities.
pub(crate) fn spread(rank: usize, count: usize, range: PriorityRange) -> u16 {
    let width = u64::from(range.highest.saturating_sub(range.lowest));
    if count <= 1 {
        return range.highest;
    }
    let offset = (rank as u64).saturating_mul(width) / (count as u64 - 1);
    range.lowest.saturating_add(u16::try_from(offset).unwrap_or(u16::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_spread_evenly_and_keep_their_order() {
        let range = PriorityRange { lowest: 10, highest: 20 };
        assert_eq!((0..3).map(|rank| spread(rank, 3, range)).collect::<Vec<_>>(), [10, 15, 20]);
        assert_eq!(spread(0, 1, range), 20);
        let many: Vec<u16> = (0..100).map(|rank| spread(rank, 100, range)).collect();
        assert!(many.is_sorted() && many[0] == 10 && many[99] == 20);
    }
}
