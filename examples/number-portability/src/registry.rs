//! The registry: an element for each number.

use std::path::PathBuf;

use ironorb::cache::CellRef;
use ironorb::{CannotCreateExtent, ElementCells, Extent, ExtentConfig, FileOptions, Poa, SystemException};

use crate::portability::{Subscriber, SubscriberRef, SubscriberState};

/// What the registry knows of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub struct Entry {
    /// The network.
    pub network: u32,
    /// 1 for a number that may not be called.
    pub is_barred: u32,
}

impl From<&Entry> for SubscriberState {
    fn from(entry: &Entry) -> SubscriberState {
        SubscriberState { network: entry.network, is_barred: entry.is_barred != 0 }
    }
}

/// Serves all subscribers.
struct Subscribers(ElementCells<Entry, SubscriberState>);

impl Subscriber for Subscribers {
    fn cell(&self) -> CellRef<'_, SubscriberState> {
        self.0.current()
    }

    fn port_to(&self, network: u32) -> Result<(), SystemException> {
        self.0.extent().current()?.update(|entry| entry.network = network)
    }
}

/// Opens a registry with this many numbers: in a file, where they stay, or in memory.
pub fn open(poa: &Poa, numbers: u64, file: Option<PathBuf>) -> Result<Extent<Entry>, CannotCreateExtent> {
    let config = match file {
        Some(file) => ExtentConfig::in_file(FileOptions::new(file)),
        None => ExtentConfig::in_memory(),
    };
    let new = |number: u64| Entry { network: 0, is_barred: u32::from(number % 1_000 == 999) };
    let registry = poa.create_extent("subscribers", numbers, config, new)?;
    let cells = registry.cells()?;
    registry.serve::<SubscriberRef, _>(Subscribers(cells))?;
    Ok(registry)
}
