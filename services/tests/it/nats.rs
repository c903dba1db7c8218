//! NATS and its JetStream, as a guest.

use std::time::Duration;

use async_nats::jetstream::{self, consumer, stream};
use convoke_services::service;
use convoke_tokio::tokio_guest;
use futures_util::StreamExt;

type Error = Box<dyn std::error::Error + Send + Sync>;

#[convoke::test]
async fn a_subscriber_hears_what_is_published() -> Result<(), Error> {
    let address = service("CONVOKE_TEST_NATS");
    tokio_guest(|| async move {
        let client = async_nats::connect(address).await?;
        let mut subscriber = client.subscribe("greetings").await?;
        client.publish("greetings", "hello".into()).await?;
        let heard = subscriber.next().await.ok_or("nothing was heard")?;
        assert_eq!(&heard.payload[..], b"hello");
        Ok(())
    })
    .await
}

#[convoke::test]
async fn a_message_that_was_not_acknowledged_is_delivered_again() -> Result<(), Error> {
    let address = service("CONVOKE_TEST_NATS");
    tokio_guest(|| async move {
        let context = jetstream::new(async_nats::connect(address).await?);
        let config =
            stream::Config { name: "again".into(), subjects: vec!["again".into()], ..Default::default() };
        let stream = context.create_stream(config).await?;
        context.publish("again", "job".into()).await?.await?;
        let consumer = stream
            .create_consumer(consumer::pull::Config {
                durable_name: Some("worker".into()),
                ack_wait: Duration::from_millis(200),
                ..Default::default()
            })
            .await?;
        let mut messages = consumer.messages().await?;
        let first = messages.next().await.ok_or("no message")??;
        assert_eq!(first.info()?.delivered, 1);
        drop(first);
        let second = messages.next().await.ok_or("no message")??;
        assert_eq!((&second.payload[..], second.info()?.delivered), (&b"job"[..], 2));
        second.double_ack().await?;
        Ok(())
    })
    .await
}
