//! The assembly of a crawl: components are created from the settings, and their hooks are sorted into the chains.

use std::any::Any;
use std::sync::Arc;

use serde_json::Value;

use super::builder::Factory;
use crate::at_end::DynAtEnd;
use crate::component::{Component, Components, Hooks, PageNeeds};
use crate::error::{Error, Result};
use crate::event::Observer;
use crate::hand_over::HandOver;
use crate::job::Persist;
use crate::middleware::{DownloaderMiddleware, DynDownloaderMiddleware, SpiderMiddleware};
use crate::settings::{Settings, nearest};

/// A registered component, or a single middleware: its places in the chains are known before it is created.
pub(crate) struct Registered {
    pub(crate) name: &'static str,
    pub(crate) is_component: bool,
    pub(crate) is_built_in: bool,
    downloader_order: Option<i32>,
    spider_order: Option<i32>,
    make: Factory<Option<ComponentHooks>>,
}

/// The hooks of a component that was created.
#[derive(Default)]
struct ComponentHooks {
    downloader: Option<Arc<dyn DynDownloaderMiddleware>>,
    spider: Option<Arc<dyn SpiderMiddleware>>,
    observer: Option<Arc<dyn Observer>>,
    persist: Option<Box<dyn Persist>>,
    at_end: Option<Arc<dyn DynAtEnd>>,
    hand_over: Option<Arc<dyn HandOver>>,
    needs: PageNeeds,
    value: Option<Arc<dyn Any + Send + Sync>>,
}

impl Registered {
    /// Adds this component to the others. A component of the same name is removed.
    pub(crate) fn replace_in(self, registered: &mut Vec<Self>) {
        registered.retain(|other| !(other.is_component && other.name == self.name));
        registered.push(self);
    }

    pub(crate) fn component<C: Component>(
        make: impl FnOnce(&Settings) -> Result<Option<C>> + Send + 'static,
    ) -> Self {
        let hooks = C::hooks(Hooks::default());
        Self {
            name: C::NAME,
            is_component: true,
            is_built_in: false,
            downloader_order: hooks.downloader.map(|(order, _)| order),
            spider_order: hooks.spider.map(|(order, _)| order),
            make: Box::new(move |settings| {
                let Some(component) = make(settings)?.map(Arc::new) else { return Ok(None) };
                let shared = || Arc::clone(&component);
                Ok(Some(ComponentHooks {
                    downloader: hooks.downloader.map(|(_, hook)| hook(shared())),
                    spider: hooks.spider.map(|(_, hook)| hook(shared())),
                    observer: hooks.observer.map(|hook| hook(shared())),
                    persist: hooks.persist.map(|hook| hook(shared())),
                    at_end: hooks.at_end.map(|hook| hook(shared())),
                    hand_over: hooks.hand_over.map(|hook| hook(shared())),
                    needs: component.page_needs(),
                    value: Some(component),
                }))
            }),
        }
    }

    pub(crate) fn downloader<M: DownloaderMiddleware>(middleware: M) -> Self {
        Self {
            name: middleware.name(),
            is_component: false,
            is_built_in: false,
            downloader_order: Some(middleware.order()),
            spider_order: None,
            make: Box::new(|_| {
                Ok(Some(ComponentHooks {
                    downloader: Some(Arc::new(middleware)),
                    ..ComponentHooks::default()
                }))
            }),
        }
    }

    pub(crate) fn spider<M: SpiderMiddleware>(middleware: M) -> Self {
        Self {
            name: middleware.name(),
            is_component: false,
            is_built_in: false,
            downloader_order: None,
            spider_order: Some(middleware.order()),
            make: Box::new(|_| {
                Ok(Some(ComponentHooks { spider: Some(Arc::new(middleware)), ..ComponentHooks::default() }))
            }),
        }
    }
}

/// A middleware and its place in the chain.
pub(crate) struct Ordered<T> {
    pub(crate) name: &'static str,
    pub(crate) order: i32,
    pub(crate) part: T,
}

/// Name, order and state of a component, for `settings --components` and the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComponentInfo {
    /// Name in records and settings.
    pub name: &'static str,
    /// Place in the chain; `None` if the component is switched off or not configured.
    pub order: Option<i32>,
}

/// The components of a chain in one line, for the log: `robots 100, cookies 700, near_dup off`.
pub(crate) fn listed(infos: &[ComponentInfo]) -> String {
    let named = |info: &ComponentInfo| match info.order {
        Some(order) => format!("{} {order}", info.name),
        None => format!("{} off", info.name),
    };
    infos.iter().map(named).collect::<Vec<_>>().join(", ")
}

/// The usual places of components in the downloader chain and in the spider chain, in their order.
pub(crate) fn usual_places(registered: &[Registered]) -> (Vec<ComponentInfo>, Vec<ComponentInfo>) {
    let chain = |order: fn(&Registered) -> Option<i32>| {
        let placed = |part: &Registered| Some(ComponentInfo { name: part.name, order: Some(order(part)?) });
        let mut infos: Vec<ComponentInfo> = registered.iter().filter_map(placed).collect();
        infos.sort_by_key(|info| (info.order, info.name));
        infos
    };
    (chain(|part| part.downloader_order), chain(|part| part.spider_order))
}

/// All hooks of the components of a crawl.
pub(crate) struct AssembledComponents {
    pub(crate) downloader_chain: Vec<Ordered<Arc<dyn DynDownloaderMiddleware>>>,
    pub(crate) spider_chain: Vec<Ordered<Arc<dyn SpiderMiddleware>>>,
    pub(crate) observers: Vec<Arc<dyn Observer>>,
    pub(crate) parts: Vec<Box<dyn Persist>>,
    /// In the order in which the components were added.
    pub(crate) at_end: Vec<Arc<dyn DynAtEnd>>,
    pub(crate) hand_over: Vec<Arc<dyn HandOver>>,
    pub(crate) needs: PageNeeds,
    pub(crate) components: Components,
    /// Infos of the downloader chain and of the spider chain.
    pub(crate) infos: (Vec<ComponentInfo>, Vec<ComponentInfo>),
}

/// Creates the components, applies the order tables of the settings, and sorts the chains. A component that is
/// switched off in every chain in which it has a place is not created.
pub(crate) fn assemble(registered: Vec<Registered>, settings: &Settings) -> Result<AssembledComponents> {
    let downloader_table = OrderTable { setting: "downloader_middlewares", of: |part| part.downloader_order };
    let spider_table = OrderTable { setting: "spider_middlewares", of: |part| part.spider_order };
    downloader_table.check(settings, &registered)?;
    spider_table.check(settings, &registered)?;
    let (mut downloader, mut spider) = (ChainBuilder::default(), ChainBuilder::default());
    let (mut observers, mut parts, mut values) = (Vec::new(), Vec::new(), Vec::new());
    let (mut needs, mut at_end, mut hand_over) = (PageNeeds::default(), Vec::new(), Vec::new());
    for component in registered {
        let (name, is_built_in) = (component.name, component.is_built_in);
        let places =
            [downloader_table.order(settings, &component)?, spider_table.order(settings, &component)?];
        let has_place = component.downloader_order.is_some() || component.spider_order.is_some();
        let is_off = has_place && places.iter().all(Option::is_none);
        let (has_downloader, has_spider) =
            (component.downloader_order.is_some(), component.spider_order.is_some());
        let made = match is_off {
            true => None,
            false => (component.make)(settings).map_err(|error| error.context(format!("building {name}")))?,
        };
        let made_at = |order: Option<i32>| order.filter(|_| made.is_some());
        if has_downloader {
            downloader.infos.push(ComponentInfo { name, order: made_at(places[0]) });
        }
        if has_spider {
            spider.infos.push(ComponentInfo { name, order: made_at(places[1]) });
        }
        let Some(made) = made else { continue };
        if let (Some(part), Some(order)) = (made.downloader, places[0]) {
            downloader.chain.push((is_built_in, Ordered { name, order, part }));
        }
        if let (Some(part), Some(order)) = (made.spider, places[1]) {
            spider.chain.push((is_built_in, Ordered { name, order, part }));
        }
        observers.extend(made.observer);
        parts.extend(made.persist);
        at_end.extend(made.at_end);
        hand_over.extend(made.hand_over);
        values.extend(made.value);
        needs = needs.or(made.needs);
    }
    let (downloader_chain, downloader_infos) = downloader.sorted();
    let (spider_chain, spider_infos) = spider.sorted();
    let infos = (downloader_infos, spider_infos);
    let components = Components::new(values);
    Ok(AssembledComponents {
        downloader_chain,
        spider_chain,
        observers,
        parts,
        at_end,
        hand_over,
        needs,
        components,
        infos,
    })
}

/// A setting that moves components within one chain, or switches them off, by name.
struct OrderTable {
    setting: &'static str,
    of: fn(&Registered) -> Option<i32>,
}

impl OrderTable {
    fn overrides<'a>(&self, settings: &'a Settings) -> &'a std::collections::BTreeMap<String, Value> {
        match self.setting {
            "downloader_middlewares" => &settings.downloader_middlewares,
            _ => &settings.spider_middlewares,
        }
    }

    /// Refuses names of components that are not in the chain.
    fn check(&self, settings: &Settings, registered: &[Registered]) -> Result<()> {
        let known = || registered.iter().filter(|part| (self.of)(part).is_some()).map(|part| part.name);
        match self.overrides(settings).keys().find(|name| !known().any(|other| other == *name)) {
            None => Ok(()),
            Some(name) => {
                let hint = nearest(name, known());
                let hint = hint.map_or(String::new(), |near| format!("; did you mean {near}?"));
                Err(Error::usage(format!("setting {}: no component is called {name}{hint}", self.setting)))
            }
        }
    }

    /// The place of a component in this chain; `None` if it has none, or is switched off.
    fn order(&self, settings: &Settings, part: &Registered) -> Result<Option<i32>> {
        let Some(usual) = (self.of)(part) else { return Ok(None) };
        match self.overrides(settings).get(part.name) {
            None => Ok(Some(usual)),
            Some(Value::String(word)) if word == "off" => Ok(None),
            Some(Value::Null | Value::Bool(false)) => Ok(None),
            Some(value) => match value.as_i64().and_then(|order| i32::try_from(order).ok()) {
                Some(order) => Ok(Some(order)),
                None => Err(Error::usage(format!(
                    "setting {}: {} = {value}: give an order number or \"off\"",
                    self.setting, part.name
                ))),
            },
        }
    }
}

struct ChainBuilder<T> {
    chain: Vec<(bool, Ordered<T>)>,
    infos: Vec<ComponentInfo>,
}

impl<T> Default for ChainBuilder<T> {
    fn default() -> Self {
        Self { chain: Vec::new(), infos: Vec::new() }
    }
}

impl<T> ChainBuilder<T> {
    /// The middlewares in order; among those of equal order, built-in ones come first, then by name.
    fn sorted(mut self) -> (Vec<Ordered<T>>, Vec<ComponentInfo>) {
        self.chain.sort_by_key(|(is_built_in, placed)| (placed.order, !is_built_in, placed.name));
        self.infos.sort_by_key(|info| (info.order.is_none(), info.order, info.name));
        (self.chain.into_iter().map(|(_, placed)| placed).collect(), self.infos)
    }
}
