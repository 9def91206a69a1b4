//! `ironorb call`: calls any operation of any object, with JSON for arguments and results.
//!
//! The command knows no type in advance: types come from IDL files, an interface repository or the object.

pub(crate) mod arguments;
mod complete;
mod describe;
mod explain;
pub(crate) mod operation;
mod outcome;
mod sources;
mod timing;

use std::ffi::OsString;
use std::time::Duration;

use clap::Args;
use ironorb::dynamic::{OperationDescription, Request};
use ironorb::{Context, Orb, OrbBuilder};
use ironorb_dynamic::{declaration, signature};

use crate::calling;
use crate::failure::Failure;
use crate::seconds::seconds;
use crate::{output, reference};
pub(crate) use complete::{CompleteArguments, complete};
pub(crate) use explain::{reference as explain_reference, system as explain_system};
use operation::Found;
pub(crate) use operation::interface_named;
pub(crate) use outcome::ResultPrinter;
pub(crate) use sources::Sources;

/// Call any operation of any CORBA object, with JSON for arguments and results.
///
/// Types come from IDL files (--idl), from an interface repository (--ifr, or the initial reference
/// InterfaceRepository), or from the object itself, if its server can describe it. The result is printed as
/// JSON, together with out and inout parameters as {"result": …, "out": {…}}. A user exception is printed as
/// JSON on standard error, and the exit code is 1.
///
/// Options of the ORB, such as -ORBgiopVersion 1.1, may stand anywhere before `--`.
#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    after_help = "Examples:\n  \
        ironorb call corbaname::localhost#bank/main --list\n  \
        ironorb call corbaname::localhost#bank/main --idl bank.idl --list\n  \
        ironorb call corbaname::localhost#bank/main deposit 100 --ifr localhost:2900\n  \
        ironorb call corbaname::localhost#bank/main --describe Entry\n  \
        ironorb call corbaname::localhost#bank/main transfer --template\n  \
        ironorb call file:account.ior transfer '{\"to\": \"IOR:…\", \"amount\": 5}' --idl bank.idl\n  \
        ironorb call IOR:… balance --idl bank.idl --time 1000"
)]
pub(crate) struct Arguments {
    /// The object: `IOR:…`, `corbaloc:…`, `corbaname:…`, or `file:PATH` of a file with one of these.
    #[arg(value_name = "REF")]
    reference: String,
    /// The operation, or an attribute: its name prints the value, `NAME=VALUE` sets it. Every object has
    /// `_is_a`, `_non_existent`, `_repository_id`, `_interface` and `_component`, which need no IDL.
    #[arg(required_unless_present_any = ["list", "describe"])]
    operation: Option<String>,
    /// The arguments as JSON: one for each in and inout parameter in order, or one object with all of them by
    /// name. `@FILE` reads one from a file, `-` from standard input. Texts, enumerators and references need
    /// no quotes, in files too: a text is the whole file, without the end of its last line.
    #[arg(allow_negative_numbers = true)]
    arguments: Vec<String>,
    #[command(flatten)]
    sources: Sources,
    /// A property for operations with a `context` clause; may be given several times.
    #[arg(long, value_name = "NAME=VALUE", value_parser = property)]
    context: Vec<(String, String)>,
    /// List the operations and attributes of the object's interface instead of calling.
    #[arg(long, conflicts_with_all = ["operation", "time"])]
    list: bool,
    /// Print the definition of a type as IDL instead of calling. TYPE is the scoped name, the end of it, or the
    /// repository id.
    #[arg(long, value_name = "TYPE", conflicts_with_all = ["operation", "time", "list"])]
    describe: Option<String>,
    /// Print a JSON skeleton of the operation's arguments instead of calling: an object with all of them by name.
    #[arg(long, conflicts_with_all = ["arguments", "time", "list", "describe"])]
    template: bool,
    /// Give members and arguments that are left out their default: 0, empty, false, nil or the first
    /// enumerator.
    #[arg(long)]
    fill: bool,
    /// Call N times with the same arguments, and print on standard error how long a call took.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=timing::CALLS_MAX))]
    time: Option<u32>,
    /// How long one call may take, in seconds. Fractions are allowed.
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = seconds)]
    timeout: Duration,
    /// Print JSON on one line.
    #[arg(long)]
    compact: bool,
    /// Print every line of an exception's detail, such as the server's stack trace. The default is the first
    /// line.
    #[arg(short, long)]
    verbose: bool,
}

/// Takes the `-ORB…` options out of the command line of `call`: only the ORB understands them.
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
        // The parser reports arguments that are not Unicode.
        None => (command_line, builder),
    }
}

pub(crate) fn run(arguments: &Arguments, orb: OrbBuilder) -> Result<(), Failure> {
    let mut known = arguments.sources.read()?;
    let orb = calling::orb(orb, arguments.timeout)?;
    arguments.sources.add_repository(&mut known, &orb)?;
    let typed = &arguments.reference;
    let object = reference::object(&orb, typed).map_err(|e| explain::reference(typed, &e))?;
    let interface = || arguments.sources.interface_of(&object, &known);
    let Some(typed) = &arguments.operation else {
        return output::text(match &arguments.describe {
            Some(name) => describe::describe(name, &known.with_definitions_of(&object), interface)?,
            None => declaration(&*interface()?),
        });
    };
    let Found { operation, value } = match operation::of_every_object(typed) {
        Some(found) => found,
        None => operation::find(&*interface()?, typed)?,
    };
    if arguments.template {
        return output::line(format_args!("{:#}", arguments::template(&operation)?));
    }
    let known = known.with_definitions_of(&object);
    let mut texts: Vec<&str> = value.iter().map(String::as_str).collect();
    texts.extend(arguments.arguments.iter().map(String::as_str));
    let values = arguments::read(&operation, &texts, &known, &orb, arguments.fill)?;
    let mut request = Request::new(&object, operation.clone());
    if let Some(context) = arguments.context_for(&operation)? {
        request.set_context(context);
    }
    for (index, value) in values {
        match value {
            arguments::Argument::Any(value) => request.set_any(index, &value),
            arguments::Argument::Json(value) => request.set_unchecked(index, Box::new(value)),
        }
        .map_err(Failure::new)?;
    }
    let printer = outcome::ResultPrinter {
        operation: &operation,
        name: operation::plain(&operation.name),
        known: &known,
        compact: arguments.compact,
        verbose: arguments.verbose,
    };
    let done = match arguments.time {
        None => request.invoke(),
        Some(calls) => timing::repeat(&mut request, calls),
    };
    match done {
        Ok(results) => printer.results(&results),
        Err(error) => Err(printer.error(&error, &object)),
    }
}

impl Arguments {
    /// The properties for the operation's `context` clause. A property that no clause names is refused,
    /// because it would not be sent.
    fn context_for(&self, operation: &OperationDescription) -> Result<Option<Context>, Failure> {
        if self.context.is_empty() {
            return Ok(None);
        }
        let given = self.context.iter();
        let context = given.fold(Context::new(), |context, (name, value)| context.with(name, value));
        let patterns: Vec<&str> = operation.contexts.iter().map(String::as_str).collect();
        let sent = context.matching(&patterns);
        if let Some((name, _)) = context.iter().find(|(name, _)| sent.get(name).is_none()) {
            return Err(Failure::usage(format!(
                "`{}` does not take the property {name}: no `context` clause names it",
                operation.name
            ))
            .with_help(signature(operation)));
        }
        Ok(Some(context))
    }
}

fn property(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("write NAME=VALUE".to_owned()),
    }
}
