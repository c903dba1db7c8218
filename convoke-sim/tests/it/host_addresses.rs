//! The addresses of as many hosts as a simulation has addresses for.

use std::collections::BTreeSet;

use convoke_sim::raw::addresses_of_hosts;

const MOST: usize = if cfg!(miri) { 60 } else { 65_535 };

#[test]
fn each_of_as_many_hosts_as_there_may_be_has_an_address_of_its_own() {
    let addresses = addresses_of_hosts(MOST);
    assert!(addresses.iter().all(|(_, host, found)| *found == Some(*host)));
    let distinct: BTreeSet<_> = addresses.iter().map(|(address, ..)| address).collect();
    assert_eq!(distinct.len(), 2 * MOST);
}

#[test]
#[should_panic(expected = "a simulation has addresses for 65535 hosts")]
#[cfg_attr(miri, ignore = "makes 65,536 hosts")]
fn one_more_has_none() {
    addresses_of_hosts(MOST + 1);
}
