//! The file of a job: JSON, of which every mistake is told with its place.

use std::time::Duration;

use ironorb_jobs::{Architecture, Quorum};
use serde_json::{Map, Value};

use crate::failure::Failure;

/// A job, as its file says it.
#[derive(Debug, PartialEq)]
pub(super) struct JobFile {
    pub(super) parts: Vec<PartFile>,
    pub(super) quorum: Quorum,
    pub(super) within: Option<Duration>,
    pub(super) architecture: Architecture,
    pub(super) agent: Option<String>,
    pub(super) daemon: Option<String>,
    pub(super) falls_back: bool,
}

/// A part.
#[derive(Debug, PartialEq)]
pub(super) struct PartFile {
    pub(super) target: String,
    pub(super) operation: String,
    pub(super) arguments: Option<Value>,
    /// Of which interface the target is taken to be, by its name or repository id.
    pub(super) interface: Option<String>,
    pub(super) is_idempotent: bool,
    pub(super) within: Option<Duration>,
    pub(super) hedge_after: Option<Duration>,
}

/// The most parts. Default and only value: 10,000.
const PARTS_MAX: usize = 10_000;

const ARCHITECTURES: [(&str, Architecture); 5] = [
    ("auto", Architecture::Auto),
    ("sequential", Architecture::Sequential),
    ("handle-driven", Architecture::HandleDriven),
    ("forwarding", Architecture::Forwarding),
    ("synchronous", Architecture::Synchronous),
];

const QUORUMS: &str = "a quorum is \"all\", \"any\", \"best_effort\" or {\"at_least\": N}";

impl JobFile {
    /// Reads the text of a file.
    pub(super) fn read(text: &str) -> Result<JobFile, Failure> {
        let whole: Value =
            serde_json::from_str(text).map_err(|e| Failure::usage(format!("it is not JSON: {e}")))?;
        let Value::Object(members) = &whole else {
            return Err(Failure::usage(
                "a job is an object: {\"parts\": [{\"target\": …, \"operation\": …}]}",
            ));
        };
        let job = Members { place: String::new(), members };
        job.check(&["parts", "quorum", "within_ms", "architecture", "agent", "daemon", "falls_back"])?;
        let parts = match members.get("parts") {
            Some(Value::Array(parts)) if !parts.is_empty() => parts,
            Some(Value::Array(_)) | None => {
                return Err(
                    job.wrong("parts", "a job has one part at least: {\"target\": …, \"operation\": …}")
                );
            }
            Some(_) => return Err(job.wrong("parts", "parts are an array")),
        };
        if parts.len() > PARTS_MAX {
            return Err(job.wrong("parts", &format!("a job has {PARTS_MAX} parts at most")));
        }
        let numbered = parts.iter().enumerate();
        let parts: Vec<PartFile> =
            numbered.map(|(number, part)| PartFile::read(number, part)).collect::<Result<_, _>>()?;
        Ok(JobFile {
            quorum: quorum(&job, parts.len())?,
            parts,
            within: job.time("within_ms")?,
            architecture: architecture(&job)?,
            agent: job.text("agent")?,
            daemon: job.text("daemon")?,
            falls_back: job.flag("falls_back")?,
        })
    }
}

impl PartFile {
    fn read(number: usize, part: &Value) -> Result<PartFile, Failure> {
        let place = format!("parts[{number}]");
        let Value::Object(members) = part else {
            return Err(Failure::usage(format!(
                "{place}: a part is an object: {{\"target\": …, \"operation\": …}}"
            )));
        };
        let part = Members { place, members };
        part.check(&[
            "target",
            "operation",
            "arguments",
            "interface",
            "idempotent",
            "within_ms",
            "hedge_after_ms",
        ])?;
        let needed = |name: &str| -> Result<String, Failure> {
            part.text(name)?
                .ok_or_else(|| part.wrong(name, "it is missing: each part has a target and an operation"))
        };
        let read = PartFile {
            target: needed("target")?,
            operation: needed("operation")?,
            arguments: members.get("arguments").cloned(),
            interface: part.text("interface")?,
            is_idempotent: part.flag("idempotent")?,
            within: part.time("within_ms")?,
            hedge_after: part.time("hedge_after_ms")?,
        };
        if read.hedge_after.is_some() && !read.is_idempotent {
            return Err(part.wrong(
                "hedge_after_ms",
                "a second server may carry the part out again: say \"idempotent\": true if that does no harm",
            ));
        }
        Ok(read)
    }
}

/// The members of an object, and where it stands.
struct Members<'a> {
    place: String,
    members: &'a Map<String, Value>,
}

impl Members<'_> {
    fn wrong(&self, member: &str, why: &str) -> Failure {
        Failure::usage(why).at(self.at(member))
    }

    fn at(&self, member: &str) -> String {
        if self.place.is_empty() { member.to_owned() } else { format!("{}.{member}", self.place) }
    }

    /// Refuses members that mean nothing: a misspelt one would be passed over.
    fn check(&self, known: &[&str]) -> Result<(), Failure> {
        let Some(unknown) = self.members.keys().find(|name| !known.contains(&name.as_str())) else {
            return Ok(());
        };
        let mistakes = |name: &&&str| strsim::damerau_levenshtein(name, unknown);
        let failure = self.wrong(unknown, "there is no such member");
        Err(match known.iter().min_by_key(mistakes) {
            Some(near) if mistakes(&near) <= 3 => failure.with_help(format!("`{near}` is likely meant")),
            _ => failure.with_help(format!("there are {}", known.join(", "))),
        })
    }

    fn text(&self, name: &str) -> Result<Option<String>, Failure> {
        match self.members.get(name) {
            None => Ok(None),
            Some(Value::String(text)) if !text.is_empty() => Ok(Some(text.clone())),
            Some(_) => Err(self.wrong(name, "a text is expected, in quotes")),
        }
    }

    fn flag(&self, name: &str) -> Result<bool, Failure> {
        match self.members.get(name) {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(_) => Err(self.wrong(name, "true or false is expected")),
        }
    }

    fn time(&self, name: &str) -> Result<Option<Duration>, Failure> {
        let Some(value) = self.members.get(name) else { return Ok(None) };
        let millis = value.as_f64().filter(|millis| *millis > 0.0);
        let time = millis.and_then(|millis| Duration::try_from_secs_f64(millis / 1e3).ok());
        match time {
            Some(time) if !time.is_zero() => Ok(Some(time)),
            _ => Err(self.wrong(name, "a number of milliseconds above 0 is expected")),
        }
    }
}

fn quorum(job: &Members<'_>, parts: usize) -> Result<Quorum, Failure> {
    Ok(match job.members.get("quorum") {
        None => Quorum::All,
        Some(Value::String(text)) if text == "all" => Quorum::All,
        Some(Value::String(text)) if text == "any" => Quorum::Any,
        Some(Value::String(text)) if text == "best_effort" => Quorum::BestEffort,
        Some(Value::Object(members)) if members.len() == 1 => {
            let count = members.get("at_least").and_then(Value::as_u64);
            let count = count.and_then(|count| usize::try_from(count).ok()).filter(|count| *count > 0);
            match count {
                Some(count) if count <= parts => Quorum::AtLeast(count),
                Some(count) => {
                    let why = format!("{count} results are more than the job has parts: {parts}");
                    return Err(job.wrong("quorum", &why));
                }
                None => return Err(job.wrong("quorum", QUORUMS)),
            }
        }
        Some(_) => return Err(job.wrong("quorum", QUORUMS)),
    })
}

fn architecture(job: &Members<'_>) -> Result<Architecture, Failure> {
    let Some(text) = job.text("architecture")? else { return Ok(Architecture::Auto) };
    let found = ARCHITECTURES.iter().find(|(name, _)| *name == text);
    found.map(|(_, architecture)| *architecture).ok_or_else(|| {
        let names: Vec<&str> = ARCHITECTURES.iter().map(|(name, _)| *name).collect();
        job.wrong("architecture", &format!("`{text}` is none: there are {}", names.join(", ")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_are_read() {
        let text = r#"{
            "parts": [
                {"target": "bank/a", "operation": "balance", "idempotent": true, "within_ms": 0.5, "hedge_after_ms": 2},
                {"target": "IOR:00", "operation": "add", "arguments": [1, 2], "interface": "Probe"}
            ],
            "quorum": {"at_least": 2}, "within_ms": 100, "architecture": "forwarding", "daemon": "bank:1"
        }"#;
        let job = JobFile::read(text).unwrap();
        assert_eq!((job.quorum, job.within), (Quorum::AtLeast(2), Some(Duration::from_millis(100))));
        assert_eq!(job.architecture, Architecture::Forwarding);
        assert_eq!((job.agent, job.daemon.as_deref()), (None, Some("bank:1")));
        assert_eq!(job.parts[0].within, Some(Duration::from_micros(500)));
        assert!(job.parts[0].is_idempotent && !job.parts[1].is_idempotent);
        assert_eq!(job.parts[1].interface.as_deref(), Some("Probe"));
        let least = JobFile::read(r#"{"parts": [{"target": "a", "operation": "b"}]}"#).unwrap();
        assert_eq!((least.quorum, least.within, least.architecture), (Quorum::All, None, Architecture::Auto));
    }

    #[test]
    fn mistakes_are_told_with_their_place() {
        let part = r#"{"target": "a", "operation": "b"}"#;
        for (text, says) in [
            ("{", "it is not JSON: EOF while parsing an object at line 1 column 1"),
            ("[]", "a job is an object"),
            ("{}", "parts: a job has one part at least"),
            (r#"{"parts": []}"#, "parts: a job has one part at least"),
            (r#"{"parts": [3]}"#, "parts[0]: a part is an object"),
            (&format!(r#"{{"parts": [{part}, {{"target": "a"}}]}}"#), "parts[1].operation: it is missing"),
            (r#"{"parts": [{"target": 3, "operation": "b"}]}"#, "parts[0].target: a text is expected"),
            (
                r#"{"parts": [{"target": "a", "operation": "b", "within": 3}]}"#,
                "parts[0].within: there is no such member",
            ),
            (
                r#"{"parts": [{"target": "a", "operation": "b", "hedge_after_ms": 3}]}"#,
                "parts[0].hedge_after_ms: a second server may carry the part out again",
            ),
            (
                &format!(r#"{{"parts": [{part}], "within_ms": -1}}"#),
                "within_ms: a number of milliseconds above 0",
            ),
            (&format!(r#"{{"parts": [{part}], "quorum": "most"}}"#), "quorum: a quorum is"),
            (
                &format!(r#"{{"parts": [{part}], "quorum": {{"at_least": 2}}}}"#),
                "quorum: 2 results are more than",
            ),
            (
                &format!(r#"{{"parts": [{part}], "architecture": "fp"}}"#),
                "architecture: `fp` is none: there are auto,",
            ),
        ] {
            let failure = JobFile::read(text).expect_err(text);
            assert!(failure.message().starts_with(says), "{text}: {}", failure.message());
        }
    }
}
