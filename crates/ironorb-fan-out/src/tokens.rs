//! Tokens of forwarded parts: who waits for what servers will tell, and which parts a server has carried out.

use std::collections::btree_map::Entry;
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
///
/// The daemon has a request that it answers when it ends, and that fails when it dies: parts that it had are lost then. A driver asks
/// before it sends parts ([`must_attend`](Self::must_attend)), so that the request is on the same connection or an older one, and says
/// afterwards that it has sent them ([`sent`](Self::sent)).
#[derive(Debug)]
pub struct Expected<W> {
    waiting: BTreeMap<Token, Awaited<W>>,
    /// Whether the daemon has such a request.
    attends: bool,
    deaths: Deaths,
}

#[derive(Debug)]
struct Awaited<W> {
    who: W,
    /// The daemon may have it.
    is_sent: bool,
}

/// How often a client's daemon has died.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Deaths(u64);

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

/// What follows from the end of a daemon's request, or from parts that were sent.
#[derive(Debug, PartialEq, Eq)]
pub struct Attended<W> {
    /// The daemon must be asked, again.
    pub asks: bool,
    /// Parts that may have been passed on, and of which nobody can say more: COMM_FAILURE, COMPLETED_MAYBE.
    pub lost: Vec<W>,
}

impl<W> Default for Expected<W> {
    fn default() -> Self {
        Expected { waiting: BTreeMap::new(), attends: false, deaths: Deaths::default() }
    }
}

impl<W> Expected<W> {
    /// Has a part wait. Gives whether the token is new; if not, another is needed.
    pub fn expect(&mut self, token: Token, who: W) -> bool {
        match self.waiting.entry(token) {
            Entry::Vacant(free) => {
                free.insert(Awaited { who, is_sent: false });
                true
            }
            Entry::Occupied(_) => false,
        }
    }

    /// A part has been told. Gives who waits for it: nobody, if the token is unknown, forgotten or was used.
    pub fn told(&mut self, token: Token) -> Option<W> {
        self.waiting.remove(&token).map(|part| part.who)
    }

    /// Nobody waits for these any more.
    pub fn forget(&mut self, tokens: &[Token]) {
        for token in tokens {
            self.waiting.remove(token);
        }
    }

    /// Parts are about to go to the daemon. Gives whether it must be asked to say when it ends: no such request is under way.
    pub fn must_attend(&mut self) -> bool {
        !std::mem::replace(&mut self.attends, true)
    }

    /// How often the daemon has died.
    pub fn deaths(&self) -> Deaths {
        self.deaths
    }

    /// Parts have gone to the daemon, after so many deaths. If it has died since, nobody knows which daemon has got them.
    pub fn sent(&mut self, tokens: &[Token], deaths: Deaths) -> Attended<W> {
        if self.deaths != deaths {
            let lost = tokens.iter().filter_map(|token| self.told(*token)).collect();
            return Attended { asks: false, lost };
        }
        for token in tokens {
            if let Some(part) = self.waiting.get_mut(token) {
                part.is_sent = true;
            }
        }
        let asks = !self.waiting.is_empty() && self.must_attend();
        Attended { asks, lost: Vec::new() }
    }

    /// The daemon's request has ended.
    pub fn attended(&mut self, how: Attendance) -> Attended<W> {
        self.attends = how == Attendance::Again && !self.waiting.is_empty();
        let mut lost = Vec::new();
        if how == Attendance::Died {
            self.deaths.0 += 1;
            // The others have a caller that learns by itself whether they are sent.
            let all = std::mem::take(&mut self.waiting).into_iter();
            let (sent, unsent): (Vec<_>, Vec<_>) = all.partition(|(_, part)| part.is_sent);
            self.waiting.extend(unsent);
            lost.extend(sent.into_iter().map(|(_, part)| part.who));
        }
        Attended { asks: self.attends, lost }
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
