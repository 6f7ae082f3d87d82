// SPDX-License-Identifier: MIT
// node client.js BASE-URL: several clients of one kind (TRANSPORTS: polling, websocket or both in this order; COOKIE=1:
// they keep cookies) talk to whichever server they were given. With RESTART=1 it says so, and waits until each client
// has lost its server and has talked again.
'use strict';
const { io } = require('socket.io-client');
const { main } = require('../common');

const transports = process.env.TRANSPORTS.split(',');
const once = (s, name) => new Promise((resolve) => s.once(name, resolve));
const withReply = (s, ...args) => new Promise((resolve) => s.emit(...args, resolve));

async function talk(s) {
  const numbers = [];
  s.off('number');
  const all = new Promise((resolve) => s.on('number', (i, b) => {
    if (b.length === 2000 && b[0] === i)
      numbers.push(i);
    if (i === 49)
      resolve();
  }));
  s.emit('count', 50);
  await all;
  const data = { text: 'ü'.repeat(5000), bytes: Buffer.from([0, 255, 10, 13]) };
  const back = await withReply(s, 'echo', data);
  const { server, transport } = await withReply(s, 'who');
  return { server, transport, echo: back.text === data.text && data.bytes.equals(back.bytes),
           inOrder: numbers.every((n, i) => n === i) && numbers.length === 50 };
}

async function client(base) {
  const errors = [];
  const s = io(base, { transports, forceNew: true, withCredentials: process.env.COOKIE === '1',
                       reconnectionDelay: 100, reconnectionDelayMax: 300 });
  s.on('connect_error', (e) => errors.push(String(e.message)));
  const upgraded = transports.length > 1 ? new Promise((resolve) => s.io.engine.once('upgrade', resolve)) : null;
  await once(s, 'connect');
  await upgraded;
  return { s, errors, id: s.id, first: await talk(s) };
}

// Until it has worked without a break: whoever moved to the server that is restarted last loses it a second time.
async function talkAgain(s) {
  for (;;) {
    while (!s.connected || (transports.length > 1 && s.io.engine.transport.name !== 'websocket'))
      await new Promise((resolve) => setTimeout(resolve, 20));
    const lost = once(s, 'disconnect').then(() => null);
    const talked = await Promise.race([talk(s), lost]);
    if (talked)
      return talked;
  }
}

main(async (base) => {
  const all = await Promise.all(Array.from({ length: 8 }, () => client(base)));
  const errors = all.map((c) => c.errors.length);
  if (process.env.RESTART === '1') {
    const back = all.map(async (c) => {
      await once(c.s, 'disconnect');
      c.second = await talkAgain(c.s);
      c.isNew = c.s.id !== c.id;
    });
    console.log('RESTART');
    await Promise.all(back);
  }
  const result = all.map((c, i) => ({ first: c.first, second: c.second, isNew: c.isNew, errors: errors[i] }));
  await Promise.all(all.map((c) => { const gone = once(c.s, 'disconnect'); c.s.disconnect(); return gone; }));
  return result;
});
