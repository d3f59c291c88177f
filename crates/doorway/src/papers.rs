//! The algorithms of the papers as locks.
