//! A request that has begun, until its response has ended: it counts for limits, and is recorded at its end.

use std::sync::Arc;
use std::time::Instant;

use convoke_core::Panic;
use convoke_core::raw::sync::atomic::{AtomicUsize, Ordering};
use convoke_exec::time::now;
use http::{Method, Request, Response, StatusCode, Uri};

use super::activity::Activity;
use super::{HttpService, SharedServer};
use crate::connection::Connection;
use crate::record::RequestRecord;
use crate::report::{Report, RequestLine};

pub(super) type OnRequest = Arc<dyn Fn(&RequestRecord) + Send + Sync>;

/// The number of requests that a server works on, and its bound.
pub(super) struct Places {
    taken: AtomicUsize,
    most: usize,
}

impl Places {
    pub(super) fn new(most: usize) -> Self {
        Self { taken: AtomicUsize::new(0), most }
    }

    /// Takes a place, if one is free.
    pub(super) fn take(&self) -> bool {
        let taken = |taken| (taken < self.most).then_some(taken + 1);
        self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, taken).is_ok()
    }

    fn give_back(&self) {
        self.taken.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The place that requests come from, with all that they need of it. The requests of a connection share one.
pub(super) struct Origin<S> {
    pub(super) server: Arc<SharedServer<S>>,
    pub(super) connection: Connection,
    pub(super) activity: Arc<Activity>,
}

/// A request from the end of its head until its response was handed to the connection. It moves with the work: from the
/// task of the handler to the body of the response. It ends when it is dropped.
pub(super) struct Exchange<S: HttpService> {
    pub(super) origin: Arc<Origin<S>>,
    /// The response of the service, or the status of the server's own, on its way to the connection. It waits here
    /// because it is large, and a box passes through the task's end and its handle at no cost.
    answer: Option<Result<Response<S::Body>, StatusCode>>,
    /// True if it has one of the server's places. False if it was refused.
    has_place: bool,
    method: Method,
    uri: Uri,
    recording: Option<Box<Recording>>,
}

struct Recording {
    record: RequestRecord,
    begun: Instant,
}

impl<S: HttpService> Exchange<S> {
    /// Begins an exchange.
    pub(super) fn begin<B>(origin: &Arc<Origin<S>>, has_place: bool, request: &Request<B>) -> Box<Self> {
        origin.activity.request_began();
        let recording = origin.server.on_request.is_some().then(|| {
            let record = RequestRecord {
                peer: origin.connection.peer().clone(),
                method: request.method().clone(),
                uri: request.uri().clone(),
                version: request.version(),
                status: None,
                response_bytes: 0,
                took: core::time::Duration::ZERO,
            };
            Box::new(Recording { record, begun: now() })
        });
        let (method, uri) = (request.method().clone(), request.uri().clone());
        Box::new(Self { origin: origin.clone(), answer: None, has_place, method, uri, recording })
    }

    /// Stores the response of the service, or the status of one of the server itself, and records it.
    pub(super) fn answer(&mut self, answer: Result<Response<S::Body>, StatusCode>) {
        if let Some(recording) = &mut self.recording {
            recording.record.status = Some(answer.as_ref().map_or_else(|status| *status, Response::status));
        }
        self.answer = Some(answer);
    }

    /// Takes the answer.
    pub(super) fn take_answer(&mut self) -> Option<Result<Response<S::Body>, StatusCode>> {
        self.answer.take()
    }

    /// Records that bytes of the response's body were handed to the connection.
    pub(super) fn sent(&mut self, bytes: usize) {
        if let Some(recording) = &mut self.recording {
            recording.record.response_bytes += bytes as u64;
        }
    }

    /// Reports a failure of the request.
    #[cold]
    pub(super) fn report(&self, report: impl FnOnce(RequestLine) -> Report) {
        let peer = self.origin.connection.peer().clone();
        let line = RequestLine { peer, method: self.method.clone(), uri: self.uri.clone() };
        self.origin.server.report(report(line));
    }
}

impl<S: HttpService> Drop for Exchange<S> {
    fn drop(&mut self) {
        let Origin { server, activity, .. } = &*self.origin;
        if self.has_place {
            server.places.give_back();
        }
        activity.request_ended();
        if let (Some(mut recording), Some(on_request)) = (self.recording.take(), &server.on_request) {
            recording.record.took = now().saturating_duration_since(recording.begun);
            // The panic hook has reported a panic of the program's function.
            _ = Panic::catch(|| on_request(&recording.record));
        }
    }
}
