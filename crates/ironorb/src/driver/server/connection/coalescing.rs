//! Sends replies that wait for others, and times them.

use std::sync::Weak;

use ironorb_giop::connection::ServerConnection;

use super::Connection;
use crate::base::time::Time;
use crate::connection::ReplyFate;
use crate::driver::client::ReceiverCheck;
use crate::driver::clock;

impl Connection {
    /// Called before an upcall. Sends the waiting replies unless they may wait on.
    pub(super) fn before_upcall(&self) {
        if self.session.holds_replies() && self.session.must_send_before_upcall(clock_of_replies()) {
            self.send_held();
            self.note_all_sent();
        }
    }

    /// Called when replies have been sent, by the thread that may carry out the next request.
    pub(super) fn note_all_sent(&self) {
        if self.session.is_in_a_row() {
            self.session.note_turn_begins(clock_of_replies());
        }
    }

    /// Called when a reply has been written. True when it waits for others. False when it is being sent now,
    /// with all that wait.
    pub(super) fn holds(&self, sender: &mut ServerConnection) -> bool {
        match self.session.handle_reply_written(sender.transmit().pending_bytes(), clock_of_replies()) {
            ReplyFate::Send => false,
            ReplyFate::Wait => true,
            ReplyFate::WaitWithTimer => self.starts_timer(),
        }
    }

    /// Has the ORB's receiver thread look at the connection after about a millisecond.
    fn starts_timer(&self) -> bool {
        let receiver = self.client_lane().receiver();
        if receiver.start().is_err() {
            self.session.handle_no_timer();
            return false;
        }
        let checked: Weak<dyn ReceiverCheck> = self.itself.clone();
        receiver.look_soon(&checked);
        true
    }

    /// Sends the waiting replies. Must be called before the thread waits for anything.
    #[inline]
    pub(super) fn send_what_is_held(&self) {
        if self.session.holds_replies() {
            self.send_held();
        }
    }

    #[cold]
    pub(super) fn send_held(&self) {
        self.with(|_| {});
    }
}

/// The time by which replies wait.
fn clock_of_replies() -> Time {
    #[cfg(debug_assertions)]
    if crate::base::testing::is_clock_of_replies_still() {
        return Time::ZERO;
    }
    clock::now()
}

/// The receiver thread checks a connection whose servant takes long.
impl ReceiverCheck for Connection {
    fn on_receiver_check(&self) {
        if self.session.handle_held_timer() {
            self.send_held();
        }
    }
}
