// Runs Perfetto's trace processor, as its user interface does: a worker that gets requests and posts replies.
// Usage: node trace_processor.js ENGINE_FOLDER REQUESTS REPLIES, the latter two being streams of messages.
"use strict";

const fs = require("fs");
const path = require("path");
const vm = require("vm");

const [folder, requests, replies] = process.argv.slice(2);

class XMLHttpRequest {
  open(method, url) {
    this.url = url;
  }
  send() {
    const bytes = fs.readFileSync(path.join(folder, path.basename(this.url)));
    this.response = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength);
    this.status = 200;
  }
}

const complain = (...texts) => process.stderr.write(texts.join(" ") + "\n");
const worker = {
  XMLHttpRequest, setTimeout, clearTimeout, performance, TextDecoder, TextEncoder, URL, crypto: globalThis.crypto,
  console: { log: complain, warn: complain, error: complain },
  importScripts() {}, location: { href: "file:///engine_bundle.js" }, WorkerGlobalScope: class {},
};
worker.self = worker;
vm.createContext(worker);
vm.runInContext(fs.readFileSync(path.join(folder, "engine_bundle.js"), "utf8"), worker);

const out = fs.openSync(replies, "w");
const port = { postMessage: (bytes) => fs.writeSync(out, bytes) };
setTimeout(() => {
  worker.onmessage({ data: port });
  worker.bytes = [...fs.readFileSync(requests)];
  port.onmessage({ data: vm.runInContext("Uint8Array.from(bytes)", worker) });
}, 100);
