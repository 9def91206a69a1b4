//! Stored records of the interface repository from any bytes.

use ironorb_giop::{CharSet, Encoding, Reader, Writer};
use ironorb_idl::{MapLoader, Options, compile_with};
use ironorb_services::ifr::{DefinitionNumber, InterfaceRepository, Limits, Record, Store};

/// Records one after another. Each that is read is written and read again as the same. A repository accepts
/// or refuses it, answers all queries about accepted ones, and removes them again.
pub fn record(data: &[u8]) {
    let mut r = Reader::new(data, STORED);
    let mut records = Vec::new();
    while r.position() < data.len() && records.len() < RECORDS_MAX {
        let Ok(record) = r.get::<Record>() else { break };
        let written = bytes_of(std::slice::from_ref(&record));
        assert!(written.len() <= 64 + 4 * data.len(), "{} bytes from {}", written.len(), data.len());
        let again = Reader::new(&written, STORED).get::<Record>().expect("what was written can be read");
        assert_eq!(bytes_of(std::slice::from_ref(&again)), written);
        assert_eq!((again.kind(), &again.id), (record.kind(), &record.id));
        records.push(record);
    }
    if records.is_empty() {
        return;
    }
    let repository =
        InterfaceRepository::new(Store::in_memory().expect("there is memory"), Limits::default());
    let mut made = Vec::new();
    for record in &records {
        made.extend(repository.create(record));
    }
    for &number in &made {
        let record = repository.get(number).expect("it was made");
        let _ = (repository.type_code(number), repository.contents(number));
        if !record.name.is_empty() {
            let name = repository.absolute_name(number).expect("a named definition has a container");
            assert_eq!(repository.lookup(DefinitionNumber::REPOSITORY, &name).ok(), Some(Some(number)));
            assert_eq!(repository.lookup_id(&record.id).ok(), Some(Some(number)));
        }
    }
    // In any order that the repository allows. Removing one removes its contents too, so the loop ends.
    while let Some(number) = made.pop() {
        if repository.destroy(number).is_ok() {
            assert!(repository.get(number).is_err());
        }
    }
}

/// Records of each construct, alone and all together in the order in which they are created.
pub(crate) fn samples() -> Vec<Vec<u8>> {
    let files = MapLoader::new().with("it.idl", SAMPLE);
    let model = compile_with("it.idl".as_ref(), &Options::default(), &files).model.expect("it is IDL");
    let repository =
        InterfaceRepository::new(Store::in_memory().expect("there is memory"), Limits::default());
    repository.load(&model).expect("it can be loaded");
    let numbers = (FIRST..FIRST + 100).map(DefinitionNumber::from_number);
    let records: Vec<Record> = numbers.filter_map(|number| repository.get(number).ok()).collect();
    let alone = records.iter().map(|record| bytes_of(std::slice::from_ref(record)));
    alone.chain(records.chunks(8).map(bytes_of)).chain([bytes_of(&records)]).collect()
}

fn bytes_of(records: &[Record]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut w = Writer::new(&mut bytes, STORED);
    for record in records {
        w.put(record).expect("what was read or made can be written");
    }
    bytes
}

/// The encoding of the store.
const STORED: Encoding = Encoding { char_set: CharSet::Utf8, ..Encoding::NATIVE };

/// The first number that a store assigns.
const FIRST: u64 = 64;

const RECORDS_MAX: usize = 40;

const SAMPLE: &str = "
    module Mod {};
    native Nat;
    enum Colour { A, B };
    const long C = 3;
    typedef sequence<long, 4> Longs;
    typedef map<long, string<3>> Names;
    struct Str { long n; Longs ns; fixed<5, 2> f; };
    union Uni switch (Colour) { case A: long n; default: Str s; };
    exception Exc { Str s; };
    interface Base { attribute long size getraises (Exc); };
    interface Inf : Base { Str run(in Colour e, inout Uni u) raises (Exc) context (\"c\"); oneway void go(); };
    abstract interface Abs {};
    local interface Loc : Inf {};
    valuetype Val supports Abs { public long n; private wstring<2> s; factory make(in long n); };
    valuetype Wal : Val { long grid2(); };
    valuetype Box Str;
";
