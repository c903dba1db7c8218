//! Linux calls of the echo processes that the standard library does not offer: cores, limits, clocks,
//! options.

#![allow(unsafe_code)]

use std::io;
use std::net::TcpStream;
use std::os::fd::AsRawFd;

/// Pins this process to the `index`th of the cores that it may use; to the last one if there are fewer.
pub(super) fn stay_on_core(index: usize) -> io::Result<()> {
    let size = size_of::<libc::cpu_set_t>();
    // SAFETY: a set of cores is an array of integers; all zeros is the empty set.
    let mut allowed: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the set lies on our stack and has that size.
    check(unsafe { libc::sched_getaffinity(0, size, &raw mut allowed) })?;
    // SAFETY: the index is below the size of the set.
    let may_use = |core: &usize| unsafe { libc::CPU_ISSET(*core, &allowed) };
    let cores: Vec<usize> = (0..libc::CPU_SETSIZE as usize).filter(may_use).collect();
    let Some(core) = cores.get(index).or(cores.last()) else { return Ok(()) };
    // SAFETY: a set of cores is an array of integers; all zeros is the empty set.
    let mut wanted: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the index is below the size of the set.
    unsafe { libc::CPU_SET(*core, &mut wanted) };
    // SAFETY: the set lies on our stack and has that size, and is only read.
    check(unsafe { libc::sched_setaffinity(0, size, &raw const wanted) })?;
    Ok(())
}

/// Raises the limit of open sockets of this process to its maximum.
pub(super) fn allow_many_sockets() -> io::Result<()> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the limit lies on our stack.
    check(unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) })?;
    limit.rlim_cur = limit.rlim_max;
    // SAFETY: the limit lies on our stack and is only read.
    check(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) })?;
    Ok(())
}

/// Makes the kernel kill this process when its parent ends.
pub(super) fn end_with_parent() -> io::Result<()> {
    // SAFETY: takes no pointer.
    check(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) })?;
    Ok(())
}

/// Sends SIGTERM to a process.
pub(super) fn terminate(process: u32) -> io::Result<()> {
    // SAFETY: takes no pointer.
    check(unsafe { libc::kill(process as libc::pid_t, libc::SIGTERM) })?;
    Ok(())
}

/// Returns the processor time of all threads of a process, in nanoseconds, in user and kernel mode.
pub(super) fn processor_time(process: u32) -> io::Result<u64> {
    let (mut clock, mut time) = (0, libc::timespec { tv_sec: 0, tv_nsec: 0 });
    // SAFETY: the clock's name lies on our stack.
    let known = unsafe { libc::clock_getcpuclockid(process as libc::pid_t, &raw mut clock) };
    if known != 0 {
        return Err(io::Error::from_raw_os_error(known));
    }
    // SAFETY: the time lies on our stack.
    check(unsafe { libc::clock_gettime(clock, &raw mut time) })?;
    Ok(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// Clock ticks in which a process was running.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Ticks {
    pub(super) user: u64,
    pub(super) kernel: u64,
}

/// Returns the ticks of all threads of a process since its start.
pub(super) fn ticks(process: u32) -> io::Result<Ticks> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat"))?;
    ticks_in(&stat).ok_or_else(|| io::Error::other("the kernel does not say where time was spent"))
}

/// Parses them: the twelfth and the thirteenth word after the program's name, which is in parentheses and may
/// contain anything.
fn ticks_in(stat: &str) -> Option<Ticks> {
    let (_, after_name) = stat.rsplit_once(')')?;
    let mut words = after_name.split_whitespace().skip(11);
    Some(Ticks { user: words.next()?.parse().ok()?, kernel: words.next()?.parse().ok()? })
}

/// Returns the anonymous resident memory of a process, in bytes.
pub(super) fn resident_memory(process: u32) -> io::Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"))?;
    anonymous_bytes(&status)
        .ok_or_else(|| io::Error::other("the kernel does not say how much memory there is"))
}

fn anonymous_bytes(status: &str) -> Option<u64> {
    let kilobytes =
        status.lines().find_map(|line| line.strip_prefix("RssAnon:")?.trim().strip_suffix(" kB"))?;
    Some(kilobytes.parse::<u64>().ok()? * 1024)
}

/// Makes the kernel forget the connection at once when it is closed, so that its port is free for the next
/// run.
pub(super) fn forget_when_closed(stream: &TcpStream) -> io::Result<()> {
    let linger = libc::linger { l_onoff: 1, l_linger: 0 };
    let size = size_of_val(&linger) as libc::socklen_t;
    // SAFETY: the option lies on our stack, has that size, and is only read.
    let set = unsafe {
        let option = (&raw const linger).cast();
        libc::setsockopt(stream.as_raw_fd(), libc::SOL_SOCKET, libc::SO_LINGER, option, size)
    };
    check(set)?;
    Ok(())
}

/// Returns the result of a system call, or its error.
pub(super) fn check(returned: libc::c_int) -> io::Result<libc::c_int> {
    if returned < 0 { Err(io::Error::last_os_error()) } else { Ok(returned) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_takes_processor_time() {
        let this = std::process::id();
        let before = processor_time(this).unwrap();
        while processor_time(this).unwrap() == before {
            std::hint::spin_loop();
        }
    }

    #[test]
    fn ticks_are_found_behind_a_name_of_any_kind() {
        let stat = "7 (a) b (c) S 1 7 7 0 -1 4194304 90 0 0 0 25 75 0 0 20 0 1 0";
        assert_eq!(ticks_in(stat), Some(Ticks { user: 25, kernel: 75 }));
        assert_eq!(ticks_in("7 (a) S 1"), None);
        assert!(ticks(std::process::id()).is_ok());
    }

    #[test]
    fn memory_is_found_among_the_lines_of_the_kernel() {
        assert_eq!(anonymous_bytes("VmRSS:\t  3212 kB\nRssAnon:\t    1536 kB\n"), Some(1_572_864));
        assert_eq!(anonymous_bytes("VmRSS:\t  3212 kB\n"), None);
        assert!(resident_memory(std::process::id()).unwrap() > 0);
    }

    #[test]
    fn there_is_a_core_for_every_index() {
        std::thread::spawn(|| {
            stay_on_core(1_000_000).unwrap();
            stay_on_core(0).unwrap();
        })
        .join()
        .unwrap();
    }
}
