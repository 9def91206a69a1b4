//! Random graphs.

use ironorb_giop::cdr::{Reader, Writer};
use ironorb_giop::framer::{Framer, FramerLimits};
use ironorb_giop::value::{DerivesFrom, Link, Place, Value, ValueBase, ValueGraph};
use ironorb_giop::{ByteOrder, Encoding, Misuse, Version};
use proptest::prelude::*;

use super::types::{Bag, Deep, Item, Known, Named, Text, alive};

/// A value of a random graph: its type, and the numbers of the values that its links lead to; `None` is null.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    kind: u8,
    number: i32,
    text: String,
    links: Vec<Option<prop::sample::Index>>,
}

pub(crate) fn plans(values: impl Into<prop::collection::SizeRange>) -> impl Strategy<Value = Vec<Plan>> {
    let link = prop::option::weighted(0.8, any::<prop::sample::Index>());
    let plan = (0..6u8, any::<i32>(), "[a-z]{0,9}", prop::collection::vec(link, 3..8));
    let plan = plan.prop_map(|(kind, number, text, links)| Plan { kind, number, text, links });
    prop::collection::vec(plan, values)
}

/// A place in the graph, by type.
#[derive(Clone, Copy)]
enum Spot {
    Item(Place<Item>),
    Named(Place<Named>),
    Deep(Place<Deep>),
    Bag(Place<Bag>),
    Text(Place<Text>),
}

/// Builds a graph from plans. The first value is always an item.
pub(crate) fn build(plans: &[Plan]) -> Value<Item> {
    let mut graph = ValueGraph::new();
    let spots: Vec<Spot> = plans
        .iter()
        .enumerate()
        .map(|(index, plan)| match plan.kind {
            0 | 1 => Spot::Item(graph.reserve()),
            2 => Spot::Named(graph.reserve()),
            3 => Spot::Deep(graph.reserve()),
            4 => Spot::Bag(graph.reserve()),
            _ if index == 0 => Spot::Item(graph.reserve()),
            _ => Spot::Text(graph.reserve()),
        })
        .collect();
    fn link<T: ?Sized>(
        graph: &ValueGraph,
        spot: Option<Spot>,
        text: fn(&ValueGraph, Place<Text>) -> Link<T>,
    ) -> Link<T>
    where
        Item: DerivesFrom<T>,
        Named: DerivesFrom<T>,
        Deep: DerivesFrom<T>,
        Bag: DerivesFrom<T>,
    {
        match spot {
            None => Link::null(),
            Some(Spot::Item(place)) => graph.link(place),
            Some(Spot::Named(place)) => graph.link(place),
            Some(Spot::Deep(place)) => graph.link(place),
            Some(Spot::Bag(place)) => graph.link(place),
            Some(Spot::Text(place)) => text(graph, place),
        }
    }
    for (plan, spot) in plans.iter().zip(&spots) {
        let target = |n: usize| plan.links[n].map(|index| *index.get(&spots));
        let item_link = |n: usize| link::<Item>(&graph, target(n), |_, _| Link::null());
        let item = Item::new(plan.number, item_link(0), item_link(1));
        let filled: Result<(), Misuse> = match *spot {
            Spot::Item(place) => graph.fill(place, item),
            Spot::Named(place) => {
                let named = Named { base: item, name: plan.text.clone(), last: item_link(2) };
                graph.fill(place, named)
            }
            Spot::Deep(place) => {
                let base = Named { base: item, name: plan.text.clone(), last: item_link(2) };
                let numbers = plan.links.iter().map(|_| f64::from(plan.number)).collect();
                let items = (3..plan.links.len()).map(item_link).collect();
                graph.fill(place, Deep { base, numbers, items })
            }
            Spot::Bag(place) => {
                let any_value = link::<dyn ValueBase>(&graph, target(2), |graph, place| graph.link(place));
                let octets = plan.text.clone().into_bytes();
                graph.fill(place, Bag { base: item, octets, any_value })
            }
            Spot::Text(place) => graph.fill(place, Text(plan.text.clone())),
        };
        filled.unwrap();
    }
    match spots[0] {
        Spot::Item(place) => graph.finish(place).unwrap(),
        Spot::Named(place) => graph.finish(place).unwrap().upcast(),
        Spot::Deep(place) => graph.finish(place).unwrap().upcast(),
        Spot::Bag(place) => graph.finish(place).unwrap().upcast(),
        Spot::Text(_) => unreachable!("the first is an item"),
    }
}

/// Describes a graph, and numbers its values in the order of a walk. Two graphs are equal if their
/// descriptions are. With `Known::Few`, describes the graph as it is after truncation.
pub(crate) fn describe(root: &Value<Item>, known: Known) -> Vec<String> {
    let mut met: Vec<Value<dyn ValueBase>> = vec![root.upcast()];
    let mut lines = Vec::new();
    let mut next = 0;
    while let Some(value) = met.get(next).cloned() {
        let mut number = |link: Option<Value<dyn ValueBase>>| match link {
            None => "null".to_owned(),
            Some(target) => {
                let index = met.iter().position(|one| one.ptr_eq(&target)).unwrap_or_else(|| {
                    met.push(target);
                    met.len() - 1
                });
                format!("#{index}")
            }
        };
        let mut items = |link: &Link<Item>| number(link.get().map(|value| value.upcast()));
        let mut line = String::new();
        if let Some(item) = value.view::<Item>() {
            line = format!("{} {} {}", item.number, items(&item.left), items(&item.right));
        }
        if known == Known::All
            && let Some(named) = value.view::<Named>()
        {
            line = format!("{line} {} {}", named.name, items(&named.last));
        }
        if known == Known::All
            && let Some(deep) = value.view::<Deep>()
        {
            let list: Vec<_> = deep.items.iter().map(&mut items).collect();
            line = format!("{line} {:?} {list:?}", deep.numbers);
        }
        if let Some(bag) = value.view::<Bag>() {
            line = format!("{line} {:?} {}", bag.octets, number(bag.any_value.get()));
        }
        if let Some(text) = value.view::<Text>() {
            line = format!("{line} {}", text.0);
        }
        lines.push(line);
        next += 1;
    }
    lines
}

pub(crate) fn encodings() -> [Encoding; 2] {
    [ByteOrder::Big, ByteOrder::Little].map(|order| Encoding { order, ..Encoding::NATIVE })
}

pub(crate) fn bytes_of(value: &Value<Item>, lead: usize, encoding: Encoding) -> Vec<u8> {
    let mut bytes = vec![0xEE; lead];
    Writer::continuing(&mut bytes, 0, encoding).put(&Some(value)).unwrap();
    bytes
}

fn cases(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(cases(400))]

    /// A written graph can be read again, even by a receiver that must truncate it. A cut one is refused. All
    /// values are freed.
    #[test]
    fn graphs_are_written_and_read(plans in plans(1..20), lead in 0..8usize) {
        let graph = build(&plans);
        for encoding in encodings() {
            let bytes = bytes_of(&graph, lead, encoding);
            for known in [Known::All, Known::Few] {
                let mut r = Reader::at(&bytes, lead, encoding).with_environment(&known);
                let read: Value<Item> = r.get::<Option<Value<Item>>>().unwrap().unwrap();
                prop_assert_eq!(r.remaining(), 0);
                prop_assert_eq!(describe(&read, known), describe(&graph, known));
                if known == Known::All {
                    prop_assert_eq!(bytes_of(&read, lead, encoding), &bytes[..]);
                }
            }
            let step = 1 + bytes.len() / 200;
            for cut in (lead..bytes.len()).step_by(step) {
                let mut r = Reader::at(&bytes[..cut], lead, encoding).with_environment(&Known::All);
                prop_assert!(r.get::<Option<Value<Item>>>().is_err(), "cut at {}", cut);
            }
        }
        drop(graph);
        prop_assert_eq!(alive(), 0);
    }

    /// Several parameters share values, in any order.
    #[test]
    fn parameters_share_values(plans in plans(2..8), others in plans(1..4)) {
        let first = build(&plans);
        let second = build(&others);
        let within = first.left.get().unwrap_or_else(|| first.clone());
        let parameters = [Some(&within), Some(&second), Some(&first), None, Some(&within)];
        let mut bytes = Vec::new();
        let mut w = Writer::new(&mut bytes, Encoding::NATIVE);
        parameters.iter().try_for_each(|parameter| w.put(parameter)).unwrap();
        drop(w); // the writer keeps the values alive
        let mut r = Reader::new(&bytes, Encoding::NATIVE).with_environment(&Known::All);
        let read: [Option<Value<Item>>; 5] = std::array::from_fn(|_| r.get().unwrap());
        prop_assert_eq!(r.remaining(), 0);
        drop(r);
        for (parameter, read) in parameters.iter().zip(&read) {
            prop_assert_eq!(parameter.is_some(), read.is_some());
            if let (Some(parameter), Some(read)) = (parameter, read) {
                prop_assert_eq!(describe(read, Known::All), describe(parameter, Known::All));
            }
        }
        prop_assert!(read[0] == read[4]);
        drop((first, second, within, read));
        prop_assert_eq!(alive(), 0);
    }

    /// Values in fragments of GIOP 1.1, each with its own alignment. Cuts are in chunks, headers and texts.
    #[test]
    fn graphs_come_in_fragments(plans in plans(1..8), cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6)) {
        // No doubles: cuts at multiples of 4 preserve the alignment of all other types.
        let plans: Vec<Plan> = plans.into_iter().map(|plan| Plan { kind: plan.kind % 3, ..plan }).collect();
        let graph = build(&plans);
        for encoding in encodings() {
            let bytes = bytes_of(&graph, 12, Encoding { version: Version::V1_1, ..encoding });
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| 12 + cut.index(bytes.len() - 11) / 4 * 4).collect();
            cuts.sort_unstable();
            let starts = [12].into_iter().chain(cuts.iter().copied());
            let ends = cuts.iter().copied().chain([bytes.len()]);
            let mut framer = Framer::new(FramerLimits::default());
            for (index, (start, end)) in starts.zip(ends).enumerate() {
                let little = u8::from(encoding.order == ByteOrder::Little);
                let more = if index < cuts.len() { 2 } else { 0 };
                let kind = if index == 0 { 1 } else { 7 };
                let length = (end - start) as u32;
                framer.push(&[b'G', b'I', b'O', b'P', 1, 1, little | more, kind]);
                framer.push(&if little == 1 { length.to_le_bytes() } else { length.to_be_bytes() });
                framer.push(&bytes[start..end]);
            }
            let message = framer.next().unwrap().unwrap();
            let mut r = message.reader_at(12).with_environment(&Known::All);
            let read = r.get::<Option<Value<Item>>>().unwrap().unwrap();
            prop_assert_eq!(r.remaining(), 0);
            prop_assert_eq!(describe(&read, Known::All), describe(&graph, Known::All));
        }
    }

    /// A graph with one changed byte is read or refused, and freed.
    #[test]
    fn damaged_graphs_do_no_harm(plans in plans(1..8), at in any::<prop::sample::Index>(), to in any::<u8>()) {
        let graph = build(&plans);
        for encoding in encodings() {
            let mut bytes = bytes_of(&graph, 0, encoding);
            *at.get_mut(&mut bytes) = to;
            for known in [Known::All, Known::Few] {
                let mut r = Reader::new(&bytes, encoding).with_environment(&known);
                if let Ok(Some(read)) = r.get::<Option<Value<Item>>>() {
                    drop(r);
                    describe(&read, known);
                    let _ = bytes_of(&read, 0, encoding);
                }
            }
        }
        drop(graph);
        prop_assert_eq!(alive(), 0);
    }
}
