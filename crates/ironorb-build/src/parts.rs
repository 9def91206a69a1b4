//! Splits a large file into parts, which several threads lower and print.
//!
//! The text does not depend on the number of parts: a part depends on the model alone.

use std::thread;

use ironorb_idl::model::{DefId, DefKind, Definition, Model};

use crate::config::Config;
use crate::emit::{self, Piece, Pieces};
use crate::lower::{Lowerer, Registered};
use crate::marshalling::Choice;
use crate::select::Selection;

/// The Rust for a model.
#[derive(Debug)]
pub(crate) struct Generated {
    pub(crate) text: String,
    /// The files that the text includes.
    pub(crate) pieces: Vec<Piece>,
}

/// Generates the Rust for a model. In a large one, the interfaces go into files in the directory `pieces`, if
/// there is one.
pub(crate) fn generate(
    model: &Model,
    config: &Config,
    choice: &Choice,
    selection: &Selection,
    pieces: Option<&str>,
) -> Generated {
    let pieces = pieces.filter(|_| {
        let is_interface = |definition: &&Definition| matches!(definition.kind, DefKind::Interface(_));
        model.definitions().iter().filter(is_interface).count() >= INTERFACES_MIN
    });
    let lowerer = Lowerer::new(model, config, choice, selection);
    let mut file = lowerer.file();
    let print = |roots: &[DefId]| {
        let mut file = lowerer.file();
        let mut registered = Registered::default();
        let mut text = String::new();
        let mut pieces = pieces.map(Pieces::new);
        // The parts are written one by one, so that memory holds little more than the text.
        for &root in roots {
            let (items, values) = lowerer.root(root);
            registered.join(values);
            file.items = items;
            text = emit::items(&file, text, &mut pieces);
        }
        (text, registered, pieces)
    };
    let mut text = emit::head(&file);
    let mut registered = Registered::default();
    let parts = in_threads(&divided(model), &print);
    text.reserve(parts.iter().map(|(part, ..)| part.len()).sum());
    let mut done = Vec::new();
    for (part, values, pieces) in parts {
        text.push_str(&part);
        done.extend(pieces.into_iter().flat_map(|pieces| pieces.done));
        registered.join(values);
    }
    file.items.extend(registered.item_of_file(&file.source));
    Generated { text: emit::items(&file, text, &mut None), pieces: done }
}

/// Divides the roots into parts with about equally many definitions, one for each thread.
fn divided(model: &Model) -> Vec<&[DefId]> {
    let definitions = model.definitions().len();
    let threads = match definitions / DEFINITIONS_PER_THREAD_MIN {
        ..=1 => 1,
        wished => wished.min(THREADS_MAX).min(thread::available_parallelism().map_or(1, usize::from)),
    };
    let mut parts = Vec::with_capacity(threads);
    let mut rest = model.roots();
    for part in 1..threads {
        // The definitions inside a root usually follow it.
        let end = definitions * part / threads;
        let (now, later) = rest.split_at(rest.partition_point(|root| root.index() < end));
        parts.push(now);
        rest = later;
    }
    parts.push(rest);
    parts
}

/// Does the work for each part and returns the results in order. All parts but the last run in threads of
/// their own.
fn in_threads<P: Sync + ?Sized, T: Send>(parts: &[&P], work: &(impl Fn(&P) -> T + Sync)) -> Vec<T> {
    let Some((&last, others)) = parts.split_last() else { return Vec::new() };
    thread::scope(|scope| {
        let others: Vec<_> = others
            .iter()
            .map(|&part| {
                let thread = thread::Builder::new().stack_size(STACK_BYTES);
                (part, thread.spawn_scoped(scope, move || work(part)))
            })
            .collect();
        let last = work(last);
        let done =
            others.into_iter().map(|(part, thread)| match thread.map(thread::ScopedJoinHandle::join) {
                Ok(Ok(done)) => done,
                Ok(Err(panic)) => std::panic::resume_unwind(panic),
                // No thread could be started, so this thread does the work.
                Err(_) => work(part),
            });
        let mut done: Vec<T> = done.collect();
        done.push(last);
        done
    })
}

/// The fewest definitions per part: fewer take less time than the start of a thread.
const DEFINITIONS_PER_THREAD_MIN: usize = 1_000;

/// The most threads. Build scripts run side by side, so one must not take all processors.
const THREADS_MAX: usize = 4;

/// The stack size of a thread: that of the main thread on most systems. Scopes nest as deep as the front end
/// lets them.
const STACK_BYTES: usize = 8 << 20;

/// The fewest interfaces in files of their own: a smaller unit is easier to read in one file, and quick to check.
const INTERFACES_MIN: usize = 10;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::marshalling::Way;

    #[test]
    fn the_parts_are_done_in_their_order() {
        let parts: Vec<&[u32]> = vec![&[1, 2], &[], &[3], &[4, 5, 6]];
        let sums = in_threads(&parts, &|part: &[u32]| part.iter().sum::<u32>());
        assert_eq!(sums, [3, 0, 3, 15]);
    }

    #[test]
    fn a_large_file_is_the_sum_of_its_roots() {
        let mut idl = String::new();
        for at in 0..3_000 {
            idl.push_str(&format!(
                "module M{at} {{ struct S {{ long x; }}; valuetype V {{ public S state; }}; }};\n"
            ));
        }
        let files = ironorb_idl::MapLoader::new().with("large.idl", idl);
        let options = ironorb_idl::Options::default();
        let outcome = ironorb_idl::compile_with("large.idl".as_ref(), &options, &files);
        let model = outcome.model.expect("the text is correct");
        assert_eq!(divided(&model).concat(), model.roots());
        let config = Config::new();
        let text =
            generate(&model, &config, &Choice::All(Way::Compiled), &Selection::of(&model, &config), None)
                .text;
        assert_eq!(text.matches("pub struct S {").count(), 3_000);
        let (first, last) = (text.find("pub mod m0 "), text.find("pub mod m2999 "));
        assert!(first.is_some() && first < last, "in their order");
        assert_eq!(text.matches("pub fn register_large_values").count(), 1);
        assert!(text.contains("m0::register_values") && text.contains("m2999::register_values"));
    }
}
