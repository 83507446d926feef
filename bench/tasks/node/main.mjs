// A subject's process in Node: reads its place, then orders, answers each by a line, and
// ends with its input. The same as serve in work.go.
import readline from 'node:readline';
import pg from 'pg';

const batch = 1000;
const atOnce = 10;
const pace = 20; // ms between two tasks of an idle queue
const warming = 25; // of those come first and are not counted

const lines = readline.createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const place = JSON.parse((await lines.next()).value);

const pool = new pg.Pool({ connectionString: place.database, max: place.pool });
pool.on('error', () => {});
pool.on('connect', client => client.on('error', () => {}));

const now = () => performance.timeOrigin + performance.now();
const sleep = ms => new Promise(done => setTimeout(done, Math.max(0, ms)));

let handled = 0;
const waits = [];

async function handle(task) {
  const start = now();
  if (place.insert) await pool.query({ name: 'receipt', text: place.receipt, values: [task.id] });
  if (task.at) waits.push(start - task.at / 1e6);
  handled++;
}

const peers = { 'graphile-worker': './graphile.mjs', 'pg-boss': './pgboss.mjs' };
const { open } = await import(peers[place.subject]);
const peer = await open(place, pool, handle);
let stop;

const orders = {
  migrate: () => peer.migrate(),
  ready: () => Promise.all(Array.from({ length: place.pool }, () => pool.query('select 1'))),
  async single({ n }) {
    let last = 0;
    await Promise.all(Array.from({ length: atOnce }, async () => {
      while (last < n) await peer.enqueue({ id: ++last });
    }));
  },
  async many({ n }) {
    for (let from = 1; from <= n; from += batch) {
      await peer.enqueueMany(Array.from({ length: Math.min(batch, n - from + 1) }, (_, i) => ({ id: from + i })));
    }
  },
  async paced({ n }) {
    const start = performance.now();
    const enqueued = [];
    for (let i = 0; i < warming + n; i++) {
      await sleep(start + i * pace - performance.now());
      const at = i < warming ? undefined : Math.round(now() * 1e6);
      enqueued.push(peer.enqueue({ id: i + 1, at }));
    }
    await Promise.all(enqueued);
  },
  async work() { stop = await peer.work(); },
  async await({ n, limit_ms }) {
    const end = performance.now() + limit_ms;
    while (handled < n && performance.now() < end) await sleep(1);
  },
  stop: () => stop(),
};

function answer(error, seconds) {
  const { user, system } = process.cpuUsage();
  process.stdout.write(JSON.stringify({ error, seconds, cpu_us: user + system, handled, waits }) + '\n');
}

answer();
for await (const line of lines) {
  const order = JSON.parse(line);
  const start = performance.now();
  let error;
  try {
    await orders[order.do](order);
  } catch (e) {
    error = String(e?.message || e);
  }
  answer(error, (performance.now() - start) / 1000);
}
process.exit(0);
