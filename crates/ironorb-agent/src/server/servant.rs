//! The agent's servant: it only converts requests.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use ironorb::{SystemException, SystemExceptionKind};

use super::convert::{filter, offer, owner_key, owner_status, server, system, to_idl_key};
use super::{Fault, Shared, State, unguessable};
use crate::idl::{
    self, Agent, AgentStatus, AgentWatchRef, Condition, Lease, Offer, OwnerKey, Resolution, Resolved,
    TextSeq, agent,
};
use crate::registry;

pub(super) struct AgentServant {
    pub(super) shared: Arc<Shared>,
    pub(super) changes: AgentWatchRef,
}

impl AgentServant {
    fn count_registrations(&self, count: usize) {
        self.shared.counts.registrations.fetch_add(count as u64, Ordering::Relaxed);
    }

    fn renewed(&self, key: &OwnerKey, requests: Option<u32>) -> Result<u32, Fault> {
        self.shared.counts.renewals.fetch_add(1, Ordering::Relaxed);
        // A renewal changes nothing that watchers or a store must learn.
        let (mut state, now) = self.shared.write();
        let lease = state.registry.renew_loaded(owner_key(key), requests, now).map_err(Fault::Refused)?;
        Ok(lease.as_millis() as u32)
    }

    fn count_resolutions(&self, count: usize) {
        self.shared.counts.resolutions.fetch_add(count as u64, Ordering::Relaxed);
    }
}

impl Agent for AgentServant {
    fn open(&self, lease_ms: u32) -> Result<Lease, agent::OpenError> {
        let (token, asked) = (unguessable(), Duration::from_millis(lease_ms.into()));
        let (key, lease) = self.shared.change(|registry, now| registry.open(token, asked, now))?;
        Ok(Lease { key: to_idl_key(key), lease_ms: lease.as_millis() as u32 })
    }

    fn renew(&self, key: &OwnerKey) -> Result<u32, agent::RenewError> {
        Ok(self.renewed(key, None)?)
    }

    fn renew_loaded(&self, key: &OwnerKey, requests: u32) -> Result<u32, agent::RenewLoadedError> {
        Ok(self.renewed(key, Some(requests))?)
    }

    fn close(&self, key: &OwnerKey) -> Result<(), agent::CloseError> {
        Ok(self.shared.change(|registry, now| registry.close(owner_key(key), now))?)
    }

    fn register(&self, key: &OwnerKey, offers: &[Offer]) -> Result<u64, agent::RegisterError> {
        self.count_registrations(offers.len());
        let offers = offers.iter().map(offer).collect();
        Ok(self.shared.change(|registry, now| registry.register(owner_key(key), offers, now))?)
    }

    fn register_exclusive(
        &self,
        key: &OwnerKey,
        the_offer: &Offer,
        expected: u64,
    ) -> Result<u64, agent::RegisterExclusiveError> {
        self.count_registrations(1);
        let (key, offer) = (owner_key(key), offer(the_offer));
        Ok(self.shared.claim(key, offer, expected)?)
    }

    fn remove(&self, key: &OwnerKey, name: &str, reference: &str) -> Result<bool, agent::RemoveError> {
        let key = owner_key(key);
        Ok(self.shared.change(|registry, now| registry.remove(key, name, reference, now))?)
    }

    fn resolve(&self, name: &str, conditions: &[Condition]) -> Result<Resolution, SystemException> {
        self.count_resolutions(1);
        Ok(resolution(&self.shared.read(), name, &filter(conditions)))
    }

    fn resolve_many(&self, names: &[String], conditions: &[Condition]) -> Result<Resolved, SystemException> {
        self.count_resolutions(names.len());
        let filter = filter(conditions);
        let state = self.shared.read();
        Ok(Resolved {
            life: state.registry.life(),
            revision: state.registry.revision(),
            names: names.iter().map(|name| resolution(&state, name, &filter)).collect(),
        })
    }

    fn list(&self, prefix: &str, after: &str, count_max: u32) -> Result<TextSeq, SystemException> {
        let state = self.shared.read();
        let after = (!after.is_empty()).then_some(after);
        let names = state.registry.list(prefix, after, (count_max as usize).min(LISTED_MAX));
        Ok(names.map(|name| name.as_ref().into()).collect())
    }

    fn changes(&self) -> Result<Option<AgentWatchRef>, SystemException> {
        Ok(Some(self.changes.clone()))
    }

    fn status(&self) -> Result<AgentStatus, SystemException> {
        Ok(self.shared.status())
    }

    fn owners(&self, after: u64, count_max: u32) -> Result<idl::OwnerStatusSeq, SystemException> {
        let count_max = (count_max as usize).min(OWNERS_MAX);
        let state = self.shared.read();
        let seen = state.registry.owners_after(after, count_max, self.shared.started.elapsed());
        drop(state);
        Ok(seen.into_iter().map(owner_status).collect())
    }

    fn backup(&self) -> Result<String, SystemException> {
        match self.shared.backup() {
            Ok(Some(path)) => Ok(path.display().to_string()),
            Ok(None) => Err(system(SystemExceptionKind::NoPermission, "the agent has no folder for backups")),
            Err(fault) => {
                (self.shared.report)(&fault);
                Err(system(SystemExceptionKind::PersistStore, fault))
            }
        }
    }
}

fn resolution(state: &State, name: &str, filter: &[registry::Condition]) -> Resolution {
    let (revision, entries) = state.registry.resolve(name, filter);
    let servers: idl::ServerSeq = entries.map(|entry| server(entry)).collect();
    Resolution { name: name.to_owned(), revision, servers }
}

const LISTED_MAX: usize = 10_000;
const OWNERS_MAX: usize = 1_000;
