//! Which address of a route a call tries, and what a call changes in the route.

use ironorb_giop::exception::SystemException;

use super::invocation::Next;
use crate::object::route::Reference;
use crate::object::server_profile::ServerTarget;

/// The addresses of a route that have been tried since it was looked up. Of a route with more than 64
/// addresses the rest is never tried.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Attempts {
    tried: u64,
    /// Whether the address for the call's priority has been tried.
    has_tried_lane: bool,
}

impl Attempts {
    /// Marks an address as tried.
    #[inline]
    pub(crate) fn mark(&mut self, index: usize) {
        self.tried |= 1u64.checked_shl(index as u32).unwrap_or(0);
    }

    /// True once: then the address for the call's priority may be tried, before all others.
    pub(crate) fn take_lane(&mut self) -> bool {
        !std::mem::replace(&mut self.has_tried_lane, true)
    }

    /// Returns the next address to try, in order of preference. Addresses that failed a short while ago come
    /// last.
    #[inline]
    pub(crate) fn next(&mut self, count: usize, is_failing: impl Fn(usize) -> bool) -> Option<usize> {
        if self.tried == 0 && count > 0 && !is_failing(0) {
            self.tried = 1;
            return Some(0);
        }
        self.next_untried(count, is_failing)
    }

    #[cold]
    fn next_untried(&mut self, count: usize, is_failing: impl Fn(usize) -> bool) -> Option<usize> {
        let untried = |index: &usize| self.tried & (1 << index) == 0;
        let mut rest = (0..count.min(ATTEMPTS_MAX)).filter(untried);
        let next = rest.clone().find(|&index| !is_failing(index)).or_else(|| rest.next())?;
        self.mark(next);
        Some(next)
    }

    /// How many addresses have not been tried.
    pub(crate) fn left(self, count: usize) -> usize {
        count.min(ATTEMPTS_MAX).saturating_sub(self.tried.count_ones() as usize)
    }

    /// Passes over the other addresses of a server that has answered that it cannot serve at the moment.
    /// False when no other server is left.
    pub(crate) fn pass_over(&mut self, targets: &[ServerTarget]) -> bool {
        let servers_tried: Vec<usize> = targets
            .iter()
            .enumerate()
            .take(ATTEMPTS_MAX)
            .filter(|(index, _)| self.tried & (1 << index) != 0)
            .map(|(_, target)| target.server)
            .collect();
        for (index, target) in targets.iter().enumerate().take(ATTEMPTS_MAX) {
            if servers_tried.contains(&target.server) {
                self.mark(index);
            }
        }
        self.left(targets.len()) > 0
    }
}

const ATTEMPTS_MAX: usize = u64::BITS as usize;

impl Reference {
    /// Applies a decision about a call to the route. An error ends the call.
    #[cold]
    pub(crate) fn take(&self, next: Next) -> Result<(), SystemException> {
        let is_change = matches!(next, Next::FallBack | Next::Follow { .. } | Next::Readdress(_));
        let taken = match next {
            Next::Fail(e) => Err(e),
            // Which of the addresses comes next concerns the call alone.
            Next::Resend | Next::TryNext(_) => Ok(()),
            Next::FallBack => {
                self.fall_back();
                Ok(())
            }
            Next::Follow { ior, permanent } => self.forward(ior, permanent),
            Next::Readdress(disposition) => self.readdress(disposition),
        };
        if is_change {
            // sync: leased-or-forwarded. Leases hold for the old route.
            self.revoke_leases();
        }
        taken
    }
}
