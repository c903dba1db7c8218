#[convoke::test]
struct Test;

fn main() {}
