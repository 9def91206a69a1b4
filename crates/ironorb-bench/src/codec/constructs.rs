//! `ironorb bench types`: how fast each IDL construct is written and read, beside a plain copy of as many
//! bytes.
//!
//! Writing fills a buffer that is large enough. Reading makes the Rust value, with the memory that it needs.

use std::hint::black_box;

use ironorb::giop::cdr::{LongDouble, WString};
use ironorb::giop::{ByteOrder, Encoding, Marshal, Unmarshal};
use ironorb::{Any, Fixed, Orb, TypeCode};

use super::{Codec, Compared, any, bin, compare, g, reading, write};
use crate::error::BenchError;
use crate::options::Run;
use crate::render::{Report, Table};
use crate::row::Measure;

/// `ironorb bench types`
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct TypesOptions {
    /// Run only these rows, separated by commas.
    #[arg(long, value_delimiter = ',')]
    pub(crate) rows: Vec<String>,
    #[command(flatten)]
    pub(crate) run: Run,
}

const NOTES: &str = "baseline: as many bytes copied from one buffer to another, in turns with the others. write: into a buffer that is large\n\
    enough. read: makes the value, with its memory; an any stores its value as bytes. GB: 10^9 bytes on the wire. Rates are\n\
    by the thread's processor time.";

/// Runs `ironorb bench types`.
pub(crate) fn measure(options: &TypesOptions) -> Result<Report, BenchError> {
    let mut report = Report::new("types", "constructs of IDL, gigabytes a second", &options.run);
    let orb = Orb::builder().no_endpoint().build()?;
    let rows = compare(all(&orb)?, &options.rows, gigabytes, 16 << 20, &options.run)?;
    let title = "gigabytes a second, of the bytes on the wire";
    report.tables.push(Table::new("rate", title, rows).notes(NOTES));
    Ok(report)
}

fn gigabytes(bytes: usize) -> Measure {
    Measure::Rate("gb_s", bytes as f64 / 1e3)
}

/// Bytes of a value on the wire, approximately.
const BYTES: usize = 64 * 1024;

fn all(orb: &Orb) -> Result<Vec<Compared>, BenchError> {
    let octets: Vec<u8> = (0..BYTES).map(|i| i as u8).collect();
    let doubles: Vec<f64> = (0..BYTES / 8).map(|i| i as f64).collect();
    let text = "lorem ipsum dolor sit amet ".repeat(BYTES / 27);
    let texts: Vec<String> = (0..BYTES / 24).map(|i| format!("a text, no. {i:06}")).collect();
    let wide = "wide text with ż ".repeat(BYTES / 34);
    let bins: Vec<g::BinStruct> = (0..BYTES as i32 / 24).map(bin).collect();
    let choices: Vec<g::Reading> = (0..BYTES as i32 / 16).map(reading).collect();
    let nesteds: Vec<g::Nested> = (0..BYTES as i32 / 200).map(nested).collect();
    let colours: Vec<g::Colour> = (0..BYTES / 4).map(colour).collect();
    let prices: Vec<Fixed<9, 2>> =
        (0..BYTES as i128 / 5).map(|i| Fixed::from_unscaled(i * 37).unwrap_or_default()).collect();
    let quads: Vec<LongDouble> = (0..BYTES / 16).map(|i| LongDouble::from(i as f64)).collect();
    let types: Vec<TypeCode> = (0..BYTES / 700).map(|_| TypeCode::for_type::<g::Nested>()).collect();
    let bag = (0..BYTES as i32 / 12).map(|i| any(&i)).collect::<Result<Vec<Any>, _>>()?;
    Ok(vec![
        plain("octets", octets.clone()),
        plain("chars", octets.clone()),
        plain("booleans", octets.iter().map(|octet| octet % 2 == 0).collect::<Vec<bool>>()),
        plain("shorts", (0..BYTES / 2).map(|i| i as i16).collect::<Vec<i16>>()),
        plain("longs", (0..BYTES / 4).map(|i| i as i32).collect::<Vec<i32>>()),
        plain("long longs", (0..BYTES / 8).map(|i| i as i64).collect::<Vec<i64>>()),
        plain("floats", (0..BYTES / 4).map(|i| i as f32).collect::<Vec<f32>>()),
        plain("doubles", doubles.clone()),
        foreign("doubles, other byte order", doubles.clone()),
        plain("long doubles", quads),
        plain("a string", text.clone()),
        plain("strings", texts.clone()),
        plain("a wstring", WString::from(wide.as_str())),
        plain("enums", colours),
        plain("structs", bins.clone()),
        foreign("structs, other byte order", bins.clone()),
        plain("unions", choices.clone()),
        plain("nested structs", nesteds.clone()),
        plain("array", Box::new([[0.5f64; 128]; 64])),
        plain("fixed", prices.clone()),
        plain("TypeCodes", types),
        plain("any of octets", any(&octets)?),
        plain("any of doubles", any(&doubles)?),
        foreign("any of doubles, other order", any(&doubles)?),
        plain("any of a string", any(&text)?),
        plain("any of strings", any(&texts)?),
        plain("any of a wstring", any(&WString::from(wide.as_str()))?),
        plain("any of structs", any(&bins)?),
        foreign("any of structs, other order", any(&bins)?),
        plain("any of unions", any(&choices)?),
        plain("any of nested structs", any(&nesteds)?),
        plain("any of fixed", any(&prices)?),
        plain("any of a value list", any(&Some(list(BYTES / 12)))?),
        plain("anys of longs", bag),
        plain("valuetype list", Some(list(BYTES / 12))),
        plain("valuetype tree", tree(11)),
        plain("valuetype shared graph", Some(shared(BYTES / 320)?)),
        references(orb)?,
    ])
}

/// A construct in this processor's byte order, as on a connection between similar machines.
fn plain<T: Marshal + Unmarshal + 'static>(name: &'static str, value: T) -> Compared {
    Compared { name, baseline: None, subject: Codec::of(value, Encoding::NATIVE) }
}

fn foreign<T: Marshal + Unmarshal + 'static>(name: &'static str, value: T) -> Compared {
    let order = if ByteOrder::NATIVE == ByteOrder::Big { ByteOrder::Little } else { ByteOrder::Big };
    Compared { name, baseline: None, subject: Codec::of(value, Encoding { order, ..Encoding::NATIVE }) }
}

/// References belong to an ORB, and an `any` of references remembers it.
fn references(orb: &Orb) -> Result<Compared, BenchError> {
    let text = "corbaloc:iiop:1.2@host.example:2809/a/key/of/forty/octets/or/thereabouts";
    let thing: g::ThingRef = ironorb::TypedRef::from_object(orb.string_to_object(text)?);
    let things = vec![Some(thing); BYTES / 100];
    let stored = any(&things)?;
    let read = move |_: &[u8]| {
        black_box(stored.extract::<g::Things>()?);
        Ok(())
    };
    let subject = Codec { write: write(things, Encoding::NATIVE), read: Box::new(read) };
    Ok(Compared { name: "references", baseline: None, subject })
}

fn colour(i: usize) -> g::Colour {
    [g::Colour::Red, g::Colour::Green, g::Colour::Blue, g::Colour::InfraRed][i % 4]
}

fn nested(i: i32) -> g::Nested {
    g::Nested {
        bin: bin(i),
        within: g::nested::Inner { name: format!("name {i}"), tint: colour(i as usize), numbers: vec![i; 8] },
        matrix: [[f64::from(i); 3]; 3],
        one: reading(i),
    }
}

fn list(length: usize) -> ironorb::Value<g::List> {
    let value = |number, next| ironorb::Value::new(g::List { number, next });
    let last = value(0, ironorb::Link::null());
    (1..length as i32).fold(last, |list, number| value(number, list.into()))
}

fn tree(depth: u32) -> Option<ironorb::Value<g::Branch>> {
    depth.checked_sub(1).map(|below| {
        let name = format!("a node {below} above the ground");
        ironorb::Value::new(g::Branch { name, left: tree(below).into(), right: tree(below).into() })
    })
}

/// Values, each of which refers to the eight values before it.
fn shared(count: usize) -> Result<ironorb::Value<g::Shared>, BenchError> {
    let mut graph = ironorb::ValueGraph::new();
    let mut places = vec![graph.add(g::Shared::default())];
    for number in 1..count {
        let others = places.iter().rev().take(8).map(|place| graph.link(*place)).collect();
        places.push(graph.add(g::Shared { numbers: vec![number as i32; 60], others }));
    }
    let last = places[places.len() - 1];
    Ok(graph.finish(last)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quick(rows: &[&str]) -> Result<Report, BenchError> {
        let rows = rows.iter().map(|row| (*row).to_owned()).collect();
        measure(&TypesOptions { rows, run: Run { quick: true, ..Run::default() } })
    }

    #[test]
    fn every_row_reads_what_it_writes_and_gives_a_rate() {
        let report = quick(&[]).expect("a report");
        let rows = report.rows("rate");
        assert!(rows.len() > 60);
        for row in rows {
            assert!(row.median("subject").is_some_and(|rate| rate > 0.0), "{row:?}");
            let bytes = row.count("bytes").unwrap() as usize;
            assert!((16 * 1024..1024 * 1024).contains(&bytes), "{}: {bytes} bytes", row.text("row"));
        }
        assert!(report.to_string().contains("valuetype tree"));
    }

    #[test]
    fn rows_can_be_chosen_and_must_exist() {
        assert_eq!(quick(&["octets"]).expect("a report").rows("rate").len(), 2);
        assert!(matches!(quick(&["bits"]), Err(BenchError::UnknownRow { .. })));
    }
}
