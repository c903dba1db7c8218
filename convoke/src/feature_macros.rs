//! Macros that the attributes wrap around code which needs a feature. With the feature they expand to the code, without it to
//! an error that names the feature.

/// Expands to the error for a test attribute whose option needs a feature that is off.
#[doc(hidden)]
#[macro_export]
macro_rules! feature_is_off {
    ($options:literal, $feature:literal) => {
        ::core::compile_error!(::core::concat!(
            $options,
            " of `#[convoke::test]` needs the feature `",
            $feature,
            "` of `convoke`, which is off: `cargo add convoke --dev --features ",
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
        $crate::feature_is_off!("the option `sim`, `seed` or `seeds`", "sim")
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
        $crate::feature_is_off!("the option `virtual_time`", "testing")
    };
}
