// SPDX-License-Identifier: MIT
// Server-sent events that are made only when the one before has been seen: POST /next brings the next one to everyone.
// What is held back anywhere on the way never comes. Last-Event-ID is answered as it should be.
'use strict';
const http = require('http');
const { page, listen } = require('../common');

const streams = new Set();
let id = 0;
listen(http.createServer(page(__dirname, (req, res) => {
  if (req.url === '/events') {
    res.writeHead(200, { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-cache' });
    res.write(`: since ${req.headers['last-event-id'] || 0}\nretry: 50\n\n`);
    res.write(`event: hello\ndata: ${req.headers['last-event-id'] || 0}\n\n`);
    streams.add(res);
    res.on('close', () => streams.delete(res));
  } else if (req.url === '/next') {
    id += 1;
    for (const s of streams)
      s.write(`id: ${id}\ndata: tick ${id}\ndata: ${'x'.repeat(id)}\n\n`);
    req.resume();
    res.end(String(streams.size));
  } else if (req.url === '/drop') {
    for (const s of streams)
      s.end();
    req.resume();
    res.end();
  } else {
    res.end(String(streams.size));
  }
})));
