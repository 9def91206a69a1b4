//! A servant keeps an argument of 16 MiB in the memory of its message. One test, because it counts the bytes that the
//! process has in use.

use std::sync::{Arc, Mutex};

use ironorb::{Orb, Ownable, OwnedSlice, SystemException, TypedRef};
use ironorb_tests::counting::CountingAllocator;
use ironorb_tests::eventually;
use ironorb_tests::keeping::{Depot, DepotRef, Sample};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator::new();

const ARGUMENT_BYTES: usize = 16 << 20;

#[derive(Default)]
struct Keeping {
    kept: Mutex<Vec<OwnedSlice<u8>>>,
    /// Bytes that came into use when the argument was kept.
    taken: Mutex<Vec<isize>>,
}

impl Depot for Keeping {
    fn put(&self, _: &str, data: Ownable<'_, u8>, _: &str) -> Result<bool, SystemException> {
        let before = ALLOCATOR.bytes();
        let owned = data.into_owned();
        self.taken.lock().unwrap().push(ALLOCATOR.bytes() - before);
        self.kept.lock().unwrap().push(owned);
        Ok(true)
    }

    fn numbers(&self, _: Ownable<'_, f64>, _: Ownable<'_, Sample>) -> Result<bool, SystemException> {
        Ok(false)
    }

    fn drop_off(&self, _: Ownable<'_, u8>) -> Result<(), SystemException> {
        Ok(())
    }

    fn names(&self, _: Ownable<'_, String>) -> Result<bool, SystemException> {
        Ok(false)
    }

    fn sum(&self, data: Ownable<'_, u8>) -> Result<u32, SystemException> {
        Ok(data.len() as u32)
    }
}

#[test]
fn a_kept_argument_takes_the_memory_of_its_message_and_no_more() {
    let server = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().build().unwrap();
    let client = Orb::builder().no_endpoint().build().unwrap();
    let servant = Arc::new(Keeping::default());
    let local: DepotRef = server.root_poa().activate_shared(servant.clone()).unwrap();
    let depot: DepotRef =
        client.string_to_object(&local.object().to_ior_string()).unwrap().narrow_unchecked();
    let data = vec![7; ARGUMENT_BYTES];
    depot.sum((&[1]).into()).unwrap();
    let before = ALLOCATOR.bytes();
    let argument = ARGUMENT_BYTES as isize;
    for count in 1..=3 {
        depot.put("", (&data).into(), "").unwrap();
        let taken = servant.taken.lock().unwrap().pop().unwrap();
        assert!(taken.abs() < 4096, "{taken} bytes to keep an argument");
        let in_use = ALLOCATOR.bytes() - before;
        assert!((count * argument..count * argument + SLACK_BYTES).contains(&in_use), "{in_use} for {count}");
    }
    // Octets become a vector where they lie.
    let first = servant.kept.lock().unwrap().remove(0);
    let in_use = ALLOCATOR.bytes();
    let first = first.into_vec();
    assert!(first == data && ALLOCATOR.bytes() < in_use + SLACK_BYTES);
    drop(first);
    servant.kept.lock().unwrap().clear();
    eventually("the memory is given back", || ALLOCATOR.bytes() - before < SLACK_BYTES);
    client.shutdown(true).unwrap();
    server.shutdown(true).unwrap();
}

/// What the connection and the test may have taken meanwhile.
const SLACK_BYTES: isize = 1 << 20;
