//! `ironorb ifr`: the interface repository and its definitions.

mod explain;
mod idl;
mod load;
mod loader;
mod place;
mod serve;
mod show;

use clap::{Args, Subcommand};

use crate::failure::Failure;
use place::Place;
pub(crate) use place::with_scheme;

#[derive(Debug, Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve definitions until a signal (SIGINT, SIGTERM) ends it.
    ///
    /// A change is on disk before the server acknowledges it. When clients can be served, the command prints
    /// one line `ready URL`; URL is a corbaloc of the repository. Servers that get it as their initial
    /// reference `InterfaceRepository` can describe the interfaces of their objects.
    Serve(serve::Arguments),
    /// Load the definitions of IDL files into a repository that `ironorb ifr serve` serves, or into a store.
    ///
    /// Definitions that exist already are updated. Each file is loaded wholly or not at all.
    Load(load::Arguments),
    /// List the definitions in a container of a repository. Definitions that contain others end in `::`.
    List {
        #[command(flatten)]
        place: Place,
        /// The container, by scoped name or repository id; the whole repository when left out.
        name: Option<String>,
        /// List the definitions further inside too.
        #[arg(short, long)]
        recursive: bool,
    },
    /// Show a definition as IDL, with its repository id.
    Show {
        #[command(flatten)]
        place: Place,
        /// The definition, by scoped name (`Bank::Account`) or repository id (`IDL:Bank/Account:1.0`).
        name: String,
    },
    /// Write a whole repository to standard output as one IDL file, which can be compiled and loaded
    /// elsewhere.
    ///
    /// Each definition comes before its users. A bitset or bitmask becomes a typedef of the integer that it
    /// is marshalled as, because CORBA's repository has no kind for it.
    Export(idl::Arguments),
    /// Remove a definition with everything in it. A definition to which others refer is kept.
    Remove {
        #[command(flatten)]
        place: Place,
        /// The definition, by scoped name or repository id.
        name: String,
    },
}

pub(crate) fn run(arguments: Arguments) -> Result<(), Failure> {
    match arguments.command {
        Command::Serve(arguments) => serve::run(&arguments),
        Command::Load(arguments) => load::run(&arguments),
        Command::List { place, name, recursive } => show::list(&place, name.as_deref(), recursive),
        Command::Show { place, name } => show::show(&place, &name),
        Command::Export(arguments) => idl::export(&arguments),
        Command::Remove { place, name } => show::remove(&place, &name),
    }
}
