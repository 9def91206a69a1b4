//! `ironorb bench papers`: every figure and table of five papers, measured again, and each of their conclusions judged.
//!
//! [`catalogue`] has the papers as data. A figure names a configuration, which is a suite of this program with options. Each part of
//! a configuration runs in a process of its own; its rows are stored ([`state`]), and a later run goes on where one has ended. The
//! page is made from the stored rows alone: figures, tables, and verdicts that functions compute from rows ([`page`]).
//!
//! Suites could also be called as functions in this process. As processes they leave no threads, memory and processors to the next
//! one, may run in another namespace or be a program with probes, and write the rows that are to be stored anyway.

mod axes;
mod catalogue;
mod dii_96;
mod minorb_99;
mod pace;
mod page;
mod par_04;
mod rows;
mod rt_99;
mod state;
mod tao_97;
mod two_hosts;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use ironorb::probe;

use crate::error::BenchError;
use crate::machine::Machine;
use crate::paced::class::{Class, PRIORITY_MAX};
use crate::variant::name;
use catalogue::{Chosen, Configuration, Length, choose};
use pace::Pace;
use page::Page;
use state::{Head, Identity, State};
use two_hosts::TwoHosts;

/// `ironorb bench papers`
///
/// Takes some two hours, and `--minutes` at most. A run that was ended goes on where it was, in the same state folder.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct PapersOptions {
    /// Only these papers, or figures of them: `tao-97`, `tao-97/figure-8`.
    #[arg(long, value_delimiter = ',', value_name = "PAPER")]
    only: Vec<String>,
    /// Make few calls of each kind, in about ten minutes: enough to see that all works, not to measure. Every heading says so.
    #[arg(long)]
    quick: bool,
    /// Give all that is chosen so many minutes, those of stored parts included: where time is short, parts that repeat what they
    /// measure do so less often, and the page says how often. The fewest runs that tell something take an hour and a quarter.
    #[arg(long, value_name = "MINUTES", default_value_t = 150, conflicts_with = "quick")]
    minutes: u32,
    /// Write the page to this file.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// The folder in which rows are kept as they come. Default: the page's name with the ending `state`.
    #[arg(long, value_name = "FOLDER")]
    state: Option<PathBuf>,
    /// Put client and server of the papers with a network on two hosts: network namespaces with a virtual cable.
    #[arg(long)]
    netns: bool,
    /// The cable's largest packet in bytes.
    #[arg(long, value_name = "BYTES", default_value_t = 9_180)]
    mtu: u32,
    /// The same program built with probes, which tells where time goes. Default: `ironorb-probes` beside this program.
    #[arg(long, value_name = "FILE")]
    probe_program: Option<PathBuf>,
}

/// Runs `ironorb bench papers`: measures what is not stored yet, prints the verdicts, and writes the page.
pub(crate) fn papers(options: &PapersOptions) -> Result<(), BenchError> {
    let chosen = choose(&options.only)?;
    let (hosts, mut notes) = options.hosts();
    let class = real_time_class();
    let mut machine = Machine::this();
    let identity = identity(&machine, options, hosts.as_ref(), class);
    let state = State::open(&options.state_folder(), identity)?;
    let runner =
        Runner { is_quick: options.quick, class: name(class), hosts, probes: options.probe_program() };
    notes.extend(notes_of(class));
    let seconds = (!options.quick).then(|| f64::from(options.minutes) * 60.0);
    let missing = measure(&chosen, &state, seconds, |measurement, files| runner.run(measurement, files))?;
    machine.end();
    notes.extend(note_of_runs(&chosen, &state));
    notes.extend(missing.iter().map(|(name, why)| {
        format!("Not all of {name} was measured, and verdicts that need it are of what was: {why}")
    }));
    let configurations = || chosen.iter().flat_map(Chosen::configurations);
    // Conclusions of one paper may need rows of another.
    let measured = state.measured(catalogue::papers().into_iter().flat_map(|paper| paper.configurations));
    let commands = configurations().map(|it| (it.name, runner.commands(it, &state))).collect();
    let own = &state.identity()[machine.identity().len()..];
    let about: String = own.iter().map(|(name, text)| format!("{name:<10}{text}\n")).collect();
    let page = Page {
        chosen: &chosen,
        measured: &measured,
        is_quick: options.quick,
        machine: format!("{machine}{about}"),
        notes,
        missing,
        commands,
    };
    if let Some(file) = &options.html {
        std::fs::write(file, page.html()?).map_err(BenchError::io(format!("write {}", file.display())))?;
    }
    crate::say(format_args!("{}", page::text(&chosen, &measured)));
    match page.missing.is_empty() {
        true => Ok(()),
        false => {
            let all: Vec<String> = page.missing.iter().map(|(name, why)| format!("{name}: {why}")).collect();
            let all = all.join("\n  ");
            Err(BenchError::Unusable(format!(
                "not all was measured; the same command tries it again:\n  {all}"
            )))
        }
    }
}

impl PapersOptions {
    fn state_folder(&self) -> PathBuf {
        let beside = || self.html.as_deref().unwrap_or(Path::new("papers")).with_extension("state");
        self.state.clone().unwrap_or_else(beside)
    }

    /// Two hosts, if they are wanted and can be had; else why not.
    fn hosts(&self) -> (Option<TwoHosts>, Vec<String>) {
        const ONE: &str = "The papers' clients and servers were on two hosts. Here all is on one, and messages go over loopback";
        if !self.netns {
            return (None, vec![format!("{ONE}; with --netns they go between two network namespaces.")]);
        }
        match TwoHosts::make(self.mtu) {
            Ok(hosts) => {
                let note = format!(
                    "Where a paper has two hosts, client and server are in {hosts}, with a virtual cable between them, unless its section says \
                     otherwise."
                );
                (Some(hosts), vec![note])
            }
            Err(why) => {
                crate::note(format_args!("no second host: {why}"));
                (None, vec![format!("{ONE}: two network namespaces cannot be had ({why}).")])
            }
        }
    }

    /// The program with probes; else how to get it.
    fn probe_program(&self) -> Result<PathBuf, String> {
        let this = std::env::current_exe().map_err(|e| format!("this program cannot be found: {e}"))?;
        let beside = this.with_file_name("ironorb-probes");
        match &self.probe_program {
            Some(given) => Ok(given.clone()),
            None if probe::ENABLED => Ok(this),
            None if beside.is_file() => Ok(beside),
            None => Err("it needs the program with probes: cargo build --profile dist --features probes -p ironorb-cli, and \
                         --probe-program"
                .to_owned()),
        }
    }
}

/// The class of threads with priorities, if the system permits it.
fn real_time_class() -> Class {
    let entered = std::thread::spawn(|| Class::Fifo.enter(PRIORITY_MAX).is_ok()).join();
    if entered.unwrap_or(false) { Class::Fifo } else { Class::Other }
}

fn notes_of(class: Class) -> Vec<String> {
    let mut notes = Vec::new();
    if class == Class::Other {
        notes.push(
            "The system permits no real-time priorities here, so that clients and servants of rt-99 run without any: reasons there that \
             speak of priorities are not those of this run."
                .to_owned(),
        );
    }
    if probe::ENABLED {
        notes.push("This program has probes: all of its calls take longer than without.".to_owned());
    }
    notes
}

/// Which configurations have fewer runs than they should.
fn note_of_runs(chosen: &[Chosen], state: &State) -> Option<String> {
    let fewer = |(paper, configuration): (&str, &'static Configuration)| {
        let wanted = configuration.runs?.wanted;
        let runs = state.heads(configuration).iter().filter_map(|head| head.runs).min()?;
        (runs < wanted).then(|| format!("{paper} {} {runs} of {wanted}", configuration.name))
    };
    let each = chosen.iter().flat_map(|it| it.configurations().map(move |one| (it.paper.tag, one)));
    let fewer: Vec<String> = each.filter_map(fewer).collect();
    (!fewer.is_empty()).then(|| format!("There was not time for all runs: {}.", fewer.join(", ")))
}

/// What must not change between runs whose rows stand beside one another.
fn identity(machine: &Machine, options: &PapersOptions, hosts: Option<&TwoHosts>, class: Class) -> Identity {
    let hosts = hosts.map_or_else(|| "one".to_owned(), TwoHosts::to_string);
    let length = if options.quick { "quick" } else { "whole" };
    let own = [("length", length.to_owned()), ("hosts", hosts), ("class", name(class))];
    machine.identity().into_iter().chain(own).collect()
}

/// Starts the processes that measure.
struct Runner {
    is_quick: bool,
    class: String,
    hosts: Option<TwoHosts>,
    probes: Result<PathBuf, String>,
}

/// What a process measures.
#[derive(Clone, Copy)]
struct Measurement {
    configuration: &'static Configuration,
    part: usize,
    /// All, without a number.
    runs: Option<u32>,
}

/// The rows of a part as lines of JSON with the command, or why there are none.
type Done = Result<(String, String), String>;

impl Runner {
    /// The words of a part's command line, after the program.
    fn words(&self, measurement: Measurement) -> Vec<String> {
        let Measurement { configuration, part, runs } = measurement;
        let length = if self.is_quick { Length::Quick } else { Length::Whole(runs) };
        let mut words = vec!["bench".to_owned()];
        words.extend(configuration.words(part, length, &self.class));
        let hosts = self.hosts.as_ref().filter(|_| configuration.place.has_two_hosts());
        words.extend(hosts.map(|hosts| format!("--server-host={}", hosts.server())));
        words
    }

    /// The command lines of a configuration, as the page shows them: those that ran, and what has not.
    fn commands(&self, configuration: &'static Configuration, state: &State) -> Vec<String> {
        let program = if configuration.place.needs_probes() { "ironorb-probes" } else { "ironorb" };
        let of_part = |part| match state.head(configuration.name, part) {
            Some(head) => format!("{program} {}", head.command),
            None => {
                let words = self.words(Measurement { configuration, part, runs: None });
                format!("not measured: {program} {}", line(&words))
            }
        };
        (0..configuration.parts()).map(of_part).collect()
    }

    fn run(&self, measurement: Measurement, [new, log]: [PathBuf; 2]) -> Result<Done, BenchError> {
        let Measurement { configuration, .. } = measurement;
        let program = match (configuration.place.needs_probes(), &self.probes) {
            (false, _) => std::env::current_exe().map_err(BenchError::io("find this program"))?,
            (true, Ok(program)) => program.clone(),
            (true, Err(why)) => return Ok(Err(why.clone())),
        };
        let words = self.words(measurement);
        let hosts = self.hosts.as_ref().filter(|_| configuration.place.has_two_hosts());
        let mut all: Vec<OsString> = hosts.map_or(Vec::new(), TwoHosts::client);
        all.push(program.into_os_string());
        all.extend(words.iter().map(OsString::from));
        all.extend(["--json".into(), new.clone().into_os_string()]);
        let heard =
            std::fs::File::create(&log).map_err(BenchError::io(format!("write {}", log.display())))?;
        let mut command = Command::new(&all[0]);
        command.args(&all[1..]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(heard);
        let status = command.status().map_err(BenchError::io(format!("start {}", all[0].display())))?;
        if !status.success() {
            let said = std::fs::read_to_string(&log).unwrap_or_default();
            let last = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it says nothing");
            return Ok(Err(format!("{} failed ({status}): {last}", line(&words))));
        }
        let rows =
            std::fs::read_to_string(&new).map_err(BenchError::io(format!("read {}", new.display())))?;
        Ok(Ok((line(&words), rows)))
    }
}

/// Words as a shell takes them.
fn line(words: &[String]) -> String {
    let quoted = |word: &String| if word.contains(' ') { format!("'{word}'") } else { word.clone() };
    words.iter().map(quoted).collect::<Vec<_>>().join(" ")
}

/// Runs and stores all parts that are not stored yet, with so many runs that all, the stored ones included, take about so many
/// seconds. A quick run has no such bound. Returns why configurations have not all of their parts.
fn measure(
    chosen: &[Chosen],
    state: &State,
    seconds: Option<f64>,
    mut run: impl FnMut(Measurement, [PathBuf; 2]) -> Result<Done, BenchError>,
) -> Result<BTreeMap<&'static str, String>, BenchError> {
    let mut missing = BTreeMap::new();
    let mut pace = Pace::new(seconds.is_none());
    let (mut left, mut stored, mut spent) = (Vec::new(), 0, 0.0);
    for configuration in chosen.iter().flat_map(Chosen::configurations) {
        let parts = (0..configuration.parts()).filter(|part| !state.is_stored(configuration.name, *part));
        left.extend(parts.map(|part| (configuration, part)));
        let heads = state.heads(configuration);
        stored += heads.len();
        spent += heads.iter().map(|head| head.seconds).sum::<f64>();
        pace.took(configuration, &heads);
    }
    if stored > 0 {
        crate::note(format_args!("{stored} parts are stored already"));
    }
    let each: Vec<&Configuration> = left.iter().map(|(configuration, _)| *configuration).collect();
    let least = pace.least(&each);
    if !left.is_empty() && seconds.is_some_and(|seconds| least > seconds - spent) {
        crate::note(format_args!("the fewest runs that tell something take about {}", spoken(least)));
    }
    for (number, &(configuration, part)) in left.iter().enumerate() {
        let planned = pace.plan(&each[number..], seconds.map(|seconds| seconds - spent));
        crate::note(format_args!(
            "{} of {}: {} (part {} of {}), about {}; about {} left",
            number + 1,
            left.len(),
            configuration.name,
            part + 1,
            configuration.parts(),
            spoken(planned.seconds),
            spoken(planned.seconds_of_all),
        ));
        let runs = planned.runs;
        let begun = Instant::now();
        let measurement = Measurement { configuration, part, runs };
        let done = run(measurement, state.files(configuration.name, part))?;
        let took = begun.elapsed().as_secs_f64();
        spent += took;
        match done {
            Ok((command, rows)) => {
                let head = Head { command, seconds: took, runs };
                match state.store(configuration.name, part, &head, &rows) {
                    Ok(()) => pace.took(configuration, &state.heads(configuration)),
                    // The program with probes is of another build: the others go on.
                    Err(BenchError::Unusable(why)) => {
                        crate::note(format_args!("{}: {why}", configuration.name));
                        missing.insert(configuration.name, format!("{why}: build both of the same sources"));
                    }
                    Err(other) => return Err(other),
                }
            }
            Err(why) => {
                crate::note(format_args!("{why}"));
                missing.insert(configuration.name, why);
            }
        }
    }
    Ok(missing)
}

/// A time in words, to the second or to the minute.
fn spoken(seconds: f64) -> String {
    let whole = Duration::from_secs_f64(seconds.max(0.0)).as_secs();
    match (whole / 3_600, whole / 60 % 60) {
        (0, 0) => format!("{whole} s"),
        (0, minutes) => format!("{minutes} min"),
        (hours, minutes) => format!("{hours} h {minutes} min"),
    }
}

#[cfg(test)]
mod tests;
