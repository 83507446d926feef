const listed = 4; // of the latest clicks

// View is what a side shows. It writes text only, never markup.
export class View {
  constructor(name) {
    this.name = name;
    this.lines = new Map(); // a click's number to its line
  }

  element(part) {
    return document.getElementById(`${this.name}-${part}`);
  }

  onOrder(act) {
    this.element("order").addEventListener("click", act);
  }

  onAgain(act) {
    this.element("again").addEventListener("click", act);
  }

  offerAgain(offered) {
    this.element("again").hidden = !offered;
  }

  count(name, n) {
    const cell = document.querySelector(`[data-count="${this.name}.${name}"]`);
    cell.textContent = n.toLocaleString("en");
    cell.classList.toggle("some", n > 0);
  }

  wait(detail) {
    this.status("waiting", "Waiting for completion", detail);
  }

  end(intent, refused) {
    const orders = [...intent.told.keys()];
    if (orders.length > 0) {
      this.status("done", `Click ${intent.number}: ${orders.length === 1 ? `order #${orders[0]}` : `${orders.length} orders`}`, "");
    } else if (refused) {
      this.status("failed", `Click ${intent.number} was refused`, refused);
    } else {
      this.status("failed", `Click ${intent.number} has no answer`, "Nobody knows whether there is an order. The same key finds out.");
    }
  }

  // status is announced when it changes, so it is only written then.
  status(state, text, detail) {
    const status = this.element("status");
    if (status.textContent !== text) {
      status.textContent = text;
    }
    status.dataset.state = state;
    this.element("detail").textContent = detail;
  }

  // list shows what a click was told so far: one order however often, or several.
  list(intent) {
    let line = this.lines.get(intent.number);
    if (!line) {
      line = document.createElement("li");
      this.lines.set(intent.number, line);
      this.element("clicks").prepend(line);
      this.forget(intent.number - listed);
    }
    line.replaceChildren(text("span", "click", `Click ${intent.number}`));
    [...intent.told].sort(([a], [b]) => a - b).forEach(([order, times], i) => {
      line.append(" ", text("span", i === 0 ? "order-number" : "order-number double", `#${order}`));
      if (times > 1) {
        line.append(" ", text("span", "times", `${times} answers`));
      }
    });
  }

  forget(number) {
    this.lines.get(number)?.remove();
    this.lines.delete(number);
  }
}

function text(tag, className, content) {
  const element = document.createElement(tag);
  element.className = className;
  element.textContent = content;
  return element;
}
