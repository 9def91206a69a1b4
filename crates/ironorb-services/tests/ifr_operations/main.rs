//! Calls every operation and attribute of `idl/ir.idl` over TCP, from a client that knows only the IDL.
//!
//! An interceptor records the calls. The test compares them with the IDL at the end, so that no operation of
//! the interface repository stays untested.

mod containers;
mod interfaces;
mod support;
mod types;
mod values;

use support::Session;

#[test]
fn every_operation_is_called_over_the_wire() {
    let session = Session::start();
    containers::what_all_definitions_have(&session);
    containers::looking(&session);
    containers::moving_and_destroying(&session);
    containers::refusals(&session);
    types::nameless(&session);
    types::constructed(&session);
    types::constants_and_exceptions(&session);
    types::canonical(&session);
    interfaces::remote(&session);
    interfaces::abstract_and_local(&session);
    interfaces::attributes_and_operations(&session);
    interfaces::inherited_names(&session);
    values::plain(&session);
    values::with_exceptions(&session);
    values::boxes_and_natives(&session);
    assert_eq!(session.never_called(), Vec::<String>::new());
}
