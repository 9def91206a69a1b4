//! Where a call gets its types from.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use ironorb::dynamic::InterfaceDescription;
use ironorb::{ObjectRef, Orb, ifr};
use ironorb_dynamic::{Interfaces, Source, UnknownInterface};

use super::{explain, operation};
use crate::failure::Failure;
use crate::{definitions, idl};

#[derive(Debug, Args)]
pub(crate) struct Sources {
    /// An IDL file that has the object's interface, or one of its bases. May be given several times.
    #[arg(long, value_name = "FILE")]
    idl: Vec<PathBuf>,
    #[command(flatten)]
    settings: idl::Settings,
    /// An interface repository that has the object's interface: a corbaloc, corbaname or IOR, or just
    /// HOST[:PORT] of `ironorb ifr serve`. Default: the initial reference InterfaceRepository, if there is
    /// one, and the object's own description.
    #[arg(long, value_name = "URL")]
    ifr: Option<String>,
    /// Use this interface for the object, by its name or repository id, without asking the object.
    #[arg(long, value_name = "NAME")]
    interface: Option<String>,
}

impl Sources {
    /// What the IDL files define.
    pub(crate) fn read(&self) -> Result<Interfaces, Failure> {
        definitions::read(&self.idl, &self.settings)
    }

    /// Adds the repository that an option names, or else the ORB's initial reference. It is called only when
    /// a type is not known otherwise.
    pub(crate) fn add_repository(&self, known: &mut Interfaces, orb: &Orb) -> Result<(), Failure> {
        match &self.ifr {
            Some(text) => definitions::add_repository(known, orb, text)?,
            None => {
                if let Ok(configured) = ifr::repository(orb) {
                    known.add_repository(&configured);
                }
            }
        }
        Ok(())
    }

    pub(crate) fn interface_of(
        &self,
        object: &ObjectRef,
        known: &Interfaces,
    ) -> Result<Arc<InterfaceDescription>, Failure> {
        match &self.interface {
            Some(name) => operation::interface_named(known, name),
            None => known.of(object).or_else(|unknown| {
                standard(&unknown.id).map_or_else(|| Err(self.unknown(object, &unknown)), Ok)
            }),
        }
    }

    fn unknown(&self, object: &ObjectRef, unknown: &UnknownInterface) -> Failure {
        if let Some(e) = &unknown.unanswered {
            return explain::system("cannot ask the object for its interface", object, e);
        }
        let id = match unknown.id.as_str() {
            "" => String::new(),
            id => format!(", {id}"),
        };
        let mut tried = String::new();
        for attempt in &unknown.attempts {
            let what = match attempt.source {
                Source::Known => {
                    let files: Vec<String> = self.idl.iter().map(|file| file.display().to_string()).collect();
                    format!("--idl {}", files.join(", "))
                }
                Source::Repository => match &self.ifr {
                    Some(text) => format!("--ifr {}", shortened(text)),
                    None => Source::InitialReference.to_string(),
                },
                other => other.to_string(),
            };
            tried.push_str(&format!("  {what}: {}\n", attempt.why));
        }
        Failure::new(format!("the object's interface is not known{id}")).with_body(tried).with_help(
            "--idl FILE names an IDL file that defines it, --ifr URL an interface repository; --interface NAME calls it as \
             one all the same",
        )
    }
}

/// An interface of the services in this command, which need no IDL file.
fn standard(id: &str) -> Option<Arc<InterfaceDescription>> {
    const FILES: [(&str, &str, &str); 2] = [
        ("IDL:omg.org/CORBA/", "ir.idl", include_str!("../../../../idl/ir.idl")),
        ("IDL:omg.org/CosNaming/", "CosNaming.idl", include_str!("../../../../idl/CosNaming.idl")),
    ];
    let (_, name, text) = FILES.into_iter().find(|(prefix, ..)| id.starts_with(prefix))?;
    let mut known = Interfaces::new();
    known.add_idl_text(name, text, &ironorb_idl::Options::new()).ok()?;
    known.interface(id)
}

/// The beginning of a reference, long enough to recognize it.
fn shortened(text: &str) -> String {
    const CHARS_MAX: usize = 60;
    match text.char_indices().nth(CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
