//! Spans of time for viewers of Chrome's trace format, such as `ui.perfetto.dev` and `chrome://tracing`: an array of JSON
//! objects. Hosts are its processes, threads its threads; times are microseconds with three digits behind the point.

use std::collections::{BTreeMap, HashSet};
use std::io::{self, Write};
use std::time::Duration;

use serde_json::{Value, json};

use super::recording::Recording;
use crate::Time;

/// Writes a trace.
#[derive(Debug)]
pub struct ChromeTrace<W> {
    out: W,
    events: u64,
    octets: u64,
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

/// Something that a thread begins to do, while it is not known yet when it ends.
#[derive(Debug, Clone, Copy)]
pub struct SpanBegin<'a> {
    /// The number of the host.
    pub host: u32,
    /// The number of the thread there.
    pub thread: u32,
    /// What it does.
    pub name: &'a str,
    /// The kind, by which viewers filter.
    pub kind: &'a str,
    /// When it begins.
    pub at: Time,
    /// What else to say of it.
    pub details: &'a [(&'a str, Value)],
}

impl<W: Write> ChromeTrace<W> {
    /// Begins a trace.
    pub fn begin(mut out: W) -> io::Result<ChromeTrace<W>> {
        let head = b"[\n";
        out.write_all(head)?;
        let octets = head.len() as u64;
        Ok(ChromeTrace { out, events: 0, octets, hosts: HashSet::new(), threads: HashSet::new() })
    }

    /// The octets that have been written.
    pub fn octets(&self) -> u64 {
        self.octets
    }

    /// Names a host. The first name counts: true if this is it.
    pub fn host(&mut self, host: u32, name: &str) -> io::Result<bool> {
        let is_new = self.hosts.insert(host);
        if is_new {
            let name = json!({ "name": name });
            self.event(json!({ "ph": "M", "name": "process_name", "pid": host, "args": name }), &[])?;
        }
        Ok(is_new)
    }

    /// Says something of a host beside its name.
    pub fn label(&mut self, host: u32, text: &str) -> io::Result<()> {
        let labels = json!({ "labels": text });
        self.event(json!({ "ph": "M", "name": "process_labels", "pid": host, "args": labels }), &[])
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
        self.event(head("X", &span.its_begin()), &times)
    }

    /// A thread begins something. All that it begins before [the end](Self::end_span) lies within. Given in the order of times,
    /// spans nest as they were given, even those that begin and end together.
    pub fn begin_span(&mut self, span: &SpanBegin<'_>) -> io::Result<()> {
        self.event(head("B", span), &[("ts", microseconds(span.at.as_ns()))])
    }

    /// A thread ends what it has begun last.
    pub fn end_span(
        &mut self,
        (host, thread): (u32, u32),
        at: Time,
        details: &[(&str, Value)],
    ) -> io::Result<()> {
        let mut event = json!({ "ph": "E", "pid": host, "tid": thread });
        if !details.is_empty() {
            event["args"] = object(details);
        }
        self.event(event, &[("ts", microseconds(at.as_ns()))])
    }

    /// Adds what need not lie within other spans of its thread: one of several calls that wait at once. Viewers draw it in a row
    /// of its own. `number` is not that of another such span.
    pub fn span_apart(&mut self, span: &Span<'_>, number: u64) -> io::Result<()> {
        let mut end = span.its_begin();
        self.begin_apart(&end, number)?;
        end.at = span.end;
        self.end_apart(&end, number)
    }

    /// Begins [such a span](Self::span_apart).
    pub fn begin_apart(&mut self, span: &SpanBegin<'_>, number: u64) -> io::Result<()> {
        self.apart("b", span, number)
    }

    /// Ends such a span: the host, name, kind and number are those of its begin.
    pub fn end_apart(&mut self, span: &SpanBegin<'_>, number: u64) -> io::Result<()> {
        self.apart("e", span, number)
    }

    fn apart(&mut self, phase: &str, span: &SpanBegin<'_>, number: u64) -> io::Result<()> {
        let mut event = head(phase, span);
        event["id"] = json!(format!("{number:x}"));
        self.event(event, &[("ts", microseconds(span.at.as_ns()))])
    }

    /// Adds an arrow from a span to one that it has led to. `from` and `to` are host, thread and a time in the span. `number` is not
    /// that of another arrow.
    pub fn arrow(&mut self, number: u64, from: (u32, u32, Time), to: (u32, u32, Time)) -> io::Result<()> {
        self.begin_arrow(number, from)?;
        self.end_arrow(number, to)
    }

    /// Begins [an arrow](Self::arrow).
    pub fn begin_arrow(&mut self, number: u64, from: (u32, u32, Time)) -> io::Result<()> {
        self.end_of_arrow("s", number, from)
    }

    /// Ends an arrow, in the span that has begun last.
    pub fn end_arrow(&mut self, number: u64, to: (u32, u32, Time)) -> io::Result<()> {
        self.end_of_arrow("f", number, to)
    }

    fn end_of_arrow(
        &mut self,
        phase: &str,
        number: u64,
        (host, thread, at): (u32, u32, Time),
    ) -> io::Result<()> {
        let event = json!({ "ph": phase, "name": "request", "cat": "request", "id": number, "pid": host, "tid": thread, "bp": "e" });
        self.event(event, &[("ts", microseconds(at.as_ns()))])
    }

    /// Hands over what has been written: viewers read a trace without its end, too.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    /// Ends the trace, and returns what it was written to.
    pub fn end(mut self) -> io::Result<W> {
        self.out.write_all(b"\n]\n")?;
        self.out.flush()?;
        Ok(self.out)
    }

    /// Writes an event with times, which JSON numbers of floating point would round.
    fn event(&mut self, event: Value, times: &[(&str, String)]) -> io::Result<()> {
        let mut text = if self.events > 0 { ",\n".to_owned() } else { String::new() };
        self.events += 1;
        text.push_str(&event.to_string());
        text.pop(); // the brace
        for (name, time) in times {
            text.push_str(&format!(",\"{name}\":{time}"));
        }
        text.push('}');
        self.octets += text.len() as u64;
        self.out.write_all(text.as_bytes())
    }
}

impl<'a> Span<'a> {
    fn its_begin(&self) -> SpanBegin<'a> {
        let Span { host, thread, name, kind, begin, details, .. } = *self;
        SpanBegin { host, thread, name, kind, at: begin, details }
    }
}

fn head(phase: &str, span: &SpanBegin<'_>) -> Value {
    let details = object(span.details);
    json!({ "ph": phase, "name": span.name, "cat": span.kind, "pid": span.host, "tid": span.thread, "args": details })
}

fn object(details: &[(&str, Value)]) -> Value {
    let details = details.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
    Value::Object(details.collect())
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
