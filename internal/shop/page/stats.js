const every = 1000; // in milliseconds
const patience = 10000; // in milliseconds, for one answer

// watchStats polls the shop's own count while the page can be seen. It returns a
// function that asks at once.
export function watchStats(path, show, away) {
  let timer;
  let asking = false;
  let askAgain = false;

  async function poll() {
    clearTimeout(timer);
    if (asking) {
      askAgain = true; // what is being answered may be from before
      return;
    }
    asking = true;
    askAgain = false;
    try {
      show(await ask(path));
    } catch {
      away();
    }
    asking = false;
    if (askAgain) {
      poll();
    } else if (document.visibilityState === "visible") {
      timer = setTimeout(poll, every);
    }
  }

  document.addEventListener("visibilitychange", () => {
    clearTimeout(timer);
    if (document.visibilityState === "visible") {
      poll();
    }
  });
  if (document.visibilityState === "visible") {
    poll();
  }
  return poll;
}

async function ask(path) {
  const over = new AbortController();
  const timer = setTimeout(() => over.abort(), patience);
  try {
    const response = await fetch(path, { cache: "no-store", signal: over.signal });
    if (!response.ok) {
      throw new Error(`status ${response.status}`);
    }
    return await response.json();
  } finally {
    clearTimeout(timer);
  }
}
