// The other versions of this site. They lie beside it, each in its folder, and each has the same versions.json; a file
// that is opened without a server may read none, so that there is no choice.
"use strict";
document.addEventListener("DOMContentLoaded", async () => {
  const place = document.querySelector(".versions");
  if (!place || location.protocol === "file:") return;
  const root = new URL(document.documentElement.dataset.content_root, location.href);
  const answer = await fetch(new URL("versions.json", root), { cache: "no-cache" }).catch(() => null);
  if (!answer || !answer.ok) return;
  const versions = await answer.json();
  if (!Array.isArray(versions) || versions.length < 2) return;
  const select = place.querySelector("select");
  for (const version of versions) {
    const option = new Option(version, version, false, version === select.dataset.version);
    select.append(option);
  }
  select.addEventListener("change", () => {
    const page = location.href.slice(root.href.length);
    const there = new URL(`../${select.value}/`, root);
    // A page that the other version does not have: its first page.
    fetch(new URL(page, there), { method: "HEAD" })
      .then((found) => { location.href = new URL(found.ok ? page : "index.html", there); });
  });
  place.hidden = false;
});
