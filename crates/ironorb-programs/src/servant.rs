//! The servant of all objects of a process: it works and calls as long as the scenario says.

use std::cell::RefCell;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use ironorb::poa::PoaCurrent;
use ironorb::{Call, Orb, Replied, Servant};
use ironorb_model::scenario::{self, ServerLock};

use crate::board::{CallerNumber, Left, Told};
use crate::deployment::Deployment;
use crate::orbs::{Caller, REPOSITORY_ID, caller_and_object, write_zeros};

pub(crate) struct Bodies {
    deployment: Arc<Deployment>,
    process: u32,
    server: usize,
    orb: Orb,
}

thread_local! {
    /// Callers that the thread has been, the innermost one last: a call within the process has a servant call for a servant.
    static CALLERS: RefCell<Vec<Caller>> = const { RefCell::new(Vec::new()) };
}

impl Bodies {
    pub(crate) fn new(deployment: Arc<Deployment>, process: u32, server: usize, orb: Orb) -> Bodies {
        Bodies { deployment, process, server, orb }
    }

    fn server(&self) -> &scenario::Server {
        &self.deployment.scenario.servers[self.server]
    }

    /// What was told of a request.
    fn told(&self, operation: &[u8]) -> Option<(CallerNumber, Told)> {
        let id = PoaCurrent.object_id()?;
        let id = u64::from_be_bytes(id.as_bytes().try_into().ok()?);
        let server = self.server();
        let (caller, object) = caller_and_object(server, id);
        let is_it = |it: usize| server.operations[it].wire_name().as_bytes() == operation;
        let told = self.deployment.board().take(caller, (self.process, object), is_it)?;
        Some((caller, told))
    }

    /// Works for a call. True if all of its nested calls have ended with results.
    fn execute(&self, told: &mut Told) -> bool {
        let deployment = &*self.deployment;
        let server = self.server();
        let operation = &server.operations[told.operation];
        let Told { from, drawn, .. } = *told;
        // A call within the process has neither a request nor a reply.
        let (find, reply) = match from == self.process {
            true => (Duration::ZERO, Duration::ZERO),
            false => (drawn.steps.find, drawn.steps.reply),
        };
        let compute = |time| deployment.compute(self.process, time);
        if server.lock == ServerLock::None && !operation.sleeps && operation.calls.is_empty() {
            // What a thread does without a pause is one piece of work.
            compute(find + drawn.steps.execute + drawn.demand + reply);
            return true;
        }
        compute(find);
        let locked = deployment.lock(self.server, self.process, drawn.object);
        if operation.sleeps {
            compute(drawn.steps.execute);
            if !drawn.demand.is_zero() {
                thread::sleep(drawn.demand);
            }
        } else {
            compute(drawn.steps.execute + drawn.demand);
        }
        let has_results = self.call_others(operation, told);
        drop(locked);
        compute(reply);
        has_results
    }

    fn call_others(&self, operation: &scenario::Operation, told: &mut Told) -> bool {
        if operation.calls.is_empty() {
            return true;
        }
        let caller = CALLERS.with_borrow_mut(Vec::pop);
        let new = || Caller::new(self.deployment.clone(), self.orb.clone(), self.process);
        let mut caller = caller.unwrap_or_else(new);
        let turns = &self.deployment.processes[self.process as usize].turns;
        let have_results = caller.call_all(told.class, &operation.calls, &mut told.draws, turns);
        CALLERS.with_borrow_mut(|callers| callers.push(caller));
        have_results
    }
}

impl Servant for Bodies {
    fn repository_ids(&self) -> &[&'static str] {
        &[REPOSITORY_ID]
    }

    fn dispatch(&self, mut call: Call<'_>) -> Replied {
        let Some((caller, mut told)) = self.told(call.operation()) else {
            return call.standard_operation(&[REPOSITORY_ID]);
        };
        let operation = &self.server().operations[told.operation];
        if let Err(e) = call.arguments().read_bytes(operation.request_octets as usize) {
            return call.refuse_arguments(e);
        }
        let pool = self.deployment.pool_of(&told);
        let now = || self.deployment.now();
        if let Some(pool) = pool {
            let arrived = self.deployment.arrival(&told);
            self.deployment.board().pools[pool].begin(arrived, now());
        }
        let has_results = self.execute(&mut told);
        let mut board = self.deployment.board();
        if let Some(pool) = pool {
            board.pools[pool].end(now());
        }
        if !operation.is_oneway {
            board.leave(caller, Left { draws: told.draws, has_results });
        }
        drop(board);
        call.reply(|w| {
            write_zeros(w, operation.reply_octets as usize);
            Ok(())
        })
    }
}
