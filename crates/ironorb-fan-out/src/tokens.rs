//! Tokens of forwarded parts: who waits for what servers will tell, and which parts a server has carried out.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// 128 bits that nobody can guess. Whoever knows them may tell how a part has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Token {
    /// The first half.
    pub high: u64,
    /// The second half.
    pub low: u64,
}

/// The parts of a client whose results servers tell. Each is told once, and one that nobody waits for is not told at all.
#[derive(Debug)]
pub struct Expected<W> {
    waiting: BTreeMap<Token, W>,
    /// Whether the daemon has a request that fails when it dies.
    attends: bool,
}

/// How a request has ended that the daemon keeps as long as it lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Attendance {
    /// It has waited long enough: whoever still waits for parts asks again.
    Again,
    /// The daemon has passed on all parts that it had, or does not know such requests.
    Over,
    /// The daemon has died, or the connection to it has.
    Died,
}

impl<W> Default for Expected<W> {
    fn default() -> Self {
        Expected { waiting: BTreeMap::new(), attends: false }
    }
}

impl<W> Expected<W> {
    /// Has a part wait. Gives whether the token is new; if not, another is needed.
    pub fn expect(&mut self, token: Token, who: W) -> bool {
        match self.waiting.entry(token) {
            std::collections::btree_map::Entry::Vacant(free) => {
                free.insert(who);
                true
            }
            std::collections::btree_map::Entry::Occupied(_) => false,
        }
    }

    /// A part has been told. Gives who waits for it: nobody, if the token is unknown, forgotten or was used.
    pub fn told(&mut self, token: Token) -> Option<W> {
        self.waiting.remove(&token)
    }

    /// Nobody waits for these any more.
    pub fn forget(&mut self, tokens: &[Token]) {
        for token in tokens {
            self.waiting.remove(token);
        }
    }

    /// Whether the daemon must be asked to say when it ends: parts are about to go to it, and no such request is under way.
    pub fn must_attend(&mut self) -> bool {
        !std::mem::replace(&mut self.attends, true)
    }

    /// The daemon's request has ended. Gives whether to ask again, and whose parts are lost: they may have been passed on, and
    /// nobody can say.
    pub fn attended(&mut self, how: Attendance) -> (bool, Vec<W>) {
        self.attends = how == Attendance::Again && !self.waiting.is_empty();
        let lost = match how {
            Attendance::Died => std::mem::take(&mut self.waiting).into_values().collect(),
            Attendance::Again | Attendance::Over => Vec::new(),
        };
        (self.attends, lost)
    }

    /// How many parts wait.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Whether no part waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

/// The last tokens that a server has got: a request that comes again with one of them is not carried out again.
#[derive(Debug)]
pub struct SeenTokens {
    kept_max: usize,
    tokens: BTreeSet<Token>,
    order: VecDeque<Token>,
}

impl SeenTokens {
    /// Remembers so many.
    pub fn new(kept_max: usize) -> SeenTokens {
        SeenTokens { kept_max, tokens: BTreeSet::new(), order: VecDeque::new() }
    }

    /// Whether a token is new.
    pub fn note(&mut self, token: Token) -> bool {
        if !self.tokens.insert(token) {
            return false;
        }
        self.order.push_back(token);
        if self.order.len() > self.kept_max
            && let Some(oldest) = self.order.pop_front()
        {
            self.tokens.remove(&oldest);
        }
        true
    }
}
