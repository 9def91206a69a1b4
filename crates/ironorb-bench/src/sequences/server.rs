//! The server: objects that count what they receive, and the directory that creates them and reports on them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use clap::ValueEnum;
use ironorb::dynamic::{DynamicServant, InterfaceDescription, ServerRequest};
use ironorb::poa::{ObjectId, Poa};
use ironorb::{Replied, SystemException, TypedRef};

use super::types::{Element, extract, wrong};
use crate::error::BenchError;
use crate::generated_latency::latency::{Directory, DirectoryRef, Populated, Tally, TtcpSequenceRef};
use crate::machine::resident_bytes_of;
use crate::role::{Role, RoleArgs, serve};
use crate::variant::{DataType, Mode};
use crate::watch;

pub(crate) const ROLES: &[Role] = &[Role { name: "latency-server", run: server }];

/// Serves a directory until standard input ends. The first line has the reference of the directory, and that
/// of the object that reports the probes' counts.
fn server(args: &RoleArgs) -> Result<(), BenchError> {
    serve(args.server()?, |orb| {
        let poa = orb.root_poa();
        let objects = ObjectsOf { poa: poa.clone(), counts: Arc::default(), ids: Mutex::default() };
        let directory: DirectoryRef = poa.activate(objects)?;
        Ok(format!("{} {}", directory.object().to_ior_string(), watch::teller(orb)?))
    })
}

/// What all objects have received.
#[derive(Debug, Default)]
pub(super) struct Counts {
    calls: AtomicU64,
    elements: AtomicU64,
    wrong: AtomicU64,
}

impl Counts {
    #[inline]
    pub(super) fn add<T: Element>(&self, elements: &[T]) {
        self.elements.fetch_add(elements.len() as u64, Ordering::Relaxed);
        self.wrong.fetch_add(wrong(elements), Ordering::Relaxed);
        // Last: a call that has been counted has its elements counted.
        self.calls.fetch_add(1, Ordering::Release);
    }
}

/// One object. Each is a value of its own, as an application's would be.
#[derive(Default)]
pub(super) struct Sequence {
    counts: Arc<Counts>,
    /// Number of calls. Counting also touches the memory of every called object.
    called: AtomicU64,
}

impl Sequence {
    #[inline]
    pub(super) fn take<T: Element>(&self, elements: &[T]) -> Result<(), SystemException> {
        self.called.fetch_add(1, Ordering::Relaxed);
        self.counts.add(elements);
        Ok(())
    }
}

/// Bytes of a servant with the two counts of its `Arc` and the heap's header, rounded up to the heap's
/// granularity.
const SERVANT_BYTES: u32 = (size_of::<Sequence>() as u32 + 16 + 8).next_multiple_of(16);

/// A dynamic servant of the same interface. It gets its argument as an `any`, and extracts the elements.
struct DynamicSequence {
    counts: Arc<Counts>,
    interface: Arc<InterfaceDescription>,
    operations: Vec<(String, DataType)>,
}

impl DynamicSequence {
    fn new(counts: Arc<Counts>) -> DynamicSequence {
        let mut interface = InterfaceDescription::new("IDL:latency/ttcp_sequence:1.0", "ttcp_sequence");
        let mut operations = Vec::new();
        for &ty in DataType::value_variants() {
            for &mode in Mode::value_variants() {
                let operation = super::operation(ty, mode);
                operations.push((operation.name.clone(), ty));
                interface = interface.operation(operation);
            }
        }
        DynamicSequence { counts, interface: Arc::new(interface), operations }
    }

    fn take(&self, request: &mut ServerRequest<'_>) -> Result<(), SystemException> {
        let named = |(name, _): &&(String, DataType)| name == request.operation();
        let ty = self.operations.iter().find(named).map_or(DataType::Void, |(_, ty)| *ty);
        match request.arguments()?.first() {
            Some(argument) => extract(ty, argument, &self.counts)?,
            None => self.counts.add::<u8>(&[]),
        }
        Ok(())
    }
}

impl DynamicServant for DynamicSequence {
    fn interface(&self, _: &ObjectId) -> Option<Arc<InterfaceDescription>> {
        Some(self.interface.clone())
    }

    fn invoke(&self, mut request: ServerRequest<'_>) -> Replied {
        match self.take(&mut request) {
            Ok(()) => request.reply(None, &[]),
            Err(e) => request.raise_system(e),
        }
    }
}

/// The directory.
struct ObjectsOf {
    poa: Poa,
    counts: Arc<Counts>,
    ids: Mutex<Ids>,
}

/// Object ids one after another, all of one length, to keep little memory beside what is measured.
#[derive(Default)]
struct Ids {
    octets: Vec<u8>,
    octets_of_each: usize,
}

impl Ids {
    fn len(&self) -> usize {
        self.octets.len().checked_div(self.octets_of_each).unwrap_or(0)
    }
}

impl ObjectsOf {
    fn activate(&self) -> Result<ObjectId, SystemException> {
        let object = Sequence { counts: self.counts.clone(), called: AtomicU64::new(0) };
        let servant = ironorb::servant::<TtcpSequenceRef, _>(Arc::new(object));
        Ok(self.poa.activate_object(servant)?)
    }
}

impl Directory for ObjectsOf {
    fn populate(&self, objects: u32) -> Result<Populated, SystemException> {
        let mut ids = self.ids.lock().unwrap_or_else(PoisonError::into_inner);
        let missing = (objects as usize).saturating_sub(ids.len());
        if missing == 0 {
            return Ok(Populated { activated: 0, nanoseconds: 0, resident_bytes: 0, servant_bytes: 0 });
        }
        let first = self.activate()?;
        ids.octets_of_each = first.as_bytes().len();
        ids.octets.extend_from_slice(first.as_bytes());
        // The memory for ids is allocated and touched before the measurement.
        let begin = ids.octets.len();
        let room = (missing - 1) * ids.octets_of_each;
        ids.octets.resize(begin + room, 0xAA);
        let resident_before = resident_bytes_of("self");
        let before = Instant::now();
        for place in ids.octets[begin..].chunks_exact_mut(first.as_bytes().len()) {
            place.copy_from_slice(self.activate()?.as_bytes());
        }
        let nanoseconds = before.elapsed().as_nanos() as u64;
        let resident_bytes = resident_bytes_of("self") as i64 - resident_before as i64;
        let activated = missing as u32 - 1;
        Ok(Populated { activated, nanoseconds, resident_bytes, servant_bytes: SERVANT_BYTES })
    }

    fn references(&self, first: u32, count: u32) -> Result<Vec<Option<TtcpSequenceRef>>, SystemException> {
        let ids = self.ids.lock().unwrap_or_else(PoisonError::into_inner);
        let of_each = ids.octets_of_each.max(1);
        let wanted = ids.octets.chunks_exact(of_each).skip(first as usize).take(count as usize);
        wanted
            .map(|id| {
                let reference = self.poa.id_to_reference(&ObjectId::from(id.to_vec()))?;
                Ok(Some(TtcpSequenceRef::from_object(reference)))
            })
            .collect()
    }

    fn dynamic_object(&self) -> Result<Option<TtcpSequenceRef>, SystemException> {
        let servant = ironorb::dynamic::servant(Arc::new(DynamicSequence::new(self.counts.clone())));
        let id = self.poa.activate_object(servant)?;
        Ok(Some(TtcpSequenceRef::from_object(self.poa.id_to_reference(&id)?)))
    }

    fn taken(&self) -> Result<Tally, SystemException> {
        let take = |count: &AtomicU64, order| count.swap(0, order);
        // First: another thread may be between its counts.
        let calls = take(&self.counts.calls, Ordering::Acquire);
        Ok(Tally {
            calls,
            elements: take(&self.counts.elements, Ordering::Relaxed),
            wrong: take(&self.counts.wrong, Ordering::Relaxed),
        })
    }
}
