//! Redis with the client-side cache of the `redis` crate (RESP3), as a side of `ironorb bench caching`.
//!
//! `ironorb-bench-redis HOST:PORT` prints `ready` once it is connected, with two connections: one that writes, and one that reads
//! through its cache. Each line of its standard input asks for samples, and is answered with their nanoseconds:
//!
//! - `hits N`: reads of a value that the cache holds
//! - `calls N`: reads by a request to the server
//! - `visible N`: from a write until the other connection reads it, each
//!
//! It ends with its standard input.

#![forbid(unsafe_code)]

use std::io::{self, Write as _};
use std::process::ExitCode;
use std::time::Instant;

use redis::AsyncConnectionConfig;
use redis::aio::MultiplexedConnection;
use redis::caching::CacheConfig;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

const KEY: &str = "value";

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            let _ = writeln!(io::stderr(), "ironorb-bench-redis: {e}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let address = std::env::args().nth(1).ok_or("usage: ironorb-bench-redis HOST:PORT")?;
    // One thread: a read that finds the value in the cache wakes no other.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut clients = runtime.block_on(Clients::connect(&address))?;
    say("ready")?;
    for line in io::stdin().lines() {
        let line = line?;
        let (what, count) = line.split_once(' ').ok_or("a line is a word and a number")?;
        let count = count.parse()?;
        let nanos = match what {
            "hits" => runtime.block_on(clients.hits(count))?,
            "calls" => runtime.block_on(clients.calls(count))?,
            "visible" => runtime.block_on(clients.visible(count))?,
            other => return Err(format!("there is no {other:?}").into()),
        };
        say(&nanos.to_string())?;
    }
    Ok(())
}

fn say(line: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}

struct Clients {
    writer: MultiplexedConnection,
    reader: MultiplexedConnection,
    written: i32,
}

impl Clients {
    async fn connect(address: &str) -> Result<Clients> {
        let client = redis::Client::open(format!("redis://{address}/?protocol=resp3"))?;
        let caching = AsyncConnectionConfig::new().set_cache_config(CacheConfig::new());
        let writer = client.get_multiplexed_async_connection().await?;
        let reader = client.get_multiplexed_async_connection_with_config(&caching).await?;
        let mut clients = Clients { writer, reader, written: 0 };
        clients.write().await?;
        clients.read().await?;
        Ok(clients)
    }

    async fn write(&mut self) -> Result<()> {
        self.written += 1;
        Ok(redis::cmd("SET").arg(KEY).arg(self.written).query_async(&mut self.writer).await?)
    }

    async fn read(&mut self) -> Result<i32> {
        Ok(redis::cmd("GET").arg(KEY).query_async(&mut self.reader).await?)
    }

    async fn hits(&mut self, count: u32) -> Result<u128> {
        self.read().await?;
        let begun = Instant::now();
        for _ in 0..count {
            std::hint::black_box(self.read().await?);
        }
        Ok(begun.elapsed().as_nanos())
    }

    async fn calls(&mut self, count: u32) -> Result<u128> {
        let begun = Instant::now();
        for _ in 0..count {
            let value: i32 = redis::cmd("GET").arg(KEY).query_async(&mut self.writer).await?;
            std::hint::black_box(value);
        }
        Ok(begun.elapsed().as_nanos())
    }

    async fn visible(&mut self, count: u32) -> Result<u128> {
        let begun = Instant::now();
        for _ in 0..count {
            self.write().await?;
            while self.read().await? != self.written {
                // The connection's task takes the server's word that the value has changed.
                tokio::task::yield_now().await;
            }
        }
        Ok(begun.elapsed().as_nanos())
    }
}
