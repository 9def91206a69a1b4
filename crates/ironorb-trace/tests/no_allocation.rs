//! In the steady state a context takes nothing from the heap of the client. The server takes memory for `tracestate`
//! alone.

// A counting allocator requires unsafe code.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

use ironorb::{Orb, TypedRef};
use ironorb_tests::Hooked;
use ironorb_tests::testing::{Probe, ProbeRef};
use ironorb_trace::{CurrentTrace, TraceContext};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn contexts_take_no_memory_but_for_the_state_that_a_server_keeps() {
    let builder = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap();
    let server = ironorb_trace::install(builder).build().unwrap();
    let mark = || {
        assert!(CurrentTrace::get().is_some());
        if SIDE.get() == Side::Other {
            SIDE.set(Side::Server);
        }
        Ok(())
    };
    let served: ProbeRef = server.root_poa().activate(Hooked::new(mark)).unwrap();
    let client = ironorb_trace::install(Orb::builder().no_endpoint()).build().unwrap();
    let ior = served.object().to_ior_string();
    let probe: ProbeRef = client.string_to_object(&ior).unwrap().narrow_unchecked();
    let root = TraceContext::begin(true);
    SIDE.set(Side::Client);
    let guard = CurrentTrace::enter(root.clone());
    assert_eq!(fewest(&|| probe.ping().unwrap()), (0, 0));
    drop(guard);
    let _guard = CurrentTrace::enter(root.with_state("vendor=1".parse().unwrap()));
    assert_eq!(fewest(&|| probe.ping().unwrap()), (0, CALLS));
    SIDE.set(Side::Other);
    client.shutdown(false).unwrap();
    server.shutdown(true).unwrap();
}

const CALLS: usize = 1000;

/// Allocations on the client's and the server's thread during [`CALLS`] calls, in the best of several rounds: a thread
/// that maintains connections may release a buffer during one.
fn fewest(call: &dyn Fn()) -> (usize, usize) {
    let counts = || [&CLIENT, &SERVER].map(|count| count.load(Ordering::SeqCst));
    let round = || {
        // The server has counted what it does after its reply when it has answered the next call.
        call();
        let before = counts();
        (0..CALLS).for_each(|_| call());
        let after = counts();
        (after[0] - before[0], after[1] - before[1])
    };
    round(); // to warm up
    (0..5).map(|_| round()).min_by_key(|(client, server)| client + server).unwrap()
}

static CLIENT: AtomicUsize = AtomicUsize::new(0);
static SERVER: AtomicUsize = AtomicUsize::new(0);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Client,
    Server,
    Other,
}

thread_local! {
    static SIDE: Cell<Side> = const { Cell::new(Side::Other) };
}

/// The system's allocator, which counts the allocations of both threads.
struct Counting;

fn count() {
    match SIDE.try_with(Cell::get) {
        Ok(Side::Client) => CLIENT.fetch_add(1, Ordering::SeqCst),
        Ok(Side::Server) => SERVER.fetch_add(1, Ordering::SeqCst),
        _ => 0,
    };
}

// SAFETY: every call goes to the system's allocator. The counters do not touch the memory.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller keeps the contract of `GlobalAlloc::alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: the caller keeps the contract of `GlobalAlloc::realloc`.
        unsafe { System.realloc(place, layout, size) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `GlobalAlloc::dealloc`.
        unsafe { System.dealloc(place, layout) }
    }
}
