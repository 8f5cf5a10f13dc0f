//! The command `shell`: a page to try selectors on, with the settings and components of a spider.

use huntsman_crawler::parse_web_url;
use huntsman_shell::Surroundings;

use crate::arguments::Arguments;
use crate::command::exit::Outcome;
use crate::command::progress::Screen;
use crate::command::shell::{run_plain, settings_of, with_settings};
use crate::command::{self, Config, logging};
use crate::command_line::ShellCommandArgs;
use crate::project::{Chosen, Project};

pub(crate) async fn run(project: &Project, args: ShellCommandArgs) -> Outcome {
    let arguments = Arguments::of_flags(&args.arguments)?;
    let chosen = choose(project, &args, &arguments)?;
    arguments.check()?;
    let mut flags = args.network.settings();
    flags.extend(settings_of(&args.shell));
    let Some(chosen) = chosen else {
        let config = project.checked(Config::load(&args.settings, Vec::new(), flags)?)?;
        logging::start(&config.settings, &Screen::plain())?;
        return run_plain(&args.shell, args.fixtures, config).await;
    };
    let config = project.checked(Config::load(chosen.sources(&args.settings), Vec::new(), flags)?)?;
    logging::start(&config.settings, &Screen::plain())?;
    let fixtures = args.fixtures.join(chosen.name);
    let (client, callback) = chosen.crawl.client(config.layers.clone(), &arguments)?;
    let surroundings = Surroundings::new(client).fixtures(fixtures).spider(callback);
    command::shell::run(&args.shell, with_settings(surroundings, config)).await
}

/// The spider that is named, that of the page, or the only one; `None` if there are several and none fits.
fn choose<'a>(
    project: &'a Project,
    args: &ShellCommandArgs,
    arguments: &Arguments,
) -> Outcome<Option<Chosen<'a>>> {
    if args.spider.is_some() || project.names().count() < 2 {
        return project.choose(args.spider.as_deref(), arguments).map(Some);
    }
    let url = args.shell.target.as_deref().and_then(|target| parse_web_url(target).ok());
    Ok(url.and_then(|url| project.for_page(None, &url, arguments).ok()))
}
