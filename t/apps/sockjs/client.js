// SPDX-License-Identifier: MIT
// node client.js BASE-URL: sessions over each transport that the client offers in Node.
'use strict';
const SockJS = require('sockjs-client');
const { main } = require('../common');

const MESSAGES = ['short', 'ü€\u2028"\\', 'x'.repeat(30000), '', ...Array.from({ length: 40 }, (_, i) => 'm' + i)];

const session = (base, name) => new Promise((resolve) => {
  const got = [];
  const s = new SockJS(base + '/echo', null, { transports: [name] });
  let transport;
  s.onopen = () => {
    transport = s.transport;
    [...MESSAGES, 'who?'].forEach((m) => s.send(m));
  };
  s.onmessage = (e) => {
    got.push(e.data);
    if (got.length > MESSAGES.length)
      s.close(3001, 'enough');
  };
  s.onclose = (e) => resolve({ same: MESSAGES.every((m, i) => m === got[i]), server: got[MESSAGES.length],
                               transport, code: e.code, reason: e.reason });
});

main(async (base) => {
  const out = {};
  for (const t of ['websocket', 'xhr-streaming', 'eventsource', 'xhr-polling'])
    out[t] = await Promise.all(Array.from({ length: 4 }, () => session(base, t)));
  return out;
});
