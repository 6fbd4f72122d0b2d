//! A module for Redis and Valkey: the filters of RedisBloom to the byte.

pub mod redisbloom;
