//! What the two processes of a participant must agree on.

use std::fmt;
use std::str::FromStr;

use clap::ValueEnum;
use ironorb::rt::{DirectMapping, RealTimeConfig};

use super::class::Class;
use crate::variant::{Transport, name};

/// How an octet gets to its servant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    /// This ORB, with a lane for each priority.
    Lanes,
    /// This ORB without lanes of their own for priorities: one thread serves all clients, the most urgent one too, in the
    /// order in which requests come. The inversions that this makes show that the benchmark can see any.
    Shared,
    /// Plain sockets with as many bytes, and the same threads and priorities.
    Twin,
}

/// The way between client and server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Way {
    /// TCP over the loopback interface.
    Tcp,
    /// Unix domain sockets.
    Unix,
    /// Shared memory.
    Shm,
}

impl Way {
    pub(crate) fn transport(self) -> Transport {
        match self {
            Way::Tcp => Transport::Tcp,
            Way::Unix => Transport::Unix,
            Way::Shm => Transport::Shm,
        }
    }
}

/// A participant's setup. As text it is an argument of its processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Setup {
    pub(crate) kind: Kind,
    pub(crate) way: Way,
    pub(crate) class: Class,
    /// The number of servants, each with a priority of its own; the first is the most urgent.
    pub(crate) servants: usize,
}

impl Setup {
    /// What makes an ORB a real-time one of this class. Priorities are those of the system.
    pub(crate) fn real_time(self) -> RealTimeConfig {
        RealTimeConfig::new().scheduling(self.class.scheduling()).mapping(DirectMapping)
    }
}

impl fmt::Display for Setup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Setup { kind, way, class, servants } = *self;
        write!(f, "{} {} {} {servants}", name(kind), name(way), name(class))
    }
}

impl FromStr for Setup {
    type Err = String;

    fn from_str(text: &str) -> Result<Setup, String> {
        let words: Vec<&str> = text.split(' ').collect();
        let [kind, way, class, servants] = words[..] else {
            return Err(format!("{text:?} is no setup: KIND TRANSPORT CLASS SERVANTS"));
        };
        Ok(Setup {
            kind: Kind::from_str(kind, false)?,
            way: Way::from_str(way, false)?,
            class: Class::from_str(class, false)?,
            servants: servants.parse().map_err(|_| format!("{servants:?} is no number of servants"))?,
        })
    }
}
