//! The idle timeout of copies, in virtual time.

use std::io::{self, ErrorKind};
use std::time::Duration;

use convoke::io::{Progress, copy, copy_bidirectional, duplex, read_exact, write_all};
use convoke::prelude::*;
use convoke::sim::Sim;
use convoke::time::now;

const SECOND: Duration = Duration::from_secs(1);

fn run<F: Future<Output = io::Result<()>> + Send + 'static>(program: fn() -> F) {
    let mut sim = Sim::new(1);
    sim.host("alone").run(program);
    sim.run();
}

#[test]
fn a_copy_fails_when_nothing_is_transferred_for_its_limit() {
    run(|| async {
        let ((mut input, mut reader), (mut writer, mut output)) = (duplex(64), duplex(64));
        let progress = Progress::new();
        let copies = async {
            let copied = copy(&mut reader, &mut writer).progress(&progress).idle_timeout(2 * SECOND).await;
            io::Result::Ok((copied.unwrap_err(), now()))
        };
        let start = now();
        let feeds = async {
            for _ in 0..5 {
                sleep(SECOND).await;
                write_all(&mut input, b"word").await?;
            }
            let mut heard = [0; 20];
            read_exact(&mut output, &mut heard).await
        };
        let ((error, at), ()) = try_join((copies, feeds)).await?;
        assert_eq!((error.kind(), at - start), (ErrorKind::TimedOut, 7 * SECOND));
        assert_eq!(error.to_string(), "no bytes were transferred for 2s");
        assert_eq!(progress.bytes(), 20);
        Ok(())
    });
}

#[test]
fn a_writer_that_takes_nothing_is_idle_too() {
    run(|| async {
        let ((mut input, mut reader), (mut writer, _output)) = (duplex(64), duplex(4));
        write_all(&mut input, b"more than four").await?;
        let start = now();
        let error = copy(&mut reader, &mut writer).idle_timeout(SECOND).await.unwrap_err();
        assert_eq!((error.kind(), now() - start), (ErrorKind::TimedOut, SECOND));
        Ok(())
    });
}

#[test]
fn one_busy_direction_keeps_both_alive() {
    run(|| async {
        let ((mut client, mut front), (mut rear, _server)) = (duplex(64), duplex(64));
        let start = now();
        let copies = async {
            let copied = copy_bidirectional(&mut front, &mut rear).idle_timeout(2 * SECOND).await;
            io::Result::Ok((copied.unwrap_err().kind(), now()))
        };
        let feeds = async {
            for _ in 0..5 {
                sleep(SECOND).await;
                write_all(&mut client, b"word").await?;
            }
            Ok(())
        };
        let ((kind, at), ()) = try_join((copies, feeds)).await?;
        assert_eq!((kind, at - start), (ErrorKind::TimedOut, 7 * SECOND));
        Ok(())
    });
}

#[test]
fn a_copy_that_ends_in_time_is_not_affected() {
    run(|| async {
        let ((mut input, mut reader), (mut writer, _output)) = (duplex(64), duplex(64));
        let feeds = async {
            sleep(SECOND).await;
            write_all(&mut input, b"word").await?;
            drop(input);
            Ok(())
        };
        let (copied, ()) = try_join((copy(&mut reader, &mut writer).idle_timeout(2 * SECOND), feeds)).await?;
        assert_eq!(copied, 4);
        Ok(())
    });
}
