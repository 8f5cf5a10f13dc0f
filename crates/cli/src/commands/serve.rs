//! `huntsman serve`.

use std::net::SocketAddr;
use std::time::Duration;

use huntsman::serve::checks::{Access, AccessError, Service};
use huntsman::signals::Signals;
use huntsman::sweep::Workspace;
use huntsman::sweep::service::{ArticleReader, Checker, Wikis};
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::command::jobs::{self, ServeCommand};
use crate::config::Config;
use crate::copyvio::{Inputs, pdf_reader};
use crate::exit::{Exit, Failure, Outcome};
use crate::logging;
use crate::progress::Screen;
use crate::render::say;
use crate::serve::ServeArgs;
use crate::server::{Limits, serve};

/// Time limit for reading an article.
const ARTICLE_TIME: Duration = Duration::from_secs(20);

pub(crate) async fn run(args: ServeArgs) -> Outcome {
    if let Some(ServeCommand::Jobs(args)) = args.what {
        let program = std::env::current_exe()?;
        return jobs::serve(args, |config| config.huntsman(program)).await;
    }
    // Signals are handled before anything is printed: a program that waits for the line with the address may send a
    // signal at once.
    let mut signals = Signals::listen();
    let token = args.token.clone().or_else(|| std::env::var("HUNTSMAN_TOKEN").ok());
    let wikis = Wikis::new(&args.wiki).map_err(|error| Failure::usage(format!("--wiki {error}")))?;
    let plan = args.plan.plan(args.candidates.max_queries)?;
    let mut command = Inputs::command();
    command.extend(Workspace::settings());
    let config = Config::load(&args.settings, command, args.network.settings())?;
    logging::start(&config.settings, &Screen::plain())?;
    let mut sources = args.candidates.sources(&config.settings)?;
    // Without given addresses, the source `given` can find nothing.
    sources.retain(|source| source.name() != "given" || !args.candidates.source.is_empty());

    let access = access(args.listen, token)?;
    let failed = |error| Failure::usage(format!("--listen {}: {error}", args.listen));
    let listener = TcpListener::bind(args.listen).await.map_err(failed)?;
    let address = listener.local_addr()?;

    let layers = config.layers.clone();
    let workspace = Workspace::start(pdf_reader(), |crawler| crawler.layers(layers))?;
    let reader = ArticleReader::start(pdf_reader(), ARTICLE_TIME, |crawler| crawler.layers(config.layers))?;
    let most = usize::try_from(args.max_checks).unwrap_or(usize::MAX).min(1_000);
    let checker = Checker::new(workspace, reader, plan, sources, most);
    let routes = Service::new(access, checker, wikis).routes();

    say(&format!("serving on http://{address}/ (Ctrl-C ends it)"));
    let (stop, stopped) = watch::channel(false);
    let mut serving = tokio::spawn(serve(listener, routes, Limits::default(), stopped));
    tokio::select! {
        ended = &mut serving => {
            return Err(Failure::crawl(format!("the server ended by itself: {ended:?}")));
        }
        () = signals.next() => {}
    }
    let _ = stop.send(true);
    say("stopping: requests that are being answered may end; once more to stop at once");
    tokio::select! {
        _ = serving => {}
        () = signals.next() => {}
    }
    Ok(Exit::Interrupted)
}

/// Access control with errors that name the flags.
fn access(address: SocketAddr, token: Option<String>) -> Outcome<Access> {
    Access::new(address, token).map_err(|error| {
        Failure::usage(match error {
            AccessError::NoToken(address) => format!(
                "--listen {address}: other machines could use this; add --token TOKEN (or HUNTSMAN_TOKEN), or use 127.0.0.1:{}",
                address.port()
            ),
            AccessError::BadToken => "--token: use letters, digits and signs, without blanks".to_owned(),
        })
    })
}
