//! Structured data of pages.

use std::path::Path;

use huntsman_audit::audit;
use huntsman_testkit::{Reply, ScriptedDownloader};

const PAGE: &str = r#"<script type="application/ld+json">
{"@context": "https://schema.org", "@graph": [{"@type": "Product", "@id": "/mill#p", "name": "Mill",
 "offers": {"@type": ["Offer"], "price": 7}}]}</script>
<script type="application/ld+json">{"@type": "Broken",}</script>
<div itemscope itemtype="https://schema.org/Person"><b itemprop=name>Ada</b>
 <i itemprop=address itemscope itemtype="https://schema.org/PostalAddress"><u itemprop=city>Bern</u></i></div>
<p vocab="https://schema.org/" typeof="Book" resource="/book"><b property="name">Sails</b>
 <i property="author" typeof="Author"><u property="name">Ben</u></i></p>
<!-- <p typeof="Comment"> --><pre>&lt;div itemscope itemtype="Escaped"&gt;</pre>"#;

/// The lines of a table.
fn table(path: &Path) -> Vec<String> {
    std::fs::read_to_string(path).unwrap().lines().map(str::to_owned).collect()
}

#[tokio::test(start_paused = true)]
async fn items_of_json_ld_microdata_and_rdfa_stand_in_one_table() {
    let web = ScriptedDownloader::new()
        .respond("https://a.example/", Reply::html(PAGE))
        .respond("https://a.example/plain", Reply::html("<p>Nothing"));
    let audit = audit(["https://a.example/", "https://a.example/plain"]).downloader(web).run().await.unwrap();
    let dir = tempfile::tempdir().unwrap();
    audit.write(dir.path()).unwrap();
    let lines = table(&dir.path().join("csv/structured.csv"));
    assert_eq!(
        lines,
        [
            "url,format,type,name,id,within,properties,line,column",
            "https://a.example/,json-ld,Product,Mill,/mill#p,,name offers,1,35",
            "https://a.example/,json-ld,Offer,,,Product,price,1,35",
            "https://a.example/,microdata,https://schema.org/Person,Ada,,,name address,5,26",
            "https://a.example/,microdata,https://schema.org/PostalAddress,,,https://schema.org/Person,city,6,42",
            "https://a.example/,rdfa,Book,Sails,/book,,name author,7,40",
            "https://a.example/,rdfa,Author,Ben,,Book,name,8,31",
        ]
    );
}
