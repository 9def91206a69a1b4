//! A lock that lends priorities, of one word, as the ORB's: free, and with a thread that waits.

use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::thread::futex::{self, Flags};

use super::Measured;
use super::calls::batches;
use crate::cores::{self, CorePin};

pub(super) fn all(samples: u32) -> io::Result<Vec<Measured>> {
    let word = PiWord::new();
    let me = own_id();
    let free = batches("PI lock, free", "lock and unlock, mean of 100", samples, || {
        word.lock(me).and_then(|()| word.unlock(me)).expect("no other thread has the lock");
    });
    let mut all = vec![free];
    match contended(samples) {
        Ok(measured) => all.push(measured),
        // The doctor's finding tells.
        Err(e) if e.raw_os_error() == Some(Errno::NOSYS.raw_os_error()) => {}
        Err(e) => return Err(e),
    }
    Ok(all)
}

/// The word of futex(2)'s locks: 0, or the holder's id, with the highest bit while threads wait in the kernel.
struct PiWord(AtomicU32);

const WAITERS: u32 = 1 << 31;

impl PiWord {
    const fn new() -> PiWord {
        PiWord(AtomicU32::new(0))
    }

    fn lock(&self, me: u32) -> rustix::io::Result<()> {
        if self.0.compare_exchange(0, me, Ordering::Acquire, Ordering::Relaxed).is_ok() {
            return Ok(());
        }
        loop {
            match futex::lock_pi(&self.0, Flags::PRIVATE, None) {
                Err(Errno::AGAIN | Errno::INTR) => {}
                done => return done,
            }
        }
    }

    fn unlock(&self, me: u32) -> rustix::io::Result<()> {
        match self.0.compare_exchange(me, 0, Ordering::Release, Ordering::Relaxed) {
            Ok(_) => Ok(()),
            Err(_) => futex::unlock_pi(&self.0, Flags::PRIVATE),
        }
    }

    fn is_waited_for(&self) -> bool {
        self.0.load(Ordering::Relaxed) & WAITERS != 0
    }
}

/// From the release to the first instruction of the thread that has waited. Both threads have one processor.
fn contended(samples: u32) -> io::Result<Measured> {
    let mut measured =
        Measured::new("PI lock, contended", "from release to the waiting thread's turn, one processor");
    let _pin = cores::choose().and_then(CorePin::on);
    let word = PiWord::new();
    let (ask, asked) = sync_channel(1);
    let (tell, told) = sync_channel(1);
    thread::scope(|scope| {
        let word = &word;
        let ask = ask; // ends the other thread when it is dropped
        scope.spawn(move || wait_in_turn(word, &asked, &tell));
        (0..samples).try_for_each(|_| hold(word, &ask, &told).map(|time| measured.record(time)))
    })?;
    Ok(measured)
}

/// Holds the lock until the other thread waits for it, and returns how long that thread waits from the release on.
fn hold(
    word: &PiWord,
    ask: &SyncSender<()>,
    told: &Receiver<rustix::io::Result<Instant>>,
) -> io::Result<Duration> {
    let me = own_id();
    word.lock(me)?;
    ask.send(()).map_err(io::Error::other)?;
    while !word.is_waited_for() {
        if let Ok(Err(refused)) = told.try_recv() {
            return Err(refused.into());
        }
        thread::yield_now();
    }
    let released = Instant::now();
    word.unlock(me)?;
    Ok(told.recv().map_err(io::Error::other)??.saturating_duration_since(released))
}

/// Ends when the other thread asks no more.
fn wait_in_turn(word: &PiWord, asked: &Receiver<()>, tell: &SyncSender<rustix::io::Result<Instant>>) {
    let me = own_id();
    while asked.recv().is_ok() {
        let taken = word.lock(me).map(|()| Instant::now());
        let done = taken.and_then(|taken| word.unlock(me).map(|()| taken));
        if tell.send(done).is_err() {
            return;
        }
    }
}

fn own_id() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs()
}
