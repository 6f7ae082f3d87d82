// SPDX-License-Identifier: MIT
// node client.js BASE-URL: N sockets open at once, each echoes, each is closed with a code and a reason; then large
// messages with permessage-deflate and without.
'use strict';
const crypto = require('crypto');
const WebSocket = require('ws');
const { main } = require('../common');

const open = (base, perMessageDeflate) => new Promise((resolve, reject) => {
  const s = new WebSocket(base.replace('http', 'ws') + '/x', ['chat'], { perMessageDeflate });
  s.once('open', () => resolve(s)).once('error', reject);
});
const echo = (s, data) => new Promise((resolve) => {
  s.once('message', (back, isBinary) => resolve(isBinary === (typeof data !== 'string') && back.equals(Buffer.from(data))));
  s.send(data);
});
const close = (s) => new Promise((resolve) => {
  s.once('close', (code, reason) => resolve(code + ' ' + reason));
  s.close(4321, 'done');
});
const count = (list) => list.reduce((n, x) => ({ ...n, [x]: (n[x] || 0) + 1 }), {});

main(async (base) => {
  const n = Number(process.env.N), sockets = [];
  while (sockets.length < n)
    sockets.push(...await Promise.all(Array.from({ length: Math.min(100, n - sockets.length) }, () => open(base, false))));
  const out = { open: (await (await fetch(base + '/open')).json()).open };
  for (let i = 0; i < 2; i++)
    out['echo' + i] = count(await Promise.all(sockets.map((s, k) => echo(s, 'message ' + i + ' of ' + k))));
  out.closed = count(await Promise.all(sockets.map(close)));
  for (const deflate of [true, false]) {
    const s = await open(base, deflate);
    const sizes = [];
    for (const data of ['ü'.repeat(1 << 20), crypto.randomBytes(3 << 20), '', Buffer.alloc(4 << 20)])
      sizes.push(await echo(s, data));
    out[deflate ? 'deflate' : 'plain'] = { extensions: s.extensions, protocol: s.protocol, echo: sizes,
                                           closed: await close(s) };
  }
  const s = await open(base, true);
  const pong = new Promise((resolve) => s.once('pong', (b) => resolve(b.toString())));
  s.ping('are you there');
  out.pong = await pong;
  await close(s);
  return out;
});
