//! Acknowledged changes survive a power cut at any write. A damaged file causes an error, never a panic.

use super::*;
use crate::power_cut::{Random, SharedDisk};
use ironorb::ifr::corba::PrimitiveKind;

fn over(disk: SharedDisk) -> Result<InterfaceRepository, StoreError> {
    Ok(InterfaceRepository::new(Store::with_backend(disk)?, Limits::default()))
}

fn record(id: String, name: String, body: Body) -> Record {
    Record { id, name, version: "1.0".to_owned(), container: DefinitionNumber::REPOSITORY, body }
}

/// Creates a struct with a member of an anonymous type: two changes, of which the second uses the first.
fn make(repository: &InterfaceRepository, number: usize) -> Result<DefinitionNumber, RepositoryError> {
    let element = DefinitionNumber::primitive(PrimitiveKind::PkLong);
    let sequence = Body::Sequence { bound: 0, element };
    let ty = repository.create(&record(String::new(), String::new(), sequence))?;
    let members = vec![Member { name: "numbers".to_owned(), ty }];
    repository.create(&record(id(number), format!("S{number}"), Body::Struct { members }))
}

fn id(number: usize) -> String {
    format!("IDL:S{number}:1.0")
}

/// The bytes of a store with so many structs.
fn store_with(count: usize) -> Vec<u8> {
    let disk = SharedDisk::new();
    let repository = over(disk.clone()).unwrap();
    for number in 0..count {
        make(&repository, number).unwrap();
    }
    drop(repository);
    disk.bytes()
}

/// Creates structs from `first` on until the power fails, and after each a struct that is destroyed again.
/// Returns the number of the first struct that was not acknowledged.
fn make_until_cut(disk: &SharedDisk, first: usize) -> usize {
    // Opening the store writes too, so the cut may fall here.
    let Ok(repository) = over(disk.clone()) else { return first };
    for number in first..first + 100 {
        // An interrupted change may have reached the disk without an acknowledgement.
        let made = match repository.lookup_id(&id(number)) {
            Ok(Some(_)) => true,
            Ok(None) => make(&repository, number).is_ok(),
            Err(_) => false,
        };
        if !made {
            return number;
        }
        let passing = make(&repository, 1_000 + number).and_then(|passing| repository.destroy(passing));
        if passing.is_err() {
            return number + 1;
        }
    }
    panic!("100 definitions were acknowledged in fewer writes: they cannot be on the disk");
}

fn check_whole(bytes: &[u8], acknowledged: usize, seed: u64) {
    let repository = over(SharedDisk::holding(bytes.to_vec(), usize::MAX));
    let repository = repository.unwrap_or_else(|fault| panic!("seed {seed}: {fault}"));
    for number in 0..acknowledged {
        let found = repository.lookup_id(&id(number)).unwrap();
        let found = found.unwrap_or_else(|| panic!("seed {seed}: {number} of {acknowledged} is lost"));
        assert_eq!(repository.type_code(found).unwrap().member_count().unwrap(), 1, "seed {seed}");
    }
    // A change without an acknowledgement is there wholly or not at all.
    for number in repository.contents(DefinitionNumber::REPOSITORY).unwrap() {
        let record = repository.get(number).unwrap();
        assert_eq!(repository.lookup_id(&record.id).unwrap(), Some(number), "seed {seed}");
        assert_eq!(repository.lookup(DefinitionNumber::REPOSITORY, &record.name).unwrap(), Some(number));
        repository.type_code(number).unwrap();
    }
}

#[test]
fn acknowledged_definitions_survive_power_cuts() {
    let mut acknowledged_in_all = 0;
    let empty = store_with(0);
    for seed in 0..40 {
        let mut random = Random(seed);
        let mut bytes = empty.clone();
        let mut acknowledged = 0;
        // Several cuts in a row, so that a repaired store is cut again.
        for _ in 0..4 {
            let writes = 1 + usize::try_from(random.below(200)).unwrap();
            let disk = SharedDisk::holding(bytes, writes);
            acknowledged = make_until_cut(&disk, acknowledged);
            bytes = disk.after_cut(&mut random);
            check_whole(&bytes, acknowledged, seed);
        }
        acknowledged_in_all += acknowledged;
    }
    assert!(acknowledged_in_all > 100, "the cuts came too early to show anything: {acknowledged_in_all}");
}

/// Reads every definition. An error is a valid outcome.
fn read_all(repository: &InterfaceRepository) -> Result<usize, RepositoryError> {
    let mut found = 0;
    for number in repository.contents(DefinitionNumber::REPOSITORY)? {
        let record = repository.get(number)?;
        repository.absolute_name(number)?;
        repository.lookup_id(&record.id)?;
        repository.type_code(number)?;
        found += 1;
    }
    Ok(found)
}

#[test]
fn damaged_stores_are_reported_and_nothing_panics() {
    let whole = store_with(30);
    let (mut refused, mut complete) = (0, 0);
    for seed in 0..300 {
        let mut random = Random(seed);
        let mut bytes = whole.clone();
        let mut below = |bound: usize| usize::try_from(random.below(bound as u64)).unwrap();
        match below(3) {
            0 => bytes.truncate(below(whole.len())),
            1 => {
                for _ in 0..=below(8) {
                    let at = below(bytes.len());
                    bytes[at] ^= 1 << below(8);
                }
            }
            _ => {
                let (start, value) = (below(bytes.len()), below(256) as u8);
                let end = bytes.len().min(start + 4096);
                bytes[start..end].fill(value);
            }
        }
        let outcome = over(SharedDisk::holding(bytes, usize::MAX)).map_err(RepositoryError::from);
        match outcome.and_then(|repository| read_all(&repository)) {
            Err(RepositoryError::Store(_)) => refused += 1,
            Err(other) => panic!("seed {seed}: {other}"),
            Ok(found) => {
                assert_eq!(found, 30, "seed {seed}: silently lost");
                complete += 1;
            }
        }
    }
    assert!(refused > 50 && complete > 50, "{refused} refused, {complete} complete");
}
