//! `ironorb ior make`: makes IORs, and changes existing ones.

use clap::Args;
use ironorb::giop::ior::{
    CodeSetComponentInfo, IiopProfile, Ior, Profile, TAG_CODE_SETS, TAG_ORB_TYPE, TaggedComponent,
};
use ironorb::giop::url::{Corbaloc, ObjectUrl};
use ironorb::giop::{CharSet, Misuse, Version};

use crate::failure::Failure;
use crate::{output, reference};

#[derive(Debug, Args)]
#[command(
    arg_required_else_help = true,
    after_help = "Examples:\n  \
        ironorb ior make --host db.example --port 2809 --key Bank --type IDL:Bank:1.0\n  \
        ironorb ior make file:bank.ior --host gateway.example\n  \
        ironorb ior make IOR:… --without 33 --component 0x1234=00ff\n  \
        ironorb ior make corbaloc::db.example/Bank --type IDL:Bank:1.0 --code-sets UTF-8"
)]
pub(super) struct Arguments {
    /// The reference to change: an IOR, a corbaloc, `file:PATH`, or `-` for standard input. The options
    /// change each IIOP profile, and but for addresses each UIOP profile; everything else stays as it is. Without a
    /// reference, --host and --key make a new one.
    reference: Option<String>,
    /// The repository id of the interface; empty for none.
    #[arg(long = "type", value_name = "ID")]
    type_id: Option<String>,
    /// The host: a name or an IP address.
    #[arg(long)]
    host: Option<String>,
    /// The TCP port. Default in a new reference: 2809. Port 0 means that plain IIOP does not lead to the
    /// object.
    #[arg(long)]
    port: Option<u16>,
    /// The object key. `%` and two hexadecimal digits stand for other characters, as in a corbaloc.
    #[arg(long, conflicts_with = "key_hex")]
    key: Option<String>,
    /// The object key in hexadecimal digits.
    #[arg(long, value_name = "HEX")]
    key_hex: Option<String>,
    /// The version of IIOP. Default in a new reference: 1.2. Components need 1.1.
    #[arg(long, value_name = "1.0|1.1|1.2", value_parser = crate::bridge::version)]
    giop: Option<Version>,
    /// Leave out the components with this tag; may be given several times.
    #[arg(long, value_name = "TAG", value_parser = number)]
    without: Vec<u32>,
    /// Add a component with these bytes, in hexadecimal digits; may be given several times.
    #[arg(long, value_name = "TAG=HEX", value_parser = component)]
    component: Vec<(u32, Vec<u8>)>,
    /// Add a further address of the object; may be given several times.
    #[arg(long, value_name = "HOST:PORT", value_parser = crate::bridge::host_and_port)]
    alternate: Vec<(String, u16)>,
    /// The vendor of the ORB, by its number.
    #[arg(long, value_name = "NUMBER", value_parser = number)]
    orb_type: Option<u32>,
    /// The server's native code set for strings; the other of the two becomes its conversion code set. Wide
    /// strings are UTF-16.
    #[arg(long, value_name = "UTF-8|ISO-8859-1", value_parser = char_set)]
    code_sets: Option<CharSet>,
}

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let mut ior = match &arguments.reference {
        Some(typed) => read(typed)?,
        None => arguments.new_ior()?,
    };
    if let Some(type_id) = &arguments.type_id {
        ior.type_id.clone_from(type_id);
    }
    for profile in &mut ior.profiles {
        if let Profile::Iiop(iiop) = profile
            && arguments.changes_profiles()
        {
            *iiop = arguments.changed(iiop)?;
        }
    }
    output::line(ior)
}

/// Reads the reference to change, as an IOR.
fn read(typed: &str) -> Result<Ior, Failure> {
    match reference::url(typed)? {
        (ObjectUrl::Ior(ior), _) => Ok(ior),
        (ObjectUrl::Corbaloc(corbaloc), _) => corbaloc
            .to_ior()
            .ok_or_else(|| Failure::usage("the corbaloc names an initial reference, which has no address")),
        (ObjectUrl::Corbaname(_), _) => {
            Err(Failure::usage("a corbaname has no object key before it is resolved")
                .with_help("`ironorb ior resolve` prints the IOR that a corbaname leads to"))
        }
    }
}

impl Arguments {
    fn new_ior(&self) -> Result<Ior, Failure> {
        let (Some(host), Some(key)) = (&self.host, self.object_key()?) else {
            return Err(Failure::usage("a new reference needs --host and --key")
                .with_help("a reference as the first argument is changed instead"));
        };
        let (version, port) = (self.giop.unwrap_or(Version::V1_2), self.port.unwrap_or(DEFAULT_PORT));
        let profile = IiopProfile::new(version, host, port, &key, &[]).map_err(|e| cannot_hold(&e))?;
        Ok(Ior::with_profile("", profile))
    }

    fn changes_profiles(&self) -> bool {
        let texts = [&self.host, &self.key, &self.key_hex];
        let lists = [self.without.is_empty(), self.component.is_empty(), self.alternate.is_empty()];
        texts.iter().any(|text| text.is_some())
            || lists.iter().any(|is_empty| !is_empty)
            || self.port.is_some()
            || self.giop.is_some()
            || self.orb_type.is_some()
            || self.code_sets.is_some()
    }

    fn changed(&self, profile: &IiopProfile) -> Result<IiopProfile, Failure> {
        let key = self.object_key()?;
        let key = key.as_deref().unwrap_or(profile.object_key());
        let version = self.giop.unwrap_or(profile.version());
        let components = self.components(profile).map_err(|e| cannot_hold(&e))?;
        if version == Version::V1_0 && !components.is_empty() {
            return Err(Failure::usage("IIOP 1.0 has no place for components")
                .with_help("--giop 1.1 or 1.2 has; --without TAG leaves a component out"));
        }
        if let Some(path) = profile.uiop_path() {
            // Host, port and further addresses are those of the profiles of IIOP.
            return IiopProfile::new_uiop(version, path, key, &components).map_err(|e| cannot_hold(&e));
        }
        let host = self.host.as_deref().unwrap_or(profile.host());
        let port = self.port.unwrap_or(profile.port());
        IiopProfile::new(version, host, port, key, &components).map_err(|e| cannot_hold(&e))
    }

    /// The components of a profile with the changes: those that stay, then new ones.
    fn components<'p>(&self, profile: &'p IiopProfile) -> Result<Vec<TaggedComponent<'p>>, Misuse> {
        let is_replaced = |tag: u32| {
            self.without.contains(&tag)
                || (tag == TAG_ORB_TYPE && self.orb_type.is_some())
                || (tag == TAG_CODE_SETS && self.code_sets.is_some())
        };
        let mut components: Vec<_> = profile.components().filter(|one| !is_replaced(one.tag)).collect();
        components.extend(self.orb_type.map(TaggedComponent::new_orb_type));
        if let Some(native) = self.code_sets {
            components.push(TaggedComponent::new_code_sets(&CodeSetComponentInfo::with_native(native))?);
        }
        for (host, port) in &self.alternate {
            components.push(TaggedComponent::new_alternate_address(host, *port)?);
        }
        let given = self.component.iter();
        components.extend(given.map(|(tag, data)| TaggedComponent { tag: *tag, data: data.clone().into() }));
        Ok(components)
    }

    fn object_key(&self) -> Result<Option<Vec<u8>>, Failure> {
        match (&self.key, &self.key_hex) {
            (Some(key), _) => {
                let url: Result<Corbaloc, _> = format!("corbaloc::host/{key}").parse();
                let key = url.map_err(|e| Failure::usage(format!("--key {key}: {}", e.kind)))?.object_key;
                Ok(Some(key))
            }
            (None, Some(digits)) => {
                let key = hex(digits).map_err(|why| Failure::usage(format!("--key-hex {digits}: {why}")))?;
                Ok(Some(key))
            }
            (None, None) => Ok(None),
        }
    }
}

fn cannot_hold(e: &Misuse) -> Failure {
    Failure::usage(format!("a reference cannot hold this: {e}"))
}

/// A number in decimal, or in hexadecimal with `0x`.
fn number(text: &str) -> Result<u32, String> {
    let parsed = match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16),
        None => text.parse(),
    };
    parsed.map_err(|_| "write a number, as 33 or 0x54414f00".to_owned())
}

fn component(text: &str) -> Result<(u32, Vec<u8>), String> {
    let (tag, digits) = text.split_once('=').ok_or("write TAG=HEX, as 33=00ff")?;
    Ok((number(tag)?, hex(digits)?))
}

fn hex(digits: &str) -> Result<Vec<u8>, String> {
    let bad = || "write an even number of hexadecimal digits".to_owned();
    if !digits.is_ascii() || !digits.len().is_multiple_of(2) {
        return Err(bad());
    }
    let pair = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).map_err(|_| bad());
    (0..digits.len()).step_by(2).map(pair).collect()
}

fn char_set(text: &str) -> Result<CharSet, String> {
    match text.to_ascii_lowercase().as_str() {
        "utf-8" => Ok(CharSet::Utf8),
        "iso-8859-1" => Ok(CharSet::Latin1),
        _ => Err("write UTF-8 or ISO-8859-1".to_owned()),
    }
}

const DEFAULT_PORT: u16 = 2809;
