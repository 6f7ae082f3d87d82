// SPDX-License-Identifier: MIT
// The demo's application: what a Meteor server does for a browser, in plain Node without packages. It renders the
// page for each request, serves the bundle's files by its manifest, and speaks WebSocket on /websocket.
//     PORT=3000 BUNDLE=DIR node app.js
'use strict';
const crypto = require('crypto');
const fs = require('fs');
const http = require('http');
const path = require('path');

const PAGE_SIZE = 687;
const root = path.join(process.env.BUNDLE, 'programs', 'web.browser');
const program = JSON.parse(fs.readFileSync(path.join(root, 'program.json'), 'utf8'));
const byUrl = new Map(program.manifest.map((m) => [m.url, m]));
const types = { '.css': 'text/css; charset=utf-8', '.js': 'application/javascript; charset=utf-8',
                '.jpg': 'image/jpeg', '.txt': 'text/plain; charset=utf-8' };

function page() {
  const urls = (type) => program.manifest.filter((m) => m.type === type).map((m) => m.url);
  const head = '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>weir demo</title>\n'
    + urls('css').map((u) => `<link rel="stylesheet" href="${u}">\n`).join('')
    + urls('js').map((u) => `<script defer src="${u}"></script>\n`).join('')
    + '</head>\n<body>\n<h1>weir demo</h1>\n<p>WebSocket: <b id="ws">connecting</b></p>\n'
    + '<p><img src="/image.jpg" alt="water going over a weir"></p>\n';
  const tail = '\n</body>\n</html>\n';
  return head + '<!--' + '.'.repeat(PAGE_SIZE - head.length - tail.length - 7) + '-->' + tail;
}

function answer(req, res) {
  const url = req.url.split('?')[0];
  if (req.method !== 'GET' && req.method !== 'HEAD') {
    res.writeHead(405, { Allow: 'GET, HEAD' }).end();
    return;
  }
  if (url === '/') {
    const html = page();
    res.writeHead(200, { 'Content-Type': 'text/html; charset=utf-8', 'Content-Length': Buffer.byteLength(html) });
    res.end(html);
    return;
  }
  const entry = byUrl.get(url);
  if (!entry) {
    res.writeHead(404, { 'Content-Type': 'text/plain', 'Content-Length': 10 }).end('not found\n');
    return;
  }
  const file = path.join(root, entry.path);
  fs.stat(file, (err, st) => {
    if (err) return void res.writeHead(500).end();
    res.writeHead(200, { 'Content-Type': types[path.extname(file)] || 'application/octet-stream',
                         'Content-Length': st.size, 'Last-Modified': st.mtime.toUTCString(),
                         'Cache-Control': 'public, max-age=0', ETag: `"${entry.hash}"` });
    if (req.method === 'HEAD') return void res.end();
    fs.createReadStream(file).on('error', () => res.destroy()).pipe(res);
  });
}

// --- WebSocket (RFC 6455): short text frames out; text, ping and close in -------------------------------------------

function frame(opcode, payload) {
  const body = Buffer.from(payload);
  return Buffer.concat([Buffer.from([0x80 | opcode, body.length]), body]); // at most 125 bytes, see the callers
}

// Takes the complete frames out of buffer; returns what is left over. Clients' frames are masked.
function frames(buffer, each) {
  for (;;) {
    if (buffer.length < 6) return buffer;
    const length = buffer[1] & 0x7f;
    if (!(buffer[1] & 0x80) || length > 125) throw new Error('not a short masked frame');
    if (buffer.length < 6 + length) return buffer;
    const payload = Buffer.from(buffer.subarray(6, 6 + length).map((b, i) => b ^ buffer[2 + (i & 3)]));
    each(buffer[0] & 0x0f, payload);
    buffer = buffer.subarray(6 + length);
  }
}

function upgrade(req, socket, first) {
  const key = req.headers['sec-websocket-key'];
  if (req.url !== '/websocket' || !key || String(req.headers.upgrade).toLowerCase() !== 'websocket') {
    socket.end('HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n');
    return;
  }
  const accept = crypto.createHash('sha1').update(key + '258EAFA5-E914-47DA-95CA-C5AB0DC85B11').digest('base64');
  socket.write('HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n'
    + `Sec-WebSocket-Accept: ${accept}\r\n\r\n`);
  let tick = 0, rest = first;
  const say = () => socket.write(frame(1, JSON.stringify({ tick: ++tick, time: new Date().toISOString() })));
  const timer = setInterval(say, 1000);
  const take = (data) => {
    rest = frames(Buffer.concat([rest, data]), (opcode, payload) => {
      if (opcode === 1) socket.write(frame(1, JSON.stringify({ echo: JSON.parse(payload) }).slice(0, 125)));
      else if (opcode === 9) socket.write(frame(10, payload));
      else if (opcode === 8) socket.end(frame(8, payload));
    });
  };
  socket.setNoDelay(true);
  socket.on('data', (data) => {
    try {
      take(data);
    } catch (e) { // a peer that does not keep to the protocol
      socket.destroy();
    }
  });
  socket.on('error', () => socket.destroy());
  socket.on('close', () => clearInterval(timer));
  say();
}

const server = http.createServer(answer).on('upgrade', upgrade);
server.listen({ port: Number(process.env.PORT), host: '127.0.0.1', backlog: 1024 },
  () => console.log(`demo app on 127.0.0.1:${server.address().port}`));
