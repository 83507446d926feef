import { pause, send } from "./send.js";

const lateAfter = 1500; // in milliseconds

// sendOnce is the good network: one request, and again only if it has no answer.
export function sendOnce(intent, tell) {
  return Promise.all([send(intent, {}, tell)]);
}

// sendBadly is the bad network. The page makes all of the trouble itself; a shop
// that obeys (faults) adds some of its own: it is slow, and fails on every other
// click. It is not asked to hang up: some browsers repeat a request by themselves
// when that happens, trouble included, for as long as it happens. A request that
// is cut off here leaves the same behind. Every request carries the intent's one
// key. Resolves to the end of each.
export function sendBadly(intent, faults, tell) {
  const slow = faults ? { "X-Demo-Delay": "1200ms" } : {};
  const failing = faults && intent.number % 2 === 0 ? { ...slow, "X-Demo-Fail": "500" } : slow;
  return Promise.all([
    send(intent, { headers: failing }, tell), // the click
    send(intent, { headers: slow }, tell), // the impatient second one
    send(intent, { headers: slow, cutAfter: 5 + Math.random() * 25 }, tell), // the tunnel
    pause(lateAfter).then(() => send(intent, {}, tell)), // the second thought
  ]);
}
