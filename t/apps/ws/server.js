// SPDX-License-Identifier: MIT
// ws: an echo with and without permessage-deflate; GET /open says how many sockets there are and how they ended.
'use strict';
const http = require('http');
const { WebSocketServer } = require('ws');
const { page, listen } = require('../common');

const codes = {};
const server = http.createServer(page(__dirname, (req, res) => res.end(JSON.stringify({ open: wss.clients.size, codes }))));
const wss = new WebSocketServer({ server, perMessageDeflate: { threshold: 100 }, maxPayload: 32 << 20 });
wss.on('connection', (s) => {
  s.on('message', (data, isBinary) => s.send(data, { binary: isBinary }));
  s.on('close', (code) => { codes[code] = (codes[code] || 0) + 1; });
});
server.listen({ port: Number(process.env.PORT), host: '127.0.0.1', backlog: 2000 });
