//! `ironorb job run`: a job from a file, over servers of any interface.

use std::fs;
use std::io::{self, Read as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;
use ironorb::dynamic::{DynamicError, OperationDescription, Request, Results};
use ironorb::{CompletionStatus, ObjectRef, Orb, SystemException, TypedRef as _};
use ironorb_agent::AgentClient;
use ironorb_dynamic::Interfaces;
use ironorb_jobs::{
    AgentHandles, Architecture, DAEMON_KEY, JobDaemonRef, JobEnd, Jobs, PartEnd, PartOptions, PartTime,
    Verdict,
};
use serde_json::{Map, Value, json};

use super::file::{JobFile, PartFile};
use crate::call::{self, ResultPrinter, Sources, arguments, operation};
use crate::failure::Failure;
use crate::seconds::seconds;
use crate::{calling, output, reference};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The job, as JSON; `-` reads standard input.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    sources: Sources,
    /// The agent that resolves names, instead of the file's: HOST or HOST:PORT, a corbaloc or an IOR.
    #[arg(long, value_name = "ADDRESS")]
    agent: Option<String>,
    /// The daemon, instead of the file's: HOST:PORT, a corbaloc or an IOR.
    #[arg(long, value_name = "ADDRESS")]
    daemon: Option<String>,
    /// Where servers tell their results, with the architecture `forwarding`. They must allow the network.
    #[arg(long, value_name = "ADDRESS", default_value = "iiop://127.0.0.1:0")]
    endpoint: String,
    /// How long one request may take where neither the job nor the part says it, in seconds.
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = seconds)]
    timeout: Duration,
    /// Print JSON on one line.
    #[arg(long)]
    compact: bool,
}

/// A part that can be begun.
struct Prepared {
    file: PartFile,
    target: Target,
    operation: Arc<OperationDescription>,
    known: Interfaces,
}

enum Target {
    Object(ObjectRef),
    Name(String),
}

type Ends = JobEnd<Vec<PartEnd<Results, DynamicError>>>;

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let shown = arguments.file.display();
    let in_file = |failure: Failure| failure.at(&shown);
    let text = read(arguments).map_err(|e| Failure::new(format!("cannot read {shown}: {e}")))?;
    let mut job = JobFile::read(&text).map_err(in_file)?;
    let agent = arguments.agent.clone().or(job.agent.take());
    let daemon = arguments.daemon.clone().or(job.daemon.take());
    let needs_daemon = matches!(job.architecture, Architecture::Forwarding | Architecture::Synchronous);
    if needs_daemon && daemon.is_none() {
        return Err(Failure::usage("architecture: its calls are made by a daemon, and none is named")
            .at(&shown)
            .with_help("\"daemon\": \"HOST:PORT\" in the file names one, or --daemon; `ironorb job serve` starts one"));
    }
    let mut known = arguments.sources.read()?;
    let orb = orb(arguments, job.architecture)?;
    arguments.sources.add_repository(&mut known, &orb)?;
    let client = match &agent {
        None => None,
        Some(address) => Some(
            AgentClient::connect(&orb, [address])
                .map_err(|e| Failure::usage(format!("the agent {address}: {e}")))?,
        ),
    };
    let mut jobs = Jobs::builder(&orb);
    if let Some(client) = &client {
        jobs = jobs.handles(AgentHandles::new(client));
    }
    if let Some(daemon) = &daemon {
        let url = calling::with_key(daemon, DAEMON_KEY);
        jobs = jobs.daemon(&url).map_err(|e| Failure::usage(format!("the daemon {daemon}: {e}")))?;
    }
    let preparation =
        Preparation { arguments, orb: &orb, known, client: client.as_ref(), by_daemon: needs_daemon };
    let mut parts = Vec::with_capacity(job.parts.len());
    for (number, part) in job.parts.drain(..).enumerate() {
        let place = format!("{shown}: parts[{number}]");
        parts.push(preparation.prepare(part).map_err(|failure| failure.at(place))?);
    }
    let begun = Instant::now();
    let end = carry_out(&job, &jobs.build(), &parts, &orb);
    print(arguments, &parts, end, begun.elapsed())
}

fn read(arguments: &Arguments) -> io::Result<String> {
    if arguments.file.as_os_str() == "-" {
        let mut text = String::new();
        io::stdin().read_to_string(&mut text)?;
        return Ok(text);
    }
    fs::read_to_string(&arguments.file)
}

/// An ORB that listens only if it is to be called.
fn orb(arguments: &Arguments, architecture: Architecture) -> Result<Orb, Failure> {
    if architecture != Architecture::Forwarding {
        return calling::orb(Orb::builder(), arguments.timeout);
    }
    let builder = Orb::builder().call_timeout(Some(arguments.timeout)).connect_timeout(arguments.timeout);
    let endpoint = &arguments.endpoint;
    let builder =
        builder.endpoint(endpoint).map_err(|e| Failure::usage(format!("--endpoint {endpoint}: {e}")))?;
    ironorb_record::install(builder).build().map_err(|e| calling::not_built(&e))
}

struct Preparation<'a> {
    arguments: &'a Arguments,
    orb: &'a Orb,
    known: Interfaces,
    client: Option<&'a AgentClient>,
    /// Whether the daemon resolves names.
    by_daemon: bool,
}

impl Preparation<'_> {
    fn prepare(&self, part: PartFile) -> Result<Prepared, Failure> {
        let target = match is_reference(&part.target) {
            true => {
                let object = reference::object(self.orb, &part.target);
                Target::Object(object.map_err(|e| call::explain_reference(&part.target, &e).at("target"))?)
            }
            false => Target::Name(part.target.clone()),
        };
        let known_as = match operation::of_every_object(&part.operation) {
            Some(found) => Some(found),
            None => match &part.interface {
                Some(name) => {
                    let interface =
                        call::interface_named(&self.known, name).map_err(|f| f.at("interface"))?;
                    Some(operation::find(&interface, &part.operation).map_err(|f| f.at("operation"))?)
                }
                None => None,
            },
        };
        // The definitions of a name are those of one of its servers.
        let object = match (&target, &known_as) {
            (Target::Object(object), _) => Some(object.clone()),
            (Target::Name(_), Some(_)) if self.by_daemon => None,
            (Target::Name(name), _) => Some(self.server_of(name)?),
        };
        let known = match &object {
            Some(object) => self.known.with_definitions_of(object),
            None => self.known.clone(),
        };
        let found = match (known_as, &object) {
            (Some(found), _) => found,
            (None, Some(object)) => {
                let interface = self.arguments.sources.interface_of(object, &self.known)?;
                operation::find(&interface, &part.operation).map_err(|f| f.at("operation"))?
            }
            (None, None) => return Err(Failure::usage("interface: it is missing")),
        };
        let operation = found.operation;
        if found.value.is_some() {
            return Err(Failure::usage(
                "operation: an attribute is set by `_set_NAME`, with its value among the arguments",
            ));
        }
        if operation.oneway {
            return Err(Failure::usage(format!(
                "operation: `{}` is oneway: a job has nothing to wait for",
                part.operation
            )));
        }
        let prepared = Prepared { file: part, target, operation, known };
        // What is wrong with the arguments is told before anything is sent.
        prepared.read_arguments(self.orb).map_err(|failure| failure.at("arguments"))?;
        Ok(prepared)
    }

    fn server_of(&self, name: &str) -> Result<ObjectRef, Failure> {
        let no_agent = || {
            let help = match self.by_daemon {
                true => {
                    "\"interface\": \"NAME\" says what the daemon's `target` is, or \"agent\" who knows its servers"
                }
                false => {
                    "\"agent\": \"HOST:PORT\" in the file names one, or --agent; a reference begins with IOR: or corbaloc:"
                }
            };
            Failure::usage(format!("target: `{name}` is a name, and no agent is given")).with_help(help)
        };
        let client = self.client.ok_or_else(no_agent)?;
        let servers = client
            .resolve(name)
            .map_err(|e| Failure::new(format!("target: cannot resolve `{name}`: {e}")))?;
        let Some(server) = servers.first() else {
            return Err(Failure::new(format!("target: no server is registered under `{name}`"))
                .with_help("`ironorb agent list` shows the names"));
        };
        let object = self.orb.string_to_object(&server.reference);
        object.map_err(|e| call::explain_reference(&server.reference, &e).at("target"))
    }
}

impl Prepared {
    fn read_arguments(&self, orb: &Orb) -> Result<Vec<(usize, arguments::Argument)>, Failure> {
        arguments::of_json(&self.operation, self.file.arguments.as_ref(), &self.known, orb)
    }

    /// The request, for an object that may stand for others.
    fn begin(
        &self,
        object: &ObjectRef,
        orb: &Orb,
    ) -> Result<ironorb::dynamic::DeferredResponse, DynamicError> {
        let mut request = Request::new(object, self.operation.clone());
        // They could be read before.
        for (index, value) in self.read_arguments(orb).unwrap_or_default() {
            match value {
                arguments::Argument::Any(value) => request.set_any(index, &value),
                arguments::Argument::Json(value) => request.set_unchecked(index, Box::new(value)),
            }
            .map_err(DynamicError::Request)?;
        }
        request.send_deferred()
    }

    fn options(&self) -> PartOptions {
        let mut options = PartOptions::new();
        if let Some(within) = self.file.within {
            options = options.within(within);
        }
        if self.file.is_idempotent {
            options = options.idempotent();
        }
        if let Some(after) = self.file.hedge_after {
            options = options.hedged_after(after);
        }
        options
    }
}

fn carry_out(job: &JobFile, jobs: &Jobs, parts: &[Prepared], orb: &Orb) -> Ends {
    let none: [fn() -> Result<ironorb::dynamic::DeferredResponse, DynamicError>; 0] = [];
    let mut whole = jobs.job().and_all(none);
    for part in parts {
        whole = match &part.target {
            Target::Object(object) => whole.call_as(part.options(), || part.begin(object, orb)),
            // The type of the reference says nothing: the request is a dynamic one.
            Target::Name(name) => whole
                .call_named(name, part.options(), |server: &JobDaemonRef| part.begin(server.object(), orb)),
        };
    }
    if let Some(within) = job.within {
        whole = whole.within(within);
    }
    whole.quorum(job.quorum).architecture(job.architecture).falls_back(job.falls_back).run()
}

fn print(arguments: &Arguments, parts: &[Prepared], end: Ends, took: Duration) -> Result<(), Failure> {
    let ends = parts.iter().zip(end.parts).zip(&end.times);
    let parts: Vec<Value> = ends.map(|((part, end), time)| shown(part, end, *time)).collect();
    let verdict = word(end.verdict);
    let whole = json!({ "verdict": verdict, "took_ms": millis(took), "parts": parts });
    output::line(if arguments.compact { format!("{whole}") } else { format!("{whole:#}") })?;
    match end.verdict {
        Verdict::Met => Ok(()),
        _ => Err(Failure::new(format!("the quorum is not met: {verdict}"))),
    }
}

fn shown(part: &Prepared, end: PartEnd<Results, DynamicError>, time: PartTime) -> Value {
    let mut shown = Map::new();
    let mut put = |name: &str, value: Value| shown.insert(name.to_owned(), value);
    put("target", json!(part.file.target));
    put("operation", json!(part.file.operation));
    let printer = ResultPrinter {
        operation: &part.operation,
        name: operation::plain(&part.operation.name),
        known: &part.known,
        compact: true,
        verbose: false,
    };
    match end {
        PartEnd::Result(results) => {
            put("end", json!("result"));
            match printer.json(&results) {
                Ok(value) => put("result", value),
                Err(failure) => put("unprintable", json!(failure.message())),
            };
        }
        PartEnd::Exception(e) => {
            put("end", json!("exception"));
            match &e {
                DynamicError::User(exception) => {
                    let value = printer.exception_json(exception);
                    put("exception", value.unwrap_or_else(|e| json!(e.to_string())));
                }
                DynamicError::System(e) => {
                    put("exception", system(e));
                }
                other => {
                    put("exception", json!(other.to_string()));
                }
            }
        }
        PartEnd::Cancelled { may_be_executed } => {
            put("end", json!("cancelled"));
            put("may_be_executed", json!(may_be_executed));
        }
        PartEnd::Unknown(e) => {
            put("end", json!("unknown"));
            put("exception", system(&e));
        }
    }
    put("took_ms", millis(time.took));
    put("attempts", json!(time.attempts));
    Value::Object(shown)
}

fn system(e: &SystemException) -> Value {
    let completed = match e.completed {
        CompletionStatus::Yes => "yes",
        CompletionStatus::No => "no",
        CompletionStatus::Maybe => "maybe",
    };
    json!({ "exception": e.kind.repository_id(), "minor": e.minor.0, "completed": completed, "detail": e.detail() })
}

/// Milliseconds with three digits behind the point.
fn millis(time: Duration) -> Value {
    json!(time.as_micros() as f64 / 1e3)
}

fn is_reference(target: &str) -> bool {
    calling::has_scheme(target) || target.get(..5).is_some_and(|scheme| scheme.eq_ignore_ascii_case("file:"))
}

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Met => "met",
        Verdict::CannotBeMet => "cannot be met",
        Verdict::Deadline => "time is over",
        Verdict::GivenUp => "given up",
    }
}
