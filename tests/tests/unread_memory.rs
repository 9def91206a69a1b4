//! The memory of replies that clients do not read, measured by what is asked of the allocator.

use std::io::Read;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use ironorb::{Orb, OrbConfig, ServerConcurrency, SystemException, TypedRef};
use ironorb_tests::counting::CountingAllocator;
use ironorb_tests::wires::{ExchangeRef, Listener, ListenerRef};
use ironorb_tests::{eventually, raw};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator::new();

const ALL: [ServerConcurrency; 5] = [
    ServerConcurrency::ThreadPerConnection,
    ServerConcurrency::LeaderFollowers { threads: 4 },
    ServerConcurrency::Reactor,
    // The first connections have threads of their own.
    ServerConcurrency::Hybrid { threads_max: 4096 },
    ServerConcurrency::Hybrid { threads_max: 24 },
];

/// Answers `filled` with a given number of bytes.
struct Generous {
    bytes: usize,
    asked: AtomicUsize,
}

impl Listener for Generous {
    fn nested_call(&self, _: Option<&ExchangeRef>, _: i32) -> Result<i32, SystemException> {
        Ok(1)
    }

    fn notify(&self, _: &str) -> Result<(), SystemException> {
        Ok(())
    }

    fn filled(&self, _: &[u8]) -> Result<Vec<u8>, SystemException> {
        let reply = vec![7; self.bytes];
        self.asked.fetch_add(1, Ordering::SeqCst);
        Ok(reply)
    }
}

fn server(
    concurrency: ServerConcurrency,
    bytes: usize,
    settings: impl FnOnce(&mut OrbConfig),
) -> (Orb, Arc<Generous>, ListenerRef) {
    let mut builder = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().concurrency(concurrency);
    // The send buffer's size is fixed, so that the test knows how much the system takes.
    builder.config().send_queue_bytes = Some(64 << 10);
    builder.config().transmit_timeout = Duration::from_secs(300);
    settings(builder.config());
    let server = builder.build().unwrap();
    let generous = Arc::new(Generous { bytes, asked: AtomicUsize::new(0) });
    let listener = server.root_poa().activate_shared(generous.clone()).unwrap();
    (server, generous, listener)
}

fn ask(listener: &ListenerRef) -> TcpStream {
    let mut stream = raw::connect_narrow(listener.object());
    raw::write(&mut stream, &request(listener));
    stream
}

fn request(listener: &ListenerRef) -> Vec<u8> {
    raw::request(listener.object(), "filled", &[0; 4])
}

/// One test, because it measures the memory of the whole process.
#[test]
fn unread_replies_take_bounded_memory() {
    ALL.into_iter().for_each(check_memory_of_replies);
    ALL.into_iter().for_each(check_limit_of_replies);
    ALL.into_iter().for_each(check_replies_beyond_the_limit);
}

fn check_memory_of_replies(concurrency: ServerConcurrency) {
    const CONNECTIONS: usize = 10;
    const REPLY_BYTES: usize = 8 << 20;
    const SLACK_BYTES: isize = 1 << 20;
    let (server, generous, listener) = server(concurrency, REPLY_BYTES, |_| {});
    let before = ALLOCATOR.bytes();
    let streams: Vec<TcpStream> = (0..CONNECTIONS).map(|_| ask(&listener)).collect();
    eventually("all are answered", || generous.asked.load(Ordering::SeqCst) == CONNECTIONS);
    let taken = || ALLOCATOR.bytes() - before;
    let replies = (CONNECTIONS * REPLY_BYTES) as isize;
    eventually("results are gone that have been written", || taken() <= replies + SLACK_BYTES);
    println!("{concurrency:?}: {} KiB for each unread reply of 8 MiB", (taken() / 10) >> 10);
    for mut stream in streams {
        assert!(raw::read_message(&mut stream).len() > REPLY_BYTES);
    }
    eventually("nothing is kept", || taken() <= SLACK_BYTES);
    server.shutdown(true).unwrap();
}

fn check_limit_of_replies(concurrency: ServerConcurrency) {
    const CONNECTIONS: usize = 12;
    const REPLY_BYTES: usize = 2 << 20;
    const LIMIT_BYTES: usize = 8 << 20;
    let limit = |config: &mut OrbConfig| config.transmit_memory_max = Some(LIMIT_BYTES);
    let (server, generous, listener) = server(concurrency, REPLY_BYTES, limit);
    let before = ALLOCATOR.bytes();
    let streams: Vec<TcpStream> = (0..CONNECTIONS).map(|_| ask(&listener)).collect();
    eventually("all are answered", || generous.asked.load(Ordering::SeqCst) == CONNECTIONS);
    eventually("it is no more than there may be", || {
        ALLOCATOR.bytes() - before <= (LIMIT_BYTES + (1 << 20)) as isize
    });
    let whole = streams.into_iter().filter(|stream| reads_all(stream, REPLY_BYTES)).count();
    // The system has taken a part of each reply, but less than a quarter.
    assert!((1..=6).contains(&whole), "{whole} for {concurrency:?}");
    // The server has room again.
    assert!(reads_all(&ask(&listener), REPLY_BYTES), "{concurrency:?}");
    server.shutdown(true).unwrap();
}

/// Reads a reply of this size. False if its connection was closed before the end.
fn reads_all(mut stream: &TcpStream, bytes: usize) -> bool {
    let (mut taken, mut space) = (0, vec![0; 1 << 20]);
    while taken <= bytes
        && let Ok(count @ 1..) = stream.read(&mut space)
    {
        taken += count;
    }
    taken > bytes
}

/// A reply larger than the limit is let out. Beside one that is not read there is no room for another.
fn check_replies_beyond_the_limit(concurrency: ServerConcurrency) {
    const REPLY_BYTES: usize = 8 << 20;
    let limit = |config: &mut OrbConfig| {
        config.transmit_memory_max = Some(1 << 20);
        config.transmit_bytes_max = 64 << 10;
    };
    let (server, generous, listener) = server(concurrency, REPLY_BYTES, limit);
    let before = ALLOCATOR.bytes();
    let mut stream = ask(&listener);
    for n in 1..=3 {
        eventually("it is answered", || generous.asked.load(Ordering::SeqCst) == n);
        assert!(raw::read_message(&mut stream).len() > REPLY_BYTES, "{concurrency:?}");
        if n < 3 {
            raw::write(&mut stream, &request(&listener));
        }
    }
    drop(stream);
    let both = [ask(&listener), ask(&listener)];
    eventually("both are answered", || generous.asked.load(Ordering::SeqCst) == 5);
    eventually("one is closed", || ALLOCATOR.bytes() - before <= (REPLY_BYTES + (1 << 20)) as isize);
    let whole = both.into_iter().filter(|stream| reads_all(stream, REPLY_BYTES)).count();
    assert_eq!(whole, 1, "{concurrency:?}");
    server.shutdown(true).unwrap();
}
