//! What `ironorb sim run` writes down of one run: its messages, and what its threads do.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use ironorb_machines::Packets;
use ironorb_model::record::pcapng::About;
use ironorb_model::record::{Extent, Timeline};
use ironorb_model::report::{Origin, RunOrder};
use ironorb_model::scenario::Scenario;
use ironorb_model::{Observations, Time};

use super::Level;
use crate::failure::Failure;
use crate::files::cannot_write;
use crate::output;

#[derive(Debug, Args)]
pub(super) struct Records {
    /// The file to write what threads do to: spans of virtual time, which `ui.perfetto.dev` and `chrome://tracing` show.
    #[arg(long, value_name = "FILE")]
    chrome: Option<PathBuf>,
    /// The file to write GIOP messages to: packets, which Wireshark and tshark read. Of level L1.
    #[arg(long, value_name = "FILE")]
    pcapng: Option<PathBuf>,
    /// How large each of these files grows, in MB. What happens later is left out.
    #[arg(long, value_name = "MB", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    records_max: u64,
}

/// The files of one run.
pub(super) struct Recorder<'r> {
    records: &'r Records,
    timeline: Option<Timeline>,
    packets: Option<Packets>,
}

impl Records {
    /// Refuses what cannot be written down.
    pub(super) fn check(&self, level: Level, scenarios: &[Scenario], file: &Path) -> Result<(), Failure> {
        if self.pcapng.is_some() && level == Level::L0 {
            return Err(Failure::usage("level L0 sends no octets that packets could carry")
                .with_help("add `--level L1`, or write spans with `--chrome`"));
        }
        if level == Level::L2 && (self.pcapng.is_some() || self.chrome.is_some()) {
            return Err(Failure::usage("level L2 runs in a program of its own, which writes nothing down")
                .with_help("add `--level L1`: its messages are the same"));
        }
        if let [_, _, ..] = scenarios
            && (self.pcapng.is_some() || self.chrome.is_some())
        {
            let names: Vec<String> = scenarios.iter().map(|it| format!("'{}'", it.name)).collect();
            let message = format!(
                "{} has {} scenarios, and a record is that of one run",
                file.display(),
                scenarios.len()
            );
            let help = format!("choose one with `--scenario`: {}", names.join(", "));
            return Err(Failure::usage(message).with_help(help));
        }
        Ok(())
    }

    pub(super) fn files(&self) -> [Option<&PathBuf>; 2] {
        [self.chrome.as_ref(), self.pcapng.as_ref()]
    }

    /// Begins the files.
    pub(super) fn begin(&self, level: Level, scenario: &Scenario) -> Result<Recorder<'_>, Failure> {
        let Origin { level, commit } = level.origin()?;
        let about = About { level: &level, name: &scenario.name, seed: scenario.seed, commit: &commit };
        let octets_max = self.records_max * 1_000_000;
        let timeline =
            begun(self.chrome.as_deref(), |out| Timeline::begin(out, &about, scenario, octets_max))?;
        let packets = begun(self.pcapng.as_deref(), |out| Packets::begin(out, &about, octets_max))?;
        Ok(Recorder { records: self, timeline, packets })
    }
}

impl Recorder<'_> {
    /// Does the run, and ends the files. `written` gets a line about each.
    pub(super) fn run(
        mut self,
        level: Level,
        scenario: &Scenario,
        order: RunOrder,
        written: &mut Vec<String>,
    ) -> Result<Observations, Failure> {
        let records =
            ironorb_machines::Records { timeline: self.timeline.as_mut(), packets: self.packets.as_mut() };
        let seen = level.run_recorded(scenario, order, records);
        let Recorder { records, timeline, packets } = self;
        let files =
            [(&records.chrome, timeline.map(Timeline::end)), (&records.pcapng, packets.map(Packets::end))];
        for (file, ended) in files {
            if let (Some(file), Some(ended)) = (file, ended) {
                let extent = ended.map_err(|e| cannot_write(file, &e))?;
                written.push(told(file, order.seed, extent));
            }
        }
        if seen.is_err() {
            // There is no report that could have the lines.
            written.drain(..).for_each(output::note);
        }
        seen
    }
}

fn begun<T>(
    file: Option<&Path>,
    begin: impl FnOnce(Box<dyn Write>) -> io::Result<T>,
) -> Result<Option<T>, Failure> {
    let Some(file) = file else { return Ok(None) };
    let begun = File::create(file).and_then(|out| begin(Box::new(BufWriter::new(out))));
    begun.map(Some).map_err(|e| cannot_write(file, &e))
}

fn told(file: &Path, seed: u64, extent: Extent) -> String {
    let Extent { until, is_whole } = extent;
    let seconds = until.since(Time::ZERO).as_secs_f64();
    let file = file.display();
    match is_whole {
        true => format!("{file}: the run with seed {seed}, {seconds} s"),
        false => {
            format!("{file}: the run with seed {seed} until {seconds} s, and no more: see `--records-max`")
        }
    }
}
