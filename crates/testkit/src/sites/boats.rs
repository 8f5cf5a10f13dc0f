//! Sentences about boats: the same number gives the same words, on every machine and in every version.

use super::random::Random;

const WHO: [&str; 16] = [
    "the harbour master",
    "my neighbour",
    "an old sailor",
    "the boat builder",
    "our crew",
    "a friend from the club",
    "the ferry captain",
    "her brother",
    "the lighthouse keeper",
    "a young skipper",
    "the rigger",
    "our trainer",
    "the fisherman",
    "a passing yacht",
    "the coast guard",
    "my daughter",
];
const DID: [&str; 16] = [
    "repaired",
    "painted",
    "measured",
    "lost",
    "found",
    "sold",
    "borrowed",
    "replaced",
    "tested",
    "cleaned",
    "sailed",
    "anchored",
    "described",
    "recommended",
    "photographed",
    "inspected",
];
const WHAT: [&str; 24] = [
    "the mainsail",
    "a wooden mast",
    "the rudder",
    "an old compass",
    "the anchor chain",
    "a small dinghy",
    "the keel",
    "the engine",
    "a coil of rope",
    "the varnish",
    "the cabin door",
    "a set of charts",
    "the navigation lights",
    "the bilge pump",
    "a spare battery",
    "the jib",
    "the tiller",
    "a rusty winch",
    "the life raft",
    "the solar panel",
    "the water tank",
    "a brass bell",
    "the hull",
    "the radio",
];
const WHERE: [&str; 16] = [
    "in the outer harbour",
    "near the lighthouse",
    "behind the breakwater",
    "at the northern pier",
    "off the island",
    "in the boatyard",
    "under the bridge",
    "close to the reef",
    "at anchor in the bay",
    "on the slipway",
    "along the river",
    "in open water",
    "beside the fuel dock",
    "at the winter storage",
    "in the narrow channel",
    "before the regatta",
];
const WHEN: [&str; 16] = [
    "last spring",
    "during the storm",
    "on a calm morning",
    "before sunrise",
    "after the race",
    "in heavy rain",
    "two weeks ago",
    "at low tide",
    "when the wind turned",
    "in the first season",
    "on the way home",
    "at midnight",
    "in early autumn",
    "while we waited",
    "with the rising tide",
    "over the long weekend",
];
const BECAUSE: [&str; 16] = [
    "because the manual was wrong",
    "although nobody believed it",
    "so the trip took a day longer",
    "and it has worked ever since",
    "but the price was too high",
    "which surprised everybody",
    "since the insurance asked for it",
    "and we learned a lot",
    "so that the deck stays dry",
    "because the salt had eaten the bolts",
    "and the photographs prove it",
    "but I would not do it again",
    "which saved the whole summer",
    "although the forecast was good",
    "and the repair cost almost nothing",
    "so please check yours too",
];

/// The given number of sentences about boats.
pub(crate) fn sentences(random: &mut Random, count: usize) -> String {
    let mut out = String::new();
    for _ in 0..count {
        let who = random.pick(&WHO);
        let mut sentence =
            format!("{who} {} {} {}", random.pick(&DID), random.pick(&WHAT), random.pick(&WHERE));
        if random.below(3) > 0 {
            sentence = format!("{sentence} {}", random.pick(&WHEN));
        }
        if random.below(2) > 0 {
            sentence = format!("{sentence} {}", random.pick(&BECAUSE));
        }
        if !out.is_empty() {
            out.push(' ');
        }
        let mut letters = sentence.chars();
        out.extend(letters.next().map(|c| c.to_ascii_uppercase()));
        out.push_str(letters.as_str());
        out.push('.');
    }
    out
}

/// A title of a few words.
pub(crate) fn title(random: &mut Random) -> String {
    let mut title = format!("Who {} {} {}?", random.pick(&DID), random.pick(&WHAT), random.pick(&WHERE));
    if random.below(3) == 0 {
        title = format!("About {} {}", random.pick(&WHAT), random.pick(&WHERE));
    }
    title
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_number_gives_the_same_text_for_ever() {
        let text = sentences(&mut Random::new(7), 3);
        assert_eq!(text, sentences(&mut Random::new(7), 3));
        assert_ne!(text, sentences(&mut Random::new(8), 3));
    }
}
