//! Every operation and attribute of `idl/ir.idl`, called over TCP by a client that knows nothing but the IDL.
//!
//! What was called is written down by an interceptor and compared with the IDL at the end, so that nothing that the
//! interface repository offers stays untried.

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
