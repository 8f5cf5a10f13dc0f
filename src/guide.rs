//! The code of the guide (`docs/guide`), compiled by the doc tests of this crate. Nothing of this is in the library.

#[doc = include_str!("../docs/guide/first-crawl.md")]
struct FirstCrawl;

#[doc = include_str!("../docs/guide/spiders.md")]
struct Spiders;

#[doc = include_str!("../docs/guide/callbacks.md")]
struct Callbacks;

#[doc = include_str!("../docs/guide/kinds.md")]
struct Kinds;

#[doc = include_str!("../docs/guide/declarative.md")]
struct Declarative;

#[doc = include_str!("../docs/guide/daemon.md")]
struct Daemon;

#[cfg(feature = "project")]
#[doc = include_str!("../docs/guide/projects.md")]
struct Projects;

#[doc = include_str!("../docs/guide/shell.md")]
struct Shell;

#[doc = include_str!("../docs/guide/testing.md")]
struct Testing;

#[doc = include_str!("../docs/guide/selecting.md")]
struct Selecting;

#[doc = include_str!("../docs/guide/forms.md")]
struct Forms;

#[doc = include_str!("../docs/guide/sessions.md")]
struct Sessions;

#[cfg(feature = "render")]
#[doc = include_str!("../docs/guide/rendering.md")]
struct Rendering;

#[doc = include_str!("../docs/guide/recipes.md")]
struct Recipes;

#[doc = include_str!("../docs/guide/items.md")]
struct Items;

#[doc = include_str!("../docs/guide/feeds.md")]
struct Feeds;

#[doc = include_str!("../docs/guide/archiving.md")]
struct Archiving;

#[doc = include_str!("../docs/guide/media.md")]
struct Media;

#[doc = include_str!("../docs/guide/politeness.md")]
struct Politeness;

#[doc = include_str!("../docs/guide/jobs.md")]
struct Jobs;

#[cfg(feature = "cluster")]
#[doc = include_str!("../docs/guide/cluster.md")]
struct Cluster;

#[doc = include_str!("../docs/guide/components.md")]
struct Components;

#[doc = include_str!("../docs/guide/client.md")]
struct Client;

#[doc = include_str!("../docs/guide/avoid-dup.md")]
struct AvoidDup;

#[doc = include_str!("../docs/guide/near-duplicates.md")]
struct NearDuplicates;

#[cfg(feature = "bulk")]
#[doc = include_str!("../docs/guide/bulk.md")]
struct Bulk;

#[doc = include_str!("../docs/guide/copied-texts.md")]
struct CopiedTexts;

#[doc = include_str!("../docs/guide/auditing.md")]
struct Auditing;

#[doc = include_str!("../docs/guide/auditing-sources.md")]
struct AuditingSources;

#[doc = include_str!("../docs/guide/links.md")]
struct Links;

#[doc = include_str!("../docs/guide/operating.md")]
struct Operating;

#[doc = include_str!("../docs/guide/monitoring.md")]
struct Monitoring;

#[doc = include_str!("../docs/guide/settings.md")]
struct Settings;

#[doc = include_str!("../docs/guide/scrapy.md")]
struct Scrapy;
