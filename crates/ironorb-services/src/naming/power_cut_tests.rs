//! Acknowledged changes survive a power cut at any write.

use super::*;
use crate::power_cut::{Random, SharedDisk};

/// The bytes of a new store.
fn new_store() -> Vec<u8> {
    let disk = SharedDisk::new();
    drop(Store::with_backend(disk.clone()).unwrap());
    disk.bytes()
}

/// Binds `o0`, `o1`, ... from `first` on until the power fails. Returns the number of the first one that was
/// not acknowledged.
fn bind_until_cut(disk: &SharedDisk, first: usize) -> usize {
    // Opening the store writes too, so the cut may fall here.
    let Ok(store) = Store::with_backend(disk.clone()) else { return first };
    let service = NamingService::new(store, Limits::default());
    for number in first..first + BINDS_MAX {
        let object = Reference::new(number.to_string().into_bytes());
        // An interrupted bind may have reached the disk without an acknowledgement, so the next run uses
        // rebind.
        match service.rebind(ContextId::ROOT, &name(number), object) {
            Ok(Step::Done(())) => {}
            _ => return number,
        }
    }
    panic!("{BINDS_MAX} bindings were acknowledged in fewer writes: they cannot be on the disk");
}

fn check_bound(bytes: &[u8], acknowledged: usize, seed: u64) {
    let disk = SharedDisk::holding(bytes.to_vec(), usize::MAX);
    let store = Store::with_backend(disk).unwrap_or_else(|fault| panic!("seed {seed}: {fault}"));
    let service = NamingService::new(store, Limits::default());
    for number in 0..acknowledged {
        match service.resolve(ContextId::ROOT, &name(number)) {
            Ok(Step::Done(Bound::Object(object))) => {
                assert_eq!(object.as_bytes(), number.to_string().as_bytes(), "seed {seed}");
            }
            other => panic!("seed {seed}: binding {number} of {acknowledged} gave {other:?}"),
        }
    }
}

fn name(number: usize) -> Name {
    Name::new(vec![NameComponent::new(format!("o{number}"), "")]).unwrap()
}

/// More than the writes before any cut. Each binding takes at least one write.
const BINDS_MAX: usize = 100;

#[test]
fn acknowledged_bindings_survive_power_cuts() {
    let mut acknowledged_in_all = 0;
    for seed in 0..40 {
        let mut random = Random(seed);
        let mut bytes = new_store();
        let mut acknowledged = 0;
        // Several cuts in a row, so that a repaired store is cut again.
        for _ in 0..4 {
            let writes = 1 + usize::try_from(random.below(60)).unwrap();
            let disk = SharedDisk::holding(bytes, writes);
            acknowledged = bind_until_cut(&disk, acknowledged);
            bytes = disk.after_cut(&mut random);
            check_bound(&bytes, acknowledged, seed);
        }
        acknowledged_in_all += acknowledged;
    }
    assert!(acknowledged_in_all > 100, "the cuts came too early to show anything: {acknowledged_in_all}");
}
