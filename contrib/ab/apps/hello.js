// SPDX-License-Identifier: MIT
// The smallest useful backend: "Hello, world!" to everything.
//     PORT=3000 [BUSY=180000] [CLUSTER=4] [REDIS=6379] node hello.js
// BUSY: so many divisions for each request. CLUSTER: so many processes share the port by Node's own cluster. REDIS: each
// request increments a counter in the Redis on that port and is answered when it has.
'use strict';
const cluster = require('cluster');
const http = require('http');
const net = require('net');

const BODY = 'Hello, world!';
const busy = Number(process.env.BUSY || 0);
const processes = Number(process.env.CLUSTER || 0);

// Redis answers in order, a line for each INCR; a line that is no number fails the request.
function counter(port) {
  const waiting = [];
  let rest = '';
  const socket = net.connect(port, '127.0.0.1').setEncoding('latin1').setNoDelay();
  socket.on('data', (text) => {
    const lines = (rest + text).split('\r\n');
    rest = lines.pop();
    for (const line of lines) waiting.shift()(line[0] === ':');
  });
  return (done) => {
    waiting.push(done);
    socket.write('INCR weir\r\n');
  };
}

function divide(times) {
  let x = 1;
  for (let i = 1; i <= times; i++) x = (x + i) / 3;
  return x;
}

if (processes > 0 && cluster.isPrimary) {
  for (let i = 0; i < processes; i++) cluster.fork();
  process.on('SIGTERM', () => process.exit(0)); // the workers end when their channel closes
} else {
  const count = process.env.REDIS ? counter(Number(process.env.REDIS)) : (done) => done(true);
  http.createServer((req, res) => count((counted) => {
    if (!counted) return void res.writeHead(500).end();
    if (busy && divide(busy) < 0) res.statusCode = 500; // never; keeps the loop from being dropped
    res.writeHead(200, { 'Content-Type': 'text/plain', 'Content-Length': BODY.length });
    res.end(BODY);
  })).listen({ port: Number(process.env.PORT), host: '127.0.0.1', backlog: 4096 });
}
