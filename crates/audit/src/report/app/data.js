// The data: an index in the page, and rows of tables in blocks, which are in the page or in files beside it and are read when a view needs them.

const index = JSON.parse(document.getElementById("index").textContent);

// Rows of an issue, a page and so on are arrays; these are the places of their fields.
const ISSUE = { url: 0, target: 1, group: 2, value: 3, limit: 4, sources: 5, template: 6, fresh: 7, id: 8, severity: 9 };
const PLACE = { page: 0, line: 1, column: 2, link: 3, region: 4, excerpt: 5 };
const PAGE = {
  status: 0, type: 1, bytes: 2, wire: 3, ttfb: 4, depth: 5, rank: 6, inlinks: 7, sources: 8, within: 9, elsewhere: 10, reason: 11, title: 12,
  description: 13, h1: 14, words: 15, lang: 16, errors: 17, warnings: 18, notices: 19, listed: 20, modified: 21, html: 22,
};
const DETAIL = { parent: 0, canonical: 1, redirect: 2, about: 3, shows: 4, links: 5 };
const REGIONS = ["", "header", "nav", "main", "aside", "footer"];

// The rows of a block. It keeps its text, and a row becomes an array only while it is looked at: rows that are all arrays take five times as much
// memory. No text of JSON has a line break within a row.
class Block {
  constructor(text) {
    const starts = [1];
    for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) starts.push(at + 1);
    this.text = text;
    this.starts = Uint32Array.from(starts);
  }
  get length() { return this.starts.length; }
  // Before the next row are a comma and a line break, behind the last one a bracket.
  at(number) {
    const end = number + 1 < this.starts.length ? this.starts[number + 1] - 2 : this.text.length - 1;
    return JSON.parse(this.text.slice(this.starts[number], end));
  }
  all() { return JSON.parse(this.text); }
}

// The rows of a table, which is one block after the other; they are read like those of an array.
class Rows {
  constructor(parts) {
    this.parts = parts;
    this.starts = [];
    this.length = 0;
    for (const part of parts) {
      this.starts.push(this.length);
      this.length += part.length;
    }
    this.last = 0;
  }
  at(number) {
    // Mostly the row is in the block of the one before, or in the next.
    let part = this.last;
    while (part > 0 && this.starts[part] > number) part--;
    while (part + 1 < this.parts.length && this.starts[part + 1] <= number) part++;
    this.last = part;
    return this.parts[part].at(number - this.starts[part]);
  }
  // If all are looked at, each block is read as a whole, which is faster.
  *[Symbol.iterator]() { for (const part of this.parts) yield* part.all(); }
  all() { return [...this]; }
}

const blocks = new Map();
const awaited = new Map();

// The files of blocks call this function with their rows, which stand in a comment of a function: `()=>{/*[...]*/}`.
window.huntsman = (name, number, rows) => {
  const key = `${name}-${number}`;
  awaited.get(key)?.(new Block(rows.toString().slice("()=>{/*".length, -"*/}".length)));
  awaited.delete(key);
};

const policy = window.trustedTypes?.createPolicy("huntsman", {
  createScriptURL: path => {
    if (/^report\/[a-z]+(-\d+)+\.js$/.test(path)) return path;
    throw new TypeError(`${path} is no file of this report`);
  },
});

const block = (name, number) => {
  const key = `${name}-${number}`;
  if (!blocks.has(key)) {
    blocks.set(key, new Promise((resolve, reject) => {
      if (!index.beside) {
        resolve(new Block(document.getElementById(`block-${key}`).textContent));
        return;
      }
      const path = `report/${key}.js`, script = document.createElement("script");
      awaited.set(key, resolve);
      script.onload = () => script.remove();
      script.onerror = () => {
        blocks.delete(key);
        reject(new Error(say("{0} could not be read. The folder \"report\" has to stand beside this page.", path)));
      };
      script.src = policy ? policy.createScriptURL(path) : path;
      document.head.append(script);
    }));
  }
  return blocks.get(key);
};

// All rows of a table, which `located` says where they are.
const rowsOf = async (name, located) => new Rows(await Promise.all(located.starts.map((_, number) => block(name, number))));

// Blocks of which a single row was wanted; only the last ones stay in memory, unless they are in the page.
const SINGLE = 12;
const singles = [];
const keepFew = key => {
  const at = singles.indexOf(key);
  if (at >= 0) singles.splice(at, 1);
  else if (blocks.has(key)) return;
  singles.unshift(key);
  if (index.beside) for (const old of singles.splice(SINGLE)) blocks.delete(old);
};

// One row of a table.
const rowOf = async (name, located, number) => {
  let low = 0, high = located.starts.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (located.starts[middle] <= number) low = middle; else high = middle - 1;
  }
  if (number >= located.rows) return undefined;
  keepFew(`${name}-${low}`);
  return (await block(name, low)).at(number - located.starts[low]);
};

// The issues of the codes that were looked at last stay in memory.
const RECENT = 2;
const recent = [];
const issuesOf = async code => {
  const at = recent.indexOf(code);
  if (at >= 0) recent.splice(at, 1);
  recent.unshift(code);
  if (index.beside) {
    for (const old of recent.splice(RECENT)) {
      for (const key of blocks.keys()) if (key.startsWith(`issues-${old}-`)) blocks.delete(key);
    }
  }
  return rowsOf(`issues-${code}`, index.codes[code].rows);
};

// URLs stand as what they have in common with the one before, and the rest.
let urls = null;
let reading = null;
const readUrls = () => reading ??= Promise.all(index.urls.starts.map((_, number) => block("urls", number))).then(parts => {
  const texts = parts.map(part => {
    const all = [];
    let last = "";
    for (const [common, rest] of part.all()) all.push(last = last.slice(0, common) + rest);
    return all.join("\n");
  });
  // A list that was split out of one text takes a third of the memory of texts that were put together one by one. No URL has a line break.
  urls = texts.length ? texts.join("\n").split("\n") : [];
  if (index.beside) index.urls.starts.forEach((_, number) => blocks.delete(`urls-${number}`));
});
const urlOf = number => number === null || number === undefined ? null : urls[number];
const isPage = number => number !== null && number !== undefined && number < index.pages.rows;

// The number of a page; pages stand in the order of the bytes of their URLs.
const bytes = text => new TextEncoder().encode(text);
const compareBytes = (a, b) => {
  const length = Math.min(a.length, b.length);
  for (let at = 0; at < length; at++) if (a[at] !== b[at]) return a[at] - b[at];
  return a.length - b.length;
};
const pageNumber = url => {
  const wanted = bytes(url);
  let low = 0, high = index.pages.rows - 1;
  while (low <= high) {
    const middle = (low + high) >> 1, order = compareBytes(bytes(urls[middle]), wanted);
    if (order === 0) return middle;
    if (order < 0) low = middle + 1; else high = middle - 1;
  }
  return null;
};
