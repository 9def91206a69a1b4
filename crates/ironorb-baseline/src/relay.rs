//! A relay between a client and a server that counts the bytes in both directions.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use ironorb::ObjectRef;
use ironorb::giop::ior::{IiopProfile, Ior};

/// A relay for one connection.
#[derive(Debug)]
pub struct Relay {
    reference: Ior,
    from_client: Arc<AtomicUsize>,
    from_server: Arc<AtomicUsize>,
}

impl Relay {
    /// Starts a relay to the server of an object, for one connection.
    ///
    /// # Errors
    /// The system refuses a port, or the object's reference has no IIOP profile.
    pub fn to(object: &ObjectRef) -> io::Result<Relay> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let port = listener.local_addr()?.port();
        let (reference, server) = redirected(object, port)?;
        let relay = Relay { reference, from_client: Arc::default(), from_server: Arc::default() };
        let (from_client, from_server) = (relay.from_client.clone(), relay.from_server.clone());
        std::thread::spawn(move || -> io::Result<()> {
            let (client, _) = listener.accept()?;
            let server = TcpStream::connect(server)?;
            let (client_too, server_too) = (client.try_clone()?, server.try_clone()?);
            std::thread::spawn(move || pass(server_too, client_too, &from_server));
            pass(client, server, &from_client);
            Ok(())
        });
        Ok(relay)
    }

    /// The reference that leads to the object through the relay.
    pub fn reference(&self) -> &Ior {
        &self.reference
    }

    /// The bytes passed on so far, to the server and to the client.
    pub fn counted(&self) -> (usize, usize) {
        (self.from_client.load(Ordering::SeqCst), self.from_server.load(Ordering::SeqCst))
    }
}

/// Returns a reference that leads to a port of this machine in place of the object's server, and the server's
/// host and port.
///
/// # Errors
/// The object's reference has no IIOP profile, or cannot be rewritten.
pub fn redirected(object: &ObjectRef, port: u16) -> io::Result<(Ior, (String, u16))> {
    let fault = |what: &str| io::Error::new(ErrorKind::InvalidData, what.to_owned());
    let profile = object.ior().iiop_profiles().find(|profile| profile.uiop_path().is_none());
    let profile = profile.ok_or_else(|| fault("the reference has no IIOP profile"))?;
    let server = (profile.host().to_owned(), profile.port());
    let components: Vec<_> = profile.components().collect();
    let relayed = IiopProfile::new(profile.version(), "127.0.0.1", port, profile.object_key(), &components)
        .map_err(|_| fault("the reference cannot be written anew"))?;
    Ok((Ior::with_profile(object.type_id(), relayed), server))
}

/// Counts bytes before it passes them on, so that the count includes all bytes that the receiver has.
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
