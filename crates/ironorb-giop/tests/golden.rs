//! Bytes captured from omniORB 4.2: each message is read as the capture describes it, and written again.
//!
//! Each file of `testdata/omniorb` is a conversation. A line `> sender kind fields; remark` describes a
//! message as the capturing script, an independent reader, has read it. The message's bytes follow. Padding
//! in these bytes is not zero: omniORB leaves the earlier content of its buffer there.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::Path;

use ironorb_giop::cdr::WString;
use ironorb_giop::framer::{Framer, FramerLimits};
use ironorb_giop::ior::{CodeSetComponent, CodeSetComponentInfo, TAG_CODE_SETS, TAG_ORB_TYPE};
use ironorb_giop::message::{
    HEADER_BYTES, LocateStatus, Message, MessageHeader, MessageStart, MessageType, ReplyStatus,
    RequestTarget, Response,
};
use ironorb_giop::minor::MinorCode;
use ironorb_giop::service_context::{CODE_SETS, EncodedContexts, ServiceContexts, code_sets_context};
use ironorb_giop::{
    ByteOrder, CharSet, CompletionStatus, Encoding, Ior, Malformed, Reader, SystemException,
    SystemExceptionKind, TransmissionCodeSets, Unmarshal, Version, Writer,
};

#[test]
fn every_message_is_read_as_the_capture_describes_it() {
    for conversation in Conversation::all() {
        for group in &conversation.groups {
            if !group.is_whole() {
                let [message] = &frame(&group.stream()).unwrap()[..] else { panic!("{}", group.place()) };
                assert!(parse(message).is_err(), "{}", group.place());
                continue;
            }
            let [message] = &frame(&group.stream()).unwrap()[..] else { panic!("{}", group.place()) };
            assert_eq!(describe(message, &group.parts[0]), group.expected(), "{}", group.place());
        }
    }
}

#[test]
fn every_split_gives_the_same_messages() {
    for conversation in Conversation::all() {
        for sender in ["client", "server"] {
            let groups: Vec<_> =
                conversation.groups.iter().filter(|g| g.parts[0].sender == sender && g.is_whole()).collect();
            // The whole stream, one byte at a time.
            let mut framer = Framer::new(FramerLimits::default());
            let mut expected = groups.iter();
            for byte in groups.iter().flat_map(|group| group.stream()) {
                framer.push(&[byte]);
                while let Some(message) = framer.next().unwrap() {
                    let group = expected.next().unwrap();
                    assert_eq!(message.bytes(), joined(group), "{}", group.place());
                    framer.recycle(message.into_buffer());
                }
            }
            assert!(expected.next().is_none() && !framer.is_mid_message());
        }
        // Each message in two pieces. Large messages are split at some positions only.
        for group in conversation.groups.iter().filter(|group| group.is_whole()) {
            let stream = group.stream();
            for split in (0..stream.len()).step_by(1 + stream.len() / 512) {
                let mut framer = Framer::new(FramerLimits::default());
                framer.push(&stream[..split]);
                assert!(framer.next().unwrap().is_none(), "{} split at {split}", group.place());
                assert_eq!(framer.is_mid_message(), split > 0);
                framer.push(&stream[split..]);
                assert_eq!(framer.next().unwrap().unwrap().bytes(), joined(group));
                assert!(framer.next().unwrap().is_none());
            }
        }
    }
}

/// A message that is cut short under a header with the shorter size gives a message or an error, never a
/// panic.
#[test]
fn every_prefix_is_read_or_refused() {
    for conversation in Conversation::all() {
        for group in conversation.groups.iter().filter(|group| group.is_whole()) {
            let whole = joined(group);
            let header_bytes = whole.len() - body_of(&whole).map_or(0, |body| body.len());
            for length in (HEADER_BYTES..whole.len().min(512)).chain([whole.len().max(HEADER_BYTES + 1) - 1])
            {
                let mut cut = whole[..length].to_vec();
                let size = (length - HEADER_BYTES) as u32;
                let little = cut[6] & 1 == 1;
                let size = if little { size.to_le_bytes() } else { size.to_be_bytes() };
                cut[8..HEADER_BYTES].copy_from_slice(&size);
                let [message] = &frame(&cut).unwrap()[..] else { panic!() };
                let parsed = parse(message);
                if length + 8 <= header_bytes {
                    assert!(parsed.is_err(), "{} cut at {length}", group.place());
                }
            }
        }
    }
}

#[test]
fn rewritten_messages_equal_the_captured_ones() {
    let mut written = 0;
    for conversation in Conversation::all() {
        for group in conversation.groups.iter().filter(|group| group.is_whole()) {
            let [message] = &frame(&group.stream()).unwrap()[..] else { panic!("{}", group.place()) };
            let Some(again) = rewrite(message) else { continue };
            // The length, the fields and the body are equal. Only padding may differ.
            let [reread] = &frame(&again).unwrap()[..] else { panic!("{}", group.place()) };
            assert_eq!(again.len(), message.bytes().len(), "{}", group.place());
            assert_eq!(describe(reread, &group.parts[0]), group.expected(), "{}", group.place());
            assert_eq!(body_of(&again), body_of(message.bytes()), "{}", group.place());
            written += 1;
        }
    }
    assert!(written > 300, "only {written}");
}

/// Checks the values of the arguments and results of each call.
#[test]
fn bodies_have_the_values_that_the_calls_passed() {
    let mut seen = HashMap::new();
    for conversation in Conversation::all() {
        let mut requests = HashMap::new();
        let mut sets = TransmissionCodeSets::UNNEGOTIATED;
        for group in conversation.groups.iter().filter(|group| group.is_whole()) {
            let [message] = &frame(&group.stream()).unwrap()[..] else { panic!("{}", group.place()) };
            match message.header().kind {
                MessageType::Request => {
                    let request = message.parse_request().unwrap();
                    let announced = request
                        .contexts
                        .code_sets()
                        .map(|announced| announced.unwrap().transmission().unwrap());
                    sets = announced.unwrap_or(sets);
                    let operation = String::from_utf8(request.operation.to_vec()).unwrap();
                    *seen.entry(operation.clone()).or_insert(0) += 1;
                    let arguments = Bytes::of(message, sets);
                    if request.response == Response::None {
                        check_oneway(&operation, &arguments);
                    } else {
                        requests.insert(request.id, (operation, arguments));
                    }
                }
                MessageType::Reply => {
                    let reply = message.parse_reply().unwrap();
                    let (operation, arguments) = requests.remove(&reply.id).unwrap();
                    check_call(&operation, &arguments, reply.status, &Bytes::of(message, sets), group);
                }
                _ => {}
            }
        }
        assert!(requests.is_empty());
    }
    for operation in CHECKED {
        assert!(seen.remove(*operation).is_some(), "{operation} is not in the data");
    }
}

#[test]
fn references_in_replies_are_read_and_written() {
    let mut forwards = 0;
    for conversation in Conversation::all() {
        for group in conversation.groups.iter().filter(|group| group.is_whole()) {
            let [message] = &frame(&group.stream()).unwrap()[..] else { panic!("{}", group.place()) };
            let body = match message.header().kind {
                MessageType::Reply => {
                    let reply = message.parse_reply().unwrap();
                    if reply.status == ReplyStatus::LocationForward { reply.body } else { continue }
                }
                MessageType::LocateReply => {
                    let reply = message.parse_locate_reply().unwrap();
                    if reply.status == LocateStatus::ObjectForward { reply.body } else { continue }
                }
                _ => continue,
            };
            forwards += 1;
            let ior = Bytes::of(message, TransmissionCodeSets::UNNEGOTIATED).one::<Ior>();
            assert!(ior.type_id.starts_with("IDL:ironorb.example/interop/"), "{}", ior.type_id);
            assert_eq!(ior.iiop_profiles().count(), 1);
            let mut again = vec![0; body.reader().position()];
            Writer::continuing(&mut again, 0, body.reader().encoding()).put(&ior).unwrap();
            assert_eq!(again.len(), message.bytes().len());
            assert_eq!(ior.to_string().parse::<Ior>().as_ref(), Ok(&ior));
        }
    }
    assert!(forwards >= 3, "only {forwards}");
}

/// Each reference of `iors.txt` is read as omniORB's `catior` shows it.
#[test]
fn stringified_references_are_read_as_catior_shows_them() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/omniorb/iors.txt");
    let (mut expected, mut checked) = (String::new(), 0);
    for line in std::fs::read_to_string(file).unwrap().lines() {
        if let Some(said) = line.strip_prefix("# | ") {
            writeln!(expected, "{said}").unwrap();
        } else if line.starts_with("IOR:") {
            let ior: Ior = line.parse().unwrap();
            assert_eq!(catior(&ior), expected);
            if ByteOrder::NATIVE == ByteOrder::Little {
                assert_eq!(ior.to_string(), line);
            }
            for cut in 5..line.len() {
                assert!(line[..cut].parse::<Ior>().is_err(), "cut at {cut}");
            }
            expected.clear();
            checked += 1;
        }
    }
    assert!(checked >= 7, "only {checked}");
}

/// The output of `catior` for the profiles and components in the data.
fn catior(ior: &Ior) -> String {
    const TAG_OMNIORB_UNIX_TRANS: u32 = 0x4154_5402;
    let mut text = format!("Type ID: \"{}\"\nProfiles:\n", ior.type_id);
    for (i, profile) in ior.iiop_profiles().enumerate() {
        let key: String = profile.object_key().iter().map(|&octet| key_octet(octet)).collect();
        let (minor, host, port) = (profile.version().minor(), profile.host(), profile.port());
        text += &format!("{}. IIOP 1.{minor} {host} {port} \"{key}\"\n", i + 1);
        for component in profile.components() {
            if let Some(orb_type) = component.orb_type() {
                assert_eq!(orb_type, Ok(0x4154_5400));
                text += "      TAG_ORB_TYPE omniORB (ATT\\x00)\n";
            } else if let Some(sets) = component.code_sets() {
                let sets = sets.unwrap();
                let (narrow, wide) = (sets.for_char_data, sets.for_wchar_data);
                text += &format!(
                    "      TAG_CODE_SETS char native code set:       {}\n\
                     \x20                   char conversion code sets:  {}\n\
                     \x20                   wchar native code set:      {}\n\
                     \x20                   wchar conversion code sets: {}\n",
                    set_names(&[narrow.native_code_set]),
                    set_names(&narrow.conversion_code_sets),
                    set_names(&[wide.native_code_set]),
                    set_names(&wide.conversion_code_sets),
                );
            } else if let Some(address) = component.alternate_address() {
                let address = address.unwrap();
                text += &format!("      TAG_ALTERNATE_IIOP_ADDRESS {} {}\n", address.host, address.port);
            } else {
                assert_eq!(component.tag, TAG_OMNIORB_UNIX_TRANS);
                let mut r = Reader::encapsulated(&component.data, Encoding::NATIVE).unwrap();
                let (host, path) = (r.get::<String>().unwrap(), r.get::<String>().unwrap());
                text += &format!("      TAG_OMNIORB_UNIX_TRANS {host} {path}\n");
            }
        }
    }
    text
}

fn key_octet(octet: u8) -> String {
    match octet {
        b' '..=b'~' => char::from(octet).to_string(),
        _ => format!("\\x{octet:02x}"),
    }
}

fn set_names(ids: &[u32]) -> String {
    let name = |&id: &u32| match id {
        0x0001_0001 => "ISO-8859-1",
        0x0501_0001 => "UTF-8",
        0x0001_0109 => "UTF-16",
        other => panic!("{other:#x} is not in the data"),
    };
    ids.iter().map(name).collect::<Vec<_>>().join(", ")
}

/// The output of omniORB's `genior IDL:Test:1.0 host.example 2810 abc` on a little-endian machine.
#[test]
fn a_stringified_reference_of_genior() {
    let text = "IOR:010000000d00000049444c3a546573743a312e3000000000010000000000000058000000010102000d000000\
                686f73742e6578616d706c650000fa0a0300000061626300020000000000000008000000010000000054544101000000\
                1c00000001000000010001000100000001000105090101000100000009010100";
    let ior: Ior = text.parse().unwrap();
    assert_eq!(ior.type_id, "IDL:Test:1.0");
    let profile = ior.iiop_profiles().next().unwrap();
    assert_eq!(profile.version(), Version::V1_2);
    assert_eq!(profile.addresses().map(|a| a.to_string()).collect::<Vec<_>>(), ["host.example:2810"]);
    assert_eq!(profile.object_key(), b"abc");
    assert_eq!(profile.components().map(|c| c.tag).collect::<Vec<_>>(), [TAG_ORB_TYPE, TAG_CODE_SETS]);
    assert_eq!(profile.orb_type(), Some(0x4154_5400));
    let offer = profile.code_sets().unwrap();
    let sets = |native, conversions: &[u32]| CodeSetComponent {
        native_code_set: native,
        conversion_code_sets: conversions.to_vec(),
    };
    assert_eq!(offer.for_char_data, sets(0x0001_0001, &[0x0501_0001]));
    assert_eq!(offer.for_wchar_data, sets(0x0001_0109, &[0x0001_0109]));
    let chosen = TransmissionCodeSets { char_set: CharSet::Latin1, ..TransmissionCodeSets::NATIVE };
    assert_eq!(profile.transmission_code_sets(&CodeSetComponentInfo::ironorb()), Ok(Some(chosen)));
    if ByteOrder::NATIVE == ByteOrder::Little {
        assert_eq!(ior.to_string(), text);
    }
}

/// One file of the test data.
struct Conversation {
    groups: Vec<Group>,
}

/// A message with its fragments, in the order in which they were sent.
struct Group {
    parts: Vec<Part>,
}

struct Part {
    file: String,
    line: usize,
    sender: String,
    /// The fields as the capturing script read them, up to the remark.
    fields: String,
    remark: String,
    bytes: Vec<u8>,
}

impl Conversation {
    fn all() -> Vec<Conversation> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/omniorb");
        let mut files: Vec<_> =
            std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.retain(|file| file.extension().is_some_and(|extension| extension == "hex"));
        files.sort();
        let conversations: Vec<_> = files.iter().map(|file| Conversation::read(file)).collect();
        let with_messages: Vec<_> = conversations.into_iter().filter(|c| !c.groups.is_empty()).collect();
        assert!(with_messages.len() >= 13, "the test data is not complete");
        with_messages
    }

    fn read(file: &Path) -> Conversation {
        let text = std::fs::read_to_string(file).unwrap();
        let mut parts: Vec<Part> = Vec::new();
        for (line, content) in text.lines().enumerate() {
            if let Some(head) = content.strip_prefix("> ") {
                let (sender, rest) = head.split_once(' ').unwrap();
                let (fields, remark) = rest.split_once("; ").unwrap_or((rest, ""));
                parts.push(Part {
                    file: file.file_name().unwrap().to_str().unwrap().to_owned(),
                    line: line + 1,
                    sender: sender.to_owned(),
                    fields: fields.to_owned(),
                    remark: remark.to_owned(),
                    bytes: Vec::new(),
                });
            } else if let (Some(part), false) = (parts.last_mut(), content.starts_with('#')) {
                part.bytes.extend(unhex(content));
            }
        }
        let mut groups: Vec<Group> = Vec::new();
        for part in parts {
            let is_fragment = part.fields.starts_with("Fragment");
            let begun = groups.iter_mut().rev().find(|group| {
                let last = group.parts.last().unwrap();
                last.sender == part.sender
                    && last.has_more()
                    && (last.id() == part.id() || part.id().is_none())
            });
            match begun {
                Some(group) if is_fragment => group.parts.push(part),
                _ => groups.push(Group { parts: vec![part] }),
            }
        }
        Conversation { groups }
    }
}

impl Part {
    fn has_more(&self) -> bool {
        self.fields.ends_with(" more-fragments")
    }

    fn id(&self) -> Option<&str> {
        self.fields.split(' ').find_map(|field| field.strip_prefix("id="))
    }
}

impl Group {
    fn stream(&self) -> Vec<u8> {
        self.parts.iter().flat_map(|part| part.bytes.iter().copied()).collect()
    }

    /// False for a message that the capturing script cut short to provoke an error.
    fn is_whole(&self) -> bool {
        !self.parts[0].fields.ends_with("(cut short)")
    }

    fn expected(&self) -> String {
        self.parts[0].fields.trim_end_matches(" more-fragments").to_owned()
    }

    fn place(&self) -> String {
        let part = &self.parts[0];
        format!("{}:{}: {} {}; {}", part.file, part.line, part.sender, part.fields, part.remark)
    }
}

fn unhex(text: &str) -> Vec<u8> {
    assert!(text.len().is_multiple_of(2));
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}

fn frame(stream: &[u8]) -> Result<Vec<Message>, Malformed> {
    let mut framer = Framer::new(FramerLimits::default());
    framer.push(stream);
    let mut messages = Vec::new();
    while let Some(message) = framer.next()? {
        messages.push(message);
    }
    Ok(messages)
}

/// The fragments joined by hand. The size covers the bytes of the first message and, from the others, the
/// bytes behind the header (and in GIOP 1.2 behind the request id).
fn joined(group: &Group) -> Vec<u8> {
    let mut whole = group.parts[0].bytes.clone();
    if group.parts.len() > 1 {
        let data_at = if whole[5] == 2 { HEADER_BYTES + 4 } else { HEADER_BYTES };
        group.parts[1..].iter().for_each(|part| whole.extend_from_slice(&part.bytes[data_at..]));
        whole[6] &= !2;
        let size = (whole.len() - HEADER_BYTES) as u32;
        whole[8..HEADER_BYTES].copy_from_slice(&size.to_le_bytes());
    }
    whole
}

/// Parses the header completely.
fn parse(message: &Message) -> Result<(), Malformed> {
    match message.header().kind {
        MessageType::Request => message.parse_request().map(drop),
        MessageType::Reply => message.parse_reply().map(drop),
        MessageType::LocateRequest => message.parse_locate_request().map(drop),
        MessageType::LocateReply => message.parse_locate_reply().map(drop),
        MessageType::CancelRequest => message.request_id().map(drop),
        _ => Ok(()),
    }
}

/// Describes the message in the format of the capturing script.
fn describe(message: &Message, part: &Part) -> String {
    let header = message.header();
    let order = if header.order == ByteOrder::Little { "little" } else { "big" };
    let mut text = format!("{:?} 1.{} {order}", header.kind, header.version.minor());
    match header.kind {
        MessageType::Request => {
            let request = message.parse_request().unwrap();
            let response = match request.response {
                Response::None => 0,
                Response::SyncWithServer => 1,
                Response::SyncWithTarget if header.version < Version::V1_2 => 1, // a boolean
                Response::SyncWithTarget => 3,
            };
            let operation = std::str::from_utf8(request.operation).unwrap();
            let key = key_text(request.object_key, part);
            let contexts = contexts_text(request.contexts);
            write!(
                text,
                " id={} response={response} operation={operation} key={key} contexts={contexts}",
                request.id.0
            )
        }
        MessageType::Reply => {
            let reply = message.parse_reply().unwrap();
            let status = match reply.status {
                ReplyStatus::NoException => "NO_EXCEPTION",
                ReplyStatus::UserException => "USER_EXCEPTION",
                ReplyStatus::SystemException => "SYSTEM_EXCEPTION",
                ReplyStatus::LocationForward => "LOCATION_FORWARD",
                ReplyStatus::LocationForwardPerm => "LOCATION_FORWARD_PERM",
                ReplyStatus::NeedsAddressingMode => "NEEDS_ADDRESSING_MODE",
            };
            write!(text, " id={} {status} contexts={}", reply.id.0, contexts_text(reply.contexts))
        }
        MessageType::LocateRequest => {
            let locate = message.parse_locate_request().unwrap();
            write!(text, " id={} key={}", locate.id.0, key_text(locate.object_key, part))
        }
        MessageType::LocateReply => {
            let locate = message.parse_locate_reply().unwrap();
            let status = match locate.status {
                LocateStatus::UnknownObject => "UNKNOWN_OBJECT",
                LocateStatus::ObjectHere => "OBJECT_HERE",
                LocateStatus::ObjectForward => "OBJECT_FORWARD",
                LocateStatus::ObjectForwardPerm => "OBJECT_FORWARD_PERM",
                LocateStatus::SystemException => "LOC_SYSTEM_EXCEPTION",
                LocateStatus::NeedsAddressingMode => "LOC_NEEDS_ADDRESSING_MODE",
            };
            write!(text, " id={} {status}", locate.id.0)
        }
        _ => Ok(()),
    }
    .unwrap();
    text
}

/// The captured line truncates long keys, and so does this function.
fn key_text(key: &[u8], part: &Part) -> String {
    let text: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
    let captured = part.fields.split(' ').find_map(|field| field.strip_prefix("key=")?.strip_suffix("..."));
    match captured {
        Some(start) if text.starts_with(start) => format!("{start}..."),
        _ => text,
    }
}

fn contexts_text(contexts: ServiceContexts<'_>) -> String {
    let name = |id| if id == CODE_SETS { "CodeSets".to_owned() } else { format!("{id:#x}") };
    match contexts.len() {
        0 => "none".to_owned(),
        _ => contexts.map(|context| name(context.id)).collect::<Vec<_>>().join(","),
    }
}

/// The body behind the header of a request or reply.
fn body_of(bytes: &[u8]) -> Option<&[u8]> {
    let messages = frame(bytes).unwrap();
    let message = messages.first()?;
    let at = match message.header().kind {
        MessageType::Request => message.parse_request().unwrap().body.reader().position(),
        MessageType::Reply => message.parse_reply().unwrap().body.reader().position(),
        MessageType::LocateReply => message.parse_locate_reply().unwrap().body.reader().position(),
        _ => return None,
    };
    Some(&bytes[at..])
}

/// Writes the message again with our writer, and copies the bytes of the body. `None` for a message that
/// cannot be compared: its byte order differs from ours, or no function of ours writes it.
fn rewrite(message: &Message) -> Option<Vec<u8>> {
    let MessageHeader { version, order, kind, .. } = message.header();
    if order != ByteOrder::NATIVE {
        return None;
    }
    let encoding = Encoding { version, ..Encoding::NATIVE };
    let mut buf = Vec::new();
    let start = match kind {
        MessageType::Request => {
            let request = message.parse_request().unwrap();
            let operation = std::str::from_utf8(request.operation).unwrap();
            let sets = request.contexts.code_sets().map(Result::unwrap);
            let encoded = sets.map(code_sets_context);
            let contexts =
                encoded.as_ref().map_or(EncodedContexts::EMPTY, |bytes| EncodedContexts::new(1, bytes));
            let sets = sets.and_then(|sets| sets.transmission());
            let target = RequestTarget::new(version, sets, request.object_key);
            MessageStart::request(
                &mut buf,
                &target,
                sets.unwrap_or(TransmissionCodeSets::UNNEGOTIATED),
                request.id,
                request.response,
                operation.into(),
                &[contexts],
            )
            .unwrap()
        }
        MessageType::Reply => {
            let reply = message.parse_reply().unwrap();
            MessageStart::reply(&mut buf, encoding, reply.id, reply.status)
        }
        MessageType::LocateRequest => {
            let locate = message.parse_locate_request().unwrap();
            let target = RequestTarget::new(version, None, locate.object_key);
            MessageStart::locate_request(&mut buf, &target, locate.id).unwrap()
        }
        MessageType::LocateReply => {
            let locate = message.parse_locate_reply().unwrap();
            MessageStart::locate_reply(&mut buf, encoding, locate.id, locate.status)
        }
        _ => return None,
    };
    start.body(&mut buf).write_bytes(body_of(message.bytes()).unwrap_or_default());
    start.finish(&mut buf, usize::MAX).unwrap();
    Some(buf)
}

/// The values of a message, stored with it.
struct Bytes {
    message: Vec<u8>,
    at: usize,
    encoding: Encoding,
}

impl Bytes {
    fn of(message: &Message, sets: TransmissionCodeSets) -> Bytes {
        let bytes = message.bytes();
        let MessageHeader { version, order, .. } = message.header();
        let at = bytes.len() - body_of(bytes).unwrap().len();
        let encoding = Encoding { order, ..Encoding::native(version, sets) };
        Bytes { message: bytes.to_vec(), at, encoding }
    }

    /// Reads all values with `read`.
    fn all<'a, T>(&'a self, read: impl FnOnce(&mut Reader<'a>) -> Result<T, Malformed>) -> T {
        let mut r = Reader::at(&self.message, self.at, self.encoding);
        let value = read(&mut r).unwrap();
        assert_eq!(r.remaining(), 0);
        value
    }

    fn one<T: Unmarshal>(&self) -> T {
        self.all(|r| r.get())
    }

    fn two<T: Unmarshal, U: Unmarshal>(&self) -> (T, U) {
        self.all(|r| Ok((r.get()?, r.get()?)))
    }

    fn three<T: Unmarshal, U: Unmarshal, V: Unmarshal>(&self) -> (T, U, V) {
        self.all(|r| Ok((r.get()?, r.get()?, r.get()?)))
    }
}

/// The operations whose bodies are checked one by one.
const CHECKED: &[&str] = &[
    "nothing",
    "sum",
    "mix",
    "outs",
    "default",
    "type",
    "echo_string",
    "echo_bin",
    "echo_strings",
    "echo_by_short",
    "echo_wchar",
    "echo_node",
    "_get_low",
    "_set_low",
    "_get_answer",
    "raise_empty",
    "raise_one_of",
    "raise_system",
    "raise_wide",
    "no_such_operation",
    "notify",
    "create_node",
    "_is_a",
    "bind",
    "resolve",
];

fn check_oneway(operation: &str, arguments: &Bytes) {
    match operation {
        "notify" => assert!((1..=4).contains(&arguments.one::<i32>())),
        other => panic!("{other} is not a oneway of the contract"),
    }
}

/// Checks the values that each call passed and returned. The remark in the data describes them in words.
fn check_call(operation: &str, arguments: &Bytes, status: ReplyStatus, results: &Bytes, group: &Group) {
    let place = group.place();
    let remark = group.parts[0].remark.as_str();
    match (operation, status) {
        ("nothing", ReplyStatus::NoException) => {
            arguments.all(|_| Ok(()));
            results.all(|_| Ok(()));
        }
        ("sum", _) => {
            let (a, b, c, d) = arguments.all(|r| {
                let first: (u8, i16, u8, i32) = (r.get()?, r.get()?, r.get()?, r.get()?);
                let last: (u8, i64, u8, f64) = (r.get()?, r.get()?, r.get()?, r.get()?);
                assert_eq!(last, (5, 1_000_000, 7, 8.0));
                Ok(first)
            });
            assert_eq!((a, b, c, d), (1, -2, 3, -400_000));
            assert_eq!(results.one::<i32>(), 600_022);
        }
        ("mix", _) => {
            let (a, n, b, c) =
                arguments.all(|r| Ok((r.get::<String>()?, r.get::<i64>()?, r.get::<u8>()?, r.get::<f64>()?)));
            assert_eq!((a.as_str(), n, b, c), ("left", 1 << 40, 200, 0.5));
            let (result, small, n, joined) =
                results.all(|r| Ok((r.get::<f64>()?, r.get::<u8>()?, r.get::<i64>()?, r.get::<String>()?)));
            assert_eq!((result, small, n, joined.as_str()), (200.5, 200, -(1 << 40), "left/200"));
        }
        ("outs", _) => {
            let (a, b, c) = results.all(|r| {
                let first = (r.get::<u8>()?, r.get::<f64>()?, r.get::<String>()?);
                assert_eq!((r.get::<i16>()?, r.get::<Vec<i32>>()?), (-4, vec![5, -6]));
                Ok(first)
            });
            assert_eq!((a, b, c.as_str()), (1, 2.5, "three"));
        }
        ("default", _) => {
            assert_eq!(arguments.two::<i32, i32>(), (10, 3));
            assert_eq!(results.two::<i32, i32>(), (13, 7));
        }
        ("type", _) => {
            assert_eq!(arguments.two::<String, String>(), ("fn".into(), "ref".into()));
            assert_eq!(results.one::<String>(), "fn&ref");
        }
        ("echo_string", _) => {
            let x = check_echo::<String>(arguments, results, &place);
            assert!(["€", "日本語 😀", "mixed Ωmega"].contains(&x.as_str()), "{x}");
            assert_eq!(arguments.two::<String, String>().1, "α");
        }
        ("echo_bin", _) => {
            let x = check_echo::<BinStruct>(arguments, results, &place);
            let known = [
                BinStruct { s: 0, c: 0, l: 0, o: 0, d: 0.0 },
                BinStruct { s: -32768, c: b'!', l: -2_147_483_648, o: 255, d: -1e308 },
                BinStruct::numbered(77),
            ];
            assert!(known.contains(&x), "{place}: {x:?}");
        }
        ("echo_strings", _) => {
            let x = check_echo::<Vec<String>>(arguments, results, &place);
            let long = "x".repeat(9000);
            let known: [&[&str]; 3] = [&[], &[""], &["one", "", "three", &long, "five"]];
            assert!(known.iter().any(|known| x == *known), "{place}");
        }
        ("echo_by_short", _) => {
            let x = check_echo::<ByShort>(arguments, results, &place);
            let known = [ByShort::Small(200), ByShort::Text("seven".into()), ByShort::Other(-32767)];
            assert!(known.contains(&x), "{place}: {x:?}");
        }
        ("echo_wchar", _) => {
            let x = check_echo::<char>(arguments, results, &place);
            assert!(['\0', 'A', 'é', '€', '世', '\u{FFFD}'].contains(&x), "{x}");
            assert_eq!(arguments.two::<char, char>().1, 'Ω');
        }
        ("echo_node", _) => {
            let x = check_echo::<Ior>(arguments, results, &place);
            if !x.is_nil() {
                check_node(&x);
            }
        }
        ("_set_low", _) => assert_eq!(arguments.one::<i16>(), -1),
        ("_get_low", _) => assert_eq!(results.one::<i16>(), -1),
        ("_get_answer", _) => assert_eq!(results.one::<u64>(), 42),
        ("raise_empty", ReplyStatus::UserException) => assert_eq!(results.one::<String>(), EMPTY),
        ("raise_one_of", status) => match (arguments.one::<i32>(), status) {
            (1, ReplyStatus::UserException) => assert_eq!(results.one::<String>(), EMPTY),
            (2, ReplyStatus::UserException) => assert_eq!(
                results.three::<String, String, i32>(),
                ("IDL:ironorb.example/interop/Refused:1.0".into(), "asked".into(), 2)
            ),
            (3, ReplyStatus::UserException) => {
                let (id, holder) = results.two::<String, Ior>();
                assert_eq!(id, "IDL:ironorb.example/interop/Occupied:1.0");
                assert!(holder.is_nil());
            }
            (which, ReplyStatus::NoException) => assert_eq!(results.one::<i32>(), 2 * which + 1),
            other => panic!("{place}: {other:?}"),
        },
        ("raise_system", ReplyStatus::SystemException) => {
            let (what, minor, completed) = arguments.three::<u32, u32, u32>();
            assert_eq!(what, 0, "only BAD_PARAM is in the data");
            let completed =
                [CompletionStatus::Yes, CompletionStatus::No, CompletionStatus::Maybe][completed as usize];
            let expected = SystemException::new(SystemExceptionKind::BadParam, MinorCode(minor), completed);
            assert_eq!(results.one::<SystemException>(), expected);
        }
        ("no_such_operation", ReplyStatus::SystemException) => {
            let raised = results.one::<SystemException>();
            // omniORB's own minor code, with AT&T's vendor id.
            let minor = MinorCode(0x4154_0026);
            let expected =
                SystemException::new(SystemExceptionKind::BadOperation, minor, CompletionStatus::No);
            assert_eq!(raised.kind, expected.kind);
            assert_eq!(raised.minor.0 >> 16, minor.0 >> 16, "{:#x}", raised.minor.0);
        }
        ("raise_wide", ReplyStatus::UserException) => {
            let why = arguments.one::<WString>();
            assert_eq!(why, "why 世");
            assert_eq!(
                results.two::<String, WString>(),
                ("IDL:ironorb.example/interop/Wide/WideError:1.0".into(), why)
            );
        }
        ("create_node", ReplyStatus::NoException) => check_node(&results.one::<Ior>()),
        (_, ReplyStatus::LocationForward) => {} // see references_in_replies_are_read_and_written
        ("_is_a", ReplyStatus::NoException) => {
            let known = ["IDL:ironorb.example/interop/Suite:1.0", "IDL:omg.org/CosNaming/NamingContext:1.0"];
            assert!(known.contains(&arguments.one::<String>().as_str()));
            assert!(results.one::<bool>());
        }
        ("bind", ReplyStatus::NoException) => arguments.all(|r| {
            assert_eq!(read_name(r)?, ["bank.", "main."]);
            let ior = r.get::<Ior>()?;
            let profile = ior.iiop_profiles().next().unwrap();
            assert_eq!(
                (profile.host(), profile.port(), profile.object_key()),
                ("127.0.0.1", 2810, &b"suite"[..])
            );
            Ok(())
        }),
        ("resolve", ReplyStatus::NoException) => {
            let (name, ior) = (arguments.all(read_name), results.one::<Ior>());
            if name == ["bank."] {
                assert_eq!(ior.type_id, "IDL:omg.org/CosNaming/NamingContextExt:1.0");
            } else {
                assert_eq!(name, ["bank.", "main."]);
                assert_eq!(ior.iiop_profiles().next().unwrap().object_key(), b"suite");
            }
        }
        ("resolve", ReplyStatus::UserException) => {
            assert_eq!(arguments.all(read_name), ["bank.", "none."]);
            let (id, why, rest) = results.all(|r| Ok((r.get::<String>()?, r.get::<u32>()?, read_name(r)?)));
            assert_eq!(id, "IDL:omg.org/CosNaming/NamingContext/NotFound:1.0");
            assert_eq!((why, rest), (0, vec!["none.".to_owned()]));
        }
        (operation, _) if CHECKED.contains(&operation) => panic!("{place}: {operation}, {remark}"),
        _ => {}
    }
}

/// A CosNaming::Name, each component as `id.kind`.
fn read_name(r: &mut Reader<'_>) -> Result<Vec<String>, Malformed> {
    (0..r.read_length(8)?).map(|_| Ok(r.get::<String>()? + "." + &r.get::<String>()?)).collect()
}

/// `T echo(in T x, inout T y, out T z)`: the result is x, y returns as x, and z is the original y. Returns x.
fn check_echo<T: Unmarshal + PartialEq + std::fmt::Debug>(
    arguments: &Bytes,
    results: &Bytes,
    place: &str,
) -> T {
    let (x, y) = arguments.two::<T, T>();
    let (result, y_after, z) = results.three::<T, T, T>();
    assert_eq!((&result, &y_after, &z), (&x, &x, &y), "{place}");
    x
}

fn check_node(ior: &Ior) {
    assert_eq!(ior.type_id, "IDL:ironorb.example/interop/Node:1.0");
    let profile = ior.iiop_profiles().next().unwrap();
    assert_eq!((profile.version(), profile.host(), profile.port()), (Version::V1_2, "127.0.0.1", 28100));
    assert_eq!(profile.orb_type(), Some(0x4154_5400));
    assert!(profile.code_sets().is_some());
}

const EMPTY: &str = "IDL:ironorb.example/interop/Empty:1.0";

#[derive(Debug, PartialEq)]
struct BinStruct {
    s: i16,
    c: u8,
    l: i32,
    o: u8,
    d: f64,
}

impl BinStruct {
    fn numbered(i: i32) -> BinStruct {
        BinStruct { s: i as i16, c: i as u8, l: i * 7919, o: i as u8, d: f64::from(i) / 3.0 }
    }
}

impl Unmarshal for BinStruct {
    const BYTES_MIN: usize = 17;
    fn unmarshal(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(BinStruct { s: r.get()?, c: r.get()?, l: r.get()?, o: r.get()?, d: r.get()? })
    }
}

#[derive(Debug, PartialEq)]
enum ByShort {
    Small(u8),
    Text(String),
    Other(i16),
}

impl Unmarshal for ByShort {
    const BYTES_MIN: usize = 2;
    fn unmarshal(r: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(match r.get::<i16>()? {
            -1 => ByShort::Small(r.get()?),
            7 => ByShort::Text(r.get()?),
            other => ByShort::Other(other),
        })
    }
}
