//! The options of `ironorb bench ttcp`.

use crate::host::Hosts;
use crate::machine::Placement;
use crate::options::{Run, Sides};
use crate::variant::{Bytes, DataType, Invocation, Mode, ServantKind, Transport};

/// `ironorb bench ttcp`
///
/// The default is the suite of the paper, in full, which takes most of an hour.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct TtcpOptions {
    /// Types of the elements, separated by commas.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = DataType::SEQUENCES)]
    pub(crate) types: Vec<DataType>,
    /// Bytes of a sequence, separated by commas; up to 8M and more.
    #[arg(long, value_delimiter = ',', value_name = "BYTES", default_values_t = BUFFERS)]
    pub(crate) buffers: Vec<Bytes>,
    /// How the client makes calls.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = INVOCATIONS)]
    pub(crate) invocations: Vec<Invocation>,
    /// The kinds of servants.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = ServantKind::ALL)]
    pub(crate) servants: Vec<ServantKind>,
    /// Whether the client waits.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = Mode::ALL)]
    pub(crate) modes: Vec<Mode>,
    #[command(flatten)]
    pub(crate) sides: Sides,
    /// The transports.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = TRANSPORTS)]
    pub(crate) transports: Vec<Transport>,
    /// The processors that client and server are pinned to.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [Placement::CoreEach])]
    pub(crate) placements: Vec<Placement>,
    /// Bytes of a run, which sends as many sequences of one size as make this total.
    #[arg(long, value_name = "BYTES", default_value_t = Bytes(64 << 20))]
    pub(crate) total: Bytes,
    /// Bytes of the system's send and receive queues of each connection, 64K in the paper. Default: the system's choice.
    #[arg(long, value_name = "BYTES")]
    pub(crate) queue: Option<Bytes>,
    /// Measure only single calls, not throughput.
    #[arg(long)]
    pub(crate) latency_only: bool,
    /// Measure only throughput, not single calls.
    #[arg(long, conflicts_with = "latency_only")]
    pub(crate) rates_only: bool,
    /// Show where the time of either side goes, in the categories of the paper's Tables 1 to 3, instead of
    /// bytes per second. Default calls: octets and structs in 128K, oneway to static skeletons and twoway to
    /// dynamic ones. Needs a build with the feature `probes`.
    #[arg(long, conflicts_with = "latency_only")]
    pub(crate) breakdown: bool,
    #[command(flatten)]
    pub(crate) hosts: Hosts,
    #[command(flatten)]
    pub(crate) run: Run,
}

/// The paper's buffers: 1K to 128K.
const BUFFERS: [Bytes; 8] = [
    Bytes(1 << 10),
    Bytes(2 << 10),
    Bytes(4 << 10),
    Bytes(8 << 10),
    Bytes(16 << 10),
    Bytes(32 << 10),
    Bytes(64 << 10),
    Bytes(128 << 10),
];

const INVOCATIONS: [Invocation; 3] = [Invocation::Sii, Invocation::DiiNew, Invocation::DiiReused];

const TRANSPORTS: [Transport; 2] = [Transport::Tcp, Transport::Unix];

impl TtcpOptions {
    pub(super) fn total_bytes(&self) -> usize {
        self.run.choose(self.total.0.min(1 << 20), self.total.0)
    }

    /// The types of the paper's tables, unless others are requested.
    pub(super) fn watched_types(&self) -> &[DataType] {
        if self.types == DataType::SEQUENCES { &[DataType::Octet, DataType::Struct] } else { &self.types }
    }

    /// The transport of the paper's tables, unless others are requested.
    pub(super) fn watched_transports(&self) -> &[Transport] {
        if self.transports == TRANSPORTS { &[Transport::Tcp] } else { &self.transports }
    }

    /// The buffer of the paper's tables, unless others are requested.
    pub(super) fn watched_buffers(&self) -> Vec<Bytes> {
        if self.buffers == BUFFERS { vec![Bytes(128 << 10)] } else { self.buffers.clone() }
    }

    /// The buffers. A quick run keeps two of the paper's, and all requested ones.
    pub(super) fn buffers(&self) -> Vec<Bytes> {
        match self.run.quick && self.buffers == BUFFERS {
            true => vec![Bytes(1 << 10), Bytes(64 << 10)],
            false => self.buffers.clone(),
        }
    }
}
