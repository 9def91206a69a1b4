//! Settings of the ORB to compare, as text. Every setting in `docs/configuration.md` can be measured without
//! further code.

use std::fmt;
use std::str::FromStr;

use ironorb::{Orb, OrbBuilder};
use serde::Serialize;

/// Settings of one side of a comparison, client and server: `concurrency=pool:4+callsInFlightMax=16`. Empty
/// for the defaults.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub(crate) struct Settings(String);

impl Settings {
    /// The settings as text.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// A builder with these settings, which ignores the environment.
    pub(crate) fn builder(&self) -> OrbBuilder {
        let mut arguments = self.arguments();
        OrbBuilder::default().arguments(&mut arguments)
    }

    /// Settings that the program itself names.
    pub(crate) fn known(text: &'static str) -> Settings {
        Settings(text.to_owned())
    }

    /// These settings and others.
    pub(crate) fn and(&self, others: &str) -> Settings {
        let parts = [self.as_str(), others].into_iter().filter(|text| !text.is_empty());
        Settings(parts.collect::<Vec<_>>().join("+"))
    }

    fn arguments(&self) -> Vec<String> {
        // The first argument is the program's name.
        let options = self.0.split('+').filter(|setting| !setting.is_empty());
        options.map(|setting| format!("-ORB{setting}")).collect()
    }

    /// The defaults, and then the requested settings.
    pub(crate) fn and_those(asked: &[Settings]) -> Vec<Settings> {
        let mut all = vec![Settings::default()];
        all.extend(asked.iter().filter(|settings| **settings != Settings::default()).cloned());
        all
    }
}

impl FromStr for Settings {
    type Err = String;

    /// Refuses settings that the ORB does not know, so that a misspelt setting is reported before a
    /// measurement.
    fn from_str(text: &str) -> Result<Settings, String> {
        if let Some(setting) = text.split('+').find(|setting| !text.is_empty() && !setting.contains('=')) {
            return Err(format!("{setting:?} is not NAME=VALUE; several are joined by '+'"));
        }
        let settings = Settings(text.to_owned());
        let orb = settings.builder().no_endpoint().build().map_err(|e| e.to_string())?;
        let _ = Orb::shutdown(&orb, false);
        Ok(settings)
    }
}

impl fmt::Display for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_those_of_the_orb() {
        let settings: Settings = "concurrency=pool:2+callsInFlightMax=7".parse().unwrap();
        let builder = settings.builder().no_endpoint();
        assert_eq!(settings.arguments(), ["-ORBconcurrency=pool:2", "-ORBcallsInFlightMax=7"]);
        builder.build().unwrap().shutdown(false).unwrap();
        assert_eq!("".parse(), Ok(Settings::default()));
        for text in ["concurrency", "concurrency=many", "colour=red"] {
            assert!(text.parse::<Settings>().is_err(), "{text}");
        }
    }
}
