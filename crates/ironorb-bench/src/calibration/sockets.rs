//! Plain threads and sockets: how late sleepers wake up, and how long the wake-up of a thread that waits at a socket takes.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use ironorb_model::profile::Times;

use super::{Calibrate, QUANTILES};
use crate::error::BenchError;
use crate::machine::{Layout, pin};

/// How much later than after the time that it asked for a thread goes on.
pub(super) fn sleeps(options: &Calibrate) -> Times {
    let asked = Duration::from_millis(1);
    let late = |_| {
        let begun = Instant::now();
        thread::sleep(asked);
        begun.elapsed().saturating_sub(asked).as_nanos() as f64
    };
    Times::of((0..options.choose(20, 1_000)).map(late).collect(), QUANTILES)
}

/// Octets of a message: those of a small request.
const MESSAGE: usize = 100;

/// A thread waits at a socket for as long as the other one sleeps, and then sends. Gives nanoseconds from the end of the send to the
/// waiting thread's first instruction, those of the sends, and how long the thread had waited in the mean.
pub(super) fn wake_ups(
    layout: Layout,
    idle: Duration,
    samples: usize,
) -> Result<(Vec<f64>, Vec<f64>, f64), BenchError> {
    let (mut near, far) = pair()?;
    let (woken, times) = mpsc::channel();
    let waiter = thread::spawn(move || wait(far, layout.server, &woken));
    let (mut late, mut sends, mut waited) = (Vec::new(), Vec::new(), 0.0);
    let mut message = [7; MESSAGE];
    let mut ended = Instant::now();
    // The first ones find cold caches.
    let warm_up = samples / 10;
    for sample in 0..warm_up + samples {
        if !idle.is_zero() {
            thread::sleep(idle);
        }
        let begun = Instant::now();
        near.write_all(&message).map_err(BenchError::io("send"))?;
        let sent = Instant::now();
        near.read_exact(&mut message).map_err(BenchError::io("receive"))?;
        let woken: Instant = times.recv().map_err(|_| BenchError::process("waiter", "has ended"))?;
        if sample >= warm_up {
            late.push(woken.saturating_duration_since(sent).as_nanos() as f64);
            sends.push((sent - begun).as_nanos() as f64);
            waited += (begun - ended).as_nanos() as f64;
        }
        ended = woken;
    }
    drop(near);
    waiter.join().map_err(|_| BenchError::process("waiter", "has panicked"))??;
    Ok((late, sends, (waited / samples.max(1) as f64).round()))
}

fn wait(mut far: TcpStream, core: usize, woken: &mpsc::Sender<Instant>) -> Result<(), BenchError> {
    pin(core)?;
    let mut message = [0; MESSAGE];
    while far.read_exact(&mut message).is_ok() {
        let at = Instant::now();
        // The other end may have gone, having seen enough.
        let _ = woken.send(at);
        if far.write_all(&message).is_err() {
            break;
        }
    }
    Ok(())
}

/// What a send and a receive of a message that is there take this thread, in nanoseconds: the messages go to itself.
pub(super) fn send_and_receive(rounds: usize) -> Result<(f64, f64), BenchError> {
    let (mut near, mut far) = pair()?;
    let mut message = [7; MESSAGE];
    let (mut sends, mut receives) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let begun = Instant::now();
        near.write_all(&message).map_err(BenchError::io("send"))?;
        let sent = Instant::now();
        far.read_exact(&mut message).map_err(BenchError::io("receive"))?;
        sends.push((sent - begun).as_nanos() as f64);
        receives.push(sent.elapsed().as_nanos() as f64);
    }
    let median = |mut ns: Vec<f64>| {
        ns.sort_by(f64::total_cmp);
        ns.get(ns.len() / 2).copied().unwrap_or(1.0)
    };
    Ok((median(sends), median(receives)))
}

fn pair() -> Result<(TcpStream, TcpStream), BenchError> {
    let io = || BenchError::io("connect two sockets");
    let listener = TcpListener::bind("127.0.0.1:0").map_err(io())?;
    let near = TcpStream::connect(listener.local_addr().map_err(io())?).map_err(io())?;
    let (far, _) = listener.accept().map_err(io())?;
    [&near, &far].into_iter().try_for_each(|end| end.set_nodelay(true)).map_err(io())?;
    Ok((near, far))
}
