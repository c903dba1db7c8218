//! `bulk`: the same function for every index, spread over the pool. Here each index is a line of a picture.

use std::sync::Mutex;

use convoke::prelude::*;
use convoke::sender::prelude::*;

const WIDTH: usize = 76;
const HEIGHT: usize = 22;

fn line(row: usize) -> String {
    let shades = [' ', '.', ':', '-', '=', '+', '*', '#', '%', '@'];
    let y = (row as f64 / HEIGHT as f64 - 0.5) * 2.3;
    let shade = |column: usize| {
        let x = (column as f64 / WIDTH as f64) * 3.1 - 2.2;
        let (mut a, mut b, mut steps) = (0.0_f64, 0.0_f64, 0_usize);
        while a * a + b * b < 4.0 && steps < 2_000 {
            (a, b) = (a * a - b * b + x, 2.0 * a * b + y);
            steps += 1;
        }
        if steps == 2_000 { shades[9] } else { shades[steps.ilog2().min(8) as usize] }
    };
    (0..WIDTH).map(shade).collect()
}

pub(crate) fn show() {
    let threads = thread_count();
    let pool = ThreadPool::new(threads).expect("threads");
    let lines: Vec<_> = (0..HEIGHT).map(|_| Mutex::new(String::new())).collect();
    let lines = &lines;
    let drawn =
        schedule(&pool.executor()).bulk(HEIGHT, move |row, ()| *lines[row].lock().unwrap() = line(row));
    sync_wait(drawn).unwrap();
    for line in lines {
        println!("   {}", line.lock().unwrap());
    }
    println!("   drawn by {threads} threads");
}

fn thread_count() -> usize {
    std::thread::available_parallelism().map_or(2, Into::into)
}
