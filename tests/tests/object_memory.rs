//! Bytes of an active object beside its servant, as requested from the allocator. A system's allocator adds a
//! few bytes to each block.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use ironorb::poa::{IdUniqueness, PoaPolicies};
use ironorb::{Orb, SystemException};
use ironorb_tests::counting::CountingAllocator;
use ironorb_tests::testing::{Unrelated, UnrelatedRef};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator::new();

/// A servant of 16 bytes, as in the measurements of other ORBs.
#[derive(Default)]
struct Small {
    calls: AtomicU32,
    _rest: [u32; 3],
}

/// Bytes that `Arc` adds to a servant.
const COUNTS: isize = 16;

#[test]
fn an_object_takes_little_beside_its_servant() {
    let orb = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().build().unwrap();
    let multiple = PoaPolicies { id_uniqueness: IdUniqueness::Multiple, ..PoaPolicies::default() };
    for objects in [25_000, 32_768, 40_000, 55_000] {
        let unique = bytes_an_object(&orb, PoaPolicies::default(), objects, Ids::System);
        let multiple = bytes_an_object(&orb, multiple, objects, Ids::System);
        let sought = bytes_an_object(&orb, PoaPolicies::default(), objects, Ids::Sought);
        let persistent = bytes_an_object(&orb, PoaPolicies::PERSISTENT, objects, Ids::Own("object"));
        let long = bytes_an_object(&orb, PoaPolicies::PERSISTENT, objects, Ids::Own("a rather long name"));
        println!(
            "{objects} objects: {unique} bytes each, {multiple} with MULTIPLE_ID, {sought} where servants are looked for, \
             {persistent} persistent, {long} with long ids"
        );
        assert!(unique <= 35, "{unique} bytes for each of {objects}");
        assert!(multiple <= 35, "{multiple} bytes for each of {objects} with MULTIPLE_ID");
        assert!(sought <= 48, "{sought} bytes for each of {objects} where servants are looked for");
        // These objects have ids of their own, which must be found. Ids of up to 16 octets are stored with
        // the objects.
        assert!(persistent <= 64, "{persistent} bytes for each of {objects} persistent ones");
        assert!(long <= 160, "{long} bytes for each of {objects} with long ids");
    }
    orb.shutdown(true).unwrap();
}

/// The origin of object ids.
#[derive(Clone, Copy)]
enum Ids {
    System,
    /// The adapter assigns ids, and the test asks for the object of a servant.
    Sought,
    /// The application assigns ids with this prefix and up to nine further octets.
    Own(&'static str),
}

fn bytes_an_object(orb: &Orb, policies: PoaPolicies, objects: usize, ids: Ids) -> isize {
    let poa = orb.root_poa().create_poa("counted", None, policies).unwrap();
    let before = ALLOCATOR.bytes();
    for n in 0..objects {
        let servant = ironorb::servant::<UnrelatedRef, _>(Arc::new(Small::default()));
        match ids {
            Ids::Own(begin) => {
                poa.activate_object_with_id(&format!("{begin} {n:08}").into(), servant).unwrap()
            }
            Ids::System => drop(poa.activate_object(servant).unwrap()),
            Ids::Sought => {
                let id = poa.activate_object(servant.clone()).unwrap();
                assert_eq!(poa.servant_to_id(&servant).unwrap(), id);
            }
        }
    }
    let taken = ALLOCATOR.bytes() - before;
    poa.destroy(false, true).unwrap();
    taken / objects as isize - COUNTS - size_of::<Small>() as isize
}

impl Unrelated for Small {
    fn nothing(&self) -> Result<(), SystemException> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}
