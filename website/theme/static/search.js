// How the search ranks pages, in the place of Sphinx's own ranking: that wants every word of a query in a page, takes the
// best word for all of them, and shows each heading as a result of its own. Here a page counts once. Each word of the query
// counts by how rare it is and by where it is found: in the title, a keyword, a heading or the text. A sentence that a
// terminal shows leads to the place that answers it, and a word that no page has is taken for the one most like it.
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
  // Where a name such as trainer_config is explained, rather than used.
  const NAMES = /^reference\/(?!api\/|collection\/.*_(lookup|filter|callback)$)/;
  const MOST = 30;

  const stemmer = new Stemmer();
  // Sphinx leaves "down" out, with which people describe a node or a port.
  const stems = (text) => splitQuery(text.toLowerCase())
    .filter((word) => !stopwords.has(word) || word === "down")
    .map((word) => stemmer.stemWord(word));
  // Alerts are named in one word, such as HpuCardMissing.
  const apart = (title) => `${title} ${title.replace(/([a-z])([A-Z])/g, "$1 $2")}`;
  const plain = (text) => text.toLowerCase().replace(/[^a-z0-9]+/g, " ").trim();
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

  // How many letters to change, add, leave out or swap; more than most of them do not matter.
  const changes = (one, other, most) => {
    if (Math.abs(one.length - other.length) > most) return most + 1;
    let older = [];
    let before = Array.from({ length: other.length + 1 }, (_each, at) => at);
    for (let row = 1; row <= one.length; row++) {
      const now = [row];
      for (let at = 1; at <= other.length; at++) {
        const same = one[row - 1] === other[at - 1];
        now[at] = Math.min(before[at] + 1, now[at - 1] + 1, before[at - 1] + (same ? 0 : 1));
        if (row > 1 && at > 1 && one[row - 1] === other[at - 2] && one[row - 2] === other[at - 1]) {
          now[at] = Math.min(now[at], older[at - 2] + 1);
        }
      }
      [older, before] = [before, now];
    }
    return before[other.length];
  };

  // The word most like one that no page has: of titles, keywords and headings first.
  const corrected = (word, index, titles, keywords) => {
    if (word.length < 4 || /\d/.test(word)) return word;
    const most = word.length < 8 ? 1 : 2;
    for (const known of [new Set([...titles, ...keywords].flatMap((words) => [...words])), Object.keys(index.titleterms),
      Object.keys(index.terms)]) {
      const near = [...known].map((each) => [changes(word, each, most), each]).filter(([count]) => count <= most);
      if (near.length) return near.sort((one, other) => one[0] - other[0])[0][1];
    }
    return word;
  };

  // The heading of each page that has most of the query; one that shares only a frequent word with it leads astray.
  const headings = (words, index, rare) => {
    const best = new Map();
    const weight = (some) => some.reduce((sum, word) => sum + rare(word), 0);
    const whole = weight(words);
    for (const [heading, where] of Object.entries(index.alltitles)) {
      const its = [...new Set(stems(heading))];
      const hits = weight(words.filter((word) => its.includes(word)));
      const score = hits && hits / whole + hits / weight(its);
      const fits = hits > whole / 2 || hits > weight(its) / 2;
      for (const [file, anchor] of score ? where : []) {
        if (score > (best.get(file)?.score || 0)) best.set(file, { score, heading, anchor: fits && anchor });
      }
    }
    return best;
  };

  // The places that answer a sentence which the query has, or of which it is the most.
  const answers = (query, index) => {
    const asked = ` ${plain(query)} `;
    return SITE_MESSAGES.filter(([sentence]) => {
      const its = ` ${plain(sentence)} `;
      return stems(its).length > 1 && (asked.includes(its) || (its.includes(asked) && asked.length * 2 > its.length));
    }).sort((one, other) => one[0].length - other[0].length).map(([_sentence, page, anchor]) => {
      const file = index.docnames.indexOf(page);
      const ids = Object.entries(index.alltitles).filter(([, where]) => where.some(([at, id]) => at === file && id === anchor));
      const title = index.titles[file];
      return [page, ids.length ? `${title} > ${ids[0][0]}` : title, anchor ? `#${anchor}` : "", null, Infinity,
        index.filenames[file], SearchResultKind.text];
    });
  };

  Search._performSearch = (query) => {
    document.getElementById("search-progress")?.replaceChildren();
    const index = Search._index;
    const typed = [...new Set(stems(query))];
    const said = answers(query, index).filter((each, at, all) => at === all.findLastIndex((other) => other[0] === each[0]));
    if (!typed.length) return said;
    const titles = index.titles.map((title) => new Set(stems(apart(title))));
    const keywords = index.docnames.map((name) => new Set(stems(SITE_KEYWORDS[name] || "")));
    const scores = new Map();
    const rarity = new Map();
    const rare = (word) => {
      if (!rarity.has(word)) {
        rarity.set(word, Math.log(1 + index.docnames.length / (1 + places(word, index, titles, keywords).size)));
      }
      return rarity.get(word);
    };
    const known = (word) => places(word, index, titles, keywords).size > 0;
    const words = [...new Set(typed.map((word) => (known(word) ? word : corrected(word, index, titles, keywords))))];
    const named = words.some((word) => word.includes("_"));
    let all = 0;
    for (const word of words) {
      all += rare(word);
      for (const [file, weight] of places(word, index, titles, keywords)) {
        const score = scores.get(file) || { sum: 0, has: 0 };
        scores.set(file, { sum: score.sum + rare(word) * weight, has: score.has + rare(word) });
      }
    }
    const best = headings(words, index, rare);
    const results = [...scores].map(([file, { sum, has }]) => {
      const name = index.docnames[file];
      const heading = best.get(file);
      const folder = FOLDERS.find(([start]) => name.startsWith(start));
      const kind = named && NAMES.test(name) ? 2 : folder ? folder[1] : 1;
      const score = sum * (has / all) * (1 + (heading?.score || 0) / 2) * kind;
      const title = index.titles[file];
      const anchor = heading && heading.anchor ? heading : null;
      return [name, anchor ? `${title} > ${anchor.heading}` : title, anchor ? `#${anchor.anchor}` : "", null, score,
        index.filenames[file], SearchResultKind.text];
    });
    results.sort((one, other) => one[4] - other[4] || (one[0] < other[0] ? 1 : -1));
    const least = results[results.length - 1]?.[4] / 6;
    const others = results.slice(-MOST).filter((each) => each[4] >= least && !said.some((other) => other[0] === each[0]));
    return [...others, ...said];
  };

  // A file that is opened without a server may not read the pages for their summaries.
  if (location.protocol === "file:") DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
})();
