//! Spans of time for viewers of Chrome's trace format, such as `ui.perfetto.dev` and `chrome://tracing`: an array of JSON
//! objects. Hosts are its processes, threads its threads; times are microseconds with three digits behind the point.

use std::collections::{BTreeMap, HashSet};
use std::io::{self, Write};
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::recording::Recording;
use crate::Time;

/// Writes a trace.
#[derive(Debug)]
pub struct ChromeTrace<W> {
    out: W,
    events: u64,
    hosts: HashSet<u32>,
    threads: HashSet<(u32, u32)>,
}

/// Something that a thread did.
#[derive(Debug, Clone, Copy)]
pub struct Span<'a> {
    /// The number of the host.
    pub host: u32,
    /// The number of the thread there.
    pub thread: u32,
    /// What it did: an operation's name.
    pub name: &'a str,
    /// The kind, by which viewers filter: `call`, `upcall`, `wait`.
    pub kind: &'a str,
    /// When it began.
    pub begin: Time,
    /// When it ended.
    pub end: Time,
    /// What else to say of it.
    pub details: &'a [(&'a str, Value)],
}

impl<W: Write> ChromeTrace<W> {
    /// Begins a trace.
    pub fn begin(mut out: W) -> io::Result<ChromeTrace<W>> {
        out.write_all(b"[\n")?;
        Ok(ChromeTrace { out, events: 0, hosts: HashSet::new(), threads: HashSet::new() })
    }

    /// Names a host. The first name counts.
    pub fn host(&mut self, host: u32, name: &str) -> io::Result<()> {
        if !self.hosts.insert(host) {
            return Ok(());
        }
        self.event(json!({ "ph": "M", "name": "process_name", "pid": host, "args": { "name": name } }), &[])
    }

    /// Names a thread. The first name counts.
    pub fn thread(&mut self, host: u32, thread: u32, name: &str) -> io::Result<()> {
        if !self.threads.insert((host, thread)) {
            return Ok(());
        }
        let name = json!({ "name": name });
        self.event(json!({ "ph": "M", "name": "thread_name", "pid": host, "tid": thread, "args": name }), &[])
    }

    /// Adds what a thread did. Spans of one thread lie within one another or apart: viewers draw nothing else.
    pub fn span(&mut self, span: &Span<'_>) -> io::Result<()> {
        let times = [("ts", microseconds(span.begin.as_ns())), ("dur", length(span.end - span.begin))];
        self.event(head("X", span), &times)
    }

    /// Adds what need not lie within other spans of its thread: one of several calls that wait at once. Viewers draw it in a row
    /// of its own. `number` is not that of another such span.
    pub fn span_apart(&mut self, span: &Span<'_>, number: u64) -> io::Result<()> {
        for (phase, at) in [("b", span.begin), ("e", span.end)] {
            let mut event = head(phase, span);
            event["id"] = json!(format!("{number:x}"));
            self.event(event, &[("ts", microseconds(at.as_ns()))])?;
        }
        Ok(())
    }

    /// Adds an arrow from a span to one that it has led to. `from` and `to` are host, thread and a time in the span. `number` is not
    /// that of another arrow.
    pub fn arrow(&mut self, number: u64, from: (u32, u32, Time), to: (u32, u32, Time)) -> io::Result<()> {
        for (phase, (host, thread, at)) in [("s", from), ("f", to)] {
            let event = json!({ "ph": phase, "name": "request", "cat": "request", "id": number, "pid": host, "tid": thread, "bp": "e" });
            self.event(event, &[("ts", microseconds(at.as_ns()))])?;
        }
        Ok(())
    }

    /// Ends the trace, and returns what it was written to.
    pub fn end(mut self) -> io::Result<W> {
        self.out.write_all(b"\n]\n")?;
        self.out.flush()?;
        Ok(self.out)
    }

    /// Writes an event with times, which JSON numbers of floating point would round.
    fn event(&mut self, event: Value, times: &[(&str, String)]) -> io::Result<()> {
        if self.events > 0 {
            self.out.write_all(b",\n")?;
        }
        self.events += 1;
        let mut text = event.to_string();
        text.pop(); // the brace
        for (name, time) in times {
            text.push_str(&format!(",\"{name}\":{time}"));
        }
        text.push('}');
        self.out.write_all(text.as_bytes())
    }
}

fn head(phase: &str, span: &Span<'_>) -> Value {
    let details: Map<String, Value> =
        span.details.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    json!({ "ph": phase, "name": span.name, "cat": span.kind, "pid": span.host, "tid": span.thread, "args": details })
}

fn length(time: Duration) -> String {
    microseconds(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
}

fn microseconds(ns: u64) -> String {
    format!("{}.{:03}", ns / 1_000, ns % 1_000)
}

/// Writes a recording as a trace: its programs are the processes; arrows lead from calls to their services.
pub fn write_recording<W: Write>(recording: &Recording, out: W) -> io::Result<W> {
    let mut trace = ChromeTrace::begin(out)?;
    for (index, section) in recording.sections.iter().enumerate() {
        let head = &section.head;
        trace.host(index as u32, &format!("{} {} at {}", head.program, head.process, head.host))?;
        let threads: BTreeMap<_, _> = section.threads.iter().collect();
        for (thread, name) in threads {
            trace.thread(index as u32, *thread, name)?;
        }
    }
    let mut lines: BTreeMap<(u32, u32), Vec<Line<'_>>> = BTreeMap::new();
    for (index, call) in recording.calls.iter().enumerate() {
        let name = recording.operations[call.operation].name.as_str();
        if let (Some(client), Some(time)) = (call.client, call.time) {
            let line = Line { call: index, name, kind: "call", begin: call.begin, end: call.begin + time };
            lines.entry((client.section as u32, client.thread)).or_default().push(line);
        }
        if let Some(service) = &call.service {
            let end = service.begin + service.time;
            let line = Line { call: index, name, kind: "upcall", begin: service.begin, end };
            lines.entry((service.section as u32, service.thread)).or_default().push(line);
        }
        if let (Some(client), Some(service)) = (call.client, &call.service) {
            let from = (client.section as u32, client.thread, call.begin);
            let to = (service.section as u32, service.thread, service.begin);
            trace.arrow(index as u64, from, to)?;
        }
    }
    for ((host, thread), mut lines) in lines {
        // The outer ones first.
        lines.sort_by_key(|line| (line.begin, std::cmp::Reverse(line.end)));
        let mut open: Vec<Time> = Vec::new();
        for line in lines {
            while open.last().is_some_and(|end| *end <= line.begin) {
                open.pop();
            }
            let call = &recording.calls[line.call];
            let details = [
                ("call", json!(line.call)),
                ("request octets", json!(call.request_octets)),
                ("reply octets", json!(call.reply_octets)),
                ("object", json!(format!("{:016x}", call.object))),
                ("outcome", json!(call.outcome)),
            ];
            let Line { name, kind, begin, end, .. } = line;
            let span = Span { host, thread, name, kind, begin, end, details: &details };
            if open.last().is_some_and(|outer| *outer < end) {
                // One of several calls at once.
                trace.span_apart(&span, line.call as u64)?;
            } else {
                open.push(end);
                trace.span(&span)?;
            }
        }
    }
    trace.end()
}

struct Line<'r> {
    call: usize,
    name: &'r str,
    kind: &'static str,
    begin: Time,
    end: Time,
}
