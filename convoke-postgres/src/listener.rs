//! Notifications: a connection that listens.

use core::fmt;

use convoke_core::Never;
use convoke_sync::mpsc;
use convoke_task::{AsyncClose, Exit};
use tokio_postgres::Notification;

use crate::driver::Wiring;
use crate::error::Error;
use crate::pool::Pool;
use crate::session::Session;

/// Notifications that a [`Listener`] has not taken, at most. Beyond that they wait in the server.
pub const NOTIFICATIONS: usize = 256;

/// Connection that hears notifications (`NOTIFY`): see [`Pool::listen`]. It counts as a connection of the pool.
pub struct Listener {
    session: Session,
    heard: mpsc::Receiver<Notification>,
}

impl Pool {
    /// Listens for notifications on `channels`, with a connection that does nothing else.
    ///
    /// Notifications are lost while nobody listens, such as before a listener that lost its connection is made again:
    /// read what may have changed once after each `listen`.
    ///
    /// - *Completes with* the listener, when the server has confirmed; or with an error as [`get`](Pool::get).
    /// - *If dropped*, the connection is closed.
    /// - *Runs on* the task.
    ///
    /// ```no_run
    /// use convoke::prelude::*;
    /// use convoke_postgres::{Error, Pool};
    ///
    /// async fn watch(pool: &Pool) -> Result<(), Error> {
    ///     using(pool.listen(["orders"]).await?, async |mut listener| {
    ///         while let Some(notification) = listener.next().await {
    ///             println!("{}: {}", notification.channel(), notification.payload());
    ///         }
    ///         Err(Error::Closed) // The connection is lost.
    ///     })
    ///     .await
    /// }
    /// ```
    pub async fn listen<C: AsRef<str>>(
        &self,
        channels: impl IntoIterator<Item = C>,
    ) -> Result<Listener, Error> {
        // A quoted name: a quotation mark in it is doubled.
        let listen = |channel: C| format!("LISTEN \"{}\"", channel.as_ref().replace('"', "\"\""));
        let statements = channels.into_iter().map(listen).collect::<Vec<_>>().join(";");
        let (sender, heard) = mpsc::channel(NOTIFICATIONS);
        let session = self.shared().lease_listening(Wiring::Listener(sender)).await?;
        let listener = Listener { session, heard };
        let listens = listener.session.client().batch_execute(&statements);
        listener.session.call(&self.shared().surroundings, listens).await?;
        Ok(listener)
    }
}

impl Listener {
    /// Waits for the next notification.
    ///
    /// - *Completes with* it, or `None` if the connection is lost.
    /// - *If dropped*, no notification is lost.
    /// - *Runs on* the task.
    pub async fn next(&mut self) -> Option<Notification> {
        self.heard.recv().await
    }
}

impl AsyncClose for Listener {
    type Error = Never;

    async fn close(self, _: Exit) -> Result<(), Never> {
        Ok(())
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        // It may wait for room in the buffer, and then not see that the client is gone.
        self.session.cut();
    }
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listener").field("heard", &self.heard.len()).finish_non_exhaustive()
    }
}
