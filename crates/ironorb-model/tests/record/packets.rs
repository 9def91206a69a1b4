//! Captures of messages, as Wireshark's programs see them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use ironorb_giop::connection::{
    ClientConnection, ConnectionConfig, Incoming, RequestOptions, ServerConnection,
};
use ironorb_giop::framer::Framer;
use ironorb_giop::message::{LocateStatus, OperationName, ReplyStatus, RequestTarget, Response};
use ironorb_giop::minor::MinorCode;
use ironorb_giop::service_context::{EncodedContexts, ServiceContext, ServiceContextList};
use ironorb_giop::{
    CompletionStatus, Encoding, SystemException, SystemExceptionKind, TransmissionCodeSets, Version,
};
use ironorb_model::Time;
use ironorb_model::record::pcapng::{About, Capture, End, SEGMENT_OCTETS};

const ABOUT: About<'static> = About { level: "L1", name: "two banks", seed: 7, commit: "0123abcd" };

/// Runs a program of the Debian package `tshark` on a capture.
fn wireshark(program: &str, arguments: &[&str], file: &Path) -> String {
    let output = Command::new(program).args(arguments).arg(file).output();
    let output = output.unwrap_or_else(|e| panic!("{program}, of the Debian package tshark: {e}"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Messages that begin in a packet, or end there; its payload; whether checksums are right; what is wrong.
const FIELDS: [&str; 6] = [
    "giop.type",
    "tcp.len",
    "ip.checksum.status",
    "tcp.checksum.status",
    "_ws.malformed",
    "tcp.analysis.flags",
];

/// A client and a server, and the messages that they have sent: by type, how many.
struct Pair {
    client: ClientConnection<()>,
    server: ServerConnection,
    framer: Framer,
    ends: (End, End),
    sent: BTreeMap<u8, usize>,
    octets: usize,
}

impl Pair {
    fn new(client: End, server: End) -> Pair {
        let config = ConnectionConfig { cancel_requests: true, ..ConnectionConfig::default() };
        let (server_connection, framer) = ServerConnection::new(config);
        let client_connection = ClientConnection::new(config);
        let (ends, sent, octets) = ((client, server), BTreeMap::new(), 0);
        Pair { client: client_connection, server: server_connection, framer, ends, sent, octets }
    }

    fn count(&mut self, bytes: &[u8]) {
        self.octets += bytes.len();
        let mut at = 0;
        while at < bytes.len() {
            assert_eq!(&bytes[at..at + 4], b"GIOP");
            *self.sent.entry(bytes[at + 7]).or_default() += 1;
            let length = bytes[at + 8..].first_chunk().copied().unwrap();
            at += 12
                + if bytes[at + 6] & 1 == 1 { u32::from_le_bytes(length) } else { u32::from_be_bytes(length) }
                    as usize;
        }
    }

    /// Sends what the client has written, in segments of this many octets, has the server answer, and sends the answers.
    fn exchange(&mut self, capture: &mut Capture<Vec<u8>>, at_us: u64, segment: usize, answer: &[u8]) {
        let at = |us: u64| Time::from_ns((at_us + us) * 1_000);
        let (client, server) = self.ends;
        let bytes = self.client.transmit().take_all();
        self.count(&bytes);
        for (number, segment) in bytes.chunks(segment).enumerate() {
            capture.send(at(number as u64), client, server, segment).unwrap();
        }
        self.framer.push(&bytes);
        while let Some(incoming) = ServerConnection::poll_incoming(&mut self.framer).unwrap() {
            match incoming {
                Incoming::Request(message) => {
                    let request = message.parse_request().unwrap();
                    let id = request.id;
                    match request.operation {
                        _ if request.response == Response::None => {}
                        b"fail" => {
                            let e = SystemException::new(
                                SystemExceptionKind::Transient,
                                MinorCode(1),
                                CompletionStatus::No,
                            );
                            self.server.raise(Encoding::NATIVE, id, EncodedContexts::EMPTY, &e).unwrap();
                        }
                        _ => {
                            let write = |w: &mut ironorb_giop::Writer<'_>| w.write_octets(answer);
                            self.server.reply(Encoding::NATIVE, id, ReplyStatus::NoException, write).unwrap();
                        }
                    }
                }
                Incoming::LocateRequest(message) => {
                    let id = message.parse_locate_request().unwrap().id;
                    self.server
                        .locate_reply(Encoding::NATIVE, id, LocateStatus::ObjectHere, |_| Ok(()))
                        .unwrap();
                }
                Incoming::CancelRequest(_) | Incoming::CloseConnection => {}
                other => panic!("{other:?}"),
            }
        }
        let bytes = self.server.transmit().take_all();
        self.count(&bytes);
        if !bytes.is_empty() {
            capture.send(at(200_000), server, client, &bytes).unwrap();
        }
    }
}

/// Two clients of one server: small and large messages, several in a segment, some cut into small segments, those of all kinds.
fn banks(segment_octets_max: usize) -> (Vec<u8>, BTreeMap<u8, usize>, usize) {
    let mut capture = Capture::begin(Vec::new(), &ABOUT, segment_octets_max).unwrap();
    for (host, name) in [(0, "teller-0"), (1, "teller-1"), (2, "bank")] {
        capture.host(host, name).unwrap();
    }
    let server = End { host: 2, port: 2809 };
    // The second one has a greater port than the server, and a lower address.
    let mut pairs =
        [40_000, 1_024].map(|port| Pair::new(End { host: u32::from(port < 2_000), port }, server));
    let target = RequestTarget::new(Version::V1_2, Some(TransmissionCodeSets::NATIVE), b"bank/main");
    let mut contexts = ServiceContextList::default();
    contexts.push(ServiceContext { id: 0x494F_5202, data: &[0; 32] }).unwrap();
    let options = RequestOptions { response: Response::SyncWithTarget, contexts: contexts.encoded() };
    let octets: Vec<u8> = (0..100_000_u32).map(|at| (at % 251) as u8).collect();
    let mut at_us = 0;
    for round in 0..8_usize {
        for pair in &mut pairs {
            let octets = &octets[..octets.len() * round * round / 49];
            let operation = OperationName::from("transfer_all");
            pair.client.begin_request(&target, operation, options, |w| w.write_octets(octets)).unwrap();
            if round % 2 == 1 {
                pair.client.begin_oneway(&target, "note", |w| w.put("it")).unwrap();
                pair.client.begin_call(&target, "fail", |_| Ok(())).unwrap();
                pair.client.begin_locate(&target).unwrap();
                let given_up = pair.client.begin_call(&target, "ping", |_| Ok(())).unwrap();
                pair.client.abandon(given_up, Version::V1_2);
            }
            let segment = if round % 3 == 2 { 700 } else { usize::MAX };
            pair.exchange(&mut capture, at_us, segment, octets);
            at_us += 500_000;
        }
    }
    let (mut sent, mut octets) = (BTreeMap::new(), 0);
    for pair in &mut pairs {
        pair.server.close(Version::V1_2);
        let bytes = pair.server.transmit().take_all();
        pair.count(&bytes);
        capture.send(Time::from_ns(at_us * 1_000), pair.ends.1, pair.ends.0, &bytes).unwrap();
        capture.close(Time::from_ns(at_us * 1_000), pair.ends.1, pair.ends.0).unwrap();
        at_us += 1;
        octets += pair.octets;
        for (kind, count) in &pair.sent {
            *sent.entry(*kind).or_default() += count;
        }
    }
    (capture.end().unwrap(), sent, octets)
}

#[test]
fn tshark_finds_every_message_and_none_malformed() {
    let folder = tempfile::tempdir().unwrap();
    for segment_octets_max in [SEGMENT_OCTETS, 65_495] {
        let (capture, sent, total) = banks(segment_octets_max);
        assert_eq!(sent.keys().copied().collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5], "all kinds of messages");
        let file = folder.path().join("banks.pcapng");
        fs::write(&file, &capture).unwrap();
        let mut arguments =
            vec!["-o", "ip.check_checksum:TRUE", "-o", "tcp.check_checksum:TRUE", "-T", "fields"];
        for field in FIELDS {
            arguments.extend(["-e", field]);
        }
        arguments.push("-r");
        let mut kinds: BTreeMap<u8, usize> = BTreeMap::new();
        let mut octets = 0;
        for packet in wireshark("tshark", &arguments, &file).lines() {
            let fields: Vec<&str> = packet.split('\t').collect();
            let [kinds_of_packet, length, ip, tcp, malformed, remarks] = fields[..] else {
                panic!("{packet}")
            };
            assert_eq!([ip, tcp, malformed, remarks], ["1", "1", "", ""], "{segment_octets_max}: {packet}");
            let length: usize = length.parse().unwrap();
            assert!(length <= segment_octets_max);
            octets += length;
            for kind in kinds_of_packet.split(',').filter(|kind| !kind.is_empty()) {
                let kind =
                    kind.strip_prefix("0x").map_or_else(|| kind.parse(), |kind| u8::from_str_radix(kind, 16));
                *kinds.entry(kind.unwrap()).or_default() += 1;
            }
        }
        assert_eq!((kinds, octets), (sent, total), "{segment_octets_max}");
    }
}

#[test]
fn a_capture_says_where_it_comes_from() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("banks.pcapng");
    fs::write(&file, banks(SEGMENT_OCTETS).0).unwrap();
    let about = wireshark("capinfos", &[], &file);
    assert!(about.contains("simulated: level L1, two banks, seed 7, commit 0123abcd"), "{about}");
    assert!(about.contains("IronORB") && about.contains("nanoseconds (9)"), "{about}");
    let hosts = wireshark("tshark", &["-n", "-q", "-z", "hosts", "-r"], &file);
    for line in ["10.0.0.1\tteller-0", "10.0.0.2\tteller-1", "10.0.0.3\tbank"] {
        assert!(hosts.contains(line), "{hosts}");
    }
    // Virtual time is kept to the nanosecond.
    let mut capture = Capture::begin(Vec::new(), &ABOUT, SEGMENT_OCTETS).unwrap();
    let (from, to) = (End { host: 0, port: 1 }, End { host: 300, port: 2 });
    capture.send(Time::from_ns(5_000_000_000_123_456_789), from, to, b"x").unwrap();
    fs::write(&file, capture.end().unwrap()).unwrap();
    let fields = ["-T", "fields", "-e", "frame.time_epoch", "-e", "ip.dst", "-r"];
    let first = wireshark("tshark", &fields, &file).lines().next().unwrap().to_owned();
    assert_eq!(first, "5000000000.123456789\t10.0.1.45");
}
