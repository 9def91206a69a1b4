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
use catalogue::{Chosen, Configuration, choose};
use page::Page;
use state::{Identity, State};
use two_hosts::TwoHosts;

/// `ironorb bench papers`
///
/// Takes up to two and a half hours. A run that was ended goes on where it was, in the same state folder.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct PapersOptions {
    /// Only these papers, or figures of them: `tao-97`, `tao-97/figure-8`.
    #[arg(long, value_delimiter = ',', value_name = "PAPER")]
    only: Vec<String>,
    /// Make few calls of each kind, in about ten minutes: enough to see that all works, not to measure. Every heading says so.
    #[arg(long)]
    quick: bool,
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
    let machine = Machine::this();
    let identity = identity(&machine, options, hosts.as_ref(), class);
    let state = State::open(&options.state_folder(), identity)?;
    let runner =
        Runner { is_quick: options.quick, class: name(class), hosts, probes: options.probe_program() };
    notes.extend(notes_of(class));
    let missing =
        measure(&chosen, &state, |configuration, part, files| runner.run(configuration, part, files))?;
    let configurations = || chosen.iter().flat_map(Chosen::configurations);
    // Conclusions of one paper may need rows of another.
    let measured = state.measured(catalogue::papers().into_iter().flat_map(|paper| paper.configurations));
    let commands = configurations().map(|it| (it.name, runner.commands(it))).collect();
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
            "The system permits no real-time priorities here, so that clients and servants of rt-99 run without any.".to_owned(),
        );
    }
    if probe::ENABLED {
        notes.push("This program has probes: all of its calls take longer than without.".to_owned());
    }
    notes
}

/// What must not change between runs whose rows stand beside one another.
fn identity(machine: &Machine, options: &PapersOptions, hosts: Option<&TwoHosts>, class: Class) -> Identity {
    let hosts = hosts.map_or_else(|| "one".to_owned(), TwoHosts::to_string);
    let run = if options.quick { "quick" } else { "whole" };
    let own = [("run", run.to_owned()), ("hosts", hosts), ("class", name(class))];
    machine.identity().into_iter().chain(own).collect()
}

/// Starts the processes that measure.
struct Runner {
    is_quick: bool,
    class: String,
    hosts: Option<TwoHosts>,
    probes: Result<PathBuf, String>,
}

/// The rows of a part as lines of JSON with the command, or why there are none.
type Done = Result<(String, String), String>;

impl Runner {
    /// The words of a part's command line, after the program.
    fn words(&self, configuration: &Configuration, part: usize) -> Vec<String> {
        let mut words = vec!["bench".to_owned()];
        words.extend(configuration.words(part, self.is_quick, &self.class));
        let hosts = self.hosts.as_ref().filter(|_| configuration.place.has_two_hosts());
        words.extend(hosts.map(|hosts| format!("--server-host={}", hosts.server())));
        words
    }

    /// The command lines of a configuration, as the page shows them.
    fn commands(&self, configuration: &Configuration) -> Vec<String> {
        let program = if configuration.place.needs_probes() { "ironorb-probes" } else { "ironorb" };
        let of_part = |part| format!("{program} {}", self.words(configuration, part).join(" "));
        (0..configuration.parts()).map(of_part).collect()
    }

    fn run(
        &self,
        configuration: &Configuration,
        part: usize,
        [new, log]: [PathBuf; 2],
    ) -> Result<Done, BenchError> {
        let program = match (configuration.place.needs_probes(), &self.probes) {
            (false, _) => std::env::current_exe().map_err(BenchError::io("find this program"))?,
            (true, Ok(program)) => program.clone(),
            (true, Err(why)) => return Ok(Err(why.clone())),
        };
        let words = self.words(configuration, part);
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
            return Ok(Err(format!("{} failed ({status}): {last}", words.join(" "))));
        }
        let rows =
            std::fs::read_to_string(&new).map_err(BenchError::io(format!("read {}", new.display())))?;
        Ok(Ok((words.join(" "), rows)))
    }
}

/// Runs and stores all parts that are not stored yet. Returns why configurations have not all of theirs.
fn measure(
    chosen: &[Chosen],
    state: &State,
    mut run: impl FnMut(&Configuration, usize, [PathBuf; 2]) -> Result<Done, BenchError>,
) -> Result<BTreeMap<&'static str, String>, BenchError> {
    let is_quick = state.identity().iter().any(|(name, text)| (*name, text.as_str()) == ("run", "quick"));
    let mut missing = BTreeMap::new();
    let all: Vec<(&'static Configuration, usize)> = chosen
        .iter()
        .flat_map(Chosen::configurations)
        .flat_map(|configuration| (0..configuration.parts()).map(move |part| (configuration, part)))
        .collect();
    let (stored, left): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|(it, part)| state.is_stored(it.name, *part));
    if !stored.is_empty() {
        crate::note(format_args!("{} parts are stored already", stored.len()));
    }
    let mut pace = Pace::new(is_quick);
    for (configuration, _) in &stored {
        pace.took(configuration, &state.seconds(configuration));
    }
    for (number, &(configuration, part)) in left.iter().enumerate() {
        crate::note(format_args!(
            "{} of {}: {} (part {} of {}), about {}; about {} left",
            number + 1,
            left.len(),
            configuration.name,
            part + 1,
            configuration.parts(),
            spoken(pace.of(configuration)),
            spoken(left[number..].iter().map(|(configuration, _)| pace.of(configuration)).sum()),
        ));
        let begun = Instant::now();
        match run(configuration, part, state.files(configuration.name, part))? {
            Ok((command, rows)) => {
                let took = begun.elapsed().as_secs_f64();
                match state.store(configuration.name, part, (&command, took), &rows) {
                    Ok(()) => pace.took(configuration, &state.seconds(configuration)),
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

/// How long parts take: as those of the same configuration took, else as estimated, at the pace of all so far.
struct Pace {
    is_quick: bool,
    /// The seconds of each configuration's stored parts.
    took: BTreeMap<&'static str, Vec<f64>>,
    estimated: f64,
    measured: f64,
}

impl Pace {
    fn new(is_quick: bool) -> Pace {
        Pace { is_quick, took: BTreeMap::new(), estimated: 0.0, measured: 0.0 }
    }

    /// All stored parts of a configuration took so long.
    fn took(&mut self, configuration: &Configuration, seconds: &[f64]) {
        let before = self.took.insert(configuration.name, seconds.to_vec()).unwrap_or_default();
        self.estimated += configuration.seconds(self.is_quick) * (seconds.len() - before.len()) as f64;
        self.measured += seconds.iter().sum::<f64>() - before.iter().sum::<f64>();
    }

    fn of(&self, configuration: &Configuration) -> f64 {
        let pace = if self.estimated > 0.0 { self.measured / self.estimated } else { 1.0 };
        match self.took.get(configuration.name).map(Vec::as_slice) {
            None | Some([]) => configuration.seconds(self.is_quick) * pace,
            Some(seconds) => seconds.iter().sum::<f64>() / seconds.len() as f64,
        }
    }
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
