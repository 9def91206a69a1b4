//! The servants of the peripherals. They know nothing of lanes: their adapter has the priority, and the lane its threads.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use ironorb::rt::{Priority, PriorityModel};
use ironorb::{Orb, Poa, PoaPolicies, SystemException, TypedRef};
use ironorb_sched::LaneEntry;

use crate::avionics::{
    Contact, Display, DisplayRef, Navigation, NavigationRef, Telemetry, TelemetryRef, Tracker, TrackerRef,
    Vector,
};
use crate::plan::{Plan, priority};
use crate::platform::Platform;

struct Radar {
    platform: Arc<dyn Platform>,
    measure: Duration,
}

impl Tracker for Radar {
    fn measure(&self, target: u32) -> Result<Contact, SystemException> {
        self.platform.compute(self.measure);
        let velocity = Vector { x: 250.0, y: -3.0, z: 0.5 };
        let seconds = self.platform.now().as_secs_f64();
        let position = Vector { x: velocity.x * seconds, y: velocity.y * seconds, z: 9_000.0 };
        Ok(Contact { id: target, position, velocity })
    }
}

struct Inertial {
    platform: Arc<dyn Platform>,
    attitude: Duration,
    position: Duration,
}

impl Navigation for Inertial {
    fn attitude(&self) -> Result<Vector, SystemException> {
        self.platform.compute(self.attitude);
        Ok(Vector { x: 0.01, y: 0.02, z: 1.57 })
    }

    fn position(&self) -> Result<Vector, SystemException> {
        self.platform.compute(self.position);
        Ok(Vector { x: 240.0 * self.platform.now().as_secs_f64(), y: 0.0, z: 9_100.0 })
    }
}

struct Screen {
    platform: Arc<dyn Platform>,
    show: Duration,
    redraw: Duration,
}

impl Display for Screen {
    fn show(&self, _nearest: &Contact, _position: &Vector) -> Result<(), SystemException> {
        self.platform.compute(self.show);
        Ok(())
    }

    fn redraw(&self, _layers: u32) -> Result<(), SystemException> {
        self.platform.compute(self.redraw);
        Ok(())
    }
}

struct Recorder {
    platform: Arc<dyn Platform>,
    store: Duration,
}

impl Telemetry for Recorder {
    fn store(&self, _at: u64, _position: &Vector, _attitude: &Vector) -> Result<(), SystemException> {
        self.platform.compute(self.store);
        Ok(())
    }
}

/// Activates the object of a lane, and returns its reference. The adapter has the lane's priority or, for a lane without
/// one, that of each caller.
pub fn activate(
    orb: &Orb,
    lane: &LaneEntry,
    plan: &Plan,
    platform: &Arc<dyn Platform>,
) -> Result<String, Box<dyn Error>> {
    let poa = adapter_of(orb, lane)?;
    let wcet = |operation: &str| plan.wcet(operation).unwrap_or_default();
    let platform = platform.clone();
    let object = match lane.name.as_str() {
        "tracking" => {
            let measure = wcet("avionics::Tracker::measure");
            poa.activate::<TrackerRef, _>(Radar { platform, measure })?.object().to_ior_string()
        }
        "navigation" => {
            let attitude = wcet("avionics::Navigation::attitude");
            let position = wcet("avionics::Navigation::position");
            poa.activate::<NavigationRef, _>(Inertial { platform, attitude, position })?
                .object()
                .to_ior_string()
        }
        "displays" => {
            let (show, redraw) = (wcet("avionics::Display::show"), wcet("avionics::Display::redraw"));
            poa.activate::<DisplayRef, _>(Screen { platform, show, redraw })?.object().to_ior_string()
        }
        "telemetry" => {
            let store = wcet("avionics::Telemetry::store");
            poa.activate::<TelemetryRef, _>(Recorder { platform, store })?.object().to_ior_string()
        }
        other => {
            return Err(format!("the task file has a lane `{other}`, for which there is no servant").into());
        }
    };
    Ok(object)
}

fn adapter_of(orb: &Orb, lane: &LaneEntry) -> Result<Poa, Box<dyn Error>> {
    let model = match lane.priority {
        Some(number) => PriorityModel::ServerDeclared(priority(number)),
        None => PriorityModel::ClientPropagated { default: Priority::MIN },
    };
    let policies = PoaPolicies { priority_model: Some(model), ..PoaPolicies::default() };
    Ok(orb.root_poa().create_poa(&lane.name, None, policies)?)
}
