//! Sockets.

use std::ffi::{c_int, c_void};
use std::net::Ipv4Addr;
use std::time::Duration;

use ironorb_model::Time;
use libc::{iovec, msghdr, sockaddr, sockaddr_in, socklen_t};

use super::files::is_ours;
use super::{c_answer, c_done, compute, inside, is_simulated, may_give_way, raw, until_answered};
use crate::world::Endpoint;

#[unsafe(no_mangle)]
extern "C" fn socket(family: c_int, kind: c_int, protocol: c_int) -> c_int {
    if !is_simulated() {
        // SAFETY: the call has no addresses.
        return unsafe {
            raw::libc_call(libc::SYS_socket, [family.into(), kind.into(), protocol.into(), 0, 0, 0]) as c_int
        };
    }
    match (family, kind & 0xf) {
        (libc::AF_INET, libc::SOCK_STREAM) => {
            inside(|state| state.new_socket(kind & libc::SOCK_NONBLOCK != 0))
        }
        (libc::AF_INET, _) => c_done(Err(libc::EPROTONOSUPPORT)),
        // Hosts have neither of IPv6 and of sockets in files.
        _ => c_done(Err(libc::EAFNOSUPPORT)),
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn bind(descriptor: c_int, address: *const sockaddr, length: socklen_t) -> c_int {
    if !is_ours(descriptor) {
        let arguments = [descriptor.into(), address as i64, length.into(), 0, 0, 0];
        // SAFETY: the caller's promise.
        return unsafe { raw::libc_call(libc::SYS_bind, arguments) as c_int };
    }
    // SAFETY: the caller's promise.
    let at = unsafe { endpoint(address, length) };
    c_done(at.and_then(|at| inside(|state| state.bind(descriptor, at))))
}

#[unsafe(no_mangle)]
extern "C" fn listen(descriptor: c_int, backlog: c_int) -> c_int {
    if is_ours(descriptor) {
        return c_done(inside(|state| state.listen(descriptor, backlog.max(1) as usize)));
    }
    // SAFETY: the call has no addresses.
    unsafe { raw::libc_call(libc::SYS_listen, [descriptor.into(), backlog.into(), 0, 0, 0, 0]) as c_int }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn connect(descriptor: c_int, address: *const sockaddr, length: socklen_t) -> c_int {
    if !is_ours(descriptor) {
        let arguments = [descriptor.into(), address as i64, length.into(), 0, 0, 0];
        // SAFETY: the caller's promise.
        return unsafe { raw::libc_call(libc::SYS_connect, arguments) as c_int };
    }
    // SAFETY: the caller's promise.
    let to = unsafe { endpoint(address, length) };
    let begun = to.and_then(|to| inside(|state| state.connect(descriptor, to)));
    let waits = inside(|state| state.is_nonblocking(descriptor)) == Ok(false);
    c_done(match begun {
        Err(libc::EINPROGRESS) if waits => until_answered(
            |state| match state.connect_outcome(descriptor)? {
                None => Err(libc::EAGAIN),
                Some(0) => Ok(()),
                Some(error) => Err(error),
            },
            |state| {
                state.block_for(descriptor, "connecting", None);
                true
            },
        ),
        answer => answer,
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn accept(descriptor: c_int, address: *mut sockaddr, length: *mut socklen_t) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { accept4(descriptor, address, length, 0) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn accept4(
    descriptor: c_int,
    address: *mut sockaddr,
    length: *mut socklen_t,
    flags: c_int,
) -> c_int {
    if !is_ours(descriptor) {
        let arguments = [descriptor.into(), address as i64, length as i64, flags.into(), 0, 0];
        // SAFETY: the caller's promise.
        return unsafe { raw::libc_call(libc::SYS_accept4, arguments) as c_int };
    }
    let accepted = until_answered(
        |state| state.accept(descriptor, flags & libc::SOCK_NONBLOCK != 0),
        |state| {
            let waits = state.is_nonblocking(descriptor) == Ok(false);
            if waits {
                state.block_for(descriptor, "accepting connections", None);
            }
            waits
        },
    );
    c_answer(accepted.map(|(accepted, from)| {
        // SAFETY: the caller's promise.
        unsafe { tell_endpoint(from, address, length) };
        accepted
    })) as c_int
}

/// Sends to a descriptor of the simulation, and waits for room unless flags or descriptor say otherwise.
pub(super) fn send(descriptor: c_int, pieces: &[&[u8]], flags: c_int) -> isize {
    compute(inside(|state| state.costs.send));
    let mut pieces = pieces.to_vec();
    let mut sent = 0;
    loop {
        // Room for some begins the time anew, as with Linux.
        let until: Option<Time> =
            inside(|state| state.send_timeout(descriptor).map(|time| state.after(time)));
        let answer = until_answered(
            |state| state.send(descriptor, &pieces, sent > 0),
            |state| {
                let waits = flags & libc::MSG_DONTWAIT == 0 && state.is_nonblocking(descriptor) == Ok(false);
                if waits {
                    state.block_for(descriptor, "sending", until);
                }
                waits
            },
        );
        match answer {
            Err(_) if sent > 0 => return sent as isize,
            Err(number) => return c_answer::<isize>(Err(number)) as isize,
            Ok(more) => sent += more,
        }
        let mut left = answer.unwrap_or(0);
        while let Some(first) = pieces.first_mut() {
            let taken = left.min(first.len());
            *first = &first[taken..];
            left -= taken;
            if !first.is_empty() {
                break;
            }
            pieces.remove(0);
        }
        // A socket that waits takes all of it.
        let waits =
            flags & libc::MSG_DONTWAIT == 0 && inside(|state| state.is_nonblocking(descriptor)) == Ok(false);
        if pieces.is_empty() || !waits {
            may_give_way();
            return sent as isize;
        }
    }
}

/// Receives from a descriptor of the simulation, and waits for octets unless flags or descriptor say otherwise.
pub(super) fn receive(descriptor: c_int, into: &mut [&mut [u8]], flags: c_int) -> isize {
    let until: Option<Time> = inside(|state| state.receive_timeout(descriptor).map(|time| state.after(time)));
    let received = until_answered(
        |state| state.receive(descriptor, into, flags & libc::MSG_PEEK != 0),
        |state| {
            let waits = flags & libc::MSG_DONTWAIT == 0 && state.is_nonblocking(descriptor) == Ok(false);
            if waits {
                state.block_for(descriptor, "receiving", until);
            }
            waits
        },
    );
    if received.is_ok() {
        compute(inside(|state| state.costs.receive));
    }
    c_answer(received) as isize
}

#[unsafe(no_mangle)]
unsafe extern "C" fn sendto(
    descriptor: c_int,
    buffer: *const c_void,
    length: usize,
    flags: c_int,
    to: *const sockaddr,
    to_length: socklen_t,
) -> isize {
    if is_ours(descriptor) {
        // SAFETY: the caller's promise.
        return send(
            descriptor,
            &[unsafe { std::slice::from_raw_parts(buffer.cast::<u8>(), length) }],
            flags,
        );
    }
    let arguments =
        [descriptor.into(), buffer as i64, length as i64, flags.into(), to as i64, to_length.into()];
    // SAFETY: the caller's promise.
    unsafe { raw::libc_call(libc::SYS_sendto, arguments) as isize }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn recvfrom(
    descriptor: c_int,
    buffer: *mut c_void,
    length: usize,
    flags: c_int,
    from: *mut sockaddr,
    from_length: *mut socklen_t,
) -> isize {
    if is_ours(descriptor) {
        // SAFETY: the caller's promise. The address of a stream's peer is not told.
        let space = unsafe { std::slice::from_raw_parts_mut(buffer.cast::<u8>(), length) };
        if !from_length.is_null() {
            // SAFETY: the caller's promise.
            unsafe { from_length.write(0) };
        }
        return receive(descriptor, &mut [space], flags);
    }
    let arguments =
        [descriptor.into(), buffer as i64, length as i64, flags.into(), from as i64, from_length as i64];
    // SAFETY: the caller's promise.
    unsafe { raw::libc_call(libc::SYS_recvfrom, arguments) as isize }
}

// The C library's two short forms are functions of their own.

#[unsafe(no_mangle)]
unsafe extern "C" fn recv(descriptor: c_int, buffer: *mut c_void, length: usize, flags: c_int) -> isize {
    // SAFETY: the caller's promise.
    unsafe { recvfrom(descriptor, buffer, length, flags, std::ptr::null_mut(), std::ptr::null_mut()) }
}

#[unsafe(export_name = "send")]
unsafe extern "C" fn send_some(
    descriptor: c_int,
    buffer: *const c_void,
    length: usize,
    flags: c_int,
) -> isize {
    // SAFETY: the caller's promise.
    unsafe { sendto(descriptor, buffer, length, flags, std::ptr::null(), 0) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn sendmsg(descriptor: c_int, message: *const msghdr, flags: c_int) -> isize {
    if is_ours(descriptor) {
        // SAFETY: the caller's promise.
        let pieces = unsafe { pieces((*message).msg_iov, (*message).msg_iovlen) };
        return send(descriptor, &pieces, flags);
    }
    // SAFETY: the caller's promise.
    unsafe {
        raw::libc_call(libc::SYS_sendmsg, [descriptor.into(), message as i64, flags.into(), 0, 0, 0]) as isize
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn recvmsg(descriptor: c_int, message: *mut msghdr, flags: c_int) -> isize {
    if is_ours(descriptor) {
        // SAFETY: the caller's promise.
        let mut spaces = unsafe { spaces((*message).msg_iov, (*message).msg_iovlen) };
        // SAFETY: the caller's promise.
        unsafe {
            (*message).msg_controllen = 0;
            (*message).msg_namelen = 0;
            (*message).msg_flags = 0;
        }
        return receive(descriptor, &mut spaces, flags);
    }
    // SAFETY: the caller's promise.
    unsafe {
        raw::libc_call(libc::SYS_recvmsg, [descriptor.into(), message as i64, flags.into(), 0, 0, 0]) as isize
    }
}

#[unsafe(no_mangle)]
extern "C" fn shutdown(descriptor: c_int, how: c_int) -> c_int {
    if is_ours(descriptor) {
        return c_done(inside(|state| state.shut_down(descriptor, how)));
    }
    // SAFETY: the call has no addresses.
    unsafe { raw::libc_call(libc::SYS_shutdown, [descriptor.into(), how.into(), 0, 0, 0, 0]) as c_int }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn getsockname(descriptor: c_int, address: *mut sockaddr, length: *mut socklen_t) -> c_int {
    if !is_ours(descriptor) {
        let arguments = [descriptor.into(), address as i64, length as i64, 0, 0, 0];
        // SAFETY: the caller's promise.
        return unsafe { raw::libc_call(libc::SYS_getsockname, arguments) as c_int };
    }
    let own = inside(|state| state.own_endpoint(descriptor));
    // SAFETY: the caller's promise.
    c_done(own.map(|own| unsafe { tell_endpoint(own, address, length) }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn getpeername(descriptor: c_int, address: *mut sockaddr, length: *mut socklen_t) -> c_int {
    if !is_ours(descriptor) {
        let arguments = [descriptor.into(), address as i64, length as i64, 0, 0, 0];
        // SAFETY: the caller's promise.
        return unsafe { raw::libc_call(libc::SYS_getpeername, arguments) as c_int };
    }
    let peer = inside(|state| state.peer_endpoint(descriptor));
    // SAFETY: the caller's promise.
    c_done(peer.map(|peer| unsafe { tell_endpoint(peer, address, length) }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn setsockopt(
    descriptor: c_int,
    level: c_int,
    name: c_int,
    value: *const c_void,
    length: socklen_t,
) -> c_int {
    if !is_ours(descriptor) {
        let arguments = [descriptor.into(), level.into(), name.into(), value as i64, length.into(), 0];
        // SAFETY: the caller's promise.
        return unsafe { raw::libc_call(libc::SYS_setsockopt, arguments) as c_int };
    }
    let number = || match length >= 4 {
        // SAFETY: the caller's promise: a number of four octets.
        true => unsafe { value.cast::<c_int>().read_unaligned() },
        false => 0,
    };
    c_done(match (level, name) {
        (libc::SOL_SOCKET, libc::SO_RCVBUF) => {
            inside(|state| state.set_window(descriptor, number().max(0) as usize))
        }
        (libc::SOL_SOCKET, libc::SO_RCVTIMEO | libc::SO_SNDTIMEO) => {
            // SAFETY: the caller's promise: a time.
            let time = unsafe { value.cast::<libc::timeval>().read_unaligned() };
            let time = Duration::new(time.tv_sec as u64, time.tv_usec as u32 * 1_000);
            inside(|state| state.set_timeout(descriptor, name == libc::SO_RCVTIMEO, time))
        }
        _ => {
            let value = number();
            // Options that are none of these change nothing that is simulated.
            inside(|state| state.tcp_timeouts_mut(descriptor)?.set(level, name, value).unwrap_or(Ok(())))
        }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn getsockopt(
    descriptor: c_int,
    level: c_int,
    name: c_int,
    value: *mut c_void,
    length: *mut socklen_t,
) -> c_int {
    if !is_ours(descriptor) {
        let arguments = [descriptor.into(), level.into(), name.into(), value as i64, length as i64, 0];
        // SAFETY: the caller's promise.
        return unsafe { raw::libc_call(libc::SYS_getsockopt, arguments) as c_int };
    }
    let number = match (level, name) {
        (libc::SOL_SOCKET, libc::SO_ERROR) => inside(|state| state.take_error(descriptor)),
        (libc::SOL_SOCKET, libc::SO_TYPE) => Ok(libc::SOCK_STREAM),
        (libc::SOL_SOCKET, libc::SO_DOMAIN) => Ok(libc::AF_INET),
        (libc::SOL_SOCKET, libc::SO_RCVBUF | libc::SO_SNDBUF) => Ok(212_992),
        _ => inside(|state| Ok(state.tcp_timeouts(descriptor)?.get(level, name).unwrap_or(0))),
    };
    c_done(number.map(|number| {
        // SAFETY: the caller's promise. What is longer than a number is filled with zeros behind it.
        unsafe {
            let space = *length as usize;
            value.cast::<u8>().write_bytes(0, space);
            if space >= 4 {
                value.cast::<c_int>().write_unaligned(number);
            }
        }
    }))
}

/// The pieces of a message to be sent.
pub(super) unsafe fn pieces<'a>(pieces: *const iovec, count: usize) -> Vec<&'a [u8]> {
    // SAFETY: the caller's promise: so many pieces, each of its length.
    let one = |place| unsafe {
        let piece = &*pieces.add(place);
        match piece.iov_len {
            0 => &[][..],
            length => std::slice::from_raw_parts(piece.iov_base.cast::<u8>(), length),
        }
    };
    (0..count).map(one).collect()
}

/// The spaces for a message to be received.
pub(super) unsafe fn spaces<'a>(pieces: *const iovec, count: usize) -> Vec<&'a mut [u8]> {
    // SAFETY: the caller's promise: so many pieces, each of its length, none within another.
    let one = |place| unsafe {
        let piece = &*pieces.add(place);
        match piece.iov_len {
            0 => &mut [][..],
            length => std::slice::from_raw_parts_mut(piece.iov_base.cast::<u8>(), length),
        }
    };
    (0..count).map(one).collect()
}

unsafe fn endpoint(address: *const sockaddr, length: socklen_t) -> Result<Endpoint, c_int> {
    // SAFETY: the caller's promise: an address of this length.
    unsafe {
        if (length as usize) < size_of::<sockaddr_in>() || c_int::from((*address).sa_family) != libc::AF_INET
        {
            return Err(libc::EAFNOSUPPORT);
        }
        let address = address.cast::<sockaddr_in>().read_unaligned();
        Ok((Ipv4Addr::from(u32::from_be(address.sin_addr.s_addr)), u16::from_be(address.sin_port)))
    }
}

pub(super) fn raw_address((address, port): Endpoint) -> sockaddr_in {
    sockaddr_in {
        sin_family: libc::AF_INET as u16,
        sin_port: port.to_be(),
        sin_addr: libc::in_addr { s_addr: u32::from(address).to_be() },
        sin_zero: [0; 8],
    }
}

unsafe fn tell_endpoint(told: Endpoint, address: *mut sockaddr, length: *mut socklen_t) {
    if address.is_null() || length.is_null() {
        return;
    }
    let raw = raw_address(told);
    // SAFETY: the caller's promise: as much room as `length` says.
    unsafe {
        let room = (*length as usize).min(size_of::<sockaddr_in>());
        std::ptr::copy_nonoverlapping((&raw const raw).cast::<u8>(), address.cast::<u8>(), room);
        *length = size_of::<sockaddr_in>() as socklen_t;
    }
}
