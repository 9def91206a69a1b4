//! This ORB as a participant: a lane for each priority, or one lane for all.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ironorb::rt::{Priority, PriorityModel, RtCurrent};
use ironorb::{InLane, Lane, LaneConfig, Orb, PoaPolicies, ServerConcurrency, SystemException, TypedRef};
use ironorb_baseline::paced::{burn, cube};
use ironorb_baseline::raw::Exchange;

use super::class::priority;
use super::client::{Connect, Servant};
use super::setup::{Kind, Setup};
use crate::error::BenchError;
use crate::generated_realtime::realtime::{self, Cubing, CubingRef};
use crate::plain;
use crate::role::{tell, wait_for_end};
use crate::variant::Transport;

/// Cubes octets, and takes as long as it is told to.
#[derive(Debug, Default)]
pub(crate) struct CubingServant {
    burn_nanos: AtomicU64,
}

impl realtime::Cubing for CubingServant {
    fn cube(&self, value: u8) -> Result<u8, SystemException> {
        burn(Duration::from_nanos(self.burn_nanos.load(Ordering::Relaxed)));
        Ok(cube(value))
    }

    fn burn(&self, nanos: u64) -> Result<(), SystemException> {
        self.burn_nanos.store(nanos, Ordering::Relaxed);
        Ok(())
    }
}

/// The servants' adapter takes the priority of the client.
fn propagated() -> PoaPolicies {
    let model = PriorityModel::ClientPropagated { default: Priority::MIN };
    PoaPolicies { priority_model: Some(model), ..PoaPolicies::default() }
}

fn corba_priority(place: usize) -> Result<Priority, BenchError> {
    Priority::new(priority(place))
        .ok_or_else(|| BenchError::Unusable("more servants than priorities".to_owned()))
}

fn lane_name(place: usize) -> String {
    format!("priority {}", priority(place))
}

impl Setup {
    /// The lane that serves the servant of this place. One that serves all has the lowest priority of all: at the highest,
    /// it would keep the most urgent client from calling instead of delaying its calls.
    fn serving(self, place: usize) -> usize {
        if self.kind == Kind::Shared { self.servants.saturating_sub(1) } else { place }
    }

    fn server_lanes(self) -> Result<Vec<LaneConfig>, BenchError> {
        let lane = |place| {
            let lane = LaneConfig::new(&lane_name(place)).endpoint(self.way.transport().endpoint());
            Ok(lane.priority(corba_priority(place)?))
        };
        match self.kind {
            Kind::Shared => Ok(vec![
                lane(self.serving(0))?.concurrency(ServerConcurrency::LeaderFollowers { threads: 1 }),
            ]),
            _ => (0..self.servants).map(lane).collect(),
        }
    }
}

/// Serves an object for each servant of the setup until standard input ends.
pub(super) fn serve(setup: Setup) -> Result<(), BenchError> {
    plain::raise_descriptors();
    let mut builder = Orb::builder().endpoint(Transport::Tcp.endpoint())?.real_time(setup.real_time());
    for lane in setup.server_lanes()? {
        builder = builder.lane(lane);
    }
    let orb = builder.build()?;
    let poa = orb.root_poa().create_poa("servants", None, propagated())?;
    let reference = |place| {
        let object: CubingRef = poa.activate(CubingServant::default())?;
        let missing = || BenchError::process("the server", "lacks a lane that it was given");
        let lane = orb.lane(&lane_name(setup.serving(place))).ok_or_else(missing)?;
        Ok(lane.reference(object.object())?.to_ior_string())
    };
    let references = (0..setup.servants).map(reference).collect::<Result<Vec<_>, BenchError>>()?;
    tell(&references.join(" "))?;
    wait_for_end()?;
    orb.shutdown(false)?;
    Ok(())
}

/// The servants, each in a lane of this process's ORB.
pub(super) struct Calls {
    current: RtCurrent,
    servants: Vec<(Lane, Priority, CubingRef)>,
}

impl Calls {
    /// Leads to the servants at these references, separated by blanks.
    pub(super) fn to(setup: Setup, references: &str) -> Result<Calls, BenchError> {
        plain::raise_descriptors();
        let mut builder = Orb::builder().no_endpoint().real_time(setup.real_time());
        for place in 0..setup.servants {
            builder = builder.lane(LaneConfig::new(&lane_name(place)).priority(corba_priority(place)?));
        }
        let orb = builder.build()?;
        let missing = || BenchError::process("the client", "lacks a lane that it was given");
        let servant = |(place, reference)| {
            let lane = orb.lane(&lane_name(place)).ok_or_else(missing)?;
            Ok((lane, corba_priority(place)?, orb.string_to_object(reference)?.narrow_unchecked()))
        };
        let servants = references.split(' ').enumerate().map(servant).collect::<Result<_, BenchError>>()?;
        Ok(Calls { current: orb.rt_current().ok_or_else(missing)?, servants })
    }
}

impl Connect for Calls {
    fn connect(&self, place: usize) -> Result<Box<dyn Servant + '_>, BenchError> {
        let missing = || BenchError::Unusable(format!("there is no servant {place}"));
        let (lane, priority, object) = self.servants.get(place).ok_or_else(missing)?;
        self.current.set_priority(*priority)?;
        Ok(Box::new(InItsLane { object, _stay: lane.enter() }))
    }
}

/// A servant that the calling thread reaches through a lane.
struct InItsLane<'a> {
    object: &'a CubingRef,
    _stay: InLane,
}

impl Servant for InItsLane<'_> {
    #[inline]
    fn cube(&mut self, value: u8) -> Result<u8, BenchError> {
        Ok(self.object.cube(value)?)
    }

    fn burn(&mut self, time: Duration) -> Result<(), BenchError> {
        Ok(self.object.burn(time.as_nanos() as u64)?)
    }
}

/// Bytes of a cube's request and reply, with the priority in both.
pub(crate) fn exchange() -> Result<Exchange, BenchError> {
    let setup = Setup {
        kind: Kind::Lanes,
        way: super::setup::Way::Tcp,
        class: super::class::Class::Other,
        servants: 1,
    };
    let [server, client] = [0; 2].map(|_| Orb::builder().real_time(setup.real_time()));
    plain::count_between(
        [server, client],
        |poa| poa.create_poa("servants", None, propagated())?.activate(CubingServant::default()),
        |_| 1,
        |orb, cubing: CubingRef| {
            let current =
                orb.rt_current().ok_or_else(|| BenchError::process("the client", "has no priority"))?;
            current.set_priority(Priority::MAX.min(corba_priority(0)?))?;
            Ok(Box::new(move || Ok(cubing.cube(3).map(drop)?)))
        },
    )
}
