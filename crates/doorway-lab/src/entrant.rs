//! The algorithms of the registry, for the lab.

use doorway_core::{Algorithm, Claims, Size, Unfit};

use crate::subject::{Subject, build};

type Build = fn(Size, Option<&'static str>, bool) -> Result<Box<dyn Subject>, Unfit>;

/// An algorithm of the registry.
#[derive(Clone, Copy)]
pub struct Entrant {
    /// Its name.
    pub name: &'static str,
    /// The variant, if several algorithms have that name; a name alone means the first variant.
    pub variant: Option<&'static str>,
    /// What is claimed of it.
    pub claims: Claims,
    /// How many attempts within a passage are followed by default; `None` if there are no attempts.
    pub attempts: Option<u32>,
    build: Build,
}

impl Entrant {
    /// Returns all algorithms of the registry.
    pub fn all() -> &'static [Self] {
        macro_rules! entrants {
            ($($algorithm:ty),* $(,)?) => {
                const { &[$(Entrant {
                    name: <$algorithm as Algorithm>::NAME,
                    variant: <$algorithm as Algorithm>::VARIANT,
                    claims: <$algorithm as Algorithm>::CLAIMS,
                    attempts: <$algorithm as Algorithm>::ATTEMPTS,
                    build: build::<$algorithm, _, _, _>,
                }),*] }
            };
        }
        doorway_core::for_each_algorithm!(entrants)
    }

    /// Returns the algorithm of that name.
    pub fn named(name: &str) -> Option<&'static Self> {
        Self::variants(name).next()
    }

    /// Returns all algorithms of that name.
    pub fn variants(name: &str) -> impl Iterator<Item = &'static Self> {
        Self::all().iter().filter(move |entrant| entrant.name == name)
    }

    /// Builds an instance to run in the lab. With `abandons`, processes may give up their waits.
    ///
    /// # Errors
    /// When the algorithm does not serve that size.
    pub fn build(
        &self,
        size: Size,
        mutant: Option<&'static str>,
        abandons: bool,
    ) -> Result<Box<dyn Subject>, Unfit> {
        (self.build)(size, mutant, abandons)
    }
}
