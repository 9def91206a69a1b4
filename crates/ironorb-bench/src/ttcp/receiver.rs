//! The receiving objects: they count the data, check a sample and discard it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use ironorb::dynamic::{
    DynamicServant, InterfaceDescription, OperationDescription, ParameterMode, ServerRequest,
};
use ironorb::poa::ObjectId;
use ironorb::{Any, ExtractError, Replied, SystemException};

use crate::data::{Element, wrong};
use crate::generated_ttcp::ttcp::{self, PerfStruct, Receiver, Tally, TtcpSequence, TtcpSequence2way};
use crate::variant::{DataType, Mode};

/// Counts received data.
#[derive(Debug, Default)]
pub(super) struct Counter {
    sequences: AtomicU64,
    elements: AtomicU64,
    wrong: AtomicU64,
    nanoseconds: AtomicU64,
    started: Mutex<Option<Instant>>,
}

impl Counter {
    // Requests of one connection are served one after another, so relaxed atomics are enough.
    fn take<T: Element>(&self, elements: &[T]) {
        self.sequences.fetch_add(1, Ordering::Relaxed);
        self.elements.fetch_add(elements.len() as u64, Ordering::Relaxed);
        self.wrong.fetch_add(wrong(elements), Ordering::Relaxed);
    }

    fn start(&self) {
        for number in [&self.sequences, &self.elements, &self.wrong, &self.nanoseconds] {
            number.store(0, Ordering::Relaxed);
        }
        *self.started.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    fn stop(&self) {
        if let Some(started) = self.started.lock().unwrap_or_else(PoisonError::into_inner).take() {
            self.nanoseconds.store(started.elapsed().as_nanos() as u64, Ordering::Relaxed);
        }
    }

    fn tally(&self) -> Tally {
        let read = |number: &AtomicU64| number.load(Ordering::Relaxed);
        Tally {
            sequences: read(&self.sequences),
            elements: read(&self.elements),
            wrong: read(&self.wrong),
            nanoseconds: read(&self.nanoseconds),
        }
    }
}

/// The servant behind the generated skeletons of both interfaces.
#[derive(Debug, Default)]
pub(super) struct StaticReceiver(Counter);

impl Receiver for StaticReceiver {
    fn send_no_params(&self) -> Result<(), SystemException> {
        Ok(())
    }

    fn taken(&self) -> Result<Tally, SystemException> {
        Ok(self.0.tally())
    }
}

/// Implements both interfaces, which differ in a keyword.
macro_rules! receiver {
    ($($interface:ident)*) => {
        $(receiver!(@all $interface: send_short_seq i16, send_char_seq u8, send_long_seq i32, send_octet_seq u8,
            send_double_seq f64, send_struct_seq PerfStruct);)*
    };
    (@all $interface:ident: $($operation:ident $element:ty),*) => {
        impl $interface for StaticReceiver {
            $(fn $operation(&self, ttcp_seq: &[$element]) -> Result<(), SystemException> {
                self.0.take(ttcp_seq);
                Ok(())
            })*

            fn start_timer(&self) -> Result<(), SystemException> {
                self.0.start();
                Ok(())
            }

            fn stop_timer(&self) -> Result<(), SystemException> {
                self.0.stop();
                Ok(())
            }
        }
    };
}

receiver!(TtcpSequence TtcpSequence2way);

/// A dynamic servant of either interface. It gets its arguments as `any`s and extracts their elements.
#[derive(Debug)]
pub(super) struct DynamicReceiver {
    counter: Counter,
    interface: Arc<InterfaceDescription>,
}

impl DynamicReceiver {
    pub(super) fn new(mode: Mode) -> DynamicReceiver {
        DynamicReceiver { counter: Counter::default(), interface: Arc::new(interface(mode)) }
    }

    fn take(&self, operation: &str, argument: &Any) -> Result<(), ExtractError> {
        match operation {
            "sendShortSeq" => self.counter.take(&argument.extract_numbers::<i16>()?),
            "sendCharSeq" => self.counter.take(argument.reader().read_octets()?),
            "sendLongSeq" => self.counter.take(&argument.extract_numbers::<i32>()?),
            "sendOctetSeq" => self.counter.take(argument.extract_octets()?),
            "sendDoubleSeq" => self.counter.take(&argument.extract_numbers::<f64>()?),
            _ => self.counter.take(&argument.extract::<Vec<PerfStruct>>()?),
        }
        Ok(())
    }
}

impl DynamicServant for DynamicReceiver {
    fn interface(&self, _: &ObjectId) -> Option<Arc<InterfaceDescription>> {
        Some(self.interface.clone())
    }

    fn invoke(&self, mut request: ServerRequest<'_>) -> Replied {
        match request.operation() {
            "sendNoParams" => {}
            "start_timer" => self.counter.start(),
            "stop_timer" => self.counter.stop(),
            "taken" => {
                return match Any::new(&self.counter.tally()) {
                    Ok(tally) => request.reply(Some(&tally), &[]),
                    Err(e) => request.raise_system(e.into()),
                };
            }
            operation => {
                let arguments = match request.arguments() {
                    Ok(arguments) => arguments,
                    Err(e) => return request.raise_system(e),
                };
                if let Some(Err(e)) = arguments.first().map(|argument| self.take(operation, argument)) {
                    return request.raise_system(e.into());
                }
            }
        }
        request.reply(None, &[])
    }
}

/// The description of an operation that takes a sequence, for clients and dynamic servants.
pub(super) fn description(ty: DataType, mode: Mode) -> OperationDescription {
    let sequence = match ty {
        DataType::Short => &ttcp::TC_SHORT_SEQ,
        DataType::Char => &ttcp::TC_CHAR_SEQ,
        DataType::Long => &ttcp::TC_LONG_SEQ,
        DataType::Octet => &ttcp::TC_OCTET_SEQ,
        DataType::Double => &ttcp::TC_DOUBLE_SEQ,
        DataType::Struct => &ttcp::TC_STRUCT_SEQ,
    };
    let operation = OperationDescription::new(ty.operation());
    in_mode(operation.parameter("ttcp_seq", ParameterMode::In, sequence), mode)
}

fn interface(mode: Mode) -> InterfaceDescription {
    let receiver = InterfaceDescription::new("IDL:ttcp/receiver:1.0", "receiver")
        .operation(OperationDescription::new("sendNoParams"))
        .operation(OperationDescription::new("taken").returns(&ttcp::TC_TALLY));
    let (id, name) = match mode {
        Mode::Oneway => ("IDL:ttcp/ttcp_sequence:1.0", "ttcp_sequence"),
        Mode::Twoway => ("IDL:ttcp/ttcp_sequence_2way:1.0", "ttcp_sequence_2way"),
    };
    let interface = InterfaceDescription::new(id, name)
        .operation(in_mode(OperationDescription::new("start_timer"), mode))
        .operation(in_mode(OperationDescription::new("stop_timer"), mode));
    DataType::ALL
        .into_iter()
        .fold(interface, |interface, ty| interface.operation(description(ty, mode)))
        .inherits(&receiver)
}

fn in_mode(operation: OperationDescription, mode: Mode) -> OperationDescription {
    match mode {
        Mode::Oneway => operation.oneway(),
        Mode::Twoway => operation,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_forgets_what_was_before() {
        let counter = Counter::default();
        counter.take(&[7u8; 3]);
        assert_eq!((counter.tally().elements, counter.tally().wrong), (3, 3));
        counter.start();
        counter.take(&[0i32]);
        counter.stop();
        let Tally { sequences, elements, wrong, nanoseconds } = counter.tally();
        assert_eq!((sequences, elements, wrong), (1, 1, 0));
        assert!(nanoseconds > 0);
    }
}
