// SPDX-License-Identifier: MIT
// The smallest useful backend: "Hello, world!" to everything.
//     PORT=3000 [BUSY=180000] [CLUSTER=4] node hello.js
// BUSY: so many divisions for each request. CLUSTER: so many processes share the port by Node's own cluster.
'use strict';
const cluster = require('cluster');
const http = require('http');

const BODY = 'Hello, world!';
const busy = Number(process.env.BUSY || 0);
const processes = Number(process.env.CLUSTER || 0);

function divide(times) {
  let x = 1;
  for (let i = 1; i <= times; i++) x = (x + i) / 3;
  return x;
}

if (processes > 0 && cluster.isPrimary) {
  for (let i = 0; i < processes; i++) cluster.fork();
  process.on('SIGTERM', () => process.exit(0)); // the workers end when their channel closes
} else {
  http.createServer((req, res) => {
    if (busy && divide(busy) < 0) res.statusCode = 500; // never; keeps the loop from being dropped
    res.writeHead(200, { 'Content-Type': 'text/plain', 'Content-Length': BODY.length });
    res.end(BODY);
  }).listen({ port: Number(process.env.PORT), host: '127.0.0.1', backlog: 4096 });
}
