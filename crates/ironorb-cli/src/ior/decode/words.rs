//! Names for numbers of the standard and of vendors.

use ironorb::giop::ior::{CodeSetComponent, IRONORB_ORB_TYPE, OMNIORB_ORB_TYPE};

pub(super) fn profile(tag: u32) -> String {
    match tag {
        0 => "IIOP, not well-formed".to_owned(),
        1 => "components only".to_owned(),
        2 => "SCCP".to_owned(),
        0x5441_4F00 => "UIOP, a Unix socket of TAO, not well-formed".to_owned(),
        0x5441_4F02 => "SHMIOP, shared memory of TAO".to_owned(),
        0x5441_4F04 => "DIOP, datagrams of TAO".to_owned(),
        0x5441_4F05 => "COIOP, collocated objects of TAO".to_owned(),
        0x5441_4F0E => "SCIOP, SCTP of TAO".to_owned(),
        tag => format!("profile {tag:#x} of another protocol"),
    }
}

/// The priority in TAO's list of addresses.
pub(super) fn priority_of_endpoint(priority: i16) -> String {
    match priority {
        ..0 => "without a priority".to_owned(),
        priority => format!("for priority {priority}"),
    }
}

pub(super) fn orb_type(number: u32) -> String {
    let name = match number {
        IRONORB_ORB_TYPE => "IronORB",
        OMNIORB_ORB_TYPE => "omniORB",
        0x5441_4F00 => "TAO",
        0x4A41_4300 => "JacORB",
        0x4F4F_4300 => "ORBacus",
        0x5355_4E00 => "Sun's ORB",
        _ => return format!("unknown ({}{number:#010x})", characters(number)),
    };
    format!("{name} ({number:#010x})")
}

/// The characters that a vendor's number stands for, where it has some.
fn characters(number: u32) -> String {
    let shown: String =
        number.to_be_bytes().iter().filter(|byte| **byte != 0).map(|b| char::from(*b)).collect();
    match shown.len() >= 2 && shown.chars().all(|c| c.is_ascii_graphic()) {
        true => format!("\"{shown}\", "),
        false => String::new(),
    }
}

/// Tags of components, by CORBA 3.3 part 2, 7.6.6, and by the vendors that define them.
pub(super) fn component(tag: u32) -> &'static str {
    match tag {
        5 => "complete object key",
        6 => "endpoint id position",
        12 => "location policy",
        13 => "association options",
        14 => "security name",
        15 => "SPKM 1 security",
        16 => "SPKM 2 security",
        17 => "Kerberos 5 security",
        18 => "CSI-ECMA secret security",
        19 => "CSI-ECMA hybrid security",
        21 => "CSI-ECMA public security",
        22 => "generic security",
        23 => "firewall transport",
        24 => "SCCP contact",
        26 => "transaction policy",
        27 => "fault tolerance: group",
        28 => "fault tolerance: primary",
        29 => "fault tolerance: heartbeat",
        30 => "message routers",
        31 => "OTS policy",
        32 => "invocation policy",
        35 => "SECIOP security",
        39 => "group",
        40 => "group over IIOP",
        100 => "DCE: string binding",
        101 => "DCE: binding name",
        102 => "DCE: no pipes",
        103 => "DCE: security",
        0x4154_5405 => "omniORB: OpenCPI transport",
        _ => "unknown",
    }
}

/// Policies, by the numbers of their types.
pub(super) fn policy(policy_type: u32) -> String {
    let name = match policy_type {
        23 => "rebind",
        24 => "synchronization scope",
        25 => "request priority",
        26 => "reply priority",
        27 => "request start time",
        28 => "request end time",
        29 => "reply start time",
        30 => "reply end time",
        31 => "relative request timeout",
        32 => "relative roundtrip timeout",
        33 => "routing",
        34 => "maximum of hops",
        35 => "queue order",
        37 => "bidirectional GIOP",
        40 => "real-time priority model",
        41 => "real-time thread pool",
        42 => "real-time server protocols",
        43 => "real-time client protocols",
        44 => "private connection",
        45 => "real-time priority bands",
        55 => "transaction invocation",
        56 => "transactions",
        57 => "non-transactional target",
        64 => "compression",
        65 => "compressors",
        66 => "least size to compress",
        67 => "least ratio of compression",
        other => return format!("policy {other}"),
    };
    name.to_owned()
}

pub(super) fn code_sets(component: &CodeSetComponent) -> String {
    let native = match component.native_code_set {
        0 => "none".to_owned(),
        set => code_set(set),
    };
    let others: Vec<String> = component.conversion_code_sets.iter().map(|set| code_set(*set)).collect();
    match others.is_empty() {
        true => native,
        false => format!("{native}, converts {}", others.join(", ")),
    }
}

/// Names of the OSF character and code set registry.
fn code_set(set: u32) -> String {
    match set {
        0x0001_0001..=0x0001_000f => format!("ISO 8859-{}", set - 0x0001_0000),
        0x0001_0020 => "ISO 646".to_owned(),
        0x0001_0100..=0x0001_0102 => format!("UCS-2 level {}", set - 0x0001_0100 + 1),
        0x0001_0104..=0x0001_0106 => format!("UCS-4 level {}", set - 0x0001_0104 + 1),
        0x0001_0108 => "UTF-1".to_owned(),
        0x0001_0109 => "UTF-16".to_owned(),
        0x0501_0001 => "UTF-8".to_owned(),
        0x1002_04e4 => "Windows 1252".to_owned(),
        _ => format!("{set:#010x}"),
    }
}

/// An object identifier in DER, dotted, with its name where CSIv2 defines it.
pub(super) fn object_identifier(der: &[u8]) -> String {
    let Some(numbers) = numbers_of(der) else { return hex(der) };
    let dotted: Vec<String> = numbers.iter().map(u64::to_string).collect();
    let dotted = dotted.join(".");
    match dotted.as_str() {
        "2.23.130.1.1.1" => format!("user and password (GSSUP, {dotted})"),
        "1.2.840.113554.1.2.2" => format!("Kerberos 5 ({dotted})"),
        "2.23.130.1.2.1" => format!("GSS-API names with a scope ({dotted})"),
        _ => dotted,
    }
}

fn numbers_of(der: &[u8]) -> Option<Vec<u64>> {
    let [6, length, rest @ ..] = der else { return None };
    if usize::from(*length) != rest.len() || rest.last()? & 0x80 != 0 {
        return None;
    }
    let (mut numbers, mut value) = (Vec::new(), 0u64);
    for byte in rest {
        value = value.checked_mul(128)?.checked_add(u64::from(byte & 0x7F))?;
        if byte & 0x80 == 0 {
            numbers.push(value);
            value = 0;
        }
    }
    // The first two arcs share a number; the second is below 40 unless the first is 2.
    let first = numbers.remove(0);
    let top = (first / 40).min(2);
    numbers.splice(..0, [top, first - 40 * top]);
    Some(numbers)
}

/// The name within an exported name of GSS-API (RFC 2743, 3.2).
pub(super) fn target_name(exported: &[u8]) -> String {
    let name = || {
        let [4, 1, rest @ ..] = exported else { return None };
        let (length, rest) = rest.split_first_chunk::<2>()?;
        let rest = rest.get(usize::from(u16::from_be_bytes(*length))..)?;
        let (length, name) = rest.split_first_chunk::<4>()?;
        let name = name.get(..u32::from_be_bytes(*length) as usize)?;
        std::str::from_utf8(name).ok().map(|name| format!("{name:?}"))
    };
    name().unwrap_or_else(|| hex(exported))
}

pub(super) fn identity_types(bits: u32) -> String {
    let names =
        [(1, "anonymous"), (2, "principal name"), (4, "certificate chain"), (8, "distinguished name")];
    let mut shown: Vec<String> =
        names.iter().filter(|(bit, _)| bits & bit != 0).map(|(_, name)| (*name).to_owned()).collect();
    if bits & !15 != 0 {
        shown.push(format!("{:#x}", bits & !15));
    }
    if shown.is_empty() { "none".to_owned() } else { shown.join(", ") }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_identifiers_are_printed_as_names_and_others_as_numbers() {
        let gssup = [6, 6, 0x67, 0x81, 2, 1, 1, 1];
        assert_eq!(object_identifier(&gssup), "user and password (GSSUP, 2.23.130.1.1.1)");
        assert_eq!(object_identifier(&[6, 1, 0x2A]), "1.2");
        for (odd, shown) in
            [(&[][..], ""), (&[6, 0], "0600"), (&[6, 1, 0x80], "060180"), (&[6, 9, 1], "060901")]
        {
            assert_eq!(object_identifier(odd), shown);
        }
        let name = [&[4, 1, 0, 8][..], &gssup, &[0, 0, 0, 4], b"bank"].concat();
        assert_eq!(target_name(&name), "\"bank\"");
        for end in 0..name.len() {
            assert_eq!(target_name(&name[..end]), hex(&name[..end]));
        }
    }
}
