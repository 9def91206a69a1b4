//! Lists that are longer than the stack is deep.

use ironorb_giop::cdr::{Reader, Writer};
use ironorb_giop::value::{Link, Value, ValueGraph};
use ironorb_giop::{Encoding, MalformedKind};

use super::graphs::encodings;
use super::types::{Bag, Deep, Item, Known, Named, alive};

/// Runs on a thread with a small stack: half the size of Rust's default.
fn on_small_stack(body: impl FnOnce() + Send + 'static) {
    std::thread::Builder::new().stack_size(1 << 20).spawn(body).unwrap().join().unwrap();
}

fn list(nodes: i32, kind: fn(Item) -> Link<Item>) -> Value<Item> {
    let mut next = Link::null();
    for number in (0..nodes).rev() {
        next = kind(Item::new(number, next, Link::null()));
    }
    next.get().unwrap()
}

fn check_list(list: &Value<Item>, nodes: i32) {
    let mut next = Some(list.clone());
    let mut count = 0;
    while let Some(item) = next {
        assert_eq!(item.number, count);
        count += 1;
        next = item.left.get();
    }
    assert_eq!(count, nodes);
}

#[test]
fn long_lists_are_written_and_read_on_a_small_stack() {
    on_small_stack(|| {
        let kinds: [fn(Item) -> Link<Item>; 4] = [
            |item| Value::new(item).into(),
            |item| Value::new(Named { base: item, ..Named::default() }).into(),
            |item| Value::new(Bag { base: item, ..Bag::default() }).into(),
            |item| match item.number % 3 {
                0 => Value::new(item).into(),
                1 => Value::new(Deep { base: Named { base: item, ..Named::default() }, ..Deep::default() })
                    .into(),
                _ => Value::new(Bag { base: item, ..Bag::default() }).into(),
            },
        ];
        for (kind, nodes) in kinds.into_iter().zip([100_000, 5000, 5000, 5000]) {
            let list = list(nodes, kind);
            for encoding in encodings() {
                let mut bytes = Vec::new();
                Writer::new(&mut bytes, encoding).put(&Some(&list)).unwrap();
                for known in [Known::All, Known::Few] {
                    let mut r = Reader::new(&bytes, encoding).with_environment(&known);
                    let read = r.get::<Option<Value<Item>>>().unwrap().unwrap();
                    assert_eq!(r.remaining(), 0);
                    drop(r);
                    check_list(&read, nodes);
                    if known == Known::All {
                        let mut again = Vec::new();
                        Writer::new(&mut again, encoding).put(&Some(read)).unwrap();
                        assert!(bytes == again);
                    }
                }
            }
            drop(list);
            assert_eq!(alive(), 0);
        }
    });
}

/// Earlier messages in the buffer stay unchanged. So do the bytes of a list that is written together with the
/// values before it.
#[test]
fn a_long_list_behind_other_data() {
    on_small_stack(|| {
        let mut graph = ValueGraph::new();
        let places: Vec<_> = (0..1000).map(|_| graph.reserve::<Item>()).collect();
        for (index, place) in places.iter().enumerate() {
            // A ring. Each value has a link to a later one and to an earlier one.
            let next = places[(index + 1) % places.len()];
            let other = places[(index * 7 + 3) % places.len()];
            graph.fill(*place, Item::new(index as i32, graph.link(next), graph.link(other))).unwrap();
        }
        let ring = graph.finish(places[0]).unwrap();
        let mut bytes = b"another message".to_vec();
        let mut w = Writer::new(&mut bytes, Encoding::NATIVE);
        w.put("text").unwrap();
        w.put(&Some(&ring)).unwrap();
        w.put(&ring.right).unwrap();
        w.put(&7u64).unwrap();
        assert!(bytes.starts_with(b"another message"));
        let mut r = Reader::new(&bytes[15..], Encoding::NATIVE);
        assert_eq!(r.read_str().unwrap(), "text");
        let read = r.get::<Option<Value<Item>>>().unwrap().unwrap();
        let right = r.get::<Option<Value<Item>>>().unwrap().unwrap();
        assert_eq!((r.read_u64().unwrap(), r.remaining()), (7, 0));
        assert!(read.right.get().unwrap().ptr_eq(&right));
        let mut one = read.clone();
        for index in 0..1000 {
            assert_eq!(one.number, index);
            assert_eq!(one.right.get().unwrap().number, (index * 7 + 3) % 1000);
            one = one.left.get().unwrap();
        }
        assert!(one.ptr_eq(&read), "the ring is closed");
    });
}

/// A tree that is deep and wide would have to be read many times. Reading it ends with an error, and soon.
#[test]
fn graphs_that_cost_too_much_to_read_are_refused() {
    on_small_stack(|| {
        let chain = |length: usize, end: Link<Item>| {
            (0..length).fold(end, |next, _| Value::new(Item::new(0, next, Link::null())).into())
        };
        let wide = |children: usize| {
            let items = (0..children).map(|_| chain(40, Link::null())).collect();
            let wide = Value::new(Deep { items, ..Deep::default() });
            chain(25, wide.into()).get().unwrap()
        };
        let result = |value: Value<Item>| {
            let mut bytes = Vec::new();
            Writer::new(&mut bytes, Encoding::NATIVE).put(&Some(value)).unwrap();
            let mut r = Reader::new(&bytes, Encoding::NATIVE).with_environment(&Known::All);
            r.get::<Option<Value<Item>>>().map(drop).map_err(|e| e.kind)
        };
        assert_eq!(result(wide(50)), Ok(()));
        assert_eq!(result(wide(3000)), Err(MalformedKind::TooDeep));
        assert_eq!(alive(), 0);
    });
}
