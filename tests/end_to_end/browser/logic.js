(async () => {
  const [markdown, filter, virtual, layout, timeline, draft, format, route, form, model, report, compare, fleet] = await Promise.all(
    ['markdown', 'filter', 'virtual', 'layout', 'timeline', 'plan-draft', 'format', 'route', 'form', 'run-model', 'run-report', 'page-compare', 'page-fleet'].map((name) => import(`/${name}.js`)));
  const failed = [];
  let passed = 0;
  const same = (what, found, wanted) => {
    const [a, b] = [JSON.stringify(found), JSON.stringify(wanted)];
    if (a === b) passed += 1;
    else failed.push(`${what}: ${a}, not ${b}`);
  };
  const text = (source, cite) => markdown.render(source, cite ? { cite } : {}).innerHTML;

  // Markdown: what it is, and what it is not.
  same('heading', text('# A'), '<h2>A</h2>');
  same('deep heading', text('###### A'), '<h6>A</h6>');
  same('paragraphs', text('a\nb\n\nc'), '<p>a b</p><p>c</p>');
  same('emphasis', text('**a** *b* _c_ `d`'), '<p><strong>a</strong> <em>b</em> <em>c</em> <code>d</code></p>');
  same('no emphasis within words', text('a_b_c 2*3*4'), '<p>a_b_c 2*3*4</p>');
  same('list', text('- a\n- b\n  - c\n- d'), '<ul><li>a</li><li>b<ul><li>c</li></ul></li><li>d</li></ul>');
  same('numbers', text('3. a\n4. b'), '<ol start="3"><li>a</li><li>b</li></ol>');
  same('code', text('```js\n<b>\n```\nx'), '<pre tabindex="0"><code>&lt;b&gt;</code></pre><p>x</p>');
  same('open code', text('```\na'), '<pre tabindex="0"><code>a</code></pre>');
  same('quote', text('> a\n> b'), '<blockquote><p>a b</p></blockquote>');
  same('rule', text('a\n\n---\n\nb'), '<p>a</p><hr><p>b</p>');
  same('table', text('| a | b |\n|---|---|\n| 1 | 2 |').includes('<td>2</td>'), true);
  same('escapes', text('\\*a\\* \\`b\\`'), '<p>*a* `b`</p>');
  same('markup', text('<img src=x onerror=alert(1)>'), '<p>&lt;img src=x onerror=alert(1)&gt;</p>');
  same('link', text('[a](https://b.c/d)').includes('href="https://b.c/d"'), true);
  for (const target of ['javascript:alert(1)', 'JaVaScRiPt:alert(1)', 'data:text/html,x', 'vbscript:x', '//evil', 'file:///etc', 'java\tscript:x', ' https:x']) {
    same(`link to ${target}`, markdown.isSafe(target), false);
    same(`no link to ${target}`, text(`[a](${target})`).includes('href'), false);
  }
  const cite = (place) => (place === 'a.md:3' ? document.createElement('i') : null);
  same('cited in code', text('see (`a.md:3`), `b.md:3`', cite), '<p>see (<i></i>), <code>b.md:3</code></p>');
  same('cited bare', text('see a.md:3.', cite), '<p>see <i></i>.</p>');
  for (const [name, source] of [['stars', '*'.repeat(20000)], ['brackets', '['.repeat(20000)], ['ticks', '`'.repeat(20001)], ['quotes', '>'.repeat(5000)], ['lists', '- '.repeat(5000)], ['bold', '**a'.repeat(8000)], ['links', '[a]('.repeat(8000)], ['heading', `# a${' '.repeat(1e5)}b`], ['separator', `a|b\n--${' '.repeat(1e5)}x`], ['item', `- ${' '.repeat(1e5)}\u2028`], ['code', Array.from({ length: 400 }, (_, n) => `${'`'.repeat(n + 1)}a`).join('')], ['address', `http://${'!'.repeat(1e5)}a`]]) {
    const began = performance.now();
    markdown.render(source);
    const took = performance.now() - began;
    same(`${name} are read in time`, took < 3000 ? true : took, true);
  }

  // What is looked for.
  const now = 1e12;
  const run = { run: 'abc123', goal: 'Compare the Tides', status: 'completed', usage: { cost_micros: 250000, input_tokens: 900, output_tokens: 200 }, created_at: now - 60000, ended_at: now - 30000, models: ['openai/gpt-x'], count: { done: 3 }, paused: null };
  const shows = (search) => filter.shows(filter.parse(search), run, now);
  for (const search of ['', 'tides', 'TIDES compare', 'status:completed', 'status:comp', 'cost>0.2', 'cost<=0.25', 'time>20s', 'time<1min', 'age<2m', 'tokens>=1.1k', 'model:gpt', 'run:c12', 'tides cost>0.1 status:completed', 'tasks>2']) same(`shows ${search}`, shows(search), true);
  for (const search of ['moons', 'status:failed', 'status:paused', 'cost>0.25', 'time>31s', 'age>2min', 'model:llama', 'tides moons']) same(`hides ${search}`, shows(search), false);
  same('wrong bound', filter.parse('cost>much').wrong, ['cost>much']);
  same('quoted', filter.parse('"the tides"').words, ['the tides']);
  same('stopped', filter.shows(filter.parse('status:aborted'), { status: { aborted: 'cancelled' } }, now), true);

  // Long lists.
  same('rows that are seen', virtual.visible({ top: 1000, height: 100, row: 10, count: 1000, beyond: 2 }), { first: 98, end: 112 });
  same('rows at the end', virtual.visible({ top: 99999, height: 100, row: 10, count: 20, beyond: 0 }), { first: 19, end: 20 });
  same('no rows', virtual.visible({ top: 0, height: 100, row: 10, count: 0 }), { first: 0, end: 0 });
  same('scrolled up', virtual.scrolled({ top: 500, height: 100, row: 10, index: 3 }), 30);
  same('scrolled down', virtual.scrolled({ top: 0, height: 100, row: 10, index: 20 }), 110);
  same('in sight', virtual.scrolled({ top: 0, height: 100, row: 10, index: 5 }), 0);
  same('keys', ['ArrowDown', 'ArrowUp', 'Home', 'End', 'PageDown', 'x'].map((key) => virtual.moved(key, { index: 4, count: 10, page: 3 })), [5, 3, 0, 9, 7, null]);

  // The graph.
  const plan = { tasks: { 1: { name: 'a', role: 'worker' }, '1-1': { name: 'b', depends_on: [] }, '1-2': { name: 'c', depends_on: ['1-1'] }, 2: { name: 'd', depends_on: ['1'] }, 10: { name: 'e' } } };
  const nodes = layout.nodes(plan, { '1-1': { status: 'completed' } });
  same('order', nodes.map((node) => node.id), ['1', '1-1', '1-2', '2', '10']);
  same('parents', ['1-2-3', '1', '1-2~a'].map(layout.parentOf), ['1-2', null, '1-2']);
  same('depths', [...layout.depths(nodes)].map(([id, depth]) => `${id}:${depth}`), ['1:0', '1-1:1', '1-2:2', '2:3', '10:0']);
  const circle = layout.nodes({ tasks: { 1: { depends_on: ['2'] }, 2: { depends_on: ['1'] } } }, {});
  same('a circle does not hang', layout.layout(circle).boxes.length, 2);
  const placed = layout.layout(nodes);
  same('edges', placed.edges.filter((edge) => edge.kind === 'need').map((edge) => `${edge.from}>${edge.to}`), ['1-1>1-2', '1>2']);
  same('later stands farther right', placed.boxes.find((box) => box.id === '2').x > placed.boxes.find((box) => box.id === '1-2').x, true);
  same('nothing on top of each other', new Set(placed.boxes.map((box) => `${box.x},${box.y}`)).size, 5);
  same('folded', layout.rows(nodes, new Set(['1'])).map((row) => row.id), ['1', '2', '10']);
  same('neighbour', layout.neighbour(placed.boxes, placed.boxes.find((box) => box.id === '1'), 'ArrowRight').id, '1-1');
  const many = { tasks: Object.fromEntries(Array.from({ length: 1000 }, (_, n) => [`${n + 1}`, { name: `${n}`, depends_on: n % 3 ? [`${n}`] : [] }])) };
  let began = performance.now();
  same('1,000 tasks', layout.layout(layout.nodes(many, {})).boxes.length, 1000);
  const laid = performance.now() - began;
  same('are laid out at once', laid < 400 ? true : laid, true);

  // The timeline.
  const spans = ['write', '2', '1-1', 'plan', '1', 'reflect-1', '10'].map((task) => ({ task }));
  same('lanes', timeline.lanes(spans).map((lane) => lane.task), ['plan', '1', 'reflect-1', '1-1', '2', '10', 'write']);
  same('ticks', timeline.ticks(0, 1000, 5), [0, 200, 400, 600, 800, 1000]);
  same('ticks far away', timeline.ticks(5000, 95000, 10).length <= 10, true);
  same('nearer', timeline.zoomed({ from: 0, to: 100 }, 2, 50, { from: 0, to: 100 }), { from: 25, to: 75 });
  same('farther has an end', timeline.zoomed({ from: 0, to: 100 }, 0.01, 0, { from: 0, to: 100 }), { from: 0, to: 120 });

  // A plan that is edited.
  const edited = () => draft.opened({ goal: 'g', tasks: [{ name: 'a', goal: '' }, { name: 'b', goal: '', depends_on: ['a'], subtasks: [{ name: 'c', goal: '', depends_on: ['1'] }] }, { name: 'd', goal: '', depends_on: ['2-1', 'gone'] }] });
  const shape = (plan) => draft.flat(draft.closed(plan).tasks.map(function take(task) { return { rest: task, needs: task.depends_on, below: (task.subtasks ?? []).map(take) }; })).map(({ task, index }) => `${index}${task.rest.name}<${task.needs}`);
  same('as it was', shape(edited()), ['1a<', '2b<1', '2-1c<1', '3d<2-1,gone']);
  let one = edited();
  same('moved up', shape(draft.shifted(one, one.tasks[2].key, 'up')), ['1a<', '2d<3-1,gone', '3b<1', '3-1c<1']);
  one = edited();
  same('moved in', shape(draft.shifted(one, one.tasks[1].key, 'in')), ['1a<', '1-1b<1', '1-1-1c<1', '2d<1-1-1,gone']);
  one = edited();
  same('moved out', shape(draft.shifted(one, one.tasks[1].below[0].key, 'out')), ['1a<', '2b<1', '3c<1', '4d<3,gone']);
  one = edited();
  same('taken out', shape(draft.removed(one, one.tasks[0].key)), ['1b<', '1-1c<', '2d<1-1,gone']);
  one = edited();
  same('not into itself', shape(draft.moved(one, one.tasks[1].key, 'into', one.tasks[1].below[0].key)), ['1a<', '2b<1', '2-1c<1', '3d<2-1,gone']);
  one = edited();
  same('added', shape(draft.added(one, one.tasks[0].key, 'new')).slice(0, 2), ['1a<', '2New task<']);

  // Words and numbers.
  same('spans', [0, 999, 1500, 61000, 3660000, 90000000, null].map(format.span), ['0 ms', '999 ms', '1.5 s', '1 min 01 s', '1 h 01 min', '1 d 1 h', '–']);
  same('money', [0, 1234, 25000, 123456789].map(format.money), ['$0', '$0.0012', '$0.03', '$123']);
  same('bytes', [0, 999, 1500, 2500000].map(format.bytes), ['0 B', '999 B', '1.5 KB', '2.5 MB']);
  same('states', [format.status({ aborted: 'deadline_passed' }), format.tone({ aborted: 'x' }), format.tone('processing')], ['aborted: deadline passed', 's-skipped', 's-work']);
  same('routes', [route.parse('#/runs/ab/record?seq=3'), route.parse(''), route.parse('#/runs/a/compare/b').page], [{ page: 'run', id: 'ab', tab: 'record', query: { seq: '3' } }, { page: 'fleet', query: {} }, 'compare']);
  same('links', route.link(['runs', 'a b'], { q: '', x: '1&2' }), '#/runs/a%20b?x=1%262');
  same('places', [report.place('a:b.md:7'), report.place('a.md')], [{ document: 'a:b.md', line: 7 }, null]);
  same('changes', [compare.change(100, 112), compare.change(5, 5), compare.change(200, 100)], ['+12 %', 'same', '−50 %']);
  same('hosts', fleet.sorted([{ agent: 'w-1', role: 'worker', host: 'b' }, { agent: 'o-1', role: 'orchestrator', host: 'b' }, { agent: 'a-1', role: 'a', host: 'a' }, { given_up: 1 }]).hosts.map(([host, all]) => [host, all.map((one) => one.agent)]), [['a', ['a-1']], ['b', ['o-1', 'w-1']]]);

  // Forms by their schema.
  const fields = form.fields({ type: 'object', required: ['name', 'n'], properties: { name: { type: 'string', title: 'Your name' }, n: { type: 'integer', default: 4 }, kind: { type: 'string', enum: ['a', 'b'] }, ok: { type: 'boolean' }, some: { type: 'array', items: { type: 'string' } }, of: { type: 'string', oneOf: [{ const: 'x', title: 'The X' }] } } });
  same('what is needed', form.read(fields).wrong, ['Your name is needed.']);
  const set = (name, value) => { fields.find((field) => field.name === name).input.value = value; };
  set('name', 'ann');
  set('kind', '1');
  set('ok', 'true');
  set('some', 'p\nq');
  set('of', '0');
  same('what is given', form.read(fields), { values: { name: 'ann', n: 4, kind: 'b', ok: true, some: ['p', 'q'], of: 'x' }, wrong: [] });

  // What is told of a run is put in its place.
  const state = { goal: { text: 'g', corpus: 1 }, tasks: { 1: { status: 'queued' }, 2: { status: 'queued' } }, seq: 4 };
  same('changed tasks', model.merge(state, { seq: 6, head: { run: 'x', goal: 'h', status: 'completed' }, tasks: { 1: { status: 'completed' } }, removed: [] }), ['1']);
  same('changed state', state, { goal: { text: 'h', corpus: 1 }, tasks: { 1: { status: 'completed' }, 2: { status: 'queued' } }, seq: 6, status: 'completed' });
  same('removed tasks', model.merge(state, { tasks: {}, removed: ['2'] }), null);
  same('what is left', Object.keys(state.tasks), ['1']);
  same('all anew', [model.merge(state, { full: true, tasks: { 7: {} } }), Object.keys(state.tasks)], [null, ['7']]);
  model.merge(state, { reflections: { 1: { summary: 'a' }, 2: { summary: 'b' } }, refinements: [[['x'], []]] });
  model.merge(state, { reflections: { 2: null, 3: { summary: 'c' } }, conflicts: { 1: { subject: 's' } } });
  same('what was learnt', Object.keys(state.reflections), ['1', '3']);
  model.merge(state, { head: {}, tasks: {} });
  same('what did not change stays', [state.reflections[1].summary, state.conflicts[1].subject, state.refinements.length], ['a', 's', 1]);
  model.merge(state, { full: true, reflections: { 4: {} } });
  same('what was learnt, all anew', [state.reflections, state.conflicts], [{ 4: {} }, {}]);
  // What is told of a run is shown before its record is read.
  const begun = (...changes) => {
    const one = new model.RunModel('77-abc', { on: () => () => {} });
    changes.forEach((change) => one.take([change]));
    return one;
  };
  const whole = { run: '0-77-abc', full: true, seq: 9, count: 3, head: { run: '0-77-abc', goal: 'g', status: 'running' }, tasks: { 1: { status: 'queued' } }, removed: [], plan: { tasks: {} } };
  const started = begun(whole, { ...whole, full: false, seq: 10, tasks: { 2: {} } }, { ...whole, run: '1-77-abc', seq: 11, tasks: {} });
  same('begun with what is told', [started.id, started.isRead, started.last, started.state.goal.text, Object.keys(started.state.tasks)], ['0-77-abc', false, 10, 'g', ['1', '2']]);
  same('not begun', [{ ...whole, full: false }, { ...whole, run: 'other' }, { ...whole, damaged: 'a gap' }].map((change) => begun(change).state), [null, null, null]);

  same('a step in brief', model.digest({ seq: 1, at: 2, kind: 'step', task: '1', by: 'w', generation: 1, event: { number: 3, action: { name: 'calculator', arguments: { e: '1' } }, thought: { text: 'so' }, observation: { status: 'error' } } }).tone, 'failed');
  return { passed, failed };
})()
