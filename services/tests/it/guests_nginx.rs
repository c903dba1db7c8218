//! reqwest, as a guest, against nginx.

use convoke::prelude::*;
use convoke_services::service;
use convoke_tokio::tokio_guest;

#[convoke::test]
async fn reqwest_runs_as_a_guest() -> Result<(), reqwest::Error> {
    let address = service("CONVOKE_TEST_NGINX");
    tokio_guest(|| async move {
        let client = reqwest::Client::new();
        assert_eq!(client.get(format!("http://{address}/")).send().await?.text().await?, "hello\n");
        let large = client.get(format!("http://{address}/large")).send().await?.bytes().await?;
        assert_eq!(large.len(), 1 << 20);
        assert_eq!(client.get(format!("http://{address}/missing")).send().await?.status(), 404);
        Ok(())
    })
    .await
}

#[convoke::test]
async fn a_stop_drops_a_guest_where_it_waits() {
    let address = service("CONVOKE_TEST_NGINX");
    // It takes four seconds, at the speed at which nginx sends it.
    let slow =
        tokio_guest(|| async move { reqwest::get(format!("http://{address}/slow")).await?.bytes().await });
    let ended = timeout(std::time::Duration::from_millis(200), slow).await;
    assert!(ended.is_err());
}
