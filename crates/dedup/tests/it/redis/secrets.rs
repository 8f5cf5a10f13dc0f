//! Tests of passwords, users and TLS.

use huntsman_dedup::redis::{Layout, RedisIndex};
use huntsman_detect::near::{Document, IndexErrorKind, NearIndex};
use huntsman_detect::simhash::SimHash;
use huntsman_testkit::redis::Server;

use super::model::{Model, Source, identity, language, random_steps, settings};

/// The full text of an error.
fn told(error: &huntsman_detect::near::IndexError) -> String {
    format!("{error} {error:?}")
}

#[test]
fn a_password_is_required_accepted_and_never_shown() {
    let server = Server::builder().password("hush-hush").start();
    let bare = settings(&server.url(), Layout::Compact);
    let error = RedisIndex::open(bare.clone(), identity(3)).expect_err("no password");
    assert_eq!(error.kind(), IndexErrorKind::Refused);
    assert!(error.to_string().contains("wants a password"), "{error}");
    let error = RedisIndex::open(bare.clone().password("wrong-one"), identity(3)).expect_err("a wrong one");
    assert_eq!(error.kind(), IndexErrorKind::Refused);
    assert!(
        error.to_string().contains("password is wrong") && !told(&error).contains("wrong-one"),
        "{error}"
    );

    let index = RedisIndex::open(bare.password("hush-hush"), identity(3)).expect("an index");
    random_steps(&index, &mut Model::default(), &mut Source::new(81, 20), 3);
    let shown = format!("{index:?}");
    assert!(!shown.contains("hush-hush"), "{shown}");
    let url = server.url().replace("//", "//:hush-hush@");
    assert!(RedisIndex::open(settings(&url, Layout::Seed), identity(3)).is_ok());
    drop(server);
    let error = RedisIndex::open(settings(&url, Layout::Seed), identity(3)).expect_err("no server");
    assert!(!told(&error).contains("hush-hush"), "{error:?}");
}

#[test]
fn a_user_may_do_what_the_advice_says_and_no_more() {
    let server = Server::start();
    server.cli(&["ACL", "SETUSER", "crawler", "on", ">pw", "~*", "+@read", "+@write", "+@connection"]);
    server.cli(&["ACL", "SETUSER", "reader", "on", ">pw", "~*", "+@read", "+@connection"]);
    for layout in Layout::ALL {
        let as_user = |user: &str| settings(&server.url(), layout).user(user).password("pw");
        let index = RedisIndex::open(as_user("crawler"), identity(3)).expect("an index");
        server.cli(&["FLUSHALL"]);
        random_steps(&index, &mut Model::default(), &mut Source::new(82, 20), 3);
        let index = RedisIndex::open(as_user("reader"), identity(3)).expect("an index");
        let document = Document { language: language("hi"), id: 1.into(), hash: SimHash(1) };
        assert!(index.near(&[(document.language, document.hash)]).is_ok());
        let error = index.insert(&[document]).expect_err("no right");
        assert_eq!(error.kind(), IndexErrorKind::Refused);
        assert!(error.to_string().contains("ACL SETUSER"), "{error}");
        let error = RedisIndex::open(as_user("nobody"), identity(3)).expect_err("no user");
        assert_eq!(error.kind(), IndexErrorKind::Refused);
    }
}

#[test]
fn databases_are_apart() {
    let server = Server::start();
    let at = |database: &str| {
        RedisIndex::open(settings(&format!("{}/{database}", server.url()), Layout::Compact), identity(3))
    };
    let (zero, two) = (at("0").expect("an index"), at("2").expect("an index"));
    let document = Document { language: language("hi"), id: 1.into(), hash: SimHash(1) };
    two.insert(std::slice::from_ref(&document)).expect("an insert");
    let query = [(document.language, document.hash)];
    assert_eq!(
        (zero.near(&query).expect("an answer")[0].len(), two.near(&query).expect("an answer")[0].len()),
        (0, 1)
    );
    let error = at("16").expect_err("there are 16");
    assert_eq!(error.kind(), IndexErrorKind::Input);
}

#[test]
fn tls_is_spoken_and_the_server_must_be_the_one() {
    let server = Server::builder().tls().password("hush-hush").start();
    let bare = settings(&server.url(), Layout::Compact).password("hush-hush");
    let index = RedisIndex::open(bare.clone().ca(server.ca()), identity(3)).expect("an index");
    random_steps(&index, &mut Model::default(), &mut Source::new(83, 20), 5);

    let error =
        RedisIndex::open(bare.clone(), identity(3)).expect_err("an authority that the system does not know");
    assert_eq!(error.kind(), IndexErrorKind::Refused);
    assert!(error.to_string().contains("ca=FILE"), "{error}");
    let other = Server::builder().tls().start();
    let error = RedisIndex::open(bare.clone().ca(other.ca()), identity(3)).expect_err("another authority");
    assert_eq!(error.kind(), IndexErrorKind::Refused);
    let plain = settings(&server.url().replace("rediss:", "redis:"), Layout::Compact);
    assert!(RedisIndex::open(plain, identity(3)).is_err());
    for (file, why) in [("/nowhere/ca.pem", "ca names"), ("/dev/null", "no certificate")] {
        let error = RedisIndex::open(bare.clone().ca(file), identity(3)).expect_err("no file");
        assert_eq!(error.kind(), IndexErrorKind::Input);
        assert!(error.to_string().contains(why) && error.to_string().contains(file), "{error}");
    }
}
