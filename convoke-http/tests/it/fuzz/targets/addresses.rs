//! Texts as addresses: `ToAddress`.

use convoke::net::{AddressQuery, ToAddress};

pub(super) fn target(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    match text.as_ref().to_address() {
        AddressQuery::Known(addresses) => {
            let [address] = addresses[..] else { panic!("one text is one address: {addresses:?}") };
            assert_eq!(address.to_string().as_str().to_address(), AddressQuery::Known(vec![address]));
        }
        AddressQuery::Name(host, port) => {
            assert!(!host.is_empty() && !host.contains(':'), "{host}");
            assert_eq!(text.rsplit_once(':').map(|(host, _)| host), Some(host.as_str()));
            let again = format!("{host}:{port}").as_str().to_address();
            assert_eq!(again, AddressQuery::Name(host, port));
        }
        AddressQuery::Malformed(said) => assert_eq!(said, text),
        other => panic!("{other:?}"),
    }
}
