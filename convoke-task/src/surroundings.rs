//! The environment that a task, or a region of one, shows to the program: that around it, with a stop token
//! of its own. Created when it is first asked for.

use std::time::Instant;

use convoke_core::env::Changes;
use convoke_core::{Env, StopReason, StopSource};

/// An environment with a stop token of its own, and the source of that token.
pub(crate) struct Surroundings {
    source: StopSource,
    env: Env,
}

impl Surroundings {
    /// Creates an environment whose stop token announces this deadline.
    pub(crate) fn new(around: &Env, deadline: Option<Instant>) -> Self {
        Self::with_source(around, deadline.map_or_else(StopSource::new, StopSource::with_deadline))
    }

    /// Creates another environment with the same stop token.
    pub(crate) fn moved_to(&self, around: &Env) -> Self {
        Self::with_source(around, self.source.clone())
    }

    fn with_source(around: &Env, source: StopSource) -> Self {
        let env = around.with(Changes::new().stop_token(source.token()));
        Self { source, env }
    }

    /// Returns the environment.
    pub(crate) fn env(&self) -> &Env {
        &self.env
    }

    /// Requests a stop of the holders of the token.
    pub(crate) fn request_stop(&self, reason: StopReason) {
        self.source.request_stop(reason);
    }
}
