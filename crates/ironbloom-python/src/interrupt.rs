//! Long work beside the interpreter: without its lock, and with an ear for Ctrl-C.

use std::ops::Range;
use std::time::{Duration, Instant};

use pyo3::prelude::*;

/// Keys between two looks at the clock: well under a millisecond.
const SLICE: usize = 1 << 14;

/// How long an interrupt may have to wait. Asking for the interpreter's lock more often would make a batch wait for other
/// threads more often than it works.
const PATIENCE: Duration = Duration::from_millis(50);

/// Works through `0..len` in slices. The interpreter is free meanwhile; from time to time it is asked whether somebody
/// pressed Ctrl-C. Slices that were worked on before stay done.
///
/// No lock that Python code could ask for may be held between two slices: a signal handler is Python code.
pub(crate) fn in_slices<E: Send>(
    py: Python<'_>,
    len: usize,
    mut work: impl FnMut(Range<usize>) -> Result<(), E> + Send,
) -> PyResult<Result<(), E>> {
    let mut done = 0;
    loop {
        let worked = py.detach(|| {
            let start = Instant::now();
            while done < len && start.elapsed() < PATIENCE {
                let end = len.min(done + SLICE);
                work(done..end)?;
                done = end;
            }
            Ok(())
        });
        if worked.is_err() || done == len {
            return Ok(worked);
        }
        py.check_signals()?;
    }
}
