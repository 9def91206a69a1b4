//! The client: sends one sequence again and again, by one of the ways to make calls.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use ironorb::ObjectRef;
use ironorb::dynamic::{OperationDescription, Request};

use super::Data;
use super::receiver::description;
use crate::data::{fill, send};
use crate::error::BenchError;
use crate::generated_ttcp::ttcp::{
    Receiver, ReceiverRef, Tally, TtcpSequence, TtcpSequence2way, TtcpSequence2wayRef, TtcpSequenceRef,
};
use crate::measure::{Sample, Side};
use crate::variant::{DataType, Invocation, Mode};

/// The data that one side sends, and how.
#[derive(Debug, Clone, Copy)]
pub(super) struct SendPlan<'a> {
    pub(super) mode: Mode,
    pub(super) invocation: Invocation,
    pub(super) data: &'a Data,
}

/// Sends to one object.
pub(super) struct Sender<'a> {
    plan: SendPlan<'a>,
    receiver: ReceiverRef,
    timer: Timer,
    send: Sample<'a>,
}

/// The result of a run in which everything arrived.
#[derive(Debug, Clone, Copy)]
pub(super) struct Run {
    /// From before the first sequence was sent until the last answer.
    pub(super) sender_nanos: u64,
    /// The receiver's count.
    pub(super) tally: Tally,
}

impl<'a> Sender<'a> {
    pub(super) fn new(object: &ObjectRef, plan: SendPlan<'a>) -> Result<Sender<'a>, BenchError> {
        Ok(Sender {
            receiver: object.clone().narrow_unchecked(),
            timer: Timer::new(object, plan.mode),
            send: sample(object, plan)?,
            plan,
        })
    }

    /// Stores the nanoseconds of each of several calls.
    pub(super) fn each(&mut self, nanos: &mut [u64]) -> Result<(), BenchError> {
        self.send.each(nanos)
    }

    /// Sends `sequences` sequences. Fails unless all of them arrived unchanged.
    pub(super) fn run(&mut self, sequences: usize) -> Result<Run, BenchError> {
        self.timer.start()?;
        self.receiver.send_no_params()?; // waits until the timer has started
        let begin = Instant::now();
        for _ in 0..sequences {
            (self.send)()?;
        }
        if self.plan.mode == Mode::Oneway {
            self.receiver.send_no_params()?;
        }
        let sender_nanos = begin.elapsed().as_nanos() as u64;
        self.timer.stop()?;
        let tally = self.receiver.taken()?;
        let sent = (sequences as u64, (sequences * self.plan.data.len()) as u64, 0);
        if (tally.sequences, tally.elements, tally.wrong) != sent {
            return Err(BenchError::Lost { sent: sent.0, elements: sent.1, tally: format!("{tally:?}") });
        }
        Ok(Run { sender_nanos, tally })
    }
}

/// The receiver's timer, in either interface.
enum Timer {
    Oneway(TtcpSequenceRef),
    Twoway(TtcpSequence2wayRef),
}

impl Timer {
    fn new(object: &ObjectRef, mode: Mode) -> Timer {
        match mode {
            Mode::Oneway => Timer::Oneway(object.clone().narrow_unchecked()),
            Mode::Twoway => Timer::Twoway(object.clone().narrow_unchecked()),
        }
    }

    fn start(&self) -> Result<(), BenchError> {
        match self {
            Timer::Oneway(receiver) => receiver.start_timer()?,
            Timer::Twoway(receiver) => receiver.start_timer()?,
        }
        Ok(())
    }

    fn stop(&self) -> Result<(), BenchError> {
        match self {
            Timer::Oneway(receiver) => receiver.stop_timer()?,
            Timer::Twoway(receiver) => receiver.stop_timer()?,
        }
        Ok(())
    }
}

fn sample<'a>(object: &ObjectRef, plan: SendPlan<'a>) -> Result<Sample<'a>, BenchError> {
    let SendPlan { mode, invocation, data } = plan;
    let request = || Request::new(object, operation(data, mode));
    Ok(match invocation {
        Invocation::Sii => statically(object, mode, data),
        Invocation::DiiNew => {
            let (object, operation) = (object.clone(), operation(data, mode));
            Box::new(move || {
                let mut request = Request::new(&object, operation.clone());
                fill(&mut request, black_box(data))?;
                Ok(send(&mut request, mode)?)
            })
        }
        Invocation::DiiReused => {
            let mut request = request();
            Box::new(move || {
                fill(&mut request, black_box(data))?;
                Ok(send(&mut request, mode)?)
            })
        }
        Invocation::DiiUnchanged => {
            let mut request = request();
            fill(&mut request, data)?;
            Box::new(move || Ok(send(&mut request, mode)?))
        }
    })
}

/// Sends by the stubs of one interface.
macro_rules! by_stubs {
    ($reference:ty, $object:expr, $data:expr; $($kind:ident $send:ident),*) => {{
        let to: $reference = $object.clone().narrow_unchecked();
        match $data {
            Data::Nothing => Box::new(move || Ok(to.send_no_params()?)),
            $(Data::$kind(elements) => Box::new(move || Ok(to.$send(black_box(elements))?)),)*
        }
    }};
    ($reference:ty, $object:expr, $data:expr) => {
        by_stubs!($reference, $object, $data; Shorts send_short_seq, Chars send_char_seq, Longs send_long_seq,
            Octets send_octet_seq, Doubles send_double_seq, Structs send_struct_seq)
    };
}

fn statically<'a>(object: &ObjectRef, mode: Mode, data: &'a Data) -> Sample<'a> {
    match mode {
        Mode::Oneway => by_stubs!(TtcpSequenceRef, object, data),
        Mode::Twoway => by_stubs!(TtcpSequence2wayRef, object, data),
    }
}

fn operation(data: &Data, mode: Mode) -> Arc<OperationDescription> {
    let ty = match data {
        Data::Nothing => return Arc::new(OperationDescription::new("sendNoParams")),
        Data::Shorts(_) => DataType::Short,
        Data::Chars(_) => DataType::Char,
        Data::Longs(_) => DataType::Long,
        Data::Octets(_) => DataType::Octet,
        Data::Doubles(_) => DataType::Double,
        Data::Structs(_) => DataType::Struct,
    };
    Arc::new(description(ty, mode))
}
