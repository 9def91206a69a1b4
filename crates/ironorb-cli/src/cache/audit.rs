//! `ironorb cache audit`: whether cached reads of running objects keep their promise.

use std::fmt::Write as _;
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use ironorb::{AuditFinding, AuditReport, CacheAudit, Orb, SystemException, SystemExceptionKind};
use serde_json::{Value, json};

use super::{shown, time_with_unit};
use crate::failure::Failure;
use crate::seconds::seconds;
use crate::{call, calling, output, reference};

/// Audit objects with cached attributes: ask each for the version of its state, and demand that cached reads which begin more
/// than a lag later have at least that version, and the same values for the same version.
///
/// The command opens sessions of its own with the servers, so that it is a caching client as others are. It needs no IDL. It
/// ends with exit code 1 if a read breaks the promise, or if an object cannot be audited.
#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    after_help = "Examples:\n  \
        ironorb cache audit file:account.ior --seconds 60 --lag 10ms\n  \
        ironorb cache audit corbaname::names#bank/account --interface IDL:bank/Account:1.0 --json"
)]
pub(crate) struct Arguments {
    /// The objects: `corbaloc:…`, `IOR:…`, `corbaname:…`, or `file:PATH` of a file with one of these.
    #[arg(value_name = "REF", required = true)]
    objects: Vec<String>,
    /// The interface whose cached attributes are audited. Default: the one that the object's reference names.
    #[arg(long, value_name = "REPOSITORY_ID")]
    interface: Option<String>,
    /// How old a read may be, with its unit. Less than a round trip makes all reads remote ones.
    #[arg(long, value_name = "TIME", default_value = "10ms", value_parser = time_with_unit)]
    lag: Duration,
    /// How long to audit, in seconds. Fractions are allowed.
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = seconds)]
    seconds: Duration,
    /// Print the result as JSON.
    #[arg(long)]
    json: bool,
    /// How long one call may take, in seconds. Fractions are allowed.
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = seconds)]
    timeout: Duration,
}

/// How often an object is read for each time that it is asked.
const READS_EACH: usize = 8;

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let orb = calling::orb(Orb::builder(), arguments.timeout)?;
    let audits: Result<Vec<_>, Failure> =
        arguments.objects.iter().map(|url| begin(&orb, url, arguments)).collect();
    let mut audits = audits?;
    let begun = Instant::now();
    // At least once, however short the time is.
    loop {
        for (url, audit) in arguments.objects.iter().zip(&mut audits) {
            step(audit, arguments).map_err(|e| cannot(url, &e))?;
        }
        if begun.elapsed() >= arguments.seconds {
            break;
        }
    }
    let reports: Vec<(&str, &AuditReport)> =
        arguments.objects.iter().map(String::as_str).zip(audits.iter().map(CacheAudit::report)).collect();
    match arguments.json {
        true => output::line(format_args!("{:#}", as_json(&reports)))?,
        false => output::text(text(&reports, arguments.lag))?,
    }
    verdict(&reports)
}

fn begin(orb: &Orb, url: &str, arguments: &Arguments) -> Result<CacheAudit, Failure> {
    let object = reference::object(orb, url).map_err(|e| call::explain_reference(url, &e))?;
    let interface = arguments.interface.clone().unwrap_or_else(|| object.type_id().to_owned());
    CacheAudit::begin(&object, &interface, arguments.lag).map_err(|e| match e.kind {
        SystemExceptionKind::BadOperation => {
            Failure::new(format!("{url} has no cached attributes of {interface:?}"))
                .with_help("name the interface that declares them: --interface IDL:bank/Account:1.0")
        }
        _ => call::explain_system("cannot audit", &object, &e),
    })
}

/// Asks an object, and reads it several times meanwhile its lag passes.
fn step(audit: &mut CacheAudit, arguments: &Arguments) -> Result<(), SystemException> {
    audit.step()?;
    for _ in 1..READS_EACH {
        thread::sleep((arguments.lag / 4).min(PAUSE_MAX));
        audit.read()?;
    }
    Ok(())
}

/// The longest pause between two reads.
const PAUSE_MAX: Duration = Duration::from_millis(20);

fn cannot(url: &str, e: &SystemException) -> Failure {
    Failure::new(format!("the audit of {url} has ended: {e}"))
}

/// The failure, if a promise was broken or nothing was read.
fn verdict(reports: &[(&str, &AuditReport)]) -> Result<(), Failure> {
    let broken: u64 = reports.iter().map(|(_, report)| report.findings_total).sum();
    match broken {
        0 => Ok(()),
        1 => Err(Failure::new("a cached read has broken its promise")),
        _ => Err(Failure::new(format!("{broken} cached reads have broken their promise"))),
    }
}

fn text(reports: &[(&str, &AuditReport)], lag: Duration) -> String {
    let mut text = String::new();
    for (url, report) in reports {
        let AuditReport { asked, changes_seen, reads, hits, probes, sessions, findings_total, .. } = report;
        let _ = writeln!(
            text,
            "{}: {findings_total} broken in {reads} reads with a lag of {}",
            abbreviated(url),
            shown(lag)
        );
        let _ = writeln!(
            text,
            "  {hits} reads asked no server, {probes} questions what has changed, {sessions} sessions; the object was asked {asked} \
             times and had changed {changes_seen} times"
        );
        for finding in &report.findings {
            let _ = writeln!(text, "  {finding}");
        }
        if *changes_seen == 0 {
            text += "  the state has not changed meanwhile: that says little\n";
        }
    }
    text
}

/// An IOR is longer than a line.
fn abbreviated(url: &str) -> String {
    match url.char_indices().nth(60) {
        Some((at, _)) => format!("{}…", &url[..at]),
        None => url.to_owned(),
    }
}

fn as_json(reports: &[(&str, &AuditReport)]) -> Value {
    let finding = |finding: &AuditFinding| match finding {
        AuditFinding::TooOld { read, required } => {
            json!({ "what": "too old", "read": read, "required": required })
        }
        AuditFinding::OtherValues { version } => json!({ "what": "other values", "read": version }),
    };
    let report = |(url, report): &(&str, &AuditReport)| {
        json!({
            "object": url, "asked": report.asked, "changes_seen": report.changes_seen, "reads": report.reads,
            "hits": report.hits, "probes": report.probes, "sessions": report.sessions,
            "findings_total": report.findings_total,
            "findings": report.findings.iter().map(finding).collect::<Vec<_>>(),
        })
    };
    Value::Array(reports.iter().map(report).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broken_promise_fails() {
        let good = AuditReport { reads: 9, hits: 5, asked: 2, changes_seen: 1, ..AuditReport::default() };
        let findings = vec![AuditFinding::TooOld { read: 3, required: 5 }];
        let bad = AuditReport { findings_total: 1, findings, ..good.clone() };
        assert!(verdict(&[("one", &good)]).is_ok());
        assert!(verdict(&[("one", &good), ("two", &bad)]).is_err());
        let shown = text(&[("one", &bad)], Duration::from_millis(10));
        assert!(shown.contains("one: 1 broken in 9 reads with a lag of 10 ms"), "{shown}");
        assert!(shown.contains("read version 3 more than a lag after the object had version 5"), "{shown}");
        assert_eq!(as_json(&[("two", &bad)])[0]["findings"][0]["required"], json!(5));
    }
}
