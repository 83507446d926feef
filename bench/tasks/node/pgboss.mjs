// pg-boss, with batches of 100 for four workers and LISTEN.
import { PgBoss } from 'pg-boss';

const queue = 'bench';

export async function open(place, _pool, handle) {
  const boss = new PgBoss({ connectionString: place.database, max: place.pool, supervise: false, schedule: false, useListenNotify: true });
  boss.on('error', error => console.error('pg-boss:', error.message));
  await boss.start();
  return {
    migrate: () => boss.createQueue(queue, { notify: true }),
    enqueue: task => boss.send(queue, task),
    enqueueMany: tasks => boss.insert(queue, tasks.map(data => ({ data }))),
    async work() {
      const options = { batchSize: 100, localConcurrency: 4, burstWhenBatchFull: true, pollingIntervalSeconds: 0.5 };
      await boss.work(queue, options, jobs => Promise.all(jobs.map(job => handle(job.data))));
      return () => boss.stop({ graceful: true, close: true });
    },
  };
}
