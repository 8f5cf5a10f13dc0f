//! Crawls the generated sites with both models: `cases [NAME...]`.

use huntsman_detect::avoid::Options;
use huntsman_detect::avoid::evaluation::{Case, Simulation};
use huntsman_detect::maybedont::GateSettings;

fn main() {
    let names: Vec<String> = std::env::args().skip(1).collect();
    for case in
        Case::ALL.into_iter().filter(|case| names.is_empty() || names.iter().any(|name| name == case.name()))
    {
        for in_flight in [0, 16] {
            let mut cells = Vec::new();
            for seed in [1, 2, 3] {
                let requests = case.requests(seed);
                let simulation = Simulation::in_flight(in_flight);
                let ours = simulation.with_default(&requests, Options { seed, ..Options::default() });
                let settings = GateSettings { seed, ..GateSettings::default() };
                let theirs =
                    if seed == 1 { simulation.with_reference(&requests, settings).ok() } else { None };
                let reference =
                    theirs.map(|it| format!("(reference {:.2}/{})", it.recall().unwrap_or(1.0), it.lost));
                cells.push(format!(
                    "{:.3}/{} {} {}",
                    ours.recall().unwrap_or(1.0),
                    ours.lost,
                    ours.fetched,
                    reference.unwrap_or_default()
                ));
            }
            println!("{:20} {in_flight:2}  {}", case.name(), cells.join("  "));
        }
    }
}
