//! IronORB's server of the interoperability tests: `interop::Suite`, with the command line of omniORB's
//! peer.
//!
//! ```text
//! interop-server [-ORB...] [--poa transient|persistent] [--key NAME] [--ior-file PATH] [--name A/B]
//!                [--concurrency connection|leader-followers] [--fragment BYTES]
//!                [--fragments-in-giop-1.1 yes] [--bidirectional yes] [--native latin1|utf8]
//!                [--uiop-profiles yes]
//! ```
//!
//! The first line of standard output is the IOR. The server ends on SIGTERM, SIGINT or `Control::shutdown`.
//! Of the options `-ORB...` it supports `endPoint`, `endPointPublish`, `InitRef` and `maxGIOPVersion`.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use ironorb::giop::{CharSet, Version};
use ironorb::poa::PoaPolicies;
use ironorb::{Orb, OrbBuilder, ServerConcurrency, TypedRef};
use ironorb_interop::interop::SuiteRef;
use ironorb_interop::suite::{SuiteServant, create_forwarder, register_values};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

type Failure = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    match serve(std::env::args().skip(1)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("interop-server: {e}");
            ExitCode::FAILURE
        }
    }
}

fn serve(arguments: impl Iterator<Item = String>) -> Result<(), Failure> {
    let settings = Settings::read(arguments)?;
    // The handlers are installed before any process can know this one, so that no signal arrives too early.
    let mut signals = Signals::new([SIGTERM, SIGINT])?;
    let orb = settings.orb.build()?;
    let root = orb.root_poa();
    create_forwarder(&root)?;
    register_values(&orb);
    let suite = Arc::new(SuiteServant::default());
    let reference: SuiteRef = if settings.persistent {
        let poa = root.create_poa("interop", Some(root.manager().clone()), PoaPolicies::PERSISTENT)?;
        let id = "suite".into();
        poa.activate_object_with_id(&id, ironorb::servant::<SuiteRef, _>(suite.clone()))?;
        poa.id_to_reference(&id)?.narrow_unchecked()
    } else {
        root.activate_shared(suite.clone())?
    };
    if let Some(key) = &settings.key {
        orb.bind_key(key, reference.object())?;
    }
    if let Some(name) = &settings.name {
        orb.naming()?.rebind(name, &reference)?;
    }
    let ior = reference.object().to_ior_string();
    if let Some(path) = &settings.ior_file {
        // The server writes a second file and renames it, so that a reader never sees half a reference.
        let partial = Path::new(path).with_extension("partial");
        std::fs::write(&partial, format!("{ior}\n"))?;
        std::fs::rename(&partial, path)?;
    }
    println!("{ior}");
    std::io::stdout().flush()?;

    let (stopped, stopping) = (orb.clone(), suite.clone());
    std::thread::spawn(move || {
        if signals.forever().next().is_some() {
            stopping.open_all_gates();
            let _ = stopped.shutdown(true);
        }
    });
    orb.run()?;
    // The servant that shuts the ORB down may still be answering its caller.
    orb.shutdown(true)?;
    Ok(())
}

struct Settings {
    orb: OrbBuilder,
    persistent: bool,
    key: Option<String>,
    ior_file: Option<String>,
    name: Option<String>,
}

impl Settings {
    fn read(mut arguments: impl Iterator<Item = String>) -> Result<Settings, Failure> {
        let mut orb = Orb::builder();
        let mut listens = false;
        let (mut persistent, mut key, mut ior_file, mut name) = (false, None, None, None);
        while let Some(option) = arguments.next() {
            let value = arguments.next().ok_or_else(|| format!("{option} wants a value"))?;
            let strange = || format!("what is {option} {value}?");
            match option.as_str() {
                "--poa" if value == "persistent" => persistent = true,
                "--poa" if value == "transient" => persistent = false,
                "--key" => key = Some(value),
                "--ior-file" => ior_file = Some(value),
                "--name" => name = Some(value),
                "--concurrency" => {
                    orb = orb.concurrency(match value.as_str() {
                        "connection" => ServerConcurrency::ThreadPerConnection,
                        "leader-followers" => ServerConcurrency::LeaderFollowers { threads: 8 },
                        _ => return Err(strange().into()),
                    });
                }
                "--bare-exceptions" if value == "yes" => {
                    orb.config().bare_exceptions = ironorb::BareExceptions::Yes
                }
                "--bidirectional" if value == "yes" => orb.config().bidirectional = true,
                "--native" if value == "latin1" => orb.config().native_char_set = CharSet::Latin1,
                "--native" if value == "utf8" => orb.config().native_char_set = CharSet::Utf8,
                "--uiop-profiles" if value == "yes" => orb = orb.uiop_profiles(true),
                "--fragment" => orb = orb.fragment_bytes(value.parse()?),
                "--fragments-in-giop-1.1" if value == "yes" => orb = orb.fragments_in_giop_1_1(true),
                "-ORBendPoint" => {
                    orb = orb.endpoint(&value)?;
                    listens = true;
                }
                "-ORBendPointPublish" => {
                    // omniORB writes `host:` for the port of the endpoint.
                    let address = value.strip_prefix("giop:tcp:").ok_or_else(strange)?;
                    orb = orb.publish(address.trim_end_matches(':'));
                }
                "-ORBInitRef" => {
                    let (initial, url) = value.split_once('=').ok_or_else(strange)?;
                    orb = orb.initial_reference(initial, url);
                }
                "-ORBmaxGIOPVersion" => {
                    orb = orb.giop_version(match value.as_str() {
                        "1.0" => Version::V1_0,
                        "1.1" => Version::V1_1,
                        "1.2" => Version::V1_2,
                        _ => return Err(strange().into()),
                    });
                }
                _ => return Err(strange().into()),
            }
        }
        if !listens {
            orb = orb.endpoint("iiop://127.0.0.1:0")?;
        }
        Ok(Settings { orb, persistent, key, ior_file, name })
    }
}
