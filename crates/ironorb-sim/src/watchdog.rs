//! Names the thread that blocks outside of the simulation: one that waits for the system itself, so that nothing goes on.

use std::sync::mpsc;
use std::time::Duration;
use std::{fs, process, thread};

use crate::calls::progress;

/// A step that takes longer than this, asleep, is held up by something that is not simulated.
const BLOCKED_SECONDS_MAX: u32 = 3;
/// A step that computes longer than this does not end.
const COMPUTING_SECONDS_MAX: u32 = 120;

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
    let (mut asleep, mut seconds) = (0, 0);
    loop {
        thread::sleep(Duration::from_secs(1));
        let now = progress();
        if now != last {
            (last, asleep, seconds) = (now, 0, 0);
            continue;
        }
        seconds += 1;
        asleep = if is_asleep(now.1) { asleep + 1 } else { 0 };
        if asleep > BLOCKED_SECONDS_MAX || seconds > COMPUTING_SECONDS_MAX {
            let what = if asleep > BLOCKED_SECONDS_MAX {
                "waits for the system, outside of the simulation"
            } else {
                "computes without end"
            };
            eprintln!("a thread of the simulation {what}. It is here:");
            crate::calls::show_where(now.1);
            thread::sleep(Duration::from_secs(5));
            process::abort();
        }
    }
}

/// Whether the system says that a thread sleeps.
fn is_asleep(thread: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/self/task/{thread}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with(['S', 'D']))
}
