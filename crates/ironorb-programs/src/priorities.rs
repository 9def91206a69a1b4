//! Priorities of the scenario as those of the ORBs and of the simulated system.

use ironorb::rt::{Priority, PriorityMapping};
use ironorb_model::scenario::Scenario;

use crate::ProgramsError;

/// All priorities of a scenario by rank: the least of them is the system's 1, the next one 2. Equal distances would not fit:
/// the system has 99.
#[derive(Debug, Clone)]
pub(crate) struct Ranks(Vec<i16>);

impl Ranks {
    /// `None` if no class has a priority: then there are no real-time ORBs.
    pub(crate) fn of(scenario: &Scenario) -> Result<Option<Ranks>, ProgramsError> {
        const MOST: usize = 99;
        let of_classes = scenario.classes.iter().filter_map(|class| class.priority);
        if of_classes.clone().next().is_none() {
            return Ok(None);
        }
        let of_lanes =
            scenario.servers.iter().flat_map(|server| server.lanes.iter().map(|lane| lane.priority));
        // Calls without a priority are served at the least.
        let mut all: Vec<i16> = of_classes.chain(of_lanes).chain([Priority::MIN.number()]).collect();
        all.sort_unstable();
        all.dedup();
        match all.len() <= MOST {
            true => Ok(Some(Ranks(all))),
            false => Err(ProgramsError::TooMany {
                what: "priorities",
                most: MOST as u64,
                mend: "how many different `priority` there are",
            }),
        }
    }
}

impl PriorityMapping for Ranks {
    fn to_native(&self, priority: Priority) -> Option<i16> {
        let rank = self.0.binary_search(&priority.number()).ok()?;
        i16::try_from(rank + 1).ok()
    }

    fn to_corba(&self, native: i16) -> Option<Priority> {
        let rank = usize::try_from(native).ok()?.checked_sub(1)?;
        Priority::new(*self.0.get(rank)?)
    }
}

/// A class whose calls would be served in another lane than at other levels, because no lane has exactly its priority. The
/// first lane is the ORB's default one, which serves what no other lane does.
pub(crate) fn check_lanes(scenario: &Scenario) -> Result<(), ProgramsError> {
    for server in &scenario.servers {
        for class in &scenario.classes {
            let Some(priority) = class.priority else { continue };
            let lane = server.pool_for(Some(priority));
            if lane > 0 && server.lanes[lane].priority != priority {
                return Err(ProgramsError::Lane {
                    class: class.name.clone(),
                    priority,
                    server: server.name.clone(),
                    lane: server.lanes[lane].priority,
                });
            }
        }
    }
    Ok(())
}
