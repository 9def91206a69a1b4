//! The rows of `ironorb bench echo`. Each answers one question.

use std::hint::black_box;

use ironorb::{Pending, SystemException};

use crate::error::BenchError;
use crate::generated::bench::{BinStruct, Echo, EchoAsync, EchoRef};
use crate::measure::Sample;

/// One kind of call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EchoRow {
    pub(crate) name: &'static str,
    pub(crate) operation: Operation,
    pub(crate) server: Server,
    /// Settings of both sides, in the form of [`Settings`](crate::Settings); empty for most rows.
    pub(crate) settings: &'static str,
}

/// The place of the object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Server {
    /// Another process, over TCP.
    Tcp,
    /// Another process, over TCP, with a pool of threads.
    Pool,
    /// Another process, over a Unix domain socket.
    UnixSocket,
    /// Another process, by shared memory.
    SharedMemory,
    /// The calling process.
    Collocated,
}

/// The operation. Numbers are lengths of sequences.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    Nothing,
    /// So many oneways, then a call that is answered once all have been carried out.
    Oneways(usize),
    /// So many asynchronous calls, begun one after another before the first is waited for.
    Asynchronous(usize),
    Long,
    String,
    Structs(usize),
    Octets(usize),
    Longs(usize),
    Doubles(usize),
}

pub(crate) const ONEWAYS: usize = 99;
/// Oneways in a batch, enough to make the cost of its end negligible.
pub(crate) const ONEWAYS_BATCHED: usize = 9_999;

/// All rows, in the order of the report.
pub(crate) const ROWS: [EchoRow; 22] = [
    EchoRow::new("void", Operation::Nothing, Server::Tcp),
    EchoRow::new("void-adaptive", Operation::Nothing, Server::Tcp)
        .with("clientWaiting=adaptive+serverWaiting=adaptive"),
    EchoRow::new("void-spin", Operation::Nothing, Server::Tcp).with("clientWaiting=spin+serverWaiting=spin"),
    EchoRow::new("void-pool", Operation::Nothing, Server::Pool),
    EchoRow::new("void-unix", Operation::Nothing, Server::UnixSocket),
    EchoRow::new("void-shm", Operation::Nothing, Server::SharedMemory),
    EchoRow::new("long", Operation::Long, Server::Tcp),
    EchoRow::new("string", Operation::String, Server::Tcp),
    EchoRow::new("struct64", Operation::Structs(64), Server::Tcp),
    EchoRow::new("octet-1k", Operation::Octets(1 << 10), Server::Tcp),
    EchoRow::new("long-1k", Operation::Longs(1 << 8), Server::Tcp),
    EchoRow::new("double-1k", Operation::Doubles(1 << 7), Server::Tcp),
    EchoRow::new("octet-64k", Operation::Octets(64 << 10), Server::Tcp),
    EchoRow::new("long-64k", Operation::Longs(16 << 10), Server::Tcp),
    EchoRow::new("double-64k", Operation::Doubles(8 << 10), Server::Tcp),
    EchoRow::new("octet-64k-unix", Operation::Octets(64 << 10), Server::UnixSocket),
    EchoRow::new("octet-64k-shm", Operation::Octets(64 << 10), Server::SharedMemory),
    EchoRow::new("oneway", Operation::Oneways(ONEWAYS), Server::Tcp),
    EchoRow::new("oneway-batched", Operation::Oneways(ONEWAYS_BATCHED), Server::Tcp)
        .with("onewayBatching=yes"),
    EchoRow::new("async", Operation::Asynchronous(1), Server::Tcp),
    EchoRow::new("async-100", Operation::Asynchronous(100), Server::Tcp),
    EchoRow::new("collocated", Operation::Nothing, Server::Collocated),
];

impl EchoRow {
    const fn new(name: &'static str, operation: Operation, server: Server) -> EchoRow {
        EchoRow { name, operation, server, settings: "" }
    }

    const fn with(self, settings: &'static str) -> EchoRow {
        EchoRow { settings, ..self }
    }

    /// Whether the row's requests leave together. Then those of a plain socket must too.
    pub(crate) fn is_batched(self) -> bool {
        self.settings.contains("onewayBatching")
    }

    /// Finds rows by their names; all rows if there are no names.
    pub(crate) fn select(names: &[String]) -> Result<Vec<EchoRow>, BenchError> {
        if names.is_empty() {
            return Ok(ROWS.to_vec());
        }
        names.iter().map(|name| EchoRow::find(name)).collect()
    }

    pub(crate) fn find(name: &str) -> Result<EchoRow, BenchError> {
        ROWS.into_iter().find(|row| row.name == name).ok_or_else(|| BenchError::UnknownRow {
            name: name.to_owned(),
            known: ROWS.map(|row| row.name).join(", "),
        })
    }

    /// Calls in one sample. A collocated call is too short for the clock.
    pub(crate) fn calls_per_sample(self) -> usize {
        match (self.operation, self.server) {
            (Operation::Oneways(count), _) => count + 1,
            (Operation::Asynchronous(count), _) => count,
            (_, Server::Collocated) => COLLOCATED_CALLS,
            _ => 1,
        }
    }

    /// Messages that the client sends in one sample.
    pub(crate) fn requests_per_sample(self) -> usize {
        match self.operation {
            Operation::Oneways(count) => count + 1,
            Operation::Asynchronous(count) => count,
            _ => 1,
        }
    }

    /// The number of samples in a repetition of so many calls.
    pub(crate) fn samples(self, calls: usize) -> usize {
        let calls = if self.is_large() { calls.div_ceil(4) } else { calls };
        match self.server {
            // These calls are short, so there can be more samples.
            Server::Collocated => calls,
            _ => calls.div_ceil(self.calls_per_sample()).max(SAMPLES_MIN),
        }
    }

    fn is_large(self) -> bool {
        match self.operation {
            Operation::Octets(count) => count > 4 << 10,
            Operation::Longs(count) => count > 1 << 10,
            Operation::Doubles(count) => count > 512,
            _ => false,
        }
    }

    /// A sample with this object.
    pub(crate) fn sample(self, echo: EchoRef) -> Sample<'static> {
        let mut once = self.operation.on(echo);
        match self.server {
            Server::Collocated => Box::new(move || {
                for _ in 0..COLLOCATED_CALLS {
                    once()?;
                }
                Ok(())
            }),
            _ => Box::new(move || Ok(once()?)),
        }
    }
}

const COLLOCATED_CALLS: usize = 100;

/// Fewest samples in a repetition.
const SAMPLES_MIN: usize = 8;

impl Operation {
    fn on(self, echo: EchoRef) -> Box<dyn FnMut() -> Result<(), SystemException>> {
        match self {
            Operation::Nothing => Box::new(move || echo.nothing()),
            Operation::Oneways(count) => Box::new(move || {
                for _ in 0..count {
                    echo.forget()?;
                }
                echo.nothing()
            }),
            Operation::Asynchronous(count) => {
                let mut pending = Vec::with_capacity(count);
                Box::new(move || {
                    pending.extend((0..count).map(|_| echo.nothing_async()));
                    pending.drain(..).try_for_each(Pending::wait)
                })
            }
            Operation::Long => Box::new(move || {
                black_box(echo.take_long(black_box(42))?);
                Ok(())
            }),
            Operation::String => Box::new(move || {
                black_box(echo.take_string(black_box("a string of thirty-two charact."))?);
                Ok(())
            }),
            Operation::Structs(count) => {
                let values = vec![BinStruct { s: 1, c: b'c', l: 2, o: 3, d: 4.5 }; count];
                Box::new(move || echo.take_structs(black_box(&values)))
            }
            Operation::Octets(count) => {
                let values = vec![0x5A; count];
                Box::new(move || {
                    black_box(echo.take_octets(black_box(&values))?);
                    Ok(())
                })
            }
            Operation::Longs(count) => {
                let values = vec![0x5A5A; count];
                Box::new(move || {
                    black_box(echo.take_longs(black_box(&values))?);
                    Ok(())
                })
            }
            Operation::Doubles(count) => {
                let values = vec![1.5; count];
                Box::new(move || {
                    black_box(echo.take_doubles(black_box(&values))?);
                    Ok(())
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_found_by_name() {
        assert_eq!(EchoRow::select(&[]).unwrap().len(), ROWS.len());
        let [row] = EchoRow::select(&["oneway".to_owned()]).unwrap()[..] else { panic!("one row") };
        assert_eq!(row.operation, Operation::Oneways(ONEWAYS));
        assert_eq!(row.samples(3000), 30);
        let error = EchoRow::select(&["viod".to_owned()]).unwrap_err().to_string();
        assert!(error.contains("viod") && error.contains("void-pool"), "{error}");
    }
}
