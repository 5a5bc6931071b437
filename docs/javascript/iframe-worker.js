/* Search without a server. Browsers start no Worker from file://, and the theme searches in one; here a hidden frame
   runs the worker's script instead. Pages from a server are not affected. The theme's offline plugin knows this file by
   the "iframe-worker" in its name, and then does not load its own shim from the network. */
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const script = document.createElement("script");
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      this.ready = new Promise((resolve) => {
        this.frame.onload = () => {
          const inside = this.frame.contentWindow;
          /* The script answers by postMessage. */
          inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
          script.onload = () => resolve(inside);
          script.src = new URL(url, document.baseURI).href;
          inside.document.body.append(script);
        };
      });
      this.frame.srcdoc = "<body></body>";
      const attach = () => document.body.append(this.frame);
      document.body ? attach() : document.addEventListener("DOMContentLoaded", attach);
    }

    postMessage(data) {
      this.ready.then((inside) => inside.dispatchEvent(new inside.MessageEvent("message", { data })));
    }

    terminate() {
      this.frame.remove();
    }
  };
}
