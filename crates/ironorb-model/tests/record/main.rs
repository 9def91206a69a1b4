//! Recordings, and what is made of them.

mod chrome;
mod format;
mod packets;
mod timeline;
mod workload;

use ironorb_model::record::{
    CallId, CallSeen, Head, Origin, Outcome, Reading, RecordWriter, Recording, RequestSeen,
};

/// A program on a host.
fn head(id: u64, program: &str, host: &str) -> Head {
    Head {
        id,
        program: program.to_owned(),
        process: 100 + id as u32,
        host: host.to_owned(),
        boot: format!("boot of {host}"),
        cores: 4,
        monotonic_ns: 5_000_000,
        unix_ns: 1_700_000_000_000_000_000,
        ..Head::default()
    }
}

const MAIN: Origin<'static> = Origin { thread: 1, name: "main" };

/// A call of `ping` with plain values, which tests change.
fn call(number: u64, begin_ns: u64) -> CallSeen<'static> {
    CallSeen {
        number,
        within: None,
        origin: MAIN,
        server: "10.0.0.2:2810",
        object: 7,
        operation: "ping",
        interface: "IDL:Bank:1.0",
        is_oneway: false,
        begin_ns,
        time_ns: 1_000,
        request_octets: 8,
        reply_octets: 4,
        outcome: &Outcome::Results,
        bodies: None,
    }
}

/// The request of such a call, at its server.
fn served(number: u64, of: Option<CallId>, begin_ns: u64) -> RequestSeen<'static> {
    RequestSeen {
        number,
        of,
        origin: Origin { thread: 9, name: "worker" },
        object: 7,
        operation: "ping",
        interface: "IDL:Bank:1.0",
        is_oneway: false,
        begin_ns,
        time_ns: 400,
        processor_ns: Some(400),
        request_octets: 8,
        reply_octets: 4,
        outcome: &Outcome::Results,
    }
}

/// The text of a recording.
fn written(head: &Head, write: impl FnOnce(&mut RecordWriter<Vec<u8>>)) -> String {
    let mut writer = RecordWriter::begin(Vec::new(), head).unwrap();
    write(&mut writer);
    String::from_utf8(writer.end().unwrap()).unwrap()
}

fn read(texts: &[&str]) -> Recording {
    let mut reading = Reading::default();
    for (index, text) in texts.iter().enumerate() {
        reading.add(&format!("file {index}"), text.as_bytes()).unwrap();
    }
    reading.finish()
}
