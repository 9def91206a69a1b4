//! The processes that have registered with an agent, with their leases and loads.

use std::cmp::Reverse;
use std::fmt::Write as _;

use ironorb::SystemExceptionKind;
use ironorb_agent::idl::OwnerStatus;
use ironorb_agent::{AgentClient, AgentError};
use serde_json::{Value, json};

use crate::status::table::{Row, clean, section};

/// All of them, the busiest first.
pub(super) struct Owners(Vec<OwnerStatus>);

impl Owners {
    /// Asks an agent. One of an earlier version tells none.
    pub(super) fn of(client: &AgentClient) -> Result<Owners, AgentError> {
        let mut all: Vec<OwnerStatus> = Vec::new();
        loop {
            let after = all.last().map_or(0, |owner| owner.id);
            match client.owners(after, PAGE) {
                Ok(page) if page.is_empty() => break,
                Ok(page) => all.extend(page),
                Err(AgentError::System(e)) if e.kind == SystemExceptionKind::BadOperation => break,
                Err(e) => return Err(e),
            }
        }
        Ok(Owners::sorted(all))
    }

    fn sorted(mut all: Vec<OwnerStatus>) -> Owners {
        all.sort_by_key(|owner| (Reverse(requests(owner)), owner.id));
        Owners(all)
    }

    pub(super) fn json(&self) -> Value {
        let one = |owner: &OwnerStatus| {
            json!({
                "owner": owner.id, "lease_ms": owner.lease_ms, "left_ms": owner.left_ms,
                "renewals_total": owner.renewals_total, "requests": requests(owner),
                "names_count": owner.names_count, "names": owner.names,
            })
        };
        self.0.iter().map(one).collect()
    }

    /// The first of them, for people.
    pub(super) fn table(&self) -> String {
        let mut rows = vec![Row::of(["OWNER", "LEASE", "LEFT", "RENEWALS", "REQUESTS", "NAMES"])];
        for owner in self.0.iter().take(SHOWN_MAX) {
            let seconds = |ms: u32| format!("{:.1} s", f64::from(ms) / 1e3);
            let mut names = owner.names.join(", ");
            let others = (owner.names_count as usize).saturating_sub(owner.names.len());
            if others > 0 {
                let _ = write!(names, " and {others} more");
            }
            rows.push(Row(vec![
                owner.id.to_string(),
                seconds(owner.lease_ms),
                seconds(owner.left_ms),
                owner.renewals_total.to_string(),
                requests(owner).map(|requests| requests.to_string()).unwrap_or_default(),
                names,
            ]));
        }
        let mut text = section(rows, &[0, 1, 2, 3, 4]);
        if let Some(others @ 1..) = self.0.len().checked_sub(SHOWN_MAX) {
            let _ = writeln!(text, "and {others} more, which are not busier");
        }
        if !text.is_empty() {
            text.push('\n');
        }
        // Names come from the servers.
        clean(&text)
    }
}

fn requests(owner: &OwnerStatus) -> Option<u32> {
    owner.has_load.then_some(owner.requests)
}

/// Asked for at a time.
const PAGE: u32 = 1_000;

/// Shown to people.
const SHOWN_MAX: usize = 20;

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(id: u64, requests: Option<u32>, names: &[&str], names_count: u32) -> OwnerStatus {
        OwnerStatus {
            id,
            lease_ms: 3_000,
            left_ms: 2_040,
            renewals_total: 7,
            has_load: requests.is_some(),
            requests: requests.unwrap_or(0),
            names_count,
            names: names.iter().map(|name| (*name).into()).collect(),
            ..OwnerStatus::default()
        }
    }

    #[test]
    fn the_busiest_are_first_and_unknown_loads_are_blank() {
        let all = vec![
            owner(1, None, &["a\u{1b}"], 1),
            owner(2, Some(0), &[], 0),
            owner(3, Some(12), &["b", "c"], 9),
        ];
        let owners = Owners::sorted(all);
        let expected = "
OWNER  LEASE   LEFT  RENEWALS  REQUESTS  NAMES
    3  3.0 s  2.0 s         7        12  b, c and 7 more
    2  3.0 s  2.0 s         7         0
    1  3.0 s  2.0 s         7            a\u{FFFD}

";
        assert_eq!(owners.table(), expected);
        let json = owners.json();
        assert_eq!((&json[0]["requests"], &json[2]["requests"]), (&json!(12), &Value::Null));
        assert_eq!(Owners(Vec::new()).table(), "");
    }

    #[test]
    fn a_table_has_so_many_and_the_number_of_the_rest() {
        let all = (1..=23).map(|id| owner(id, Some(1), &[], 0)).collect();
        let table = Owners::sorted(all).table();
        // With an empty line at both ends.
        assert_eq!(table.lines().count(), 2 + 1 + SHOWN_MAX + 1);
        assert!(table.ends_with("and 3 more, which are not busier\n\n"), "{table}");
    }
}
