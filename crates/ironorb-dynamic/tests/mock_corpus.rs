//! Mocks of the interfaces in Debian's omniORB package, without prepared answers. Each operation of each
//! interface is called dynamically with default arguments.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use ironorb::dyn_any::DynAny;
use ironorb::dynamic::{DynamicError, Request};
use ironorb::{Orb, SystemExceptionKind};
use ironorb_dynamic::mock::{Mock, Options as MockOptions};
use ironorb_dynamic::{Interfaces, declaration, json};
use ironorb_idl::Options;

#[test]
fn every_operation_of_debians_idl_is_answered() {
    let mut files = Vec::new();
    collect(Path::new("/usr/share/idl/omniORB"), &mut files);
    if files.is_empty() {
        eprintln!("skipped: the package omniorb-idl is not installed");
        return;
    }
    let dirs: BTreeSet<&Path> = files.iter().filter_map(|file| file.parent()).collect();
    let options = dirs.iter().fold(Options::new(), |options, dir| options.include_dir(*dir));
    let mut known = Interfaces::new();
    known.add_idl(&files, &options).unwrap();

    let server = Orb::builder().endpoint("iiop://127.0.0.1:0").unwrap().build().unwrap();
    let client = Orb::builder().no_endpoint().build().unwrap();
    let reported = Arc::new(AtomicUsize::new(0));
    let count = reported.clone();
    let report = Some(Box::new(move |_: &_| {
        count.fetch_add(1, Ordering::SeqCst);
    }) as _);
    let mock = Mock::start(&server, known.clone(), MockOptions { report, ..Default::default() }).unwrap();
    let address = &server.published_addresses()[0];
    let (mut called, mut oneways, mut without) = (0, 0, Vec::new());
    for object in mock.objects() {
        let target =
            client.string_to_object(&format!("corbaloc::1.2@{address}/{}", object.keys()[0])).unwrap();
        // Without a type id the object is asked for its interface.
        let interface = known.of(&target).unwrap();
        assert_eq!(interface.id, object.interface().id);
        assert!(declaration(&interface).starts_with("interface "));
        'operations: for operation in &interface.operations {
            let what = format!("{}::{}", object.name(), operation.name);
            let mut request = Request::new(&target, operation.clone());
            for (index, parameter) in operation.sent() {
                let Ok(value) = DynAny::new(&parameter.type_code) else {
                    without.push(what); // types of local objects and natives
                    continue 'operations;
                };
                let value = value.to_any().unwrap_or_else(|e| panic!("{what}, {}: {e}", parameter.name));
                // Values pass through JSON, as in `ironorb call`.
                let json_value = json::to_json_with(&value, &known).unwrap_or_else(|e| panic!("{what}: {e}"));
                let value = json::from_json(&parameter.type_code, &json_value, &known, None);
                request
                    .set_any(index, &value.unwrap_or_else(|e| panic!("{what}: {e}: {json_value}")))
                    .unwrap();
            }
            match request.invoke() {
                Ok(_) if operation.oneway => oneways += 1,
                Ok(results) => {
                    let result = results.result().unwrap_or_else(|e| panic!("{what}: {e}"));
                    json::to_json_with(&result, &known).unwrap_or_else(|e| panic!("{what}: {e}"));
                    for (name, value) in results.outs().unwrap() {
                        json::to_json_with(&value, &known).unwrap_or_else(|e| panic!("{what}, {name}: {e}"));
                    }
                }
                // The result type has no values.
                Err(DynamicError::System(e)) if e.kind == SystemExceptionKind::NoImplement => {
                    without.push(what)
                }
                Err(e) => panic!("{what}: {e}"),
            }
            called += 1;
        }
    }
    assert!(mock.objects().len() > 150, "{} objects", mock.objects().len());
    assert!(called > 2000, "{called} calls");
    assert!(reported.load(Ordering::SeqCst) >= called - oneways, "{reported:?} of {called}");
    assert!(without.len() * 50 < called, "{} of {called} have no defaults: {without:?}", without.len());
    client.shutdown(true).unwrap();
    server.shutdown(true).unwrap();
}

fn collect(dir: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "idl") {
            files.push(path);
        }
    }
}
