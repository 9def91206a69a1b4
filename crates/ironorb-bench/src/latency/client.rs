//! The client: calls one object after another, by one of the ways to make calls.

use std::hint::black_box;
use std::sync::Arc;

use ironorb::dynamic::{OperationDescription, ParameterMode, Request};
use ironorb::{ObjectRef, TypedRef};

use super::order::Order;
use super::plan::{Cell, ONEWAYS};
use crate::data::{Data as DataOf, fill, send};
use crate::error::BenchError;
use crate::generated_latency::latency::{
    self, BinStruct, Directory, DirectoryRef, TtcpSequence, TtcpSequenceRef,
};
use crate::variant::{DataType, Invocation, Mode};

/// The data to send.
pub(super) type Data = DataOf<BinStruct>;

impl Cell {
    /// The data of each call in the cell.
    pub(super) fn data(&self) -> Data {
        self.ty.map_or(Data::Nothing, |ty| Data::of(ty, self.units))
    }
}

/// The objects of one server, as references of one client.
#[derive(Debug, Default)]
pub(super) struct Objects(Vec<TtcpSequenceRef>);

/// References requested in one call.
const REFERENCES_A_CALL: usize = 1000;

impl Objects {
    /// Requests the references of the first `count` objects that are still missing.
    pub(super) fn fetch(&mut self, directory: &DirectoryRef, count: usize) -> Result<(), BenchError> {
        while self.0.len() < count {
            let first = self.0.len();
            let wanted = (count - first).min(REFERENCES_A_CALL);
            let some = directory.references(first as u32, wanted as u32)?;
            if some.is_empty() {
                return Err(BenchError::Process {
                    role: "latency-server".to_owned(),
                    what: format!("has {first} objects instead of {count}"),
                });
            }
            self.0.extend(some.into_iter().flatten());
        }
        Ok(())
    }

    /// A single object.
    pub(super) fn one(object: ObjectRef) -> Objects {
        Objects(vec![object.narrow_unchecked()])
    }

    /// The first object.
    pub(super) fn first(&self) -> Option<&TtcpSequenceRef> {
        self.0.first()
    }
}

/// Makes the calls of one cell.
pub(super) struct Client<'a> {
    call: Call<'a>,
    objects: &'a [TtcpSequenceRef],
    order: Order,
    mode: Mode,
}

impl<'a> Client<'a> {
    pub(super) fn new(objects: &'a Objects, cell: &Cell, data: &'a Data) -> Result<Client<'a>, BenchError> {
        let objects = &objects.0[..];
        let call = match cell.invocation {
            Invocation::Sii => statically(objects, cell.mode, data),
            Invocation::DiiNew => {
                let operation = operation(cell.ty, cell.mode);
                let mode = cell.mode;
                Box::new(move |object: usize| {
                    let mut request = Request::new(objects[object].object(), operation.clone());
                    fill(&mut request, black_box(data))?;
                    Ok(send(&mut request, mode)?)
                })
            }
            Invocation::DiiReused | Invocation::DiiUnchanged => reusing(objects, cell, data)?,
        };
        let order = Order::new(cell.algorithm, cell.objects, cell.iterations);
        Ok(Client { call, objects, order, mode: cell.mode })
    }

    /// One call, or one batch of oneways, the last of which is answered once all have been carried out.
    pub(super) fn sample(&mut self) -> Result<(), BenchError> {
        match self.mode {
            Mode::Twoway => (self.call)(self.order.next()),
            Mode::Oneway => {
                for _ in 0..ONEWAYS {
                    (self.call)(self.order.next())?;
                }
                Ok(self.objects[self.order.next()].send_no_params_2way()?)
            }
        }
    }
}

type Call<'a> = Box<dyn FnMut(usize) -> Result<(), BenchError> + 'a>;

/// Calls by the stubs of one mode.
macro_rules! by_stubs {
    ($objects:ident, $data:ident: $nothing:ident, $($kind:ident $send:ident),*) => {
        match $data {
            Data::Nothing => Box::new(move |object: usize| Ok($objects[object].$nothing()?)),
            $(Data::$kind(elements) => {
                Box::new(move |object: usize| Ok($objects[object].$send(black_box(elements))?))
            })*
        }
    };
}

fn statically<'a>(objects: &'a [TtcpSequenceRef], mode: Mode, data: &'a Data) -> Call<'a> {
    match mode {
        Mode::Twoway => by_stubs!(objects, data: send_no_params_2way, Shorts send_short_seq_2way,
            Chars send_char_seq_2way, Longs send_long_seq_2way, Octets send_octet_seq_2way,
            Doubles send_double_seq_2way, Structs send_struct_seq_2way),
        Mode::Oneway => by_stubs!(objects, data: send_no_params_1way, Shorts send_short_seq_1way,
            Chars send_char_seq_1way, Longs send_long_seq_1way, Octets send_octet_seq_1way,
            Doubles send_double_seq_1way, Structs send_struct_seq_1way),
    }
}

/// Calls by a request for each object, which is sent again and again, with its data set anew or unchanged.
fn reusing<'a>(objects: &'a [TtcpSequenceRef], cell: &Cell, data: &'a Data) -> Result<Call<'a>, BenchError> {
    let operation = operation(cell.ty, cell.mode);
    let called = objects.iter().take(cell.objects);
    let mut requests: Vec<Request<'a>> =
        called.map(|object| Request::new(object.object(), operation.clone())).collect();
    let mode = cell.mode;
    if cell.invocation == Invocation::DiiReused {
        return Ok(Box::new(move |object| {
            let request = &mut requests[object];
            fill(request, black_box(data))?;
            Ok(send(request, mode)?)
        }));
    }
    for request in &mut requests {
        fill(request, data)?;
    }
    Ok(Box::new(move |object| Ok(send(&mut requests[object], mode)?)))
}

fn operation(ty: Option<DataType>, mode: Mode) -> Arc<OperationDescription> {
    let suffix = match mode {
        Mode::Oneway => "1way",
        Mode::Twoway => "2way",
    };
    let (name, sequence) = match ty {
        None => ("NoParams", None),
        Some(DataType::Short) => ("ShortSeq", Some(&latency::TC_SHORT_SEQ)),
        Some(DataType::Char) => ("CharSeq", Some(&latency::TC_CHAR_SEQ)),
        Some(DataType::Long) => ("LongSeq", Some(&latency::TC_LONG_SEQ)),
        Some(DataType::Octet) => ("OctetSeq", Some(&latency::TC_OCTET_SEQ)),
        Some(DataType::Double) => ("DoubleSeq", Some(&latency::TC_DOUBLE_SEQ)),
        Some(DataType::Struct) => ("StructSeq", Some(&latency::TC_STRUCT_SEQ)),
    };
    let mut operation = OperationDescription::new(format!("send{name}_{suffix}"));
    if let Some(sequence) = sequence {
        operation = operation.parameter("ttcp_seq", ParameterMode::In, sequence);
    }
    Arc::new(match mode {
        Mode::Oneway => operation.oneway(),
        Mode::Twoway => operation,
    })
}
