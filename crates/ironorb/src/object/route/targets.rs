//! The addresses of a route, by their indices: those for all, those for one priority each, and those that policies select.

use ironorb_giop::message::RequestTarget;

use super::{Reference, Replaced};
use crate::object::ObjectRef;
use crate::object::priority::{Priority, current_priority};
use crate::object::selection::{ConnectionWish, InconsistentPolicies, Selection, Selections, selected};
use crate::object::server_profile::{PriorityUse, ServerProfile, ServerTarget};

/// At least one address, with what requests of the object begin with there.
#[derive(Clone, Copy)]
pub(crate) struct Targets<'r> {
    pub(super) servers: &'r [ServerTarget],
    pub(super) requests: Requests<'r>,
    pub(super) profile: &'r ServerProfile,
}

/// The addresses for one priority each have indices from here on, above those of the addresses for all.
const FIRST_FOR_ONE_PRIORITY: usize = 1 << 16;
/// The addresses of selections that references share have indices from here on, those of each from a multiple of
/// [`SELECTED_MAX`].
const FIRST_SELECTED: usize = 1 << 20;
/// Those of private selections have indices from here on.
const FIRST_PRIVATE: usize = 1 << 30;
/// The most addresses of a selection that have an index. Calls try no more.
const SELECTED_MAX: usize = 1 << 8;

/// The addresses that a call may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Selected {
    /// The index of the first of them.
    pub(crate) first: usize,
    /// The index of the address to try before all.
    pub(crate) preferred: Option<usize>,
}

/// What requests begin with, for each profile that can be used.
#[derive(Clone, Copy)]
pub(super) enum Requests<'r> {
    Of(&'r Reference),
    In(&'r Replaced),
}

/// An address with all that requests of an object have in common there.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Target<'r> {
    pub(crate) request: &'r RequestTarget,
    pub(crate) server: &'r ServerTarget,
}

impl<'r> Targets<'r> {
    /// The addresses that a call may take in a real-time ORB. Takes locks when it is first asked.
    pub(crate) fn select(self, wish: &ConnectionWish) -> Result<Selected, InconsistentPolicies> {
        let Some(key) = self.profile.selection_key(wish)? else {
            let lane = self.profile.lane_target(wish.priority());
            return Ok(Selected {
                first: 0,
                preferred: lane.map(|(place, _)| FIRST_FOR_ONE_PRIORITY + place),
            });
        };
        let (list, all) = match key.is_private {
            true => (self.private(), FIRST_PRIVATE),
            false => (self.profile.selections(), FIRST_SELECTED),
        };
        let (number, selection) = selected(list, self.profile, key);
        let selection = selection.as_ref().map_err(|e| *e)?;
        let first = all + number * SELECTED_MAX;
        Ok(Selected { first, preferred: selection.preferred(key, wish).map(|place| first + place) })
    }

    /// The addresses of a selection, whose first has this index.
    pub(crate) fn servers_from(self, first: usize) -> &'r [ServerTarget] {
        match self.selection_with(first) {
            Some((selection, _)) => &selection.targets[..selection.targets.len().min(SELECTED_MAX)],
            None => self.servers,
        }
    }

    /// All addresses to which calls have gone, those of lanes and of selections, too.
    pub(crate) fn all_servers(self) -> impl Iterator<Item = &'r ServerTarget> {
        let lists = [self.private_if_any(), Some(self.profile.selections())].into_iter().flatten();
        let selections =
            lists.flat_map(Selections::iter).filter_map(|(_, selection)| selection.as_ref().ok());
        let selected = selections.flat_map(|selection| &selection.targets);
        self.servers.iter().chain(self.profile.known_lane_targets()).chain(selected)
    }

    /// The address with this index.
    #[inline]
    pub(crate) fn get(self, index: usize) -> Option<Target<'r>> {
        let server = match self.servers.get(index) {
            Some(server) => server,
            None => self.get_special(index)?,
        };
        let request = match (self.requests, server.form) {
            (Requests::Of(reference), form) => reference.request_by(form)?,
            (Requests::In(replaced), form) => replaced.location.requests().get(form)?,
        };
        Some(Target { request, server })
    }

    #[cold]
    fn get_special(self, index: usize) -> Option<&'r ServerTarget> {
        match self.selection_with(index) {
            Some((selection, place)) => selection.targets.get(place),
            None => self.profile.lane_target_at(index.checked_sub(FIRST_FOR_ONE_PRIORITY)?),
        }
    }

    /// The selection that has the address with this index, and the address's place there.
    fn selection_with(self, index: usize) -> Option<(&'r Selection, usize)> {
        let (list, index) = match index {
            FIRST_PRIVATE.. => (self.private_if_any()?, index - FIRST_PRIVATE),
            FIRST_SELECTED.. => (self.profile.selections(), index - FIRST_SELECTED),
            _ => return None,
        };
        let (_, selection) = list.iter().nth(index / SELECTED_MAX)?;
        Some((selection.as_ref().ok()?, index % SELECTED_MAX))
    }

    fn private(self) -> &'r Selections {
        match self.requests {
            Requests::Of(reference) => &reference.rare().private,
            Requests::In(replaced) => &replaced.private,
        }
    }

    fn private_if_any(self) -> Option<&'r Selections> {
        match self.requests {
            Requests::Of(reference) => Some(&reference.rare.get()?.private),
            Requests::In(replaced) => Some(&replaced.private),
        }
    }
}

impl Reference {
    /// The first address, where a [`settled`](Self::settled) reference has one.
    #[inline]
    pub(crate) fn first_target(&self) -> Option<Target<'_>> {
        Some(Target { request: &self.request, server: self.server.first_target()? })
    }

    /// What requests by the profile with this number begin with.
    #[inline(always)] // a step of every call with a priority
    fn request_by(&self, form: usize) -> Option<&RequestTarget> {
        match form {
            0 => Some(&self.request),
            form => self.further().get(form - 1),
        }
    }

    /// The addresses in the reference itself.
    pub(super) fn original_targets(&self) -> Targets<'_> {
        let (servers, profile) = (self.server.known_targets(), &*self.server);
        Targets { servers, requests: Requests::Of(self), profile }
    }

    /// The address that a call of `object` takes, where the reference is its [`settled`](Self::settled) one. `None` where the
    /// general path must be taken.
    #[inline]
    pub(crate) fn target_now(&self, object: &ObjectRef) -> Option<Target<'_>> {
        match self.server.orb().shared().real_time {
            None => self.first_target(),
            Some(_) => self.target_for(object, current_priority()),
        }
    }

    /// What a call of a real-time ORB makes of the priority of its thread.
    #[inline(always)] // a step of every call with a priority
    pub(crate) fn priority_use(&self, object: &ObjectRef) -> PriorityUse {
        if object.may_choose_connections() { PriorityUse::Any } else { self.server.priority_use() }
    }

    /// The address of a call at this priority, where [`PriorityUse::Told`] holds.
    #[inline(always)] // a step of every call with a priority
    pub(crate) fn target_of_priority(&self, priority: Priority) -> Option<Target<'_>> {
        Some(Target { request: &self.request, server: self.server.known_target_for(priority)? })
    }

    /// The address of a real-time ORB's call at this priority: that for the priority, or else the first one.
    #[inline(always)] // a step of every call with a priority
    pub(crate) fn target_for(&self, object: &ObjectRef, priority: Option<Priority>) -> Option<Target<'_>> {
        if object.may_choose_connections() {
            return self.target_chosen(object);
        }
        match self.server.lane_target(priority) {
            Some((_, server)) => Some(Target { request: self.request_by(server.form)?, server }),
            None => self.first_target(),
        }
    }

    /// The address that policies choose. `None` where none suits them, and for the first request of a band's connection: the
    /// general path tells the band. A thread that finds a connection which another has just made anew may send a request
    /// before.
    #[inline(never)]
    fn target_chosen(&self, object: &ObjectRef) -> Option<Target<'_>> {
        let targets = self.original_targets();
        let selected = targets.select(&ConnectionWish::now(object)).ok()?;
        let target = targets.get(selected.preferred.unwrap_or(selected.first))?;
        (!target.server.endpoint.has_band_to_tell()).then_some(target)
    }
}
