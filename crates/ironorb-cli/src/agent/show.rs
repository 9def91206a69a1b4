//! The commands that show what an agent holds.

use std::time::{Duration, Instant};

use ironorb_agent::{Condition, News, Server};
use serde_json::json;

use super::owners::Owners;
use super::place::Place;
use crate::failure::Failure;
use crate::output;

pub(super) fn status(place: &Place, json: bool) -> Result<(), Failure> {
    let client = place.open()?;
    let status = client.status().map_err(|e| place.failed("ask for the status", &e))?;
    let daemon = place.daemon(client.orb());
    let owners = Owners::of(&client).map_err(|e| place.failed("ask for the owners", &e))?;
    let numbers = [
        ("up_ms", status.up_ms),
        ("names", status.names),
        ("servers", status.servers),
        ("owners", status.owners),
        ("watchers", status.watchers),
        ("registrations_total", status.registrations_total),
        ("renewals_total", status.renewals_total),
        ("resolutions_total", status.resolutions_total),
        ("expired_owners_total", status.expired_owners_total),
        ("revision", status.revision),
    ];
    if json {
        let mut object = serde_json::Map::new();
        object.insert("product".into(), json!(status.product));
        object.insert("version".into(), json!(status.version));
        object.insert("life".into(), json!(format!("{:016x}", status.life)));
        object.extend(numbers.into_iter().map(|(name, number)| (name.to_owned(), json!(number))));
        object.extend(status.more.into_iter().map(|fact| (fact.name, json!(fact.value))));
        object.insert("leases".into(), owners.json());
        if let Some(daemon) = daemon {
            let verdict = daemon.verdict();
            let mut facts: serde_json::Map<_, _> =
                daemon.facts.into_iter().map(|(name, number)| (name, json!(number))).collect();
            facts.insert("processors_idle".into(), json!(daemon.idle));
            facts.insert("bottleneck".into(), json!(verdict));
            object.insert("daemon".into(), serde_json::Value::Object(facts));
        }
        return output::line(format!("{:#}", serde_json::Value::Object(object)));
    }
    output::line(format!("{} {}, life {:016x}", status.product, status.version, status.life))?;
    for (name, number) in numbers {
        output::line(format!("{name:22}{number}"))?;
    }
    for fact in status.more {
        output::line(format!("{:22}{}", fact.name, fact.value))?;
    }
    output::text(owners.table())?;
    if let Some(daemon) = daemon {
        output::line("daemon")?;
        for (name, number) in &daemon.facts {
            output::line(format!("  {name:24}{number}"))?;
        }
        if let Some(verdict) = daemon.verdict() {
            output::line(format!("  {verdict}"))?;
        }
    }
    Ok(())
}

pub(super) fn resolve(place: &Place, filter: &[String], names: &[String]) -> Result<(), Failure> {
    let client = place.open()?;
    let filter: Vec<_> = filter.iter().map(|text| condition(text)).collect();
    let mut without = Vec::new();
    for name in names {
        let servers = client
            .resolve_where(name, &filter)
            .map_err(|e| place.failed(&format!("resolve `{name}`"), &e))?;
        if servers.is_empty() {
            without.push(format!("`{name}`"));
        }
        for server in servers {
            output::line(server.reference)?;
        }
    }
    match without.is_empty() {
        true => Ok(()),
        false => Err(Failure::new(format!("no server is registered under {}", without.join(", ")))
            .with_help("`ironorb agent list` shows the names")),
    }
}

pub(super) fn list(place: &Place, prefix: &str) -> Result<(), Failure> {
    let client = place.open()?;
    let failed = |e| place.failed("list names", &e);
    let mut after = String::new();
    loop {
        let names = client.list(prefix, &after, PAGE).map_err(failed)?;
        let Some(last) = names.last() else { return Ok(()) };
        after.clone_from(last);
        let servers = client.resolve_many(&names).map_err(failed)?;
        for (name, servers) in names.iter().zip(servers) {
            output::line(format!("{name}  {}", servers.len()))?;
        }
    }
}

pub(super) fn watch(place: &Place, prefix: &str, duration: Option<Duration>) -> Result<(), Failure> {
    let mut watch = place.open()?.watch_prefix(prefix);
    let ends = duration.map(|duration| Instant::now() + duration);
    loop {
        let left = ends.map(|ends| ends.saturating_duration_since(Instant::now()));
        if left == Some(Duration::ZERO) {
            return Ok(());
        }
        let wait = left.unwrap_or(WAIT).min(WAIT);
        for news in watch.next(wait).map_err(|e| place.failed("watch", &e))? {
            print(news)?;
        }
    }
}

pub(super) fn backup(place: &Place) -> Result<(), Failure> {
    let path = place.open()?.backup().map_err(|e| place.failed("back up", &e))?;
    output::line(path)
}

fn print(news: News) -> Result<(), Failure> {
    match news {
        News::All(names) => {
            output::line("= all")?;
            for (name, servers) in names {
                for server in servers {
                    output::line(format!("+ {name}  {}", shown(&server)))?;
                }
            }
            Ok(())
        }
        News::Put { name, server, .. } => output::line(format!("+ {name}  {}", shown(&server))),
        News::Removed { name, server, .. } => output::line(format!("- {name}  {}", shown(&server))),
        // What is new in the library is of no use to a reader who does not know it.
        _ => Ok(()),
    }
}

fn shown(server: &Server) -> String {
    let properties =
        server.properties.iter().map(|property| format!("  {}={}", property.name, property.value));
    server.reference.clone() + &properties.collect::<String>()
}

/// `PROPERTY`, `PROPERTY=VALUE` or `PROPERTY!=VALUE`.
fn condition(text: &str) -> Condition {
    match (text.split_once("!="), text.split_once('=')) {
        (Some((name, value)), _) => Condition::Differs(name.to_owned(), value.to_owned()),
        (None, Some((name, value))) => Condition::Equals(name.to_owned(), value.to_owned()),
        (None, None) => Condition::Exists(text.to_owned()),
    }
}

const PAGE: u32 = 500;
const WAIT: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_read() {
        let pair = || ("zone".to_owned(), "a=b".to_owned());
        let (name, value) = pair();
        assert_eq!(condition("zone=a=b"), Condition::Equals(name, value));
        let (name, value) = pair();
        assert_eq!(condition("zone!=a=b"), Condition::Differs(name, value));
        assert_eq!(condition("zone"), Condition::Exists("zone".to_owned()));
    }
}
