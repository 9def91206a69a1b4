//! Reads a description from TOML, and keeps where each part stands.

use std::collections::BTreeMap;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::description::*;
use crate::problem::{Place, Places, Problem, Problems, did_you_mean};
use crate::time::Nanos;

/// A description and the places of its parts; or all problems of its syntax, units and words.
pub(crate) fn read(
    text: &str,
    wcets: &BTreeMap<String, Nanos>,
) -> Result<(Description, Places), Vec<Problem>> {
    let mut problems = Problems::default();
    let (root, errors) = DeTable::parse_recoverable(text);
    if let Some(error) = errors.first() {
        let place = error.span().map(|span| Place::of(text, span.start));
        return Err(vec![Problem {
            place,
            message: format!("this is no TOML: {}", error.message()),
            mend: "mend the syntax; nothing behind this place is read".to_owned(),
        }]);
    }
    let mut reader = Reader { text, wcets, places: Places::new(), problems: &mut problems };
    let description = reader.description(root.get_ref());
    let places = reader.places;
    if problems.is_empty() { Ok((description, places)) } else { Err(problems.into_sorted()) }
}

struct Reader<'a> {
    text: &'a str,
    /// What operations have that state no `wcet`.
    wcets: &'a BTreeMap<String, Nanos>,
    places: Places,
    problems: &'a mut Problems,
}

/// A table that is read, its path, and the keys that it may have.
struct Fields<'t, 'i> {
    table: &'t DeTable<'i>,
    path: String,
}

impl Reader<'_> {
    fn description(&mut self, root: &DeTable<'_>) -> Description {
        let fields = Fields { table: root, path: String::new() };
        self.only(
            &fields,
            &["analysis", "node", "link", "lane", "resource", "interrupt", "operation", "task"],
        );
        let mut description = Description::default();
        if let Some(analysis) = self.table(&fields, "analysis") {
            self.analysis(&analysis, &mut description);
        }
        description.nodes = self.each(&fields, "node", Self::node);
        description.links = self.each(&fields, "link", Self::link);
        description.lanes = self.each(&fields, "lane", Self::lane);
        description.resources = self.each(&fields, "resource", Self::resource);
        description.interrupts = self.each(&fields, "interrupt", Self::interrupt);
        description.operations = self.each(&fields, "operation", Self::operation);
        description.tasks = self.each(&fields, "task", Self::task);
        description
    }

    fn analysis(&mut self, fields: &Fields<'_, '_>, description: &mut Description) {
        self.only(fields, &["assignment", "priorities"]);
        description.assignment = self.word(fields, "assignment", ASSIGNMENTS).unwrap_or_default();
        if let Some(range) = self.value(fields, "priorities") {
            let numbers = range
                .get_ref()
                .as_array()
                .map(|array| array.iter().filter_map(|number| whole(number.get_ref())).collect::<Vec<u64>>());
            match numbers.as_deref() {
                Some(&[lowest, highest])
                    if lowest <= highest && highest <= PriorityRange::CORBA_MAX.into() =>
                {
                    description.priorities = PriorityRange { lowest: lowest as u16, highest: highest as u16 };
                }
                _ => self.report(
                    range,
                    "`priorities` is no range of CORBA priorities",
                    "write the lowest and the highest, such as `[0, 32767]`",
                ),
            }
        }
    }

    fn node(&mut self, fields: &Fields<'_, '_>) -> Node {
        self.only(fields, &["name", "processors", "context_switch", "non_preemptible"]);
        Node {
            name: self.text(fields, "name"),
            processors: self.number(fields, "processors", 1024).unwrap_or(1) as u32,
            context_switch: self.time(fields, "context_switch").unwrap_or_default(),
            non_preemptible: self.time(fields, "non_preemptible").unwrap_or_default(),
        }
    }

    fn link(&mut self, fields: &Fields<'_, '_>) -> Link {
        self.only(fields, &["name", "bandwidth", "delay", "frame", "frame_overhead", "order", "classes"]);
        let order = match self.word(fields, "order", &["fifo", "priority"].map(|word| (word, word))) {
            Some("priority") => {
                LinkOrder::Priority { classes: self.number(fields, "classes", 7).unwrap_or(7) as u8 }
            }
            _ => LinkOrder::Fifo,
        };
        Link {
            name: self.text(fields, "name"),
            bandwidth: self.bandwidth(fields),
            delay: self.time(fields, "delay").unwrap_or_default(),
            frame: self.number(fields, "frame", BYTES_MAX),
            frame_overhead: self.number(fields, "frame_overhead", BYTES_MAX).unwrap_or(0),
            order,
        }
    }

    fn lane(&mut self, fields: &Fields<'_, '_>) -> Lane {
        self.only(fields, &["name", "node", "processor", "processors", "priority", "policy", "threads"]);
        let mut processors = self.numbers(fields, "processors");
        processors.extend(self.number(fields, "processor", 1023).map(|number| number as u32));
        Lane {
            name: self.text(fields, "name"),
            node: self.text(fields, "node"),
            processors,
            priority: self.priority(fields),
            policy: self.word(fields, "policy", POLICIES).unwrap_or_default(),
            threads: self.number(fields, "threads", u64::from(u32::MAX)).map(|number| number as u32),
        }
    }

    fn resource(&mut self, fields: &Fields<'_, '_>) -> Resource {
        self.only(fields, &["name", "protocol"]);
        Resource {
            name: self.text(fields, "name"),
            protocol: self.word(fields, "protocol", PROTOCOLS).unwrap_or_default(),
        }
    }

    fn interrupt(&mut self, fields: &Fields<'_, '_>) -> Interrupt {
        self.only(fields, &["name", "node", "processor", "period", "wcet"]);
        Interrupt {
            name: self.text(fields, "name"),
            node: self.text(fields, "node"),
            processor: self.number(fields, "processor", 1023).unwrap_or(0) as u32,
            period: self.needed_time(fields, "period"),
            wcet: self.needed_time(fields, "wcet"),
        }
    }

    fn operation(&mut self, fields: &Fields<'_, '_>) -> Operation {
        self.only(fields, &["name", "lane", "wcet", "uses", "calls"]);
        let name = self.text(fields, "name");
        let known = self.wcets.get(&name).filter(|_| !fields.table.contains_key("wcet"));
        Operation {
            lane: self.text(fields, "lane"),
            wcet: known.copied().unwrap_or_else(|| self.needed_time(fields, "wcet")),
            name,
            sections: self.each(fields, "uses", Self::section),
            calls: self.each(fields, "calls", Self::call),
        }
    }

    fn task(&mut self, fields: &Fields<'_, '_>) -> Task {
        self.only(
            fields,
            &[
                "name",
                "period",
                "deadline",
                "jitter",
                "wcet",
                "uses",
                "calls",
                "lane",
                "node",
                "processor",
                "priority",
                "criticality",
                "importance",
            ],
        );
        Task {
            name: self.text(fields, "name"),
            period: self.needed_time(fields, "period"),
            deadline: self.time(fields, "deadline"),
            jitter: self.time(fields, "jitter").unwrap_or_default(),
            wcet: self.needed_time(fields, "wcet"),
            sections: self.each(fields, "uses", Self::section),
            calls: self.each(fields, "calls", Self::call),
            home: self.home(fields),
            priority: self.priority(fields),
            criticality: self.word(fields, "criticality", LEVELS).unwrap_or_default(),
            importance: self.word(fields, "importance", LEVELS).unwrap_or_default(),
        }
    }

    fn home(&mut self, fields: &Fields<'_, '_>) -> Home {
        let is_in_lane = fields.table.contains_key("lane");
        let stray = ["node", "processor"].into_iter().find(|key| fields.table.contains_key(*key));
        if let (true, Some(key)) = (is_in_lane, stray) {
            let path = join(&fields.path, key);
            self.value(fields, key);
            self.problem_at(
                &path,
                format!("a task with a `lane` has no `{key}` of its own"),
                "leave it out: the lane says where it runs",
            );
        }
        if is_in_lane {
            return Home::Lane(self.text(fields, "lane"));
        }
        if !fields.table.contains_key("node") {
            self.problem_at(
                &fields.path,
                "the task runs nowhere",
                "add `lane = \"...\"`, or `node = \"...\"`",
            );
            return Home::Lane(String::new());
        }
        let processor = self.number(fields, "processor", 1023).unwrap_or(0) as u32;
        Home::Processor { node: self.text(fields, "node"), processor }
    }

    fn call(&mut self, fields: &Fields<'_, '_>) -> Call {
        self.only(
            fields,
            &["operation", "link", "reply_link", "request", "reply", "oneway", "then", "then_uses"],
        );
        Call {
            operation: self.text(fields, "operation"),
            link: self.optional_text(fields, "link"),
            reply_link: self.optional_text(fields, "reply_link"),
            request_bytes: self.number(fields, "request", BYTES_MAX).unwrap_or(0),
            reply_bytes: self.number(fields, "reply", BYTES_MAX).unwrap_or(0),
            is_oneway: self.truth(fields, "oneway"),
            then: self.time(fields, "then").unwrap_or_default(),
            then_sections: self.each(fields, "then_uses", Self::section),
        }
    }

    fn section(&mut self, fields: &Fields<'_, '_>) -> Section {
        self.only(fields, &["resource", "wcet"]);
        Section { resource: self.text(fields, "resource"), wcet: self.needed_time(fields, "wcet") }
    }
}

/// Values by their kinds. Each notes where the value stands, and reports what it is not.
impl Reader<'_> {
    fn value<'t, 'i>(&mut self, fields: &Fields<'t, 'i>, key: &str) -> Option<&'t Spanned<DeValue<'i>>> {
        let value = fields.table.get(key)?;
        self.places.insert(join(&fields.path, key), Place::of(self.text, value.span().start));
        Some(value)
    }

    fn only(&mut self, fields: &Fields<'_, '_>, keys: &[&str]) {
        for (key, _) in fields.table {
            let name: &str = key.get_ref();
            if !keys.contains(&name) {
                let place = Place::of(self.text, key.span().start);
                let path = join(&fields.path, name);
                self.places.insert(path.clone(), place);
                self.problem_at(
                    &path,
                    format!("`{name}` has no meaning here"),
                    did_you_mean(name, keys.iter().copied()),
                );
            }
        }
    }

    fn table<'t, 'i>(&mut self, fields: &Fields<'t, 'i>, key: &str) -> Option<Fields<'t, 'i>> {
        let value = self.value(fields, key)?;
        let table = value.get_ref().as_table();
        if table.is_none() {
            self.report(
                value,
                format!("`{key}` is no table"),
                format!("write `[{key}]` on a line of its own"),
            );
        }
        table.map(|table| Fields { table, path: join(&fields.path, key) })
    }

    fn each<T>(
        &mut self,
        fields: &Fields<'_, '_>,
        key: &str,
        read: fn(&mut Self, &Fields<'_, '_>) -> T,
    ) -> Vec<T> {
        let Some(value) = self.value(fields, key) else { return Vec::new() };
        let Some(array) = value.get_ref().as_array() else {
            self.report(
                value,
                format!("`{key}` is no list"),
                format!("write `[[{key}]]`, with two brackets"),
            );
            return Vec::new();
        };
        let mut things = Vec::new();
        for (index, element) in array.iter().enumerate() {
            let path = format!("{}.{index}", join(&fields.path, key));
            self.places.insert(path.clone(), Place::of(self.text, element.span().start));
            match element.get_ref().as_table() {
                Some(table) => things.push(read(self, &Fields { table, path })),
                None => self.report(
                    element,
                    format!("an element of `{key}` is no table"),
                    "write it as `{ key = value }`",
                ),
            }
        }
        things
    }

    fn text(&mut self, fields: &Fields<'_, '_>, key: &str) -> String {
        if !fields.table.contains_key(key) {
            self.problem_at(&fields.path, format!("`{key}` is missing"), format!("add `{key} = \"...\"`"));
        }
        self.optional_text(fields, key).unwrap_or_default()
    }

    fn optional_text(&mut self, fields: &Fields<'_, '_>, key: &str) -> Option<String> {
        let value = self.value(fields, key)?;
        if value.get_ref().as_str().is_none() {
            self.report(value, format!("`{key}` is no text"), format!("write `{key} = \"...\"`"));
        }
        value.get_ref().as_str().map(str::to_owned)
    }

    fn needed_time(&mut self, fields: &Fields<'_, '_>, key: &str) -> Nanos {
        if !fields.table.contains_key(key) {
            self.problem_at(&fields.path, format!("`{key}` is missing"), format!("add `{key} = \"1ms\"`"));
        }
        self.time(fields, key).unwrap_or(Nanos(1))
    }

    fn time(&mut self, fields: &Fields<'_, '_>, key: &str) -> Option<Nanos> {
        let value = self.value(fields, key)?;
        let Some(text) = value.get_ref().as_str() else {
            self.report(
                value,
                format!("`{key}` is no time"),
                format!("write `{key} = \"1.5ms\"`, with a unit"),
            );
            return None;
        };
        match text.parse() {
            Ok(time) => Some(time),
            Err(error) => {
                self.report(value, format!("`{key}`: {error}"), time_mend(key, text));
                None
            }
        }
    }

    fn number(&mut self, fields: &Fields<'_, '_>, key: &str, most: u64) -> Option<u64> {
        let value = self.value(fields, key)?;
        match whole(value.get_ref()) {
            Some(number) if number <= most => Some(number),
            _ => {
                self.report(
                    value,
                    format!("`{key}` is no whole number from 0 to {most}"),
                    format!("write `{key} = 1`"),
                );
                None
            }
        }
    }

    fn numbers(&mut self, fields: &Fields<'_, '_>, key: &str) -> Vec<u32> {
        let Some(value) = self.value(fields, key) else { return Vec::new() };
        let numbers = value
            .get_ref()
            .as_array()
            .map(|array| array.iter().map(|element| whole(element.get_ref())).collect::<Option<Vec<u64>>>());
        match numbers.flatten() {
            Some(numbers) if numbers.iter().all(|&number| number < 1024) => {
                numbers.into_iter().map(|number| number as u32).collect()
            }
            _ => {
                self.report(
                    value,
                    format!("`{key}` is no list of numbers below 1024"),
                    format!("write `{key} = [0, 1]`"),
                );
                Vec::new()
            }
        }
    }

    fn priority(&mut self, fields: &Fields<'_, '_>) -> Option<u16> {
        self.number(fields, "priority", PriorityRange::CORBA_MAX.into()).map(|number| number as u16)
    }

    fn truth(&mut self, fields: &Fields<'_, '_>, key: &str) -> bool {
        let Some(value) = self.value(fields, key) else { return false };
        if value.get_ref().as_bool().is_none() {
            self.report(value, format!("`{key}` is neither true nor false"), format!("write `{key} = true`"));
        }
        value.get_ref().as_bool().unwrap_or(false)
    }

    fn word<T: Copy>(&mut self, fields: &Fields<'_, '_>, key: &str, words: &[(&str, T)]) -> Option<T> {
        let text = self.optional_text(fields, key)?;
        let found = words.iter().find(|(word, _)| *word == text);
        if found.is_none() {
            let mend = did_you_mean(&text, words.iter().map(|(word, _)| *word));
            self.problem_at(&join(&fields.path, key), format!("`{text}` is no value of `{key}`"), mend);
        }
        found.map(|(_, value)| *value)
    }

    fn bandwidth(&mut self, fields: &Fields<'_, '_>) -> u64 {
        let text = self.text(fields, "bandwidth");
        let bits = ironorb_units::bits_per_second(&text).filter(|&bits| bits > 0);
        if bits.is_none() && fields.table.get("bandwidth").is_some_and(|value| value.get_ref().is_str()) {
            self.problem_at(
                &join(&fields.path, "bandwidth"),
                format!("`{text}` is no bandwidth"),
                "write a number and one of the units `bit/s`, `kbit/s`, `Mbit/s`, `Gbit/s`",
            );
        }
        bits.unwrap_or(1)
    }

    fn report(&mut self, value: &Spanned<DeValue<'_>>, message: impl Into<String>, mend: impl Into<String>) {
        let place = Place::of(self.text, value.span().start);
        self.places.insert("here".to_owned(), place);
        self.problem_at("here", message, mend);
    }

    fn problem_at(&mut self, path: &str, message: impl Into<String>, mend: impl Into<String>) {
        std::mem::swap(&mut self.places, self.problems.places_mut());
        self.problems.at(path, message, mend);
        std::mem::swap(&mut self.places, self.problems.places_mut());
    }
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

fn whole(value: &DeValue<'_>) -> Option<u64> {
    let integer = value.as_integer()?;
    u64::from_str_radix(integer.as_str(), integer.radix()).ok()
}

fn time_mend(key: &str, text: &str) -> String {
    let bare = text.trim().trim_start_matches('-').trim();
    if bare.parse::<Nanos>().is_ok() {
        format!("write `{key} = \"{bare}\"`")
    } else if !bare.is_empty() && bare.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
        format!("add the unit, such as `{key} = \"{bare}ms\"`")
    } else {
        format!("write `{key} = \"1.5ms\"`")
    }
}

/// The most bytes that a message or frame may have: 1 TiB.
const BYTES_MAX: u64 = 1 << 40;

const ASSIGNMENTS: &[(&str, Assignment)] = &[
    ("rate-monotonic", Assignment::RateMonotonic),
    ("deadline-monotonic", Assignment::DeadlineMonotonic),
    ("explicit", Assignment::Explicit),
    ("audsley", Assignment::Audsley),
];

const POLICIES: &[(&str, LanePolicy)] =
    &[("fixed-priority", LanePolicy::FixedPriority), ("edf", LanePolicy::Edf), ("muf", LanePolicy::Muf)];

const PROTOCOLS: &[(&str, Protocol)] =
    &[("inheritance", Protocol::Inheritance), ("ceiling", Protocol::Ceiling)];

const LEVELS: &[(&str, Level)] = &[
    ("very-low", Level::VeryLow),
    ("low", Level::Low),
    ("medium", Level::Medium),
    ("high", Level::High),
    ("very-high", Level::VeryHigh),
];
