//! A thread for each connection: it receives, calls the servant and replies. No request changes threads.

use std::io;
use std::sync::Arc;

use super::Shared;
use super::connection::Connection;
use super::threads::ThreadPlace;
use crate::connection::CurrentRequest;
use crate::object::deadline::Timeout;

pub(super) fn start(
    shared: &Arc<Shared>,
    connection: &Arc<Connection>,
    place: ThreadPlace,
) -> io::Result<()> {
    let (shared, served) = (shared.clone(), connection.clone());
    place.spawn("ironorb-connection", move || {
        let connection = served;
        let mut current_request = CurrentRequest::default();
        while let Ok(()) = connection.wait_for_work(&mut current_request, Timeout::NONE) {
            // If the connection has ended meanwhile, the next wait finds the end.
            let _ = connection.carry_out(&mut current_request);
        }
        shared.dedicated.lock().remove(&connection.id);
        if connection.found_end() {
            shared.close(&connection);
        }
    })
}
