//! What operators decide: named settings out of a configuration file, the environment and the command line.
//!
//! One table has every setting; the three sources differ only in how they spell a name. Nothing here opens a
//! socket.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use ironorb_giop::{CharSet, Version};

use crate::config::{OrbConfig, ServerConcurrency};
use crate::endpoint::Endpoint;
use crate::interceptor::Interceptors;

/// Names a configuration file in the environment.
pub const CONFIG_FILE_VARIABLE: &str = "IRONORB_CONFIG";

/// Names an initial reference in the environment: `IRONORB_INIT_REF="NameService=corbaloc::host/NameService"`;
/// several are separated by spaces.
pub const INIT_REF_VARIABLE: &str = "IRONORB_INIT_REF";

/// What begins each option on the command line (CORBA 3.3 part 1, 8.5.1).
const OPTION_PREFIX: &str = "-ORB";
/// What begins each variable of the environment.
const VARIABLE_PREFIX: &str = "IRONORB_";
/// The one setting that is a source itself; the table has it for its description.
const CONFIG_FILE: &str = "configFile";

/// Everything that decides how an ORB is made.
#[derive(Debug, Clone, Default)]
pub(super) struct Settings {
    pub(super) config: OrbConfig,
    pub(super) endpoints: Layered<Endpoint>,
    pub(super) publish: Layered<String>,
    pub(super) no_endpoint: bool,
    pub(super) hold_requests: bool,
    pub(super) initial: Vec<(String, String)>,
    pub(super) default_initial: Option<String>,
    pub(super) orb_id: String,
    pub(super) server_id: String,
    pub(super) interceptors: Interceptors,
}

/// A list that each source of settings begins anew: endpoints on the command line replace those of the program.
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
        if std::mem::take(&mut self.is_from_below) {
            self.items.clear();
        }
        self.items.push(item);
    }

    pub(super) fn into_items(self) -> Vec<T> {
        self.items
    }
}

impl Settings {
    /// Whether to listen at once, and not only when the root adapter is asked for.
    pub(super) fn listens_now(&self) -> bool {
        !self.endpoints.items.is_empty() && !self.no_endpoint
    }

    /// Where to listen.
    pub(super) fn listening(&mut self) -> Vec<Endpoint> {
        let endpoints = std::mem::take(&mut self.endpoints.items);
        match (endpoints.is_empty(), self.no_endpoint) {
            (_, true) => Vec::new(),
            (true, false) => vec![Endpoint::anywhere()],
            (false, false) => endpoints,
        }
    }

    /// From now on settings come from a source of higher precedence.
    pub(super) fn next_source(&mut self) {
        self.endpoints.is_from_below = true;
        self.publish.is_from_below = true;
    }

    /// The last one given for a name counts.
    pub(super) fn set_initial(&mut self, name: &str, url: &str) {
        self.initial.retain(|(known, _)| known != name);
        self.initial.push((name.to_owned(), url.to_owned()));
    }

    /// Takes the environment's settings, and before them those of the file that it names.
    pub(super) fn take_environment(
        &mut self,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<(), SettingError> {
        if let Some(path) = variable(CONFIG_FILE_VARIABLE) {
            self.take_file(Path::new(&path))?;
            self.next_source();
        }
        for setting in SETTINGS.iter().filter(|setting| setting.name != CONFIG_FILE) {
            let name = setting.variable();
            let Some(value) = variable(&name) else { continue };
            let values: Vec<&str> =
                if setting.repeats { value.split_whitespace().collect() } else { vec![value.trim()] };
            for value in values {
                (setting.set)(self, value).map_err(|why| SettingError { place: name.clone(), why })?;
            }
        }
        self.next_source();
        Ok(())
    }

    /// Takes a file of lines `name = value`; `#` begins a comment line.
    pub(super) fn take_file(&mut self, path: &Path) -> Result<(), SettingError> {
        let shown = path.display();
        let text = std::fs::read_to_string(path).map_err(|e| SettingError {
            place: shown.to_string(),
            why: format!("the configuration file cannot be read: {e}"),
        })?;
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

/// One `-ORB…` option, as it was given.
#[derive(Debug, Clone)]
pub(super) struct CommandLineOption {
    name: String,
    value: Option<String>,
}

/// Takes the `-ORB…` options out of a command line and leaves the rest; `--` ends them. A value stands after its
/// option or after `=`.
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingError {
    place: String,
    why: String,
}

impl fmt::Display for SettingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.why)
    }
}

impl std::error::Error for SettingError {}

/// One setting: `-ORB` and its name on the command line, the name alone in a configuration file, and `IRONORB_` and
/// the name in capitals in the environment. The case of letters does not count.
#[derive(Debug)]
pub struct Setting {
    /// Its name in camel case: `callTimeout`.
    pub name: &'static str,
    /// What its value looks like.
    pub form: &'static str,
    /// What it decides, and its default.
    pub help: &'static str,
    /// True when it may be given several times; in the environment, with spaces between.
    pub repeats: bool,
    set: Set,
}

type Set = fn(&mut Settings, &str) -> Result<(), String>;

impl Setting {
    /// On the command line: `-ORBcallTimeout`.
    pub fn option(&self) -> String {
        format!("{OPTION_PREFIX}{}", self.name)
    }

    /// In the environment: `IRONORB_CALL_TIMEOUT`.
    pub fn variable(&self) -> String {
        let mut name = VARIABLE_PREFIX.to_owned();
        for (at, c) in self.name.chars().enumerate() {
            if at > 0 && c.is_ascii_uppercase() {
                name.push('_');
            }
            name.push(c.to_ascii_uppercase());
        }
        if self.name == CONFIG_FILE { CONFIG_FILE_VARIABLE.to_owned() } else { name }
    }
}

/// Every setting that operators can give.
pub fn settings() -> &'static [Setting] {
    SETTINGS
}

const fn once(name: &'static str, form: &'static str, help: &'static str, set: Set) -> Setting {
    Setting { name, form, help, repeats: false, set }
}

const fn several(name: &'static str, form: &'static str, help: &'static str, set: Set) -> Setting {
    Setting { name, form, help, repeats: true, set }
}

static SETTINGS: &[Setting] = &[
    once(CONFIG_FILE, "PATH", "A file of lines `name = value`.", |_, _| Ok(())),
    once("id", "NAME", "The ORB's own name, for interceptors. Default: empty.", |s, v| {
        s.orb_id = v.to_owned();
        Ok(())
    }),
    once("serverId", "NAME", "The server's name, for interceptors. Default: empty.", |s, v| {
        s.server_id = v.to_owned();
        Ok(())
    }),
    several("initRef", "NAME=URL", "What an initial reference stands for.", |s, v| {
        let (name, url) =
            v.split_once('=').ok_or("write NAME=URL, as in NameService=corbaloc::host/NameService")?;
        s.set_initial(name.trim(), url.trim());
        Ok(())
    }),
    once(
        "defaultInitRef",
        "URL",
        "Where initial references are that nothing else names: `corbaloc::host` and `/NAME`.",
        |s, v| {
            s.default_initial = Some(v.to_owned());
            Ok(())
        },
    ),
    several("endpoint", "iiop://HOST:PORT", "Where to listen. Default: every address, any port.", |s, v| {
        s.endpoints.push(v.parse().map_err(|e: crate::BadAddress| e.to_string())?);
        Ok(())
    }),
    several(
        "publish",
        "HOST[:PORT]",
        "The address that references carry. Default: the endpoints.",
        |s, v| {
            s.publish.push(v.to_owned());
            Ok(())
        },
    ),
    once("noEndpoint", "yes | no", "Never listens. Default: no.", |s, v| assign(&mut s.no_endpoint, yes(v))),
    once("holdRequests", "yes | no", "The root adapter's manager begins holding. Default: no.", |s, v| {
        assign(&mut s.hold_requests, yes(v))
    }),
    once("concurrency", "threadPerConnection | pool:N", "Which threads run servants.", |s, v| {
        assign(&mut s.config.concurrency, concurrency(v))
    }),
    once("giopVersion", "1.0 | 1.1 | 1.2", "GIOP version of references, and the highest spoken.", |s, v| {
        assign(&mut s.config.giop_version, version(v))
    }),
    once("callTimeout", "DURATION | never", "How long a call may take. Default: 60s.", |s, v| {
        assign(&mut s.config.call_timeout, duration_or_never(v))
    }),
    once("connectTimeout", "DURATION", "How long one attempt to connect may take. Default: 10s.", |s, v| {
        assign(&mut s.config.connect_timeout, duration(v))
    }),
    once(
        "transmitTimeout",
        "DURATION",
        "How long a client may leave a reply unread. Default: 20s.",
        |s, v| assign(&mut s.config.transmit_timeout, duration(v)),
    ),
    once(
        "serverIdleTimeout",
        "DURATION | never",
        "When an accepted connection without requests is closed. Default: 10m.",
        |s, v| assign(&mut s.config.server_idle_timeout, duration_or_never(v)),
    ),
    once(
        "clientIdleTimeout",
        "DURATION | never",
        "When an outgoing connection without calls is closed. Default: 3m.",
        |s, v| assign(&mut s.config.client_idle_timeout, duration_or_never(v)),
    ),
    once(
        "messageTimeout",
        "DURATION | never",
        "How long a message to a server may take to come. Default: 2m.",
        |s, v| assign(&mut s.config.message_timeout, duration_or_never(v)),
    ),
    once(
        "bareExceptions",
        "yes | no",
        "Exceptions in an any lack their id, as omniORB wants. Default: no.",
        |s, v| assign(&mut s.config.bare_exceptions, yes(v)),
    ),
    once(
        "nativeCharSet",
        "UTF-8 | ISO-8859-1",
        "The code set of strings to ask for. Default: UTF-8.",
        |s, v| assign(&mut s.config.native_char_set, char_set(v)),
    ),
    once("messageBytesMax", "SIZE", "Largest message, in and out. Default: 128MiB.", |s, v| {
        assign(&mut s.config.connection.framer.message_bytes_max, size(v))
    }),
    once("fragmentBytes", "SIZE | never", "Longer messages leave in fragments. Default: never.", |s, v| {
        assign(&mut s.config.connection.fragment_bytes, never_or(v, size))
    }),
    once(
        "transmitBytesMax",
        "SIZE",
        "Bytes that may wait to be sent on a connection. Default: 4MiB.",
        |s, v| assign(&mut s.config.transmit_bytes_max, size(v)),
    ),
    once("callsInFlightMax", "NUMBER", "Calls that may wait on one connection. Default: 1024.", |s, v| {
        assign(&mut s.config.connection.calls_in_flight_max, at_least_one(v))
    }),
    once("cancelRequests", "yes | no", "Tells servers of calls that were given up. Default: no.", |s, v| {
        assign(&mut s.config.connection.cancel_requests, yes(v))
    }),
    once("exceptionDetails", "yes | no", "Tells clients in words why a call failed. Default: no.", |s, v| {
        assign(&mut s.config.connection.exception_details, yes(v))
    }),
    once("connectionsPerEndpointMax", "NUMBER", "Connections to one server. Default: 4.", |s, v| {
        assign(&mut s.config.connections_per_endpoint_max, at_least_one(v))
    }),
    once("serverConnectionsMax", "NUMBER", "Connections accepted at once. Default: 10000.", |s, v| {
        assign(&mut s.config.server_connections_max, at_least_one(v))
    }),
    once(
        "threadsPerConnectionMax",
        "NUMBER",
        "Threads that may serve one connection. Default: 16.",
        |s, v| assign(&mut s.config.threads_per_connection_max, at_least_one(v)),
    ),
    once(
        "heldRequestsMax",
        "NUMBER",
        "Requests that may wait for a holding manager. Default: 1024.",
        |s, v| assign(&mut s.config.held_requests_max, number(v)),
    ),
    once("forwardsMax", "NUMBER", "Forwards that one call follows, at most 255. Default: 16.", |s, v| {
        assign(&mut s.config.forwards_max, number(v))
    }),
    once("resendsMax", "NUMBER", "Times that one call is sent again, at most 255. Default: 4.", |s, v| {
        assign(&mut s.config.resends_max, number(v))
    }),
];

/// The setting with a name, in any case of letters; names that other ORBs use for the same thing are taken too.
fn find(name: &str) -> Result<&'static Setting, String> {
    let wanted = OTHER_NAMES
        .iter()
        .find(|(other, _)| other.eq_ignore_ascii_case(name))
        .map_or(name, |&(_, ours)| ours);
    SETTINGS.iter().find(|setting| setting.name.eq_ignore_ascii_case(wanted)).ok_or_else(|| {
        let names: Vec<&str> = SETTINGS.iter().map(|setting| setting.name).collect();
        format!("no setting is called {name}; there are {}", names.join(", "))
    })
}

/// `ORBListenEndpoints` is the name that TAO and others use; `endPoint` is omniORB's.
const OTHER_NAMES: &[(&str, &str)] = &[
    ("listenEndpoints", "endpoint"),
    ("maxGIOPVersion", "giopVersion"),
    ("nativeCharCodeSet", "nativeCharSet"),
];

fn assign<T>(place: &mut T, value: Result<T, String>) -> Result<(), String> {
    *place = value?;
    Ok(())
}

fn yes(text: &str) -> Result<bool, String> {
    match text.to_ascii_lowercase().as_str() {
        "yes" | "true" | "on" | "1" => Ok(true),
        "no" | "false" | "off" | "0" => Ok(false),
        _ => Err(format!("{text:?} is neither yes nor no")),
    }
}

fn number<T: std::str::FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("{text:?} is not a number that can stand here"))
}

fn at_least_one(text: &str) -> Result<usize, String> {
    match number(text)? {
        0 => Err("it must be at least 1".to_owned()),
        n => Ok(n),
    }
}

/// The number and the unit behind it.
fn with_unit(text: &str) -> Option<(u64, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    Some((number.parse().ok()?, unit.trim()))
}

fn duration(text: &str) -> Result<Duration, String> {
    let found = with_unit(text).and_then(|(number, unit)| match unit {
        "us" => Some(Duration::from_micros(number)),
        "ms" => Some(Duration::from_millis(number)),
        "s" => Some(Duration::from_secs(number)),
        "m" | "min" => number.checked_mul(60).map(Duration::from_secs),
        "h" => number.checked_mul(3600).map(Duration::from_secs),
        _ => None,
    });
    found.ok_or_else(|| format!("{text:?} is not a duration: write 250ms, 5s, 2m or 1h"))
}

fn never_or<T>(text: &str, read: impl FnOnce(&str) -> Result<T, String>) -> Result<Option<T>, String> {
    if text.eq_ignore_ascii_case("never") { Ok(None) } else { read(text).map(Some) }
}

fn duration_or_never(text: &str) -> Result<Option<Duration>, String> {
    never_or(text, duration)
}

fn size(text: &str) -> Result<usize, String> {
    let found = with_unit(text).and_then(|(number, unit)| {
        let shift = match unit {
            "" | "B" => 0,
            "K" | "k" | "KiB" => 10,
            "M" | "MiB" => 20,
            "G" | "GiB" => 30,
            _ => return None,
        };
        usize::try_from(number).ok()?.checked_mul(1 << shift)
    });
    found.ok_or_else(|| format!("{text:?} is not a size in bytes: write 8192, 64KiB, 16MiB or 1GiB"))
}

fn version(text: &str) -> Result<Version, String> {
    match text {
        "1.0" => Ok(Version::V1_0),
        "1.1" => Ok(Version::V1_1),
        "1.2" => Ok(Version::V1_2),
        _ => Err(format!("{text:?} is not a GIOP version: write 1.0, 1.1 or 1.2")),
    }
}

fn char_set(text: &str) -> Result<CharSet, String> {
    match text.to_ascii_uppercase().as_str() {
        "UTF-8" | "UTF8" => Ok(CharSet::Utf8),
        "ISO-8859-1" | "LATIN1" => Ok(CharSet::Latin1),
        _ => Err(format!("{text:?} is not a code set that we work in: write UTF-8 or ISO-8859-1")),
    }
}

fn concurrency(text: &str) -> Result<ServerConcurrency, String> {
    if text.eq_ignore_ascii_case("threadPerConnection") {
        return Ok(ServerConcurrency::ThreadPerConnection);
    }
    match text.split_once(':') {
        Some(("pool", threads)) => Ok(ServerConcurrency::LeaderFollowers { threads: at_least_one(threads)? }),
        _ => Err(format!("{text:?} is neither threadPerConnection nor pool:N")),
    }
}

#[cfg(test)]
mod tests {
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
    fn what_cannot_be_understood_is_told_with_its_place() {
        for (arguments, message) in [
            (
                &["-ORBcallTimeout", "5"][..],
                "-ORBcallTimeout: \"5\" is not a duration: write 250ms, 5s, 2m or 1h",
            ),
            (&["-ORBcallTimeout"], "-ORBcallTimeout: its value is missing: DURATION | never"),
            (&["-ORBconcurrency=pool:0"], "-ORBconcurrency: it must be at least 1"),
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
        let variable =
            |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, v)| (*v).to_owned());
        settings.take_environment(variable).unwrap();
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
    fn a_bad_file_is_told_with_its_line() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("orb.conf");
        for (text, at, why) in [
            ("id = x\ncallTimeout\n", 2, "write `name = value`"),
            ("callTimeouts = 1s\n", 1, "no setting is called callTimeouts"),
            ("configFile = other\n", 1, "a configuration file cannot name another"),
        ] {
            std::fs::write(&path, text).unwrap();
            let error = Settings::default().take_file(&path).unwrap_err().to_string();
            assert!(error.starts_with(&format!("{}:{at}: {why}", path.display())), "{error}");
        }
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
