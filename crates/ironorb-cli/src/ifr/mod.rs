//! `ironorb ifr`: the interface repository, and what is defined in it.

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
    /// A change that was acknowledged is on disk. When clients can be served, one line `ready URL` is printed, in which
    /// URL is a corbaloc of the repository: give it to servers as their initial reference `InterfaceRepository`, and
    /// their objects tell what their interface is.
    Serve(serve::Arguments),
    /// Load the definitions of IDL files into a repository that `ironorb ifr serve` serves, or into a store.
    ///
    /// What it has already is brought up to date. Each file is loaded wholly or not at all.
    Load(load::Arguments),
    /// List what stands in a container of a repository; what contains definitions itself ends in `::`.
    List {
        #[command(flatten)]
        place: Place,
        /// The container, by scoped name or repository id; the whole repository when left out.
        name: Option<String>,
        /// List what stands further inside, too.
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
    /// Write all that is in a repository to standard output as one IDL file, which can be compiled and loaded elsewhere.
    ///
    /// Definitions come in an order in which each is known before it is used. A bitset or bitmask comes out as a typedef of
    /// the integer that it travels as, for which alone CORBA's repository has a word.
    Export(idl::Arguments),
    /// Take a definition away with all that stands in it. What others refer to is kept.
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
