//! The server: objects that count what they receive, and the directory that creates them and reports on them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use ironorb::poa::{ObjectId, Poa};
use ironorb::{SystemException, TypedRef};

use crate::data::{Element, wrong};
use crate::error::BenchError;
use crate::generated_latency::latency::{
    BinStruct, Directory, DirectoryRef, Populated, Tally, TtcpSequence, TtcpSequenceRef,
};
use crate::machine::resident_bytes;
use crate::role::{RoleArgs, serve};
use crate::watch;

/// Serves a directory until standard input ends. The first line has the reference of the directory, and that
/// of the object that reports the probes' counts.
pub(super) fn server(args: &RoleArgs) -> Result<(), BenchError> {
    serve(args.server()?, |orb| {
        let poa = orb.root_poa();
        let objects = ObjectsOf { poa: poa.clone(), counts: Arc::default(), ids: Mutex::default() };
        let directory: DirectoryRef = poa.activate(objects)?;
        Ok(format!("{} {}", directory.object().to_ior_string(), watch::teller(orb)?))
    })
}

/// What all objects have received.
#[derive(Debug, Default)]
struct Counts {
    calls: AtomicU64,
    elements: AtomicU64,
    wrong: AtomicU64,
}

/// One object. Each is a value of its own, as an application's would be.
struct Sequence {
    counts: Arc<Counts>,
    /// Number of calls. Counting also touches the memory of every called object.
    called: AtomicU64,
}

impl Sequence {
    #[inline]
    fn take<T: Element>(&self, elements: &[T]) -> Result<(), SystemException> {
        self.counts.elements.fetch_add(elements.len() as u64, Ordering::Relaxed);
        self.counts.wrong.fetch_add(wrong(elements), Ordering::Relaxed);
        self.take_nothing()
    }

    #[inline]
    fn take_nothing(&self) -> Result<(), SystemException> {
        self.called.fetch_add(1, Ordering::Relaxed);
        self.counts.calls.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

/// Bytes of a servant with the two counts of its `Arc` and the heap's header, rounded up to the heap's
/// granularity.
const SERVANT_BYTES: u32 = (size_of::<Sequence>() as u32 + 16 + 8).next_multiple_of(16);

/// Implements each operation, oneway and twoway.
macro_rules! takes {
    ($($operation:ident: $element:ty;)*) => {
        impl TtcpSequence for Sequence {
            $(fn $operation(&self, ttcp_seq: &[$element]) -> Result<(), SystemException> {
                self.take(ttcp_seq)
            })*

            fn send_no_params_2way(&self) -> Result<(), SystemException> {
                self.take_nothing()
            }

            fn send_no_params_1way(&self) -> Result<(), SystemException> {
                self.take_nothing()
            }
        }
    };
}

takes! {
    send_struct_seq_2way: BinStruct;
    send_octet_seq_2way: u8;
    send_short_seq_2way: i16;
    send_long_seq_2way: i32;
    send_char_seq_2way: u8;
    send_double_seq_2way: f64;
    send_struct_seq_1way: BinStruct;
    send_octet_seq_1way: u8;
    send_short_seq_1way: i16;
    send_long_seq_1way: i32;
    send_char_seq_1way: u8;
    send_double_seq_1way: f64;
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
        self.poa.activate_object(servant).map_err(SystemException::from)
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
        let resident_before = resident_bytes();
        let before = Instant::now();
        for place in ids.octets[begin..].chunks_exact_mut(first.as_bytes().len()) {
            place.copy_from_slice(self.activate()?.as_bytes());
        }
        let nanoseconds = before.elapsed().as_nanos() as u64;
        let resident_bytes = resident_bytes() as i64 - resident_before as i64;
        let activated = missing as u32 - 1;
        Ok(Populated { activated, nanoseconds, resident_bytes, servant_bytes: SERVANT_BYTES })
    }

    fn references(&self, first: u32, count: u32) -> Result<Vec<Option<TtcpSequenceRef>>, SystemException> {
        let ids = self.ids.lock().unwrap_or_else(PoisonError::into_inner);
        let of_each = ids.octets_of_each.max(1);
        let wanted = ids.octets.chunks_exact(of_each).skip(first as usize).take(count as usize);
        wanted
            .map(|id| {
                let reference = self.poa.id_to_reference(&ObjectId::from(id.to_vec()));
                Ok(Some(TtcpSequenceRef::from_object(reference.map_err(SystemException::from)?)))
            })
            .collect()
    }

    fn taken(&self) -> Result<Tally, SystemException> {
        let take = |count: &AtomicU64| count.swap(0, Ordering::Relaxed);
        Ok(Tally {
            calls: take(&self.counts.calls),
            elements: take(&self.counts.elements),
            wrong: take(&self.counts.wrong),
        })
    }
}
