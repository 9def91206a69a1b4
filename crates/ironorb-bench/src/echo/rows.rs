//! The rows of `ironorb bench echo`. Each answers one question.

use std::hint::black_box;

use ironorb::Pending;

use crate::generated::bench::{BinStruct, Echo, EchoAsync, EchoRef};
use crate::measure::Sample;
use crate::variant::Transport;

/// One kind of call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EchoRow {
    pub(crate) name: &'static str,
    /// The way to the server; none if the object is in the calling process.
    pub(crate) transport: Option<Transport>,
    /// Settings of both sides, in the form of [`Settings`](crate::settings::Settings); empty for most rows.
    pub(crate) settings: &'static str,
    /// Calls in one sample, each of which is a message.
    pub(crate) batch: usize,
    /// How many times fewer calls than usual are made.
    fewer: usize,
    sample: fn(EchoRef) -> Sample<'static>,
}

const ONEWAYS: usize = 99;
/// Oneways in a batch, enough to make the cost of its end negligible.
const ONEWAYS_BATCHED: usize = 9_999;

/// A call of the same process is too short for the clock.
const COLLOCATED_CALLS: usize = 100;

/// Fewest samples in a repetition.
const SAMPLES_MIN: usize = 8;

/// All rows, in the order of the report.
pub(crate) const ROWS: [EchoRow; 22] = [
    row("void", void),
    row("void-adaptive", void).with("clientWaiting=adaptive+serverWaiting=adaptive"),
    row("void-spin", void).with("clientWaiting=spin+serverWaiting=spin"),
    row("void-pool", void).with("concurrency=pool:4"),
    row("void-unix", void).over(Transport::Unix),
    row("void-shm", void).over(Transport::Shm),
    row("long", |echo| returned(move || echo.take_long(black_box(42)))),
    row("string", |echo| returned(move || echo.take_string(black_box("a string of thirty-two charact.")))),
    row("struct64", |echo| {
        let values = vec![BinStruct { s: 1, c: b'c', l: 2, o: 3, d: 4.5 }; 64];
        returned(move || echo.take_structs(black_box(&values)))
    }),
    row("octet-1k", |echo| octets(echo, 1 << 10)),
    row("long-1k", |echo| longs(echo, 1 << 8)),
    row("double-1k", |echo| doubles(echo, 1 << 7)),
    row("octet-64k", |echo| octets(echo, 64 << 10)).large(),
    row("long-64k", |echo| longs(echo, 16 << 10)).large(),
    row("double-64k", |echo| doubles(echo, 8 << 10)).large(),
    row("octet-64k-unix", |echo| octets(echo, 64 << 10)).large().over(Transport::Unix),
    row("octet-64k-shm", |echo| octets(echo, 64 << 10)).large().over(Transport::Shm),
    row("oneway", |echo| oneways(echo, ONEWAYS)).of(ONEWAYS + 1),
    row("oneway-batched", |echo| oneways(echo, ONEWAYS_BATCHED))
        .of(ONEWAYS_BATCHED + 1)
        .with("onewayBatching=yes"),
    row("async", |echo| asynchronous(echo, 1)),
    row("async-100", |echo| asynchronous(echo, 100)).of(100),
    EchoRow { transport: None, ..row("collocated", collocated).of(COLLOCATED_CALLS) },
];

const fn row(name: &'static str, sample: fn(EchoRef) -> Sample<'static>) -> EchoRow {
    EchoRow { name, transport: Some(Transport::Tcp), settings: "", batch: 1, fewer: 1, sample }
}

impl EchoRow {
    const fn with(self, settings: &'static str) -> EchoRow {
        EchoRow { settings, ..self }
    }

    const fn over(self, transport: Transport) -> EchoRow {
        EchoRow { transport: Some(transport), ..self }
    }

    const fn of(self, batch: usize) -> EchoRow {
        EchoRow { batch, ..self }
    }

    const fn large(self) -> EchoRow {
        EchoRow { fewer: 4, ..self }
    }

    /// Whether the row's requests leave together. Then those of a plain socket must too.
    pub(crate) fn is_batched(self) -> bool {
        self.settings.contains("onewayBatching")
    }

    /// The number of samples in a repetition of so many calls.
    pub(crate) fn samples(self, calls: usize) -> usize {
        match self.transport {
            // These calls are short, so there can be more samples.
            None => calls,
            Some(_) => calls.div_ceil(self.fewer).div_ceil(self.batch).max(SAMPLES_MIN),
        }
    }

    /// A sample with this object.
    pub(crate) fn sample(self, echo: EchoRef) -> Sample<'static> {
        (self.sample)(echo)
    }
}

fn void(echo: EchoRef) -> Sample<'static> {
    Box::new(move || Ok(echo.nothing()?))
}

fn collocated(echo: EchoRef) -> Sample<'static> {
    Box::new(move || (0..COLLOCATED_CALLS).try_for_each(|_| Ok(echo.nothing()?)))
}

/// A call whose result is dropped within the sample.
fn returned<T, E>(mut call: impl FnMut() -> Result<T, E> + 'static) -> Sample<'static>
where
    crate::error::BenchError: From<E>,
{
    Box::new(move || {
        black_box(call()?);
        Ok(())
    })
}

fn octets(echo: EchoRef, count: usize) -> Sample<'static> {
    let values = vec![0x5A; count];
    returned(move || echo.take_octets(black_box(&values)))
}

fn longs(echo: EchoRef, count: usize) -> Sample<'static> {
    let values = vec![0x5A5A; count];
    returned(move || echo.take_longs(black_box(&values)))
}

fn doubles(echo: EchoRef, count: usize) -> Sample<'static> {
    let values = vec![1.5; count];
    returned(move || echo.take_doubles(black_box(&values)))
}

/// Oneways, then a call that is answered once all have been carried out.
fn oneways(echo: EchoRef, count: usize) -> Sample<'static> {
    Box::new(move || {
        for _ in 0..count {
            echo.forget()?;
        }
        Ok(echo.nothing()?)
    })
}

/// Asynchronous calls, begun one after another before the first is waited for.
fn asynchronous(echo: EchoRef, count: usize) -> Sample<'static> {
    let mut pending = Vec::with_capacity(count);
    Box::new(move || {
        pending.extend((0..count).map(|_| echo.nothing_async()));
        Ok(pending.drain(..).try_for_each(Pending::wait)?)
    })
}
