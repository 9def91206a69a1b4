//! Names the thread that keeps the simulation from going on: one that waits for the system itself, computes without end, or asks
//! for ever for what does not come.

use std::sync::mpsc;
use std::time::Duration;
use std::{fs, process, thread};

use crate::calls::progress;

/// A step that takes longer than this, asleep, is held up by something that is not simulated.
const BLOCKED_SECONDS_MAX: u32 = 3;
/// A step that computes longer than this does not end.
const COMPUTING_SECONDS_MAX: u32 = 120;
/// Threads that ask for longer than this for what is not there, while nothing happens, ask for ever.
const POLLING_SECONDS_MAX: u32 = 120;

/// Starts the watch over this process, before the simulation begins: a thread that starts takes locks of the standard
/// library, so this returns when it has done so. From then on the watch takes none.
pub(crate) fn begin() {
    let (tell, has_begun) = mpsc::channel();
    let watch = thread::Builder::new().name("watchdog".to_owned()).spawn(move || {
        let _ = tell.send(()); // who waits for it is there
        drop(tell);
        watch();
    });
    drop(watch.expect("the system makes no more threads"));
    has_begun.recv().expect("the watchdog says that it has begun");
}

fn watch() {
    let mut last = progress();
    let (mut asleep, mut computing, mut polling) = (0, 0, 0);
    loop {
        thread::sleep(Duration::from_secs(1));
        let now = progress();
        let is_stuck = (now.steps, now.running) == (last.steps, last.running);
        let polls = now.polls > last.polls && now.events == last.events;
        last = now;
        let count = |seconds: u32, is_so: bool| if is_so { seconds + 1 } else { 0 };
        asleep = count(asleep, is_stuck && is_asleep(now.running));
        computing = count(computing, is_stuck);
        polling = count(polling, polls);
        let what = if asleep > BLOCKED_SECONDS_MAX {
            "waits for the system, outside of the simulation"
        } else if computing > COMPUTING_SECONDS_MAX {
            "computes without end"
        } else if polling > POLLING_SECONDS_MAX {
            "asks again and again for what does not come, while nothing happens"
        } else {
            continue;
        };
        eprintln!("a thread of the simulation {what}. It is here:");
        crate::calls::show_where(now.running);
        thread::sleep(Duration::from_secs(5));
        process::abort();
    }
}

/// Whether the system says that a thread sleeps.
fn is_asleep(thread: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/self/task/{thread}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with(['S', 'D']))
}
