//! How many bytes a call is on the wire, so that the baseline carries what is sent and not what somebody once
//! counted.

use ironorb::Orb;

use crate::error::BenchError;
use crate::rows::Row;
use ironorb_baseline::raw::Exchange;
use ironorb_baseline::relay::Relay;

/// Counts the bytes of one sample of a row, in the steady state.
pub(crate) fn of(row: Row, reference: &str) -> Result<Exchange, BenchError> {
    let orb = Orb::builder().no_endpoint().build()?;
    let direct = orb.string_to_object(reference)?;
    let relay = Relay::to(&direct).map_err(BenchError::io("relay calls"))?;
    let echo = orb.ior_to_object(relay.reference().clone())?.narrow_unchecked();
    let mut sample = row.sample(echo);
    // The first call tells the code sets.
    sample()?;
    let (requests_before, replies_before) = relay.counted();
    sample()?;
    let (requests_after, replies_after) = relay.counted();
    drop(sample);
    orb.shutdown(false)?;
    let bytes = requests_after - requests_before;
    // A plain socket's are not messages: as much leaves together as the ORB lets.
    let requests = if row.is_batched() { bytes.div_ceil(BATCH_BYTES) } else { row.requests_per_sample() };
    Ok(Exchange { requests, request_bytes: bytes / requests, reply_bytes: replies_after - replies_before })
}

/// As much as oneways of an ORB that batches them leave together.
const BATCH_BYTES: usize = ironorb::OnewayBatching::DEFAULT.bytes_max;
