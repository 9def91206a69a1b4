//! Values of a TOML document by their kinds. Each reports what it is not, and where.

use std::ops::RangeInclusive;
use std::time::Duration;

use ironorb_units::NoTime;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::keys::keys_of;
use super::problem::{Problem, did_you_mean};

pub(super) type Value<'t> = &'t Spanned<DeValue<'t>>;

/// Gives the text of a profile by the name that the scenario has for it, or says why it cannot.
pub type Profiles<'t> = &'t dyn Fn(&str) -> Result<String, String>;

/// A text that is read, the values that replace some of it, and the problems so far.
pub(super) struct Reader<'t> {
    pub(super) text: &'t str,
    /// Values of a sweep, by path.
    pub(super) swept: &'t [(String, Value<'t>)],
    pub(super) used: Vec<bool>,
    pub(super) problems: Vec<Problem>,
    pub(super) profiles: Profiles<'t>,
}

/// A table that is read.
#[derive(Clone)]
pub(super) struct Fields<'t> {
    pub(super) table: &'t DeTable<'t>,
    /// As `classes.callers.mix.0`.
    pub(super) path: String,
    /// Where the table stands.
    pub(super) at: usize,
    /// Its name in [`KEYS`](super::keys::KEYS).
    pub(super) section: &'static str,
}

impl<'t> Reader<'t> {
    pub(super) fn problem(&mut self, at: usize, message: impl Into<String>, mend: impl Into<String>) {
        let problem = Problem::at(self.text, at, message, mend);
        if !self.problems.contains(&problem) {
            self.problems.push(problem);
        }
    }

    /// Reports keys that mean nothing.
    pub(super) fn check_keys(&mut self, fields: &Fields<'t>) {
        for (key, _) in fields.table {
            let name: &str = key.get_ref();
            if !keys_of(fields.section).any(|known| known.key == name) {
                let mend = did_you_mean(name, keys_of(fields.section).map(|known| known.key));
                self.problem(key.span().start, format!("`{name}` has no meaning here"), mend);
            }
        }
    }

    pub(super) fn value(&mut self, fields: &Fields<'t>, key: &str) -> Option<Value<'t>> {
        let path = join(&fields.path, key);
        if let Some(at) = self.swept.iter().position(|(swept, _)| *swept == path) {
            self.used[at] = true;
            return Some(self.swept[at].1);
        }
        fields.table.get(key)
    }

    /// A value that the file must have.
    pub(super) fn needed(&mut self, fields: &Fields<'t>, key: &str) -> Option<Value<'t>> {
        let value = self.value(fields, key);
        if value.is_none() {
            let known = keys_of(fields.section).find(|known| known.key == key);
            let what = known.map_or("", |known| known.value);
            self.problem(fields.at, format!("`{key}` is missing"), format!("add `{key}`: {what}"));
        }
        value
    }

    pub(super) fn table(
        &mut self,
        fields: &Fields<'t>,
        key: &str,
        section: &'static str,
    ) -> Option<Fields<'t>> {
        let value = self.value(fields, key)?;
        let Some(table) = value.get_ref().as_table() else {
            self.problem(
                value.span().start,
                format!("`{key}` is no table"),
                format!("write `[{key}]` on a line of its own"),
            );
            return None;
        };
        let fields = Fields { table, path: join(&fields.path, key), at: value.span().start, section };
        self.check_keys(&fields);
        Some(fields)
    }

    /// The tables of a list. A table with a name is known by it in paths, another one by its place.
    pub(super) fn tables(
        &mut self,
        fields: &Fields<'t>,
        key: &str,
        section: &'static str,
    ) -> Vec<Fields<'t>> {
        let Some(value) = self.value(fields, key) else { return Vec::new() };
        let Some(array) = value.get_ref().as_array() else {
            let mend = format!("write `[[{key}]]`, with two brackets, or `{key} = [{{ ... }}]`");
            self.problem(value.span().start, format!("`{key}` is no list of tables"), mend);
            return Vec::new();
        };
        let mut all = Vec::new();
        for (place, element) in array.iter().enumerate() {
            let at = element.span().start;
            let Some(table) = element.get_ref().as_table() else {
                let mend = "write it as `{ key = value }`";
                self.problem(at, format!("an element of `{key}` is no table"), mend);
                continue;
            };
            let name = table.get("name").and_then(|name| name.get_ref().as_str());
            let name = name.map_or_else(|| place.to_string(), str::to_owned);
            let path = join(&join(&fields.path, key), &name);
            let fields = Fields { table, path, at, section };
            self.check_keys(&fields);
            all.push(fields);
        }
        all
    }

    pub(super) fn text_of(&mut self, key: &str, value: Value<'t>) -> Option<&'t str> {
        let text = value.get_ref().as_str().filter(|text| !text.is_empty());
        if text.is_none() {
            let mend = format!("write `{key} = \"...\"`");
            self.problem(value.span().start, format!("`{key}` is no text"), mend);
        }
        text
    }

    pub(super) fn needed_text(&mut self, fields: &Fields<'t>, key: &str) -> Option<&'t str> {
        let value = self.needed(fields, key)?;
        self.text_of(key, value)
    }

    /// A name. It names its table in paths and in reports.
    pub(super) fn name(&mut self, fields: &Fields<'t>) -> String {
        let name = self.needed_text(fields, "name").unwrap_or_default();
        if name.contains('.') || name.chars().any(char::is_control) || name.len() > NAME_OCTETS_MAX {
            let at = fields.table.get("name").map_or(fields.at, |value| value.span().start);
            self.problem(
                at,
                format!("`{}` is no name", name.escape_debug()),
                format!("take a name of at most {NAME_OCTETS_MAX} octets without a point"),
            );
        }
        name.to_owned()
    }

    pub(super) fn word<T: Copy>(&mut self, fields: &Fields<'t>, key: &str, words: &[(&str, T)]) -> Option<T> {
        let value = self.value(fields, key)?;
        let text = self.text_of(key, value)?;
        let found = words.iter().find(|(word, _)| *word == text);
        if found.is_none() {
            let mend = did_you_mean(text, words.iter().map(|(word, _)| *word));
            self.problem(value.span().start, format!("`{text}` is no value of `{key}`"), mend);
        }
        found.map(|(_, meaning)| *meaning)
    }

    pub(super) fn truth(&mut self, fields: &Fields<'t>, key: &str) -> bool {
        let Some(value) = self.value(fields, key) else { return false };
        let truth = value.get_ref().as_bool();
        if truth.is_none() {
            let mend = format!("write `{key} = true`");
            self.problem(value.span().start, format!("`{key}` is neither true nor false"), mend);
        }
        truth.unwrap_or(false)
    }

    pub(super) fn number(
        &mut self,
        fields: &Fields<'t>,
        key: &str,
        range: RangeInclusive<u64>,
    ) -> Option<u64> {
        let value = self.value(fields, key)?;
        self.number_of(key, value, range)
    }

    pub(super) fn number_of(
        &mut self,
        key: &str,
        value: Value<'t>,
        range: RangeInclusive<u64>,
    ) -> Option<u64> {
        let number = value.get_ref().as_integer();
        let number = number.and_then(|number| u64::from_str_radix(number.as_str(), number.radix()).ok());
        if let Some(number) = number.filter(|number| range.contains(number)) {
            return Some(number);
        }
        let (low, high) = (range.start(), range.end());
        self.problem(
            value.span().start,
            format!("`{key}` is no whole number from {low} to {high}"),
            format!("write `{key} = {}`", number.unwrap_or(*low).clamp(*low, *high)),
        );
        None
    }

    /// A number with a point.
    pub(super) fn factor(
        &mut self,
        fields: &Fields<'t>,
        key: &str,
        range: RangeInclusive<f64>,
    ) -> Option<f64> {
        let value = self.value(fields, key)?;
        let number = float(value.get_ref()).filter(|number| range.contains(number));
        if number.is_none() {
            let (low, high) = (range.start(), range.end());
            self.problem(
                value.span().start,
                format!("`{key}` is no number from {low} to {high}"),
                format!("write `{key} = 1.0`"),
            );
        }
        number
    }

    /// A share, written as `2 %` or `0.02`.
    pub(super) fn share(
        &mut self,
        fields: &Fields<'t>,
        key: &str,
        range: RangeInclusive<f64>,
    ) -> Option<f64> {
        let value = self.value(fields, key)?;
        let share = match value.get_ref().as_str() {
            Some(text) => ironorb_units::share(text),
            None => float(value.get_ref()),
        };
        if let Some(share) = share.filter(|share| range.contains(share)) {
            return Some(share);
        }
        let (low, high) = (range.start() * 100.0, range.end() * 100.0);
        self.problem(
            value.span().start,
            format!("`{key}` is no share from {low} % to {high} %"),
            format!("write `{key} = \"{high} %\"`"),
        );
        None
    }

    pub(super) fn bandwidth(&mut self, fields: &Fields<'t>, key: &str) -> Option<u64> {
        const MOST: u64 = 10_000_000_000_000;
        let value = self.value(fields, key)?;
        let bits = value.get_ref().as_str().and_then(ironorb_units::bits_per_second);
        let bits = bits.filter(|bits| (1..=MOST).contains(bits));
        if bits.is_none() {
            self.problem(
                value.span().start,
                format!("`{key}` is no bandwidth from 1 bit/s to 10,000 Gbit/s"),
                "write a number and one of the units `bit/s`, `kbit/s`, `Mbit/s` and `Gbit/s`",
            );
        }
        bits
    }

    pub(super) fn time(
        &mut self,
        fields: &Fields<'t>,
        key: &str,
        range: RangeInclusive<Duration>,
    ) -> Option<Duration> {
        let value = self.value(fields, key)?;
        self.time_of(key, value, range)
    }

    pub(super) fn time_of(
        &mut self,
        key: &str,
        value: Value<'t>,
        range: RangeInclusive<Duration>,
    ) -> Option<Duration> {
        let at = value.span().start;
        let Some(text) = value.get_ref().as_str() else {
            let mend = format!("write `{key} = \"1.5 ms\"`, with a unit");
            self.problem(at, format!("`{key}` is no time"), mend);
            return None;
        };
        let nanos = match ironorb_units::nanos(text) {
            Ok(nanos) => nanos,
            Err(why) => {
                let (message, mend) = no_time(key, text, why);
                self.problem(at, message, mend);
                return None;
            }
        };
        let time = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
        if range.contains(&time) {
            return Some(time);
        }
        let (low, high) = (range.start(), range.end());
        let nearest = time.clamp(*low, *high);
        self.problem(
            at,
            format!("`{key}` is {time:?}; it must be from {low:?} to {high:?}"),
            format!("write `{key} = \"{nearest:?}\"`"),
        );
        None
    }
}

fn no_time(key: &str, text: &str, why: NoTime) -> (String, String) {
    let bare = text.trim().trim_start_matches('-').trim();
    match why {
        NoTime::Negative => (format!("`{key}` is negative"), format!("write `{key} = \"{bare}\"`")),
        NoTime::Unit
            if !bare.is_empty() && bare.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') =>
        {
            (format!("`{key}` has no unit"), format!("write `{key} = \"{bare} ms\"`, or another unit"))
        }
        NoTime::Unit | NoTime::Number => {
            let mend = "write a number and one of the units `ns`, `us`, `ms` and `s`";
            (format!("`{key}` is no time: `{}`", text.escape_debug()), mend.to_owned())
        }
    }
}

fn float(value: &DeValue<'_>) -> Option<f64> {
    if let Some(integer) = value.as_integer() {
        return i64::from_str_radix(integer.as_str(), integer.radix()).ok().map(|number| number as f64);
    }
    value.as_float()?.as_str().replace('_', "").parse().ok()
}

pub(super) fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

const NAME_OCTETS_MAX: usize = 200;
