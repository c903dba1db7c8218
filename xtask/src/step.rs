//! A step: a named piece of work with a verdict. Announces, times and tabulates them; all of them run, so that one
//! visit to the workshop shows everything that is wrong.

use crate::arguments::Arguments;
use crate::cpu_time::CpuTime;
use std::time::{Duration, Instant};

/// How a step ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// With a few words on what was seen; may be empty.
    Passed(String),
    /// With one line for each thing that is wrong.
    Failed(Vec<String>),
    /// With the reason.
    Skipped(String),
}

impl Verdict {
    /// Passed with `note` if nothing was found, failed with the findings otherwise.
    pub(crate) fn from_findings(findings: Vec<String>, note: impl Into<String>) -> Self {
        if findings.is_empty() { Verdict::Passed(note.into()) } else { Verdict::Failed(findings) }
    }

    /// Failed for one reason.
    pub(crate) fn failed(reason: impl Into<String>) -> Self {
        Verdict::Failed(vec![reason.into()])
    }

    fn word(&self) -> &'static str {
        match self {
            Verdict::Passed(_) => "ok",
            Verdict::Failed(_) => "FAIL",
            Verdict::Skipped(_) => "skipped",
        }
    }

    fn note(&self) -> String {
        match self {
            Verdict::Passed(note) | Verdict::Skipped(note) => note.clone(),
            Verdict::Failed(findings) if findings.len() == 1 => findings[0].clone(),
            Verdict::Failed(findings) => format!("{} findings", findings.len()),
        }
    }
}

/// A named piece of work, not yet done.
pub(crate) struct Step<'a> {
    name: &'static str,
    about: &'static str,
    is_asked_for: bool,
    work: Box<dyn FnOnce() -> Verdict + 'a>,
}

impl<'a> Step<'a> {
    pub(crate) fn new(name: &'static str, about: &'static str, work: impl FnOnce() -> Verdict + 'a) -> Self {
        Self { name, about, is_asked_for: false, work: Box::new(work) }
    }

    /// Makes it a step that is run only if it is asked for by name.
    pub(crate) fn if_asked_for(self) -> Self {
        Self { is_asked_for: true, ..self }
    }
}

/// Narrows `steps` to what the command line asked for. `None` if it asked only for the list, which is then printed.
pub(crate) fn select<'a>(
    mut steps: Vec<Step<'a>>,
    arguments: &Arguments,
) -> Result<Option<Vec<Step<'a>>>, String> {
    if arguments.list {
        for step in &steps {
            println!("{:<12} {}", step.name, step.about);
        }
        return Ok(None);
    }
    for name in &arguments.only {
        if !steps.iter().any(|step| step.name == name) {
            let names: Vec<_> = steps.iter().map(|step| step.name).collect();
            return Err(format!("there is no step `{name}`; there are: {}", names.join(", ")));
        }
    }
    steps.retain(|step| match &*arguments.only {
        [] => !step.is_asked_for,
        only => only.iter().any(|name| name == step.name),
    });
    Ok(Some(steps))
}

/// Does all the steps, then prints a table of them. True if none failed.
pub(crate) fn run(title: &str, steps: Vec<Step<'_>>) -> bool {
    let count = steps.len();
    let mut finished = Vec::new();
    for (index, step) in steps.into_iter().enumerate() {
        println!("\n[{}/{count}] {}: {}", index + 1, step.name, step.about);
        let (begun, before) = (Instant::now(), CpuTime::of_children());
        let verdict = (step.work)();
        let time = Took { wall: begun.elapsed(), cpu: CpuTime::of_children().since(before).total() };
        if let Verdict::Failed(findings) = &verdict {
            for finding in findings {
                println!("    {finding}");
            }
        }
        println!("{}", line(step.name, &verdict, time));
        finished.push((step.name, verdict, time));
    }
    let total = finished.iter().fold(Took::default(), |sum, (_, _, time)| sum.and(*time));
    println!(
        "\n{title}: {} in {}, {} of CPU",
        counted(count, "step"),
        seconds(total.wall),
        seconds(total.cpu)
    );
    for (name, verdict, time) in &finished {
        println!("{}", line(name, verdict, *time));
    }
    !finished.iter().any(|(_, verdict, _)| matches!(verdict, Verdict::Failed(_)))
}

/// The time that a step took. On a busy machine only the CPU time, of its programs and all that they start, says something.
#[derive(Clone, Copy, Debug, Default)]
struct Took {
    wall: Duration,
    cpu: Duration,
}

impl Took {
    fn and(self, other: Self) -> Self {
        Self { wall: self.wall + other.wall, cpu: self.cpu + other.cpu }
    }
}

fn line(name: &str, verdict: &Verdict, time: Took) -> String {
    let (wall, cpu) = (seconds(time.wall), seconds(time.cpu));
    let line = format!("{:<8}{name:<14}{wall:>9} {cpu:>9} CPU  {}", verdict.word(), verdict.note());
    line.trim_end().to_owned()
}

/// `1 file`, `2 files`.
pub(crate) fn counted(count: usize, thing: &str) -> String {
    format!("{count} {thing}{}", if count == 1 { "" } else { "s" })
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::Verb;
    use std::cell::RefCell;

    #[test]
    fn a_failure_is_remembered_and_the_rest_still_runs() {
        let seen = RefCell::new(Vec::new());
        let step = |name, verdict: fn() -> Verdict| {
            let seen = &seen;
            Step::new(name, "", move || {
                seen.borrow_mut().push(name);
                verdict()
            })
        };
        let passed = run(
            "made up",
            vec![
                step("first", || Verdict::failed("broken")),
                step("second", || Verdict::Passed(String::new())),
            ],
        );
        assert!(!passed);
        assert_eq!(*seen.borrow(), ["first", "second"]);
    }

    #[test]
    fn a_skipped_step_is_no_failure() {
        assert!(run("made up", vec![Step::new("only", "", || Verdict::Skipped("no nightly".into()))]));
    }

    #[test]
    fn only_narrows_and_an_unknown_name_is_refused() {
        let steps = || {
            vec![
                Step::new("loom", "", || Verdict::Passed(String::new())),
                Step::new("bench", "", || Verdict::Passed(String::new())),
            ]
        };
        let only = |name: &str| Arguments {
            verb: Verb::Test,
            bless: false,
            list: false,
            only: vec![name.to_owned()],
        };
        let selected = select(steps(), &only("bench")).unwrap().unwrap();
        assert_eq!(selected.iter().map(|step| step.name).collect::<Vec<_>>(), ["bench"]);
        assert!(select(steps(), &only("bensh")).is_err_and(|complaint| complaint.contains("loom, bench")));
    }
}
