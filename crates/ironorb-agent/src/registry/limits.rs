//! How much clients may store.

use std::time::Duration;

/// The bounds of a registry. A request beyond one changes nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Names at one time. Default: 200,000.
    pub names_max: usize,
    /// Bytes of a name. Default: 1,024.
    pub name_bytes_max: usize,
    /// Servers of one name. Default: 1,024.
    pub servers_per_name_max: usize,
    /// Bytes of an entry: its reference, and the names and values of its properties. Default: 16 KiB.
    pub entry_bytes_max: usize,
    /// Properties of an entry. Default: 32.
    pub properties_max: usize,
    /// Owners at one time. Default: 50,000.
    pub owners_max: usize,
    /// Entries that other agents have in a shared store. More are left out. Default: 400,000.
    pub others_max: usize,
    /// Watchers that wait at one time. Default: 20,000.
    pub watchers_max: usize,
    /// Names that one watcher may wait for. Default: 1,024.
    pub watched_names_max: usize,
    /// Changes that are kept for watchers that come back. Default: 65,536.
    pub changes_max: usize,
    /// The shortest lease. Default: 1 s.
    pub lease_min: Duration,
    /// The longest lease. Default: 30 s.
    pub lease_max: Duration,
    /// The lease of an owner that asks for none. Default: 3 s.
    pub lease_default: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            names_max: 200_000,
            name_bytes_max: 1_024,
            servers_per_name_max: 1_024,
            entry_bytes_max: 16 * 1024,
            properties_max: 32,
            owners_max: 50_000,
            others_max: 400_000,
            watchers_max: 20_000,
            watched_names_max: 1_024,
            changes_max: 65_536,
            lease_min: Duration::from_secs(1),
            lease_max: Duration::from_secs(30),
            lease_default: Duration::from_secs(3),
        }
    }
}

impl Limits {
    /// The lease that an owner gets that asks for this one; zero asks for none in particular.
    pub fn lease(&self, asked: Duration) -> Duration {
        let asked = if asked.is_zero() { self.lease_default } else { asked };
        asked.min(self.lease_max).max(self.lease_min)
    }
}
