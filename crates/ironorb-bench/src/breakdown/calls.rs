//! `ironorb bench echo --breakdown`: where the time of a call goes, on either side.

use std::fmt;

use ironorb::Orb;
use ironorb::probe::Stage;
use serde::Serialize;

use super::shares::Shares;
use super::watch::{Sides, Watch};
use crate::error::BenchError;
use crate::generated::bench::EchoRef;
use crate::machine::{Layout, load, pin};
use crate::options::EchoOptions;
use crate::process::Process;
use crate::rows::{Row, Server};

/// Where the time of one kind of call goes.
#[derive(Debug, Clone, Serialize)]
pub struct CallBreakdown {
    /// Which processor each side was on.
    pub layout: &'static str,
    /// What was called.
    pub row: String,
    /// Calls that were watched.
    pub calls: usize,
    /// The caller's thread, a call.
    pub client: Shares,
    /// The thread that serves, a call.
    pub server: Shares,
    /// The load average before, which tells whether others disturbed the figures.
    pub load: f64,
}

/// Watches the rows that pass a wire and are answered in the caller's thread; the others are left out.
pub(crate) fn calls(options: &EchoOptions, rows: &[Row]) -> Result<Vec<CallBreakdown>, BenchError> {
    let mut breakdowns = Vec::new();
    for layout in Layout::possible() {
        let args = ["--core".to_owned(), layout.server.to_string()];
        let mut server = Process::start(&[], "watched-server", &args)?;
        let line = server.address()?;
        let (echo, teller) = line.split_once(' ').ok_or_else(|| BenchError::Process {
            role: "watched-server".to_owned(),
            what: format!("told {line:?} instead of two references"),
        })?;
        let orb = Orb::builder().no_endpoint().build()?;
        pin(layout.client)?;
        let watch = Watch::new(orb.string_to_object(teller)?)?;
        let echo: EchoRef = orb.string_to_object(echo)?.narrow_unchecked();
        for row in rows.iter().filter(|row| row.server == Server::Tcp) {
            eprintln!("watching {} ({})", row.name, layout.name);
            let samples = row.samples(options.calls());
            let mut sample = row.sample(echo.clone());
            let mut repeat = || (0..samples).try_for_each(|_| sample());
            repeat()?; // to warm up
            let load = load();
            let mut all = Sides::default();
            for _ in 0..options.repetitions() {
                let ((), sides) = watch.during(&mut repeat)?;
                all += &sides;
            }
            let calls = samples * row.calls_per_sample() * options.repetitions();
            breakdowns.push(CallBreakdown {
                layout: layout.name,
                row: row.name.to_owned(),
                calls,
                client: Shares::of(&all.client, calls as f64),
                server: Shares::of(&all.server, calls as f64),
                load,
            });
        }
        server.end()?;
    }
    Ok(breakdowns)
}

impl fmt::Display for CallBreakdown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "\n{}, client and server on {}: microseconds a call, {} calls, load {:.1}",
            self.row, self.layout, self.calls, self.load
        )?;
        let sides = [&self.client, &self.server];
        writeln!(
            f,
            "{:<17} {:>9} {:>6} {:>6}   {:>9} {:>6} {:>6}",
            "stage", "client", "%", "times", "server", "%", "times"
        )?;
        for stage in Stage::ALL {
            let [client, server] = sides.map(|side| side.find(stage));
            if client.is_none() && server.is_none() {
                continue;
            }
            write!(f, "{:<17}", stage.name())?;
            for share in [client, server] {
                match share {
                    Some(share) => {
                        write!(f, " {:>9.3} {:>6.1} {:>6.2}  ", share.us, share.percent, share.times)?;
                    }
                    None => write!(f, " {:>9} {:>6} {:>6}  ", "-", "", "")?,
                }
            }
            writeln!(f)?;
        }
        write!(f, "{:<17}", "unaccounted")?;
        for side in sides {
            write!(f, " {:>9.3} {:>6.1} {:>6}  ", side.unaccounted_us, side.unaccounted_percent, "")?;
        }
        write!(f, "\n{:<17}", "all")?;
        for side in sides {
            write!(f, " {:>9.3} {:>6.1} {:>6}  ", side.elapsed_us, 100.0, "")?;
        }
        writeln!(f)
    }
}
