#[convoke::main]
fn main() {}
