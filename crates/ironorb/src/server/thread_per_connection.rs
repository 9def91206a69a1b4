//! A thread for each connection: it receives, runs the servant and answers, without a hand-over.

use std::io;
use std::sync::Arc;

use super::connection::{Connection, Spare};
use super::{Shared, spawn};

pub(super) fn start(shared: &Arc<Shared>, connection: &Arc<Connection>) -> io::Result<()> {
    let (shared, served) = (shared.clone(), connection.clone());
    spawn("ironorb-connection", move || {
        let connection = served;
        let mut spare = Spare::default();
        while let Ok(work) = connection.wait_for_work(&mut spare, None) {
            // Should it have ended meanwhile, this thread finds the end as well.
            let _ = connection.carry_out(work, &mut spare);
        }
        if connection.found_end() {
            shared.close(&connection);
        }
    })
}
