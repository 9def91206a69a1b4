//! Named settings that operators give in a configuration file, the environment and on the command line.
//!
//! One table has every setting. The three sources differ only in how they spell a name. Nothing here opens a
//! socket.

mod lane;
mod table;
mod values;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{LaneConfig, lanes, small_file};
use crate::base::config::OrbConfig;
use crate::base::lease;
use crate::driver::distributable;
use crate::driver::orb_core::OrbParts;
use crate::driver::server::lane::LaneParts;
use crate::driver::simulated::SimulationSetting;
use crate::interceptor::Interceptors;
use crate::object::priority::RealTimeConfig;
use crate::object::threadpool::ThreadpoolId;
use crate::rt::distributable::SchedulerSetting;
use crate::transport::endpoint::BadAddress;
use crate::transport::{CustomTransport, Endpoint};

pub use lane::{LaneSetting, lane_settings};
pub use table::{Setting, settings};
use table::{find, find_variable};

/// The environment variable that names a configuration file.
pub const CONFIG_FILE_VARIABLE: &str = "IRONORB_CONFIG";

/// The environment variable that gives initial references:
/// `IRONORB_INIT_REF="NameService=corbaloc::host/NameService"`. Several are separated by spaces.
pub const INIT_REF_VARIABLE: &str = "IRONORB_INIT_REF";

/// The prefix of each option on the command line (CORBA 3.3 part 1, 8.5.1).
const OPTION_PREFIX: &str = "-ORB";
/// The prefix of each environment variable.
const VARIABLE_PREFIX: &str = "IRONORB_";
/// The prefixes of variables with [`VARIABLE_PREFIX`] that are no settings: they belong to this project's
/// tests and tools.
const OTHER_PREFIXES: [&str; 4] = ["IRONORB_BENCH_", "IRONORB_INTEROP_", "IRONORB_SIM_", "IRONORB_TEST_"];
/// The one setting that is itself a source. The table has it for its description.
const CONFIG_FILE: &str = "configFile";

/// All settings of a new ORB.
#[derive(Debug, Clone, Default)]
pub(super) struct Settings {
    pub(super) config: OrbConfig,
    pub(super) endpoints: Layered<Endpoint>,
    pub(super) publish: Layered<String>,
    pub(super) transports: Vec<Arc<dyn CustomTransport>>,
    pub(super) no_endpoint: bool,
    pub(super) lanes: Lanes,
    pub(super) hold_requests: bool,
    pub(super) initial: Vec<(String, String)>,
    pub(super) default_initial: Option<String>,
    pub(super) orb_id: String,
    pub(super) server_id: String,
    pub(super) marshal_profile: Option<PathBuf>,
    pub(super) recording: Option<PathBuf>,
    pub(super) interceptors: Interceptors,
    pub(super) simulation: Option<SimulationSetting>,
    pub(super) real_time: Option<RealTimeConfig>,
    pub(super) scheduler: Option<SchedulerSetting>,
}

/// A list that each source of settings begins anew: for example, endpoints on the command line replace those
/// of the program.
#[derive(Debug, Clone)]
pub(super) struct Layered<T> {
    items: Vec<T>,
    is_from_below: bool,
}

impl<T> Default for Layered<T> {
    fn default() -> Self {
        Layered { items: Vec::new(), is_from_below: true }
    }
}

impl<T> Layered<T> {
    pub(super) fn push(&mut self, item: T) {
        self.begin();
        self.items.push(item);
    }

    /// Drops the items of sources with lower precedence.
    fn begin(&mut self) {
        if std::mem::take(&mut self.is_from_below) {
            self.items.clear();
        }
    }

    pub(super) fn into_items(self) -> Vec<T> {
        self.items
    }
}

/// Further lanes. One of a source with higher precedence replaces one with the same name.
#[derive(Debug, Clone, Default)]
pub(super) struct Lanes {
    items: Vec<LaneConfig>,
    /// So many of them are from sources with lower precedence.
    from_below: usize,
}

impl Lanes {
    pub(super) fn push(&mut self, lane: LaneConfig) {
        let below = self.items[..self.from_below].iter().position(|other| other.name() == lane.name());
        if let Some(index) = below {
            let _replaced = self.items.remove(index);
            self.from_below -= 1;
        }
        self.items.push(lane);
    }

    fn next_source(&mut self) {
        self.from_below = self.items.len();
    }

    fn listen(&self) -> bool {
        self.items.iter().any(LaneConfig::listens)
    }

    fn into_items(self) -> Vec<LaneConfig> {
        self.items
    }
}

impl Settings {
    /// Whether the ORB listens at once, and not only when the root adapter is asked for.
    pub(super) fn listens_now(&self) -> bool {
        let has_own = !self.endpoints.items.is_empty() && !self.no_endpoint;
        has_own || self.lanes.listen()
    }

    /// The endpoints at which the ORB listens.
    pub(super) fn listening(&mut self) -> Vec<Endpoint> {
        let endpoints = std::mem::take(&mut self.endpoints.items);
        match (endpoints.is_empty(), self.no_endpoint) {
            (_, true) => Vec::new(),
            (true, false) => vec![Endpoint::anywhere()],
            (false, false) => endpoints,
        }
    }

    /// What the ORB is made of.
    pub(super) fn into_parts(mut self) -> Result<OrbParts, SettingError> {
        let scheduling = self.scheduler.take().map(|scheduler| {
            let real_time = self.real_time.get_or_insert_default();
            distributable::install(scheduler, real_time, &mut self.interceptors)
        });
        let (lanes, real_time) = (std::mem::take(&mut self.lanes).into_items(), self.real_time.as_ref());
        if real_time.is_some() {
            // Threads with priorities must not wait for it later.
            lease::has_barrier();
        }
        let threadpools = lanes::threadpools(&lanes);
        let pool = |name: &str| threadpools.iter().position(|it| it == name).and_then(ThreadpoolId::new);
        let further = lanes::parts(lanes, &self.config, &self.transports, real_time, &pool)?;
        let default_lane = LaneParts {
            name: String::new(),
            config: self.config.clone(),
            endpoints: self.listening(),
            publish: self.publish.into_items(),
            priority: None,
            thread_settings: None,
            is_best_effort: false,
            threadpool: None,
            tcp: None,
        };
        Ok(OrbParts {
            config: self.config,
            lanes: std::iter::once(default_lane).chain(further).collect(),
            interceptors: self.interceptors,
            transports: self.transports,
            hold_requests: self.hold_requests,
            default_initial: self.default_initial,
            orb_id: self.orb_id,
            server_id: self.server_id,
            marshal_profile: self.marshal_profile,
            simulation: self.simulation,
            real_time: self.real_time,
            threadpools,
            furnish_root: None,
            scheduling,
        })
    }

    /// Adds an endpoint. It overrides a `noEndpoint` of a source with lower precedence.
    pub(super) fn add_endpoint(&mut self, text: &str) -> Result<(), BadAddress> {
        let endpoint = Endpoint::parse(text, &self.transports)?;
        self.no_endpoint &= !self.endpoints.is_from_below;
        self.endpoints.push(endpoint);
        Ok(())
    }

    /// Sets whether the ORB listens nowhere. That drops the endpoints of sources with lower precedence.
    pub(super) fn set_no_endpoint(&mut self, never: bool) {
        self.no_endpoint = never;
        if never {
            self.endpoints.begin();
        }
    }

    /// Begins the next source, which has a higher precedence.
    pub(super) fn next_source(&mut self) {
        self.endpoints.is_from_below = true;
        self.publish.is_from_below = true;
        self.lanes.next_source();
    }

    /// Sets an initial reference. The last one for a name counts.
    pub(super) fn set_initial(&mut self, name: &str, url: &str) {
        self.initial.retain(|(known, _)| known != name);
        self.initial.push((name.to_owned(), url.to_owned()));
    }

    /// Takes the environment's settings, and before them those of the file that it names. Every variable with
    /// the prefix must be a setting: otherwise a misspelt one would silently have no effect.
    pub(super) fn take_environment(
        &mut self,
        variables: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Result<(), SettingError> {
        let mut ours = BTreeMap::new();
        for (name, value) in variables {
            let name = name.to_string_lossy();
            if !name.starts_with(VARIABLE_PREFIX)
                || OTHER_PREFIXES.iter().any(|other| name.starts_with(other))
            {
                continue;
            }
            let bad = |why| SettingError { place: name.to_string(), why };
            let setting = find_variable(&name).map_err(bad)?;
            let value = value.into_string().map_err(|_| bad("its value is not UTF-8".to_owned()))?;
            ours.insert(setting.name, (setting, value));
        }
        if let Some((_, path)) = ours.remove(CONFIG_FILE) {
            self.take_file(Path::new(&path))?;
            self.next_source();
        }
        for (setting, value) in ours.into_values() {
            let values: Vec<&str> =
                if setting.repeats { value.split_whitespace().collect() } else { vec![value.trim()] };
            for value in values {
                (setting.set)(self, value).map_err(|why| SettingError { place: setting.variable(), why })?;
            }
        }
        self.next_source();
        Ok(())
    }

    /// Takes a file of lines `name = value`; `#` begins a comment line.
    pub(super) fn take_file(&mut self, path: &Path) -> Result<(), SettingError> {
        let shown = path.display();
        let bad = |why| SettingError { place: shown.to_string(), why };
        let text = small_file::read(path)
            .map_err(|e| bad(format!("the configuration file cannot be read: {e}")))?
            .ok_or_else(|| bad("longer than 1 MiB, which no configuration file is".to_owned()))?;
        for (line, at) in text.lines().zip(1..) {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let bad = |why| SettingError { place: format!("{shown}:{at}"), why };
            let (name, value) = line.split_once('=').ok_or_else(|| bad("write `name = value`".to_owned()))?;
            let setting = find(name.trim()).map_err(bad)?;
            if setting.name == CONFIG_FILE {
                return Err(bad("a configuration file cannot name another".to_owned()));
            }
            (setting.set)(self, value.trim()).map_err(bad)?;
        }
        Ok(())
    }

    /// Takes the options of a command line, and before them those of the files that they name.
    pub(super) fn take_options(&mut self, options: &[CommandLineOption]) -> Result<(), SettingError> {
        self.next_source();
        let mut found = Vec::new();
        for CommandLineOption { name, value } in options {
            let bad = |why| SettingError { place: format!("{OPTION_PREFIX}{name}"), why };
            let setting = find(name).map_err(bad)?;
            let value =
                value.as_deref().ok_or_else(|| bad(format!("its value is missing: {}", setting.form)))?;
            if setting.name == CONFIG_FILE {
                self.take_file(Path::new(value))?;
            } else {
                found.push((setting, value, name));
            }
        }
        self.next_source();
        for (setting, value, name) in found {
            (setting.set)(self, value)
                .map_err(|why| SettingError { place: format!("{OPTION_PREFIX}{name}"), why })?;
        }
        Ok(())
    }
}

/// One `-ORB…` option as given.
#[derive(Debug, Clone)]
pub(super) struct CommandLineOption {
    name: String,
    value: Option<String>,
}

/// Removes the `-ORB…` options from a command line and leaves the rest; `--` ends them. A value stands after
/// its option or after `=`.
pub(super) fn split_options(arguments: &mut Vec<String>) -> Vec<CommandLineOption> {
    let mut options = Vec::new();
    let mut rest = Vec::new();
    let mut left = std::mem::take(arguments).into_iter();
    while let Some(argument) = left.next() {
        if argument == "--" {
            rest.push(argument);
            break;
        }
        match argument.strip_prefix(OPTION_PREFIX) {
            None => rest.push(argument),
            Some(option) => options.push(match option.split_once('=') {
                Some((name, value)) => {
                    CommandLineOption { name: name.to_owned(), value: Some(value.to_owned()) }
                }
                None => CommandLineOption { name: option.to_owned(), value: left.next() },
            }),
        }
    }
    rest.extend(left);
    *arguments = rest;
    options
}

/// A setting that cannot be understood.
#[derive(Clone, PartialEq, Eq)]
pub struct SettingError {
    place: String,
    why: String,
}

impl SettingError {
    pub(super) fn new(place: String, why: String) -> SettingError {
        SettingError { place, why }
    }
}

impl fmt::Display for SettingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.why)
    }
}

/// The text of [`Display`](fmt::Display), which a program's `main` shows for an error that it returns.
impl fmt::Debug for SettingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for SettingError {}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::table::SETTINGS;
    use super::*;

    fn taken(arguments: &[&str]) -> (Result<Settings, String>, Vec<String>) {
        let mut settings = Settings::default();
        let mut arguments: Vec<String> = arguments.iter().map(|a| (*a).to_owned()).collect();
        let options = split_options(&mut arguments);
        let result = settings.take_options(&options).map_err(|e| e.to_string());
        (result.map(|()| settings), arguments)
    }

    #[test]
    fn options_are_taken_out_of_a_command_line() {
        let (settings, rest) = taken(&[
            "server",
            "-ORBcallTimeout",
            "250ms",
            "--fast",
            "-ORBInitRef",
            "A=corbaloc::h/A",
            "-ORBfragmentBytes=8K",
            "-ORBendPoint",
            "iiop://[::1]:0",
            "file",
            "--",
            "-ORBid",
            "x",
        ]);
        let settings = settings.unwrap();
        assert_eq!(rest, ["server", "--fast", "file", "--", "-ORBid", "x"]);
        assert_eq!(settings.config.call_timeout, Some(Duration::from_millis(250)));
        assert_eq!(settings.config.connection.fragment_bytes, Some(8192));
        assert_eq!(settings.initial, [("A".to_owned(), "corbaloc::h/A".to_owned())]);
        assert_eq!(settings.endpoints.into_items().len(), 1);
    }

    #[test]
    fn an_error_names_its_place() {
        for (arguments, message) in [
            (
                &["-ORBcallTimeout", "5"][..],
                "-ORBcallTimeout: \"5\" is not a duration: write 250ms, 5s, 2m or 1h",
            ),
            (&["-ORBcallTimeout"], "-ORBcallTimeout: its value is missing: DURATION | never"),
            (
                &["-ORBconcurrency=pool:0"],
                "-ORBconcurrency: \"pool:0\" is no concurrency: write threadPerConnection, pool:N, pool:N+N, reactor, hybrid or \
                 hybrid:N, with N from 1 to 4096",
            ),
            (
                &["-ORBgiopVersion", "1.3"],
                "-ORBgiopVersion: \"1.3\" is not a GIOP version: write 1.0, 1.1 or 1.2",
            ),
        ] {
            assert_eq!(taken(arguments).0.unwrap_err(), message);
        }
        assert!(taken(&["-ORBnonsense", "1"]).0.unwrap_err().contains("no setting is called nonsense"));
    }

    #[test]
    fn each_source_overrides_those_below_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("orb.conf");
        let text =
            "# a comment\ncallTimeout = 1s\n\nconnectTimeout=1s\nresendsMax = 1\nendpoint = iiop://a:1\n";
        std::fs::write(&path, text).unwrap();
        let mut settings = Settings::default();
        let variables = [
            (CONFIG_FILE_VARIABLE, path.to_str().unwrap()),
            ("IRONORB_CONNECT_TIMEOUT", "2s"),
            ("IRONORB_ENDPOINT", "iiop://b:2 iiop://c:3"),
            ("IRONORB_RESENDS_MAX", "2"),
        ];
        settings.take_environment(variables.map(|(name, value)| (name.into(), value.into()))).unwrap();
        settings.take_options(&split_options(&mut vec!["-ORBresendsMax=3".to_owned()])).unwrap();
        let second = Duration::from_secs(1);
        assert_eq!(settings.config.call_timeout, Some(second));
        assert_eq!(settings.config.connect_timeout, 2 * second);
        assert_eq!(settings.config.resends_max, 3);
        let endpoints: Vec<String> =
            settings.endpoints.into_items().iter().map(ToString::to_string).collect();
        assert_eq!(endpoints, ["iiop://b:2", "iiop://c:3"]);
    }

    #[test]
    fn a_lane_replaces_one_with_its_name_of_a_source_below() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("orb.conf");
        std::fs::write(&path, "lane = slow; nice=5\nlane = urgent; nice=3\n").unwrap();
        let mut settings = Settings::default();
        let variables =
            [(CONFIG_FILE_VARIABLE, path.to_str().unwrap()), ("IRONORB_LANE", "slow;nice=7 bulk")];
        settings.take_environment(variables.map(|(name, value)| (name.into(), value.into()))).unwrap();
        settings.lanes.push(LaneConfig::new("urgent").nice(1)); // the program
        settings.lanes.push(LaneConfig::new("urgent").nice(2)); // a mistake of the program, which stays one
        let names: Vec<String> =
            settings.lanes.into_items().iter().map(|lane| lane.name().to_owned()).collect();
        assert_eq!(names, ["slow", "bulk", "urgent", "urgent"]);
    }

    #[test]
    fn every_variable_of_ours_is_understood() {
        let taken = |name: &str, value: &str| {
            let variables =
                [("PATH", "/bin"), (name, value)].map(|(name, value)| (name.into(), value.into()));
            Settings::default().take_environment(variables).map_err(|e| e.to_string())
        };
        for (name, why) in [
            ("IRONORB_CAL_TIMEOUT", "no setting is called so; do you mean IRONORB_CALL_TIMEOUT?"),
            ("IRONORB_CALLTIMEOUT", "no setting is called so; do you mean IRONORB_CALL_TIMEOUT?"),
            ("IRONORB_call_timeout", "no setting is called so; do you mean IRONORB_CALL_TIMEOUT?"),
            ("IRONORB_CONFIG_FILE", "no setting is called so; do you mean IRONORB_CONFIG?"),
            ("IRONORB_LISTEN_ENDPOINT", "no setting is called so; do you mean IRONORB_ENDPOINT?"),
            ("IRONORB_BOGUS", "no setting is called so, and names with IRONORB_ are for settings"),
            ("IRONORB_", "no setting is called so, and names with IRONORB_ are for settings"),
        ] {
            assert_eq!(taken(name, "5s").unwrap_err(), format!("{name}: {why}"));
        }
        for (name, value) in [
            ("IRONORB_CALL_TIMEOUT", "5s"),
            ("IRONORB_TEST_SEED", "7"),
            ("IRONORB_INTEROP_RESULTS", "/tmp"),
            ("IRONORB", "x"),
            ("ironorb_call_timeout", "x"),
        ] {
            assert_eq!(taken(name, value), Ok(()), "{name}");
        }
        assert!(taken("IRONORB_CALL_TIMEOUT", "5").unwrap_err().starts_with("IRONORB_CALL_TIMEOUT: "));
    }

    #[cfg(unix)]
    #[test]
    fn a_variable_must_be_text() {
        use std::os::unix::ffi::OsStringExt as _;
        let value = OsString::from_vec(vec![0xFF]);
        let result = Settings::default().take_environment([("IRONORB_ID".into(), value.clone())]);
        assert_eq!(result.unwrap_err().to_string(), "IRONORB_ID: its value is not UTF-8");
        assert_eq!(Settings::default().take_environment([(value.clone(), value)]), Ok(()));
    }

    #[test]
    fn an_error_in_a_file_names_its_line() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("orb.conf");
        for (text, at, why) in [
            ("id = x\ncallTimeout\n", 2, "write `name = value`"),
            ("callTimeouts = 1s\n", 1, "no setting is called callTimeouts; do you mean callTimeout?"),
            ("lane = a; speed=3\n", 1, "no setting of a lane is called \"speed\""),
            ("priorityMapping = round\n", 1, "\"round\" is no mapping"),
            ("configFile = other\n", 1, "a configuration file cannot name another"),
        ] {
            std::fs::write(&path, text).unwrap();
            let error = Settings::default().take_file(&path).unwrap_err().to_string();
            assert!(error.starts_with(&format!("{}:{at}: {why}", path.display())), "{error}");
        }
    }

    #[test]
    fn whether_to_listen_is_for_the_last_source_that_says_where() {
        let endpoint = "iiop://127.0.0.1:0";
        let mut settings = Settings::default();
        settings.set_no_endpoint(true); // the environment
        settings.next_source();
        settings.add_endpoint(endpoint).unwrap();
        assert!(settings.listens_now());
        settings.next_source();
        settings.set_no_endpoint(true);
        settings.add_endpoint(endpoint).unwrap(); // by the same source: it never listens
        assert!(!settings.listens_now());
        assert!(settings.listening().is_empty());
    }

    #[test]
    fn a_file_without_end_is_refused() {
        let error = Settings::default().take_file(Path::new("/dev/zero")).unwrap_err().to_string();
        assert_eq!(error, "/dev/zero: longer than 1 MiB, which no configuration file is");
    }

    #[test]
    fn names_are_spelt_for_each_source() {
        let setting = find("CALLTIMEOUT").unwrap();
        assert_eq!(
            (setting.option().as_str(), setting.variable().as_str()),
            ("-ORBcallTimeout", "IRONORB_CALL_TIMEOUT")
        );
        assert_eq!(find("initRef").unwrap().variable(), INIT_REF_VARIABLE);
        assert_eq!(find(CONFIG_FILE).unwrap().variable(), CONFIG_FILE_VARIABLE);
        let mut names: Vec<String> = SETTINGS.iter().map(Setting::variable).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), SETTINGS.len());
    }
}
