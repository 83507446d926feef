import { newCustomers } from "./key.js";
import { Side } from "./side.js";
import { watchStats } from "./stats.js";

const badNetwork = document.getElementById("bad-network");
const away = document.getElementById("stats-away");
const customers = newCustomers();

const page = {
  faults: document.body.dataset.faults === "true",
  networkIsBad: () => badNetwork.checked,
  ended: () => pollNow(),
};
const guarded = new Side("guarded", "orders", customers.first, page);
const unguarded = new Side("unguarded", "unguarded/orders", customers.first, page);

const pollNow = watchStats(`stats?customers=${customers.first}-${customers.last}`, (stats) => {
  away.hidden = true;
  guarded.showStored(stats.orders, stats.double_orders);
  unguarded.showStored(stats.unguarded_orders, stats.unguarded_double_orders);
}, () => {
  away.hidden = false;
});
