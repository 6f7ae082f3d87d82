// SPDX-License-Identifier: MIT
// A SockJS echo, and the browser's library beside it (the iframe transports load it too).
'use strict';
const fs = require('fs');
const http = require('http');
const sockjs = require('sockjs');
const { page, listen } = require('../common');

const library = fs.readFileSync(require.resolve('sockjs-client/dist/sockjs.min.js'));
const echo = sockjs.createServer({ sockjs_url: '/sockjs.js', response_limit: 20000, heartbeat_delay: 5000, log: () => {} });
echo.on('connection', (c) => {
  c.on('data', (m) => c.write(m === 'who?' ? process.env.PORT : m));
});
const server = http.createServer(page(__dirname, (req, res) => {
  res.setHeader('Content-Type', 'application/javascript');
  res.statusCode = req.url === '/sockjs.js' ? 200 : 404;
  res.end(req.url === '/sockjs.js' ? library : '');
}));
echo.installHandlers(server, { prefix: '/echo' });
listen(server);
