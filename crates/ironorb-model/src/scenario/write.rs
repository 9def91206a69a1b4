//! Writes scenario files.

use std::fmt::Write as _;
use std::time::Duration;

use super::read::{ARCHITECTURES, CACHE_MODES, CHOICES, KINDS, LOCKS, OUTAGES};
use super::*;

/// The file of a scenario: [`read`] gives the scenario back.
pub fn write(scenario: &Scenario) -> String {
    let mut file = File { text: String::new() };
    file.scenario(scenario);
    file.text
}

struct File {
    text: String,
}

impl File {
    fn line(&mut self, key: &str, value: impl std::fmt::Display) {
        let _ = writeln!(self.text, "{key} = {value}");
    }

    fn head(&mut self, head: &str) {
        let _ = writeln!(self.text, "\n{head}");
    }

    fn scenario(&mut self, scenario: &Scenario) {
        self.line("name", text(&scenario.name));
        self.line("seed", scenario.seed);
        self.line("span", time(scenario.span));
        match scenario.warm_up {
            WarmUp::Found => self.line("warm_up", text("found")),
            WarmUp::Fixed(warm_up) => self.line("warm_up", time(warm_up)),
        }
        let Replications { min, max, half_width, confidence } = scenario.replications;
        self.head("[replications]");
        self.line("min", min);
        self.line("max", max);
        self.line("half_width", number(half_width));
        self.line("confidence", number(confidence));
        for hosts in &scenario.hosts {
            self.head("[[hosts]]");
            self.line("name", text(&hosts.name));
            self.line("count", hosts.count);
            self.line("cores", hosts.cores);
            self.line("switch_time", time(hosts.switch_time));
            self.line("speed", number(hosts.speed));
        }
        self.head("[link]");
        self.link(&scenario.default_link);
        for rule in &scenario.links {
            self.head("[[links]]");
            let name = |group: usize| text(&scenario.hosts[group].name);
            self.line("between", format!("[{}, {}]", name(rule.between.0), name(rule.between.1)));
            self.link(&rule.link);
            for outage in &rule.outages {
                self.head("[[links.outages]]");
                self.line("from", time(outage.from));
                self.line("until", time(outage.until));
                self.line("kind", word(OUTAGES, outage.kind));
            }
        }
        for server in &scenario.servers {
            self.server(scenario, server);
        }
        for class in &scenario.classes {
            self.class(scenario, class);
        }
        self.dwell(&scenario.dwell);
    }

    fn link(&mut self, link: &Link) {
        self.line("latency", time(link.latency));
        self.line("jitter", time(link.jitter));
        if let Some(bandwidth) = link.bandwidth {
            self.line("bandwidth", text(&format!("{bandwidth} bit/s")));
        }
        self.line("mtu", link.mtu);
        self.line("packet_overhead", link.packet_overhead);
        for (key, share) in [("loss", link.loss), ("reorder", link.reorder), ("duplicate", link.duplicate)] {
            self.line(key, number(share));
        }
        self.line("retransmit_after", time(link.retransmit_after));
    }

    fn server(&mut self, scenario: &Scenario, server: &Server) {
        self.head("[[servers]]");
        self.line("name", text(&server.name));
        self.line("hosts", text(&scenario.hosts[server.hosts].name));
        if let Some(threads) = server.threads {
            self.line("threads", threads);
        }
        self.line("objects", server.objects);
        self.line("object_octets", server.object_octets);
        self.line("lock", word(LOCKS, server.lock));
        for lane in &server.lanes {
            self.head("[[servers.lanes]]");
            self.line("priority", lane.priority);
            self.line("threads", lane.threads);
        }
        for operation in &server.operations {
            self.head("[[servers.operations]]");
            self.line("name", text(&operation.name));
            self.line("kind", word(KINDS, operation.kind));
            self.line("request_octets", operation.request_octets);
            self.line("reply_octets", operation.reply_octets);
            self.line("oneway", operation.is_oneway);
            self.line("demand", spread(&operation.demand));
            self.line("sleeps", operation.sleeps);
            self.line("calls", calls(scenario, &operation.calls));
        }
    }

    fn class(&mut self, scenario: &Scenario, class: &Class) {
        self.head("[[classes]]");
        self.line("name", text(&class.name));
        self.line("hosts", text(&scenario.hosts[class.hosts].name));
        match &class.arrivals {
            Arrivals::Closed { clients, think } => {
                self.line("clients", clients);
                self.line("think", spread(think));
            }
            Arrivals::Open { between, burst } => {
                self.line("between", spread(between));
                self.line("burst", burst);
            }
            Arrivals::Trace(trace) => self.line("trace", times(trace)),
        }
        if let Some(priority) = class.priority {
            self.line("priority", priority);
        }
        self.line("choice", word(CHOICES, class.choice));
        for Weighted { weight, cycle } in &class.mix {
            self.head("[[classes.mix]]");
            self.line("weight", number(*weight));
            match cycle {
                Cycle::Calls(list) => self.line("calls", calls(scenario, list)),
                Cycle::Job { architecture, parts, daemon } => {
                    self.line("job", word(ARCHITECTURES, *architecture));
                    self.line("parts", calls(scenario, parts));
                    self.line("daemon", text(&scenario.servers[*daemon].name));
                }
            }
        }
        if let Some(cache) = &class.cache {
            self.head("[classes.cache]");
            self.line("lag", time(cache.lag));
            self.line("capacity", number(cache.capacity));
            self.line("update_octets", cache.update_octets);
            match cache.mode {
                CacheMode::Asked(Asking { carried_probes, is_warm }) => {
                    self.line("mode", text("asked"));
                    self.line("carried_probes", carried_probes);
                    self.line("warm", is_warm);
                }
                mode => self.line("mode", word(CACHE_MODES, mode)),
            }
        }
    }

    fn dwell(&mut self, dwell: &DwellTimes) {
        self.head("[dwell]");
        for (key, value) in [
            ("find_proxy", &dwell.find_proxy),
            ("write_request", &dwell.write_request),
            ("read_request", &dwell.read_request),
            ("channel", &dwell.channel),
            ("find_object", &dwell.find_object),
            ("execute", &dwell.execute),
            ("write_reply", &dwell.write_reply),
            ("read_reply", &dwell.read_reply),
            ("thread_switch", &dwell.thread_switch),
            ("cached_read", &dwell.cached_read),
            ("apply_update", &dwell.apply_update),
            ("tell_update", &dwell.tell_update),
            ("carry_probe", &dwell.carry_probe),
        ] {
            self.line(key, spread(value));
        }
        self.line("per_kilo_octet", time(dwell.per_kilo_octet));
        let pauses =
            [("thread_pause", &dwell.pauses.of_thread), ("processor_pause", &dwell.pauses.of_processor)];
        for (key, pauses) in pauses.into_iter().filter(|(_, pauses)| !pauses.is_empty()) {
            let points = pauses.points().iter().map(|(pause, more)| times(&[*pause, *more]));
            self.line(key, format!("[{}]", points.collect::<Vec<_>>().join(", ")));
        }
    }
}

fn calls(scenario: &Scenario, calls: &[Call]) -> String {
    let call = |call: &Call| {
        let server = &scenario.servers[call.server];
        let name = text(&format!("{}.{}", server.name, server.operations[call.operation].name));
        let target = match call.target {
            Target::Random => text("random"),
            Target::Robin => text("robin"),
            Target::Object(object) => format!("{{ object = {object} }}"),
        };
        format!("{{ call = {name}, times = {}, target = {target} }}", call.times)
    };
    format!("[{}]", calls.iter().map(call).collect::<Vec<_>>().join(", "))
}

fn spread(spread: &Spread) -> String {
    match spread {
        Spread::Fixed(always) => time(*always),
        Spread::Exponential(mean) => format!("{{ exponential = {} }}", time(*mean)),
        Spread::Uniform(low, high) => format!("{{ uniform = {} }}", times(&[*low, *high])),
        Spread::Samples(samples) => format!("{{ samples = {} }}", times(samples)),
    }
}

fn times(list: &[Duration]) -> String {
    format!("[{}]", list.iter().map(|it| time(*it)).collect::<Vec<_>>().join(", "))
}

fn time(time: Duration) -> String {
    format!("\"{time:?}\"")
}

/// With a point, so that it is no integer; the digits are those that give the number back.
fn number(number: f64) -> String {
    format!("{number:?}")
}

fn word<T: PartialEq>(words: &[(&str, T)], meaning: T) -> String {
    let word = words.iter().find(|(_, known)| *known == meaning);
    text(word.map_or("", |(word, _)| word))
}

fn text(text: &str) -> String {
    let mut quoted = String::from("\"");
    for char in text.chars() {
        match char {
            '"' | '\\' => quoted.extend(['\\', char]),
            char if char.is_control() => {
                let _ = write!(quoted, "\\u{:04X}", u32::from(char));
            }
            char => quoted.push(char),
        }
    }
    quoted.push('"');
    quoted
}
