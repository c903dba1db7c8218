//! Macros that the attributes wrap around code which needs a feature. With the feature they expand to the code, without it to
//! an error that names the feature.

/// Expands to the error for an option of an attribute that needs a feature which is off. `how` is what `cargo add` needs
/// besides.
#[doc(hidden)]
#[macro_export]
macro_rules! feature_is_off {
    ($options:literal, $feature:literal, $how:literal) => {
        ::core::compile_error!(::core::concat!(
            $options,
            " needs the feature `",
            $feature,
            "` of `convoke`, which is off: `cargo add convoke ",
            $how,
            "--features ",
            $feature,
            "`"
        ))
    };
}

/// Expands to the code: the feature `sim` is on.
#[cfg(feature = "sim")]
#[doc(hidden)]
#[macro_export]
macro_rules! with_feature_sim {
    ($($code:tt)*) => { $($code)* };
}

/// Expands to an error: the feature `sim` is off.
#[cfg(not(feature = "sim"))]
#[doc(hidden)]
#[macro_export]
macro_rules! with_feature_sim {
    ($($code:tt)*) => {
        $crate::feature_is_off!("the option `sim`, `seed` or `seeds` of `#[convoke::test]`", "sim", "--dev ")
    };
}

/// Expands to the code: the feature `pool` is on.
#[cfg(feature = "pool")]
#[doc(hidden)]
#[macro_export]
macro_rules! with_feature_pool {
    ($($code:tt)*) => { $($code)* };
}

/// Expands to an error: the feature `pool` is off.
#[cfg(not(feature = "pool"))]
#[doc(hidden)]
#[macro_export]
macro_rules! with_feature_pool {
    ($($code:tt)*) => {
        $crate::feature_is_off!("the option `pool_threads` of `#[convoke::main]`", "pool", "")
    };
}

/// Expands to the code: the feature `testing` is on.
#[cfg(feature = "testing")]
#[doc(hidden)]
#[macro_export]
macro_rules! with_feature_testing {
    ($($code:tt)*) => { $($code)* };
}

/// Expands to an error: the feature `testing` is off.
#[cfg(not(feature = "testing"))]
#[doc(hidden)]
#[macro_export]
macro_rules! with_feature_testing {
    ($($code:tt)*) => {
        $crate::feature_is_off!("the option `virtual_time` of `#[convoke::test]`", "testing", "--dev ")
    };
}
