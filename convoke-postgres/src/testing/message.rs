//! Messages of the protocol.

use std::io;

use convoke_net::stream::AnyStream;

/// The longest message that is read.
const LONGEST: usize = 1 << 20;

/// Reads the message of a client that begins a connection: it has no kind.
pub(super) async fn read_startup(stream: &mut AnyStream) -> io::Result<Vec<u8>> {
    let mut length = [0; 4];
    stream.read_exact(&mut length).await?;
    read_body(stream, length).await
}

/// Reads a message: its kind, and its contents.
pub(super) async fn read(stream: &mut AnyStream) -> io::Result<(u8, Vec<u8>)> {
    let mut head = [0; 5];
    stream.read_exact(&mut head).await?;
    let [kind, length @ ..] = head;
    Ok((kind, read_body(stream, length).await?))
}

async fn read_body(stream: &mut AnyStream, length: [u8; 4]) -> io::Result<Vec<u8>> {
    let length = u32::from_be_bytes(length) as usize;
    if !(4..LONGEST).contains(&length) {
        return Err(io::Error::other("a message of this length is none"));
    }
    let mut body = vec![0; length - 4];
    stream.read_exact(&mut body).await?;
    Ok(body)
}

/// Returns a number that a message counts with.
pub(super) fn count(number: usize) -> i16 {
    i16::try_from(number).expect("a row of a test is short")
}

/// Messages that are about to be sent.
#[derive(Default)]
pub(super) struct Answer(Vec<u8>);

impl Answer {
    /// Appends a message.
    pub(super) fn add(&mut self, kind: u8, write: impl FnOnce(&mut Vec<u8>)) -> &mut Self {
        self.0.push(kind);
        let begin = self.0.len();
        self.0.extend([0; 4]);
        write(&mut self.0);
        let length = u32::try_from(self.0.len() - begin).expect("a message of a test is short");
        self.0[begin..begin + 4].copy_from_slice(&length.to_be_bytes());
        self
    }

    /// Appends a message without contents.
    pub(super) fn empty(&mut self, kind: u8) -> &mut Self {
        self.add(kind, |_| ())
    }

    /// Appends an error.
    pub(super) fn error(&mut self, code: &str, message: &str) -> &mut Self {
        self.add(b'E', |body| {
            for (field, value) in [(b'S', "ERROR"), (b'V', "ERROR"), (b'C', code), (b'M', message)] {
                body.push(field);
                text(body, value);
            }
            body.push(0);
        })
    }

    /// Appends `ReadyForQuery`.
    pub(super) fn ready(&mut self, state: u8) -> &mut Self {
        self.add(b'Z', |body| body.push(state))
    }

    pub(super) async fn send(&mut self, stream: &mut AnyStream) -> io::Result<()> {
        let bytes = core::mem::take(&mut self.0);
        stream.write_all(&bytes).await?;
        stream.flush().await
    }
}

/// Writes a text that ends with a zero.
pub(super) fn text(body: &mut Vec<u8>, text: &str) {
    body.extend(text.as_bytes());
    body.push(0);
}

/// Takes parts off the contents of a message.
pub(super) struct Parts<'a>(pub(super) &'a [u8]);

/// The error of a message that is too short, or whose text is none.
fn malformed() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "malformed message")
}

impl Parts<'_> {
    fn array<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let (&taken, rest) = self.0.split_first_chunk().ok_or_else(malformed)?;
        self.0 = rest;
        Ok(taken)
    }

    pub(super) fn byte(&mut self) -> io::Result<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub(super) fn text(&mut self) -> io::Result<String> {
        let end = self.0.iter().position(|byte| *byte == 0).ok_or_else(malformed)?;
        let text = String::from_utf8(self.0[..end].to_vec()).map_err(|_| malformed())?;
        self.0 = &self.0[end + 1..];
        Ok(text)
    }

    pub(super) fn short(&mut self) -> io::Result<i16> {
        self.array().map(i16::from_be_bytes)
    }

    pub(super) fn long(&mut self) -> io::Result<i32> {
        self.array().map(i32::from_be_bytes)
    }

    /// Takes a value: its length, and its bytes. None is `NULL`.
    pub(super) fn value(&mut self) -> io::Result<Option<Vec<u8>>> {
        let Ok(length) = usize::try_from(self.long()?) else { return Ok(None) };
        let (bytes, rest) = self.0.split_at_checked(length).ok_or_else(malformed)?;
        self.0 = rest;
        Ok(Some(bytes.to_vec()))
    }
}
