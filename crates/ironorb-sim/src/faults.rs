//! Faults: what befalls hosts and links, by script or by seed.

use std::fmt;
use std::ops::Range;
use std::time::Duration;

use ironorb_model::{Random, Time};

use crate::Host;
use crate::world::{ClockError, State};

/// What befalls hosts and links.
#[derive(Debug, Clone)]
pub enum Fault {
    /// A host's program is killed; its connections close.
    Kill(Host),
    /// A host loses its power; others hear nothing of it.
    Crash(Host),
    /// A host's program starts, again if it had been killed. One that runs is killed first.
    Start(Host),
    /// A host that has lost its power has it again: the program starts as by [`Start`](Fault::Start), and so do the others that
    /// ran there.
    Reboot(Host),
    /// None of a process's threads runs; its connections stay, and fill.
    Pause(Host),
    /// The threads of a process run again.
    Resume(Host),
    /// Nothing passes between two hosts.
    Cut(Host, Host),
    /// All passes between two hosts again.
    Join(Host, Host),
    /// A host's clock of the day is this much ahead.
    ClockAhead(Host, Duration),
    /// A host's clock of the day is this much behind.
    ClockBehind(Host, Duration),
}

impl Fault {
    pub(crate) fn happen(&self, state: &mut State) {
        match self {
            Fault::Kill(host) => state.kill(host.id()),
            Fault::Crash(host) => state.crash(host.id()),
            Fault::Start(host) => start(state, host),
            Fault::Reboot(host) => {
                start(state, host);
                state.start_those_that_ran(host.id());
            }
            Fault::Pause(host) => state.pause(host.id(), true),
            Fault::Resume(host) => state.pause(host.id(), false),
            Fault::Cut(a, b) => state.cut(a.id(), b.id(), true),
            Fault::Join(a, b) => state.cut(a.id(), b.id(), false),
            Fault::ClockAhead(host, ahead) => state.set_clock(host.id(), ClockError::Ahead(*ahead)),
            Fault::ClockBehind(host, behind) => state.set_clock(host.id(), ClockError::Behind(*behind)),
        }
    }
}

fn start(state: &mut State, host: &Host) {
    state.kill(host.id());
    state.power_up(host.id());
    state.start_soon(host.id());
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Kill(host) => write!(f, "kill {}", host.name()),
            Fault::Crash(host) => write!(f, "crash {}", host.name()),
            Fault::Start(host) => write!(f, "start {}", host.name()),
            Fault::Reboot(host) => write!(f, "reboot {}", host.name()),
            Fault::Pause(host) => write!(f, "pause {}", host.name()),
            Fault::Resume(host) => write!(f, "resume {}", host.name()),
            Fault::Cut(a, b) => write!(f, "cut {} from {}", a.name(), b.name()),
            Fault::Join(a, b) => write!(f, "join {} and {}", a.name(), b.name()),
            Fault::ClockAhead(host, ahead) if ahead.is_zero() => {
                write!(f, "set the clock of {} right", host.name())
            }
            Fault::ClockBehind(host, behind) => {
                write!(f, "set the clock of {} {behind:?} behind", host.name())
            }
            Fault::ClockAhead(host, ahead) => write!(f, "set the clock of {} {ahead:?} ahead", host.name()),
        }
    }
}

/// Which faults may happen, how many and when. Each comes with its mend: a program that is killed starts again, a host that
/// crashes starts again with all that ran there, a link that is cut is joined, a process that is paused goes on, a clock that
/// is wrong is set right.
#[derive(Debug, Clone)]
pub struct Faults {
    within: Range<Duration>,
    count: u64,
    lasts: Range<Duration>,
    kills: Vec<Host>,
    crashes: Vec<Host>,
    pauses: Vec<Host>,
    cuts: Vec<(Host, Host)>,
    skews: Vec<(Host, Duration)>,
}

impl Faults {
    /// Up to `count` faults, which begin within this time from now.
    pub fn within(time: Range<Duration>, count: u64) -> Faults {
        let lasts = Duration::from_millis(1)..Duration::from_secs(2);
        Faults {
            within: time,
            count,
            lasts,
            kills: Vec::new(),
            crashes: Vec::new(),
            pauses: Vec::new(),
            cuts: Vec::new(),
            skews: Vec::new(),
        }
    }

    /// How long each lasts: 1 ms to 2 s otherwise.
    pub fn lasting(mut self, time: Range<Duration>) -> Faults {
        self.lasts = time;
        self
    }

    /// Programs that may be killed.
    pub fn killing<'a>(mut self, hosts: impl IntoIterator<Item = &'a Host>) -> Faults {
        self.kills.extend(hosts.into_iter().cloned());
        self
    }

    /// Hosts that may lose their power.
    pub fn crashing<'a>(mut self, hosts: impl IntoIterator<Item = &'a Host>) -> Faults {
        self.crashes.extend(hosts.into_iter().cloned());
        self
    }

    /// Programs that may be paused.
    pub fn pausing<'a>(mut self, hosts: impl IntoIterator<Item = &'a Host>) -> Faults {
        self.pauses.extend(hosts.into_iter().cloned());
        self
    }

    /// Links that may be cut.
    pub fn cutting(mut self, a: &Host, b: &Host) -> Faults {
        self.cuts.push((a.clone(), b.clone()));
        self
    }

    /// Hosts whose clocks of the day may go wrong, and how much at most: ahead or behind.
    pub fn skewing<'a>(mut self, hosts: impl IntoIterator<Item = &'a Host>, at_most: Duration) -> Faults {
        self.skews.extend(hosts.into_iter().map(|host| (host.clone(), at_most)));
        self
    }

    /// Faults of the seed, each with its mend, and when they happen.
    pub(crate) fn draw(&self, random: &mut Random) -> Vec<[(Duration, Fault); 2]> {
        let pairs: Vec<(Fault, Fault)> = self.pairs().collect();
        let count = if pairs.is_empty() { 0 } else { random.below(self.count + 1) };
        let mut drawn = Vec::new();
        for _ in 0..count {
            let at = between(random, &self.within);
            let until = at + between(random, &self.lasts);
            let (begins, ends) = pairs[random.below(pairs.len() as u64) as usize].clone();
            let begins = match begins {
                Fault::ClockAhead(host, at_most) => skewed(random, host, at_most),
                other => other,
            };
            drawn.push([(at, begins), (until, ends)]);
        }
        drawn
    }

    /// Each fault that may happen, with its mend. Clocks have here what they are wrong by at most; `draw` replaces it.
    fn pairs(&self) -> impl Iterator<Item = (Fault, Fault)> {
        let kills = self.kills.iter().map(|host| (Fault::Kill(host.clone()), Fault::Start(host.clone())));
        let crashes =
            self.crashes.iter().map(|host| (Fault::Crash(host.clone()), Fault::Reboot(host.clone())));
        let pauses = self.pauses.iter().map(|host| (Fault::Pause(host.clone()), Fault::Resume(host.clone())));
        let cut =
            |(a, b): &(Host, Host)| (Fault::Cut(a.clone(), b.clone()), Fault::Join(a.clone(), b.clone()));
        let skew = |(host, at_most): &(Host, Duration)| {
            (Fault::ClockAhead(host.clone(), *at_most), Fault::ClockAhead(host.clone(), Duration::ZERO))
        };
        let of_hosts = kills.chain(crashes).chain(pauses);
        of_hosts.chain(self.cuts.iter().map(cut)).chain(self.skews.iter().map(skew))
    }
}

fn skewed(random: &mut Random, host: Host, at_most: Duration) -> Fault {
    let by = between(random, &(Duration::ZERO..at_most));
    match random.below(2) {
        0 => Fault::ClockAhead(host, by),
        _ => Fault::ClockBehind(host, by),
    }
}

fn between(random: &mut Random, range: &Range<Duration>) -> Duration {
    let width = range.end.saturating_sub(range.start).as_nanos() as u64;
    range.start + Duration::from_nanos(random.below(width))
}

/// A fault of a seed and its mend, with their number among them: runs leave out both or neither.
#[derive(Debug)]
pub(crate) struct Planned {
    pub(crate) number: usize,
    pub(crate) steps: [(Time, Fault); 2],
}

impl fmt::Display for Planned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [(at, fault), (until, mend)] = &self.steps;
        write!(f, "{at} s: {fault}, {until} s: {mend}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_go_wrong_either_way_and_are_set_right() {
        const AT_MOST: Duration = Duration::from_secs(60);
        let host = Host::for_test(1, "host");
        let faults = Faults::within(Duration::ZERO..Duration::from_secs(1), 4).skewing([&host], AT_MOST);
        let (mut ahead, mut behind, mut right) = (0, 0, 0);
        for seed in 0..100 {
            for (_, fault) in faults.draw(&mut Random::stream(seed, 0)).into_iter().flatten() {
                match fault {
                    Fault::ClockAhead(_, by) if by.is_zero() => right += 1,
                    Fault::ClockAhead(_, by) => ahead += usize::from(by < AT_MOST),
                    Fault::ClockBehind(_, by) => behind += usize::from(by < AT_MOST),
                    other => panic!("{other}"),
                }
            }
        }
        assert!(ahead > 50 && behind > 50 && right == ahead + behind, "{ahead} {behind} {right}");
    }
}
