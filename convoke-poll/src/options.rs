//! Options of sockets: setting and reading them.

use std::io;
use std::time::Duration;

use convoke_io::driver::{MulticastGroup, SocketOption, StandardSocket, unsupported};
use socket2::{SockRef, TcpKeepalive};

use crate::calls::reference;

pub(crate) fn set(socket: &StandardSocket, option: SocketOption) -> io::Result<()> {
    let socket = reference(socket);
    match option {
        SocketOption::NoDelay(on) => socket.set_tcp_nodelay(on),
        SocketOption::TimeToLive(hops) if is_v6(&socket)? => socket.set_unicast_hops_v6(hops),
        SocketOption::TimeToLive(hops) => socket.set_ttl_v4(hops),
        SocketOption::Linger(time) => socket.set_linger(time),
        SocketOption::KeepAlive(None) => socket.set_keepalive(false),
        SocketOption::KeepAlive(Some(time)) => socket.set_tcp_keepalive(&TcpKeepalive::new().with_time(time)),
        SocketOption::ReceiveBuffer(size) => socket.set_recv_buffer_size(size),
        SocketOption::SendBuffer(size) => socket.set_send_buffer_size(size),
        SocketOption::Broadcast(on) => socket.set_broadcast(on),
        SocketOption::ReuseAddress(on) => socket.set_reuse_address(on),
        SocketOption::TypeOfService(service) => set_type_of_service(&socket, service),
        SocketOption::MulticastLoop(on) if is_v6(&socket)? => socket.set_multicast_loop_v6(on),
        SocketOption::MulticastLoop(on) => socket.set_multicast_loop_v4(on),
        SocketOption::MulticastHops(hops) if is_v6(&socket)? => socket.set_multicast_hops_v6(hops),
        SocketOption::MulticastHops(hops) => socket.set_multicast_ttl_v4(hops),
        _ => Err(unsupported(&format!("option {option:?}"))),
    }
}

pub(crate) fn get(socket: &StandardSocket, option: SocketOption) -> io::Result<SocketOption> {
    let socket = reference(socket);
    Ok(match option {
        SocketOption::NoDelay(_) => SocketOption::NoDelay(socket.tcp_nodelay()?),
        SocketOption::TimeToLive(_) if is_v6(&socket)? => SocketOption::TimeToLive(socket.unicast_hops_v6()?),
        SocketOption::TimeToLive(_) => SocketOption::TimeToLive(socket.ttl_v4()?),
        SocketOption::Linger(_) => SocketOption::Linger(socket.linger()?),
        SocketOption::KeepAlive(_) => SocketOption::KeepAlive(keep_alive(&socket)?),
        SocketOption::ReceiveBuffer(_) => SocketOption::ReceiveBuffer(socket.recv_buffer_size()?),
        SocketOption::SendBuffer(_) => SocketOption::SendBuffer(socket.send_buffer_size()?),
        SocketOption::Broadcast(_) => SocketOption::Broadcast(socket.broadcast()?),
        SocketOption::ReuseAddress(_) => SocketOption::ReuseAddress(socket.reuse_address()?),
        SocketOption::TypeOfService(_) => SocketOption::TypeOfService(type_of_service(&socket)?),
        SocketOption::MulticastLoop(_) if is_v6(&socket)? => {
            SocketOption::MulticastLoop(socket.multicast_loop_v6()?)
        }
        SocketOption::MulticastLoop(_) => SocketOption::MulticastLoop(socket.multicast_loop_v4()?),
        SocketOption::MulticastHops(_) if is_v6(&socket)? => {
            SocketOption::MulticastHops(socket.multicast_hops_v6()?)
        }
        SocketOption::MulticastHops(_) => SocketOption::MulticastHops(socket.multicast_ttl_v4()?),
        _ => return Err(unsupported(&format!("option {option:?}"))),
    })
}

/// Clears SO_LINGER of a connection that is about to be closed, unless it is zero. With the option the kernel
/// blocks the closing thread until all bytes are acknowledged, for up to the lingering time, also if the
/// socket is non-blocking (Linux: `inet_release` does not look at O_NONBLOCK). Without it the kernel delivers
/// the bytes in the background, so nothing is lost. A time of zero does not block: it resets the connection.
pub(crate) fn clear_linger(socket: &StandardSocket) {
    if let StandardSocket::TcpStream(_) = socket {
        let socket = reference(socket);
        // A socket that does not answer does not linger either.
        if let Ok(Some(time)) = socket.linger()
            && !time.is_zero()
        {
            _ = socket.set_linger(None);
        }
    }
}

/// Joins or leaves a multicast group.
pub(crate) fn set_membership(
    socket: &StandardSocket,
    group: &MulticastGroup,
    is_member: bool,
) -> io::Result<()> {
    let socket = reference(socket);
    match group {
        MulticastGroup::V4 { group, interface } if is_member => socket.join_multicast_v4(group, interface),
        MulticastGroup::V4 { group, interface } => socket.leave_multicast_v4(group, interface),
        MulticastGroup::V6 { group, interface } if is_member => socket.join_multicast_v6(group, *interface),
        MulticastGroup::V6 { group, interface } => socket.leave_multicast_v6(group, *interface),
        _ => Err(unsupported("multicast groups of this kind")),
    }
}

#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
fn set_type_of_service(socket: &SockRef<'_>, service: u32) -> io::Result<()> {
    if is_v6(socket)? { socket.set_tclass_v6(service) } else { socket.set_tos_v4(service) }
}

#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
fn type_of_service(socket: &SockRef<'_>) -> io::Result<u32> {
    if is_v6(socket)? { socket.tclass_v6() } else { socket.tos_v4() }
}

#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
fn set_type_of_service(_: &SockRef<'_>, _: u32) -> io::Result<()> {
    Err(unsupported("type of service"))
}

#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
fn type_of_service(_: &SockRef<'_>) -> io::Result<u32> {
    Err(unsupported("type of service"))
}

fn is_v6(socket: &SockRef<'_>) -> io::Result<bool> {
    Ok(socket.local_addr()?.is_ipv6())
}

fn keep_alive(socket: &SockRef<'_>) -> io::Result<Option<Duration>> {
    if socket.keepalive()? { keep_alive_time(socket).map(Some) } else { Ok(None) }
}

#[cfg(not(any(windows, target_os = "haiku", target_os = "openbsd", target_os = "vita")))]
fn keep_alive_time(socket: &SockRef<'_>) -> io::Result<Duration> {
    socket.tcp_keepalive_time()
}

#[cfg(any(windows, target_os = "haiku", target_os = "openbsd", target_os = "vita"))]
fn keep_alive_time(_: &SockRef<'_>) -> io::Result<Duration> {
    Err(unsupported("way to read the keep-alive time"))
}
