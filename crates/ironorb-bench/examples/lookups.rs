//! Finds objects, or operations, so many times and in one of the ways that can be chosen, and does nothing else. For
//! callgrind: the difference between two numbers of times is what one takes.
//!
//! `lookups objects active|hash|linear delayered|layered DEPTH OBJECTS TIMES` or
//! `lookups operations perfectHash|hash|binary|linear OPERATIONS TIMES`

use std::error::Error;
use std::hint::black_box;
use std::sync::Arc;

use ironorb::generated::{OperationSearch, OperationTable};
use ironorb::poa::PoaPolicies;
use ironorb::{Call, OperationLookup, Orb, Replied, Servant};

struct Nothing;

impl Servant for Nothing {
    fn repository_ids(&self) -> &[&'static str] {
        &["IDL:Nothing:1.0"]
    }

    fn dispatch(&self, call: Call<'_>) -> Replied {
        call.standard_operation(&[])
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["objects", lookup, layers, depth, objects, times] => {
            find_objects(lookup, layers, depth.parse()?, objects.parse()?, times.parse()?)
        }
        ["operations", lookup, operations, times] => {
            find_operations(lookup, operations.parse()?, times.parse()?);
            Ok(())
        }
        _ => Err("see the head of this file".into()),
    }
}

fn find_objects(
    lookup: &str,
    layers: &str,
    depth: usize,
    objects: usize,
    times: usize,
) -> Result<(), Box<dyn Error>> {
    let mut settings = ["-ORBobjectLookup", lookup, "-ORBdemultiplexing", layers].map(str::to_owned).to_vec();
    let orb = Orb::builder().no_endpoint().arguments(&mut settings).build()?;
    let mut poa = orb.root_poa();
    for level in 0..depth {
        poa = poa.create_poa(&format!("level {level}"), None, PoaPolicies::default())?;
    }
    let mut references = Vec::new();
    for _ in 0..objects {
        let id = poa.activate_object(Arc::new(Nothing))?;
        references.push(poa.id_to_reference(&id)?);
    }
    for turn in 0..times + objects {
        assert!(black_box(&references[turn % objects]).locate()?);
    }
    orb.shutdown(true)?;
    Ok(())
}

fn find_operations(lookup: &str, operations: usize, times: usize) {
    let names: Vec<&'static str> = (0..operations).map(|n| &*format!("operation_{n}").leak()).collect();
    let names: &'static [&'static str] = names.leak();
    let sequence: Vec<&[u8]> = (0..times).map(|turn| names[turn * 7 % operations].as_bytes()).collect();
    let search = OperationSearch::new(names);
    let lookup = match lookup {
        "hash" => OperationLookup::Hash,
        "binary" => OperationLookup::Binary,
        "linear" => OperationLookup::Linear,
        _ => {
            // As large as the generator makes them.
            return match operations {
                1 => find_all(&OperationTable::<1>::new(0, names), &sequence),
                0..=128 => find_all(&OperationTable::<256>::new(0, names), &sequence),
                129..=512 => find_all(&OperationTable::<1024>::new(0, names), &sequence),
                _ => find_all(&OperationTable::<32_768>::new(0, names), &sequence),
            };
        }
    };
    for name in sequence {
        assert!(search.find(lookup, black_box(name)).is_some());
    }
}

fn find_all<const SLOTS: usize>(table: &OperationTable<SLOTS>, sequence: &[&[u8]]) {
    for name in sequence {
        assert!(table.find(black_box(name)).is_some());
    }
}
