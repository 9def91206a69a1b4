//! `ironorb agent register`.

use clap::Args;

use super::place::Place;
use crate::failure::Failure;
use crate::{call, output, reference, serving};

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    place: Place,
    /// A property of the server, which clients may ask for; may be given several times.
    #[arg(long = "property", value_name = "PROPERTY=VALUE")]
    properties: Vec<String>,
    /// Register only if nothing is registered under the name; then nothing else can be.
    #[arg(long)]
    exclusive: bool,
    /// End when standard input ends, as it does when the parent process is gone.
    #[arg(long, hide = true)]
    with_parent: bool,
    /// The name.
    name: String,
    /// The server: an IOR, a corbaloc or a corbaname.
    reference: String,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let mut signals = serving::signals()?;
    let client = arguments.place.open()?;
    let object = reference::object(client.orb(), &arguments.reference)
        .map_err(|e| call::explain_reference(&arguments.reference, &e))?;
    let mut offering = client.register_object(&arguments.name, &object).map_err(Failure::new)?;
    for property in &arguments.properties {
        let (name, value) = property
            .split_once('=')
            .ok_or_else(|| Failure::usage(format!("--property {property}: write PROPERTY=VALUE")))?;
        offering = offering.property(name, value);
    }
    if arguments.exclusive {
        offering = offering.exclusive();
    }
    let registration = offering
        .start()
        .map_err(|e| arguments.place.failed(&format!("register `{}`", arguments.name), &e))?;
    output::announce(format_args!("ready {}", arguments.name));
    serving::wait_for_end(&mut signals, arguments.with_parent);
    drop(registration);
    Ok(())
}
