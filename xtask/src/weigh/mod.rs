//! `cargo xtask weigh`: the cost of Convoke to a program that uses it, beside that of tokio. It builds README's server and its twin
//! for tokio from clean, and prints user CPU seconds, stripped size and number of crates for both.
//!
//! CPU time and not wall time: a busy machine does not spoil it much. Nothing here passes or fails, and CI does not run it.
//!
//! | file | contents |
//! | --- | --- |
//! | `program.rs` | writes the two programs and their manifests |
//! | `clean_build.rs` | builds one of them from clean and measures that |
//! | `crate_times.rs` | the CPU time of each crate: xtask as the wrapper of rustc |
//! | `table.rs` | prints the measurements |

mod clean_build;
mod crate_times;
mod program;
mod table;

use crate::workspace::Workspace;
use clean_build::{Built, Profile};
use program::Program;

pub(crate) use crate_times::act_as_wrapper;

/// The measurements of one program.
struct Weight {
    debug: Built,
    release: Built,
}

/// Builds both programs and prints the tables.
pub(crate) fn run(workspace: &Workspace) -> Result<bool, String> {
    let programs = Program::write_both(workspace)?;
    programs.iter().try_for_each(Program::fetch)?;
    // By turns: on a busy machine what is compared is measured at about the same time.
    let [convoke_debug, tokio_debug] = measure_both(&programs, Profile::Debug)?;
    let [convoke_release, tokio_release] = measure_both(&programs, Profile::Release)?;
    let convoke = Weight { debug: convoke_debug, release: convoke_release };
    let tokio = Weight { debug: tokio_debug, release: tokio_release };
    print!("{}", table::comparison(&convoke, &tokio));
    print!("{}", table::most_expensive(&convoke));
    Ok(true)
}

fn measure_both(programs: &[Program; 2], profile: Profile) -> Result<[Built; 2], String> {
    let [convoke, tokio] = programs;
    Ok([clean_build::measure(convoke, profile)?, clean_build::measure(tokio, profile)?])
}
