//! Prints the definitions of a repository as IDL that can be compiled and loaded again. The repository may
//! belong to any ORB: only standard descriptions are used.

mod order;
mod read;
mod text;

use std::collections::HashSet;
use std::io::{self, Write as _};
use std::path::PathBuf;

use clap::Args;
use ironorb::ifr::corba::{ContainedRef, ContainerRef, RepositoryRef};
use ironorb::{Orb, SystemException};
use ironorb_idl::model::DefKind;
use ironorb_idl::{MapLoader, Options, compile_with};
use ironorb_services::ifr::{InterfaceRepository, InterfaceRepositoryServer, Limits};

use super::explain::unanswered;
use super::load::open_store;
use super::place::Place;
use crate::failure::{Failure, printed};
use text::Printer;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The file that holds the definitions. It can be read only while no `ironorb ifr serve` has it open.
    #[arg(long, value_name = "PATH", conflicts_with_all = ["ifr", "timeout"])]
    store: Option<PathBuf>,
    #[command(flatten)]
    place: Place,
}

/// Prints the whole repository as one IDL file.
pub(super) fn export(arguments: &Arguments) -> Result<(), Failure> {
    let text = match &arguments.store {
        None => whole(&arguments.place.open()?.root),
        Some(store) => {
            let (store, _) = open_store(Some(store))?;
            let orb = Orb::builder().no_endpoint().build().map_err(Failure::new)?;
            let repository = InterfaceRepository::new(store, Limits::default());
            let server = InterfaceRepositoryServer::start(&orb, repository).map_err(Failure::new)?;
            orb.root_poa().manager().activate().map_err(Failure::new)?;
            whole(server.root())
        }
    };
    let text = text.map_err(|e| unanswered("cannot read the definitions", &e))?;
    printed(io::stdout().lock().write_all(text.as_bytes()))
}

/// One definition as IDL, without the definitions that it refers to.
pub(super) fn one(root: &RepositoryRef, definition: &ContainedRef) -> Result<String, SystemException> {
    let definition = read::one(definition)?;
    let mut printer = Printer::new(root.clone(), &[]);
    printer.definition_alone(&definition);
    Ok(printer.finish(false))
}

fn whole(root: &RepositoryRef) -> Result<String, SystemException> {
    let definitions = read::contents(&ContainerRef::from(root.clone()), "", 0)?;
    let known = brought_along();
    let uses_known = read::any(&definitions, &|definition| known.contains(&definition.id));
    let mut printer = Printer::new(root.clone(), &definitions);
    for unit in order::units(&definitions) {
        if !known.contains(&unit.definition.id) {
            printer.unit(&unit);
        }
    }
    Ok(printer.finish(uses_known))
}

/// The ids of what every IDL compiler defines in `orb.idl`, without those that the file only declares.
fn brought_along() -> HashSet<String> {
    let files = MapLoader::new().with("all.idl", "#include <orb.idl>\n");
    let model = compile_with("all.idl".as_ref(), &Options::default(), &files).model;
    let definitions = model.iter().flat_map(|model| model.definitions());
    let defined = definitions.filter(|definition| match &definition.kind {
        DefKind::Interface(interface) => interface.defined,
        DefKind::Module(_) => false,
        _ => true,
    });
    defined.map(|definition| definition.repository_id.clone()).collect()
}
