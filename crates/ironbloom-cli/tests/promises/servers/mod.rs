//! Real servers with the module, as the module's own tests start them.

#[path = "../../../../ironbloom-redis/tests/promises/common/cluster.rs"]
pub(crate) mod cluster;
#[path = "../../../../ironbloom-redis/tests/promises/common/server.rs"]
pub(crate) mod server;
