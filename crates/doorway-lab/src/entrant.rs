//! The algorithms of the registry, as the lab takes them in.

use doorway_core::{Algorithm, Claims, Size, Unfit};

use crate::subject::{Subject, build};

type Build = fn(Size, Option<&'static str>, bool) -> Result<Box<dyn Subject>, Unfit>;

/// An algorithm of the registry.
#[derive(Clone, Copy)]
pub struct Entrant {
    /// Its name.
    pub name: &'static str,
    /// Which of several under that name; the first one listed is the one that is meant without more
    /// words.
    pub variant: Option<&'static str>,
    /// What is claimed of it.
    pub claims: Claims,
    /// How many attempts within a passage are followed unless told otherwise; `None` if there are
    /// no attempts.
    pub attempts: Option<u32>,
    build: Build,
}

impl Entrant {
    /// Every algorithm there is.
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

    /// The algorithm of that name.
    pub fn named(name: &str) -> Option<&'static Self> {
        Self::variants(name).next()
    }

    /// All algorithms of that name.
    pub fn variants(name: &str) -> impl Iterator<Item = &'static Self> {
        Self::all().iter().filter(move |entrant| entrant.name == name)
    }

    /// An instance to run in the lab. With `abandons`, processes may give up their waits.
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
