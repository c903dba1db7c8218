//! A request that has begun, until its response has ended: it counts for limits, and is recorded at its end.

use std::sync::Arc;
use std::time::Instant;

use convoke_core::Panic;
use convoke_exec::time::now;
use convoke_sync::OwnedPermit;
use http::{Request, StatusCode};

use super::activity::Activity;
use crate::record::RequestRecord;
use crate::report::RequestLine;

pub(super) type OnRequest = Arc<dyn Fn(&RequestRecord) + Send + Sync>;

/// A request from the end of its head until its response was handed to the connection. It moves with the work: from the
/// task of the handler to the body of the response. It ends when it is dropped.
pub(super) struct Exchange {
    activity: Arc<Activity>,
    /// Its place among the requests of the server. `None` if it was refused.
    permit: Option<OwnedPermit>,
    recording: Option<Box<Recording>>,
}

struct Recording {
    on_request: OnRequest,
    record: RequestRecord,
    begun: Instant,
}

impl Exchange {
    /// Begins an exchange.
    pub(super) fn begin<B>(
        activity: &Arc<Activity>,
        permit: Option<OwnedPermit>,
        on_request: Option<&OnRequest>,
        line: &RequestLine,
        request: &Request<B>,
    ) -> Self {
        activity.request_began();
        let recording = on_request.map(|on_request| {
            let RequestLine { peer, method, uri } = line.clone();
            let record = RequestRecord {
                peer,
                method,
                uri,
                version: request.version(),
                status: None,
                response_bytes: 0,
                took: core::time::Duration::ZERO,
            };
            Box::new(Recording { on_request: on_request.clone(), record, begun: now() })
        });
        Self { activity: activity.clone(), permit, recording }
    }

    /// Records the status of the response.
    pub(super) fn answered(&mut self, status: StatusCode) {
        if let Some(recording) = &mut self.recording {
            recording.record.status = Some(status);
        }
    }

    /// Records that bytes of the response's body were handed to the connection.
    pub(super) fn sent(&mut self, bytes: usize) {
        if let Some(recording) = &mut self.recording {
            recording.record.response_bytes += bytes as u64;
        }
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.permit = None;
        self.activity.request_ended();
        if let Some(mut recording) = self.recording.take() {
            recording.record.took = now().saturating_duration_since(recording.begun);
            // The panic hook has reported a panic of the program's function.
            _ = Panic::catch(|| (recording.on_request)(&recording.record));
        }
    }
}
