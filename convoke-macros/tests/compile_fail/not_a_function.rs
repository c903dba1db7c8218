#[convoke::main]
struct Main;

fn main() {}
