// Hover, focus and clicks of the page. Everything that can be read stands in the page itself; texts become elements
// only as text.
(() => {
  'use strict';
  const data = JSON.parse(document.getElementById('data').textContent);
  const byId = (id) => document.getElementById(id);
  const hint = byId('about').cloneNode(true);

  // ---- marking ------------------------------------------------------------------------------------------------------
  let marked = [];
  const clear = () => {
    for (const [e, name] of marked) e.classList.remove(name);
    marked = [];
  };
  const mark = (e, name) => {
    if (!e || e.classList.contains(name)) return;
    e.classList.add(name);
    marked.push([e, name]);
  };
  const markLines = (places) => {
    for (const [file, first, last] of places)
      for (let line = first; line <= last; ++line) mark(byId(`l${file}-${line}`), 'on');
  };
  const covers = (places, file, line) => places.some((p) => p[0] === file && p[1] <= line && line <= p[2]);
  const markRow = (i, name) => mark(byId(`r${i}`), name);
  const markCard = (i, name) => mark(byId(`c${i}`), name);

  const marks = {
    row(i) {
      const row = data.rows[i];
      markRow(i, 'on');
      for (const arg of row.args) markRow(arg, 'near');
      for (const twin of row.twins) markRow(twin, 'twin');
      markLines(row.places);
    },
    card(i) {
      const card = data.cards[i];
      markCard(i, 'on');
      for (const e of document.querySelectorAll(`.edge[data-from="${i}"], .edge[data-to="${i}"]`)) mark(e, 'on');
      markLines(card.places);
    },
    line(file, line) {
      mark(byId(`l${file}-${line}`), 'on');
      let any = false;
      data.rows.forEach((row, i) => {
        if (!covers(row.places, file, line)) return;
        markRow(i, 'on');
        any = true;
      });
      data.cards.forEach((card, i) => {
        if (covers(card.places, file, line) && (!any || !card.rows)) markCard(i, 'on');
      });
    },
    app(i) {
      const app = data.apps[i];
      mark(byId(`a${i}`), 'on');
      for (const row of app.rows) markRow(row, 'on');
      for (const card of app.cards) markCard(card, 'on');
      markLines(app.places);
    },
    refusal(i) {
      const refusal = data.refusals[i];
      mark(byId(`x${i}`), 'on');
      for (const row of refusal.rows) markRow(row, 'on');
      for (const card of refusal.cards) markCard(card, 'on');
      markLines(refusal.places);
    },
  };

  // ---- the inspector
  // --------------------------------------------------------------------------------------------------
  const element = (tag, text, name) => {
    const e = document.createElement(tag);
    if (text !== undefined) e.textContent = text;
    if (name) e.className = name;
    return e;
  };
  const entries = (list) => {
    const dl = element('dl');
    for (const [name, value] of list) {
      if (value === undefined || value === '' || (Array.isArray(value) && value.length === 0)) continue;
      dl.append(element('dt', name));
      const dd = element('dd');
      dd.append(...(Array.isArray(value) ? value : [value]));
      dl.append(dd);
    }
    return dl;
  };
  const placeText = (places) => {
    const seen = new Set();
    for (const [file, first, last] of places) {
      const name = file === 0 ? '' : data.files[file] + ', ';
      seen.add(first === last ? `${name}line ${first}` : `${name}lines ${first}-${last}`);
    }
    return [...seen].join('; ');
  };
  const links = (apps) => apps.map((i) => {
    const app = data.apps[i];
    const line = app.places.length ? `, ${placeText(app.places)}` : '';
    const link = element('button', `${app.number}. ${app.rule}${line}`, 'link');
    link.dataset.app = i;
    const div = element('div');
    div.append(link);
    return div;
  });
  const texts = {
    row(i) {
      const row = data.rows[i];
      return [
        element('pre', row.text), entries([
          ['type', row.type],
          ['cost', row.cost],
          ['where', placeText(row.places)],
          ['computed', row.kernel],
          [row.state === 'made'     ? 'made by' :
               row.state === 'gone' ? 'replaced by' :
                                      'rules here',
           links(row.apps)],
          ['as written', row.state === 'same' && !row.apps.length ? 'unchanged' : undefined],
        ])
      ];
    },
    card(i) {
      const card = data.cards[i];
      return [
        element('pre', card.text), entries([
          ['fields', card.fields],
          ['cost', card.cost],
          ['where', placeText(card.places)],
          ['steps', card.steps],
          ['rules here', links(card.apps)],
        ])
      ];
    },
    line(file, line) {
      const rows = data.rows.map((row, i) => [row, i]).filter(([row]) => covers(row.places, file, line));
      const count = (graph) => rows.filter(([row]) => row.graph === graph).length;
      const apps = data.apps.map((app, i) => i).filter((i) => covers(data.apps[i].places, file, line));
      return [
        element('pre', byId(`l${file}-${line}`).textContent.trim() || ' '), entries([
          ['where', placeText([[file, line, line]])],
          ['operators', `${count(0)} as written, ${count(1)} as planned`],
          ['rules here', links(apps)],
        ])
      ];
    },
    app(i) {
      const app = data.apps[i];
      return [
        element('pre', app.what || app.rule), entries([
          ['rule', app.rule],
          ['law', app.law],
          ['cost', app.cost],
          ['where', placeText(app.places)],
        ]),
        element('p', app.summary, 'hint')
      ];
    },
    refusal(i) {
      const refusal = data.refusals[i];
      return [
        element('pre', refusal.what || refusal.rule), entries([
          ['rule', refusal.rule],
          ['refused', `only where ${refusal.guard}`],
          ['law', refusal.law],
          ['where', placeText(refusal.places)],
        ])
      ];
    },
  };

  let pinned = null;
  const show = (what) => {
    clear();
    const [kind, ...which] = what || [];
    if (kind) marks[kind](...which);
    byId('about').replaceChildren(...(kind ? texts[kind](...which) : [...hint.cloneNode(true).childNodes]));
    byId('kept').hidden = pinned === null;
  };

  // ---- what an event is about ---------------------------------------------------------------------------------------
  const kinds = '[data-row], [data-card], [data-line], [data-app], [data-refusal]';
  const about = (target) => {
    const e = target instanceof Element && target.closest(kinds);
    if (!e) return null;
    const d = e.dataset;
    if (d.row !== undefined) return ['row', +d.row];
    if (d.card !== undefined) return ['card', +d.card];
    if (d.app !== undefined) return ['app', +d.app];
    if (d.refusal !== undefined) return ['refusal', +d.refusal];
    return ['line', ...d.line.split('-').map(Number)];
  };
  const same = (a, b) => a && b && a.join() === b.join();
  /// Brings what is marked into view, in every pane but the one where the person is.
  const reveal = (origin) => {
    for (const pane of document.querySelectorAll('.body')) {
      if (pane.contains(origin)) continue;
      const e = pane.querySelector('.on, .twin');
      if (!e) continue;
      const box = e.getBoundingClientRect(), frame = pane.getBoundingClientRect();
      const up = box.top - frame.top - 30, left = box.left - frame.left - 12;
      if (box.top < frame.top)
        pane.scrollTop += up;
      else if (box.bottom > frame.bottom)
        pane.scrollTop += Math.min(box.bottom - frame.bottom + 30, up);
      if (box.left < frame.left)
        pane.scrollLeft += left;
      else if (box.right > frame.right)
        pane.scrollLeft += Math.min(box.right - frame.right + 12, left);
    }
  };

  document.addEventListener('pointerover', (event) => {
    if (byId('inspect').contains(event.target)) return;
    show(about(event.target) || pinned);
  });
  document.addEventListener('focusin', (event) => {
    const what = about(event.target);
    if (!what || byId('inspect').contains(event.target)) return;
    show(what);
    if (event.target.matches(':focus-visible')) reveal(event.target);
  });
  document.addEventListener('click', (event) => {
    const what = about(event.target);
    if (!what) {
      if (event.target.closest && event.target.closest('.tools, header, summary')) return;
      pinned = null;
      return show(null);
    }
    pinned = same(pinned, what) && !byId('inspect').contains(event.target) ? null : what;
    show(pinned);
    if (pinned) reveal(event.target.closest(kinds));
    if (pinned && byId('inspect').contains(event.target)) byId(`a${what[1]}`).open = true;
    // What a click unfolds is seen as far as there is room.
    const entry = event.target.closest('details');
    if (entry) requestAnimationFrame(() => entry.scrollIntoView({block: 'nearest'}));
  });

  // ---- keyboard
  // -------------------------------------------------------------------------------------------------------
  const go = (e) => {
    if (!e) return;
    for (const other of e.closest('.roving').querySelectorAll('[tabindex="0"]')) other.setAttribute('tabindex', '-1');
    e.setAttribute('tabindex', '0');
    e.focus();
    e.scrollIntoView({block: 'nearest', inline: 'nearest'});
  };
  document.addEventListener('keydown', (event) => {
    if (event.key === 'Escape') {
      pinned = null;
      return show(null);
    }
    const here = event.target.closest && event.target.closest('.roving [tabindex]');
    if (!here || event.altKey || event.ctrlKey || event.metaKey) return;
    const all = [...here.closest('.roving').querySelectorAll('[tabindex]')], at = all.indexOf(here);
    const what = about(here);
    if (event.key === 'ArrowDown')
      go(all[at + 1]);
    else if (event.key === 'ArrowUp')
      go(all[at - 1]);
    else if (event.key === 'Home')
      go(all[0]);
    else if (event.key === 'End')
      go(all[all.length - 1]);
    else if ((event.key === 'ArrowRight' || event.key === 'ArrowLeft') && what && what[0] === 'row')
      go(byId(`r${data.rows[what[1]].twins[0]}`));
    else if (event.key === 'Enter' || event.key === ' ')
      here.dispatchEvent(new MouseEvent('click', {bubbles: true}));
    else
      return;
    event.preventDefault();
  });

  // ---- size and colours
  // -----------------------------------------------------------------------------------------------
  for (const pane of document.querySelectorAll('.pane')) {
    const svg = pane.querySelector('svg'), body = pane.querySelector('.body');
    const width = +svg.dataset.width, height = +svg.dataset.height;
    let scale = 1;
    const set = (to) => {
      scale = Math.min(3, Math.max(0.05, to));
      svg.setAttribute('width', width * scale);
      svg.setAttribute('height', height * scale);
    };
    const wide = () => (body.clientWidth - 4) / width;
    set(Math.min(1, Math.max(0.72, wide())));
    body.scrollLeft = (body.scrollWidth - body.clientWidth) / 2;
    const sizes = {
      smaller: () => set(scale / 1.2),
      larger: () => set(scale * 1.2),
      wide: () => set(Math.min(1, wide())),
      whole: () => set(Math.min(1, wide(), (body.clientHeight - 8) / height)),
    };
    for (const button of pane.querySelectorAll('[data-size]'))
      button.addEventListener('click', () => sizes[button.dataset.size]());
  }
  byId('theme').addEventListener('click', () => {
    const root = document.documentElement;
    const dark =
        root.dataset.theme ? root.dataset.theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
    root.dataset.theme = dark ? 'light' : 'dark';
  });
})();
