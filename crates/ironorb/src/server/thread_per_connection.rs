//! A thread for each connection: it receives, runs the servant and answers, without a hand-over.

use std::io;
use std::sync::Arc;

use super::Shared;
use super::connection::{Connection, CurrentRequest};
use super::threads::ThreadPlace;
use crate::sync::lock;

pub(super) fn start(
    shared: &Arc<Shared>,
    connection: &Arc<Connection>,
    place: ThreadPlace,
) -> io::Result<()> {
    let (shared, served) = (shared.clone(), connection.clone());
    place.spawn("ironorb-connection", move || {
        let connection = served;
        let mut current_request = CurrentRequest::default();
        while let Ok(()) = connection.wait_for_work(&mut current_request, None) {
            // Should it have ended meanwhile, this thread finds the end as well.
            let _ = connection.carry_out(&mut current_request);
        }
        lock(&shared.dedicated).remove(&connection.id);
        if connection.found_end() {
            shared.close(&connection);
        }
    })
}
