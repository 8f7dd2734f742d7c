//! The network between a server and its database.

use std::{thread, time::Duration};

use harness::{Postgres, Proxy};
use serde_json::json;

use crate::{
    server::{Answer, Server},
    world::{Writing, assert_nothing_lost, converge, finish_without_failures, load, start, wait_for_store},
};

/// An address of the same database that leads through a proxy.
fn through(proxy: &Proxy, postgres: &Postgres, url: &str) -> String {
    url.replace(&format!(":{}/", postgres.port()), &format!(":{}/", proxy.port()))
}

/// A change that makes no answer shorter.
fn relabel(server: &Server) -> Answer {
    server.patch("/namespaces/n0", &json!({"labels": {"from": server.address().replace(':', "-")}}))
}

/// Packets are dropped in both directions, without an error. Afterwards, connections from before work again, or never do.
#[test]
fn a_network_that_is_cut() {
    let postgres = Postgres::shared();
    let url = postgres.database();
    let proxy = Proxy::to(postgres.port());
    let cut_off = through(&proxy, postgres, &url);
    let (near, far, far_writer) = (start(&url, "crud"), start(&cut_off, "read-only"), start(&cut_off, "crud"));
    let loads = load(&[&near, &far, &far_writer], 600);
    let writing = Writing::start(vec![near.address().to_owned()]);
    for heal in [Proxy::heal as fn(&Proxy), Proxy::heal_silently] {
        writing.wait_for_more(20);
        proxy.cut();
        let refused = relabel(&far_writer);
        assert_eq!(refused.status, 503, "{}", refused.body);
        wait_for_store(&far, "unavailable");
        writing.wait_for_more(20);
        heal(&proxy);
        wait_for_store(&far, "following");
        far_writer.wait_until("changes are accepted again", || relabel(&far_writer).status == 200);
    }
    let acknowledged = writing.finish();
    converge(&[&near, &far, &far_writer], &url);
    finish_without_failures(loads);
    assert_nothing_lost(&url, &acknowledged);
}

/// Every packet is delayed: changes are slow or refused, polls are not.
#[test]
fn a_database_that_is_slow() {
    let postgres = Postgres::shared();
    let url = postgres.database();
    let proxy = Proxy::to(postgres.port());
    let slow = through(&proxy, postgres, &url);
    let (near, far) = (start(&url, "crud"), start(&slow, "crud"));
    let loads = load(&[&near, &far], 400);
    proxy.slow(Duration::from_millis(60));
    let writing = Writing::start(vec![near.address().to_owned(), far.address().to_owned()]);
    writing.wait_for_more(30);
    // So slow that every statement times out.
    proxy.slow(Duration::from_secs(4));
    wait_for_store(&far, "unavailable");
    assert_eq!(relabel(&far).status, 503);
    thread::sleep(Duration::from_secs(2));
    proxy.slow(Duration::ZERO);
    proxy.heal();
    writing.wait_for_more(30);
    let acknowledged = writing.finish();
    converge(&[&near, &far], &url);
    finish_without_failures(loads);
    assert_nothing_lost(&url, &acknowledged);
}
