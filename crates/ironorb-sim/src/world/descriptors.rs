//! Descriptors: sockets, counters of events, and what tells which of them are ready.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use libc::{
    EAGAIN, EBADF, EEXIST, EINVAL, ENOENT, EPOLLERR, EPOLLET, EPOLLHUP, EPOLLIN, EPOLLONESHOT, EPOLLOUT,
    EPOLLRDHUP,
};

use super::sockets::{Listener, SideId};
use super::{Answer, HostId, State, TcpTimeouts, ThreadId, Why};

/// Simulated descriptors begin here, beyond all that the system gives.
pub(crate) const FIRST_DESCRIPTOR: i32 = 1 << 24;

/// An open file. Several descriptors may name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct FileId(usize);

#[derive(Default)]
pub(super) struct Files {
    /// By number of descriptor, from [`FIRST_DESCRIPTOR`] on.
    descriptors: Vec<Option<FileId>>,
    free: BTreeSet<usize>,
    files: Vec<Option<File>>,
}

pub(super) struct File {
    pub(super) host: HostId,
    pub(super) kind: Kind,
    is_nonblocking: bool,
    /// How long receiving and sending wait; `None`: for ever.
    timeouts: [Option<Duration>; 2],
    /// How long a stream waits for answers.
    pub(super) tcp_timeouts: TcpTimeouts,
    /// How many descriptors name it.
    names: u32,
    /// Threads that wait for it to change.
    waiters: Vec<ThreadId>,
    /// Epoll files that watch it.
    watchers: Vec<FileId>,
}

pub(super) enum Kind {
    /// A socket that neither listens nor is connected.
    Socket {
        bound: Option<(std::net::Ipv4Addr, u16)>,
    },
    Listener(Listener),
    /// One side of a connection, or of an attempt to make one.
    Stream(SideId),
    Epoll(Epoll),
    /// An eventfd.
    Counter {
        value: u64,
        is_semaphore: bool,
    },
    /// A file of random octets.
    Entropy,
}

#[derive(Default)]
pub(super) struct Epoll {
    interests: BTreeMap<i32, Watched>,
    /// Descriptors that may be ready, in the order in which they became so.
    candidates: VecDeque<i32>,
}

struct Watched {
    interest: Interest,
    file: FileId,
    is_candidate: bool,
    is_disabled: bool,
}

/// What `epoll_ctl` asks for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Interest {
    pub(crate) events: u32,
    pub(crate) data: u64,
}

/// An entry of `poll`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PollRequest {
    pub(crate) descriptor: i32,
    pub(crate) events: i16,
}

const IN: u32 = EPOLLIN as u32;
const OUT: u32 = EPOLLOUT as u32;
const ALWAYS: u32 = (EPOLLERR | EPOLLHUP) as u32;

impl Files {
    pub(super) fn get(&self, file: FileId) -> Option<&File> {
        self.files.get(file.0)?.as_ref()
    }

    pub(super) fn get_mut(&mut self, file: FileId) -> Option<&mut File> {
        self.files.get_mut(file.0)?.as_mut()
    }

    pub(super) fn add_waiter(&mut self, file: FileId, thread: ThreadId) {
        if let Some(file) = self.get_mut(file) {
            file.waiters.push(thread);
        }
    }

    pub(super) fn remove_waiter(&mut self, file: FileId, thread: ThreadId) {
        if let Some(file) = self.get_mut(file) {
            file.waiters.retain(|&waiter| waiter != thread);
        }
    }

    fn name(&mut self, file: FileId) -> i32 {
        let place = match self.free.pop_first() {
            Some(place) => place,
            None => {
                self.descriptors.push(None);
                self.descriptors.len() - 1
            }
        };
        self.descriptors[place] = Some(file);
        FIRST_DESCRIPTOR + place as i32
    }

    pub(super) fn of(&self, descriptor: i32) -> Answer<FileId> {
        let place = descriptor.checked_sub(FIRST_DESCRIPTOR).ok_or(EBADF)?;
        self.descriptors.get(place as usize).copied().flatten().ok_or(EBADF)
    }
}

impl State {
    /// Opens a file on the host of the running thread.
    pub(super) fn open(&mut self, kind: Kind, is_nonblocking: bool) -> (i32, FileId) {
        let host = self.here();
        let file = File {
            host,
            kind,
            is_nonblocking,
            timeouts: [None; 2],
            tcp_timeouts: TcpTimeouts::default(),
            names: 1,
            waiters: Vec::new(),
            watchers: Vec::new(),
        };
        self.files.files.push(Some(file));
        let file = FileId(self.files.files.len() - 1);
        (self.files.name(file), file)
    }

    pub(super) fn kind(&mut self, descriptor: i32) -> Answer<(FileId, &mut Kind)> {
        let file = self.files.of(descriptor)?;
        let kind = &mut self.files.get_mut(file).ok_or(EBADF)?.kind;
        Ok((file, kind))
    }

    /// The file that a descriptor names.
    pub(crate) fn file_of(&self, descriptor: i32) -> Answer<FileId> {
        self.files.of(descriptor)
    }

    pub(crate) fn is_nonblocking(&self, descriptor: i32) -> Answer<bool> {
        let file = self.files.of(descriptor)?;
        Ok(self.files.get(file).ok_or(EBADF)?.is_nonblocking)
    }

    pub(crate) fn set_nonblocking(&mut self, descriptor: i32, is_so: bool) -> Answer<()> {
        let file = self.files.of(descriptor)?;
        self.files.get_mut(file).ok_or(EBADF)?.is_nonblocking = is_so;
        Ok(())
    }

    pub(crate) fn receive_timeout(&self, descriptor: i32) -> Option<Duration> {
        self.files.get(self.files.of(descriptor).ok()?)?.timeouts[0]
    }

    pub(crate) fn send_timeout(&self, descriptor: i32) -> Option<Duration> {
        self.files.get(self.files.of(descriptor).ok()?)?.timeouts[1]
    }

    pub(crate) fn set_timeout(&mut self, descriptor: i32, of_receiving: bool, time: Duration) -> Answer<()> {
        let file = self.files.of(descriptor)?;
        let place = usize::from(!of_receiving);
        self.files.get_mut(file).ok_or(EBADF)?.timeouts[place] = Some(time).filter(|time| !time.is_zero());
        Ok(())
    }

    /// How long a stream waits for answers.
    pub(crate) fn tcp_timeouts(&self, descriptor: i32) -> Answer<TcpTimeouts> {
        let file = self.files.of(descriptor)?;
        Ok(self.files.get(file).ok_or(EBADF)?.tcp_timeouts)
    }

    pub(crate) fn tcp_timeouts_mut(&mut self, descriptor: i32) -> Answer<&mut TcpTimeouts> {
        let file = self.files.of(descriptor)?;
        Ok(&mut self.files.get_mut(file).ok_or(EBADF)?.tcp_timeouts)
    }

    pub(crate) fn duplicate(&mut self, descriptor: i32) -> Answer<i32> {
        let file = self.files.of(descriptor)?;
        self.files.get_mut(file).ok_or(EBADF)?.names += 1;
        Ok(self.files.name(file))
    }

    pub(crate) fn close(&mut self, descriptor: i32) -> Answer<()> {
        let file = self.files.of(descriptor)?;
        let place = (descriptor - FIRST_DESCRIPTOR) as usize;
        self.files.descriptors[place] = None;
        self.files.free.insert(place);
        let open = self.files.get_mut(file).ok_or(EBADF)?;
        open.names -= 1;
        if open.names == 0 {
            self.close_file(file);
        }
        Ok(())
    }

    fn close_file(&mut self, file: FileId) {
        let Some(open) = self.files.files[file.0].take() else { return };
        for watcher in open.watchers {
            if let Some(File { kind: Kind::Epoll(epoll), .. }) = self.files.get_mut(watcher) {
                epoll.interests.retain(|_, watched| watched.file != file);
            }
        }
        match open.kind {
            Kind::Stream(side) => self.close_stream(side),
            Kind::Listener(listener) => self.close_listener(file, listener),
            Kind::Epoll(epoll) => {
                for watched in epoll.interests.into_values() {
                    if let Some(watched) = self.files.get_mut(watched.file) {
                        watched.watchers.retain(|&watcher| watcher != file);
                    }
                }
            }
            Kind::Socket { .. } | Kind::Counter { .. } | Kind::Entropy => {}
        }
    }

    /// Closes all that a host has open, as its kernel does when its program is killed.
    pub(super) fn close_files_of(&mut self, host: HostId) {
        for index in 0..self.files.files.len() {
            if self.files.files[index].as_ref().is_some_and(|file| file.host == host) {
                for place in 0..self.files.descriptors.len() {
                    if self.files.descriptors[place] == Some(FileId(index)) {
                        self.files.descriptors[place] = None;
                        self.files.free.insert(place);
                    }
                }
                self.close_file(FileId(index));
            }
        }
    }

    /// A file may have become ready: those that wait for it look again.
    pub(super) fn changed(&mut self, file: FileId) {
        let Some(open) = self.files.get_mut(file) else { return };
        let waiters = std::mem::take(&mut open.waiters);
        let watchers = open.watchers.clone();
        for thread in waiters {
            self.wake(thread, Why::Happened);
        }
        for watcher in watchers {
            self.add_candidate(watcher, file);
        }
    }

    /// Wakes nobody for what nobody has asked for, as the kernel does.
    fn add_candidate(&mut self, epoll: FileId, of: FileId) {
        let ready_for = self.readiness(of);
        let Some(File { kind: Kind::Epoll(watching), waiters, watchers, .. }) = self.files.get_mut(epoll)
        else {
            return;
        };
        let mut is_more = false;
        for (&descriptor, watched) in &mut watching.interests {
            let is_asked = ready_for & (watched.interest.events | ALWAYS) != 0;
            if watched.file == of && is_asked && !watched.is_candidate && !watched.is_disabled {
                watched.is_candidate = true;
                watching.candidates.push_back(descriptor);
                is_more = true;
            }
        }
        let first = (is_more && !waiters.is_empty()).then(|| waiters.remove(0));
        let is_watched = is_more && !watchers.is_empty();
        if let Some(thread) = first {
            self.wake(thread, Why::Happened);
        }
        if is_watched {
            self.changed(epoll);
        }
    }

    /// What a file is ready for, in epoll's terms.
    pub(super) fn readiness(&self, file: FileId) -> u32 {
        let Some(open) = self.files.get(file) else { return 0 };
        match &open.kind {
            Kind::Socket { .. } => (EPOLLHUP | EPOLLOUT) as u32,
            Kind::Listener(listener) => {
                if listener.has_waiting() {
                    IN
                } else {
                    0
                }
            }
            Kind::Stream(side) => self.stream_readiness(*side),
            Kind::Entropy => IN,
            Kind::Epoll(epoll) => {
                if epoll.candidates.is_empty() {
                    0
                } else {
                    IN
                }
            }
            Kind::Counter { value, .. } => {
                let readable = if *value > 0 { IN } else { 0 };
                readable | if *value < u64::MAX - 1 { OUT } else { 0 }
            }
        }
    }

    pub(crate) fn new_counter(&mut self, value: u64, is_semaphore: bool, is_nonblocking: bool) -> i32 {
        self.open(Kind::Counter { value, is_semaphore }, is_nonblocking).0
    }

    /// Takes the number of a counter.
    pub(super) fn read_counter(&mut self, file: FileId) -> Answer<u64> {
        let Some(File { kind: Kind::Counter { value, is_semaphore }, .. }) = self.files.get_mut(file) else {
            return Err(EINVAL);
        };
        let taken = match (*value, *is_semaphore) {
            (0, _) => return Err(EAGAIN),
            (_, true) => 1,
            (all, false) => all,
        };
        *value -= taken;
        self.changed(file);
        Ok(taken)
    }

    pub(super) fn add_to_counter(&mut self, file: FileId, more: u64) -> Answer<()> {
        let Some(File { kind: Kind::Counter { value, .. }, .. }) = self.files.get_mut(file) else {
            return Err(EINVAL);
        };
        let sum = value.checked_add(more).filter(|&sum| sum < u64::MAX).ok_or(EAGAIN)?;
        *value = sum;
        self.changed(file);
        Ok(())
    }

    pub(crate) fn new_entropy(&mut self) -> i32 {
        self.open(Kind::Entropy, false).0
    }

    pub(crate) fn new_epoll(&mut self) -> i32 {
        self.open(Kind::Epoll(Epoll::default()), false).0
    }

    pub(crate) fn watch(
        &mut self,
        epoll: i32,
        change: i32,
        descriptor: i32,
        interest: Interest,
    ) -> Answer<()> {
        let file = self.files.of(descriptor)?;
        let (epoll_file, kind) = self.kind(epoll)?;
        let Kind::Epoll(watching) = kind else { return Err(EINVAL) };
        match (change, watching.interests.contains_key(&descriptor)) {
            (libc::EPOLL_CTL_ADD, true) => return Err(EEXIST),
            (libc::EPOLL_CTL_MOD | libc::EPOLL_CTL_DEL, false) => return Err(ENOENT),
            (libc::EPOLL_CTL_DEL, true) => {
                watching.interests.remove(&descriptor);
                watching.candidates.retain(|&candidate| candidate != descriptor);
                // Another descriptor of the file may be watched as well.
                let is_watched_still = watching.interests.values().any(|watched| watched.file == file);
                if !is_watched_still && let Some(open) = self.files.get_mut(file) {
                    open.watchers.retain(|&watcher| watcher != epoll_file);
                }
                return Ok(());
            }
            (libc::EPOLL_CTL_ADD, false) => {
                let watched = Watched { interest, file, is_candidate: false, is_disabled: false };
                watching.interests.insert(descriptor, watched);
                if let Some(open) = self.files.get_mut(file)
                    && !open.watchers.contains(&epoll_file)
                {
                    open.watchers.push(epoll_file);
                }
            }
            (libc::EPOLL_CTL_MOD, true) => {
                if let Some(watched) = watching.interests.get_mut(&descriptor) {
                    watched.interest = interest;
                    watched.is_disabled = false;
                }
            }
            _ => return Err(EINVAL),
        }
        if self.readiness(file) & (interest.events | ALWAYS) != 0 {
            self.add_candidate(epoll_file, file);
        }
        Ok(())
    }

    /// Up to `most` events that have happened. Without any the caller waits for the file, and asks again.
    pub(crate) fn ready_events(&mut self, epoll: i32, most: usize) -> Answer<Vec<Interest>> {
        let (epoll_file, kind) = self.kind(epoll)?;
        let Kind::Epoll(watching) = kind else { return Err(EINVAL) };
        let candidates: Vec<i32> = watching.candidates.drain(..).collect();
        let mut events = Vec::new();
        let mut kept = VecDeque::new();
        for descriptor in candidates {
            let Ok((_, Kind::Epoll(watching))) = self.kind(epoll) else { break };
            let Some(watched) = watching.interests.get(&descriptor) else { continue };
            if events.len() == most {
                kept.push_front(descriptor);
                continue;
            }
            let (interest, file) = (watched.interest, watched.file);
            let mut happened = self.readiness(file) & (interest.events | ALWAYS);
            let Ok((_, Kind::Epoll(watching))) = self.kind(epoll) else { break };
            let Some(watched) = watching.interests.get_mut(&descriptor) else { continue };
            if watched.is_disabled {
                happened = 0;
            }
            let stays = happened != 0 && interest.events & (EPOLLET | EPOLLONESHOT) as u32 == 0;
            watched.is_candidate = stays;
            if happened != 0 {
                watched.is_disabled = interest.events & EPOLLONESHOT as u32 != 0;
                events.push(Interest { events: happened, data: interest.data });
            }
            if stays {
                kept.push_back(descriptor);
            }
        }
        if let Ok((_, Kind::Epoll(watching))) = self.kind(epoll) {
            // Those that were not looked at come first the next time.
            watching.candidates.extend(kept);
            let others_may_go_on = !watching.candidates.is_empty();
            if others_may_go_on
                && let Some(open) = self.files.get_mut(epoll_file)
                && !open.waiters.is_empty()
            {
                let next = open.waiters.remove(0);
                self.wake(next, Why::Happened);
            }
        }
        Ok(events)
    }

    /// What each of these descriptors is ready for, in poll's terms.
    pub(crate) fn poll(&self, requests: &[PollRequest]) -> Vec<i16> {
        let one = |request: &PollRequest| {
            if request.descriptor < 0 {
                return 0;
            }
            let Ok(file) = self.files.of(request.descriptor) else { return libc::POLLNVAL };
            // The two have the same numbers for what both know.
            let asked = (request.events as u16 as u32) | ALWAYS;
            (self.readiness(file) & asked & (IN | OUT | ALWAYS | EPOLLRDHUP as u32)) as i16
        };
        requests.iter().map(one).collect()
    }
}
