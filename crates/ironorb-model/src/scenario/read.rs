//! Reads scenario files.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::time::Duration;

use toml::de::DeTable;

use super::fields::{BANDWIDTH, FACTOR, Fields, NUMBER, Profiles, Reader, SHARE, TIME, Value};
use super::problem::{Problem, did_you_mean};
use super::*;
use crate::profile::{Kept, Placement, Profile, Situation};
use crate::{PauseTimes, Pauses};

/// Reads the scenarios of a file: one, or one for each combination of the values under `[sweep]`. `file_name` names them where
/// the file does not.
///
/// # Errors
/// All mistakes of the file, in its order. Each has its line and its mend.
pub fn read(text: &str, file_name: &str) -> Result<Vec<Scenario>, Vec<Problem>> {
    read_with(text, file_name, &|_| Err("profiles are read with files".to_owned()))
}

/// Reads a scenario file that may name profiles, whose texts come from `profiles`.
///
/// # Errors
/// As of [`read`]; or a profile cannot be read, or has nothing for the scenario's situation.
pub fn read_with(text: &str, file_name: &str, profiles: Profiles<'_>) -> Result<Vec<Scenario>, Vec<Problem>> {
    let (root, errors) = DeTable::parse_recoverable(text);
    if let Some(error) = errors.first() {
        let at = error.span().map_or(0, |span| span.start);
        let message = format!("this is no TOML: {}", error.message());
        return Err(vec![Problem::at(
            text,
            at,
            message,
            "mend the syntax; nothing behind this place is read",
        )]);
    }
    let root = root.get_ref();
    let sweeps = sweeps(text, root)?;
    let mut scenarios = Vec::new();
    for combination in combinations(&sweeps) {
        let mut reader = Reader {
            text,
            swept: &combination.values,
            used: vec![false; combination.values.len()],
            problems: Vec::new(),
            profiles,
        };
        let mut scenario = reader.scenario(root);
        for (at, (path, value)) in combination.values.iter().enumerate() {
            if !reader.used[at] {
                let mend = match missing_table(root, path) {
                    Some(table) => format!("add a line `[{table}]`: a sweep changes what tables have"),
                    None => "write the names of the tables and the key, as in `classes.callers.clients`; the tables must be there"
                        .to_owned(),
                };
                reader.problem(value.span().start, format!("`{path}` is nothing of this file"), mend);
            }
        }
        if !reader.problems.is_empty() {
            let mut problems = reader.problems;
            problems.sort_by_key(|problem| (problem.line, problem.column));
            return Err(problems);
        }
        if scenario.name.is_empty() {
            scenario.name = file_name.to_owned();
        }
        scenario.name.push_str(&combination.name);
        scenarios.push(scenario);
    }
    Ok(scenarios)
}

/// The values of one key of `[sweep]`.
struct Sweep<'t> {
    path: String,
    values: Vec<Value<'t>>,
}

#[derive(Default, Clone)]
struct Combination<'t> {
    /// As ` [clients=2]`.
    name: String,
    values: Vec<(String, Value<'t>)>,
}

/// The table of the whole file that a path leads into, if the file has none.
fn missing_table<'p>(root: &DeTable<'_>, path: &'p str) -> Option<&'p str> {
    let (table, _) = path.split_once('.')?;
    (["link", "dwell", "replications"].contains(&table) && !root.contains_key(table)).then_some(table)
}

fn sweeps<'t>(text: &str, root: &'t DeTable<'t>) -> Result<Vec<Sweep<'t>>, Vec<Problem>> {
    const COMBINATIONS_MAX: usize = 10_000;
    let Some(value) = root.get("sweep") else { return Ok(Vec::new()) };
    let bad = |at: usize, message: &str, mend: &str| Err(vec![Problem::at(text, at, message, mend)]);
    let Some(table) = value.get_ref().as_table() else {
        return bad(value.span().start, "`sweep` is no table", "write `[sweep]` on a line of its own");
    };
    let mut sweeps: Vec<Sweep<'t>> = Vec::new();
    for (path, value) in table {
        let values: Vec<Value<'t>> = match value.get_ref().as_array() {
            Some(array) => array.iter().collect(),
            None => Vec::new(),
        };
        if values.is_empty() {
            let message = format!("`{}` is no list of values", path.get_ref());
            let mend = "write the path in quotation marks: `\"classes.callers.clients\" = [1, 2, 4]`";
            return bad(value.span().start, &message, mend);
        }
        let written = |value: &Value<'t>| &text[value.span()];
        let again =
            (1..values.len()).find(|&at| values[..at].iter().any(|it| written(it) == written(&values[at])));
        if let Some(again) = again {
            let message = format!("`{}` has this value twice", path.get_ref());
            return bad(values[again].span().start, &message, "leave one out");
        }
        sweeps.push(Sweep { path: path.get_ref().to_string(), values });
        if sweeps
            .iter()
            .try_fold(1_usize, |all, it| all.checked_mul(it.values.len()).filter(|&n| n <= COMBINATIONS_MAX))
            .is_none()
        {
            let message = format!("there are more than {COMBINATIONS_MAX} combinations");
            return bad(value.span().start, &message, "take fewer values");
        }
    }
    // As they stand in the file, whatever order the table has.
    sweeps.sort_by_key(|sweep| sweep.values[0].span().start);
    Ok(sweeps)
}

/// What names call a path: the shortest end of it that no other one has, as `cores` or `back.cores`.
fn short_name<'p>(path: &'p str, sweeps: &[Sweep<'_>]) -> &'p str {
    let is_end_of = |end: &str, path: &str| {
        path.strip_suffix(end).is_some_and(|before| before.is_empty() || before.ends_with('.'))
    };
    let is_its_alone =
        |end: &&str| sweeps.iter().all(|other| other.path == path || !is_end_of(end, &other.path));
    let mut ends = path.rmatch_indices('.').map(|(point, _)| &path[point + 1..]);
    ends.find(is_its_alone).unwrap_or(path)
}

fn combinations<'t>(sweeps: &[Sweep<'t>]) -> Vec<Combination<'t>> {
    let mut all = vec![Combination::default()];
    for sweep in sweeps {
        let key = short_name(&sweep.path, sweeps);
        let with = |before: &Combination<'t>, value: Value<'t>| {
            let mut combination = before.clone();
            let sign = if before.values.is_empty() { " [" } else { ", " };
            combination.name = format!("{}{sign}{key}={}", before.name, shown(value));
            combination.values.push((sweep.path.clone(), value));
            combination
        };
        all =
            all.iter().flat_map(|before| sweep.values.iter().map(move |value| with(before, value))).collect();
    }
    all.iter_mut().filter(|it| !it.values.is_empty()).for_each(|it| it.name.push(']'));
    all
}

fn shown(value: Value<'_>) -> String {
    use toml::de::DeValue;
    match value.get_ref() {
        DeValue::String(text) => text.to_string(),
        DeValue::Integer(number) => number.as_str().to_owned(),
        DeValue::Float(number) => number.as_str().to_owned(),
        DeValue::Boolean(truth) => truth.to_string(),
        DeValue::Table(table) => {
            let members = table.iter().map(|(key, value)| format!("{} {}", key.get_ref(), shown(value)));
            members.collect::<Vec<_>>().join(" ")
        }
        DeValue::Array(array) => array.iter().map(shown).collect::<Vec<_>>().join(" "),
        other => other.type_str().to_owned(),
    }
}

/// Names of things that others refer to.
#[derive(Default)]
struct Names {
    hosts: Vec<String>,
    servers: Vec<String>,
    /// Of each server.
    operations: Vec<Vec<String>>,
    /// How many objects a process of each server has.
    objects: Vec<u64>,
}

impl<'t> Reader<'t> {
    fn scenario(&mut self, root: &'t DeTable<'t>) -> Scenario {
        let fields = Fields { table: root, path: String::new(), at: 0, section: "" };
        self.check_keys(&fields);
        let mut names = Names::default();
        let hosts = self.some_tables(&fields, "hosts", "[[hosts]]");
        let groups: Vec<HostGroup> = hosts.iter().map(|it| self.host_group(it, &mut names)).collect();
        self.check_cores(&groups, &hosts);
        let default_link = match self.table(&fields, "link", "[link]") {
            Some(link) => {
                if let Some(between) = self.value(&link, "between") {
                    let mend = "leave it out, or write `[[links]]`";
                    self.problem(between.span().start, "`[link]` is between all hosts", mend);
                }
                if let Some(outages) = self.value(&link, "outages") {
                    let mend = "write them under the `[[links]]` that they are of";
                    self.problem(outages.span().start, "`[link]` has no outages", mend);
                }
                self.link(&link)
            }
            None => DEFAULT_LINK,
        };
        let links = self.tables(&fields, "links", "[[links]]");
        let mut joined = Vec::new();
        let links = links.iter().map(|it| self.link_rule(it, &names, &mut joined)).collect();
        let servers = self.some_tables(&fields, "servers", "[[servers]]");
        let operations: Vec<Vec<Fields<'t>>> =
            servers.iter().map(|it| self.some_tables(it, "operations", "[[servers.operations]]")).collect();
        for (server, operations) in servers.iter().zip(&operations) {
            let name = self.new_name(server, &names.servers);
            names.servers.push(name);
            let mut of_server = Vec::new();
            for operation in operations {
                let name = self.new_name(operation, &of_server);
                of_server.push(name);
            }
            names.operations.push(of_server);
            let objects = self.of_kind(&NUMBER, server, "objects", 1..=1_000_000_000_000_000);
            names.objects.push(objects.unwrap_or(1));
        }
        let servers: Vec<Server> = servers
            .iter()
            .zip(&operations)
            .enumerate()
            .map(|(number, (fields, operations))| self.server(fields, operations, number, &names))
            .collect();
        self.check_nesting(&servers, &operations);
        let classes = self.some_tables(&fields, "classes", "[[classes]]");
        let mut class_names = Vec::new();
        let classes = classes
            .iter()
            .map(|it| {
                let name = self.new_name(it, &class_names);
                class_names.push(name.clone());
                self.class(it, name, &names, &servers)
            })
            .collect();
        let dwell = self.table(&fields, "dwell", "[dwell]");
        Scenario {
            name: match self.value(&fields, "name") {
                Some(name) => self.text_of("name", name).unwrap_or_default().to_owned(),
                None => String::new(),
            },
            seed: self.of_kind(&NUMBER, &fields, "seed", 0..=i64::MAX as u64).unwrap_or(1),
            span: match self.needed(&fields, "span") {
                Some(span) => self.value_of(&TIME, "span", span, MICROSECOND..=MONTH).unwrap_or(MONTH),
                None => MONTH,
            },
            warm_up: self.warm_up(&fields),
            replications: match self.table(&fields, "replications", "[replications]") {
                Some(replications) => self.replications(&replications),
                None => Replications::default(),
            },
            hosts: groups,
            links,
            default_link,
            servers,
            classes,
            dwell: dwell.map_or_else(DwellTimes::default, |dwell| self.dwell(&dwell)),
        }
    }

    /// Tables of which there must be one.
    fn some_tables(&mut self, fields: &Fields<'t>, key: &str, section: &'static str) -> Vec<Fields<'t>> {
        let tables = self.tables(fields, key, section);
        if tables.is_empty() && self.problems.is_empty() {
            self.problem(fields.at, format!("`{key}` is missing"), format!("add `{section}`"));
        }
        tables
    }

    fn new_name(&mut self, fields: &Fields<'t>, known: &[String]) -> String {
        let name = self.name(fields);
        if known.contains(&name) && !name.is_empty() {
            self.problem(fields.at, format!("there are two `{name}`"), "give one of them another name");
        }
        name
    }

    fn warm_up(&mut self, fields: &Fields<'t>) -> WarmUp {
        match self.value(fields, "warm_up") {
            None => WarmUp::Fixed(Duration::ZERO),
            Some(value) if value.get_ref().as_str() == Some("found") => WarmUp::Found,
            Some(value) => WarmUp::Fixed(
                self.value_of(&TIME, "warm_up", value, Duration::ZERO..=MONTH).unwrap_or_default(),
            ),
        }
    }

    fn replications(&mut self, fields: &Fields<'t>) -> Replications {
        let default = Replications::default();
        let min = self.of_kind(&NUMBER, fields, "min", 1..=1_000).map_or(default.min, |number| number as u32);
        let max = self
            .of_kind(&NUMBER, fields, "max", 1..=1_000)
            .map_or(default.max.max(min), |number| number as u32);
        if max < min {
            let mend = format!("write `max = {min}`, or leave it out");
            self.problem(fields.at, "`max` is less than `min`", mend);
        }
        Replications {
            min,
            max,
            half_width: self
                .of_kind(&SHARE, fields, "half_width", 0.0001..=1.0)
                .unwrap_or(default.half_width),
            confidence: self.of_kind(&SHARE, fields, "confidence", 0.5..=0.999).unwrap_or(default.confidence),
        }
    }

    fn host_group(&mut self, fields: &Fields<'t>, names: &mut Names) -> HostGroup {
        let name = self.new_name(fields, &names.hosts);
        names.hosts.push(name.clone());
        HostGroup {
            name,
            count: self.of_kind(&NUMBER, fields, "count", 1..=100_000).unwrap_or(1) as u32,
            cores: self.of_kind(&NUMBER, fields, "cores", 1..=1_024).unwrap_or(1) as u32,
            switch_time: self
                .of_kind(&TIME, fields, "switch_time", Duration::ZERO..=SECOND)
                .unwrap_or_default(),
            speed: self.of_kind(&FACTOR, fields, "speed", SPEEDS).unwrap_or(1.0),
        }
    }

    /// Each host takes memory, and each of its processors.
    fn check_cores(&mut self, groups: &[HostGroup], tables: &[Fields<'t>]) {
        let mut before = 0;
        for (group, fields) in groups.iter().zip(tables) {
            let with = before + group.processors();
            if with > CORES_MAX {
                let message = format!(
                    "up to `{}` the hosts have {with} processors, `count` times `cores`; all groups together may have {CORES_MAX}",
                    group.name
                );
                let mend = match (CORES_MAX - before) / u64::from(group.cores) {
                    0 => "lower `count` or `cores`, here or of groups before".to_owned(),
                    count => format!("write `count = {count}`, or lower `cores`"),
                };
                return self.problem(fields.at, message, mend);
            }
            before = with;
        }
    }

    /// `joined` has the groups of the rules before, in their order.
    fn link_rule(
        &mut self,
        fields: &Fields<'t>,
        names: &Names,
        joined: &mut Vec<(usize, usize)>,
    ) -> LinkRule {
        let mut ends = Vec::new();
        if let Some(between) = self.needed(fields, "between") {
            let array = between.get_ref().as_array().map(|array| array.iter().collect::<Vec<_>>());
            for end in array.as_deref().unwrap_or_default() {
                let group = self
                    .text_of("between", end)
                    .and_then(|name| self.known(name, end, &names.hosts, "host group"));
                ends.extend(group);
            }
            if array.is_none_or(|array| array.len() != 2) {
                let mend = "write two names, as `between = [\"front\", \"registry\"]`";
                self.problem(between.span().start, "`between` does not name two host groups", mend);
            }
        }
        if let &[one, other] = ends.as_slice() {
            let pair = (one.min(other), one.max(other));
            if joined.contains(&pair) {
                let (one, other) = (&names.hosts[one], &names.hosts[other]);
                let message = format!("there are two links between `{one}` and `{other}`");
                let mend = "leave one of them out: a link goes both ways";
                self.problem(fields.at, message, mend);
            }
            joined.push(pair);
        }
        LinkRule {
            between: (ends.first().copied().unwrap_or(0), ends.get(1).copied().unwrap_or(0)),
            link: self.link(fields),
            outages: self.outages(fields),
        }
    }

    fn outages(&mut self, fields: &Fields<'t>) -> Vec<Outage> {
        let tables = self.tables(fields, "outages", "[[links.outages]]");
        let mut outages: Vec<Outage> = Vec::new();
        for fields in &tables {
            for key in ["from", "until"] {
                self.needed(fields, key);
            }
            let kind = self.word(fields, "kind", OUTAGES).unwrap_or(OutageKind::Cut);
            let mut time = |key| self.of_kind(&TIME, fields, key, Duration::ZERO..=MONTH);
            let (Some(from), Some(until)) = (time("from"), time("until")) else { continue };
            if until <= from {
                self.problem(fields.at, "an outage ends before it begins", "write an `until` behind `from`");
            }
            if outages.last().is_some_and(|before| before.until > from) {
                let mend = "write them in the order of time, each behind the end of the one before";
                self.problem(fields.at, "outages overlap", mend);
            }
            outages.push(Outage { from, until, kind });
        }
        outages
    }

    fn link(&mut self, fields: &Fields<'t>) -> Link {
        let up_to = |seconds| Duration::ZERO..=Duration::from_secs(seconds);
        let default = DEFAULT_LINK;
        let octets = |number: Option<u64>, default| number.map_or(default, |number| number as u32);
        Link {
            latency: self.of_kind(&TIME, fields, "latency", up_to(10)).unwrap_or(default.latency),
            jitter: self.of_kind(&TIME, fields, "jitter", up_to(10)).unwrap_or(default.jitter),
            bandwidth: self.of_kind(&BANDWIDTH, fields, "bandwidth", BANDWIDTHS),
            mtu: octets(self.of_kind(&NUMBER, fields, "mtu", 1..=1_000_000), default.mtu),
            packet_overhead: octets(
                self.of_kind(&NUMBER, fields, "packet_overhead", 0..=10_000),
                default.packet_overhead,
            ),
            loss: self.of_kind(&SHARE, fields, "loss", 0.0..=0.5).unwrap_or(default.loss),
            reorder: self.of_kind(&SHARE, fields, "reorder", 0.0..=1.0).unwrap_or(default.reorder),
            duplicate: self.of_kind(&SHARE, fields, "duplicate", 0.0..=1.0).unwrap_or(default.duplicate),
            retransmit_after: self
                .of_kind(&TIME, fields, "retransmit_after", MICROSECOND..=Duration::from_secs(60))
                .unwrap_or(default.retransmit_after),
        }
    }

    fn server(
        &mut self,
        fields: &Fields<'t>,
        operations: &[Fields<'t>],
        number: usize,
        names: &Names,
    ) -> Server {
        let threads = self.of_kind(&NUMBER, fields, "threads", 1..=100_000).map(|number| number as u32);
        let lanes = self.lanes(fields);
        if let (Some(value), false) = (self.value(fields, "threads"), lanes.is_empty()) {
            let mend = "leave it out: each lane has its own";
            self.problem(value.span().start, "a server with lanes has no `threads` beside theirs", mend);
        }
        Server {
            name: names.servers[number].clone(),
            hosts: self.host(fields, names),
            threads,
            lanes,
            objects: names.objects[number],
            object_octets: self.of_kind(&NUMBER, fields, "object_octets", 0..=1 << 31).unwrap_or(0) as u32,
            lock: self.word(fields, "lock", LOCKS).unwrap_or(ServerLock::None),
            operations: operations
                .iter()
                .zip(&names.operations[number])
                .map(|(fields, name)| self.operation(fields, name, names))
                .collect(),
        }
    }

    fn lanes(&mut self, fields: &Fields<'t>) -> Vec<Lane> {
        let tables = self.tables(fields, "lanes", "[[servers.lanes]]");
        let mut lanes: Vec<Lane> = Vec::new();
        for fields in &tables {
            let of = |value: Option<u64>| value.unwrap_or(1);
            for key in ["priority", "threads"] {
                self.needed(fields, key);
            }
            let lane = Lane {
                priority: self.of_kind(&NUMBER, fields, "priority", 0..=PRIORITY_MAX).unwrap_or(0) as i16,
                threads: of(self.of_kind(&NUMBER, fields, "threads", 1..=100_000)) as u32,
            };
            if lanes.last().is_some_and(|before| before.priority >= lane.priority) {
                let mend = "begin with the lane of the lowest priority; each has another one";
                self.problem(fields.at, "the priorities of lanes do not rise", mend);
            }
            lanes.push(lane);
        }
        lanes
    }

    fn host(&mut self, fields: &Fields<'t>, names: &Names) -> usize {
        let Some(value) = self.needed(fields, "hosts") else { return 0 };
        let name = self.text_of("hosts", value);
        name.and_then(|name| self.known(name, value, &names.hosts, "host group")).unwrap_or(0)
    }

    fn known(&mut self, name: &str, value: Value<'t>, known: &[String], what: &str) -> Option<usize> {
        let place = known.iter().position(|known| known == name);
        let is_told = known.is_empty() && !self.problems.is_empty(); // that none could be read
        if place.is_none() && !is_told {
            let mend = did_you_mean(name, known.iter().map(String::as_str));
            self.problem(value.span().start, format!("there is no {what} `{name}`"), mend);
        }
        place
    }

    fn operation(&mut self, fields: &Fields<'t>, name: &str, names: &Names) -> Operation {
        let octets = |number: Option<u64>| number.unwrap_or(0) as u32;
        let is_oneway = self.truth(fields, "oneway");
        let reply_octets = octets(self.of_kind(&NUMBER, fields, "reply_octets", 0..=1 << 30));
        if is_oneway && reply_octets > 0 {
            let mend = "leave `reply_octets` or `oneway` out";
            self.problem(fields.at, "a oneway has no reply", mend);
        }
        let kind = self.word(fields, "kind", KINDS).unwrap_or(OperationKind::Plain);
        if is_oneway && kind == OperationKind::Read {
            self.problem(fields.at, "a oneway cannot return an attribute", "leave `kind` or `oneway` out");
        }
        Operation {
            name: name.to_owned(),
            kind,
            request_octets: octets(self.of_kind(&NUMBER, fields, "request_octets", 0..=1 << 30)),
            reply_octets,
            is_oneway,
            demand: self.spread(fields, "demand"),
            sleeps: self.truth(fields, "sleeps"),
            calls: self.calls(fields, "calls", names),
        }
    }

    fn calls(&mut self, fields: &Fields<'t>, key: &str, names: &Names) -> Vec<Call> {
        let tables = self.tables(fields, key, "a call");
        tables.iter().filter_map(|fields| self.call(fields, names)).collect()
    }

    fn call(&mut self, fields: &Fields<'t>, names: &Names) -> Option<Call> {
        let times = self.of_kind(&NUMBER, fields, "times", 1..=1_000_000).unwrap_or(1) as u32;
        let value = self.needed(fields, "call")?;
        let text = self.text_of("call", value)?;
        let Some((server, operation)) = text.split_once('.') else {
            let mend = "write `call = \"server.operation\"`";
            self.problem(value.span().start, format!("`{text}` names no operation of a server"), mend);
            return None;
        };
        let server = self.known(server, value, &names.servers, "server")?;
        let operation = self.known(operation, value, &names.operations[server], "operation")?;
        let target = self.target(fields, names.objects[server]);
        Some(Call { server, operation, times, target })
    }

    /// The object of a server whose processes have so many.
    fn target(&mut self, fields: &Fields<'t>, objects: u64) -> Target {
        let Some(value) = self.value(fields, "target") else { return Target::Random };
        if value.get_ref().as_str().is_some() {
            return self.word(fields, "target", TARGETS).unwrap_or(Target::Random);
        }
        let table = value.get_ref().as_table().filter(|table| table.len() == 1);
        match table.and_then(|table| table.get("object")) {
            Some(object) => {
                Target::Object(self.value_of(&NUMBER, "object", object, 0..=objects - 1).unwrap_or(0))
            }
            None => {
                let mend = "write `\"random\"`, `\"robin\"` or `{ object = 7 }`";
                self.problem(value.span().start, "`target` is no target", mend);
                Target::Random
            }
        }
    }

    /// Operations whose nested calls lead back to them would never end, and the stack of those that follow long chains would.
    fn check_nesting(&mut self, servers: &[Server], tables: &[Vec<Fields<'t>>]) {
        let name =
            |at: (usize, usize)| format!("{}.{}", servers[at.0].name, servers[at.0].operations[at.1].name);
        // How many operations call one another from each on; 0 while the search is on its way from there.
        let mut depths: Vec<Vec<Option<usize>>> =
            servers.iter().map(|server| vec![None; server.operations.len()]).collect();
        let mut deepest = (0, (0, 0));
        for start in places(servers) {
            // Operations, and which of their calls is next.
            let mut way = vec![(start, 0)];
            while let Some(((server, operation), next)) = way.last_mut() {
                let (server, operation) = (*server, *operation);
                let calls = &servers[server].operations[operation].calls;
                let Some(call) = calls.get(*next) else {
                    let below = calls.iter().filter_map(|call| depths[call.server][call.operation]).max();
                    let depth = below.unwrap_or(0) + 1;
                    depths[server][operation] = Some(depth);
                    if depth > deepest.0 {
                        deepest = (depth, (server, operation));
                    }
                    way.pop();
                    continue;
                };
                *next += 1;
                depths[server][operation] = Some(0);
                let called = (call.server, call.operation);
                match depths[called.0][called.1] {
                    None => way.push((called, 0)),
                    Some(0) => {
                        let begin = way.iter().position(|(at, _)| *at == called).unwrap_or(0);
                        let circle = way[begin..].iter().map(|(at, _)| name(*at));
                        let circle: Vec<String> = circle.chain([name(called)]).collect();
                        let message =
                            format!("these operations call each other without end: {}", circle.join(" -> "));
                        let at = tables[called.0][called.1].at;
                        return self.problem(at, message, "remove one of the calls");
                    }
                    Some(_) => {}
                }
            }
        }
        let (depth, at) = deepest;
        if depth > NESTED_MAX {
            let message = format!(
                "`{}` begins a chain of {depth} operations, each of which calls the next; there may be {NESTED_MAX}",
                name(at)
            );
            let mend =
                "shorten the chain: let an operation have the demand of the one that it calls, and its calls";
            self.problem(tables[at.0][at.1].at, message, mend);
        }
    }

    fn class(&mut self, fields: &Fields<'t>, name: String, names: &Names, servers: &[Server]) -> Class {
        let priority =
            self.of_kind(&NUMBER, fields, "priority", 0..=PRIORITY_MAX).map(|number| number as i16);
        let mix: Vec<Weighted> = self
            .some_tables(fields, "mix", "[[classes.mix]]")
            .iter()
            .filter_map(|fields| self.weighted(fields, names, servers))
            .collect();
        let cache = self.table(fields, "cache", "[classes.cache]").map(|cache| self.cache(&cache));
        if cache.is_some() && self.problems.is_empty() {
            // Parts of a job are asked of their servers, whatever caches hold.
            let is_job = |weighted: &Weighted| matches!(weighted.cycle, Cycle::Job { .. });
            let mut called = mix.iter().filter(|weighted| !is_job(weighted)).flat_map(calls_of);
            if mix.iter().all(is_job) {
                let mend = "leave `cache` out, or add a cycle with `calls` to the mix";
                self.problem(fields.at, "a class caches, and has jobs alone, which use no cache", mend);
            } else if !called.any(|call| operation_of(servers, call).kind == OperationKind::Read) {
                let mend =
                    "write `kind = \"read\"` for an operation that its `calls` name, or leave `cache` out";
                self.problem(fields.at, "a class caches, and reads nothing", mend);
            }
        }
        let daemons = mix.iter().filter_map(|weighted| match weighted.cycle {
            Cycle::Job { daemon, .. } => Some(daemon),
            Cycle::Calls(_) => None,
        });
        let lowest = reached(mix.iter().flat_map(calls_of), servers);
        let lowest = lowest.into_iter().chain(daemons).filter_map(|server| servers[server].lanes.first());
        if let Some(lane) = lowest.max_by_key(|lane| lane.priority)
            && priority.is_none_or(|priority| priority < lane.priority)
            && self.problems.is_empty()
        {
            let message = format!(
                "the class calls lanes that begin at priority {}, or others do for it",
                lane.priority
            );
            self.problem(
                fields.at,
                message,
                format!("write `priority = {}`, or a higher one", lane.priority),
            );
        }
        Class {
            name,
            hosts: self.host(fields, names),
            arrivals: self.arrivals(fields),
            mix,
            choice: self.word(fields, "choice", CHOICES).unwrap_or_default(),
            priority,
            cache,
        }
    }

    fn arrivals(&mut self, fields: &Fields<'t>) -> Arrivals {
        let kinds: Vec<&str> = ["clients", "between", "trace"]
            .into_iter()
            .filter(|key| self.value(fields, key).is_some())
            .collect();
        let [kind] = kinds.as_slice() else {
            let message = match kinds.as_slice() {
                [] => "nothing says when cycles begin".to_owned(),
                [one, other, ..] => format!("`{one}` and `{other}` exclude each other"),
                [_] => unreachable!("matched above"),
            };
            let mend = "write `clients` for a closed class, `between` for an open one, or `trace`";
            self.problem(fields.at, message, mend);
            return Arrivals::Trace(Vec::new());
        };
        let stray = [("think", "clients"), ("burst", "between")].into_iter().find_map(|(key, of)| {
            self.value(fields, key).filter(|_| of != *kind).map(|value| (key, of, value.span().start))
        });
        if let Some((key, of, at)) = stray {
            let mend = format!("leave it out, or write `{of}` in the place of `{kind}`");
            self.problem(at, format!("`{key}` belongs to `{of}`"), mend);
        }
        match *kind {
            "clients" => Arrivals::Closed {
                clients: self.of_kind(&NUMBER, fields, "clients", 1..=10_000_000).unwrap_or(1) as u32,
                think: self.spread(fields, "think"),
            },
            "between" => {
                let between = self.spread(fields, "between");
                if between.mean().is_zero() && self.problems.is_empty() {
                    let mend = "write a time above zero";
                    self.problem(fields.at, "`between` is zero: cycles would begin without end", mend);
                }
                Arrivals::Open {
                    between,
                    burst: self.of_kind(&NUMBER, fields, "burst", 1..=1_000_000).unwrap_or(1) as u32,
                }
            }
            _ => {
                let times = match self.value(fields, "trace") {
                    Some(value) => self.times("trace", value),
                    None => Vec::new(),
                };
                if !times.is_sorted() {
                    self.problem(fields.at, "the times of `trace` are out of order", "sort them");
                }
                if times.is_empty() && self.problems.is_empty() {
                    let mend = "write the times at which cycles begin, or leave the class out";
                    self.problem(fields.at, "`trace` is empty: no cycle would begin", mend);
                }
                Arrivals::Trace(times)
            }
        }
    }

    fn weighted(&mut self, fields: &Fields<'t>, names: &Names, servers: &[Server]) -> Option<Weighted> {
        let weight = self.of_kind(&FACTOR, fields, "weight", 1e-9..=1e9).unwrap_or(1.0);
        let is_job = self.value(fields, "job").is_some();
        let (list, strays): (_, &[&str]) =
            if is_job { ("parts", &["calls"]) } else { ("calls", &["parts", "daemon"]) };
        for stray in strays {
            if let Some(value) = self.value(fields, stray) {
                let mend = "a job has `job`, `parts` and `daemon`, another cycle `calls`";
                self.problem(value.span().start, format!("`{stray}` has no meaning here"), mend);
            }
        }
        let calls = self.calls(fields, list, names);
        if calls.is_empty() {
            if self.problems.is_empty() {
                let mend = format!("add `{list} = [{{ call = \"server.operation\" }}]`");
                self.problem(fields.at, "the cycle calls nothing", mend);
            }
            return None;
        }
        if !is_job {
            return Some(Weighted { weight, cycle: Cycle::Calls(calls) });
        }
        let architecture = self.word(fields, "job", ARCHITECTURES)?;
        if calls.iter().any(|call| operation_of(servers, call).is_oneway || call.times != 1) {
            let mend = "take a twoway, and name it as often as it is called";
            self.problem(fields.at, "a part of a job is one call with a reply", mend);
        }
        let daemon = self.needed(fields, "daemon")?;
        let name = self.text_of("daemon", daemon)?;
        let daemon = self.known(name, daemon, &names.servers, "server")?;
        Some(Weighted { weight, cycle: Cycle::Job { architecture, parts: calls, daemon } })
    }

    fn cache(&mut self, fields: &Fields<'t>) -> Cache {
        for key in ["lag", "update_octets"] {
            self.needed(fields, key);
        }
        let mode = self.word(fields, "mode", CACHE_MODES).unwrap_or(CacheMode::Bounded);
        Cache {
            lag: self
                .of_kind(&TIME, fields, "lag", Duration::ZERO..=Duration::from_secs(3_600))
                .unwrap_or_default(),
            capacity: self.of_kind(&SHARE, fields, "capacity", 0.0..=1.0).unwrap_or(1.0),
            update_octets: self.of_kind(&NUMBER, fields, "update_octets", 1..=1_000_000).unwrap_or(1) as u32,
            mode: self.cache_mode(fields, mode),
        }
    }

    /// The mode with what stands beside it.
    fn cache_mode(&mut self, fields: &Fields<'t>, mode: CacheMode) -> CacheMode {
        let keys = ["carried_probes", "warm"];
        if let CacheMode::Asked(default) = mode {
            let carried_probes = self.of_kind(&NUMBER, fields, keys[0], 0..=u64::from(u8::MAX));
            return CacheMode::Asked(Asking {
                carried_probes: carried_probes.map_or(default.carried_probes, |number| number as u8),
                is_warm: match self.value(fields, keys[1]) {
                    Some(_) => self.truth(fields, keys[1]),
                    None => default.is_warm,
                },
            });
        }
        for key in keys {
            if let Some(value) = self.value(fields, key) {
                let message = format!("`{key}` belongs to caches that ask");
                self.problem(value.span().start, message, "leave it out, or write `mode = \"asked\"`");
            }
        }
        mode
    }

    fn dwell(&mut self, fields: &Fields<'t>) -> DwellTimes {
        let DwellTimes {
            find_proxy,
            write_request,
            read_request,
            channel,
            find_object,
            execute,
            write_reply,
            read_reply,
            thread_switch,
            cached_read,
            apply_update,
            tell_update,
            carry_probe,
            per_kilo_octet,
            pauses,
        } = self.profile(fields);
        DwellTimes {
            find_proxy: self.spread_or(fields, "find_proxy", find_proxy),
            write_request: self.spread_or(fields, "write_request", write_request),
            read_request: self.spread_or(fields, "read_request", read_request),
            channel: self.spread_or(fields, "channel", channel),
            find_object: self.spread_or(fields, "find_object", find_object),
            execute: self.spread_or(fields, "execute", execute),
            write_reply: self.spread_or(fields, "write_reply", write_reply),
            read_reply: self.spread_or(fields, "read_reply", read_reply),
            thread_switch: self.spread_or(fields, "thread_switch", thread_switch),
            cached_read: self.spread_or(fields, "cached_read", cached_read),
            apply_update: self.spread_or(fields, "apply_update", apply_update),
            tell_update: self.spread_or(fields, "tell_update", tell_update),
            carry_probe: self.spread_or(fields, "carry_probe", carry_probe),
            per_kilo_octet: self
                .of_kind(&TIME, fields, "per_kilo_octet", Duration::ZERO..=SECOND)
                .unwrap_or(per_kilo_octet),
            pauses: PauseTimes {
                of_thread: self.pauses_or(fields, "thread_pause", pauses.of_thread),
                of_processor: self.pauses_or(fields, "processor_pause", pauses.of_processor),
            },
        }
    }

    fn pauses_or(&mut self, fields: &Fields<'t>, key: &str, none: Pauses) -> Pauses {
        let Some(value) = self.value(fields, key) else { return none };
        let points = value.get_ref().as_array().map(|array| {
            let points = array.iter().map(|point| (point.span().start, self.times(key, point)));
            points.collect::<Vec<_>>()
        });
        let mend = "write points as `[[\"100 us\", \"5 us\"]]`: a pause, and what it makes longer";
        let Some(points) = points else {
            self.problem(value.span().start, format!("`{key}` is no list of points"), mend);
            return none;
        };
        let mut of_points: Vec<(Duration, Duration)> = Vec::new();
        for (at, point) in points {
            match point.as_slice() {
                &[pause, _] if of_points.iter().any(|(known, _)| *known == pause) => {
                    let mend = "leave one of them out";
                    self.problem(at, format!("`{key}` has two points for a pause of {pause:?}"), mend);
                }
                &[pause, more] if pause <= HOUR && more <= SECOND => of_points.push((pause, more)),
                [_, _] => self.problem(
                    at,
                    format!("a point of `{key}` is beyond 1 h, or more than 1 s longer"),
                    mend,
                ),
                _ => self.problem(at, format!("a point of `{key}` has not two times"), mend),
            }
        }
        Pauses::new(of_points)
    }

    /// What the profile says of the scenario's situation; without a profile nothing takes time.
    fn profile(&mut self, fields: &Fields<'t>) -> DwellTimes {
        let usual = Situation::default();
        let situation = Situation {
            placement: self.word(fields, "placement", PLACEMENTS).unwrap_or(usual.placement),
            idle: self.of_kind(&TIME, fields, "idle", Duration::ZERO..=HOUR),
            objects: self.of_kind(&NUMBER, fields, "objects", 1..=1_000_000_000_000).unwrap_or(usual.objects),
            kept: self.word(fields, "kept", KEPT).unwrap_or(usual.kept),
            in_flight: self.of_kind(&NUMBER, fields, "in_flight", 1..=10_000).unwrap_or(1) as u32,
            body: match self.value(fields, "body") {
                Some(body) => self.text_of("body", body).unwrap_or_default().to_owned(),
                None => usual.body,
            },
        };
        let Some(value) = self.value(fields, "profile") else {
            let of_profiles = ["placement", "idle", "objects", "kept", "in_flight", "body"];
            if let Some((key, named)) =
                of_profiles.iter().find_map(|key| Some((key, fields.table.get(*key)?)))
            {
                let mend = "add `profile = \"FILE\"`: `ironorb sim calibrate` writes one";
                self.problem(named.span().start, format!("`{key}` says nothing without a profile"), mend);
            }
            return DwellTimes::default();
        };
        let Some(name) = self.text_of("profile", value) else { return DwellTimes::default() };
        let found = (self.profiles)(name).and_then(|text| {
            let profile = Profile::read(&text).map_err(|e| e.to_string())?;
            profile.dwell(&situation).map_err(|e| e.to_string())
        });
        found.unwrap_or_else(|why| {
            let mend =
                "name a file that `ironorb sim calibrate` has written, and a situation that it has measured";
            self.problem(value.span().start, format!("`{}`: {why}", name.escape_debug()), mend);
            DwellTimes::default()
        })
    }

    fn spread(&mut self, fields: &Fields<'t>, key: &str) -> Spread {
        self.spread_or(fields, key, Spread::Fixed(Duration::ZERO))
    }

    fn spread_or(&mut self, fields: &Fields<'t>, key: &str, none: Spread) -> Spread {
        let Some(value) = self.value(fields, key) else { return none };
        let Some(table) = value.get_ref().as_table() else {
            return Spread::Fixed(
                self.value_of(&TIME, key, value, Duration::ZERO..=HOUR).unwrap_or_default(),
            );
        };
        let only = table.iter().next().filter(|_| table.len() == 1);
        let kind = only.map_or("", |(kind, _)| kind.get_ref());
        let Some((_, inner)) = only.filter(|_| SPREADS.contains(&kind)) else {
            let mend = "write a time, `{ exponential = \"1 ms\" }`, `{ uniform = [\"1 ms\", \"2 ms\"] }` or `{ samples = [...] }`";
            self.problem(value.span().start, format!("`{key}` is no distribution of times"), mend);
            return none;
        };
        match kind {
            "exponential" => Spread::Exponential(
                self.value_of(&TIME, key, inner, Duration::ZERO..=HOUR).unwrap_or_default(),
            ),
            "uniform" => match self.times(key, inner).as_slice() {
                &[low, high] if low <= high => Spread::Uniform(low, high),
                _ => {
                    let mend = "write the least and the greatest time";
                    self.problem(inner.span().start, format!("`{key}` is no range of times"), mend);
                    none
                }
            },
            _ => {
                let times = self.times(key, inner);
                if times.is_empty() && self.problems.is_empty() {
                    self.problem(inner.span().start, format!("`{key}` has no samples"), "add a time");
                }
                Spread::Samples(times)
            }
        }
    }

    fn times(&mut self, key: &str, value: Value<'t>) -> Vec<Duration> {
        let Some(array) = value.get_ref().as_array() else {
            let mend = format!("write `{key} = [\"1 ms\", \"2 ms\"]`");
            self.problem(value.span().start, format!("`{key}` is no list of times"), mend);
            return Vec::new();
        };
        array.iter().filter_map(|time| self.value_of(&TIME, key, time, Duration::ZERO..=MONTH)).collect()
    }
}

/// The calls that a cycle makes itself.
fn calls_of(weighted: &Weighted) -> &[Call] {
    match &weighted.cycle {
        Cycle::Calls(calls) | Cycle::Job { parts: calls, .. } => calls,
    }
}

/// The servers to which calls lead, at once or by the calls of operations.
fn reached<'s>(calls: impl Iterator<Item = &'s Call>, servers: &'s [Server]) -> BTreeSet<usize> {
    let mut known = BTreeSet::new();
    let mut ahead: Vec<&Call> = calls.collect();
    while let Some(call) = ahead.pop() {
        if known.insert((call.server, call.operation)) {
            ahead.extend(&operation_of(servers, call).calls);
        }
    }
    known.into_iter().map(|(server, _)| server).collect()
}

/// The indices of all operations: of their servers, and there.
fn places(servers: &[Server]) -> impl Iterator<Item = (usize, usize)> {
    let of = |(number, server): (usize, &Server)| (0..server.operations.len()).map(move |it| (number, it));
    servers.iter().enumerate().flat_map(of)
}

fn operation_of<'s>(servers: &'s [Server], call: &Call) -> &'s Operation {
    &servers[call.server].operations[call.operation]
}

const MICROSECOND: Duration = Duration::from_micros(1);
const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3_600);
const MONTH: Duration = Duration::from_secs(30 * 24 * 3_600);
const PRIORITY_MAX: u64 = i16::MAX as u64;

/// The most operations each of which calls the next. Levels and bounds follow such chains on their stacks.
const NESTED_MAX: usize = 256;

/// How many times as fast as others processors may be.
pub(crate) const SPEEDS: RangeInclusive<f64> = 0.001..=1_000.0;

/// Of links, in bits a second.
pub(crate) const BANDWIDTHS: RangeInclusive<u64> = 1..=10_000_000_000_000;

pub(super) const LOCKS: &[(&str, ServerLock)] =
    &[("none", ServerLock::None), ("object", ServerLock::Object), ("process", ServerLock::Process)];

pub(super) const KINDS: &[(&str, OperationKind)] =
    &[("read", OperationKind::Read), ("write", OperationKind::Write), ("plain", OperationKind::Plain)];

pub(super) const OUTAGES: &[(&str, OutageKind)] = &[("cut", OutageKind::Cut), ("hold", OutageKind::Hold)];

pub(super) const TARGETS: &[(&str, Target)] = &[("random", Target::Random), ("robin", Target::Robin)];

pub(super) const CHOICES: &[(&str, Choice)] = &[("random", Choice::Random), ("in-turn", Choice::InTurn)];

pub(super) const ARCHITECTURES: &[(&str, Architecture)] = &[
    ("sequential", Architecture::Sequential),
    ("handle-driven", Architecture::HandleDriven),
    ("forwarding", Architecture::Forwarding),
    ("synchronous", Architecture::Synchronous),
];

pub(crate) const CACHE_MODES: &[(&str, CacheMode)] = &[
    ("bounded", CacheMode::Bounded),
    ("push", CacheMode::Push),
    ("linearizable", CacheMode::Linearizable),
    ("asked", CacheMode::Asked(Asking::DEFAULT)),
];

const PLACEMENTS: &[(&str, Placement)] = &[
    ("one-core", Placement::OneCore),
    ("core-each", Placement::CoreEach),
    ("networks", Placement::Networks),
    ("relayed", Placement::Relayed),
];

const KEPT: &[(&str, Kept)] = &[("servants", Kept::Servants), ("elements", Kept::Elements)];

const SPREADS: &[&str] = &["exponential", "uniform", "samples"];
