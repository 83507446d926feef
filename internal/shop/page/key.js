// newKey makes the key of one intent: one click on a button, however often its
// request is sent.
export function newKey() {
  if (typeof crypto.randomUUID === "function") {
    return crypto.randomUUID();
  }
  // Browsers keep randomUUID for https and localhost; a phone on the same
  // network that opens the demo by the machine's name has neither.
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = (bytes[6] & 0x0f) | 0x40; // version 4: random
  bytes[8] = (bytes[8] & 0x3f) | 0x80; // the variant of RFC 9562
  const hex = Array.from(bytes, (b) => b.toString(16).padStart(2, "0")).join("");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
}

// newCustomers draws a range of customers that nobody else orders for, so that
// the shop can count this page's orders apart. Each click is an order of its own
// customer.
export function newCustomers() {
  const size = 2 ** 20;
  const block = 1 + crypto.getRandomValues(new Uint32Array(1))[0]; // below the 2^53 that the shop allows
  return { first: block * size, last: block * size + size - 1 };
}
