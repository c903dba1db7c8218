//! Models of a source's readiness: an event against a clear, against the start of a wait, against the end of
//! the driver. The kernel of the model reports each change once.
use crate::model::{Reached, explore, explore_fully};
use convoke_core::raw::sync::{Arc, Mutex, thread};
use convoke_io::driver::Interest;
use convoke_poll::readiness::{Blocked, Event, Line, Readiness};

/// The buffer size of a read: more bytes than are ever available, so each read is short.
const BUFFER: u32 = 8;

/// A socket in the kernel.
#[derive(Default)]
struct Kernel {
    bytes: u32,
    has_ended: bool,
    has_room: bool,
    /// The changes since the last report.
    edge: Option<Event>,
}

/// A source: the driver's knowledge, the waiters (at most one for each direction), and the woken ones. The
/// writer's queue is created on demand.
struct Source {
    readiness: Readiness,
    reader: Mutex<Waits>,
    writer: Mutex<Option<Arc<Mutex<Waits>>>>,
    kernel: Mutex<Kernel>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
enum Waits {
    #[default]
    No,
    Parked,
    Told,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Read {
    Bytes(u32),
    End,
    Waits,
    Shut,
}

impl Source {
    /// Creates a source that the driver knows nothing about yet.
    fn new() -> Arc<Self> {
        Arc::new(Self {
            readiness: Readiness::new(),
            reader: Mutex::new(Waits::No),
            writer: Mutex::new(None),
            kernel: Mutex::new(Kernel::default()),
        })
    }

    fn kernel<R>(&self, f: impl FnOnce(&mut Kernel) -> R) -> R {
        f(&mut self.kernel.lock().unwrap())
    }

    /// Receives bytes or the end.
    fn arrives(&self, bytes: u32, end: bool) {
        self.kernel(|kernel| {
            kernel.bytes += bytes;
            kernel.has_ended |= end;
            let before = kernel.edge.unwrap_or_default();
            kernel.edge = Some(before.and_if(true, Event::READABLE).and_if(end, Event::MORE));
        });
    }

    /// Frees buffer space.
    fn drains(&self) {
        self.kernel(|kernel| {
            kernel.has_room = true;
            let before = kernel.edge.unwrap_or_default();
            kernel.edge = Some(before.and_if(true, Event::WRITABLE));
        });
    }

    /// Handles an event as the driver does, if there is one.
    fn looked_after(&self) {
        let Some(event) = self.kernel(|kernel| kernel.edge.take()) else { return };
        let lines = self.readiness.happened(event);
        if lines.has(Line::Watchers) && event.says(Event::READABLE) {
            tell(&self.reader);
        }
        if lines.has(Line::Operations) && event.says(Event::WRITABLE) {
            self.tell_writer();
        }
    }

    /// Reads, or waits if it must.
    fn read(&self) -> Read {
        // A reader that has just been served checks first without the lock, and then waits as usual.
        if self.readiness.is_known_to_block(Interest::Read) && self.waits_to_read() {
            return Read::Waits;
        }
        loop {
            match self.readiness.check(Interest::Read) {
                Ok(look) => {
                    let (bytes, has_ended) =
                        self.kernel(|kernel| (core::mem::take(&mut kernel.bytes), kernel.has_ended));
                    match (bytes, has_ended) {
                        (0, true) => return Read::End,
                        (0, false) => self.readiness.would_block(Interest::Read, look),
                        (bytes, _) => {
                            assert!(bytes < BUFFER);
                            self.readiness.fell_short(Interest::Read, look);
                            return Read::Bytes(bytes);
                        }
                    }
                }
                Err(Blocked::Shut) => return Read::Shut,
                Err(Blocked::NotReady) => {
                    if self.waits_to_read() {
                        return Read::Waits;
                    }
                }
            }
        }
    }

    /// Returns true if the reader is queued now.
    fn waits_to_read(&self) -> bool {
        let mut reader = self.reader.lock().unwrap();
        let waits = self.readiness.may_wait(Interest::Read, Line::Watchers);
        if waits {
            *reader = Waits::Parked;
        }
        waits
    }

    /// Writes, or waits if it must. Returns true if it has written.
    fn write(&self) -> bool {
        loop {
            match self.readiness.check(Interest::Write) {
                Ok(look) => {
                    if self.kernel(|kernel| core::mem::take(&mut kernel.has_room)) {
                        return true;
                    }
                    self.readiness.would_block(Interest::Write, look);
                }
                Err(_) if self.writer_stands_in_line() => return false,
                Err(_) => {}
            }
        }
    }

    /// Waits for buffer space. Returns false if the driver has shut down.
    fn writer_waits(&self) -> bool {
        while let Ok(look) = self.readiness.check(Interest::Write) {
            self.readiness.would_block(Interest::Write, look);
        }
        self.writer_stands_in_line()
    }

    fn writer_stands_in_line(&self) -> bool {
        let line = self.writer.lock().unwrap().get_or_insert_with(|| Arc::new(Mutex::new(Waits::No))).clone();
        let mut writer = line.lock().unwrap();
        let waits = self.readiness.may_wait(Interest::Write, Line::Operations);
        if waits {
            *writer = Waits::Parked;
        }
        waits
    }

    /// Returns the states of the reader and the writer.
    fn lines(&self) -> (Waits, Waits) {
        let writer = self.known_writer().map_or(Waits::No, |line| *line.lock().unwrap());
        (*self.reader.lock().unwrap(), writer)
    }

    fn known_writer(&self) -> Option<Arc<Mutex<Waits>>> {
        self.writer.lock().unwrap().clone()
    }

    fn tell_writer(&self) {
        if let Some(line) = self.known_writer() {
            tell(&line);
        }
    }
}

fn tell(line: &Mutex<Waits>) {
    let mut waits = line.lock().unwrap();
    if *waits == Waits::Parked {
        *waits = Waits::Told;
    }
}

/// Reads after a wait: the reader must have been woken, and finds the bytes.
fn bytes_when_told(source: &Source) -> u32 {
    assert_eq!(source.lines().0, Waits::Told, "an event was lost: its waiter waits for ever");
    match source.read() {
        Read::Bytes(bytes) => bytes,
        other => panic!("a reader that was woken found {other:?}"),
    }
}

#[test]
fn an_event_is_seen_by_who_reads_or_by_who_waits() {
    static AT_ONCE: Reached = Reached::new();
    static LATER: Reached = Reached::new();
    explore(3, || {
        let source = Source::new();
        let driver = thread::spawn({
            let source = source.clone();
            move || {
                source.arrives(1, false);
                source.looked_after();
            }
        });
        let read = source.read();
        driver.join().unwrap();
        match read {
            Read::Bytes(bytes) => {
                AT_ONCE.here();
                assert_eq!(bytes, 1);
            }
            Read::Waits => {
                LATER.here();
                assert_eq!(bytes_when_told(&source), 1);
            }
            other => panic!("{other:?}"),
        }
    });
    AT_ONCE.assert("the read found the byte");
    LATER.assert("the read waited for it");
}

#[test]
fn a_read_that_falls_short_does_not_clear_an_event_that_came_meanwhile() {
    static BOTH: Reached = Reached::new();
    static ONE: Reached = Reached::new();
    static NONE: Reached = Reached::new();
    explore_fully(3, || {
        let source = Source::new();
        let driver = thread::spawn({
            let source = source.clone();
            move || {
                for _ in 0..2 {
                    source.arrives(1, false);
                    source.looked_after();
                }
            }
        });
        let mut heard = 0;
        let mut reads = 0;
        let waits = loop {
            match source.read() {
                Read::Bytes(bytes) => heard += bytes,
                Read::Waits => break true,
                other => panic!("{other:?}"),
            }
            reads += 1;
            if heard == 2 {
                break false;
            }
        };
        driver.join().unwrap();
        if waits {
            heard += bytes_when_told(&source);
        }
        BOTH.here_if(reads == 2);
        ONE.here_if(reads == 1);
        NONE.here_if(reads == 0);
        assert_eq!(heard, 2);
    });
    BOTH.assert("each byte was read by itself");
    ONE.assert("one read, and then a wait or both at once");
    NONE.assert("a wait before the first");
}

#[test]
fn the_end_that_came_with_the_last_byte_is_found() {
    static WAITED: Reached = Reached::new();
    static AT_ONCE: Reached = Reached::new();
    explore(3, || {
        let source = Source::new();
        let driver = thread::spawn({
            let source = source.clone();
            move || {
                source.arrives(1, true);
                source.looked_after();
            }
        });
        let mut heard = 0;
        let waits = loop {
            match source.read() {
                Read::Bytes(bytes) => heard += bytes,
                Read::End => break false,
                Read::Waits => break true,
                Read::Shut => unreachable!("nobody shuts it"),
            }
        };
        driver.join().unwrap();
        if waits {
            WAITED.here();
            assert_eq!(source.lines().0, Waits::Told, "the end was lost");
            loop {
                match source.read() {
                    Read::Bytes(bytes) => heard += bytes,
                    Read::End => break,
                    other => panic!("a reader that was woken found {other:?}"),
                }
            }
        }
        AT_ONCE.here_if(!waits);
        assert_eq!(heard, 1);
    });
    WAITED.assert("the reader waited");
    AT_ONCE.assert("the reader found it all at once");
}

/// Both directions share the word and its tick.
#[test]
fn one_direction_does_not_lose_the_event_of_the_other() {
    static BOTH_WAIT: Reached = Reached::new();
    explore(2, || {
        let source = Source::new();
        let driver = thread::spawn({
            let source = source.clone();
            move || {
                source.arrives(1, false);
                source.looked_after();
                source.drains();
                source.looked_after();
            }
        });
        let writer = thread::spawn({
            let source = source.clone();
            move || source.write()
        });
        let read = source.read();
        let written = writer.join().unwrap();
        driver.join().unwrap();
        BOTH_WAIT.here_if(read == Read::Waits && !written);
        if read == Read::Waits {
            assert_eq!(bytes_when_told(&source), 1);
        }
        if !written {
            assert_eq!(source.lines().1, Waits::Told, "room was made, and nobody was told");
            assert!(source.write());
        }
    });
    BOTH_WAIT.assert("both waited");
}

#[test]
fn nobody_waits_for_a_driver_that_has_shut_down() {
    static REFUSED: Reached = Reached::new();
    static TOLD: Reached = Reached::new();
    explore(3, || {
        let source = Source::new();
        let driver = thread::spawn({
            let source = source.clone();
            move || {
                source.readiness.shut();
                tell(&source.reader);
                source.tell_writer();
            }
        });
        let read = source.read();
        driver.join().unwrap();
        match read {
            Read::Shut => REFUSED.here(),
            Read::Waits => {
                TOLD.here();
                assert_eq!(source.lines().0, Waits::Told);
                assert_eq!(source.read(), Read::Shut);
            }
            other => panic!("{other:?}"),
        }
    });
    REFUSED.assert("the end came first");
    TOLD.assert("the reader waited, and was told");
}

#[test]
fn the_end_of_the_driver_finds_the_line_that_was_just_made() {
    static REFUSED: Reached = Reached::new();
    static TOLD: Reached = Reached::new();
    explore(3, || {
        let source = Source::new();
        let driver = thread::spawn({
            let source = source.clone();
            move || {
                source.readiness.shut();
                source.tell_writer();
            }
        });
        let waits = source.writer_waits();
        driver.join().unwrap();
        REFUSED.here_if(!waits);
        TOLD.here_if(waits);
        assert!(!waits || source.lines().1 == Waits::Told, "an operation outlives its driver");
    });
    REFUSED.assert("the end came first");
    TOLD.assert("the writer waited, and was told");
}
