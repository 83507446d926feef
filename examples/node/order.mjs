// Takes an order and enqueues its receipt, which a worker in another language writes.
//
//   DATABASE_URL=postgres://localhost/shop node order.mjs 17 1500
import pg from "pg";

const [order, amount] = process.argv.slice(2).map(Number);

const client = new pg.Client({ connectionString: process.env.DATABASE_URL });
await client.connect();
try {
  await client.query("begin");
  await client.query("insert into orders (id, amount) values ($1, $2) on conflict do nothing", [order, amount]);
  const task = await enqueue("receipt.send", `receipt:order:${order}`, { order });
  await client.query("commit"); // the order and its task exist, or neither
  await client.query("select pg_notify('idem_tasks', 'default')"); // or workers find it within a second
  console.log(task.outcome, task.status);
} finally {
  await client.end(); // what is not committed is rolled back
}

// enqueue makes a task, unless the queue remembers its key. Within a transaction it exists
// only if that commits.
async function enqueue(kind, key, payload) {
  const made = await client.query(
    `insert into idem.tasks (queue, kind, task_key, payload) values ('default', $1, $2, $3)
     on conflict (queue, task_key) do nothing returning id, status`,
    [kind, key, Buffer.from(JSON.stringify(payload))],
  );
  if (made.rowCount === 1) return { outcome: "new", ...made.rows[0] };
  const known = await client.query("select id, status from idem.tasks where queue = 'default' and task_key = $1", [key]);
  if (known.rowCount === 0) throw new Error(`${key} was forgotten just now: run the transaction again`);
  return { outcome: "duplicate", ...known.rows[0] };
}
