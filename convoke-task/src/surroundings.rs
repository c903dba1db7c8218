//! What a task, or a region of one, shows to those below who ask for its environment: that of around, with a stop token of its
//! own. It is made when somebody first asks.

use std::time::Instant;

use convoke_core::env::Changes;
use convoke_core::{Env, StopReason, StopSource};

pub(crate) struct Surroundings {
    source: StopSource,
    env: Env,
}

impl Surroundings {
    /// Those of something that will be asked to stop at this time at the latest.
    pub(crate) fn new(around: &Env, deadline: Option<Instant>) -> Self {
        Self::with_source(around, deadline.map_or_else(StopSource::new, StopSource::with_deadline))
    }

    /// The same stop token, somewhere else.
    pub(crate) fn moved_to(&self, around: &Env) -> Self {
        Self::with_source(around, self.source.clone())
    }

    fn with_source(around: &Env, source: StopSource) -> Self {
        let env = around.with(Changes::new().stop_token(source.token()));
        Self { source, env }
    }

    pub(crate) fn env(&self) -> &Env {
        &self.env
    }

    /// Those who have the token hear of a stop.
    pub(crate) fn request_stop(&self, reason: StopReason) {
        self.source.request_stop(reason);
    }
}
