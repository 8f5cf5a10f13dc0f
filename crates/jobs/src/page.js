const short = (time) => (time ? time.slice(0, 19).replace("T", " ") : "");

function buttons(...all) {
  const cell = document.createElement("span");
  cell.append(...all);
  return cell;
}

// Shows the end of a text of a job.
async function showText(path, title) {
  try {
    const headers = { authorization: "Bearer " + token, range: "bytes=-30000" };
    const response = await fetch("/api" + path, { headers, cache: "no-store" });
    const isEmpty = response.status === 416;
    if (!response.ok && !isEmpty) throw new Error((await response.json()).error);
    get("text-title").textContent = title + (response.status === 206 ? " (its end)" : "");
    get("text").textContent = isEmpty ? "" : await response.text();
    get("text").scrollIntoView({ block: "nearest" });
  } catch (error) {
    say(error.message, true);
  }
}

const logButton = (job) => button("Log", () => showText("/logs/" + job.id, "Log of " + job.id));
const itemsButton = (job) => button("Items", () => showText("/items/" + job.id, "Items of " + job.id));

function cancelButton(job) {
  const text = job.cancelled ? "Kill" : "Cancel";
  const asks = job.cancelled ? "Kill " + job.id + "?" : "Cancel " + job.id + "? It does not go on later.";
  return button(text, () => confirm(asks) && order("/cancel.json", { job: job.id }, (answer) => answer.message));
}

// The page of the crawl opens in this tab: the link works once.
function controlButton(job) {
  const made = button("Crawl", async () => {
    try {
      location.assign((await call("/control.json", { job: job.id })).url);
    } catch (error) {
      say(error.message, true);
    }
  });
  made.disabled = !job.has_control;
  return made;
}

function result(job) {
  const made = document.createElement("span");
  made.textContent = job.reason;
  made.className = job.is_good ? "finished" : "failed";
  return made;
}

function show(status, jobs, lines) {
  get("state").textContent = status.state;
  get("state").className = "state " + status.state;
  get("time").textContent = short(status.time) + " UTC; schedules: " + status.time_zone;
  for (const key of ["running", "pending", "finished", "max_proc"]) get(key).textContent = count(status[key]);
  table("running-jobs", jobs.running.map((job) => [job.id, job.project, job.spider, short(job.started), job.pages, job.items,
    job.queued, buttons(controlButton(job), logButton(job), itemsButton(job), cancelButton(job))]));
  table("pending-jobs", jobs.pending.map((job) => [job.id, job.project, job.spider, short(job.created), job.priority,
    job.deaths, cancelButton(job)]));
  table("finished-jobs", jobs.finished.map((job) => [job.id, job.project, job.spider, short(job.ended), result(job),
    job.exit_code, job.pages, job.items, job.has_files ? buttons(logButton(job), itemsButton(job)) : "deleted"]));
  table("schedules", lines.schedules.map((line) => [line.name, line.project, line.spider, line.cron, short(line.next),
    line.left_out]));
}

function options(id, names) {
  get(id).replaceChildren(...names.map((name) => new Option(name, name)));
}

async function showSpiders() {
  const project = get("project").value;
  if (!project) return;
  try {
    options("spider", (await call("/listspiders.json?project=" + encodeURIComponent(project))).spiders);
  } catch (error) {
    options("spider", []);
    say(error.message, true);
  }
}

function pairs(id) {
  const words = get(id).value.split(/\s+/).filter((word) => word);
  return Object.fromEntries(words.map((word) => {
    const at = word.indexOf("=");
    if (at < 1) throw new Error(word + ": use name=value");
    return [word.slice(0, at), word.slice(at + 1)];
  }));
}

function schedule() {
  try {
    const body = { project: get("project").value, spider: get("spider").value, args: pairs("args"),
      settings: pairs("settings"), priority: Number(get("priority").value) };
    order("/schedule.json", body, (answer) => "queued: " + answer.jobid);
  } catch (error) {
    say(error.message, true);
  }
}

open(async () => {
  get("project").addEventListener("change", showSpiders);
  get("schedule").addEventListener("click", schedule);
  every(2, async () => {
    if (!get("project").options.length) {
      options("project", (await call("/listprojects.json")).projects);
      await showSpiders();
    }
    const parts = ["/daemonstatus.json", "/listjobs.json?limit=50", "/listschedules.json"].map((path) => call(path));
    show(...(await Promise.all(parts)));
  });
});
