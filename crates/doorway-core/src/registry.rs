//! The list of algorithms. One line here gives an algorithm every test, check, simulation and
//! bench.

/// Calls `$callback! { Type, … }` with the type of every algorithm.
///
/// ```
/// macro_rules! names {
///     ($($algorithm:ty),* $(,)?) => { vec![$(<$algorithm as doorway_core::Algorithm>::NAME),*] };
/// }
/// let names = doorway_core::for_each_algorithm!(names);
/// assert!(names.contains(&"bakery"));
/// ```
#[macro_export]
macro_rules! for_each_algorithm {
    ($callback:ident) => {
        $callback! {
            $crate::algorithms::mutex::Bakery,
            $crate::algorithms::mutex::BlackWhiteBakery,
            $crate::algorithms::mutex::BurnsLamport,
            $crate::algorithms::mutex::YangAnderson,
            $crate::algorithms::mutex::Mcs,
            $crate::algorithms::mutex::Randomized,
            $crate::algorithms::mutex::RandomizedBounded,
            $crate::algorithms::mutex::RandomizedStarvationFree,
            $crate::algorithms::k_exclusion::Queue,
            $crate::algorithms::k_exclusion::NumberedTicket,
            $crate::algorithms::k_exclusion::UnboundedColoredTicket,
            $crate::algorithms::k_exclusion::ColoredTicket,
            $crate::algorithms::k_exclusion::KBakery,
            $crate::algorithms::k_exclusion::KBakeryFife,
            $crate::algorithms::k_exclusion::KBakerySafe,
            $crate::algorithms::k_exclusion::TimestampBakery<$crate::timestamps::Abstract>,
            $crate::algorithms::k_exclusion::TimestampBakery<$crate::timestamps::Bounded>,
            $crate::algorithms::group::GroupBakery,
            $crate::algorithms::group::GroupBlackWhiteBakery,
            $crate::algorithms::group::StrongGroupBakery,
            $crate::algorithms::group::StrongGroupBlackWhiteBakery,
            $crate::engines::named_lock::NamedLock,
            $crate::engines::named_lock::NamedGroupLock,
        }
    };
}
