//! The error of an option whose feature is off. The programs here have all features, so the error is asked for directly.
fn main() {
    convoke::feature_is_off!("the option `sim` of `#[convoke::test]`", "sim", "--dev ")
}
