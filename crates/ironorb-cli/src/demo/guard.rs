//! Removes everything that the demo leaves behind, also when it is interrupted or hangs.

use std::path::{Path, PathBuf};
use std::time::Duration;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use tempfile::TempDir;

use crate::failure::Failure;
use crate::output;

/// Holds the temporary folder. The other processes end by themselves when this process ends.
pub(super) struct Guard {
    folder: TempDir,
}

impl Guard {
    /// Starts the guard: from now on a signal, or the end of `limit`, removes the folder and ends the
    /// process.
    pub(super) fn new(limit: Duration) -> Result<Guard, Failure> {
        let folder = tempfile::Builder::new()
            .prefix("ironorb-demo-")
            .tempdir()
            .map_err(|e| Failure::new(format!("cannot make a temporary folder: {e}")))?;
        let mut signals = Signals::new([SIGINT, SIGTERM])
            .map_err(|e| Failure::new(format!("cannot wait for signals: {e}")))?;
        let path = folder.path().to_owned();
        let path_too = path.clone();
        // Both threads live until the process ends, which is soon.
        std::thread::spawn(move || {
            if let Some(signal) = signals.forever().next() {
                end(&path, &format!("interrupted by signal {signal}"), 128 + signal);
            }
        });
        std::thread::spawn(move || {
            std::thread::sleep(limit);
            end(&path_too, &format!("the demo is not done after {} s: giving up", limit.as_secs()), 1);
        });
        Ok(Guard { folder })
    }

    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }
}

fn end(folder: &PathBuf, why: &str, code: i32) -> ! {
    output::note(format_args!("error: {why}"));
    let _ = std::fs::remove_dir_all(folder);
    std::process::exit(code)
}
