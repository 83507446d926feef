// graphile-worker, with the preset of its page about performance.
import { Logger, makeWorkerUtils, run } from 'graphile-worker';

const identifier = 'bench';

export async function open(place, pool, handle) {
  const logger = new Logger(() => () => {});
  const utils = await makeWorkerUtils({ pgPool: pool, logger });
  const preset = {
    worker: {
      concurrentJobs: 24,
      maxPoolSize: place.pool,
      localQueue: { size: 500, refetchDelay: { durationMs: 10 } },
      completeJobBatchDelay: 0,
      failJobBatchDelay: 0,
    },
  };
  return {
    migrate: () => utils.migrate(),
    enqueue: task => utils.addJob(identifier, task),
    enqueueMany: tasks => utils.addJobs(tasks.map(payload => ({ identifier, payload }))),
    async work() {
      const runner = await run({ pgPool: pool, logger, noHandleSignals: true, preset, taskList: { [identifier]: handle } });
      return () => runner.stop();
    },
  };
}
