//! How late a thread that sleeps comes back: after a timer, and after a byte at a socket.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::thread::clock_nanosleep_absolute;
use rustix::time::{ClockId, Timespec, clock_gettime};

use super::Measured;

pub(super) fn all(samples: u32) -> io::Result<Vec<Measured>> {
    let mut timer = Measured::new("timer wake-up", "later than a sleep of 100 us should end");
    (0..samples).try_for_each(|_| lateness(now() + TIMER_PAUSE).map(|late| timer.record(late)))?;
    Ok(vec![timer, socket(samples)?])
}

/// The time on a clock that nobody sets.
pub(super) fn now() -> Timespec {
    clock_gettime(ClockId::Monotonic)
}

/// Sleeps until a time, and returns how much later it is then.
pub(super) fn lateness(until: Timespec) -> io::Result<Duration> {
    while let Err(e) = clock_nanosleep_absolute(ClockId::Monotonic, &until) {
        if e != rustix::io::Errno::INTR {
            return Err(e.into());
        }
    }
    Ok(Duration::try_from(now() - until).unwrap_or_default())
}

/// From the write to the return of the other thread's read, over TCP within the machine.
fn socket(samples: u32) -> io::Result<Measured> {
    let mut measured = Measured::new(
        "socket wake-up",
        "from a write to the return of a sleeping thread's read, TCP within the machine",
    );
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let mut near = TcpStream::connect(listener.local_addr()?)?;
    near.set_nodelay(true)?;
    let (far, _) = listener.accept()?;
    let (tell, told) = sync_channel(1);
    let reader = thread::spawn(move || read_in_turn(far, &tell));
    for _ in 0..samples {
        lateness(now() + SOCKET_PAUSE)?; // the reader sleeps by then
        let before = Instant::now();
        near.write_all(&[0])?;
        measured.record(told.recv().map_err(io::Error::other)?.saturating_duration_since(before));
    }
    drop(near);
    let _ = reader.join();
    Ok(measured)
}

fn read_in_turn(mut far: TcpStream, tell: &SyncSender<Instant>) {
    while far.read_exact(&mut [0]).is_ok() && tell.send(Instant::now()).is_ok() {}
}

const TIMER_PAUSE: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000 };
const SOCKET_PAUSE: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000 };
