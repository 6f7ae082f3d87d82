// SPDX-License-Identifier: MIT
// socket.io: acknowledgements, binary data, and who the server is.
'use strict';
const http = require('http');
const { Server } = require('socket.io');
const { page, listen } = require('../common');

const server = http.createServer(page(__dirname));
const io = new Server(server, { pingInterval: 2000, pingTimeout: 2000 });
io.on('connection', (s) => {
  s.on('who', (reply) => reply({ server: process.env.PORT, transport: s.conn.transport.name }));
  s.on('echo', (data, reply) => reply(data));
  s.on('count', (n) => {
    for (let i = 0; i < n; i++)
      s.emit('number', i, Buffer.alloc(2000, i));
  });
});
listen(server);
