//! The cache of other ORBs' programs: what is found again, and what is built anew.

use std::cell::Cell;
use std::fs;
use std::path::PathBuf;

use ironorb_interop::peer_cache::{Recipe, keep_only};

fn recipe(sources: &[PathBuf]) -> Recipe<'_> {
    Recipe { name: "test", sources, tools: &[&["true"]] }
}

#[test]
fn the_hash_follows_names_and_contents_and_not_the_place() {
    let made = |name: &str, text: &str| {
        let folder = tempfile::tempdir().expect("there is room");
        fs::create_dir(folder.path().join("sources")).expect("there is room");
        fs::write(folder.path().join("sources").join(name), text).expect("there is room");
        recipe(&[folder.path().join("sources")]).hash()
    };
    assert_eq!(made("a", "x"), made("a", "x"), "in another place");
    assert_ne!(made("a", "x"), made("a", "y"));
    assert_ne!(made("a", "x"), made("b", "x"));
    let tools = |tools| Recipe { name: "test", sources: &[], tools }.hash();
    assert_ne!(tools(&[&["echo", "1"]]), tools(&[&["echo", "2"]]));
}

#[test]
fn what_is_whole_is_not_built_again_and_what_is_not_is_replaced() {
    let cache = tempfile::tempdir().expect("there is room");
    let (recipe, built) = (recipe(&[]), Cell::new(0));
    let folder = || {
        recipe.folder_in(
            cache.path(),
            |folder| folder.join("program").exists(),
            |folder| {
                built.set(built.get() + 1);
                fs::write(folder.join("program"), "").expect("there is room");
            },
        )
    };
    let place = folder();
    assert_eq!((folder(), built.get()), (place.clone(), 1), "it is found again");
    fs::remove_file(place.join("program")).expect("it is ours");
    fs::write(place.join("half"), "").expect("there is room");
    assert_eq!((folder(), built.get()), (place.clone(), 2));
    assert!(place.join("program").exists() && !place.join("half").exists(), "as it was built, and no more");
    let left = fs::read_dir(cache.path().join("peers")).expect("it is there").flatten();
    let left: Vec<_> = left.filter(|entry| entry.path().is_dir()).collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

#[test]
fn only_named_files_stay_in_a_folder() {
    let folder = tempfile::tempdir().expect("there is room");
    for name in ["server", "server.o"] {
        fs::write(folder.path().join(name), "").expect("there is room");
    }
    fs::create_dir(folder.path().join("stubs")).expect("there is room");
    keep_only(folder.path(), &["server"]);
    let left: Vec<_> = fs::read_dir(folder.path()).expect("it is there").flatten().collect();
    assert_eq!(left.len(), 1);
    assert_eq!(left[0].file_name(), "server");
}
