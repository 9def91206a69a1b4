//! How many bytes a call is on the wire: counted by a relay between client and server, so that the plain socket carries
//! what is really sent.

use ironorb::{Orb, TypedRef as _};
use ironorb_baseline::raw::Exchange;
use ironorb_baseline::relay::Relay;

use super::idl::demo::SensorRef;
use super::measure::Row;
use crate::failure::Failure;

/// Makes the calls of one sample by way of a relay, after a first one that brings the connection up.
pub(super) fn of(row: &Row, sensor: &SensorRef) -> Result<Exchange, Failure> {
    let relay = Relay::to(sensor.object()).map_err(Failure::new)?;
    let orb = Orb::builder().no_endpoint().build().map_err(Failure::new)?;
    let sensor = orb.ior_to_object(relay.reference().clone()).map_err(Failure::new)?.narrow_unchecked();
    (row.sample)(&sensor)?;
    let before = relay.counted();
    (row.sample)(&sensor)?;
    let after = relay.counted();
    orb.shutdown(false).map_err(Failure::new)?;
    Ok(Exchange {
        requests: row.requests,
        request_bytes: (after.0 - before.0) / row.requests,
        reply_bytes: after.1 - before.1,
    })
}
