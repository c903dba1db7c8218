//! Services of a context: one of each kind, made once, ended in order.
mod allocators;
mod closing;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::thread;

use convoke_task::context::{Context, FromContext, Service, ServiceError};
use convoke_testing::workshop::notes::Notes;

/// A service of number `N` that notes its end.
struct Numbered<const N: usize>(Notes);

impl<const N: usize> Service for Numbered<N> {
    type Interface = Self;

    fn into_interface(self: Arc<Self>) -> Arc<Self> {
        self
    }

    fn shutdown(&self) {
        self.0.note(format!("shut down {N}"));
    }
}

impl<const N: usize> Drop for Numbered<N> {
    fn drop(&mut self) {
        self.0.note(format!("destroy {N}"));
    }
}

fn with_three(notes: &Notes) -> Context {
    let context = Context::new();
    assert!(context.make_service(|_| Numbered::<1>(notes.clone())).is_ok());
    assert!(context.make_service(|_| Numbered::<2>(notes.clone())).is_ok());
    assert!(context.make_service(|_| Numbered::<3>(notes.clone())).is_ok());
    context
}

const SHUT_DOWN: [&str; 3] = ["shut down 3", "shut down 2", "shut down 1"];
const DESTROY: [&str; 3] = ["destroy 3", "destroy 2", "destroy 1"];

#[test]
fn dropping_the_context_shuts_all_down_and_then_destroys_all_in_reverse() {
    let notes = Notes::default();
    drop(with_three(&notes));
    assert_eq!(notes.lines(), [SHUT_DOWN, DESTROY].concat());
}

#[test]
fn each_service_is_shut_down_once_however_often_shutdown_is_called() {
    let notes = Notes::default();
    let context = with_three(&notes);
    context.shutdown();
    context.shutdown();
    assert_eq!(notes.lines(), SHUT_DOWN);
    assert!(context.has_service::<Numbered<1>>(), "found until it is destroyed");
    drop(context);
    assert_eq!(notes.lines(), [SHUT_DOWN, DESTROY].concat());
}

#[test]
fn a_second_one_is_refused_by_name_and_not_made() {
    let notes = Notes::default();
    let context = with_three(&notes);
    let refused = context.make_service(|_| -> Numbered<2> { unreachable!("refused before it is made") });
    let error = refused.err().unwrap();
    assert!(matches!(error, ServiceError::Duplicate(_)));
    assert!(error.to_string().contains("Numbered<2>"), "{error}");
}

/// Uses `Leaf`, so it is added after it and ends before it.
struct Root(Notes);
struct Leaf(Notes);

static TRACE: Mutex<Option<Notes>> = Mutex::new(None);

impl Service for Root {
    type Interface = Self;

    fn into_interface(self: Arc<Self>) -> Arc<Self> {
        self
    }

    fn shutdown(&self) {
        self.0.note("root");
    }
}

impl Service for Leaf {
    type Interface = Self;

    fn into_interface(self: Arc<Self>) -> Arc<Self> {
        self
    }

    fn shutdown(&self) {
        self.0.note("leaf");
    }
}

impl FromContext for Root {
    fn from_context(context: &Context) -> Self {
        Root(context.use_service::<Leaf>().0.clone())
    }
}

impl FromContext for Leaf {
    fn from_context(_: &Context) -> Self {
        Leaf(TRACE.lock().unwrap().get_or_insert_default().clone())
    }
}

#[test]
fn a_service_that_uses_another_while_it_is_made_ends_before_it() {
    let context = Context::new();
    let notes = context.use_service::<Root>().0.clone();
    assert!(context.has_service::<Leaf>());
    drop(context);
    assert_eq!(notes.lines(), ["root", "leaf"]);
}

trait Greeting: Send + Sync {
    fn text(&self) -> &'static str;
}

struct English;
struct Latin;

impl Greeting for English {
    fn text(&self) -> &'static str {
        "hello"
    }
}

impl Greeting for Latin {
    fn text(&self) -> &'static str {
        "salve"
    }
}

impl Service for English {
    type Interface = dyn Greeting;

    fn into_interface(self: Arc<Self>) -> Arc<dyn Greeting> {
        self
    }
}

impl Service for Latin {
    type Interface = dyn Greeting;

    fn into_interface(self: Arc<Self>) -> Arc<dyn Greeting> {
        self
    }
}

impl FromContext for English {
    fn from_context(_: &Context) -> Self {
        English
    }
}

#[test]
fn a_service_stands_in_for_another_of_the_same_interface() {
    let context = Context::new();
    context.make_service(|_| Latin).unwrap();
    assert_eq!(context.use_service::<English>().text(), "salve");
    assert_eq!(context.find_service::<dyn Greeting>().unwrap().text(), "salve");
    assert!(!context.has_service::<English>(), "it is known by its interface only");
    assert!(matches!(context.make_service(|_| English), Err(ServiceError::Duplicate(_))));
}

#[test]
fn after_the_shutdown_existing_services_are_found_and_none_is_added() {
    let context = Context::new();
    context.make_service(|_| Latin).unwrap();
    context.shutdown();
    assert_eq!(context.use_service::<English>().text(), "salve");
    let error = context.try_use_service::<Root>().err().unwrap();
    assert!(matches!(error, ServiceError::ShutDown(_)));
    assert!(error.to_string().contains("Root"), "{error}");
}

#[test]
fn a_service_made_while_the_context_shuts_down_is_refused_and_destroyed() {
    let (context, notes) = (Context::new(), Notes::default());
    let refused = context.make_service(|context| {
        context.shutdown();
        Numbered::<1>(notes.clone())
    });
    assert!(matches!(refused, Err(ServiceError::ShutDown(_))));
    drop(refused);
    assert_eq!(notes.lines(), ["destroy 1"], "never added, so never shut down");
}

static MADE: AtomicUsize = AtomicUsize::new(0);

struct Counted;

impl Service for Counted {
    type Interface = Self;

    fn into_interface(self: Arc<Self>) -> Arc<Self> {
        self
    }
}

impl FromContext for Counted {
    fn from_context(_: &Context) -> Self {
        MADE.fetch_add(1, Ordering::Relaxed);
        thread::yield_now();
        Counted
    }
}

#[test]
fn threads_that_ask_at_the_same_time_get_the_same_one() {
    const THREADS: usize = 4;
    const TIMES: usize = if cfg!(miri) { 5 } else { 50 };
    for _ in 0..TIMES {
        let (context, together) = (Context::new(), Barrier::new(THREADS));
        let ask = || {
            together.wait();
            context.use_service::<Counted>()
        };
        thread::scope(|scope| {
            let all = [(); THREADS].map(|()| scope.spawn(ask));
            let [first, rest @ ..] = all.map(|one| one.join().unwrap());
            assert!(rest.iter().all(|other| Arc::ptr_eq(&first, other)));
        });
    }
    assert_eq!(MADE.load(Ordering::Relaxed), TIMES);
}

/// Needs itself, through `Other`.
struct One;
struct Other;

impl Service for One {
    type Interface = Self;

    fn into_interface(self: Arc<Self>) -> Arc<Self> {
        self
    }
}

impl Service for Other {
    type Interface = Self;

    fn into_interface(self: Arc<Self>) -> Arc<Self> {
        self
    }
}

impl FromContext for One {
    fn from_context(context: &Context) -> Self {
        context.use_service::<Other>();
        One
    }
}

impl FromContext for Other {
    fn from_context(context: &Context) -> Self {
        context.use_service::<One>();
        Other
    }
}

#[test]
#[should_panic = "needs itself to be made"]
fn a_service_that_needs_itself_is_an_error_and_no_deadlock() {
    Context::new().use_service::<One>();
}

#[test]
fn two_threads_that_need_what_the_other_makes_get_an_error_and_no_deadlock() {
    let (context, both_begun) = (Context::new(), Barrier::new(2));
    // Each makes one service and, when both have begun, asks for the other's.
    let (one, other) = thread::scope(|scope| {
        let one = scope.spawn(|| cross::<5, 6>(&context, &both_begun));
        let other = scope.spawn(|| cross::<6, 5>(&context, &both_begun));
        (one.join().unwrap(), other.join().unwrap())
    });
    assert!(one != other, "exactly one of the two is told that it would wait for itself");
}

struct Crossed<const N: usize>;

impl<const N: usize> Service for Crossed<N> {
    type Interface = Self;

    fn into_interface(self: Arc<Self>) -> Arc<Self> {
        self
    }
}

impl<const N: usize> FromContext for Crossed<N> {
    fn from_context(_: &Context) -> Self {
        Crossed
    }
}

/// Makes `MINE`, which wants `YOURS`; returns true if that would have been a cycle.
fn cross<const MINE: usize, const YOURS: usize>(context: &Context, both_begun: &Barrier) -> bool {
    let mut circle = false;
    let made = context.make_service(|context| {
        both_begun.wait();
        circle = matches!(context.try_use_service::<Crossed<YOURS>>(), Err(ServiceError::Cyclic(_)));
        Crossed::<MINE>
    });
    assert!(made.is_ok());
    circle
}

#[test]
fn after_a_panic_while_a_service_is_made_the_next_caller_may_try() {
    let context = Context::new();
    let failed = thread::scope(|scope| {
        scope.spawn(|| context.make_service(|_| -> Counted { panic!("no") }).is_ok()).join().is_err()
    });
    assert!(failed);
    assert!(context.make_service(|_| Latin).is_ok());
    assert!(!context.has_service::<Counted>());
}

#[test]
fn after_a_service_panics_in_its_shutdown_the_others_are_shut_down() {
    struct Panics;
    impl Service for Panics {
        type Interface = Self;

        fn into_interface(self: Arc<Self>) -> Arc<Self> {
            self
        }

        fn shutdown(&self) {
            panic!("in the shut-down");
        }
    }
    let notes = Notes::default();
    let context = with_three(&notes);
    context.make_service(|_| Panics).ok();
    let panic = convoke_core::Panic::catch(|| drop(context)).unwrap_err();
    assert_eq!(panic.message(), "in the shut-down");
    assert_eq!(notes.lines(), [SHUT_DOWN, DESTROY].concat());
}
