// How the search ranks pages, in the place of Sphinx's own ranking: that wants every word of a query in a page, takes the
// best word for all of them, and shows each heading as a result of its own. Here a page counts once. Each word of the query
// counts by how rare it is and by where it is found: in the title, a keyword, a heading or the text.
"use strict";
(() => {
  const WEIGHTS = { title: 4, keyword: 4, heading: 2, text: 1 };
  // A word that only begins like the query's.
  const PARTIAL = 0.5;
  // Generated lists of names have every word, and answer few questions.
  const FOLDERS = [
    ["reference/api/", 0.5], ["reference/collection/", 0.6], ["project/", 0.7], ["operate/runbooks/", 0.9],
    ...["alerts", "commands", "configuration", "metrics", "playbooks", "schemas", "variables"]
      .map((name) => [`reference/${name}`, 0.6]),
  ];
  const MOST = 30;

  const stemmer = new Stemmer();
  const stems = (text) => splitQuery(text.toLowerCase())
    .filter((word) => !stopwords.has(word))
    .map((word) => stemmer.stemWord(word));
  // Alerts are named in one word, such as HpuCardMissing.
  const apart = (title) => `${title} ${title.replace(/([a-z])([A-Z])/g, "$1 $2")}`;
  const list = (found) => (found === undefined ? [] : Array.isArray(found) ? found : [found]);

  // The pages that have a word, each with the weight of the best place.
  const places = (word, index, titles, keywords) => {
    const found = new Map();
    const add = (file, weight) => { if (weight > (found.get(file) || 0)) found.set(file, weight); };
    const within = (terms, weight) => {
      if (Object.hasOwn(terms, word)) {
        list(terms[word]).forEach((file) => add(file, weight));
      } else if (word.length > 2) {
        for (const term of Object.keys(terms)) {
          if (term.startsWith(word)) list(terms[term]).forEach((file) => add(file, weight * PARTIAL));
        }
      }
    };
    within(index.terms, WEIGHTS.text);
    within(index.titleterms, WEIGHTS.heading);
    titles.forEach((words, file) => { if (words.has(word)) add(file, WEIGHTS.title); });
    keywords.forEach((words, file) => { if (words.has(word)) add(file, WEIGHTS.keyword); });
    return found;
  };

  // The heading of each page that has most of the query.
  const headings = (words, index) => {
    const best = new Map();
    for (const [heading, where] of Object.entries(index.alltitles)) {
      const its = new Set(stems(heading));
      const hits = words.filter((word) => its.has(word)).length;
      const score = hits && hits / words.length + hits / its.size;
      for (const [file, anchor] of score ? where : []) {
        if (score > (best.get(file)?.score || 0)) best.set(file, { score, heading, anchor });
      }
    }
    return best;
  };

  Search._performSearch = (query) => {
    document.getElementById("search-progress")?.replaceChildren();
    const index = Search._index;
    const words = [...new Set(stems(query))];
    if (!words.length) return [];
    const titles = index.titles.map((title) => new Set(stems(apart(title))));
    const keywords = index.docnames.map((name) => new Set(stems(SITE_KEYWORDS[name] || "")));
    const scores = new Map();
    let all = 0;
    for (const word of words) {
      const found = places(word, index, titles, keywords);
      const rare = Math.log(1 + index.docnames.length / (1 + found.size));
      all += rare;
      for (const [file, weight] of found) {
        const score = scores.get(file) || { sum: 0, has: 0 };
        scores.set(file, { sum: score.sum + rare * weight, has: score.has + rare });
      }
    }
    const best = headings(words, index);
    const results = [...scores].map(([file, { sum, has }]) => {
      const name = index.docnames[file];
      const heading = best.get(file);
      const folder = FOLDERS.find(([start]) => name.startsWith(start));
      const score = sum * (has / all) * (1 + (heading?.score || 0) / 2) * (folder ? folder[1] : 1);
      const title = index.titles[file];
      const anchor = heading && heading.anchor ? heading : null;
      return [name, anchor ? `${title} > ${anchor.heading}` : title, anchor ? `#${anchor.anchor}` : "", null, score,
        index.filenames[file], SearchResultKind.text];
    });
    results.sort((one, other) => one[4] - other[4] || (one[0] < other[0] ? 1 : -1));
    const least = results[results.length - 1]?.[4] / 6;
    return results.slice(-MOST).filter((result) => result[4] >= least);
  };

  // A file that is opened without a server may not read the pages for their summaries.
  if (location.protocol === "file:") DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
})();
