//! Plans: what each kind costs.

use ironbloom::plan::{self, Abilities, Plan, Shape};
use ironbloom::recommend::{Offer, Sought, recommend};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

/// Abilities of a kind, by name.
pub(crate) fn abilities(py: Python<'_>, can: Abilities) -> PyResult<Bound<'_, PyDict>> {
    let abilities = PyDict::new(py);
    for (name, can) in [
        ("add", can.insert),
        ("remove", can.remove),
        ("grow", can.grow),
        ("merge", can.merge),
        ("intersect", can.intersect),
        ("forget", can.forget),
        ("exact_len", can.exact_len),
    ] {
        abilities.set_item(name, can)?;
    }
    Ok(abilities)
}

/// The offers of all kinds for two of: keys, a rate, a size. One that was recommended comes with a mark.
#[pyfunction]
#[pyo3(signature = (capacity=None, rate=None, memory=None))]
pub(crate) fn plans<'py>(
    py: Python<'py>,
    capacity: Option<u64>,
    rate: Option<f64>,
    memory: Option<u64>,
) -> PyResult<Bound<'py, PyList>> {
    let offer = |plan: &'static Plan, keys: u64, shape: Shape| Offer { plan, keys, shape };
    let (offers, sought): (Vec<Offer>, _) = match (capacity, rate, memory) {
        (Some(keys), Some(rate), None) => {
            let shape = |plan: &'static Plan| Some(offer(plan, keys, plan.shape(keys, rate).ok()?));
            (plan::all().filter_map(shape).collect(), Sought::Size)
        }
        (Some(keys), None, Some(bytes)) => {
            let shape =
                |plan: &'static Plan| Some(offer(plan, keys, plan.rate_within(keys, bytes)?));
            (plan::all().filter_map(shape).collect(), Sought::Rate)
        }
        (None, Some(rate), Some(bytes)) => {
            let shape = |plan: &'static Plan| {
                let (keys, shape) = plan.keys_within(rate, bytes)?;
                Some(offer(plan, keys, shape))
            };
            (plan::all().filter_map(shape).collect(), Sought::Keys)
        }
        _ => {
            return Err(PyTypeError::new_err("give two of capacity, rate and memory"));
        }
    };
    let best = recommend(&offers, sought).map(|best| best.offer.plan.name);
    let records = PyList::empty(py);
    for offer in &offers {
        let record = PyDict::new(py);
        record.set_item("plan", offer.plan.name)?;
        record.set_item("kind", offer.plan.kind.name())?;
        record.set_item("keys", offer.keys)?;
        record.set_item("bytes", offer.shape.bytes())?;
        record.set_item("bits_per_key", offer.bits_per_key())?;
        record.set_item("rate", offer.shape.rate)?;
        record.set_item("probes", offer.shape.probes)?;
        record.set_item("cache_lines", offer.shape.lines)?;
        record.update(abilities(py, offer.plan.abilities)?.as_mapping())?;
        record.set_item("summary", offer.plan.summary)?;
        record.set_item("recommended", best == Some(offer.plan.name))?;
        records.append(record)?;
    }
    Ok(records)
}
