//! Descriptors: reading, writing, closing, and waiting for several.

use std::ffi::{c_int, c_long, c_uint, c_void};
use std::time::Duration;

use ironorb_model::Time;
use libc::{epoll_event, nfds_t, pollfd, sigset_t, timespec};

use super::sockets::{receive, send};
use super::time::time_of;
use super::{c_answer, c_done, inside, is_simulated, note_poll, raw, until_answered, with};
use crate::world::{Answer, FIRST_DESCRIPTOR, Interest, PollRequest};

/// Whether a call about this descriptor is the simulation's.
pub(super) fn is_ours(descriptor: c_int) -> bool {
    descriptor >= FIRST_DESCRIPTOR && is_simulated()
}

#[unsafe(no_mangle)]
unsafe extern "C" fn read(descriptor: c_int, buffer: *mut c_void, length: usize) -> isize {
    if is_ours(descriptor) {
        // SAFETY: the caller's promise.
        let space = unsafe { std::slice::from_raw_parts_mut(buffer.cast::<u8>(), length) };
        return receive(descriptor, &mut [space], 0);
    }
    let arguments = [descriptor.into(), buffer as i64, length as i64, 0, 0, 0];
    // SAFETY: the caller's promise.
    unsafe { raw::libc_call(libc::SYS_read, arguments) as isize }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn write(descriptor: c_int, buffer: *const c_void, length: usize) -> isize {
    if is_ours(descriptor) {
        // SAFETY: the caller's promise.
        let octets = unsafe { std::slice::from_raw_parts(buffer.cast::<u8>(), length) };
        return send(descriptor, &[octets], 0);
    }
    if (1..=2).contains(&descriptor) && is_simulated() {
        // SAFETY: the caller's promise.
        say(unsafe { std::slice::from_raw_parts(buffer.cast::<u8>(), length) });
        return length as isize;
    }
    // SAFETY: the caller's promise.
    super::disk::note_write(descriptor, None, unsafe {
        std::slice::from_raw_parts(buffer.cast::<u8>(), length)
    });
    let arguments = [descriptor.into(), buffer as i64, length as i64, 0, 0, 0];
    // SAFETY: the caller's promise.
    unsafe { raw::libc_call(libc::SYS_write, arguments) as isize }
}

/// What a host's program prints comes line by line, each with the virtual time and the host's name.
fn say(octets: &[u8]) {
    let lines = inside(|state| {
        let (now, here) = (state.now(), state.here());
        let host = &mut state.hosts[here.0];
        host.line.extend_from_slice(octets);
        let mut lines = Vec::new();
        while let Some(end) = host.line.iter().position(|&octet| octet == b'\n') {
            lines.extend_from_slice(format!("[{now} {}] ", host.name).as_bytes());
            lines.extend(host.line.drain(..=end));
        }
        lines
    });
    if !lines.is_empty() {
        let arguments = [2, lines.as_ptr() as i64, lines.len() as i64, 0, 0, 0];
        // SAFETY: the octets live until the call returns.
        unsafe { raw::kernel(libc::SYS_write, arguments) };
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn readv(descriptor: c_int, pieces: *const libc::iovec, count: c_int) -> isize {
    if is_ours(descriptor) {
        // SAFETY: the caller's promise.
        let mut spaces = unsafe { super::sockets::spaces(pieces, count as usize) };
        return receive(descriptor, &mut spaces, 0);
    }
    let arguments = [descriptor.into(), pieces as i64, count.into(), 0, 0, 0];
    // SAFETY: the caller's promise.
    unsafe { raw::libc_call(libc::SYS_readv, arguments) as isize }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn writev(descriptor: c_int, pieces: *const libc::iovec, count: c_int) -> isize {
    if is_ours(descriptor) {
        // SAFETY: the caller's promise.
        return send(descriptor, &unsafe { super::sockets::pieces(pieces, count as usize) }, 0);
    }
    if (1..=2).contains(&descriptor) && is_simulated() {
        // SAFETY: the caller's promise.
        let pieces = unsafe { super::sockets::pieces(pieces, count as usize) };
        pieces.iter().for_each(|piece| say(piece));
        return pieces.iter().map(|piece| piece.len()).sum::<usize>() as isize;
    }
    if is_simulated() {
        // SAFETY: the caller's promise.
        super::disk::note_writes(descriptor, &unsafe { super::sockets::pieces(pieces, count as usize) });
    }
    let arguments = [descriptor.into(), pieces as i64, count.into(), 0, 0, 0];
    // SAFETY: the caller's promise.
    unsafe { raw::libc_call(libc::SYS_writev, arguments) as isize }
}

#[unsafe(no_mangle)]
extern "C" fn close(descriptor: c_int) -> c_int {
    if is_ours(descriptor) {
        return c_done(inside(|state| state.close(descriptor)));
    }
    with(|state| state.note_close(descriptor));
    // SAFETY: whose descriptor it is, is the caller's promise.
    unsafe { raw::libc_call(libc::SYS_close, [descriptor.into(), 0, 0, 0, 0, 0]) as c_int }
}

/// The C library's `fcntl`; its third argument is a number or an address, or not there.
#[unsafe(no_mangle)]
unsafe extern "C" fn fcntl(descriptor: c_int, command: c_int, argument: c_long) -> c_int {
    if !is_ours(descriptor) {
        let arguments = [descriptor.into(), command.into(), argument, 0, 0, 0];
        // SAFETY: the caller's promise.
        let answer = unsafe { raw::libc_call(libc::SYS_fcntl, arguments) as c_int };
        if answer >= 0 && matches!(command, libc::F_DUPFD | libc::F_DUPFD_CLOEXEC) {
            super::disk::note_duplicate(descriptor, answer);
        }
        return answer;
    }
    let answer = match command {
        libc::F_GETFL => inside(|state| state.is_nonblocking(descriptor))
            .map(|is_so| libc::O_RDWR | if is_so { libc::O_NONBLOCK } else { 0 }),
        libc::F_SETFL => {
            let is_so = argument as c_int & libc::O_NONBLOCK != 0;
            inside(|state| state.set_nonblocking(descriptor, is_so)).map(|()| 0)
        }
        libc::F_GETFD => inside(|state| state.file_of(descriptor)).map(|_| libc::FD_CLOEXEC),
        libc::F_SETFD => Ok(0),
        libc::F_DUPFD | libc::F_DUPFD_CLOEXEC => inside(|state| state.duplicate(descriptor)),
        _ => Err(libc::EINVAL),
    };
    c_answer(answer) as c_int
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ioctl(descriptor: c_int, request: libc::c_ulong, argument: *mut c_int) -> c_int {
    if !is_ours(descriptor) {
        let arguments = [descriptor.into(), request as i64, argument as i64, 0, 0, 0];
        // SAFETY: the caller's promise.
        return unsafe { raw::libc_call(libc::SYS_ioctl, arguments) as c_int };
    }
    c_done(match request {
        libc::FIONBIO => {
            // SAFETY: the caller's promise.
            let is_so = unsafe { *argument } != 0;
            inside(|state| state.set_nonblocking(descriptor, is_so))
        }
        libc::FIONREAD => inside(|state| state.unread(descriptor)).map(|octets| {
            // SAFETY: the caller's promise.
            unsafe { argument.write(octets as c_int) };
        }),
        _ => Err(libc::EINVAL),
    })
}

#[unsafe(no_mangle)]
extern "C" fn eventfd(value: c_uint, flags: c_int) -> c_int {
    if is_simulated() {
        return new_counter(value.into(), flags);
    }
    // SAFETY: the call has no addresses.
    unsafe { raw::libc_call(libc::SYS_eventfd2, [value.into(), flags.into(), 0, 0, 0, 0]) as c_int }
}

pub(super) fn new_counter(value: u64, flags: c_int) -> c_int {
    let (is_semaphore, is_nonblocking) = (flags & libc::EFD_SEMAPHORE != 0, flags & libc::EFD_NONBLOCK != 0);
    inside(|state| state.new_counter(value, is_semaphore, is_nonblocking))
}

#[unsafe(no_mangle)]
extern "C" fn epoll_create1(flags: c_int) -> c_int {
    if is_simulated() {
        return inside(|state| state.new_epoll());
    }
    // SAFETY: the call has no addresses.
    unsafe { raw::libc_call(libc::SYS_epoll_create1, [flags.into(), 0, 0, 0, 0, 0]) as c_int }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn epoll_ctl(
    epoll: c_int,
    change: c_int,
    descriptor: c_int,
    event: *mut epoll_event,
) -> c_int {
    if !is_ours(epoll) {
        let arguments = [epoll.into(), change.into(), descriptor.into(), event as i64, 0, 0];
        // SAFETY: the caller's promise.
        return unsafe { raw::libc_call(libc::SYS_epoll_ctl, arguments) as c_int };
    }
    // SAFETY: the caller's promise; removing has none.
    let interest = match unsafe { event.as_ref() } {
        Some(event) => Interest { events: event.events, data: event.u64 },
        None => Interest { events: 0, data: 0 },
    };
    c_done(inside(|state| state.watch(epoll, change, descriptor, interest)))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn epoll_wait(
    epoll: c_int,
    events: *mut epoll_event,
    most: c_int,
    timeout: c_int,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { epoll_pwait(epoll, events, most, timeout, std::ptr::null()) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn epoll_pwait(
    epoll: c_int,
    events: *mut epoll_event,
    most: c_int,
    timeout: c_int,
    signals: *const sigset_t,
) -> c_int {
    if !is_ours(epoll) {
        let arguments = [epoll.into(), events as i64, most.into(), timeout.into(), signals as i64, 8];
        // SAFETY: the caller's promise; a set of signals has eight octets for the kernel.
        return unsafe { raw::libc_call(libc::SYS_epoll_pwait, arguments) as c_int };
    }
    // SAFETY: the caller's promise.
    unsafe { wait_for_events(epoll, events, most, milliseconds(timeout)) }
}

/// `epoll_pwait2`, by number.
pub(super) unsafe fn epoll_pwait2(arguments: [c_long; 6]) -> c_long {
    let [epoll, events, most, timeout, ..] = arguments;
    if !is_ours(epoll as c_int) {
        // SAFETY: the caller's promise.
        return unsafe { raw::libc_call(libc::SYS_epoll_pwait2, arguments) };
    }
    // SAFETY: the caller's promise.
    let timeout = unsafe { (timeout as *const timespec).as_ref() }.map(time_of);
    // SAFETY: the caller's promise.
    unsafe { wait_for_events(epoll as c_int, events as *mut epoll_event, most as c_int, timeout) }.into()
}

fn milliseconds(timeout: c_int) -> Option<Duration> {
    u64::try_from(timeout).ok().map(Duration::from_millis)
}

/// When a wait that begins now is over; `None` for one that must not begin.
fn end_of_wait(timeout: Option<Duration>) -> Option<Time> {
    match timeout {
        None => Some(Time::NEVER),
        Some(Duration::ZERO) => None,
        Some(time) => Some(inside(|state| state.after(time))),
    }
}

unsafe fn wait_for_events(
    epoll: c_int,
    events: *mut epoll_event,
    most: c_int,
    timeout: Option<Duration>,
) -> c_int {
    let until = end_of_wait(timeout);
    let happened: Answer<Vec<Interest>> = until_answered(
        |state| match state.ready_events(epoll, most.max(1) as usize)? {
            none if none.is_empty() => Err(libc::EAGAIN),
            some => Ok(some),
        },
        |state| {
            let Some(until) = until else { return false };
            state.block_for(epoll, WAITING, Some(until));
            true
        },
    );
    let happened = match happened {
        Err(libc::EAGAIN) => return 0,
        Err(number) => return c_done(Err(number)),
        Ok(happened) => happened,
    };
    for (place, event) in happened.iter().enumerate() {
        // SAFETY: the caller's promise: room for `most` events, and there are no more.
        unsafe { events.add(place).write(epoll_event { events: event.events, u64: event.data }) };
    }
    happened.len() as c_int
}

#[unsafe(no_mangle)]
unsafe extern "C" fn poll(entries: *mut pollfd, count: nfds_t, timeout: c_int) -> c_int {
    if !is_simulated() {
        // SAFETY: the caller's promise.
        return unsafe {
            raw::libc_call(libc::SYS_poll, [entries as i64, count as i64, timeout.into(), 0, 0, 0]) as c_int
        };
    }
    // SAFETY: the caller's promise.
    unsafe { wait_for_any(entries, count, milliseconds(timeout)) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ppoll(
    entries: *mut pollfd,
    count: nfds_t,
    timeout: *const timespec,
    signals: *const sigset_t,
) -> c_int {
    if !is_simulated() {
        // The kernel writes what is left into the time; the C library's function does not.
        // SAFETY: the caller's promise.
        let mut left = unsafe { timeout.as_ref() }.copied();
        let left = left.as_mut().map_or(0, |left| &raw mut *left as i64);
        let arguments = [entries as i64, count as i64, left, signals as i64, 8, 0];
        // SAFETY: the caller's promise.
        return unsafe { raw::libc_call(libc::SYS_ppoll, arguments) as c_int };
    }
    // SAFETY: the caller's promise.
    unsafe { wait_for_any(entries, count, timeout.as_ref().map(time_of)) }
}

unsafe fn wait_for_any(entries: *mut pollfd, count: nfds_t, timeout: Option<Duration>) -> c_int {
    let entries = match count {
        0 => &mut [],
        // SAFETY: the caller's promise.
        _ => unsafe { std::slice::from_raw_parts_mut(entries, count as usize) },
    };
    let request = |entry: &pollfd| PollRequest { descriptor: entry.fd, events: entry.events };
    let requests: Vec<PollRequest> = entries.iter().map(request).collect();
    if requests.iter().any(|request| (0..FIRST_DESCRIPTOR).contains(&request.descriptor)) {
        // Descriptors of the system are looked at once: the system's are ready at once or not within this time.
        let arguments = [entries.as_mut_ptr() as i64, count as i64, 0, 0, 0, 0];
        // SAFETY: the entries are borrowed.
        let ready = unsafe { raw::libc_call(libc::SYS_poll, arguments) as c_int };
        if ready == 0 {
            note_poll();
        }
        return ready;
    }
    let until = end_of_wait(timeout);
    let ready = until_answered(
        |state| {
            let ready = state.poll(&requests);
            if ready.iter().any(|&events| events != 0) { Ok(ready) } else { Err(libc::EAGAIN) }
        },
        |state| {
            let Some(until) = until else { return false };
            let files: Vec<_> = requests.iter().filter_map(|it| state.file_of(it.descriptor).ok()).collect();
            state.block(WAITING, &files, Some(until));
            true
        },
    );
    let ready = ready.unwrap_or_else(|_| vec![0; entries.len()]);
    for (entry, &events) in entries.iter_mut().zip(&ready) {
        entry.revents = events;
    }
    ready.iter().filter(|&&events| events != 0).count() as c_int
}

/// What a thread does that waits for several descriptors, for people.
const WAITING: &str = "waiting for descriptors to be ready";
