//! `ironorb call`: calls any operation of any object, with JSON for arguments and results.
//!
//! Nothing here knows a type before the command runs: all come from IDL files.

mod arguments;
mod explain;
mod operation;
mod outcome;
mod timing;

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use ironorb::dynamic::{InterfaceDescription, Request};
use ironorb::{ObjectRef, Orb, OrbBuilder};
use ironorb_dynamic::{DefinitionError, Interfaces, declaration};

use crate::failure::{Failure, printed};
use crate::idl;
use operation::Found;

/// Call any operation of any CORBA object, with JSON for arguments and results.
///
/// Types come from IDL files (--idl). A result is printed as JSON, with out and inout parameters as {"result": …,
/// "out": {…}}. A user exception is told on standard error, as JSON too, and the exit code is 1.
///
/// Options of the ORB, such as -ORBgiopVersion 1.1, may stand anywhere before `--`.
#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    after_help = "Examples:\n  \
        ironorb call corbaname::localhost#bank/main --idl bank.idl --list\n  \
        ironorb call corbaname::localhost#bank/main deposit 100 --idl bank.idl\n  \
        ironorb call file:account.ior transfer '{\"to\": \"IOR:…\", \"amount\": 5}' --idl bank.idl\n  \
        ironorb call IOR:… balance --idl bank.idl --time 1000"
)]
pub(crate) struct Arguments {
    /// The object: `IOR:…`, `corbaloc:…`, `corbaname:…`, or `file:PATH` of a file with one of these.
    #[arg(value_name = "REF")]
    reference: String,
    /// The operation; or an attribute, whose value is printed, and set by `NAME=VALUE`. Every object has `_is_a`,
    /// `_non_existent`, `_repository_id`, `_interface` and `_component`, which need no IDL.
    #[arg(required_unless_present = "list")]
    operation: Option<String>,
    /// The arguments as JSON: one for each in and inout parameter in order, or one object with all of them by name.
    /// `@FILE` reads one from a file, `-` from standard input. Texts, enumerators and references need no quotes.
    #[arg(allow_negative_numbers = true)]
    arguments: Vec<String>,
    /// A file that has the object's interface, or one of its bases; may be given several times.
    #[arg(long, value_name = "FILE")]
    idl: Vec<PathBuf>,
    #[command(flatten)]
    settings: idl::Settings,
    /// Take the object to have this interface, by its name or repository id, without asking it.
    #[arg(long, value_name = "NAME")]
    interface: Option<String>,
    /// List the operations and attributes of the object's interface instead.
    #[arg(long, conflicts_with_all = ["operation", "time"])]
    list: bool,
    /// Call so many times, with the same arguments, and tell on standard error how long a call took.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=timing::CALLS_MAX))]
    time: Option<u32>,
    /// How long one call may take, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..))]
    timeout: u64,
    /// Print JSON on one line.
    #[arg(long)]
    compact: bool,
}

/// Takes the `-ORB…` options out of the command line of `call`, which only the ORB understands.
pub(crate) fn take_orb_options(command_line: Vec<OsString>) -> (Vec<OsString>, OrbBuilder) {
    let builder = Orb::builder();
    if command_line.get(1).is_none_or(|command| command != "call") {
        return (command_line, builder);
    }
    let texts: Option<Vec<String>> =
        command_line.iter().map(|text| text.to_str().map(str::to_owned)).collect();
    match texts {
        Some(mut texts) => {
            let builder = builder.arguments(&mut texts);
            (texts.into_iter().map(OsString::from).collect(), builder)
        }
        // Whatever is no Unicode is the parser's to refuse.
        None => (command_line, builder),
    }
}

pub(crate) fn run(arguments: &Arguments, orb: OrbBuilder) -> Result<(), Failure> {
    let timeout = Duration::from_secs(arguments.timeout);
    let known = arguments.known()?;
    let orb = orb
        .no_endpoint()
        .call_timeout(Some(timeout))
        .connect_timeout(timeout)
        .build()
        .map_err(Failure::new)?;
    let object = orb.string_to_object(&arguments.reference).map_err(|e| explain::reference(&e))?;
    let Some(typed) = &arguments.operation else {
        let interface = arguments.interface_of(&object, &known)?;
        return printed(write!(io::stdout(), "{}", declaration(&interface)));
    };
    let Found { operation, value } = match operation::of_every_object(typed) {
        Some(found) => found,
        None => {
            let interface = arguments.interface_of(&object, &known)?;
            operation::find(&interface, typed)?
        }
    };
    let mut texts: Vec<&str> = value.iter().map(String::as_str).collect();
    texts.extend(arguments.arguments.iter().map(String::as_str));
    let values = arguments::read(&operation, &texts, &known, &orb)?;
    let mut request = Request::new(&object, operation.clone());
    for (index, value) in &values {
        request.set_any(*index, value).map_err(Failure::new)?;
    }
    let told = outcome::Telling {
        operation: &operation,
        name: operation::plain(&operation.name),
        known: &known,
        compact: arguments.compact,
    };
    let done = match arguments.time {
        None => request.invoke(),
        Some(calls) => timing::repeat(&mut request, calls),
    };
    match done {
        Ok(results) => told.results(&results),
        Err(error) => Err(told.error(&error, &object)),
    }
}

impl Arguments {
    fn known(&self) -> Result<Interfaces, Failure> {
        let mut known = Interfaces::new();
        match known.add_idl(&self.idl, &self.settings.options()) {
            // `ironorb idl check` is there for warnings.
            Ok(_warnings) => Ok(known),
            Err(DefinitionError::Idl { path, diagnostics }) => {
                Err(Failure::new(format!("{} has errors", path.display())).with_body(diagnostics))
            }
            Err(other) => Err(Failure::new(other)),
        }
    }

    fn interface_of(
        &self,
        object: &ObjectRef,
        known: &Interfaces,
    ) -> Result<Arc<InterfaceDescription>, Failure> {
        if self.idl.is_empty() {
            return Err(Failure::new("the object's interface is not known")
                .with_help("--idl FILE names an IDL file that defines it"));
        }
        if let Some(name) = &self.interface {
            return operation::interface_named(known, name);
        }
        let found = known
            .of(object)
            .map_err(|e| explain::system("cannot ask the object for its interface", object, &e))?;
        found.ok_or_else(|| {
            let files: Vec<String> = self.idl.iter().map(|file| file.display().to_string()).collect();
            let known_as = match object.type_id() {
                "" => String::new(),
                id => format!("; its reference says {id}"),
            };
            Failure::new(format!("the object has none of the interfaces in {}{known_as}", files.join(", ")))
                .with_help("`ironorb call REF _repository_id` asks it; --interface NAME calls it as one all the same")
        })
    }
}
