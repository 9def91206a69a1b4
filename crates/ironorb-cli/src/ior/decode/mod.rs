//! `ironorb ior decode`: shows the contents of a reference.
//!
//! The command asks no server: everything that it shows is in the text. Parts that it does not understand are
//! shown as bytes.

mod components;
mod words;

use std::fmt::Write as _;

use ironorb::giop::ior::{IiopProfile, Ior, Profile, TAG_INTERNET_IOP, TAG_TAO_UIOP, TaggedProfile};
use ironorb::giop::url::{Corbaloc, CorbalocAddress, ObjectUrl};
use ironorb::giop::{ByteOrder, Encoding, Malformed, Reader};
use ironorb::poa::describe_object_key;

use crate::failure::Failure;
use crate::{output, reference};

pub(super) fn run(typed: &str) -> Result<(), Failure> {
    let (url, left_over) = reference::url(typed)?;
    let mut out = Out::default();
    match &url {
        ObjectUrl::Ior(ior) => out.ior(ior),
        ObjectUrl::Corbaloc(corbaloc) => out.corbaloc(corbaloc),
        ObjectUrl::Corbaname(corbaname) => {
            out.corbaloc(&corbaname.context);
            match corbaname.name.as_str() {
                "" => out.line(0, "name", "none: the naming context itself"),
                name => out.line(0, "name", name),
            }
        }
    }
    if left_over > 0 {
        out.line(0, "note", reference::left_over(left_over));
    }
    output::text(out.text)
}

/// Collects lines, each with a label.
#[derive(Default)]
struct Out {
    text: String,
}

impl Out {
    fn line(&mut self, level: usize, label: &str, what: impl std::fmt::Display) {
        let lead = "  ".repeat(level);
        let width = LABEL_COLUMNS.saturating_sub(lead.len());
        // Writing to a String cannot fail.
        let _ = writeln!(self.text, "{lead}{label:<width$} {what}");
    }

    fn ior(&mut self, ior: &Ior) {
        if ior.is_nil() && ior.type_id.is_empty() {
            return self.line(0, "reference", "nil");
        }
        let type_id = if ior.type_id.is_empty() { "none: the object must be asked" } else { &ior.type_id };
        self.line(0, "type id", type_id);
        if ior.profiles.is_empty() {
            self.line(0, "profiles", "none: the reference leads to no object");
        }
        for (index, profile) in ior.profiles.iter().enumerate() {
            self.profile(index + 1, profile);
        }
    }

    fn profile(&mut self, number: usize, profile: &Profile) {
        let label = format!("profile {number}");
        let bytes = profile.data().len();
        match profile {
            Profile::Iiop(iiop) => {
                let order =
                    if iiop_order(profile.data()) == Some(ByteOrder::Little) { "little" } else { "big" };
                let version = iiop.version().minor();
                let protocol = if iiop.uiop_path().is_some() { "UIOP" } else { "IIOP" };
                self.line(0, &label, format_args!("{protocol} 1.{version}, {bytes} bytes, {order}-endian"));
                self.iiop(iiop);
            }
            Profile::Other(other) => {
                let name = words::profile(other.tag);
                self.line(0, &label, format_args!("{name}, {bytes} bytes"));
                self.other(other);
            }
        }
    }

    fn iiop(&mut self, profile: &IiopProfile) {
        if let Some(address) = profile.addresses().next() {
            let unreachable = if address.port == 0 { " (not reachable by plain IIOP)" } else { "" };
            self.line(1, "address", format_args!("{address}{unreachable}"));
        }
        if let Some(path) = profile.uiop_path() {
            self.line(1, "Unix socket", format_args!("uiop://{path}"));
        }
        self.key(1, profile.object_key());
        for component in profile.components() {
            match component.tao_unix_endpoints().filter(|_| profile.uiop_path().is_some()) {
                Some(endpoints) => self.unix_endpoints(&component, &endpoints),
                None => self.component(&component),
            }
        }
    }

    fn other(&mut self, profile: &TaggedProfile) {
        match profile.components() {
            Some(Ok(components)) => components.for_each(|component| self.component(&component)),
            Some(Err(e)) => self.bad(1, "components", &e, &profile.data),
            None if [TAG_INTERNET_IOP, TAG_TAO_UIOP].contains(&profile.tag) => match profile.parse_iiop() {
                Err(e) => self.bad(1, "contents", &e, &profile.data),
                Ok(iiop) => self.iiop(&iiop),
            },
            None => self.dump(1, "contents", &profile.data),
        }
    }

    fn key(&mut self, level: usize, key: &[u8]) {
        self.dump(level, "object key", key);
        if let Some(meaning) = describe_object_key(key) {
            self.line(level, "", format_args!("made by IronORB: {meaning}"));
        }
    }

    fn bad(&mut self, level: usize, label: &str, why: &Malformed, bytes: &[u8]) {
        self.line(level, label, format_args!("malformed: {why}"));
        self.dump(level, "", bytes);
    }

    /// Bytes in hexadecimal and as characters.
    fn dump(&mut self, level: usize, label: &str, bytes: &[u8]) {
        self.line(
            level,
            label,
            format_args!("{} byte{}", bytes.len(), if bytes.len() == 1 { "" } else { "s" }),
        );
        for row in bytes.chunks(16).take(DUMP_ROWS_MAX) {
            let hex: Vec<String> = row.iter().map(|byte| format!("{byte:02x}")).collect();
            let shown = |byte: &u8| if matches!(byte, 0x20..=0x7e) { char::from(*byte) } else { '.' };
            let characters: String = row.iter().map(shown).collect();
            self.line(level, "", format_args!("{:<47}  {characters}", hex.join(" ")));
        }
        if bytes.len() > 16 * DUMP_ROWS_MAX {
            self.line(level, "", format_args!("… and {} more", bytes.len() - 16 * DUMP_ROWS_MAX));
        }
    }

    fn corbaloc(&mut self, corbaloc: &Corbaloc) {
        for address in &corbaloc.addresses {
            match address {
                CorbalocAddress::Rir => self.line(0, "address", "none: an initial reference of the ORB"),
                CorbalocAddress::Iiop { version, host, port } => {
                    let host = if host.contains(':') { format!("[{host}]") } else { host.clone() };
                    self.line(0, "address", format_args!("{host}:{port}, GIOP 1.{}", version.minor()));
                }
                CorbalocAddress::Unix { version, path } => {
                    self.line(0, "Unix socket", format_args!("uiop://{path}, GIOP 1.{}", version.minor()));
                }
                CorbalocAddress::SharedMemory { version, path } => {
                    self.line(0, "shared mem", format_args!("shm://{path}, GIOP 1.{}", version.minor()));
                }
            }
        }
        self.key(0, &corbaloc.object_key);
    }
}

/// The byte order of an encapsulation.
fn iiop_order(data: &[u8]) -> Option<ByteOrder> {
    Reader::encapsulated(data, Encoding::NATIVE).ok().map(|r| r.encoding().order)
}

const LABEL_COLUMNS: usize = 14;
const DUMP_ROWS_MAX: usize = 64;
