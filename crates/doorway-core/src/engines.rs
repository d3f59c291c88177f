//! The engines that the product ships, generic over the same memory traits as the papers'
//! algorithms, so that the checker explores what users run.

pub mod group_lock;
pub mod named_lock;
pub mod semaphore;
