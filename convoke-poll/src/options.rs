//! Options of sockets: setting and reading them.

use std::io;
use std::time::Duration;

use convoke_io::driver::{SocketOption, StandardSocket, unsupported};
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
