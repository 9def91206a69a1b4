//! The server's side (`RTCosScheduling::ServerScheduler`).

use std::collections::BTreeSet;

use ironorb::poa::PoaManager;
use ironorb::rt::{Priority, PriorityModel};
use ironorb::{Lane, ObjectRef, Orb, Poa, PoaPolicies, TypedRef};
use ironorb_sched::LaneEntry;

use crate::node::corba_priority;
use crate::{NameKind, NodeSchedule, ScheduleError, UnknownName};

/// Gives adapters and objects the lanes that the table has for them (`RTCosScheduling::ServerScheduler`), from
/// [`NodeSchedule::server_scheduler`]. Cheap to clone.
///
/// A name is that of a lane; of an operation, whose lane it means; or of an interface in the scoped form of IDL
/// (`plant::Valve`), whose operations (`plant::Valve::set`) are in one lane.
#[derive(Debug, Clone)]
pub struct ServerScheduler {
    pub(crate) schedule: NodeSchedule,
    pub(crate) orb: Orb,
}

impl ServerScheduler {
    /// Makes an adapter whose priority model follows from the lane of its name (`create_POA`): declared, at the lane's
    /// priority; or propagated, where the lane serves at the callers'. Clients that tell no priority have
    /// [`Priority::MIN`] then. All other policies are the program's.
    ///
    /// [`ScheduleError::UnknownName`], [`OtherNode`](ScheduleError::OtherNode),
    /// [`SeveralLanes`](ScheduleError::SeveralLanes), and what [`Poa::create_poa`] refuses.
    pub fn create_poa(
        &self,
        parent: &Poa,
        name: &str,
        manager: Option<PoaManager>,
        policies: PoaPolicies,
    ) -> Result<Poa, ScheduleError> {
        let model = match self.priority_of(self.lane_of(name)?)? {
            Some(priority) => PriorityModel::ServerDeclared(priority),
            None => PriorityModel::ClientPropagated { default: Priority::MIN },
        };
        let policies = PoaPolicies { priority_model: Some(model), ..policies };
        Ok(parent.create_poa(name, manager, policies)?)
    }

    /// A reference by which clients call an object of `poa` in the lane, and at the priority, of a name
    /// (`schedule_object`). References from before lead where they led.
    ///
    /// Fails as [`create_poa`](Self::create_poa) does, and with what
    /// [`Poa::create_reference_with_id_and_priority`] refuses: an object has a priority of its own only in an adapter with a
    /// declared one. BAD_PARAM if the lane does not listen.
    pub fn schedule_object<R: TypedRef>(
        &self,
        poa: &Poa,
        object: &R,
        name: &str,
    ) -> Result<R, ScheduleError> {
        let entry = self.lane_of(name)?;
        let lane = self.orb.lane(&entry.name);
        let lane = lane.ok_or_else(|| ScheduleError::MissingLane { lane: entry.name.clone() })?;
        let scheduled = self.in_lane(poa, object.object(), entry, &lane)?;
        Ok(R::from_object(scheduled))
    }

    fn in_lane(
        &self,
        poa: &Poa,
        object: &ObjectRef,
        entry: &LaneEntry,
        lane: &Lane,
    ) -> Result<ObjectRef, ScheduleError> {
        let own = match self.priority_of(entry)? {
            Some(priority) => {
                let id = poa.reference_to_id(object)?;
                poa.create_reference_with_id_and_priority(id, object.type_id(), priority)?
            }
            None => object.clone(),
        };
        Ok(lane.reference(&own)?)
    }

    fn priority_of(&self, lane: &LaneEntry) -> Result<Option<Priority>, ScheduleError> {
        lane.priority.map(|priority| corba_priority(NameKind::Lane, &lane.name, priority)).transpose()
    }

    /// The lane of a name, on this node.
    fn lane_of(&self, name: &str) -> Result<&LaneEntry, ScheduleError> {
        let table = &*self.schedule.table;
        let lane = match table.lane(name) {
            Some(lane) => lane,
            None => {
                let lane = self.lane_of_operations(name)?;
                table.lane(lane).ok_or_else(|| UnknownName::new(NameKind::Lane, lane, self.lane_names()))?
            }
        };
        self.schedule.check_node(NameKind::Lane, &lane.name, &lane.node)?;
        Ok(lane)
    }

    /// The one lane of an operation, or of all operations of an interface.
    fn lane_of_operations(&self, name: &str) -> Result<&str, ScheduleError> {
        let operations = || self.schedule.table.operations.iter();
        if let Some(operation) = operations().find(|operation| operation.name == name) {
            return Ok(&operation.lane);
        }
        let interface_of =
            |operation: &str| operation.rsplit_once("::").is_some_and(|(interface, _)| interface == name);
        let of_interface = operations().filter(|operation| interface_of(&operation.name));
        let lanes: BTreeSet<&str> = of_interface.map(|operation| operation.lane.as_str()).collect();
        match (lanes.first(), lanes.len()) {
            (Some(lane), 1) => Ok(lane),
            (None, _) => {
                let known = self.lane_names().chain(operations().map(|operation| operation.name.as_str()));
                Err(UnknownName::new(NameKind::Object, name, known).into())
            }
            (Some(_), _) => {
                let lanes = lanes.into_iter().map(str::to_owned).collect();
                Err(ScheduleError::SeveralLanes { name: name.to_owned(), lanes })
            }
        }
    }

    fn lane_names(&self) -> impl Iterator<Item = &str> {
        self.schedule.table.lanes.iter().map(|lane| lane.name.as_str())
    }
}
