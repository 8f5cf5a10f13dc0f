//! A PDF file with two columns, as typesetting programs write them.

/// Words per line, and (below) lines per column.
const LINE: usize = 6;
const LINES: usize = 70;

/// Sets the words in two columns on as many pages as needed; one column follows the other, and each line is an
/// instruction of its own. The words must be ASCII.
pub(super) fn two_columns(words: &[&str]) -> Vec<u8> {
    let lines: Vec<String> = words.chunks(LINE).map(|line| escaped(&line.join(" "))).collect();
    let pages: Vec<&[String]> = lines.chunks(2 * LINES).collect();
    let kids: Vec<String> = (0..pages.len()).map(|page| format!("{} 0 R", 4 + 2 * page)).collect();
    let mut objects = vec![
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        format!("<< /Type /Pages /Kids [{}] /Count {} >>", kids.join(" "), pages.len()),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>".to_owned(),
    ];
    for (page, lines) in pages.iter().enumerate() {
        objects.push(format!(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents {} 0 R /Resources << /Font << /F1 3 0 R >> >> >>",
            5 + 2 * page
        ));
        let mut content = String::from("BT /F1 9 Tf ");
        for (at, line) in lines.iter().enumerate() {
            let (x, y) = (40 + 260 * (at / LINES), 800 - 11 * (at % LINES));
            content.push_str(&format!("1 0 0 1 {x} {y} Tm ({line}) Tj "));
        }
        content.push_str("ET");
        objects.push(format!("<< /Length {} >>\nstream\n{content}\nendstream", content.len()));
    }
    let mut out = String::from("%PDF-1.4\n");
    let mut places = Vec::new();
    for (number, object) in objects.iter().enumerate() {
        places.push(out.len());
        out.push_str(&format!("{} 0 obj\n{object}\nendobj\n", number + 1));
    }
    let start = out.len();
    out.push_str(&format!("xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1));
    places.iter().for_each(|place| out.push_str(&format!("{place:010} 00000 n \n")));
    out.push_str(&format!(
        "trailer << /Size {} /Root 1 0 R >>\nstartxref\n{start}\n%%EOF\n",
        objects.len() + 1
    ));
    out.into_bytes()
}

fn escaped(line: &str) -> String {
    let is_plain = |c: &char| (' '..='~').contains(c);
    line.chars()
        .filter(is_plain)
        .flat_map(|c| matches!(c, '(' | ')' | '\\').then_some('\\').into_iter().chain([c]))
        .collect()
}
