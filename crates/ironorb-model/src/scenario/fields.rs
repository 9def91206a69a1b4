//! Values of a TOML document by their kinds. Each reports what it is not, and where.

use std::ops::RangeInclusive;
use std::time::Duration;

use ironorb_units::NoTime;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::keys::{in_place_of, keys_of};
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
                let known = || keys_of(fields.section).map(|known| known.key);
                let instead = in_place_of(fields.section, name);
                let mend = instead.map_or_else(|| did_you_mean(name, known()), str::to_owned);
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
        let text = value.get_ref().as_str();
        if text.is_none_or(str::is_empty) {
            let is = if text.is_some() { "is empty" } else { "is no text" };
            self.problem(value.span().start, format!("`{key}` {is}"), format!("write `{key} = \"...\"`"));
        }
        text.filter(|text| !text.is_empty())
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

    /// The value of a key, of a kind and within its range.
    pub(super) fn of_kind<T: Copy + PartialOrd>(
        &mut self,
        kind: &Kind<T>,
        fields: &Fields<'t>,
        key: &str,
        range: RangeInclusive<T>,
    ) -> Option<T> {
        let value = self.value(fields, key)?;
        self.value_of(kind, key, value, range)
    }

    /// A value of a kind, within its range.
    pub(super) fn value_of<T: Copy + PartialOrd>(
        &mut self,
        kind: &Kind<T>,
        key: &str,
        value: Value<'t>,
        range: RangeInclusive<T>,
    ) -> Option<T> {
        let shown = |value: &T| (kind.shown)(*value);
        let (low, high) = (range.start(), range.end());
        let (message, mend) = match (kind.read)(value.get_ref()) {
            Ok(value) if range.contains(&value) => return Some(value),
            Ok(value) => {
                let nearest = if value < *low { low } else { high };
                let message = format!(
                    "`{key}` is {}; it must be from {} to {}",
                    shown(&value),
                    shown(low),
                    shown(high)
                );
                (message, format!("write `{key} = {}`", shown(nearest)))
            }
            Err(NotRead::Nearly { what, instead }) => {
                (format!("`{key}` {what}"), format!("write `{key} = {instead}`"))
            }
            Err(NotRead::Other) => {
                let mend = format!("write {} from {} to {}", kind.form, shown(low), shown(high));
                (format!("`{key}` is no {}", kind.name), mend)
            }
        };
        self.problem(value.span().start, message, mend);
        None
    }
}

/// How values of one kind are written.
pub(super) struct Kind<T> {
    /// As messages call it.
    name: &'static str,
    /// What to write.
    form: &'static str,
    read: fn(&DeValue<'_>) -> Result<T, NotRead>,
    /// As files have it.
    shown: fn(T) -> String,
}

/// Why something is no value of a kind.
enum NotRead {
    Other,
    /// What is wrong with it, and what is probably meant.
    Nearly {
        what: &'static str,
        instead: String,
    },
}

pub(super) const NUMBER: Kind<u64> = Kind {
    name: "whole number",
    form: "a whole number",
    read: |value| {
        let number = value.as_integer();
        let number = number.and_then(|number| u64::from_str_radix(number.as_str(), number.radix()).ok());
        number.ok_or(NotRead::Other)
    },
    shown: |number| number.to_string(),
};

pub(super) const FACTOR: Kind<f64> = Kind {
    name: "number",
    form: "a number",
    read: |value| float(value).ok_or(NotRead::Other),
    shown: |number| number.to_string(),
};

pub(super) const SHARE: Kind<f64> = Kind {
    name: "share",
    form: "a number with `%`, or a part of one,",
    read: |value| {
        let share = match value.as_str() {
            Some(text) => ironorb_units::share(text),
            None => float(value),
        };
        share.ok_or(NotRead::Other)
    },
    // Seven per cent are 0.07, and 100 times that a little more than seven.
    shown: |share| format!("\"{} %\"", (share * 1e11).round() / 1e9),
};

pub(super) const BANDWIDTH: Kind<u64> = Kind {
    name: "bandwidth",
    form: "a number with one of the units `bit/s`, `kbit/s`, `Mbit/s` and `Gbit/s`",
    read: |value| value.as_str().and_then(ironorb_units::bits_per_second).ok_or(NotRead::Other),
    shown: |bits| {
        let units = [(1_000_000_000, "Gbit/s"), (1_000_000, "Mbit/s"), (1_000, "kbit/s")];
        let unit = units.into_iter().find(|(size, _)| bits > 0 && bits.is_multiple_of(*size));
        let (size, unit) = unit.unwrap_or((1, "bit/s"));
        format!("\"{} {unit}\"", bits / size)
    },
};

pub(super) const TIME: Kind<Duration> = Kind {
    name: "time",
    form: "a number with one of the units `ns`, `us`, `ms` and `s`, as `\"1.5 ms\"`,",
    read: |value| {
        let text = value.as_str().ok_or(NotRead::Other)?;
        let nanos = ironorb_units::nanos(text).map_err(|why| no_time(text, why))?;
        Ok(Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX)))
    },
    shown: |time| format!("\"{time:?}\""),
};

fn no_time(text: &str, why: NoTime) -> NotRead {
    let bare = text.trim().trim_start_matches('-').trim();
    let is_number = !bare.is_empty() && bare.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    match why {
        NoTime::Negative => NotRead::Nearly { what: "is negative", instead: format!("\"{bare}\"") },
        NoTime::Unit if is_number => {
            NotRead::Nearly { what: "has no unit", instead: format!("\"{bare} ms\"") }
        }
        NoTime::Unit | NoTime::Number => NotRead::Other,
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
