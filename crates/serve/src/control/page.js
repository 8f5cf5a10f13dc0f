function show(overview) {
  const { status, rates } = overview;
  get("state").textContent = status.state;
  get("state").className = "state " + status.state;
  get("elapsed").textContent = duration(status.elapsed_s);
  for (const key of ["pages", "items", "queued", "in_flight", "hosts_active", "failed", "skipped"]) {
    get(key).textContent = count(status[key]);
  }
  get("wire_bytes").textContent = bytes(status.wire_bytes);
  get("pages_per_minute").textContent = count(rates.pages_per_minute);
  get("items_per_minute").textContent = count(rates.items_per_minute);
  get("pause").disabled = status.state !== "running";
  get("resume").disabled = status.state !== "paused";
  get("stop").disabled = status.state === "stopping" || status.state === "ended";

  const most = Math.max(1, ...rates.series);
  const step = 100 / Math.max(1, rates.series.length - 1);
  const points = rates.series.map((value, at) => (at * step).toFixed(2) + "," + (39 - (value / most) * 37).toFixed(2));
  get("chart").setAttribute("points", points.join(" "));

  table("hosts", overview.hosts.map((host) => {
    const state = document.createElement("span");
    state.textContent = host.state + (host.until ? " until " + host.until.slice(11, 19) : "");
    state.className = host.state;
    const isOne = host.host !== "(rest)" && host.state !== "gave_up";
    const remove = isOne ? button("Remove", () => {
      if (confirm("Drop all queued requests of " + host.host + "? It gets no more requests in this run.")) {
        order("/remove", { host: host.host }, (answer) => answer.queued + " requests of " + host.host + " are dropped");
      }
    }) : "";
    return [host.host, state, host.queued, host.in_flight, host.concurrency ?? "any", host.delay_s, host.requests,
      Math.round(host.latency_ms[1]), host.last_error, remove];
  }));
  table("queue", overview.queue.slice(0, 10).map((next) => [next.url, next.depth, next.priority, next.not_before]));
  table("errors", overview.errors.map((error) => [error.at.slice(11, 19), error.url, error.why]));
}

open(() => {
  for (const name of ["pause", "resume"]) {
    get(name).addEventListener("click", () => order("/" + name, {}, "done: " + name));
  }
  get("stop").addEventListener("click", () => {
    if (confirm("Stop this crawl? Requests in flight may end; a crawl with a directory goes on with the same command.")) {
      order("/stop", {}, "the crawl stops");
    }
  });
  get("add").addEventListener("click", () => order("/add", { url: get("url").value }, (answer) =>
    answer.outcome + (answer.reason ? ": " + answer.reason : "")));
  get("set").addEventListener("click", () => {
    const number = (id) => (get(id).value === "" ? undefined : Number(get(id).value));
    const body = { host: get("host").value, seconds: number("delay"), concurrency: number("concurrency") };
    order("/delay", body, (answer) => answer.host + ": " + answer.delay_s + " s between requests");
  });
  every(2, async () => show(await call("/overview?limit=20")));
});
