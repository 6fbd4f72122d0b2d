//! A search that goes on in a separate thread: for results that come batch by batch, and for long ones that Ctrl-C must be
//! able to end.

use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arrow::array::{RecordBatch, RecordBatchReader};
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use ironbloom_index::{Explanation, Indexed, IndexedError, Predicate};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use super::table::{Table, with_schema};
use crate::batch::capsule::{raised, stream_capsule};
use crate::errors::OrRaise;

/// Batches that wait to be taken.
const AHEAD: usize = 2;

/// How long an interrupt may have to wait.
const PATIENCE: Duration = Duration::from_millis(50);

/// Message from the searching thread.
pub(crate) enum Found {
    Batch(RecordBatch),
    Failed(IndexedError),
    /// The end.
    Done(Box<(Explanation, Vec<String>)>),
}

/// Question to be answered.
#[derive(Clone)]
pub(crate) struct Question {
    pub(crate) indexed: Arc<Indexed>,
    pub(crate) predicate: Predicate,
    pub(crate) select: Vec<String>,
    pub(crate) schema: SchemaRef,
    pub(crate) skip_changed: bool,
}

impl Question {
    /// Searches, and calls `take` with what is found, until that returns false.
    pub(crate) fn search(&self, take: &mut dyn FnMut(Found) -> bool) {
        let select: Vec<&str> = self.select.iter().map(String::as_str).collect();
        let mut search = match self.indexed.find(&self.predicate, &select) {
            Ok(search) => search,
            Err(error) => {
                take(Found::Failed(error));
                return;
            }
        };
        if self.skip_changed {
            search.skip_changed();
        }
        for found in search.by_ref() {
            let more = match found {
                Ok((_, found)) => take(Found::Batch(found.batch)),
                Err(error) => {
                    take(Found::Failed(error));
                    false
                }
            };
            if !more {
                return;
            }
        }
        let skipped = search.skipped().iter().map(ToString::to_string).collect();
        take(Found::Done(Box::new((search.explanation(), skipped))));
    }
}

/// The results of a search, batch by batch, as they are found.
///
/// It can be iterated over once, or handed to whoever reads streams of Arrow.
#[pyclass(frozen, module = "ironbloom")]
pub(crate) struct Batches {
    schema: SchemaRef,
    found: Mutex<Option<Receiver<Found>>>,
}

impl Batches {
    /// Starts the thread. It ends when its results are no longer wanted.
    pub(crate) fn start(question: Question) -> std::io::Result<Self> {
        let (send, found) = sync_channel(AHEAD);
        let schema = question.schema.clone();
        let thread = std::thread::Builder::new().name("ironbloom-find".to_owned());
        thread.spawn(move || question.search(&mut |found| send.send(found).is_ok()))?;
        Ok(Self { schema, found: Mutex::new(Some(found)) })
    }

    /// The next of what is found; the interpreter is free meanwhile, and Ctrl-C is heard.
    pub(crate) fn next(&self, py: Python<'_>) -> PyResult<Option<Found>> {
        loop {
            let waited = py.detach(|| {
                let found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
                found.as_ref().map(|found| found.recv_timeout(PATIENCE))
            });
            match waited {
                Some(Ok(found)) => return Ok(Some(found)),
                Some(Err(RecvTimeoutError::Timeout)) => {
                    if let Err(interrupt) = py.check_signals() {
                        self.end();
                        return Err(interrupt);
                    }
                }
                Some(Err(RecvTimeoutError::Disconnected)) | None => return Ok(None),
            }
        }
    }

    fn end(&self) {
        *self.found.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

#[pymethods]
impl Batches {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Table>> {
        match self.next(py)? {
            Some(Found::Batch(batch)) => {
                let batch = with_schema(&batch, &self.schema).map_err(raised)?;
                Ok(Some(Table::new(self.schema.clone(), vec![batch], Vec::new())))
            }
            Some(Found::Failed(error)) => {
                self.end();
                Err(error).or_raise(py)
            }
            Some(Found::Done(_)) | None => Ok(None),
        }
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema; // a wish, which need not be granted
        let found = self.found.lock().unwrap_or_else(PoisonError::into_inner).take();
        let stream = Stream { schema: self.schema.clone(), found: Mutex::new(found) };
        stream_capsule(py, Box::new(stream))
    }
}

/// The rest of the results for a reader that is not Python.
struct Stream {
    schema: SchemaRef,
    found: Mutex<Option<Receiver<Found>>>,
}

impl Iterator for Stream {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let found = self.found.get_mut().unwrap_or_else(PoisonError::into_inner);
        match found.as_ref()?.recv() {
            Ok(Found::Batch(batch)) => Some(with_schema(&batch, &self.schema)),
            Ok(Found::Failed(error)) => {
                *found = None;
                Some(Err(ArrowError::ExternalError(Box::new(error))))
            }
            Ok(Found::Done(_)) | Err(_) => None,
        }
    }
}

impl RecordBatchReader for Stream {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}
