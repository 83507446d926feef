// A client as every client should be: it sends an intent until it has an answer,
// always the same bytes under the same key.

const attempts = 8; // then a person is asked
const longestPause = 5000; // in milliseconds, whatever Retry-After says
const pauseAfterLoss = 300; // in milliseconds; grows with each attempt

export const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

// send resolves to { order, replayed }, to { refused } if the shop says that
// sending it again is of no use, or to null if there was no answer after several
// attempts. trouble is for the first attempt only: { headers, cutAfter }. tell
// hears of what happens meanwhile: sent, lost, over, heard, pausing.
export async function send(intent, trouble, tell) {
  for (let attempt = 1; attempt <= attempts; attempt++) {
    const answer = await ask(intent, attempt === 1 ? trouble : {}, tell);
    if (answer.order) {
      tell.heard(answer.order, answer.replayed);
      return answer;
    }
    if (answer.refused) {
      return answer;
    }
    if (attempt < attempts) {
      const wait = answer.retryAfter ?? pauseAfterLoss * attempt;
      tell.pausing(answer.why, wait);
      await pause(wait);
    }
  }
  return null;
}

// ask makes one request.
async function ask(intent, trouble, tell) {
  const cut = new AbortController();
  let timer;
  if (trouble.cutAfter !== undefined) {
    timer = setTimeout(() => cut.abort(), trouble.cutAfter);
  }
  tell.sent();
  try {
    const response = await fetch(intent.path, {
      method: "POST",
      headers: { "Content-Type": "application/json", "Idempotency-Key": intent.key, ...trouble.headers },
      body: intent.body,
      cache: "no-store",
      signal: cut.signal,
    });
    if (trouble.cutAfter !== undefined) {
      cut.abort(); // the answer was quicker: it gets lost on its last yard
    }
    return read(response, await response.json());
  } catch {
    tell.lost();
    return { why: "no answer" };
  } finally {
    clearTimeout(timer);
    tell.over();
  }
}

// read says what an answer means. A refusal is a problem (RFC 9457) that tells
// whether to come back with the same key.
function read(response, body) {
  if (response.ok) {
    return { order: body.id, replayed: response.headers.get("Idempotent-Replayed") === "true" };
  }
  if (!body.retryable) {
    return { refused: body.title ?? `status ${response.status}` };
  }
  const seconds = Number(response.headers.get("Retry-After") ?? 1);
  const retryAfter = Math.min(Number.isFinite(seconds) ? seconds * 1000 : 1000, longestPause);
  return { why: body.code === "in-flight" ? "still in flight" : "the shop failed", retryAfter };
}
