//! `huntsman-bench store`.

use serde_json::{Value, json};

use crate::common::{huntsman_bench, run};

#[test]
fn bench_store_tells_of_every_store_what_it_costs() {
    let dir = tempfile::tempdir().unwrap();
    let bench =
        |args: &[&str]| run(huntsman_bench(dir.path()).args(["store", "--entries", "3000"]).args(args));
    let said = bench(&["--batch", "100", "--json"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let made: Value = serde_json::from_str(&said.stdout).unwrap();
    let stores = made["stores"].as_array().unwrap();
    assert!(
        stores.iter().any(|store| store["backend"] == "redb") && stores[0]["backend"] == "memory",
        "{made}"
    );
    for store in stores {
        assert_eq!((&store["entries"], &store["batch"]["count"]), (&json!(3000), &json!(30)));
        assert_eq!(store["disk_bytes"].as_u64() > Some(3000 * 200), store["backend"] != "memory", "{store}");
    }
    let said = bench(&["--only", "redb"]);
    assert!(said.stdout.contains("redb") && !said.stdout.contains("memory"), "{}", said.stdout);
    assert_eq!(bench(&["--only", "rocks"]).code, Some(2));
    assert_eq!(bench(&["--dir", "missing"]).code, Some(1));
}
