//! The memory of idle connections in the server, measured by what is asked of the allocator: their buffers
//! are released where no thread belongs to them.

use std::net::TcpStream;
use std::time::Duration;

use ironorb::{Orb, ServerConcurrency, TypedRef};
use ironorb_tests::counting::CountingAllocator;
use ironorb_tests::testing::ProbeRef;
use ironorb_tests::{Probing, eventually, raw};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator::new();

const CONNECTIONS: usize = 200;

/// One test, because it measures the memory of the whole process.
#[test]
fn idle_connections_release_their_buffers() {
    for (concurrency, bytes_max) in [
        (ServerConcurrency::LeaderFollowers { threads: 2 }, 4 << 10),
        (ServerConcurrency::Reactor, 4 << 10),
        (ServerConcurrency::Hybrid { threads_max: 4 }, 4 << 10),
        // A read buffer, and the thread's own memory. The thread waits with its buffers, so it keeps those
        // of larger messages too.
        (ServerConcurrency::ThreadPerConnection, 40 << 10),
    ] {
        let mut builder = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().concurrency(concurrency);
        builder.config().message_timeout = Some(Duration::from_millis(80)); // it sets how often the server looks
        let server = builder.build().unwrap();
        let probe: ProbeRef = server.root_poa().activate(Probing::default()).unwrap();
        let mut blob = 50_000u32.to_be_bytes().to_vec();
        blob.resize(4 + 50_000, 7);
        let (small, large) =
            (raw::request(probe.object(), "ping", &[]), raw::request(probe.object(), "reflect", &blob));
        let address = server.published_addresses()[0].clone();
        let before = ALLOCATOR.bytes();
        let mut streams: Vec<TcpStream> = Vec::new();
        let are_large_kept = concurrency == ServerConcurrency::ThreadPerConnection;
        for n in 0..CONNECTIONS {
            let mut stream = TcpStream::connect(address.trim_start_matches("iiop://")).unwrap();
            for request in [&small, if n % 4 == 0 && !are_large_kept { &large } else { &small }] {
                raw::write(&mut stream, request);
                assert_eq!(raw::read_message(&mut stream)[7], 1, "a Reply");
            }
            streams.push(stream);
        }
        let each = || (ALLOCATOR.bytes() - before) / CONNECTIONS as isize;
        eventually(&format!("{concurrency:?}: at most {bytes_max} bytes each"), || each() <= bytes_max);
        println!("{concurrency:?}: {} bytes for each connection at rest", each());
        // Idle connections are served as before.
        for stream in &mut streams {
            raw::write(stream, &large);
            assert_eq!(raw::read_message(stream)[7], 1, "a Reply");
        }
        drop(streams);
        server.shutdown(true).unwrap();
    }
}
