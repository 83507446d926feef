import { newKey } from "./key.js";
import { sendBadly, sendOnce } from "./network.js";
import { View } from "./view.js";

// Side is one of the two buttons and what came of its clicks. The page tells it
// whether the network is bad and is told when an intent has ended.
export class Side {
  constructor(name, path, firstCustomer, page) {
    this.path = path;
    this.nextCustomer = firstCustomer; // each click is an order of its own customer
    this.page = page;
    this.view = new View(name);
    this.counts = { clicks: 0, requests: 0, lost: 0, replays: 0, orders: 0, doubles: 0 };
    this.open = 0; // intents without an end
    this.asking = 0; // their requests that are neither answered nor lost
    this.unanswered = []; // intents that were given up
    this.view.onOrder(() => this.click());
    this.view.onAgain(() => this.unanswered.splice(0).forEach((intent) => this.carryOut(intent)));
  }

  // click is one intent. It gets its key here, and keeps it over every retry.
  click() {
    this.add("clicks", 1);
    this.carryOut({
      number: this.counts.clicks,
      key: newKey(),
      path: this.path,
      body: JSON.stringify({ customer_id: this.nextCustomer++, amount: 1500 }),
      told: new Map(), // the orders that its answers named, and how often
    });
  }

  async carryOut(intent) {
    this.open++;
    this.view.list(intent);
    this.view.wait("");
    const tell = this.listenFor(intent);
    const ends = await (this.page.networkIsBad() ? sendBadly(intent, this.page.faults, tell) : sendOnce(intent, tell));
    this.open--;
    this.page.ended();
    const refused = ends.find((end) => end?.refused)?.refused;
    if (intent.told.size === 0 && !refused) {
      this.unanswered.push(intent);
    }
    this.view.offerAgain(this.unanswered.length > 0);
    if (this.open === 0) {
      this.view.end(intent, refused);
    }
  }

  // listenFor counts what happens to the requests of an intent, as it happens.
  listenFor(intent) {
    return {
      sent: () => {
        this.asking++;
        this.add("requests", 1);
        this.showAsking();
      },
      over: () => {
        this.asking--;
        this.showAsking();
      },
      lost: () => this.add("lost", 1),
      pausing: (why, milliseconds) => this.view.wait(`${why}; the same key again in ${milliseconds / 1000} s`),
      heard: (order, replayed) => {
        this.add("replays", replayed ? 1 : 0);
        intent.told.set(order, (intent.told.get(order) ?? 0) + 1);
        this.view.list(intent);
      },
    };
  }

  showAsking() {
    this.view.wait(this.asking === 1 ? "1 request under way" : `${this.asking} requests under way`);
  }

  add(name, n) {
    this.counts[name] += n;
    this.view.count(name, this.counts[name]);
  }

  // showStored shows what the database says.
  showStored(orders, doubles) {
    this.add("orders", orders - this.counts.orders);
    this.add("doubles", doubles - this.counts.doubles);
  }
}
