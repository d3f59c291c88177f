//! The engines of the product, generic over the same memory traits as the papers' algorithms. So
//! the checker explores the code that users run.

pub mod group_lock;
pub mod named_lock;
pub mod semaphore;
