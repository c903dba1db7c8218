#[convoke::main(contexts)]
async fn main() {}
