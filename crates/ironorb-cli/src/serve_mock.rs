//! `ironorb serve-mock`: objects of any interface, with prepared answers.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Args;
use ironorb::naming::Naming;
use ironorb::naming::cos_naming::NamingContextRef;
use ironorb::{Orb, TypedRef as _};
use ironorb_dynamic::Interfaces;
use ironorb_dynamic::mock::{Mock, MockError, MockObject, Options, Report};
use serde_json::Value;

use crate::call::interface_named;
use crate::failure::Failure;
use crate::{definitions, idl, naming, output, reference, serving};

/// Serve objects of any interface, with prepared answers, until a signal (SIGINT, SIGTERM) ends it.
///
/// Each interface gets an object. The command prints its address; its object key is its name. Without
/// --answers, attributes keep what they are set to, inout parameters come back unchanged, references lead to
/// the mock's own objects, and every other value is 0, empty, nil or the first of its type. After the line
/// `ready`, each call is printed as one line of JSON.
#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    after_help = "Answers are JSON, by interface and operation:\n  \
        {\"Bank::Account\": {\n    \
            \"balance\": 100,\n    \
            \"withdraw\": {\"sequence\": [{\"result\": 95}, {\"exception\": \"Insufficient\", \"members\": {\"missing\": 7}}]},\n    \
            \"transfer\": {\"when\": [{\"arguments\": {\"amount\": 0}, \"system\": \"BAD_PARAM\"}], \"otherwise\": {\"delay_ms\": 20}}\n  \
        }}\n\n\
        Examples:\n  \
        ironorb serve-mock bank.idl --endpoint iiop://:2900 --answers answers.json\n  \
        ironorb call corbaloc::localhost:2900/Account withdraw 5 --idl bank.idl"
)]
pub(crate) struct Arguments {
    /// The files with the interfaces.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    settings: idl::Settings,
    /// Serve only this interface, by its name or repository id; may be given several times. Default: all
    /// interfaces outside module CORBA.
    #[arg(long, value_name = "NAME")]
    interface: Vec<String>,
    /// The file with the answers.
    #[arg(long, value_name = "FILE")]
    answers: Option<PathBuf>,
    /// Where to listen; may be given several times. Port 0 lets the system choose; `uiop:///PATH` is a Unix socket.
    #[arg(long, visible_alias = "listen", value_name = "ADDRESS", default_value = "iiop://127.0.0.1:0")]
    endpoint: Vec<String>,
    /// The address that references carry, where it differs from the address listened at, as behind a NAT or
    /// in a container. May be given several times.
    #[arg(long, value_name = "HOST[:PORT]")]
    publish: Vec<String>,
    /// Register an object in a naming service under this name until the command ends. With several objects,
    /// OBJECT selects one. May be given several times.
    #[arg(long, value_name = "[OBJECT=]NAME")]
    name: Vec<String>,
    /// The naming service for --name: a corbaloc, corbaname or IOR, or just HOST[:PORT]. Default: the initial reference
    /// NameService, else port 2809 of this machine.
    #[arg(long, value_name = "URL", requires = "name")]
    naming: Option<String>,
    /// Print references as IORs, which carry the type and the code sets.
    #[arg(long)]
    ior: bool,
    /// Do not print calls.
    #[arg(long)]
    quiet: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let mut signals = serving::signals()?;
    let known = arguments.known()?;
    let mut interfaces = Vec::new();
    for name in &arguments.interface {
        interfaces.push(interface_named(&known, name)?.id.clone());
    }
    let answers = match &arguments.answers {
        Some(path) => read_answers(path)?,
        None => Value::Null,
    };
    // Requests are held until everything is announced, so that calls are printed after the announcement.
    let orb =
        serving::orb(Orb::builder().hold_requests(), "--endpoint", &arguments.endpoint, &arguments.publish)?;
    let report: Option<Report> = (!arguments.quiet).then(printing);
    let mock = Mock::start(&orb, known, Options { interfaces, answers, report })
        .map_err(|e| arguments.not_started(&e))?;
    let names = arguments.register(&orb, mock.objects())?;
    announce(&orb, mock.objects(), arguments.ior);
    orb.root_poa().manager().activate().map_err(Failure::new)?;
    serving::wait_for_end(&mut signals, false);
    mock.stop();
    for (naming, name) in names {
        // The name or the naming service may be gone already.
        let _ = naming.unbind(&name);
    }
    orb.shutdown(true).map_err(Failure::new)
}

impl Arguments {
    fn known(&self) -> Result<Interfaces, Failure> {
        definitions::read(&self.files, &self.settings)
    }

    fn not_started(&self, error: &MockError) -> Failure {
        match (error, &self.answers) {
            (MockError::Answers(e), Some(path)) => Failure::new(format!(
                "{} does not fit the interfaces",
                path.display()
            ))
            .with_body(format!("  {}\n  {}", e.path(), e.what())),
            (MockError::Nothing, _) => Failure::new("the files define no interface that objects could have"),
            _ => Failure::new(error),
        }
    }

    /// Registers objects under their names, and returns the bindings to remove at the end.
    fn register(&self, orb: &Orb, objects: &[MockObject]) -> Result<Vec<(Naming, String)>, Failure> {
        let mut named = Vec::new();
        for text in &self.name {
            let (object, name) = match text.split_once('=') {
                Some((object, name)) => (object_called(objects, object)?, name),
                None => match objects {
                    [only] => (only, text.as_str()),
                    _ => {
                        return Err(Failure::usage(format!(
                            "--name {text}: which of the {} objects?",
                            objects.len()
                        ))
                        .with_help("--name OBJECT=NAME says which, and --interface serves only one"));
                    }
                },
            };
            let naming = self.naming_service(orb)?;
            // The binding needs the untyped reference only. The mock's objects have no type at compile time.
            let reference = NamingContextRef::from_object(object.reference().clone());
            naming.rebind(name, &reference).map_err(|e| {
                Failure::new(format!("cannot register {} as {name}: {e}", object.name()))
                    .with_help("--naming HOST[:PORT] names the naming service; `ironorb naming serve` is one")
            })?;
            named.push((naming, name.to_owned()));
        }
        Ok(named)
    }

    fn naming_service(&self, orb: &Orb) -> Result<Naming, Failure> {
        let context = match &self.naming {
            None => orb.naming().map_err(Failure::new)?.context().clone(),
            Some(text) => {
                let object = orb
                    .string_to_object(&naming::with_scheme(text))
                    .map_err(|e| reference::not_named("--naming", text, &e, "localhost:2809"))?;
                object.narrow_unchecked()
            }
        };
        Ok(Naming::of(context.with_timeout(Some(NAMING_TIMEOUT))))
    }
}

/// How long the naming service may take to answer. Default and only value.
const NAMING_TIMEOUT: Duration = Duration::from_secs(10);

fn object_called<'o>(objects: &'o [MockObject], name: &str) -> Result<&'o MockObject, Failure> {
    let is_meant =
        |object: &&MockObject| object.name() == name || object.keys().iter().any(|key| key == name);
    objects.iter().find(is_meant).ok_or_else(|| {
        let names: Vec<&str> = objects.iter().map(MockObject::name).collect();
        Failure::usage(format!("there is no object {name}"))
            .with_help(format!("there are {}", names.join(", ")))
    })
}

fn read_answers(path: &Path) -> Result<Value, Failure> {
    let cannot = |e: io::Error| Failure::new(format!("cannot read {}: {e}", path.display()));
    if path.metadata().map_err(cannot)?.len() > ANSWERS_BYTES_MAX {
        return Err(Failure::new(format!("{} is longer than 64 MiB", path.display())));
    }
    let text = std::fs::read_to_string(path).map_err(cannot)?;
    serde_json::from_str(&text).map_err(|e| Failure::new(format!("{} is not JSON: {e}", path.display())))
}

/// Longest file of answers: 64 MiB. The parsed answers take a multiple of that. Default and only value.
const ANSWERS_BYTES_MAX: u64 = 64 << 20;

/// Prints calls as lines of JSON, with the milliseconds since the start.
fn printing() -> Report {
    let begun = Instant::now();
    Box::new(move |call| {
        let mut line = call.to_json();
        if let Some(line) = line.as_object_mut() {
            line.insert("at_ms".to_owned(), (begun.elapsed().as_millis() as u64).into());
        }
        output::announce(line);
    })
}

fn announce(orb: &Orb, objects: &[MockObject], as_iors: bool) {
    let addresses = orb.published_addresses();
    let published: Vec<String> = addresses.iter().map(|address| format!(":1.2@{address}")).collect();
    for object in objects {
        // The last key is the shortest.
        let reference = match object.keys().last() {
            Some(key) if !as_iors => format!("corbaloc:{}/{key}", published.join(",")),
            _ => object.reference().to_ior_string(),
        };
        output::announce(format_args!("{}  {reference}", object.name()));
    }
    output::announce(format_args!("ready {}", addresses.join(",")));
}
