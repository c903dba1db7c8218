//! The destructors of a loop and of its parts. They are long, and many codegen units drop a handle that may be the last:
//! each is compiled once, as a call.

use convoke_core::raw::{DropOutOfLine, LastUse};

use super::{RunLoop, Runner, SharedLoop};

impl DropOutOfLine for RunLoop {
    #[inline(never)]
    fn drop_out_of_line(run_loop: LastUse<'_, Self>) {
        run_loop.drop_here();
    }
}

impl DropOutOfLine for Runner {
    #[inline(never)]
    fn drop_out_of_line(runner: LastUse<'_, Self>) {
        runner.drop_here();
    }
}

impl DropOutOfLine for SharedLoop {
    #[inline(never)]
    fn drop_out_of_line(shared: LastUse<'_, Self>) {
        shared.drop_here();
    }
}
