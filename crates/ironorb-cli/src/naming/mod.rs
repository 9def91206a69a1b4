//! `ironorb naming`: the naming service and its bindings.

mod change;
mod explain;
mod place;
mod serve;
mod show;

use clap::{Args, Subcommand};

use crate::failure::Failure;
use place::Place;
pub(crate) use place::{address_of, with_scheme};

#[derive(Debug, Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve names until a signal (SIGINT, SIGTERM) ends it.
    ///
    /// A binding is on disk before the server acknowledges it. When clients can be served, the command prints
    /// one line `ready URL`; URL is a corbaloc of the root context.
    Serve(serve::Arguments),
    /// List the bindings of a context. Contexts end in a slash.
    List {
        #[command(flatten)]
        place: Place,
        /// The context, by its stringified name; the root context when left out.
        name: Option<String>,
    },
    /// Print the whole tree of names.
    Tree {
        #[command(flatten)]
        place: Place,
        /// Where to start; the root context when left out.
        name: Option<String>,
        /// How many levels of contexts to show.
        #[arg(long, value_name = "LEVELS", default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=256))]
        depth: u16,
    },
    /// Print the reference that a name is bound to, as an IOR.
    Resolve {
        #[command(flatten)]
        place: Place,
        /// A stringified name, such as `bank/main` or `printers/floor\.2.device`.
        name: String,
    },
    /// Bind a free name to an object.
    Bind(change::Binding),
    /// Bind a name to an object, and replace the object that it is bound to, if any.
    Rebind(change::Binding),
    /// Remove a binding. The object itself lives on.
    Unbind {
        #[command(flatten)]
        place: Place,
        /// Unbind a context even if it has bindings. Its bindings then remain reachable only by other names of
        /// the context.
        #[arg(long)]
        force: bool,
        /// The name.
        name: String,
    },
    /// Make an empty context and bind it to a free name.
    NewContext {
        #[command(flatten)]
        place: Place,
        /// Make the missing contexts on the way.
        #[arg(short, long)]
        parents: bool,
        /// The name. Without a name the context is not bound, and its IOR is printed.
        name: Option<String>,
    },
    /// Destroy an empty context and remove its binding.
    Destroy {
        #[command(flatten)]
        place: Place,
        /// The name of the context.
        name: String,
    },
}

pub(crate) fn run(arguments: Arguments) -> Result<(), Failure> {
    match arguments.command {
        Command::Serve(arguments) => serve::run(arguments),
        Command::List { place, name } => show::list(&place, name.as_deref()),
        Command::Tree { place, name, depth } => show::tree(&place, name.as_deref(), depth.into()),
        Command::Resolve { place, name } => show::resolve(&place, &name),
        Command::Bind(binding) => change::bind(&binding),
        Command::Rebind(binding) => change::rebind(&binding),
        Command::Unbind { place, force, name } => change::unbind(&place, &name, force),
        Command::NewContext { place, parents, name } => change::new_context(&place, name.as_deref(), parents),
        Command::Destroy { place, name } => change::destroy(&place, &name),
    }
}
