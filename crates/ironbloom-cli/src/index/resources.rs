//! Limits of building an index: the options that `build`, `append` and `compact` share.

use clap::Args;
use ironbloom_index::Resources;

use crate::number;

#[derive(Args)]
pub(super) struct ResourceArgs {
    /// Memory to stay below: what is finished goes to a temporary file beside the index, without a name
    #[arg(long, value_name = "BYTES", value_parser = number::parse_bytes, default_value = "1GiB")]
    memory: u64,

    /// Threads [default: as many as there are processors]; the index does not depend on it
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
}

impl ResourceArgs {
    pub(super) fn resources(&self) -> Resources {
        let resources = Resources::default().with_memory(self.memory);
        self.threads.map_or(resources, |threads| resources.with_threads(threads.into()))
    }
}
