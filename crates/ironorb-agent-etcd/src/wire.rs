//! What is said to etcd and what it answers, as JSON: its gateway writes numbers of 64 bits as texts, and keys and values in
//! Base64. What an answer lacks has its default.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ironorb_agent::registry::{Property, SharedEntry, SharedKey};
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

/// The keys of all agents that share names.
#[derive(Debug, Clone)]
pub(crate) struct Keys {
    prefix: String,
}

/// Keys from one on, before another, in Base64.
#[derive(Debug, Clone)]
pub(crate) struct Range {
    pub(crate) first: String,
    pub(crate) end: String,
}

impl Keys {
    pub(crate) fn new(prefix: &str) -> Keys {
        Keys { prefix: prefix.trim_end_matches('/').to_owned() }
    }

    /// The key that says that an agent's lease is good. Its value counts the agent's writes.
    pub(crate) fn agent(&self, agent: u64) -> String {
        text(format!("{}/agents/{agent:016x}", self.prefix).as_bytes())
    }

    /// All entries.
    pub(crate) fn entries(&self) -> Range {
        let names = format!("{}/names", self.prefix);
        // The character after a slash.
        Range { first: text(format!("{names}/").as_bytes()), end: text(format!("{names}0").as_bytes()) }
    }

    /// The exclusive entries of a name, or the others.
    pub(crate) fn of_name(&self, name: &str, is_exclusive: bool) -> Range {
        let name = format!("{}{name}", self.folder(is_exclusive));
        Range { first: text(format!("{name}\0").as_bytes()), end: text(format!("{name}\u{1}").as_bytes()) }
    }

    /// The key of an entry. Names have no control characters, so a NUL ends each part but the last.
    pub(crate) fn entry(&self, key: &SharedKey) -> String {
        let SharedKey { name, agent, owner, reference, is_exclusive } = key;
        let folder = self.folder(*is_exclusive);
        text(format!("{folder}{name}\0{agent:016x}\0{owner:016x}\0{reference}").as_bytes())
    }

    /// The entry that a key stands for; `None` if it is none.
    pub(crate) fn parse(&self, key: &[u8]) -> Option<SharedKey> {
        let key = std::str::from_utf8(key).ok()?;
        let folder = |is_exclusive| Some((key.strip_prefix(&self.folder(is_exclusive))?, is_exclusive));
        let (key, is_exclusive) = folder(false).or_else(|| folder(true))?;
        let mut parts = key.splitn(4, '\0');
        let name: Arc<str> = parts.next()?.into();
        let number = |text: &str| u64::from_str_radix(text, 16).ok();
        let (agent, owner) = (number(parts.next()?)?, number(parts.next()?)?);
        Some(SharedKey { name, agent, owner, reference: parts.next()?.into(), is_exclusive })
    }

    fn folder(&self, is_exclusive: bool) -> String {
        format!("{}/names/{}/", self.prefix, if is_exclusive { "exclusive" } else { "shared" })
    }
}

pub(crate) fn text(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// A number whose order is that of its text.
pub(crate) fn ordered(number: u64) -> String {
    text(format!("{number:016x}").as_bytes())
}

pub(crate) fn properties(properties: &[Property]) -> String {
    let pairs: Vec<_> = properties.iter().map(|property| (&*property.name, &*property.value)).collect();
    text(json!(pairs).to_string().as_bytes())
}

pub(crate) fn get(range: &Range, limit: u64) -> Value {
    json!({"request_range": {"key": range.first, "range_end": range.end, "limit": limit, "keys_only": true}})
}

pub(crate) fn get_one(key: &str) -> Value {
    json!({"request_range": {"key": key}})
}

pub(crate) fn put(key: &str, value: &str, lease: u64) -> Value {
    json!({"request_put": {"key": key, "value": value, "lease": lease.to_string()}})
}

pub(crate) fn delete(key: &str) -> Value {
    json!({"request_delete_range": {"key": key}})
}

pub(crate) fn is_value_less(key: &str, value: &str) -> Value {
    json!({"key": key, "target": "VALUE", "result": "LESS", "value": value})
}

pub(crate) fn is_empty(range: &Range) -> Value {
    json!({
        "key": range.first, "range_end": range.end,
        "target": "CREATE", "result": "EQUAL", "create_revision": "0",
    })
}

pub(crate) fn is_unchanged_since(range: &Range, revision: u64) -> Value {
    json!({
        "key": range.first, "range_end": range.end,
        "target": "MOD", "result": "LESS", "mod_revision": (revision + 1).to_string(),
    })
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Header {
    pub(crate) cluster_id: String,
    #[serde(deserialize_with = "number")]
    pub(crate) revision: u64,
}

/// A lease, granted or renewed.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Lease {
    #[serde(rename = "ID", deserialize_with = "number")]
    pub(crate) id: u64,
    #[serde(rename = "TTL", deserialize_with = "number")]
    pub(crate) seconds: u64,
}

/// A part of a stream.
#[derive(Debug, Deserialize)]
pub(crate) struct Streamed<T> {
    pub(crate) result: Option<T>,
    pub(crate) error: Option<Error>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Error {
    pub(crate) error: String,
    pub(crate) message: String,
    #[serde(alias = "grpc_code")]
    pub(crate) code: u32,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Found {
    pub(crate) header: Header,
    pub(crate) kvs: Vec<Pair>,
    pub(crate) more: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Pair {
    #[serde(deserialize_with = "bytes")]
    pub(crate) key: Vec<u8>,
    #[serde(deserialize_with = "bytes")]
    value: Vec<u8>,
    #[serde(deserialize_with = "number")]
    pub(crate) mod_revision: u64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Decided {
    pub(crate) header: Header,
    pub(crate) succeeded: bool,
    responses: Vec<Part>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Part {
    response_range: Found,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Watched {
    pub(crate) header: Header,
    pub(crate) created: bool,
    pub(crate) canceled: bool,
    pub(crate) cancel_reason: String,
    #[serde(deserialize_with = "number")]
    pub(crate) compact_revision: u64,
    pub(crate) events: Vec<Event>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Event {
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) kv: Pair,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Status {
    pub(crate) version: String,
}

impl Decided {
    /// What the read with this number found.
    pub(crate) fn found(&self, number: usize) -> Option<&Found> {
        self.responses.get(number).map(|part| &part.response_range)
    }
}

impl Found {
    /// The number that a key found has as its value.
    pub(crate) fn counted(&self) -> Option<u64> {
        let value = std::str::from_utf8(&self.kvs.first()?.value).ok()?;
        u64::from_str_radix(value, 16).ok()
    }
}

impl Pair {
    /// The entry; `None` if it is none.
    pub(crate) fn entry(&self, keys: &Keys) -> Option<SharedEntry> {
        let pairs: Vec<(Box<str>, Box<str>)> = serde_json::from_slice(&self.value).ok()?;
        let mut properties: Vec<_> =
            pairs.into_iter().map(|(name, value)| Property { name, value }).collect();
        properties.sort_unstable();
        Some(SharedEntry { key: keys.parse(&self.key)?, properties: properties.into() })
    }
}

fn number<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Number {
        Text(String),
        Plain(i64),
    }
    let number = match Number::deserialize(from)? {
        Number::Text(text) => text.parse::<i64>().map_err(serde::de::Error::custom)?,
        Number::Plain(number) => number,
    };
    // Leases have negative lengths once they have ended.
    Ok(u64::try_from(number).unwrap_or(0))
}

fn bytes<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
    STANDARD.decode(String::deserialize(from)?).map_err(serde::de::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_as_they_were_written() {
        let keys = Keys::new("/site/");
        for is_exclusive in [false, true] {
            let key = SharedKey {
                name: "bank/main é".into(),
                agent: u64::MAX - 1,
                owner: 7,
                reference: "IOR:00".into(),
                is_exclusive,
            };
            let written = STANDARD.decode(keys.entry(&key)).unwrap();
            assert_eq!(keys.parse(&written), Some(key.clone()));
            let range = keys.of_name(&key.name, is_exclusive);
            let bound = |text: &str| STANDARD.decode(text).unwrap();
            assert!(bound(&range.first) < written && written < bound(&range.end));
            let longer = SharedKey { name: "bank/main é/x".into(), ..key };
            let longer = STANDARD.decode(keys.entry(&longer)).unwrap();
            assert!(longer >= bound(&range.end), "a name that begins with another is another");
            let all = keys.entries();
            assert!(bound(&all.first) < written && written < bound(&all.end));
        }
        for wrong in [
            "",
            "/site/names/shared/n",
            "/site/names/shared/n\x00z\x000\x00r",
            "/other/names/shared/n\x001\x002\x00r",
        ] {
            assert_eq!(keys.parse(wrong.as_bytes()), None, "{wrong:?}");
        }
        assert_eq!(keys.parse(b"/site/names/shared/n\0\xff"), None);
    }

    #[test]
    fn what_is_no_entry_is_none() {
        let keys = Keys::new("/p");
        let pair = |value: &str| Pair {
            key: b"/p/names/shared/n\x001\x002\x00r".to_vec(),
            value: value.as_bytes().to_vec(),
            mod_revision: 1,
        };
        assert!(pair(r#"[["zone","east"]]"#).entry(&keys).is_some());
        for wrong in ["", "{}", "[[1,2]]", r#"[["zone"]]"#] {
            assert_eq!(pair(wrong).entry(&keys), None, "{wrong}");
        }
    }

    #[test]
    fn numbers_are_texts_or_not() {
        let lease = |json: &str| serde_json::from_str::<Lease>(json).map(|lease| (lease.id, lease.seconds));
        assert_eq!(lease(r#"{"ID":"7587885","TTL":"5","header":{}}"#).unwrap(), (7_587_885, 5));
        assert_eq!(lease(r#"{"ID":3,"TTL":"-1"}"#).unwrap(), (3, 0));
        assert_eq!(lease("{}").unwrap(), (0, 0));
        assert!(lease(r#"{"ID":"99999999999999999999"}"#).is_err());
    }
}
