//! The table of all adapters of an ORB: by slot, by path, and those in the making. It takes no lock and calls
//! no application code.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::ROOT_PATH;
use crate::base::gate::Gate;
use crate::poa::PoaInner;
use crate::poa::key::{self, Slot};

#[derive(Default)]
pub(super) struct Table {
    pub(super) slots: Vec<(u32, Option<Arc<PoaInner>>)>,
    /// Slots without an adapter.
    pub(super) free: Vec<usize>,
    pub(super) next_instance: u32,
    pub(super) by_path: BTreeMap<Vec<u8>, Arc<PoaInner>>,
    /// Paths at which adapter activators are making adapters, each with the gate that opens when it is done.
    pub(super) in_the_making: BTreeMap<Vec<u8>, Arc<Gate>>,
    /// Adapters at and below these paths, which only the threads that make them may see yet.
    pub(super) unfinished: BTreeMap<Vec<u8>, Arc<PoaInner>>,
    /// Keys of the application's choice, such as `NameService`, and the keys that they stand for.
    pub(super) aliases: BTreeMap<Vec<u8>, Vec<u8>>,
    /// The adapter for keys that no adapter here has made.
    pub(super) default_adapter: Option<Arc<PoaInner>>,
}

/// The next step on the way to a path.
pub(super) enum Step {
    Found(Arc<PoaInner>),
    /// A different thread makes an adapter on the way.
    Wait(Arc<Gate>),
    /// The parent's adapter activator may make the next adapter, whose path ends at `end`.
    Ask {
        parent: Arc<PoaInner>,
        name: String,
        end: usize,
    },
    /// No adapter exists at the path, and none can be made.
    Nowhere,
}

impl Table {
    /// The adapter in a slot, if the slot still has this generation.
    #[inline]
    pub(super) fn in_slot(&self, slot: Slot) -> Option<&Arc<PoaInner>> {
        match self.slots.get(slot.index as usize) {
            Some((generation, Some(found))) if *generation == slot.generation => Some(found),
            _ => None,
        }
    }

    /// The adapter at a path, if this thread may see it.
    pub(super) fn visible(&self, path: &[u8]) -> Option<&Arc<PoaInner>> {
        self.by_path.get(path).or_else(|| {
            let found = self.unfinished.get(path)?;
            let is_ours = |(making, gate): (&Vec<u8>, &Arc<Gate>)| path.starts_with(making) && gate.is_ours();
            self.in_the_making.iter().any(is_ours).then_some(found)
        })
    }

    pub(super) fn next_step(&self, path: &[u8]) -> Step {
        if let Some(found) = self.visible(path) {
            return Step::Found(found.clone());
        }
        let Some(mut parent) = self.by_path.get(ROOT_PATH) else { return Step::Nowhere };
        let mut at = 0;
        while let Some((name, end)) = key::name_at(path, at) {
            if let Some(child) = self.visible(&path[..end]) {
                (parent, at) = (child, end);
                continue;
            }
            return match (self.in_the_making.get(&path[..end]), std::str::from_utf8(name)) {
                (Some(gate), _) if gate.is_ours() => Step::Nowhere,
                (Some(gate), _) => Step::Wait(gate.clone()),
                (None, Ok(name)) if parent.has_adapter_activator() => {
                    Step::Ask { parent: parent.clone(), name: name.to_owned(), end }
                }
                (None, _) => Step::Nowhere,
            };
        }
        Step::Nowhere
    }

    /// Ends the making of the adapters at and below a path and makes them visible, calling `publish` for
    /// each. Returns whether there is an adapter at the path.
    pub(super) fn finish(&mut self, path: &[u8], publish: impl Fn(&[u8], &Arc<PoaInner>)) -> bool {
        self.in_the_making.remove(path);
        // Adapters below another path in the making stay invisible.
        let still: Vec<Vec<u8>> = self.in_the_making.keys().cloned().collect();
        let done: Vec<Vec<u8>> = self
            .unfinished
            .keys()
            .filter(|key| key.starts_with(path) && !still.iter().any(|making| key.starts_with(making)))
            .cloned()
            .collect();
        for path in done {
            if let Some(poa) = self.unfinished.remove(&path) {
                publish(&path, &poa);
                self.by_path.insert(path, poa);
            }
        }
        self.visible(path).is_some()
    }
}
