//! IronORB as a client of the contract: calls every operation of any server and reports results that differ
//! from `idl/interop.idl`.

mod later;
mod objects;
mod parts;
mod runner;
mod time;
mod types;
mod value;
mod value_parts;
mod values;

pub use runner::{Report, Target};

use runner::Cases;

/// Runs all cases. `skips` has names of cases, or of groups (`big` is `big/...`), each with the reason why
/// the run leaves them out. A skip that matches no case counts as a failure.
pub fn run(target: &Target, skips: &[(&str, &str)]) -> Report {
    crate::suite::register_values(&target.orb);
    let mut cases = Cases::new(target, skips);
    types::basics(&mut cases);
    types::sequences(&mut cases);
    types::arrays(&mut cases);
    types::structs(&mut cases);
    types::unions(&mut cases);
    types::wide(&mut cases);
    types::big_messages(&mut cases);
    objects::attributes(&mut cases);
    objects::faults(&mut cases);
    objects::references(&mut cases);
    objects::callbacks(&mut cases);
    parts::anys(&mut cases);
    parts::typecodes(&mut cases);
    parts::fixed(&mut cases);
    parts::long_double(&mut cases);
    value::values(&mut cases);
    value::chunks(&mut cases);
    value::boxes(&mut cases);
    value::boxed_members(&mut cases);
    value_parts::abstracts(&mut cases);
    value_parts::customs(&mut cases);
    value_parts::value_anys(&mut cases);
    time::control(&mut cases);
    time::threads(&mut cases);
    later::later(&mut cases);
    cases.finish()
}
