//! The list of algorithms. One line here gives an algorithm every test, check, simulation and bench.

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
            $crate::mutex::Bakery,
            $crate::mutex::BlackWhiteBakery,
            $crate::mutex::BurnsLamport,
            $crate::mutex::YangAnderson,
            $crate::mutex::Mcs,
            $crate::mutex::Randomized,
            $crate::mutex::RandomizedBounded,
            $crate::mutex::RandomizedStarvationFree,
            $crate::k_exclusion::Queue,
            $crate::k_exclusion::NumberedTicket,
            $crate::k_exclusion::UnboundedColoredTicket,
            $crate::k_exclusion::ColoredTicket,
            $crate::k_exclusion::KBakery,
            $crate::k_exclusion::KBakeryFife,
            $crate::k_exclusion::KBakerySafe,
            $crate::k_exclusion::TimestampBakery<$crate::timestamp::Abstract>,
            $crate::k_exclusion::TimestampBakery<$crate::timestamp::Bounded>,
            $crate::group::GroupBakery,
            $crate::group::GroupBlackWhiteBakery,
            $crate::group::StrongGroupBakery,
            $crate::group::StrongGroupBlackWhiteBakery,
            $crate::engines::named_lock::NamedLock,
            $crate::engines::named_lock::NamedGroupLock,
        }
    };
}
