"use strict";
// Everything that is shown is set as text, never as markup: addresses and errors come from strangers.

const get = (id) => document.getElementById(id);

let token = null;

function say(text, isError) {
  const line = get("message");
  line.textContent = text;
  line.className = isError ? "bad" : "";
}

// Calls the API: GET without a body, POST with one.
async function call(path, body) {
  const options = { headers: { authorization: "Bearer " + token }, cache: "no-store" };
  if (body !== undefined) {
    options.method = "POST";
    options.headers["content-type"] = "application/json";
    options.body = JSON.stringify(body);
  }
  const response = await fetch("/api" + path, options);
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.error || response.statusText);
  return answer;
}

// Without an answer the page shows the last that is known, and says so; no button could do anything.
function lost(isGone) {
  document.body.classList.toggle("gone", isGone);
  document.querySelector("main").inert = isGone;
  if (!isGone) return;
  get("state").textContent = "no answer";
  get("state").className = "state lost";
}

// Does something now and then, and says what went wrong.
async function every(seconds, work) {
  for (;;) {
    try {
      await work();
      lost(false);
      get("message").className === "bad" && say("", false);
    } catch (error) {
      const isGone = error instanceof TypeError;
      say(isGone ? "There is no answer: it has probably ended." : error.message, true);
      lost(isGone);
    }
    await new Promise((resolve) => setTimeout(resolve, seconds * 1000));
  }
}

// An order of the person at the page, and what came of it.
async function order(path, body, done) {
  try {
    const answer = await call(path, body);
    say(typeof done === "function" ? done(answer) : done, false);
  } catch (error) {
    say(error.message, true);
  }
}

// Fills a table: a row is a list of texts, numbers and elements.
function table(id, rows) {
  const body = get(id).tBodies[0];
  const made = rows.map((cells) => {
    const row = document.createElement("tr");
    for (const cell of cells) {
      const data = row.insertCell();
      if (cell instanceof Node) data.append(cell);
      else data.textContent = cell === null || cell === undefined ? "" : String(cell);
      if (typeof cell === "number") data.className = "number";
    }
    return row;
  });
  body.replaceChildren(...made);
  const heads = get(id).tHead.rows[0].cells;
  if (made.length > 0) [...made[0].cells].forEach((cell, at) => (heads[at].className = cell.className));
}

function button(text, action) {
  const made = document.createElement("button");
  made.type = "button";
  made.textContent = text;
  made.addEventListener("click", action);
  return made;
}

const count = (number) => Math.round(number).toString().replace(/\B(?=(\d{3})+$)/g, "\u202f");

function bytes(number) {
  for (const unit of ["B", "kB", "MB", "GB"]) {
    if (number < 1000) return (unit === "B" ? number : number.toFixed(1)) + " " + unit;
    number /= 1000;
  }
  return number.toFixed(1) + " TB";
}

function duration(seconds) {
  const parts = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, Math.floor(seconds) % 60];
  return parts.map((part) => String(part).padStart(2, "0")).join(":");
}

// The code of the link is used up at once and leaves the address bar. The token lives as long as this tab: a reload finds it.
async function open(begin) {
  const code = location.hash.slice(1);
  history.replaceState(null, "", "/");
  try {
    if (code) {
      const response = await fetch("/session", {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ code }),
      });
      const answer = await response.json();
      if (!response.ok) throw new Error(answer.error);
      sessionStorage.setItem("token", answer.token);
    }
    token = sessionStorage.getItem("token");
    if (!token) throw new Error("This page is opened by a link that its command prints.");
    document.querySelector("main").hidden = false;
    say("", false);
    begin();
  } catch (error) {
    say(error.message, true);
  }
}
