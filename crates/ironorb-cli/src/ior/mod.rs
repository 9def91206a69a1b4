//! `ironorb ior`: object references for people.
//!
//! Asks nobody: what is shown is in the text itself. What is not understood is shown as bytes.

use std::fmt::Write as _;
use std::io::{self, Read as _, Write as _};

use clap::{Args, Subcommand};
use ironorb::giop::ior::{
    CodeSetComponent, IRONORB_ORB_TYPE, IiopProfile, Ior, Profile, TAG_ALTERNATE_IIOP_ADDRESS, TAG_CODE_SETS,
    TAG_IRONORB_SHARED_MEMORY, TAG_OMNIORB_UNIX_TRANS, TAG_ORB_TYPE, TaggedComponent, TaggedProfile,
};
use ironorb::giop::url::{Corbaloc, CorbalocAddress, ObjectUrl};
use ironorb::giop::{ByteOrder, Encoding, Malformed, Reader};
use ironorb::poa::describe_object_key;

use crate::failure::{Failure, printed};

#[derive(Debug, Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Show everything that a reference says: type, profiles, addresses, object key, components.
    Decode {
        /// An IOR, corbaloc or corbaname; `-` reads it from standard input.
        reference: String,
    },
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let Command::Decode { reference } = &arguments.command;
    let text = match reference.as_str() {
        "-" => from_stdin()?,
        text => text.to_owned(),
    };
    let url: ObjectUrl = text.parse().map_err(|e| {
        Failure::new(format!("not an object reference: {e}"))
            .with_help("a reference is `IOR:…`, `corbaloc:…` or `corbaname:…`")
    })?;
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
    printed(write!(io::stdout(), "{}", out.text))
}

fn from_stdin() -> Result<String, Failure> {
    let mut text = String::new();
    let limited = &mut io::stdin().take(TEXT_BYTES_MAX);
    limited
        .read_to_string(&mut text)
        .map_err(|e| Failure::new(format!("cannot read standard input: {e}")))?;
    Ok(text)
}

/// Collects lines of a label and what it is.
#[derive(Default)]
struct Out {
    text: String,
}

impl Out {
    fn line(&mut self, level: usize, label: &str, what: impl std::fmt::Display) {
        let lead = "  ".repeat(level);
        let width = LABEL_COLUMNS.saturating_sub(lead.len());
        // A String takes any amount of text.
        let _ = writeln!(self.text, "{lead}{label:<width$} {what}");
    }

    fn ior(&mut self, ior: &Ior) {
        if ior.is_nil() && ior.type_id.is_empty() {
            return self.line(0, "reference", "nil");
        }
        let type_id = if ior.type_id.is_empty() { "none: the object must be asked" } else { &ior.type_id };
        self.line(0, "type id", type_id);
        if ior.profiles.is_empty() {
            self.line(0, "profiles", "none: the reference leads nowhere");
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
                self.line(0, &label, format_args!("IIOP 1.{version}, {bytes} bytes, {order}-endian"));
                self.iiop(iiop);
            }
            Profile::Other(other) => {
                let name = profile_name(other.tag);
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
        self.key(1, profile.object_key());
        for component in profile.components() {
            self.component(&component);
        }
    }

    fn other(&mut self, profile: &TaggedProfile) {
        match profile.components() {
            Some(Ok(components)) => components.for_each(|component| self.component(&component)),
            Some(Err(e)) => self.bad(1, "components", &e, &profile.data),
            None if profile.tag == 0 => match profile.parse_iiop() {
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

    fn component(&mut self, component: &TaggedComponent<'_>) {
        match component.tag {
            TAG_ORB_TYPE => match component.orb_type() {
                Some(Ok(number)) => self.line(1, "ORB type", orb_name(number)),
                other => self.bad_component("ORB type", component, other.and_then(Result::err)),
            },
            TAG_CODE_SETS => match component.code_sets() {
                Some(Ok(info)) => {
                    self.line(1, "code sets", format_args!("char: {}", code_sets(&info.for_char_data)));
                    self.line(1, "", format_args!("wchar: {}", code_sets(&info.for_wchar_data)));
                }
                other => self.bad_component("code sets", component, other.and_then(Result::err)),
            },
            TAG_ALTERNATE_IIOP_ADDRESS => match component.alternate_address() {
                Some(Ok(address)) => self.line(1, "address", format_args!("{address} (alternate)")),
                other => self.bad_component("address", component, other.and_then(Result::err)),
            },
            TAG_OMNIORB_UNIX_TRANS => match component.unix_address() {
                Some(Ok(address)) => self.line(1, "Unix socket", address),
                other => self.bad_component("Unix socket", component, other.and_then(Result::err)),
            },
            TAG_IRONORB_SHARED_MEMORY => match component.shared_memory_address() {
                Some(Ok(address)) => {
                    self.line(1, "shared mem", format_args!("shm://{} on {}", address.path, address.host));
                }
                other => self.bad_component("shared mem", component, other.and_then(Result::err)),
            },
            TAG_SSL_SEC_TRANS => match ssl_port(&component.data) {
                Ok(port) => self.line(1, "SSL", format_args!("port {port}")),
                Err(e) => self.bad_component("SSL", component, Some(e)),
            },
            tag => {
                let name = component_name(tag).map_or_else(|| "unknown".to_owned(), str::to_owned);
                self.dump(1, &format!("component {tag:#x}"), &component.data);
                self.line(1, "", format_args!("({name})"));
            }
        }
    }

    fn bad_component(&mut self, label: &str, component: &TaggedComponent<'_>, why: Option<Malformed>) {
        match why {
            Some(why) => self.bad(1, label, &why, &component.data),
            None => self.dump(1, label, &component.data),
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

/// SSLIOP::SSL (CORBA Security Service): two sets of options, then the port.
fn ssl_port(data: &[u8]) -> Result<u16, Malformed> {
    let mut r = Reader::encapsulated(data, Encoding::NATIVE)?;
    let (_supports, _requires) = (r.read_u16()?, r.read_u16()?);
    r.read_u16()
}

fn code_sets(component: &CodeSetComponent) -> String {
    let native = match component.native_code_set {
        0 => "none".to_owned(),
        set => code_set_name(set),
    };
    let others: Vec<String> = component.conversion_code_sets.iter().map(|set| code_set_name(*set)).collect();
    match others.is_empty() {
        true => native,
        false => format!("{native}, converts {}", others.join(", ")),
    }
}

/// The OSF character and code set registry.
fn code_set_name(set: u32) -> String {
    match set {
        0x0001_0001..=0x0001_000f => format!("ISO 8859-{}", set - 0x0001_0000),
        0x0001_0020 => "ISO 646".to_owned(),
        0x0001_0100..=0x0001_0102 => format!("UCS-2 level {}", set - 0x0001_0100 + 1),
        0x0001_0104..=0x0001_0106 => format!("UCS-4 level {}", set - 0x0001_0104 + 1),
        0x0001_0109 => "UTF-16".to_owned(),
        0x0501_0001 => "UTF-8".to_owned(),
        _ => format!("{set:#010x}"),
    }
}

fn orb_name(number: u32) -> String {
    let name = match number {
        IRONORB_ORB_TYPE => "IronORB",
        0x4154_5400 => "omniORB",
        0x5441_4f00 => "TAO",
        0x4a41_4300 => "JacORB",
        0x4f4f_4300 => "ORBacus",
        _ => "unknown",
    };
    format!("{name} ({number:#010x})")
}

fn profile_name(tag: u32) -> String {
    match tag {
        0 => "IIOP, not well-formed".to_owned(),
        1 => "components only".to_owned(),
        2 => "SCCP".to_owned(),
        tag => format!("profile {tag:#x} of another protocol"),
    }
}

/// Tags of the standard (CORBA 3.3 part 2, 7.6.6).
fn component_name(tag: u32) -> Option<&'static str> {
    Some(match tag {
        2 => "policies",
        5 => "complete object key",
        6 => "endpoint id position",
        12 => "location policy",
        13 => "association options",
        14 => "security name",
        25 => "Java code base",
        27 => "fault tolerance: group",
        28 => "fault tolerance: primary",
        29 => "fault tolerance: heartbeat",
        33 => "CSIv2 security mechanisms",
        34 => "CSIv2: no transport security",
        35 => "CSIv2: SECIOP",
        36 => "CSIv2: TLS",
        38 => "RMI: greatest stream format",
        _ => return None,
    })
}

const TAG_SSL_SEC_TRANS: u32 = 20;
/// Longer than any reference; what is behind it is not read.
const TEXT_BYTES_MAX: u64 = 16 << 20;
const LABEL_COLUMNS: usize = 14;
const DUMP_ROWS_MAX: usize = 64;
