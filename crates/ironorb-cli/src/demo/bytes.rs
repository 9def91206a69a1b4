//! How many bytes a call is on the wire: counted by a relay between client and server, so that the plain socket carries
//! what is really sent.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use ironorb::giop::ior::{IiopProfile, Ior};
use ironorb::{Orb, TypedRef as _};
use ironorb_bench::raw::Exchange;

use super::failed;
use super::idl::demo::SensorRef;
use super::measure::Row;
use crate::failure::Failure;

/// Makes the calls of one sample by way of a relay, after a first one that brings the connection up.
pub(super) fn of(row: &Row, sensor: &SensorRef) -> Result<Exchange, Failure> {
    let relay = Relay::to(sensor)?;
    let orb = Orb::builder().no_endpoint().build().map_err(Failure::new)?;
    let sensor = orb.ior_to_object(relay.ior.clone()).map_err(Failure::new)?.narrow_unchecked();
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

/// Passes one connection on, and counts.
struct Relay {
    /// Leads to the object by way of the relay.
    ior: Ior,
    to_server: Arc<AtomicUsize>,
    to_client: Arc<AtomicUsize>,
}

impl Relay {
    fn to(sensor: &SensorRef) -> Result<Relay, Failure> {
        let io = failed::<std::io::Error>;
        let profile = sensor.object().ior().iiop_profiles().next();
        let profile = profile.ok_or_else(|| Failure::new("the sensor's reference has no IIOP profile"))?;
        let server = (profile.host().to_owned(), profile.port());
        let listener = TcpListener::bind("127.0.0.1:0").map_err(io("listening"))?;
        let port = listener.local_addr().map_err(io("listening"))?.port();
        let components: Vec<_> = profile.components().collect();
        let profile =
            IiopProfile::new(profile.version(), "127.0.0.1", port, profile.object_key(), &components);
        let profile = profile.map_err(|_| Failure::new("the sensor's reference cannot be written"))?;
        let (to_server, to_client) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
        let (requests, replies) = (to_server.clone(), to_client.clone());
        std::thread::spawn(move || -> std::io::Result<()> {
            let (client, _) = listener.accept()?;
            let server = TcpStream::connect(server)?;
            let (client_too, server_too) = (client.try_clone()?, server.try_clone()?);
            std::thread::spawn(move || pass(server_too, client_too, &replies));
            pass(client, server, &requests);
            Ok(())
        });
        Ok(Relay { ior: Ior::with_profile(sensor.object().type_id(), profile), to_server, to_client })
    }

    fn counted(&self) -> (usize, usize) {
        (self.to_server.load(Ordering::SeqCst), self.to_client.load(Ordering::SeqCst))
    }
}

/// Counts before it passes on: whoever has the bytes can rely on the count.
fn pass(mut from: TcpStream, mut to: TcpStream, counter: &AtomicUsize) {
    let mut space = vec![0; 64 << 10];
    while let Ok(count @ 1..) = from.read(&mut space) {
        counter.fetch_add(count, Ordering::SeqCst);
        if to.write_all(&space[..count]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
}
