//! The `[plan]` of a scenario file.

use std::ops::RangeInclusive;
use std::time::Duration;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{Change, Choice, Setting, Target};
use crate::scenario::{Architecture, BANDWIDTHS, CACHE_MODES, Cycle, Problem, SPEEDS, Scenario};

/// What a file says of planning.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// What is to be kept.
    pub targets: Vec<Target>,
    /// What may change.
    pub changes: Vec<Change>,
}

/// Reads the `[plan]` of a file for one of its scenarios:
///
/// ```toml
/// [plan]
/// targets = ["p99 <= 5 ms"]
///
/// [[plan.changes]]
/// of = "servers.accounts.threads"
/// values = [1, 2, 4, 8]
/// cost = 1                    # for each thread; or `costs = [0, 5, 20, 30]`, one for each value
/// ```
///
/// What can change are `hosts.NAME.count`, `.cores` and `.speed`, `servers.NAME.threads` and `.lanes.PRIORITY.threads`,
/// `classes.NAME.cache.capacity`, `.cache.lag`, `.cache.mode` and `.job`, `link.bandwidth` and `links.FROM.TO.bandwidth`.
///
/// # Errors
/// All mistakes, in the order of the file.
pub fn read(text: &str, scenario: &Scenario) -> Result<Plan, Vec<Problem>> {
    let mut reader = Reader { text, scenario, problems: Vec::new() };
    let (root, errors) = DeTable::parse_recoverable(text);
    if let Some(error) = errors.first() {
        let at = error.span().map_or(0, |span| span.start);
        reader.problem(at, format!("this is no TOML: {}", error.message()), "mend the syntax");
        return Err(reader.problems);
    }
    let mut plan = Plan { targets: Vec::new(), changes: Vec::new() };
    if let Some(value) = root.get_ref().get("plan") {
        match value.get_ref().as_table() {
            Some(table) => reader.plan(table, &mut plan),
            None => reader.problem(
                value.span().start,
                "`plan` is no table",
                "write `[plan]` on a line of its own",
            ),
        }
    }
    if reader.problems.is_empty() { Ok(plan) } else { Err(reader.problems) }
}

struct Reader<'a> {
    text: &'a str,
    scenario: &'a Scenario,
    problems: Vec<Problem>,
}

type Value<'t> = Spanned<DeValue<'t>>;

impl Reader<'_> {
    fn problem(&mut self, at: usize, message: impl Into<String>, mend: impl Into<String>) {
        let before = &self.text.as_bytes()[..at.min(self.text.len())];
        let line_start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        let column = String::from_utf8_lossy(&before[line_start..]).chars().count() + 1;
        let number = |value: usize| u32::try_from(value).unwrap_or(u32::MAX);
        let (message, mend) = (message.into(), mend.into());
        self.problems.push(Problem { line: number(line), column: number(column), message, mend });
    }

    fn plan(&mut self, table: &DeTable<'_>, plan: &mut Plan) {
        self.only(table, &["targets", "changes"]);
        if let Some(value) = table.get("targets") {
            for target in self.list(value, "targets") {
                let parsed = target.get_ref().as_str().map(|text| {
                    let target: Target = text.parse()?;
                    target.check(self.scenario).map(|()| target)
                });
                match parsed {
                    Some(Ok(target)) => plan.targets.push(target),
                    Some(Err(error)) => {
                        self.problem(
                            target.span().start,
                            format!("`{}` is no target", error.text),
                            error.why,
                        );
                    }
                    None => {
                        self.problem(target.span().start, "a target is no text", "write `\"p99 <= 5 ms\"`")
                    }
                }
            }
        }
        if let Some(value) = table.get("changes") {
            let mut changed = Vec::new();
            for change in self.list(value, "changes") {
                match change.get_ref().as_table() {
                    Some(table) => {
                        plan.changes.extend(self.change(table, change.span().start, &mut changed));
                    }
                    None => {
                        self.problem(change.span().start, "a change is no table", "write `[[plan.changes]]`")
                    }
                }
            }
        }
    }

    /// `changed` has what the changes before are of.
    fn change(&mut self, table: &DeTable<'_>, at: usize, changed: &mut Vec<What>) -> Option<Change> {
        self.only(table, &["of", "values", "cost", "costs"]);
        let Some(of) = table.get("of") else {
            self.problem(at, "`of` is missing", "add `of = \"servers.NAME.threads\"`");
            return None;
        };
        let Some(name) = of.get_ref().as_str() else {
            self.problem(of.span().start, "`of` is no text", "write `of = \"servers.NAME.threads\"`");
            return None;
        };
        let Some(what) = self.what(name) else {
            self.problem(
                of.span().start,
                format!("`{name}` is nothing that a plan can change"),
                self.known(),
            );
            return None;
        };
        if changed.contains(&what) {
            let mend = "write all its values into one `[[plan.changes]]`";
            self.problem(of.span().start, format!("there are two changes of `{name}`"), mend);
            return None;
        }
        changed.push(what);
        let Some(values) = table.get("values") else {
            self.problem(at, "`values` is missing", "add `values = [1, 2, 4]`");
            return None;
        };
        let costs = table.get("costs").map(|value| (value.span().start, self.list(value, "costs")));
        let costs: Option<(usize, Vec<Option<f64>>)> =
            costs.map(|(at, list)| (at, list.iter().map(|cost| float(cost.get_ref())).collect()));
        if let (Some(cost), Some(_)) = (table.get("cost"), &costs) {
            let mend = "leave one of them out: `cost` is for each of what the values count, `costs` has one for each value";
            self.problem(cost.span().start, "`cost` and `costs` exclude each other", mend);
        }
        let each = match table.get("cost") {
            None => 0.0,
            Some(cost) => float(cost.get_ref()).unwrap_or_else(|| {
                self.problem(cost.span().start, "`cost` is no number", "write `cost = 1`");
                0.0
            }),
        };
        let values = self.list(values, "values");
        if let Some((at, costs)) = &costs
            && (costs.len() != values.len() || costs.iter().any(Option::is_none))
        {
            self.problem(*at, "`costs` has not one number for each of `values`", "write as many numbers");
            return None;
        }
        let mut choices = Vec::new();
        for (index, value) in values.iter().enumerate() {
            match what.setting(value.get_ref()) {
                Some((setting, amount, label)) => {
                    let listed = costs.as_ref().and_then(|(_, costs)| costs[index]);
                    choices.push(Choice { label, cost: listed.unwrap_or(each * amount), setting });
                }
                None => {
                    self.problem(value.span().start, format!("this is no value of `{name}`"), what.values())
                }
            }
        }
        if choices.is_empty() {
            self.problem(at, format!("`{name}` has no values"), "write `values = [1, 2, 4]`");
            return None;
        }
        Some(Change { name: name.to_owned(), choices })
    }

    fn only(&mut self, table: &DeTable<'_>, known: &[&str]) {
        for (key, _) in table {
            let name: &str = key.get_ref();
            if !known.contains(&name) {
                self.problem(
                    key.span().start,
                    format!("`{name}` has no meaning here"),
                    format!("known are `{}`", known.join("`, `")),
                );
            }
        }
    }

    fn list<'t, 'i>(&mut self, value: &'t Value<'i>, key: &str) -> Vec<&'t Value<'i>> {
        match value.get_ref().as_array() {
            Some(array) => array.iter().collect(),
            None => {
                self.problem(value.span().start, format!("`{key}` is no list"), "write it in brackets");
                Vec::new()
            }
        }
    }

    /// What a path means.
    fn what(&self, path: &str) -> Option<What> {
        let scenario = self.scenario;
        let words: Vec<&str> = path.split('.').collect();
        let group = |name: &str| scenario.hosts.iter().position(|it| it.name == name);
        let server = |name: &str| scenario.servers.iter().position(|it| it.name == name);
        let class = |name: &str| scenario.classes.iter().position(|it| it.name == name);
        let cached = |name: &str| class(name).filter(|&index| scenario.classes[index].cache.is_some());
        match words.as_slice() {
            ["hosts", name, "count"] => group(name).map(What::Hosts),
            ["hosts", name, "cores"] => group(name).map(What::Cores),
            ["hosts", name, "speed"] => group(name).map(What::Speed),
            ["servers", name, "threads"] => {
                server(name).filter(|&index| scenario.servers[index].lanes.is_empty()).map(What::Threads)
            }
            ["servers", name, "lanes", priority, "threads"] => {
                let index = server(name)?;
                let priority: i16 = priority.parse().ok()?;
                let lanes = &scenario.servers[index].lanes;
                lanes
                    .iter()
                    .position(|lane| lane.priority == priority)
                    .map(|lane| What::LaneThreads(index, lane))
            }
            ["classes", name, "cache", "capacity"] => cached(name).map(What::Capacity),
            ["classes", name, "cache", "lag"] => cached(name).map(What::Lag),
            ["classes", name, "cache", "mode"] => cached(name).map(What::Mode),
            ["classes", name, "job"] => class(name)
                .filter(|&index| {
                    scenario.classes[index].mix.iter().any(|it| matches!(it.cycle, Cycle::Job { .. }))
                })
                .map(What::Job),
            ["link", "bandwidth"] => Some(What::DefaultBandwidth),
            ["links", from, to, "bandwidth"] => {
                let (from, to) = (group(from)?, group(to)?);
                let joins = |between: (usize, usize)| between == (from, to) || between == (to, from);
                scenario.links.iter().position(|rule| joins(rule.between)).map(What::LinkBandwidth)
            }
            _ => None,
        }
    }

    fn known(&self) -> String {
        let names = |names: Vec<&String>| {
            names.into_iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
        };
        let scenario = self.scenario;
        format!(
            "known are `hosts.NAME.count`, `.cores`, `.speed`; `servers.NAME.threads`, `.lanes.PRIORITY.threads`; \
             `classes.NAME.cache.capacity`, `.cache.lag`, `.cache.mode`, `.job`; `link.bandwidth`, \
             `links.FROM.TO.bandwidth`. Hosts are {}; servers are {}; classes are {}",
            names(scenario.hosts.iter().map(|it| &it.name).collect()),
            names(scenario.servers.iter().map(|it| &it.name).collect()),
            names(scenario.classes.iter().map(|it| &it.name).collect()),
        )
    }
}

/// What changes.
#[derive(Debug, Clone, Copy, PartialEq)]
enum What {
    Hosts(usize),
    Cores(usize),
    Speed(usize),
    Threads(usize),
    LaneThreads(usize, usize),
    Capacity(usize),
    Lag(usize),
    Mode(usize),
    Job(usize),
    LinkBandwidth(usize),
    DefaultBandwidth,
}

impl What {
    /// The setting, the amount by which its cost counts, and the value in words.
    fn setting(self, value: &DeValue<'_>) -> Option<(Setting, f64, String)> {
        let counted = |range: RangeInclusive<u64>, setting: &dyn Fn(u32) -> Setting| {
            let count = whole(value).filter(|count| range.contains(count))?;
            Some((setting(u32::try_from(count).ok()?), count as f64, count.to_string()))
        };
        match self {
            What::Hosts(group) => counted(1..=100_000, &|count| Setting::Hosts(group, count)),
            What::Cores(group) => counted(1..=1_024, &|count| Setting::Cores(group, count)),
            What::Threads(server) => counted(1..=100_000, &|count| Setting::Threads(server, count)),
            What::LaneThreads(server, lane) => {
                counted(1..=100_000, &|count| Setting::LaneThreads(server, lane, count))
            }
            What::Speed(group) => {
                let speed = float(value).filter(|speed| SPEEDS.contains(speed))?;
                Some((Setting::Speed(group, speed), speed, speed.to_string()))
            }
            What::Capacity(class) => {
                let text = value.as_str()?;
                let percent: f64 = text.trim().strip_suffix('%')?.trim().parse().ok()?;
                let is_share = (0.0..=100.0).contains(&percent);
                is_share
                    .then(|| (Setting::Capacity(class, percent / 100.0), percent / 100.0, text.to_owned()))
            }
            What::Lag(class) => {
                let text = value.as_str()?;
                let nanos = u64::try_from(ironorb_units::nanos(text).ok()?).ok()?;
                let lag = Duration::from_nanos(nanos);
                (lag <= LAG_MAX).then(|| (Setting::Lag(class, lag), lag.as_secs_f64(), text.to_owned()))
            }
            What::Mode(class) => {
                let (word, mode) = *CACHE_MODES.iter().find(|(word, _)| value.as_str() == Some(word))?;
                Some((Setting::Mode(class, mode), 0.0, word.to_owned()))
            }
            What::Job(class) => {
                let (word, architecture) =
                    *ARCHITECTURES.iter().find(|(word, _)| value.as_str() == Some(word))?;
                Some((Setting::Architecture(class, architecture), 0.0, word.to_owned()))
            }
            What::LinkBandwidth(_) | What::DefaultBandwidth => {
                let text = value.as_str()?;
                let bits = ironorb_units::bits_per_second(text).filter(|bits| BANDWIDTHS.contains(bits))?;
                let setting = match self {
                    What::LinkBandwidth(rule) => Setting::LinkBandwidth(rule, bits),
                    _ => Setting::DefaultBandwidth(bits),
                };
                Some((setting, bits as f64 / 1e6, text.to_owned()))
            }
        }
    }

    fn values(self) -> &'static str {
        match self {
            What::Hosts(_) | What::Threads(_) | What::LaneThreads(..) => {
                "write a whole number from 1 to 100,000"
            }
            What::Cores(_) => "write a whole number from 1 to 1,024",
            What::Speed(_) => "write a number from 0.001 to 1,000",
            What::Capacity(_) => "write a share, such as `\"50 %\"`",
            What::Lag(_) => "write a time up to 1 hour, such as `\"10 ms\"`",
            What::Mode(_) => "write `bounded`, `push`, `linearizable` or `asked`",
            What::Job(_) => "write `sequential`, `handle-driven`, `forwarding` or `synchronous`",
            What::LinkBandwidth(_) | What::DefaultBandwidth => {
                "write from 1 bit/s to 10,000 Gbit/s, such as `\"100 Mbit/s\"`"
            }
        }
    }
}

fn whole(value: &DeValue<'_>) -> Option<u64> {
    let integer = value.as_integer()?;
    u64::from_str_radix(integer.as_str(), integer.radix()).ok()
}

fn float(value: &DeValue<'_>) -> Option<f64> {
    let number: f64 = match value.as_float() {
        Some(float) => float.as_str().parse().ok()?,
        None => whole(value)? as f64,
    };
    number.is_finite().then_some(number)
}

const ARCHITECTURES: &[(&str, Architecture)] = &[
    ("sequential", Architecture::Sequential),
    ("handle-driven", Architecture::HandleDriven),
    ("forwarding", Architecture::Forwarding),
    ("synchronous", Architecture::Synchronous),
];

const LAG_MAX: Duration = Duration::from_secs(3_600);
