//! In the steady state a call allocates nothing from the heap, on either side.
//!
//! This test does not count system calls: the kernel's own counters leave sockets out, and a tracer needs a
//! program that may not be installed. `ironorb bench echo --counts` counts them.

// A counting allocator requires unsafe code.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

use ironorb::{Orb, SystemException, TypedRef};

mod idl {
    ironorb::include_idl!("echo");
}

use idl::bench::{Echo, EchoRef};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn a_call_takes_no_memory() {
    let server = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().build().unwrap();
    let served: EchoRef = server.root_poa().activate(Counted).unwrap();
    // A second ORB does not know that the object is in this process, so its calls use TCP.
    let client = Orb::builder().no_endpoint().build().unwrap();
    let remote: EchoRef =
        client.string_to_object(&served.object().to_ior_string()).unwrap().narrow_unchecked();
    let local: EchoRef = client.root_poa().activate(Counted).unwrap();

    let void = || remote.nothing().unwrap();
    let long = || assert_eq!(remote.take_long(7).unwrap(), 7);
    let oneway = || remote.forget().unwrap();
    let collocated = || local.nothing().unwrap();
    let collocated_long = || assert_eq!(local.take_long(7).unwrap(), 7);
    let string = || assert_eq!(remote.take_string("text").unwrap(), "text");
    let settle = || remote.nothing().unwrap();

    THREAD.set(Side::Client);
    assert_eq!(least_allocations(&void, &settle), (0, 0), "void");
    assert_eq!(least_allocations(&long, &settle), (0, 0), "long");
    assert_eq!(least_allocations(&oneway, &settle), (0, 0), "oneway");
    // In a collocated call the caller's thread runs the servant.
    assert_eq!(least_allocations(&collocated, &settle), (0, 0), "collocated");
    assert_eq!(least_allocations(&collocated_long, &settle), (0, 0), "collocated long");
    // A result that owns memory needs an allocation, which shows that the counting works.
    assert_eq!(least_allocations(&string, &settle), (CALLS, CALLS), "string");
    THREAD.set(Side::Other);
    client.shutdown(false).unwrap();
    server.shutdown(true).unwrap();
}

const CALLS: usize = 1000;

/// Allocations on the client's and the server's thread during [`CALLS`] calls, in the best of several rounds.
/// A thread that maintains connections may release a buffer during a round, but not during each call of every
/// round.
fn least_allocations(call: &dyn Fn(), settle: &dyn Fn()) -> (usize, usize) {
    let round = || {
        settle();
        let before = counted();
        (0..CALLS).for_each(|_| call());
        // This call is answered after everything before it on the connection has been carried out.
        settle();
        let after = counted();
        (after.0 - before.0, after.1 - before.1)
    };
    round(); // to warm up
    (0..5).map(|_| round()).min_by_key(|(client, server)| client + server).unwrap()
}

/// Returns its arguments, and marks the thread that serves as the server's.
struct Counted;

impl Counted {
    fn mark(&self) {
        if THREAD.get() == Side::Other {
            THREAD.set(Side::Server);
        }
    }
}

impl Echo for Counted {
    fn nothing(&self) -> Result<(), SystemException> {
        self.mark();
        Ok(())
    }

    fn forget(&self) -> Result<(), SystemException> {
        self.mark();
        Ok(())
    }

    fn take_long(&self, value: i32) -> Result<i32, SystemException> {
        self.mark();
        Ok(value)
    }

    fn take_string(&self, value: &str) -> Result<String, SystemException> {
        self.mark();
        Ok(value.to_owned())
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    /// Not counted: a thread on which no call runs.
    Other,
    Client,
    Server,
}

thread_local!(static THREAD: Cell<Side> = const { Cell::new(Side::Other) });

static CLIENT: AtomicUsize = AtomicUsize::new(0);
static SERVER: AtomicUsize = AtomicUsize::new(0);

fn counted() -> (usize, usize) {
    (CLIENT.load(Ordering::SeqCst), SERVER.load(Ordering::SeqCst))
}

/// Counts by the thread's side, and forwards to the system's allocator.
struct Counting;

fn count() {
    // A thread that is ending is not counted.
    match THREAD.try_with(Cell::get) {
        Ok(Side::Client) => CLIENT.fetch_add(1, Ordering::SeqCst),
        Ok(Side::Server) => SERVER.fetch_add(1, Ordering::SeqCst),
        Ok(Side::Other) | Err(_) => 0,
    };
}

// SAFETY: every call is forwarded unchanged to the system's allocator; counting does not allocate.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller keeps the contract of `alloc_zeroed`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        count();
        // SAFETY: the caller keeps the contract of `realloc`.
        unsafe { System.realloc(block, layout, new_size) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(block, layout) }
    }
}
