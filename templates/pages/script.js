"use strict";
// Filters the rows of a table. Without it every row is shown, and the fields for it are hidden.
// `data-on` of a row: `FLOOR=9.0,8.9 FLOOR-LAST=7.0`, the compute capabilities it runs on, by the oldest driver and the
// last driver branch.
(() => {
  const numbers = (text) => text.split(".").map(Number);
  const atLeast = (have, want) => {
    for (let at = 0; at < want.length; at += 1) {
      const difference = (have[at] || 0) - want[at];
      if (difference !== 0) return difference > 0;
    }
    return true;
  };
  const machines = (text) => {
    const found = new Map();
    for (const part of (text || "").split(" ").filter(Boolean)) {
      const [drivers, capabilities] = part.split("=");
      const [floor, last] = drivers.split("-");
      const range = { floor: numbers(floor), last: last ? Number(last) : null };
      for (const capability of capabilities.split(",")) found.set(capability, range);
    }
    return found;
  };
  const runs = (on, capability, driver) => {
    const fits = (range) => !driver || (atLeast(driver, range.floor) && (range.last === null || driver[0] <= range.last));
    if (!capability) return !driver || [...on.values()].some(fits);
    return on.has(capability) && fits(on.get(capability));
  };
  for (const tools of document.querySelectorAll("[data-filters]")) {
    const tables = document.querySelectorAll(tools.dataset.filters);
    const rows = [...tables].flatMap((table) => [...table.tBodies].flatMap((body) => [...body.rows])).map((row) => ({
      row, text: row.textContent.toLowerCase(), on: machines(row.dataset.on), group: row.dataset.group || "", shown: true,
    }));
    const words = tools.querySelector("[name=words]");
    const group = tools.querySelector("[name=group]");
    const gpu = tools.querySelector("[name=gpu]");
    const driver = tools.querySelector("[name=driver]");
    const count = tools.querySelector("output");
    const models = [...tools.querySelectorAll("datalist option")].map((it) => [it.value.toLowerCase(), it.label]);
    const capabilityOf = (text) => {
      const plain = text.trim().toLowerCase();
      if (!plain) return { capability: "" };
      const number = plain.match(/^(?:sm_?)?(\d+)\.?(\d)$/);
      if (number && (plain.includes(".") || plain.startsWith("sm"))) return { capability: `${number[1]}.${number[2]}` };
      const exact = models.filter((it) => it[0] === plain);
      const found = exact.length > 0 ? exact : models.filter((it) => it[0].includes(plain));
      const all = new Set(found.map((it) => it[1]));
      return all.size === 1 ? { capability: [...all][0] } : { capability: "", says: `${found.length} GPU models match` };
    };
    const apply = () => {
      const wanted = words ? words.value.toLowerCase().split(/\s+/).filter(Boolean) : [];
      const { capability, says } = gpu ? capabilityOf(gpu.value) : { capability: "" };
      const typed = driver ? driver.value.trim() : "";
      const version = /^\d+(\.\d+)*$/.test(typed) ? numbers(typed) : null;
      const kind = group ? group.value : "";
      let shown = 0;
      for (const it of rows) {
        const show = wanted.every((word) => it.text.includes(word)) && (!kind || it.group === kind)
          && ((!capability && !version) || runs(it.on, capability, version));
        if (show) shown += 1;
        if (show !== it.shown) it.row.hidden = !show;
        it.shown = show;
      }
      const notes = [`${shown} of ${rows.length}`];
      if (capability) notes.push(`compute capability ${capability}`);
      if (says) notes.push(says);
      if (typed && !version) notes.push("a driver is a number such as 570.124.06");
      count.textContent = notes.join("; ");
    };
    tools.addEventListener("input", apply);
    tools.hidden = false;
    apply();
  }
})();
