//! Local values without their types: the answers of a process, what it carries and what it keeps.

use std::{
    any::Any,
    fmt,
    hash::{Hash, Hasher},
    sync::Arc,
};

use doorway_core::{Local, Relabel, layout::Erased};

trait Stored: Any + Send + Sync {
    fn any(&self) -> &dyn Any;
    fn equals(&self, other: &dyn Stored) -> bool;
    fn hash_into(&self, hasher: &mut dyn Hasher);
    fn relabelled(&self, f: Relabel<'_>) -> Arc<dyn Stored>;
    fn show(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result;
}

impl<T: Local> Stored for T {
    fn any(&self) -> &dyn Any {
        self
    }
    fn equals(&self, other: &dyn Stored) -> bool {
        other.any().downcast_ref::<T>() == Some(self)
    }
    fn hash_into(&self, mut hasher: &mut dyn Hasher) {
        self.hash(&mut hasher);
    }
    fn relabelled(&self, f: Relabel<'_>) -> Arc<dyn Stored> {
        Arc::new(self.relabel(f))
    }
    fn show(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// Some [`Local`] value. Equality compares the whole value, never a fingerprint.
#[derive(Clone)]
pub(crate) struct Item(Arc<dyn Stored>);

impl Item {
    /// Wraps a value.
    pub(crate) fn new<T: Local>(value: T) -> Self {
        Self(Arc::new(value))
    }

    /// Returns the value inside, if it has this type. (`self.0.any()` would be the `Arc` itself;
    /// hence the explicit deref.)
    pub(crate) fn get<T: Local>(&self) -> Option<T> {
        (*self.0).any().downcast_ref::<T>().cloned()
    }

    /// Returns the same value with its tickets replaced.
    pub(crate) fn relabel(&self, f: Relabel<'_>) -> Self {
        Self((*self.0).relabelled(f))
    }
}

impl PartialEq for Item {
    fn eq(&self, other: &Self) -> bool {
        (*self.0).equals(&*other.0)
    }
}
impl Eq for Item {}
impl Hash for Item {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (*self.0).hash_into(state);
    }
}
impl fmt::Debug for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (*self.0).show(f)
    }
}

/// A register's value, compared whole like local values.
pub(crate) struct Whole(pub(crate) Box<dyn Erased>);

impl PartialEq for Whole {
    fn eq(&self, other: &Self) -> bool {
        self.0.same(&*other.0)
    }
}
impl Eq for Whole {}
impl Hash for Whole {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash_into(state);
    }
}
