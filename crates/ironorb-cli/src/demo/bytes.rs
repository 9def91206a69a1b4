//! Counts the bytes of a call on the wire with a relay between client and server. The plain socket then sends
//! as many.

use ironorb::{Orb, TypedRef as _};
use ironorb_baseline::raw::Exchange;
use ironorb_baseline::relay::Relay;

use super::idl::demo::SensorRef;
use super::measure::Row;
use crate::failure::Failure;

/// Makes the calls of one sample through a relay, after a first sample that opens the connection.
pub(super) fn of(row: &Row, sensor: &SensorRef) -> Result<Exchange, Failure> {
    let relay = Relay::to(sensor.object()).map_err(Failure::new)?;
    let orb = Orb::builder().no_endpoint().build().map_err(Failure::new)?;
    let relayed = relay.reference_to(sensor.object()).map_err(Failure::new)?;
    let sensor = orb.ior_to_object(relayed).map_err(Failure::new)?.narrow_unchecked();
    (row.sample)(&sensor)?;
    let before = relay.bytes();
    (row.sample)(&sensor)?;
    let after = relay.bytes();
    orb.shutdown(false).map_err(Failure::new)?;
    Ok(Exchange {
        requests: row.requests,
        request_bytes: (after.0 - before.0) / row.requests,
        reply_bytes: after.1 - before.1,
    })
}
