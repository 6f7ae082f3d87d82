// SPDX-License-Identifier: MIT
// node client.js BASE-URL: sees an event, asks for the next; then is dropped, and comes back by itself.
'use strict';
const { EventSource } = require('eventsource');
const { main } = require('../common');

main((base) => new Promise((resolve) => {
  const out = { hello: [], ticks: [], encoding: [] };
  const post = (path) => fetch(base + path, { method: 'POST' });
  const source = new EventSource(base + '/events', {
    fetch: async (url, init) => {
      const r = await fetch(url, { ...init, headers: { ...init.headers, 'Accept-Encoding': process.env.ENCODING } });
      out.encoding.push(r.headers.get('content-encoding'));
      return r;
    },
  });
  source.addEventListener('hello', (e) => {
    out.hello.push(e.data);
    post('/next');
  });
  source.onmessage = async (e) => {
    out.ticks.push([Number(e.lastEventId), e.data]);
    if (out.ticks.length === 40) {
      source.close();
      resolve(out);
    } else if (out.ticks.length === 20) {
      post('/drop');
    } else {
      post('/next');
    }
  };
}));
